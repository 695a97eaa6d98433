//! Ending sleeps early: when a limit passes, and when somebody cancels.
//!
//! A sleeper that may be interrupted leaves an [`Alarm`] on its stack: a timer
//! in the scheduler's heap, and its [`Race`] in its task for whoever cancels.
//! Both are reached under one lock only, and a sleeper takes its alarm back
//! under that lock before it returns, so nobody ever interrupts a race that is
//! gone.
//!
//! # Who watches the clock
//!
//! A worker that runs ULTs looks at its fair turns, one that searches at each
//! round. Of those that sleep one is the keeper: it sleeps until the earliest
//! deadline, and the others until they are rung. There are no wake-ups in
//! between. The keeper's word and the earliest deadline form the usual pair:
//!
//! ```text
//!   who goes to sleep               who arms the earliest timer
//!   asleep := me, keeper := me      next := deadline
//!   fence                           fence
//!   limit from next                 ring the keeper; if there is none, and I
//!                                   have other ULTs to run, ring any sleeper
//! ```
//!
//! An armer that has nothing else to run becomes a searcher and then a sleeper
//! itself, and a searcher that leaves for work sees to it that somebody keeps.

use super::shared::Shared;
use crate::futex::SystemFutex;
use crate::lock::Lock;
use crate::task::Task;
use crate::timer::{Timer, Timers};
use core::ptr;
use tsumugi_core::sync::{AtomicU64, AtomicUsize, Ordering, fence, mutant};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::{Interrupted, Race, Waker};

/// What may interrupt one sleep of a ULT, on its stack.
pub(crate) struct Alarm {
    timer: Timer,
    task: *const Task,
    race: *const Race,
    timed: bool,
    cancellable: bool,
}

/// All alarms of a scheduler.
pub(super) struct Alarms {
    timers: Lock<Timers>,
    /// The earliest deadline; [`NEVER`] if there is none.
    next: AtomicU64,
    /// The worker that sleeps until then, plus one; 0 for none.
    keeper: AtomicUsize,
}

impl Alarm {
    /// An alarm for the sleep `race` of `task`, not armed.
    pub(crate) fn new(
        race: &Race,
        task: &Task,
        deadline: Option<Instant>,
        cancellable: bool,
    ) -> Self {
        let timer = Timer::new(deadline.unwrap_or_default(), race);
        Self { timer, task, race, timed: deadline.is_some(), cancellable }
    }
}

impl Alarms {
    pub(super) fn new() -> Self {
        Self {
            timers: Lock::new(Timers::new()),
            next: AtomicU64::new(NEVER),
            keeper: AtomicUsize::new(0),
        }
    }

    /// The earliest deadline.
    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        let next = self.next.load(Ordering::Relaxed);
        (next != NEVER).then_some(Instant::from_ns(next))
    }

    /// Makes `worker` the keeper, if there is something to keep and no other.
    /// Answers until when to sleep. After the worker's bell is prepared.
    pub(super) fn keep(&self, worker: usize) -> Option<Instant> {
        self.next()?;
        // SeqCst: before the look at `next`, see the module.
        self.keeper
            .compare_exchange(0, worker + 1, Ordering::SeqCst, Ordering::Relaxed)
            .ok()
            .map(|_| fence(Ordering::SeqCst))?;
        let next = self.next();
        if next.is_none() {
            self.unkeep();
        }
        next
    }

    /// The keeper is awake.
    pub(super) fn unkeep(&self) {
        self.keeper.store(0, Ordering::SeqCst);
    }

    fn keeper(&self) -> Option<usize> {
        self.keeper.load(Ordering::SeqCst).checked_sub(1)
    }
}

impl Shared {
    /// Arms an alarm; `busy` says whether this thread has other ULTs to run.
    /// Before the sleep begins.
    ///
    /// # Safety
    ///
    /// The alarm, its race and its task stay until it is disarmed.
    pub(crate) unsafe fn arm(&self, alarm: *mut Alarm, busy: bool) {
        let earliest = self.alarms.timers.with(|timers| {
            // SAFETY: the caller's; under the lock.
            unsafe {
                if (*alarm).cancellable {
                    let task = &*(*alarm).task;
                    task.set_sleeper((*alarm).race);
                    if task.is_cancelled() && !mutant("cancel_no_mark") {
                        // Not asleep yet: there is no waker to use.
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
            // SeqCst: `next` is written before we look for a keeper.
            fence(Ordering::SeqCst);
            self.find_keeper(busy);
        }
    }

    /// Takes an alarm back.
    ///
    /// # Safety
    ///
    /// It was armed here.
    pub(crate) unsafe fn disarm(&self, alarm: *mut Alarm) {
        self.alarms.timers.with(|timers| {
            // SAFETY: the caller's; under the lock.
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

    /// Interrupts the sleeps whose limit has passed; whether there were any.
    pub(crate) fn fire(&self, now: Instant) -> bool {
        let mut fired = false;
        while self.alarms.next().is_some_and(|next| next <= now) {
            let mut wakers: [Option<Waker>; BATCH] = [const { None }; BATCH];
            let any = self.alarms.timers.with(|timers| {
                let before = timers.count();
                for waker in &mut wakers {
                    let Some(timer) = timers.expire(now) else { break };
                    // SAFETY: an armed timer's race is there.
                    *waker = unsafe { (*(*timer).race).interrupt(Interrupted::TimedOut) };
                }
                self.note_gone(before, timers);
                timers.count() < before
            });
            // Outside of the lock: wakes may ring. The last first: a worker
            // runs the youngest of its deque first, so the earliest will be.
            wakers.into_iter().rev().flatten().for_each(Waker::wake);
            fired |= any;
        }
        fired
    }

    /// Asks a ULT to give up; interrupts its sleep if it may be.
    pub(crate) fn cancel(&self, task: &Task) {
        let waker = self.alarms.timers.with(|_| {
            task.set_cancelled();
            // SAFETY: under the lock; a race that is set is there.
            unsafe { task.sleeper().as_ref() }?.interrupt(Interrupted::Cancelled)
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Sees to it that some worker knows of the earliest deadline, after a
    /// change or before this one turns to a ULT.
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

    /// A searcher leaves for work: whoever sleeps on must know the time.
    #[inline]
    pub(super) fn hand_clock_on(&self) {
        if self.alarms.next().is_some() && self.alarms.keeper().is_none() {
            self.find_keeper(true);
        }
    }

    /// How many ULTs sleep with a time limit.
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
        // Relaxed: the fences in `arm` and `keep` order it.
        self.alarms.next.store(next, Ordering::Relaxed);
    }
}

const NEVER: u64 = u64::MAX;
const BATCH: usize = 16;
