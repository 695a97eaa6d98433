//! The words of locks: one array on every rank, which claims know by one key.

use crate::{AddrError, Agent, Error, Rank, Remote, RemoteAddr, Runtime, Shared, Until};
use std::time::Duration;
use tsumugi_core::mem::RegionKey;
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicU64, Ordering};
use tsumugi_gas::lock::drive::Means;
use tsumugi_gas::lock::{NODE_BYTES, NodeId, NodeTable};

use super::nodes::Nodes;

/// Queue nodes, and words behind them.
///
/// ```text
///  of each rank:  others' words │ queue nodes
/// ```
pub(crate) struct Words {
    runtime: Runtime,
    shared: Shared<u64>,
    nodes: Nodes,
    nodes_at: u64,
    /// What claims call every rank's.
    key: RegionKey,
}

impl Words {
    /// `bytes` zero bytes and [`NODES`] queue nodes on every rank. Collective.
    pub(crate) fn share(runtime: &Runtime, agent: Agent, bytes: u64) -> Result<Self, Error> {
        let nodes_at = bytes.next_multiple_of(LINE);
        let words = (nodes_at + u64::from(NODES) * NODE_BYTES) / 8;
        let shared = runtime.share_for(agent, words as usize)?;
        let nodes = Nodes::new(runtime.rank(), NODES);
        let key = shared.own().at(0).addr().key;
        Ok(Self { runtime: runtime.clone(), shared, nodes, nodes_at, key })
    }

    /// What claims call every rank's.
    pub(crate) fn key(&self) -> RegionKey {
        self.key
    }

    /// Who carries out the atomics on them.
    pub(crate) fn agent(&self) -> Agent {
        self.shared.agent()
    }

    /// Where claims wait.
    pub(crate) fn node_table(&self) -> NodeTable {
        NodeTable { key: self.key(), offset: self.nodes_at }
    }

    /// The word of `rank` at a byte.
    #[inline(always)]
    pub(crate) fn at(&self, rank: Rank, offset: u64) -> Remote<u64> {
        self.shared.at(rank, (offset / 8) as usize)
    }

    /// The own word at a byte, for this rank's processors.
    #[inline(always)]
    pub(crate) fn own(&self, offset: u64) -> &AtomicU64 {
        self.shared.own().word((offset / 8) as usize)
    }

    /// A node for a claim. Blocking, while all are in use.
    pub(crate) fn take_node(&self) -> NodeId {
        let state = |slot: usize| {
            let at = self.nodes_at + slot as u64 * NODE_BYTES;
            let word = self.runtime.own_word(self.at(self.runtime.rank(), at));
            // Acquire: pairs with the write of whoever passed the node. A word
            // that is not there is not free.
            word.map_or(0, |word| word.load(Ordering::Acquire))
        };
        self.nodes.take(state)
    }

    /// It was used, or left in a queue.
    pub(crate) fn release_node(&self, node: NodeId, has_left: bool) {
        self.nodes.release(node, has_left);
    }

    /// An address under the key that its rank's words have.
    #[inline(always)]
    pub(crate) fn real(&self, at: RemoteAddr) -> RemoteAddr {
        RemoteAddr { key: self.at(at.rank, 0).addr().key, ..at }
    }
}

impl Means for Words {
    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        let mut real = *op;
        real.remote = self.real(op.remote);
        self.runtime.carry(&real)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn try_add(&self, at: RemoteAddr, delta: u64) -> Option<u64> {
        let word = self.runtime.word_at_hand(self.real(at))?;
        // SeqCst: as every atomic of an operation.
        Some(word.fetch_add(delta, Ordering::SeqCst))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn try_swap(&self, at: RemoteAddr, expected: u64, new: u64) -> Option<u64> {
        let word = self.runtime.word_at_hand(self.real(at))?;
        // SeqCst: as above.
        let swapped = word.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst);
        Some(swapped.unwrap_or_else(|old| old))
    }

    fn wait(
        &self,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        let word = Remote::new(self.real(at));
        match limit {
            None => self.runtime.wait_until(word, until).map(Some),
            Some(limit) => self.runtime.wait_until_within(word, until, limit),
        }
    }
}

/// Claims of a rank that wait at a time for a lock, or for those of a window;
/// others wait for their node.
pub(crate) const NODES: u32 = 256;
const LINE: u64 = 64;
