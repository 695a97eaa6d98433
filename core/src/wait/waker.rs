//! What wakes a sleeper, and why it sleeps.

use core::fmt;

/// The event for which a thread sleeps, for diagnosis of a program that hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The kind of event, in one word: `join`, `mutex`, `signal`, `barrier`, ...
    pub what: &'static str,
    /// The place: a word's address, or a ULT's number.
    pub at: u64,
    /// The value for which the thread waits, if there is one.
    pub wanted: u64,
}

impl Reason {
    /// A reason without particulars.
    pub const fn new(what: &'static str) -> Self {
        Self { what, at: 0, wanted: 0 }
    }
}

/// Wakes one sleeper once.
///
/// Two words, no allocation: a function and its argument. For the code that wakes, a
/// ULT, an OS thread and a foreign scheduler's thread all look the same.
pub struct Waker {
    data: *const (),
    wake: unsafe fn(*const ()),
}

// SAFETY: `Waker::new` demands that `wake` may be called on any thread.
unsafe impl Send for Waker {}

impl Waker {
    /// A waker that calls `wake(data)`.
    ///
    /// # Safety
    ///
    /// The call is sound on any thread, once, at any time until the sleep that
    /// created the waker has returned. The commit that receives the waker must not
    /// use it later: see [`Wait::sleep`](super::Wait::sleep).
    pub const unsafe fn new(data: *const (), wake: unsafe fn(*const ())) -> Self {
        Self { data, wake }
    }

    /// Ends the sleep. Never blocks.
    ///
    /// This is safe although it resumes a thread: only a commit receives a waker. A
    /// commit that stores it for a later wake keeps the contract of
    /// [`Wait::sleep`](super::Wait::sleep), by which the sleep lasts until the wake.
    #[inline]
    pub fn wake(self) {
        // SAFETY: the contract of `new`; `self` is consumed, so there is one call,
        // and the sleep has not returned, by the contract of `Wait::sleep`.
        unsafe { (self.wake)(self.data) }
    }

    /// The two words, for a structure that keeps them in atomics.
    pub fn into_raw(self) -> (*const (), unsafe fn(*const ())) {
        (self.data, self.wake)
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waker({:p})", self.data)
    }
}
