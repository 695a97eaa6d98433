//! Sleeping and parking within a limit.
//!
//! ```text
//!   on a ULT: an alarm of the scheduler   ──┐
//!   on an OS thread: the futex's own limit ─┤
//!   in a foreign task: the park's limit   ──┴─► interrupts the race
//!   the event: the race's waker ──────────────► wakes it
//! ```
//!
//! Progress: all calls here block.

use crate::cleanup::{CallCleanup, CleanupRecord};
#[cfg(all(feature = "std", not(tsumugi_loom)))]
use crate::foreign;
#[cfg(feature = "std")]
use crate::host::Instant;
use crate::limit::Limit;
use crate::park::{Here, own_parker, sleep_os, ult, with_cleanup};
use crate::sched::Alarm;
use crate::sched::current;
use crate::sched::shared::SchedulerShared;
use crate::token::ParkWord;
use core::time::Duration;
use tsumugi_core::wait::{Interrupted, Race, Reason, Wait, WaitFor, Waker};

impl Here {
    /// As [`sleep`](Wait::sleep), within a limit. `withdraw` takes back what `commit`
    /// published and returns whether it was still there. If it was not, the event has
    /// won, and this call waits for the event's wake. `withdraw` runs on the caller's
    /// stack and must not block.
    ///
    /// # Errors
    ///
    /// [`Interrupted::TimedOut`] if the limit's point in time came before the event,
    /// [`Interrupted::Cancelled`] if a cancellation of the ULT did. Nothing is published any
    /// more then.
    ///
    /// # Safety
    ///
    /// As for [`WaitFor::sleep_for`].
    #[inline(always)]
    pub unsafe fn sleep_within(
        &self,
        reason: Reason,
        limit: Limit,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        if limit.is_none() {
            // SAFETY: the caller keeps the contract of [`Wait::sleep`].
            unsafe { self.sleep(reason, commit) };
            return Ok(());
        }
        // SAFETY: the caller keeps the contract of [`WaitFor::sleep_for`].
        unsafe { self.sleep_limited(reason, limit, commit, withdraw) }
    }

    /// As [`sleep_within`](Self::sleep_within), for a sleeper that may be handed
    /// something: the end of the scheduler uses `cleanup`.
    ///
    /// # Safety
    ///
    /// As for [`sleep_within`](Self::sleep_within). The cleanup record is on this
    /// stack, and may be used as long as this sleeps.
    #[inline(always)]
    pub(crate) unsafe fn sleep_with_cleanup(
        &self,
        reason: Reason,
        limit: Limit,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
        cleanup: *mut CleanupRecord,
    ) -> Result<(), Interrupted> {
        // SAFETY: the caller keeps both contracts: that of the sleep, and that of the
        // cleanup record.
        unsafe { with_cleanup(cleanup, || self.sleep_within(reason, limit, commit, withdraw)) }
    }

    /// Runs `body`. If the end of its scheduler cuts the caller off in `body`,
    /// wherever it was suspended, `leave` runs on another thread, when no worker is
    /// left and no other code acts for the caller. Such calls may be nested: the
    /// inner one leaves first.
    ///
    /// # Safety
    ///
    /// `leave` neither suspends nor panics, and may be called on any thread as long
    /// as `body` is suspended.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn or_leave<T>(&self, leave: &mut dyn FnMut(), body: impl FnOnce() -> T) -> T {
        let mut place = CallCleanup::new(leave);
        // SAFETY: the caller promises that `leave` may be called; the place begins with
        // its cleanup record.
        unsafe { with_cleanup((&raw mut place).cast(), body) }
    }

    /// Sleeps with a limit that may end the sleep.
    ///
    /// # Safety
    ///
    /// As for [`sleep_within`](Self::sleep_within).
    #[inline(never)]
    unsafe fn sleep_limited(
        &self,
        reason: Reason,
        limit: Limit,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        current::assert_may_block(reason.what);
        #[cfg(all(feature = "std", not(tsumugi_loom)))]
        if let Some(caller) = ult().is_none().then(foreign::caller).flatten() {
            let Some(until) = limit.deadline() else {
                // A foreign task or an OS thread is never cancelled. SAFETY: the
                // caller keeps the contract of the sleep.
                unsafe { self.sleep(reason, commit) };
                return Ok(());
            };
            // SAFETY: the caller keeps the contract of [`WaitFor::sleep_for`].
            return unsafe { caller.sleep_until(reason, until, commit, withdraw) };
        }
        let race = Race::new();
        let mut kept = true;
        // The event and the limit find the race, not the sleeper. The sleeper itself
        // falls asleep, and so can be woken, only after `publish` is done.
        let mut publish = || {
            // SAFETY: the race stays until the event's wake, or until `withdraw` has
            // taken back what `commit` published.
            kept = commit(unsafe { race.waker() });
            kept
        };
        match ult() {
            Some(slot) => {
                // SAFETY: the running ULT is alive, and so is its scheduler's shared
                // part.
                let (task, home) = unsafe {
                    let task = slot.as_ref();
                    (task, &*task.home().cast::<SchedulerShared>())
                };
                let deadline = limit.deadline().map(|until| home.at(until));
                let mut alarm = Alarm::new(&race, task, deadline, limit.is_cancellable());
                let alarm = &raw mut alarm;
                let mut arm = |waker| {
                    if !publish() {
                        return false;
                    }
                    // SAFETY: this thread's worker, which commits this sleep.
                    let busy = current::worker().is_some_and(|w| unsafe { w.as_ref() }.is_busy());
                    // SAFETY: the alarm, the race and the task stay until the alarm
                    // is disarmed below.
                    unsafe { home.arm(alarm, busy) };
                    // SAFETY: we are the race's sleeper.
                    unsafe { race.fall_asleep(waker) }
                };
                // SAFETY: the race uses the waker once.
                unsafe { self.sleep(reason, &mut arm) };
                if kept {
                    // SAFETY: the alarm was armed above.
                    unsafe { home.disarm(alarm) };
                }
            }
            None => {
                // SAFETY: we are the race's sleeper.
                let mut begin = |waker| publish() && unsafe { race.fall_asleep(waker) };
                // SAFETY: the race uses the waker once.
                unsafe {
                    sleep_os(reason, &mut begin, limit.deadline().map(|until| (until, &race)))
                };
            }
        }
        if !kept {
            return Ok(());
        }
        // SAFETY: we are the race's sleeper, and `withdraw` is the event's.
        unsafe { race.settle(withdraw, |commit| self.sleep(reason, commit)) }
    }
}

// SAFETY: as for `Wait`; `sleep_within` does what `sleep_for` requires.
unsafe impl WaitFor for Here {
    unsafe fn sleep_for(
        &self,
        reason: Reason,
        limit: Duration,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        // SAFETY: the caller keeps the contract of `sleep_for`.
        unsafe { self.sleep_within(reason, Limit::after(limit), commit, withdraw) }
    }

    unsafe fn sleep_for_or_leave(
        &self,
        reason: Reason,
        limit: Duration,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
        leave: &mut dyn FnMut(),
    ) -> Result<(), Interrupted> {
        let limit = Limit::after(limit);
        // SAFETY: the caller keeps the contracts of the sleep and of `leave`.
        unsafe { self.or_leave(leave, || self.sleep_within(reason, limit, commit, withdraw)) }
    }
}

/// Sleeps for `duration`; the worker runs other ULTs meanwhile.
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// use std::time::{Duration, Instant};
///
/// # let config = Config::new(StackArea::map(1 << 20)?).main_stack_bytes(256 << 10);
/// Scheduler::new(config)?.run(|| {
///     let start = Instant::now();
///     tsumugi_ult::sleep(Duration::from_millis(2));
///     assert!(start.elapsed() >= Duration::from_millis(2));
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sleep(duration: Duration) {
    // A sleep always ends with an interruption, which is not an error here.
    let _ = sleep_within(duration);
}

/// Sleeps until `deadline`.
#[cfg(feature = "std")]
pub fn sleep_until(deadline: Instant) {
    // As in `sleep`.
    let _ = sleep_within(deadline);
}

/// Sleeps until `limit` ends the sleep, and returns how. With [`Limit::NONE`], for
/// ever.
pub fn sleep_within(limit: impl Into<Limit>) -> Interrupted {
    let (limit, reason) = (limit.into(), Reason::new("sleep"));
    loop {
        // SAFETY: only the alarm has the waker.
        let outcome = unsafe { Here.sleep_within(reason, limit, &mut |_| true, &mut || true) };
        if let Err(why) = outcome {
            return why;
        }
    }
}

/// As [`park`](crate::park()), but a [`Limit`] may end it; then it returns without a
/// token.
///
/// # Errors
///
/// [`Interrupted::TimedOut`] if the limit's point in time came before a token,
/// [`Interrupted::Cancelled`] if a cancellation of the ULT did.
pub fn park_within(limit: impl Into<Limit>) -> Result<(), Interrupted> {
    match ult() {
        Some(slot) => {
            // SAFETY: the running ULT is alive.
            let task = unsafe { slot.as_ref() };
            let keep = |waker| {
                // SAFETY: a ULT that is leaving is on its stack, until it is back.
                let head = unsafe { task.head().expect("a ULT that parks is on a stack") };
                // SAFETY: no other thread reads the waker before the park has begun,
                // and the ULT's own park word shows that it has not.
                head.park_waker.with_mut(|slot| unsafe { *slot = Some(waker) });
            };
            park_on_within(&task.park, limit.into(), keep)
        }
        None => {
            let parker = own_parker();
            // SAFETY: as above; a parker parks on its own thread only.
            let keep = |waker| parker.waker.with_mut(|slot| unsafe { *slot = Some(waker) });
            park_on_within(&parker.word, limit.into(), keep)
        }
    }
}

/// As [`park_within`], for `limit`; returns whether a token came in time.
pub fn park_timeout(limit: Duration) -> bool {
    park_within(limit).is_ok()
}

fn park_on_within(
    word: &ParkWord,
    limit: Limit,
    mut keep: impl FnMut(Waker),
) -> Result<(), Interrupted> {
    if word.take_after_all() {
        return Ok(());
    }
    let mut begin = |waker| {
        keep(waker);
        word.begin_limited()
    };
    let reason = Reason::new("park");
    // SAFETY: the thread that ends the park takes the waker out, unless `end_limited`
    // has ended it.
    let outcome =
        unsafe { Here.sleep_within(reason, limit, &mut begin, &mut || word.end_limited()) };
    if outcome.is_ok() {
        // Takes the token that ended the park.
        word.take_after_all();
    }
    outcome
}
