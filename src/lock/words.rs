//! The words of locks: one array on every rank, which claims name by one key.

use crate::{AddrError, Agent, Error, Plain, Rank, Remote, RemoteAddr, Runtime, Shared, Until};
use std::ptr;
use std::time::Duration;
use tsumugi_core::mem::RegionKey;
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicU64, Ordering};
use tsumugi_gas::lock::drive::{self, LockDriver, LockRefused};
use tsumugi_gas::lock::{LockClaim, NODE_BYTES, NodeId, NodeTable};
use tsumugi_runtime::lasting::Lasting;
use tsumugi_ult::Here;

use super::nodes::Nodes;

/// Queue nodes, and in front of them the words of the user.
///
/// ```text
///  of each rank:  the user's words │ queue nodes
/// ```
pub(crate) struct Words {
    runtime: Runtime,
    shared: Shared<u64>,
    nodes: Nodes,
    nodes_at: u64,
    /// The key by which claims name the words of every rank.
    key: RegionKey,
}

impl Words {
    /// Makes `bytes` zero bytes and [`NODES`] queue nodes on every rank. Collective.
    /// Programs cannot form an address of them, unless the agent is a device.
    pub(crate) fn share(runtime: &Runtime, agent: Agent, bytes: u64) -> Result<Self, Error> {
        let nodes_at = bytes.next_multiple_of(LINE);
        let words = (nodes_at + u64::from(NODES) * NODE_BYTES) / 8;
        let shared = runtime.share_words(agent, words as usize)?;
        let nodes = Nodes::new(runtime.rank(), NODES);
        let key = shared.key(runtime.rank());
        Ok(Self { runtime: runtime.clone(), shared, nodes, nodes_at, key })
    }

    /// The key by which claims name the words of every rank.
    pub(crate) fn key(&self) -> RegionKey {
        self.key
    }

    /// The agent that carries out the atomics on the words.
    pub(crate) fn agent(&self) -> Agent {
        self.shared.agent()
    }

    /// The place of the nodes at which claims wait.
    pub(crate) fn node_table(&self) -> NodeTable {
        NodeTable { key: self.key(), offset: self.nodes_at }
    }

    /// The word of `rank` at a byte offset.
    #[inline(always)]
    pub(crate) fn at(&self, rank: Rank, offset: u64) -> Remote<u64> {
        // SAFETY: a word of locks, and only claims access it, by the protocol of
        // locks.
        unsafe { Remote::of_runtime(RemoteAddr { rank, key: self.shared.key(rank), offset }) }
    }

    /// A value at an address that [`real`](Self::real) has returned, or behind it:
    /// of the words, or of their user.
    #[inline(always)]
    pub(crate) fn remote<T: Plain>(at: RemoteAddr) -> Remote<T> {
        // SAFETY: words of locks and pages of arrays, which only the runtime
        // accesses; addresses of them are only made from `real` ones.
        unsafe { Remote::of_runtime(at) }
    }

    /// The word of this rank at a byte offset, for its processors.
    #[inline(always)]
    pub(crate) fn own(&self, offset: u64) -> &AtomicU64 {
        self.shared.own().word((offset / 8) as usize)
    }

    /// Takes a node for a claim. Blocking while all nodes are in use.
    pub(crate) fn take_node(&self) -> NodeId {
        let state = |slot: usize| {
            let at = self.nodes_at + slot as u64 * NODE_BYTES;
            let word = self.runtime.handle().own_word(self.at(self.runtime.rank(), at));
            // Acquire: pairs with the write of the claim that has passed the node. A
            // word that cannot be read counts as not free.
            word.map_or(0, |word| word.load(Ordering::Acquire))
        };
        self.nodes.take(state)
    }

    /// Gives a node back, which was used, or left in a queue.
    pub(crate) fn release_node(&self, node: NodeId, has_left: bool) {
        self.nodes.release(node, has_left);
    }

    /// The address under the key that the words have at its rank.
    #[inline(always)]
    pub(crate) fn real(&self, at: RemoteAddr) -> RemoteAddr {
        RemoteAddr { key: self.at(at.rank, 0).addr().key, ..at }
    }
}

impl Words {
    /// Takes a node for a claim that may have made its request already. Blocking
    /// while all nodes are in use.
    pub(crate) fn take_node_for(&self, claim: &LockClaim) -> NodeId {
        if !claim.is_blocked_reader() {
            return self.take_node();
        }
        let leave = &mut || self.pass_on(claim, None);
        // SAFETY: `leave` only spawns a ULT of this rank's own scheduler.
        unsafe { Here.or_leave(leave, || self.take_node()) }
    }

    /// Ends a claim of a ULT that was cut off, and perhaps an operation of it under
    /// way: a ULT of this rank's own scheduler does both. If there is none, the rank
    /// has ended; the other ranks have met it in its last barrier, or have got
    /// notice of its loss, so its locks have ended, too.
    #[cold]
    fn pass_on(&self, claim: &LockClaim, under_way: Option<&Lasting>) {
        // SAFETY: that ULT has borrowed the words until its call returns, and it
        // never does: its stack stays as it is, with all that it borrows or owns.
        let words = unsafe { &*ptr::from_ref(self) };
        let claim = claim.clone();
        // SAFETY: that ULT has carried the operation, and it is cut off once.
        let under_way = under_way.map(|lasting| unsafe { lasting.take_over() });
        drop(words.runtime.ults().try_spawn(move || {
            let result = under_way.map(|lasting| words.runtime.handle().carry_lasting(&lasting));
            let ended = drive::pass_on(words, claim, result, || words.take_node());
            // A rank that has died is found by the next claim.
            if let Ok(Some(LockRefused { node, has_left })) = ended {
                words.release_node(node, has_left);
            }
        }));
    }

    #[cold]
    fn carry_or_pass_on(&self, claim: &LockClaim, real: Op) -> Result<u64, AddrError> {
        let lasting = Lasting::new(real);
        let leave = &mut || self.pass_on(claim, Some(&lasting));
        // SAFETY: `leave` only spawns a ULT of this rank's own scheduler.
        unsafe { Here.or_leave(leave, || self.runtime.handle().carry_lasting(&lasting)) }
    }
}

impl LockDriver for Words {
    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        let mut real = *op;
        real.remote = self.real(op.remote);
        self.runtime.handle().carry(&real)
    }

    fn carry_as(&self, claim: &LockClaim, op: &Op) -> Result<u64, AddrError> {
        let mut real = *op;
        real.remote = self.real(op.remote);
        let at_hand = self.runtime.handle().carry_at_hand(&real);
        at_hand.unwrap_or_else(|| self.carry_or_pass_on(claim, real))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn try_add(&self, at: RemoteAddr, delta: u64) -> Option<u64> {
        let word = self.runtime.handle().word_at_hand(self.real(at))?;
        // SeqCst: as all atomics of operations.
        Some(word.fetch_add(delta, Ordering::SeqCst))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn try_swap(&self, at: RemoteAddr, expected: u64, new: u64) -> Option<u64> {
        let word = self.runtime.handle().word_at_hand(self.real(at))?;
        // SeqCst: as in `try_add`.
        let swapped = word.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst);
        Some(swapped.unwrap_or_else(|old| old))
    }

    fn wait(
        &self,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        let at = self.real(at);
        let word = self.at(at.rank, at.offset);
        match limit {
            None => self.runtime.wait_until(word, until).map(Some),
            Some(limit) => self.runtime.wait_until_timeout(word, until, limit),
        }
    }

    fn wait_as(
        &self,
        claim: &LockClaim,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        let leave = &mut || self.pass_on(claim, None);
        // SAFETY: `leave` only spawns a ULT of this rank's own scheduler.
        unsafe { Here.or_leave(leave, || self.wait(at, until, limit)) }
    }
}

/// Claims of a rank that may wait at a time for a lock, or for the locks of a
/// window; further claims wait for a node.
pub(crate) const NODES: u32 = 256;
const LINE: u64 = 64;
