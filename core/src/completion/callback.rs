//! What is called when an operation has ended: a function, or a value in the slot.

use crate::mem::AddrError;

/// A value that is called when an operation has ended. It lies in the operation's slot
/// until then, so no memory is allocated for it: it owns the buffer of the operation, if
/// there is one, and has at most [`BUFFER_BYTES`](super::BUFFER_BYTES) bytes.
pub trait OnEnd: Send + 'static {
    /// Called once, on the thread that ends the operation, after the tag was freed. That
    /// thread polls for other operations, too, so the call must not block.
    fn ended(self, result: Result<u64, AddrError>);
}

/// Calls the value of one type whose bytes lie at the pointer.
pub(super) type RunOwned = unsafe fn(*mut (), Result<u64, AddrError>);

/// Calls the `C` at `at`.
///
/// # Safety
///
/// `at` points to a `C`, which is not used afterwards.
pub(super) unsafe fn run_owned<C: OnEnd>(at: *mut (), result: Result<u64, AddrError>) {
    // SAFETY: the caller's promise.
    let callback = unsafe { at.cast::<C>().read() };
    callback.ended(result);
}

/// A function, and the argument that it gets when an operation has ended.
#[derive(Clone, Copy, Debug)]
pub struct Callback {
    run: fn(*mut (), Result<u64, AddrError>),
    data: *mut (),
}

impl Callback {
    /// Makes a callback that calls `run(data, result)` once, when the operation
    /// has ended.
    ///
    /// # Safety
    ///
    /// The call must be sound on any thread, until it was made or retracted. It
    /// runs on the thread that polls, so it must not block.
    pub const unsafe fn new(run: fn(*mut (), Result<u64, AddrError>), data: *mut ()) -> Self {
        Self { run, data }
    }

    /// Calls the function with `result`.
    #[inline]
    pub(crate) fn call(self, result: Result<u64, AddrError>) {
        (self.run)(self.data, result);
    }
}

// SAFETY: `new` demands that the call be sound on any thread.
unsafe impl Send for Callback {}
