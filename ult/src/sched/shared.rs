//! What all workers of a scheduler share.

use super::alarms::Alarms;
use super::config::Progress;
use super::doorbells::Doorbells;
use super::halt::Halt;
use super::outside_scopes::OutsideScopes;
use super::record::WorkerRequests;
use super::stack_waiters::StackWaiters;
use super::turn::WorkerTurn;
use super::worker_slot::WorkerSlot;
use crate::bias::Bias;
use crate::check::SuspensionCheck;
use crate::fences::Fences;
use crate::host;
use crate::inject::Inject;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
use crate::lock::Lock;
use crate::overflow::Origin;
use crate::slab::Slab;
use crate::stack::Stacks;
use crate::task::Task;
use alloc::boxed::Box;
use alloc::sync::Arc;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
use alloc::vec::Vec;
use core::ptr;
use tsumugi_core::sync::{AtomicBool, AtomicUsize, CachePadded, Ordering};
use tsumugi_core::time::Instant;

pub(crate) struct SchedulerShared {
    pub(crate) worker_slots: Box<[WorkerSlot]>,
    pub(crate) inject: CachePadded<Inject<Task>>,
    /// Urgent ULTs, for the worker that looks first.
    pub(crate) urgent: CachePadded<Inject<Task>>,
    pub(crate) idle: Idle,
    pub(crate) fences: Fences,
    pub(crate) inline_bytes: usize,
    pub(super) gate: CachePadded<AtomicUsize>,
    pub(super) stop: AtomicBool,
    pub(crate) outside_scopes: OutsideScopes,
    pub(crate) stack_waiters: StackWaiters,
    pub(super) alarms: Alarms,
    pub(crate) wanted: CachePadded<WorkerRequests>,
    /// Rings of events, which workers may write to at any time.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(crate) rings: Lock<Vec<Box<[super::record::Events]>>>,
    pub(crate) halt: Halt,
    pub(crate) slab: Slab,
    pub(crate) stacks: Stacks,
    pub(crate) bells: Doorbells,
    pub(crate) progress: Arc<dyn Progress>,
    pub(crate) spin: u32,
    pub(crate) suspension_check: SuspensionCheck,
    pub(crate) origin: Origin,
    epoch: host::Instant,
}

/// Workers with nothing to run.
pub(crate) struct Idle {
    /// How many workers look for work, and so need not be woken. Read by a thread
    /// that would wake one.
    pub(crate) searching: CachePadded<AtomicUsize>,
    /// How many workers sleep or are about to. Read at every push, and written
    /// seldom.
    pub(crate) sleepers: CachePadded<AtomicUsize>,
}

// SAFETY: the fields that are not `Send` are pointers to tasks, which are
// accessed by the tasks' own rules.
unsafe impl Send for SchedulerShared {}
// SAFETY: as for `Send`; the calls of a worker slot that only its owner may make are
// `unsafe fn`.
unsafe impl Sync for SchedulerShared {}

impl SchedulerShared {
    pub(crate) fn new(
        workers: usize,
        stacks: Stacks,
        bells: Doorbells,
        progress: Arc<dyn Progress>,
        spin: u32,
        inline_bytes: usize,
    ) -> Self {
        let fences = Fences::of_system();
        Self {
            worker_slots: (0..workers).map(|_| WorkerSlot::new(workers > 1, fences)).collect(),
            inject: CachePadded::new(Inject::new()),
            urgent: CachePadded::new(Inject::new()),
            idle: Idle {
                searching: CachePadded::new(AtomicUsize::new(0)),
                sleepers: CachePadded::new(AtomicUsize::new(0)),
            },
            fences,
            inline_bytes,
            gate: CachePadded::new(AtomicUsize::new(0)),
            stop: AtomicBool::new(false),
            outside_scopes: OutsideScopes::new(),
            stack_waiters: StackWaiters::new(),
            alarms: Alarms::new(),
            wanted: CachePadded::new(WorkerRequests::new(0)),
            #[cfg(all(feature = "std", not(tsumugi_loom)))]
            rings: Lock::new(Vec::new()),
            halt: Halt::new(),
            slab: Slab::new(),
            stacks,
            bells,
            progress,
            spin,
            suspension_check: SuspensionCheck::Off,
            origin: Origin::default(),
            epoch: host::Instant::now(),
        }
    }

    /// Sets which check of suspensions is done. Called before there are any.
    pub(super) fn check_suspensions(&mut self, check: SuspensionCheck) {
        self.suspension_check = check;
        if cfg!(not(debug_assertions)) && check != SuspensionCheck::Off {
            self.wanted = CachePadded::new(WorkerRequests::new(WorkerRequests::CHECK));
        }
    }

    /// Sets what reports say about the program.
    pub(super) fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }

    /// The address that tasks store as their home.
    pub(crate) fn home(&self) -> *const () {
        (self as *const Self).cast()
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_ns(self.epoch.elapsed().as_nanos() as u64)
    }

    /// Converts a time of the system's clock to the scheduler's clock.
    pub(crate) fn at(&self, instant: host::Instant) -> Instant {
        Instant::from_ns(instant.saturating_duration_since(self.epoch).as_nanos() as u64)
    }

    /// The bias of the park words.
    #[inline(always)]
    pub(super) fn parks(&self) -> &Bias<WorkerTurn> {
        &self.worker_slots[0].place.parks
    }

    /// Whether this ULT runs on a worker.
    pub(super) fn runs(&self, task: &Task) -> bool {
        let current = |worker_slot: &WorkerSlot| worker_slot.place.current.load(Ordering::Relaxed);
        self.worker_slots.iter().any(|worker_slot| ptr::eq(current(worker_slot), task))
    }

    /// Whether any queue has a ULT. Called by a worker that is about to sleep.
    pub(crate) fn has_ready(&self) -> bool {
        !self.inject.is_empty()
            || !self.urgent.is_empty()
            || self.worker_slots.iter().any(|worker_slot| {
                worker_slot.public_slot.is_full()
                    || !worker_slot.ready.is_empty()
                    || !worker_slot.yielded.is_empty()
            })
    }

    /// Whether an urgent ULT waits, or the slow path is to be taken for another
    /// reason.
    #[inline(always)]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.any() || cfg!(tsumugi_loom) && self.wanted.has(WorkerRequests::URGENT)
    }
}
