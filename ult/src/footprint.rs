//! What a scheduler's tables cost, for whoever plans the memory of a rank.

use crate::deque::Deque;
use crate::host::page_bytes;
use crate::sched::shared::{SLOTS, Seat, Shared};
use crate::sched::worker::Worker;
use crate::task::Task;

/// Bytes of a scheduler's tables. Nothing here depends on how many ranks a job
/// has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Once.
    pub shared_bytes: usize,
    /// For each worker, with its two deques as they are at first. Its OS
    /// thread's stack is the system's.
    pub worker_bytes: usize,
    /// For each ULT, beside its stack.
    pub ult_bytes: usize,
    /// For each stack: the guard page, of addresses and not of memory.
    pub guard_bytes: usize,
}

/// What a scheduler costs.
pub fn footprint() -> Footprint {
    Footprint {
        shared_bytes: size_of::<Shared>(),
        worker_bytes: size_of::<Worker>()
            + size_of::<Seat>()
            + 2 * Deque::<Task>::buffer_bytes(SLOTS),
        ult_bytes: size_of::<Task>(),
        guard_bytes: page_bytes(),
    }
}
