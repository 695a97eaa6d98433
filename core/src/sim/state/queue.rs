//! A completion queue.

use crate::backend::Completion;
use crate::mem::Rank;
use alloc::collections::VecDeque;

/// The completion queue of a node or of an endpoint.
pub(super) struct NodeQueue {
    pub(super) rank: Rank,
    pub(super) in_flight: u32,
    /// Completions, and whether each is the first of its operation.
    pub(super) done: VecDeque<(Completion, bool)>,
    pub(super) is_armed: bool,
    /// The queue's rank died before all bytes of an operation had left it. If links
    /// keep order, no operation that was posted after it lands.
    pub(super) is_cut_off: bool,
}

impl NodeQueue {
    pub(super) fn new(rank: Rank) -> Self {
        Self { rank, in_flight: 0, done: VecDeque::new(), is_armed: false, is_cut_off: false }
    }
}
