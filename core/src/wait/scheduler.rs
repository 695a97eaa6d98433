//! The schedulers of threads that can sleep.

use super::waker::{Reason, Waker};
use crate::stats::Counter;
use core::fmt;
use core::time::Duration;

/// A scheduler of threads that can sleep: of tsumugi's own ULTs, of OS threads, or
/// of the embedding program's threads.
///
/// # Safety
///
/// `sleep` must run `commit` exactly once, on another stack than the caller's, at a
/// time when a wake from any thread would be accepted. It must return only after the
/// waker was woken or `commit` returned false.
pub unsafe trait Wait: Sync {
    /// Puts the calling thread to sleep. `commit` publishes the waker and returns
    /// whether the thread stays asleep.
    ///
    /// As soon as the waker is published, the caller may run again and return.
    ///
    /// # Safety
    ///
    /// `commit` neither blocks nor panics, and touches no borrowed data after the
    /// waker is published. If it returns false, the waker is neither kept nor used;
    /// if it returns true, the waker is used at most once.
    unsafe fn sleep(&self, reason: Reason, commit: &mut dyn FnMut(Waker) -> bool);

    /// Lets other threads run.
    fn yield_now(&self);

    /// Like [`sleep`](Self::sleep), for a caller that holds a resource that other
    /// threads get if the caller gives it up: a place in a queue, a tag, a turn. If
    /// the scheduler ends while the caller sleeps, the scheduler runs `leave` once
    /// in the caller's place, and the caller never continues. A scheduler that never
    /// ends before its threads never runs `leave`; this default is for such
    /// schedulers.
    ///
    /// # Safety
    ///
    /// As for [`sleep`](Self::sleep). `leave` neither suspends nor panics, takes no
    /// lock that a suspended thread may hold, and may be called on any thread until
    /// this returns.
    unsafe fn sleep_or_leave(
        &self,
        reason: Reason,
        commit: &mut dyn FnMut(Waker) -> bool,
        leave: &mut dyn FnMut(),
    ) {
        let _ = leave;
        // SAFETY: the caller's.
        unsafe { self.sleep(reason, commit) }
    }

    /// Like [`yield_now`](Self::yield_now), for a caller that holds such a resource.
    ///
    /// # Safety
    ///
    /// The rules for `leave` in [`sleep_or_leave`](Self::sleep_or_leave).
    unsafe fn yield_or_leave(&self, leave: &mut dyn FnMut()) {
        let _ = leave;
        self.yield_now();
    }

    /// Counts an event of the caller, if the scheduler keeps such counts.
    fn count(&self, counter: Counter) {
        let _ = counter;
    }
}

/// Why a sleep ended without its event.
///
/// The enum is exhaustive: besides the event, only a limit and a cancellation end a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// The limit passed.
    TimedOut,
    /// The sleeper was cancelled.
    Cancelled,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the time limit has passed",
            Self::Cancelled => "the wait was cancelled",
        })
    }
}

impl core::error::Error for Interrupted {}

/// A scheduler of threads that can sleep with a limit.
///
/// # Safety
///
/// As for [`Wait`]. Also, `withdraw` runs on the sleeper's own stack, after an
/// interruption and before `sleep_for` returns. If it returns false, `sleep_for`
/// must not return before the waker was woken.
pub unsafe trait WaitFor: Wait {
    /// Like [`Wait::sleep`], for at most `limit`. `withdraw` takes back what
    /// `commit` published and returns whether it was still there; if it was not, the
    /// event has the waker and has won. So exactly one of the two counts: `Ok` means
    /// that the event came, `Err` that nothing is published any more.
    ///
    /// # Errors
    ///
    /// [`Interrupted::TimedOut`] if the limit passed before the event,
    /// [`Interrupted::Cancelled`] if the sleeper was cancelled before it.
    ///
    /// # Safety
    ///
    /// As for [`sleep`](Wait::sleep). `withdraw` neither blocks nor panics; if it
    /// returns true, the published waker is never used.
    unsafe fn sleep_for(
        &self,
        reason: Reason,
        limit: Duration,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted>;

    /// Like [`sleep_for`](Self::sleep_for), with `leave` as in
    /// [`Wait::sleep_or_leave`].
    ///
    /// # Errors
    ///
    /// Those of [`sleep_for`](Self::sleep_for).
    ///
    /// # Safety
    ///
    /// As for [`sleep_for`](Self::sleep_for) and [`Wait::sleep_or_leave`].
    unsafe fn sleep_for_or_leave(
        &self,
        reason: Reason,
        limit: Duration,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
        leave: &mut dyn FnMut(),
    ) -> Result<(), Interrupted> {
        let _ = leave;
        // SAFETY: the caller's.
        unsafe { self.sleep_for(reason, limit, commit, withdraw) }
    }
}

/// A source of threads for handlers that must block.
pub trait Spawn: Sync {
    /// Runs `run(data)` on a thread that may block. Returns false if there was no
    /// room; then nothing happened.
    ///
    /// # Safety
    ///
    /// `run(data)` must be sound on any thread.
    unsafe fn spawn_detached(&self, run: unsafe fn(*mut ()), data: *mut ()) -> bool;
}
