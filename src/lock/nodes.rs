//! The queue nodes of a rank's claims: as many claims as there are nodes may wait at
//! a time; further claims wait for a node first.

use crate::Rank;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi_gas::lock::{NodeId, NodePool, NodeSlot};
use tsumugi_runtime::leaked_slice::{LeakedSlice, lend};
use tsumugi_ult::sync::Semaphore;

/// The free queue nodes of a rank.
pub(crate) struct Nodes {
    pool: Mutex<NodePool<'static>>,
    /// Counts the free nodes.
    free: Semaphore,
    _slots: LeakedSlice<NodeSlot>,
}

impl Nodes {
    /// Makes `count` nodes of `rank`, all of them free.
    pub(crate) fn new(rank: Rank, count: u32) -> Self {
        let (slots, _slots) = lend(vec![NodeSlot::default(); count as usize]);
        let pool = Mutex::new(NodePool::new(rank, slots));
        Self { pool, free: Semaphore::new(count as usize), _slots }
    }

    /// Takes a node, with a new generation; `load` reads the first word of a slot,
    /// and never waits. Blocking while all nodes are in use.
    pub(crate) fn take(&self, load: impl Fn(usize) -> u64) -> NodeId {
        loop {
            self.free.acquire(1);
            let node = self.pool().try_take(&load);
            if let Some(node) = node {
                return node;
            }
            // The free nodes were left in a queue, and the claims in front of them
            // have not passed them yet.
            self.free.release(1);
            tsumugi_ult::yield_now();
        }
    }

    /// Gives a node back: its claim has ended, or the claim `has_left` it in a
    /// queue.
    pub(crate) fn release(&self, node: NodeId, has_left: bool) {
        self.pool().release(node, has_left);
        self.free.release(1);
    }

    fn pool(&self) -> MutexGuard<'_, NodePool<'static>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
