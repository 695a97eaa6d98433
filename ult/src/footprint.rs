//! The size of a scheduler's tables, for planning the memory of a rank.

use crate::deque::WorkDeque;
use crate::host::page_bytes;
use crate::sched::shared::SchedulerShared;
use crate::sched::worker::Worker;
use crate::sched::worker_slot::{SLOTS, WorkerSlot};
use crate::task::Task;

/// Bytes of a scheduler's tables. No field depends on the number of ranks in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Footprint {
    /// Once per scheduler.
    pub shared_bytes: usize,
    /// Per worker, with its two deques at their first size. The stack of its OS
    /// thread is not counted, because the system allocates it.
    pub worker_bytes: usize,
    /// Per ULT, beside its stack.
    pub ult_bytes: usize,
    /// Per stack: the guard page, which takes addresses and no memory.
    pub guard_bytes: usize,
}

/// The sizes of a scheduler's tables.
pub fn footprint() -> Footprint {
    Footprint {
        shared_bytes: size_of::<SchedulerShared>(),
        worker_bytes: size_of::<Worker>()
            + size_of::<WorkerSlot>()
            + 2 * WorkDeque::<Task>::buffer_bytes(SLOTS),
        ult_bytes: size_of::<Task>(),
        guard_bytes: page_bytes(),
    }
}
