//! The words of locks: one array on every rank, which claims know by one key.

use crate::lasting::Lasting;
use crate::{AddrError, Agent, Error, Plain, Rank, Remote, RemoteAddr, Runtime, Shared, Until};
use std::ptr;
use std::time::Duration;
use tsumugi_core::mem::RegionKey;
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicU64, Ordering};
use tsumugi_gas::lock::drive::{self, Means, Refused};
use tsumugi_gas::lock::{Claim, NODE_BYTES, NodeId, NodeTable};
use tsumugi_ult::Here;

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
    /// `bytes` zero bytes and [`NODES`] queue nodes on every rank. Collective. No
    /// address that a program makes up leads there, unless the agent is a device.
    pub(crate) fn share(runtime: &Runtime, agent: Agent, bytes: u64) -> Result<Self, Error> {
        let nodes_at = bytes.next_multiple_of(LINE);
        let words = (nodes_at + u64::from(NODES) * NODE_BYTES) / 8;
        let shared = runtime.share_words(agent, words as usize)?;
        let nodes = Nodes::new(runtime.rank(), NODES);
        let key = shared.key(runtime.rank());
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
        // SAFETY: a word of locks, and claims do to it what they would.
        unsafe { Remote::of_runtime(RemoteAddr { rank, key: self.shared.key(rank), offset }) }
    }

    /// A value at an address that [`real`](Self::real) has given, or behind it: of
    /// the words, or of what their user has there.
    #[inline(always)]
    pub(crate) fn remote<T: Plain>(at: RemoteAddr) -> Remote<T> {
        // SAFETY: words of locks and pages of arrays, and their users do to them
        // what the runtime would: addresses are made of `real` ones alone.
        unsafe { Remote::of_runtime(at) }
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

impl Words {
    /// A node for a claim that has asked already. Blocking, while all are in use.
    pub(crate) fn take_node_for(&self, claim: &Claim) -> NodeId {
        if !claim.is_blocked_reader() {
            return self.take_node();
        }
        let leave = &mut || self.pass_on(claim, None);
        // SAFETY: leaving only spawns a ULT of another scheduler.
        unsafe { Here.or_leave(leave, || self.take_node()) }
    }

    /// A ULT was cut off with this claim, and perhaps an operation of it under way:
    /// one of the rank's own ends both in its place. Without one the rank has ended,
    /// and all others have met it at its end, or been told of its loss: its locks
    /// have ended, too.
    #[cold]
    fn pass_on(&self, claim: &Claim, under_way: Option<&Lasting>) {
        // SAFETY: borrowed by that ULT until its call returns, and it never does: its
        // stack stays as it is, and so does what that borrows or owns.
        let words = unsafe { &*ptr::from_ref(self) };
        let claim = claim.clone();
        // SAFETY: it was carried by that ULT, which is cut off once.
        let under_way = under_way.map(|lasting| unsafe { lasting.take_over() });
        drop(words.runtime.ults().try_spawn(move || {
            let result = under_way.map(|lasting| words.runtime.carry_lasting(&lasting));
            let ended = drive::pass_on(words, claim, result, || words.take_node());
            // A rank that has died is found by who asks next.
            if let Ok(Some(Refused { node, has_left })) = ended {
                words.release_node(node, has_left);
            }
        }));
    }

    #[cold]
    fn carry_or_pass_on(&self, claim: &Claim, real: Op) -> Result<u64, AddrError> {
        let lasting = Lasting::new(real);
        let leave = &mut || self.pass_on(claim, Some(&lasting));
        // SAFETY: leaving only spawns a ULT of another scheduler.
        unsafe { Here.or_leave(leave, || self.runtime.carry_lasting(&lasting)) }
    }
}

impl Means for Words {
    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        let mut real = *op;
        real.remote = self.real(op.remote);
        self.runtime.carry(&real)
    }

    fn carry_as(&self, claim: &Claim, op: &Op) -> Result<u64, AddrError> {
        let mut real = *op;
        real.remote = self.real(op.remote);
        let at_hand = self.runtime.carry_at_hand(&real);
        at_hand.unwrap_or_else(|| self.carry_or_pass_on(claim, real))
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
        let at = self.real(at);
        let word = self.at(at.rank, at.offset);
        match limit {
            None => self.runtime.wait_until(word, until).map(Some),
            Some(limit) => self.runtime.wait_until_within(word, until, limit),
        }
    }

    fn wait_as(
        &self,
        claim: &Claim,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        let leave = &mut || self.pass_on(claim, None);
        // SAFETY: leaving only spawns a ULT of another scheduler.
        unsafe { Here.or_leave(leave, || self.wait(at, until, limit)) }
    }
}

/// Claims of a rank that wait at a time for a lock, or for those of a window;
/// others wait for their node.
pub(crate) const NODES: u32 = 256;
const LINE: u64 = 64;
