//! Ending sleeps early: when a time limit passes, and when a ULT is cancelled.
//!
//! A sleeper that may be interrupted leaves an [`Alarm`] on its stack. The alarm
//! puts a timer into the scheduler's heap, and stores the sleep's
//! [`Race`](tsumugi_core::wait::Race) in the task, where a cancellation finds it. Both are accessed under one lock only. A
//! sleeper takes its alarm back under that lock before the sleep returns, so no
//! thread interrupts a race that is gone.
//!
//! # Which worker watches the clock
//!
//! A worker that runs ULTs looks at the clock at its fair turns, and a worker
//! that searches looks at it in each round. One of the sleeping workers is the
//! keeper: it sleeps until the earliest deadline, and the other ones sleep until
//! their bells (doorbells) ring. There are no wake-ups in between. The keeper's
//! word and the earliest deadline form a Dekker pattern:
//!
//! ```text
//!   a worker that goes to sleep     a thread that arms the earliest timer
//!   asleep := me, keeper := me      next := deadline
//!   fence                           fence
//!   limit from next                 ring the keeper; if there is none, and I
//!                                   have other ULTs to run, ring any sleeper
//! ```
//!
//! A worker that arms a timer and has nothing else to run becomes a searcher, and
//! then a sleeper, itself. A searcher that leaves with a ULT to run ensures that
//! there is a keeper.

use super::alarms::{Alarm, NEVER};
use super::shared::SchedulerShared;
use crate::futex::SystemFutex;
use crate::task::Task;
use crate::timer::Timers;
use core::ptr;
use tsumugi_core::mutate;
use tsumugi_core::sync::{Ordering, fence};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::{Interrupted, Waker};

impl SchedulerShared {
    /// Arms an alarm. `busy` tells whether this thread has other ULTs to run. The
    /// sleep has not begun yet.
    ///
    /// # Safety
    ///
    /// The alarm, its race and its task stay where they are until the alarm is
    /// disarmed.
    pub(crate) unsafe fn arm(&self, alarm: *mut Alarm, busy: bool) {
        let earliest = self.alarms.timers.with(|timers| {
            // SAFETY: by the caller's contract the alarm, its race and its task
            // are there, and they are accessed under the lock.
            unsafe {
                if (*alarm).cancellable {
                    let task = &*(*alarm).task;
                    task.set_sleeper((*alarm).race);
                    if mutate!("cancel_no_mark": task.is_cancelled() => false) {
                        // The ULT is not asleep yet: there is no waker to use.
                        let _ = (*(*alarm).race).interrupt(Interrupted::Cancelled);
                    }
                }
                if !(*alarm).timed {
                    return false;
                }
                let before = timers.next();
                timers.arm(&raw mut (*alarm).timer);
                self.note_next(timers);
                if timers.count() == 1 {
                    self.progress.on_timers(true);
                }
                before != timers.next()
            }
        });
        if earliest {
            // SeqCst: `next` is written before the load of the keeper.
            fence(Ordering::SeqCst);
            self.find_keeper(busy);
        }
    }

    /// Disarms an alarm.
    ///
    /// # Safety
    ///
    /// The alarm was armed on this scheduler.
    pub(crate) unsafe fn disarm(&self, alarm: *mut Alarm) {
        self.alarms.timers.with(|timers| {
            // SAFETY: by the contract of `arm` the alarm and its task are there
            // until now; they are accessed under the lock.
            unsafe {
                if (*alarm).cancellable {
                    (*(*alarm).task).set_sleeper(ptr::null());
                }
                if (*alarm).timed {
                    let before = timers.count();
                    timers.disarm(&raw mut (*alarm).timer);
                    self.note_gone(before, timers);
                }
            }
        });
    }

    /// Interrupts the sleeps with a limit that has passed. Returns whether there
    /// were any.
    pub(crate) fn fire(&self, now: Instant) -> bool {
        let mut fired = false;
        while self.alarms.next().is_some_and(|next| next <= now) {
            let mut wakers: [Option<Waker>; BATCH] = [const { None }; BATCH];
            let any = self.alarms.timers.with(|timers| {
                let before = timers.count();
                for waker in &mut wakers {
                    let Some(timer) = timers.expire(now) else { break };
                    // SAFETY: the race of an armed timer is there, because its sleep
                    // has not returned: it disarms the timer first, under this lock.
                    *waker = unsafe { (*(*timer).race).interrupt(Interrupted::TimedOut) };
                }
                self.note_gone(before, timers);
                timers.count() < before
            });
            // The wakes are outside of the lock, because they may ring. The
            // latest deadline is first: a worker runs the youngest ULT of its
            // deque first, which then is the one with the earliest deadline.
            wakers.into_iter().rev().flatten().for_each(Waker::wake);
            fired |= any;
        }
        fired
    }

    /// Cancels a ULT: marks it, and interrupts its sleep if that may be interrupted.
    pub(crate) fn cancel(&self, task: &Task) {
        let waker = self.alarms.timers.with(|_| {
            task.set_cancelled();
            // SAFETY: under the lock. A race that is set is there, because its
            // sleep unsets it under this lock before it returns.
            unsafe { task.sleeper().as_ref() }?.interrupt(Interrupted::Cancelled)
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ensures that some worker knows the earliest deadline. Called after a
    /// change of the deadline, or before this worker turns to a ULT.
    #[cold]
    pub(super) fn find_keeper(&self, busy: bool) {
        match self.alarms.keeper() {
            Some(keeper) => {
                self.bells.ring_one(keeper, &SystemFutex);
            }
            None if busy => {
                self.bells.ring(&SystemFutex);
            }
            None => {}
        }
    }

    /// Called when a searcher leaves with a ULT to run. A worker that sleeps on
    /// must know the earliest deadline.
    #[inline]
    pub(super) fn hand_clock_on(&self) {
        if self.alarms.next().is_some() && self.alarms.keeper().is_none() {
            self.find_keeper(true);
        }
    }

    /// Returns how many ULTs sleep with a time limit.
    pub(crate) fn timers(&self) -> usize {
        self.alarms.timers.with(|timers| timers.count())
    }

    fn note_gone(&self, before: usize, timers: &Timers) {
        self.note_next(timers);
        if before > 0 && timers.count() == 0 {
            self.progress.on_timers(false);
        }
    }

    fn note_next(&self, timers: &Timers) {
        let next = timers.next().map_or(NEVER, Instant::as_ns);
        // Relaxed: the fences in `arm` and `keep` order this store.
        self.alarms.next.store(next, Ordering::Relaxed);
    }
}

const BATCH: usize = 16;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
