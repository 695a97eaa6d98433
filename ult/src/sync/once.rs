//! Once, and by one.
//!
//! ```text
//!   NEW ──call──► RUNNING ──► DONE            for ever
//!    ▲               │ panic, or an error
//!    └───────────────┘ the first waiter tries next
//! ```

use super::queue::{self, Node, Place, Queue};
use crate::limit::Limit;
use crate::lock::Lock;
use core::convert::Infallible;
use core::fmt;
use tsumugi_core::sync::{AtomicU32, Ordering, UnsafeCell};
use tsumugi_core::wait::{Interrupted, Reason};

/// Something that is done once. A panic does not count and poisons nothing:
/// the next caller tries again.
///
/// ```
/// use tsumugi_ult::sync::Once;
///
/// let (once, mut calls) = (Once::new(), 0);
/// once.call(|| calls += 1);
/// once.call(|| calls += 1);
/// assert_eq!(calls, 1);
/// ```
pub struct Once {
    word: AtomicU32,
    queue: Lock<Queue>,
}

/// A value that is made once, by the first who needs it.
///
/// ```
/// use tsumugi_ult::sync::OnceCell;
///
/// let cell = OnceCell::new();
/// assert_eq!(*cell.get_or_init(|| 5), 5);
/// assert_eq!(*cell.get_or_init(|| 6), 5);
/// assert_eq!(cell.set(7), Err(7));
/// ```
pub struct OnceCell<T> {
    once: Once,
    value: UnsafeCell<Option<T>>,
}

/// The right to run: gives the turn on if it is dropped before it is done.
struct Turn<'a>(&'a Once);

// SAFETY: the value is written by the one whose turn it is, and shared after.
unsafe impl<T: Send> Send for OnceCell<T> {}
// SAFETY: the same; any thread may be the one that makes it.
unsafe impl<T: Send + Sync> Sync for OnceCell<T> {}

impl Once {
    /// Not done yet.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(NEW), queue: Lock::new(Queue::new()) }
    }

    /// Not done yet.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self { word: AtomicU32::new(NEW), queue: Lock::new(Queue::new()) }
    }

    /// Runs `f` unless somebody has; waits for whoever is about to. Calling
    /// it from `f` sleeps for ever.
    pub fn call(&self, f: impl FnOnce()) {
        // Without a limit nothing interrupts.
        let _ = self.call_within(Limit::NONE, f);
    }

    /// As [`call`](Self::call), but waits within a limit.
    ///
    /// # Errors
    ///
    /// [`Interrupted`]: it may not be done yet.
    pub fn call_within(
        &self,
        limit: impl Into<Limit>,
        f: impl FnOnce(),
    ) -> Result<(), Interrupted> {
        if let Some(turn) = self.turn(limit.into())? {
            f();
            turn.done();
        }
        Ok(())
    }

    /// Whether it is done.
    #[inline]
    pub fn is_done(&self) -> bool {
        // Acquire: pairs with `done`.
        self.word.load(Ordering::Acquire) == DONE
    }

    /// The right to run, or `None`: it is done.
    fn turn(&self, limit: Limit) -> Result<Option<Turn<'_>>, Interrupted> {
        loop {
            // Acquire: pairs with `done`.
            match self.word.compare_exchange(NEW, RUNNING, Ordering::Relaxed, Ordering::Acquire) {
                Ok(_) => return Ok(Some(Turn(self))),
                Err(DONE) => return Ok(None),
                Err(_) => queue::wait(
                    self,
                    &self.queue,
                    Reason { what: "once", at: self as *const Self as u64, wanted: 0 },
                    limit,
                    |node| node,
                    |queue| queue,
                    // Whoever ends a turn takes the queue after.
                    |_| self.word.load(Ordering::Relaxed) == RUNNING,
                )?,
            }
        }
    }

    fn end(&self, word: u32) {
        // Release: what the turn did is seen by those who find it done.
        self.word.store(word, Ordering::Release);
        if word == DONE {
            queue::wake_each(&self.queue, Queue::pop);
        } else {
            queue::tell(self.queue.with(Queue::pop));
        }
    }
}

impl Place for Once {
    unsafe fn take_out(&self, node: *mut Node) -> bool {
        // SAFETY: the caller's.
        unsafe { queue::take_out(&self.queue, node, |queue| queue, |_| {}) }
    }

    unsafe fn pass_on(&self, _: *mut Node, waited: bool) {
        // It was to try next. The one that is told looks for itself.
        if !waited {
            queue::tell(self.queue.with(Queue::pop));
        }
    }
}

impl Turn<'_> {
    fn done(self) {
        self.0.end(DONE);
        core::mem::forget(self);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.end(NEW);
    }
}

impl<T> OnceCell<T> {
    /// An empty cell.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self { once: Once::new(), value: UnsafeCell::new(None) }
    }

    /// An empty cell.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self { once: Once::new(), value: UnsafeCell::new(None) }
    }

    /// The value, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if !self.once.is_done() {
            return None;
        }
        // SAFETY: done: nobody writes any more.
        self.value.with(|value| unsafe { (*value).as_ref() })
    }

    /// The value; made by `f` if it is not there, waited for if somebody is
    /// making it.
    pub fn get_or_init(&self, f: impl FnOnce() -> T) -> &T {
        match self.get_or_try_init(|| Ok::<T, Infallible>(f())) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// As [`get_or_init`](Self::get_or_init), but `f` may fail; then the next
    /// caller tries.
    ///
    /// # Errors
    ///
    /// What `f` answered.
    pub fn get_or_try_init<E>(&self, f: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        // Without a limit nothing interrupts.
        if let Ok(Some(turn)) = self.once.turn(Limit::NONE) {
            let made = f()?;
            // SAFETY: it is our turn, and nobody reads before it is done.
            self.value.with_mut(|value| unsafe { *value = Some(made) });
            turn.done();
        }
        Ok(self.get().expect("done"))
    }

    /// Fills the cell.
    ///
    /// # Errors
    ///
    /// The value, if there was one, or one was being made.
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("called once"));
        value.map_or(Ok(()), Err)
    }

    /// Takes the value out.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_done() { "Once(done)" } else { "Once" })
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceCell").field(&self.get()).finish()
    }
}

const NEW: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;
