//! The waiter of an operation: a callback, a sleeping thread or a task.

use super::callback::{Callback, RunOwned};
use crate::wait::Waker;

/// What waits for the end of the operation.
pub(super) enum SlotWaiter {
    Nobody,
    Callback(Callback),
    /// The callback lies in the slot's buffer; this function calls it.
    Owned(RunOwned),
    Sleeper(Waker),
    Task(core::task::Waker),
}

impl SlotWaiter {
    #[inline(always)]
    pub(super) fn wake(self) {
        match self {
            Self::Nobody => {}
            Self::Sleeper(waker) => waker.wake(),
            Self::Task(waker) => wake_task(waker),
            Self::Callback(_) | Self::Owned(_) => {
                unreachable!("a callback is in a slot with a ticket")
            }
        }
    }
}

/// Wakes a task. The thread that completes an operation usually belongs to
/// another part of the program than the task's executor, so a panic of the waker
/// does not leave this function.
#[cfg(feature = "unwind")]
#[inline(never)]
fn wake_task(waker: core::task::Waker) {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        use std::io::Write as _;
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or(panic.downcast_ref::<std::string::String>().map(|text| &**text));
        let text = text.unwrap_or("the panic value is not text");
        let line = std::format!("tsumugi: the waker of a future panicked: {text}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
        // The value that was thrown may panic again when it is dropped.
        core::mem::forget(panic);
    }
}

#[cfg(not(feature = "unwind"))]
#[inline(never)]
fn wake_task(waker: core::task::Waker) {
    waker.wake();
}
