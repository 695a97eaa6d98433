//! The data of a worker, which lie on its OS thread's stack.

use super::yields::{self, Yields};
use crate::fences::Fences;
use crate::overflow::Origin;
use crate::pool::WorkerCache;
use crate::sched::shared::SchedulerShared;
use crate::sched::turn::WorkerTurn;
use crate::sched::worker_slot::WorkerSlot;
use crate::slab::{FreeSlot, TaskSlot};
use crate::stack::{ResumeLink, Stack};
use crate::task::Task;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::cell::{Cell, RefCell};
use core::ptr::{self, NonNull};
use tsumugi_core::sync::{Ordering, UnsafeCell, shown};
use tsumugi_core::time::Instant;

/// One worker. It lies on its OS thread's stack.
pub(crate) struct Worker {
    pub(super) shared: Arc<SchedulerShared>,
    /// The address of `shared`, to be compared with the home that ULTs store.
    pub(super) home: *const SchedulerShared,
    /// This worker's slot, in `shared`.
    pub(super) worker_slot: NonNull<WorkerSlot>,
    pub(super) index: usize,
    /// The worker's name as the owner of a `Bias`; 0 if fences cost as much as
    /// they save.
    pub(super) name: usize,
    /// Where the hub continues when a ULT leaves.
    pub(super) link: ResumeLink,
    /// The ULT to run next, before any queue; empty while a ULT runs, see `search`.
    pub(super) next: Cell<*mut Task>,
    /// Whether a ULT that is woken now becomes `next`: it joined the ULT that just
    /// ended.
    pub(super) handing_over: Cell<bool>,
    /// ULTs that stay on this worker, the oldest first.
    pub(super) own: RefCell<VecDeque<TaskSlot>>,
    /// How many ULTs `own` has: read at every switch.
    pub(super) own_count: Cell<usize>,
    /// How many reasons there are against a direct switch of the running ULT to
    /// another: other workers, ULTs that stay on this worker, joiners below it on
    /// their stacks.
    pub(super) switch_blockers: Cell<usize>,
    /// Whether there are other workers: one of the reasons.
    pub(super) is_one_of_several: bool,
    /// Whether this thread panicked when it was last given to a ULT.
    pub(super) panics: Cell<bool>,
    /// Whether the ULT to be resumed has had this OS thread since it left.
    pub(super) comes_back: Cell<bool>,
    /// Whether the ULTs in `own` are the next to have a turn, before those that
    /// yielded.
    pub(super) own_turn: Cell<bool>,
    pub(super) fair_turns: Cell<u32>,
    /// When the oldest of the own deque had its turn.
    pub(super) aged: Cell<Instant>,
    /// For each queue of each other worker, the lone ULT that was last seen in it.
    pub(super) lonely: Box<[[Cell<LoneUlt>; 2]]>,
    /// The time of the last fair turn or sleep: reading the clock takes as long
    /// as a switch.
    pub(super) now: Cell<Instant>,
    /// Rounds of the present search in which no other worker's queue was read.
    pub(super) looks: Cell<u32>,
    pub(super) yields: Yields,
    /// The worker with the public slot that was taken last.
    pub(super) asked: Cell<usize>,
    pub(super) random: Cell<u64>,
    pub(super) stacks: UnsafeCell<WorkerCache<Stack>>,
    pub(super) slots: UnsafeCell<WorkerCache<FreeSlot>>,
    /// The ULT on the stack of which a callback runs; else null. An atomic, because a
    /// signal handler on this thread reads it.
    stack_owner: shown::AtomicPtr<Task>,
}

/// The address of a lone ULT that was seen, and its stamp.
pub(super) type LoneUlt = (usize, u32);

impl Worker {
    /// What reports say about the program.
    pub(crate) fn origin(&self) -> Origin {
        self.shared.origin
    }

    pub(crate) fn new(shared: Arc<SchedulerShared>, index: usize) -> Self {
        let now = shared.now();
        Self {
            home: Arc::as_ptr(&shared),
            worker_slot: NonNull::from(&shared.worker_slots[index]),
            lonely: shared.worker_slots.iter().map(|_| Default::default()).collect(),
            name: if shared.fences == Fences::LIGHTEST {
                (&raw const shared.worker_slots[index]).addr()
            } else {
                0
            },
            index,
            link: ResumeLink::new(),
            next: Cell::new(ptr::null_mut()),
            handing_over: Cell::new(false),
            own: RefCell::new(VecDeque::new()),
            own_count: Cell::new(0),
            switch_blockers: Cell::new(usize::from(shared.worker_slots.len() > 1)),
            is_one_of_several: shared.worker_slots.len() > 1,
            panics: Cell::new(false),
            comes_back: Cell::new(false),
            own_turn: Cell::new(false),
            fair_turns: Cell::new(0),
            aged: Cell::new(now),
            now: Cell::new(now),
            looks: Cell::new(0),
            yields: Yields::new(yields::LONG),
            asked: Cell::new(usize::from(index == 0)),
            random: Cell::new(0x9e37_79b9_7f4a_7c15 ^ (index as u64 + 1)),
            stacks: UnsafeCell::new(WorkerCache::new()),
            slots: UnsafeCell::new(WorkerCache::new()),
            stack_owner: shown::AtomicPtr::new(ptr::null_mut()),
            shared,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<SchedulerShared> {
        &self.shared
    }

    #[inline(always)]
    pub(crate) fn home(&self) -> *const SchedulerShared {
        self.home
    }

    #[inline(always)]
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The worker's name as the owner of a `Bias`.
    #[inline(always)]
    pub(crate) fn name(&self) -> usize {
        self.name
    }

    /// The ULT that runs on this worker.
    #[inline(always)]
    pub(crate) fn current(&self) -> Option<TaskSlot> {
        NonNull::new(self.worker_slot().place.current.load(Ordering::Relaxed))
    }

    /// Sets the ULT that runs from here on, on the stack that runs now.
    #[inline(always)]
    pub(crate) fn set_current(&self, slot: TaskSlot) {
        self.worker_slot().place.current.store(slot.as_ptr(), Ordering::Relaxed);
    }

    /// Clears the current ULT: from here on no ULT runs on the present stack.
    /// Returns the ULT that did, the stack's [owner](Self::stack_owner).
    pub(in crate::sched) fn take_current(&self) -> Option<TaskSlot> {
        let before = self.current();
        if let Some(owner) = before {
            self.stack_owner.store(owner.as_ptr(), Ordering::Relaxed);
            self.worker_slot().place.current.store(ptr::null_mut(), Ordering::Relaxed);
        }
        before
    }

    /// Sets the ULT that `take_current` has returned, on the same stack, as the current
    /// one again.
    pub(in crate::sched) fn put_current_back(&self, slot: TaskSlot) {
        self.set_current(slot);
        self.stack_owner.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// The ULT on the stack of which a callback runs, while one does.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(in crate::sched) fn stack_owner(&self) -> Option<TaskSlot> {
        NonNull::new(self.stack_owner.load(Ordering::Relaxed))
    }

    /// The worker's turn: what is left of it, and what was counted in it.
    #[inline(always)]
    pub(super) fn turn(&self) -> &WorkerTurn {
        self.worker_slot().place.parks.inside()
    }

    /// Adds what was counted to the counters that other threads read.
    pub(in crate::sched) fn tell(&self) {
        self.turn().tell(&self.worker_slot().counters);
    }

    #[inline(always)]
    pub(super) fn worker_slot(&self) -> &WorkerSlot {
        // SAFETY: `shared` has the worker slots, and this worker holds a count of `shared`.
        unsafe { self.worker_slot.as_ref() }
    }
}

impl SchedulerShared {
    /// Whether the worker is one of this scheduler's.
    #[inline(always)]
    pub(in crate::sched) fn has(&self, worker: &Worker) -> bool {
        ptr::eq(self, worker.home())
    }
}
