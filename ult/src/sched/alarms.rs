//! The alarms of a scheduler: timers under a lock, the earliest deadline, and the keeper.

use crate::lock::Lock;
use crate::task::Task;
use crate::timer::{Timer, Timers};
use tsumugi_core::sync::{AtomicU64, AtomicUsize, Ordering, fence};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::Race;

/// What may interrupt one sleep of a ULT. It lies on the ULT's stack.
pub(crate) struct Alarm {
    pub(super) timer: Timer,
    pub(super) task: *const Task,
    pub(super) race: *const Race,
    pub(super) timed: bool,
    pub(super) cancellable: bool,
}

/// All alarms of a scheduler.
pub(super) struct Alarms {
    pub(super) timers: Lock<Timers>,
    /// The earliest deadline; [`NEVER`] if there is none.
    pub(super) next: AtomicU64,
    /// The worker that sleeps until the earliest deadline, plus one; 0 for none.
    keeper: AtomicUsize,
}

impl Alarm {
    /// Makes an alarm for the sleep `race` of `task`. It is not armed yet.
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

    /// Returns the earliest deadline.
    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        let next = self.next.load(Ordering::Relaxed);
        (next != NEVER).then_some(Instant::from_ns(next))
    }

    /// Makes `worker` the keeper, if there is a deadline and no other keeper.
    /// Returns the time until which the worker is to sleep. The worker must have
    /// prepared its bell before.
    pub(super) fn keep(&self, worker: usize) -> Option<Instant> {
        self.next()?;
        // SeqCst: this write comes before the load of `next`, see the module.
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

    /// Ends the keeper's role: it is awake.
    pub(super) fn unkeep(&self) {
        self.keeper.store(0, Ordering::SeqCst);
    }

    pub(super) fn keeper(&self) -> Option<usize> {
        self.keeper.load(Ordering::SeqCst).checked_sub(1)
    }
}

pub(super) const NEVER: u64 = u64::MAX;
