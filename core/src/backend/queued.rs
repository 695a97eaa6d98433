//! A queue in front of memory that can be loaded and stored: the same-node path as
//! an [`Endpoint`], for a program in which another thread does the copy.
//!
//! An operation takes effect when it is posted, and its completion stays in the
//! queue until it is polled, as with an infinitely fast device. So a benchmark
//! through this endpoint measures the engine.
//!
//! Progress: as [`execute`], for each operation posted.

use super::{Completion, Endpoint, LoadStore, execute};
use crate::mem::AddrError;
use crate::op::Op;
use core::fmt;
use heapless::Deque;

/// A queue of up to `DEPTH` completions that are not polled yet.
pub struct Queued<L, const DEPTH: usize = 64> {
    memory: L,
    done: Deque<Completion, DEPTH>,
}

impl<L: LoadStore, const DEPTH: usize> Queued<L, DEPTH> {
    /// An empty queue in front of `memory`.
    pub const fn new(memory: L) -> Self {
        Self { memory, done: Deque::new() }
    }
}

impl<L: LoadStore + Send, const DEPTH: usize> Endpoint for Queued<L, DEPTH> {
    const IS_IMMEDIATE: bool = true;

    fn post(&mut self, ops: &[Op]) -> usize {
        let room = DEPTH - self.done.len();
        let taken = room.min(ops.len());
        for op in &ops[..taken] {
            let completion = Completion { tag: op.tag, result: execute(&self.memory, op) };
            // There is room, as counted above.
            let _ = self.done.push_back(completion);
        }
        taken
    }

    #[inline(always)]
    fn try_now(&mut self, op: &Op) -> Option<Result<u64, AddrError>> {
        Some(execute(&self.memory, op))
    }

    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        let mut taken = 0;
        for place in completions {
            let Some(done) = self.done.pop_front() else { break };
            *place = done;
            taken += 1;
        }
        taken
    }

    fn arm(&mut self) -> bool {
        // Every posted operation has its completion in the queue already.
        true
    }
}

impl<L, const DEPTH: usize> fmt::Debug for Queued<L, DEPTH> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queued({} of {DEPTH} to be polled)", self.done.len())
    }
}
