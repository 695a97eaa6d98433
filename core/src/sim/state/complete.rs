//! Completions: delivered to a queue, and taken out of it.

use super::NetState;
use super::queue::NodeQueue;
use crate::backend::{Completion, TraceStage};
use crate::mem::{AddrError, Rank};
use crate::op::Op;
use crate::sim::event::SimEvent;

impl NetState {
    pub(in crate::sim) fn open(&mut self, rank: Rank) -> u32 {
        self.queues.push(NodeQueue::new(rank));
        self.queues.len() as u32 - 1
    }

    pub(in crate::sim) fn poll(&mut self, queue: u32, completions: &mut [Completion]) -> usize {
        let queue = &mut self.queues[queue as usize];
        let mut count = 0;
        while count < completions.len()
            && let Some((completion, is_first)) = queue.done.pop_front()
        {
            queue.in_flight -= u32::from(is_first);
            completions[count] = completion;
            count += 1;
        }
        count
    }

    pub(in crate::sim) fn arm(&mut self, queue: u32) {
        self.queues[queue as usize].is_armed = true;
    }

    pub(super) fn deliver(
        &mut self,
        index: u32,
        op: &Op,
        result: Result<u64, AddrError>,
        is_first: bool,
    ) -> (Rank, SimEvent) {
        let completion = Completion { tag: op.tag, result };
        let queue = &mut self.queues[index as usize];
        let rank = queue.rank;
        let event = if index < self.config.nodes {
            queue.in_flight -= u32::from(is_first);
            SimEvent::Completed(completion)
        } else {
            queue.done.push_back((completion, is_first));
            if core::mem::take(&mut queue.is_armed) {
                SimEvent::Interrupt
            } else {
                SimEvent::Nothing
            }
        };
        self.record(rank, op, TraceStage::Completed(result));
        (rank, event)
    }
}
