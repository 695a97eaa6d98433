//! The shared data of one worker.

use super::record::Notes;
use super::turn::WorkerTurn;
use crate::bias::Bias;
use crate::deque::WorkDeque;
use crate::fences::Fences;
use crate::handoff::HandoffSlot;
use crate::inject::Inject;
use crate::public_slot::PublicSlot;
use crate::task::Task;
use core::ptr;
use tsumugi_core::stats::Counters;
use tsumugi_core::sync::{CachePadded, shown};

/// The shared data of one worker: its owner pushes, thieves take.
pub(crate) struct WorkerSlot {
    pub(super) place: CachePadded<HotState>,
    /// A slot through which a spinning worker is handed a ULT that ran there last.
    pub(crate) handoff: HandoffSlot<Task>,
    /// A slot with the oldest ULTs of `ready`, for a worker that has nothing.
    pub(crate) public_slot: PublicSlot<Task>,
    /// New and woken ULTs, the youngest first.
    pub(crate) ready: WorkDeque<Task>,
    /// ULTs that yielded, and ULTs from outside, the oldest first.
    pub(crate) yielded: WorkDeque<Task>,
    /// ULTs that must run on this worker, pushed by other threads.
    pub(crate) pinned: Inject<Task>,
    pub(crate) counters: Counters,
    pub(crate) notes: CachePadded<Notes>,
}

/// What the worker writes at every switch.
pub(super) struct HotState {
    /// The bias of the park words, and this worker's turn. Only the bias of the
    /// first worker slot is used: in a scheduler of one worker, that worker is its owner.
    pub(super) parks: Bias<WorkerTurn>,
    /// The ULT that runs; null while the hub runs.
    pub(super) current: shown::AtomicPtr<Task>,
}

impl WorkerSlot {
    pub(super) fn new(shared: bool, fences: Fences) -> Self {
        Self {
            place: CachePadded::new(HotState {
                parks: Bias::through(WorkerTurn::new()),
                current: shown::AtomicPtr::new(ptr::null_mut()),
            }),
            handoff: HandoffSlot::new(),
            public_slot: PublicSlot::new(shared, fences),
            ready: WorkDeque::new(SLOTS, shared, fences),
            yielded: WorkDeque::new(SLOTS, shared, fences),
            pinned: Inject::new(),
            counters: Counters::new(),
            notes: CachePadded::new(Notes::new()),
        }
    }
}

/// Number of entries that a deque has before it grows.
pub(crate) const SLOTS: usize = if cfg!(tsumugi_loom) { 2 } else { 256 };
