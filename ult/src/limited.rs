//! Sleeping and parking within a limit.
//!
//! ```text
//!   on a ULT: an alarm of the scheduler   ──┐
//!   on an OS thread: the futex's own limit ─┤
//!   in a foreign task: the park's limit   ──┴─► interrupts the race
//!   the event: the race's waker ──────────────► wakes it
//! ```
//!
//! Progress: everything here blocks.

#[cfg(all(feature = "std", not(tsumugi_loom)))]
use crate::foreign;
#[cfg(feature = "std")]
use crate::host::Instant;
use crate::limit::Limit;
use crate::park::{Here, own_parker, sleep_os, staked, ult};
use crate::sched::Alarm;
use crate::sched::current;
use crate::sched::shared::Shared;
use crate::stake::{Place, Stake};
use crate::token::ParkWord;
use core::time::Duration;
use tsumugi_core::wait::{Interrupted, Race, Reason, Wait, WaitFor, Waker};

impl Here {
    /// As [`sleep`](Wait::sleep), within a limit. `withdraw` takes back what
    /// `commit` published and answers whether it was still there; if it was
    /// not, the event has won and its wake is waited for. It runs on the
    /// caller's stack and must not block.
    ///
    /// # Errors
    ///
    /// [`Interrupted`]: nothing is published any more.
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
            // SAFETY: the caller's.
            unsafe { self.sleep(reason, commit) };
            return Ok(());
        }
        // SAFETY: the caller's.
        unsafe { self.sleep_limited(reason, limit, commit, withdraw) }
    }

    /// As [`sleep_within`](Self::sleep_within), of one who may be handed
    /// something: `stake` is for the end of the scheduler.
    ///
    /// # Safety
    ///
    /// As there; the stake is on this stack, and may be used as long as this
    /// sleeps.
    #[inline(always)]
    pub(crate) unsafe fn sleep_staked(
        &self,
        reason: Reason,
        limit: Limit,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
        stake: *mut Stake,
    ) -> Result<(), Interrupted> {
        // SAFETY: the caller's.
        unsafe { staked(stake, || self.sleep_within(reason, limit, commit, withdraw)) }
    }

    /// Runs `body`. If the end of its scheduler cuts the caller off in it, wherever
    /// it was suspended, `leave` runs: on another thread, when no worker is left, and
    /// nobody else does anything in the caller's name. Such calls may be inside of
    /// one another: the inner one leaves first.
    ///
    /// # Safety
    ///
    /// `leave` neither suspends nor panics, and may be called on any thread as long as
    /// `body` is suspended.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn or_leave<T>(&self, leave: &mut dyn FnMut(), body: impl FnOnce() -> T) -> T {
        let mut place = Place::new(leave);
        // SAFETY: the caller's; the place begins with its stake.
        unsafe { staked((&raw mut place).cast(), body) }
    }

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
                // Nobody cancels what is no ULT. SAFETY: the caller's.
                unsafe { self.sleep(reason, commit) };
                return Ok(());
            };
            // SAFETY: the caller's.
            return unsafe { caller.sleep_until(reason, until, commit, withdraw) };
        }
        let race = Race::new();
        let mut kept = true;
        // What ends the sleep finds the race, not the sleeper: the sleeper
        // itself is only asleep, and so only woken, once this is done.
        let mut publish = || {
            // SAFETY: the race stays until the event's wake, or until what was
            // published is withdrawn.
            kept = commit(unsafe { race.waker() });
            kept
        };
        match ult() {
            Some(slot) => {
                // SAFETY: the running ULT, and a running ULT's home.
                let (task, home) = unsafe {
                    let task = slot.as_ref();
                    (task, &*task.home().cast::<Shared>())
                };
                let deadline = limit.deadline().map(|until| home.at(until));
                let mut alarm = Alarm::new(&race, task, deadline, limit.is_cancellable());
                let alarm = &raw mut alarm;
                let mut arm = |waker| {
                    if !publish() {
                        return false;
                    }
                    // SAFETY: this thread's worker, which commits.
                    let busy = current::worker().is_some_and(|w| unsafe { w.as_ref() }.is_busy());
                    // SAFETY: all three stay until it is disarmed, below.
                    unsafe { home.arm(alarm, busy) };
                    // SAFETY: for the sleeper, that we are.
                    unsafe { race.fall_asleep(waker) }
                };
                // SAFETY: the race uses the waker once.
                unsafe { self.sleep(reason, &mut arm) };
                if kept {
                    // SAFETY: armed above.
                    unsafe { home.disarm(alarm) };
                }
            }
            None => {
                // SAFETY: for the sleeper, that we are.
                let mut begin = |waker| publish() && unsafe { race.fall_asleep(waker) };
                // SAFETY: the race uses the waker once.
                unsafe { sleep_os(&mut begin, limit.deadline().map(|until| (until, &race))) };
            }
        }
        if !kept {
            return Ok(());
        }
        // SAFETY: the same.
        unsafe { race.settle(withdraw, |commit| self.sleep(reason, commit)) }
    }
}

// SAFETY: see `Wait`; `sleep_within` does what `sleep_for` asks.
unsafe impl WaitFor for Here {
    unsafe fn sleep_for(
        &self,
        reason: Reason,
        limit: Duration,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        // SAFETY: the caller's.
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
        // SAFETY: the caller's.
        unsafe { self.or_leave(leave, || self.sleep_within(reason, limit, commit, withdraw)) }
    }
}

/// Sleeps for `duration`, and leaves the worker to others.
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// use std::time::{Duration, Instant};
///
/// # let config = Config { main_stack_bytes: 256 << 10, ..Config::new(StackArea::map(1 << 20)?) };
/// Scheduler::new(config)?.run(|| {
///     let start = Instant::now();
///     tsumugi_ult::sleep(Duration::from_millis(2));
///     assert!(start.elapsed() >= Duration::from_millis(2));
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sleep(duration: Duration) {
    // A sleep always ends by being interrupted.
    let _ = sleep_within(duration);
}

/// Sleeps until `deadline`.
#[cfg(feature = "std")]
pub fn sleep_until(deadline: Instant) {
    // As in `sleep`.
    let _ = sleep_within(deadline);
}

/// Sleeps until `limit` ends it, and says how: with [`Limit::NONE`], for ever.
pub fn sleep_within(limit: impl Into<Limit>) -> Interrupted {
    let (limit, reason) = (limit.into(), Reason::new("sleep"));
    loop {
        // SAFETY: nobody has the waker but the alarm.
        let outcome = unsafe { Here.sleep_within(reason, limit, &mut |_| true, &mut || true) };
        if let Err(why) = outcome {
            return why;
        }
    }
}

/// As [`park`](crate::park()), but a [`Limit`] may end it: it returns without a
/// token then.
///
/// # Errors
///
/// [`Interrupted`].
pub fn park_within(limit: impl Into<Limit>) -> Result<(), Interrupted> {
    match ult() {
        Some(slot) => {
            // SAFETY: the running ULT.
            let task = unsafe { slot.as_ref() };
            let keep = |waker| {
                // SAFETY: a ULT that leaves is on a stack, until it is back.
                let head = unsafe { task.head().expect("a ULT that parks is on a stack") };
                // SAFETY: nobody reads it before the park has begun, and the
                // ULT's own park word says that it has not.
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

/// As [`park_within`]; whether a token came in time.
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
    // SAFETY: whoever ends the park takes the waker out, unless we have.
    let outcome =
        unsafe { Here.sleep_within(reason, limit, &mut begin, &mut || word.end_limited()) };
    if outcome.is_ok() {
        // The token that woke us.
        word.take_after_all();
    }
    outcome
}
