//! How a window's locks reach their words: as other locks do, and by ringing
//! whoever runs the vertex that a word is of.
//!
//! ```text
//!  words of a rank:  lock 8 │ bell, completed 8 │ posted, one a rank │ tree
//! ```

use crate::am::Far as Carried;
use crate::lock::Words;
use crate::{AddrError, Agent, Error, Rank, Remote, Runtime, Until};
use std::ops::Range;
use std::time::Duration;
use tsumugi_core::backend::execute;
use tsumugi_core::mem::{RegionKey, RemoteAddr, Width};
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicU64, Ordering};
use tsumugi_gas::lock::drive::Means;
use tsumugi_gas::lock::{Claim, LOCK_BYTES, NodeId, NodeTable};
use tsumugi_ult::SystemFutex;

/// The words of a window on all ranks.
pub(crate) struct Ways {
    words: Words,
    runtime: Runtime,
    /// Where the words of the tree are.
    tree: Range<u64>,
}

impl Ways {
    /// Words whose atomics are the agent's, with `tree` bytes for a tree on each
    /// rank. Collective.
    pub(super) fn share(runtime: &Runtime, agent: Agent, tree: u64) -> Result<Self, Error> {
        let at = POSTED + u64::from(runtime.size()) * 8;
        let at = at.next_multiple_of(LOCK_BYTES);
        let words = Words::share(runtime, agent, at + tree)?;
        Ok(Self { words, runtime: runtime.clone(), tree: at..at + tree })
    }

    pub(super) fn rank(&self) -> Rank {
        self.runtime.rank()
    }

    pub(super) fn key(&self) -> RegionKey {
        self.words.key()
    }

    /// Where the tree's words begin.
    pub(super) fn tree(&self) -> u64 {
        self.tree.start
    }

    /// Who carries out the atomics on them.
    pub(super) fn agent(&self) -> Agent {
        self.words.agent()
    }

    pub(super) fn node_table(&self) -> NodeTable {
        self.words.node_table()
    }

    pub(super) fn take_node(&self) -> NodeId {
        self.words.take_node()
    }

    pub(super) fn take_node_for(&self, claim: &Claim) -> NodeId {
        self.words.take_node_for(claim)
    }

    pub(super) fn release_node(&self, node: NodeId) {
        self.words.release_node(node, false);
    }

    /// How many have completed their epoch here.
    pub(super) fn completed(&self, rank: Rank) -> Remote<u64> {
        self.words.at(rank, COMPLETED)
    }

    /// How often `target` has opened itself for `origin`, at `origin`.
    pub(super) fn posted(&self, origin: Rank, target: Rank) -> Remote<u64> {
        self.words.at(origin, POSTED + u64::from(target.0) * 8)
    }

    /// A carrier of a steward's operations to other nodes.
    pub(super) fn carried(&self, places: usize) -> Option<Carried> {
        let far = self.runtime.far.clone()?;
        Some(Carried::new(far, self.runtime.node().member(), places))
    }

    /// Set when a word of one of the own vertices has changed.
    pub(super) fn bell(&self) -> &AtomicU64 {
        let bell = self.words.at(self.rank(), BELL);
        self.runtime.own_word(bell).expect("own words, as long as this lives")
    }

    /// A word of one of the own vertices has changed.
    pub(super) fn rang(&self) {
        // SeqCst: after the word, before the look at who sleeps.
        self.bell().store(1, Ordering::SeqCst);
        self.ring(self.rank());
    }

    /// An own word. Wait-free.
    pub(super) fn load(&self, at: RemoteAddr) -> Result<u64, AddrError> {
        execute(&self.runtime.direct, &Op::get_word(self.words.real(at), Width::W8))
    }

    /// The operation under the key that its rank's words have.
    pub(super) fn real(&self, op: &Op) -> Op {
        let mut real = *op;
        real.remote = self.words.real(op.remote);
        real
    }

    /// Carries out an operation on a rank of this node. Wait-free.
    pub(super) fn carry_near(&self, op: &Op) -> Result<u64, AddrError> {
        let real = self.real(op);
        let result = execute(&self.runtime.direct, &real)?;
        if self.is_of_vertex(op) {
            // After the word; and before the look at who sleeps.
            let bell = self.words.at(op.remote.rank, BELL).addr();
            execute(&self.runtime.direct, &Op::put_word(bell, Width::W8, 1).notifying())?;
            self.ring(op.remote.rank);
        }
        Ok(result)
    }

    /// Asks for a word's line, if it is at hand, so that it is here when it is
    /// changed: of many words, all lines come at once, not one after the other.
    #[inline(always)]
    pub(super) fn sends_for(&self, at: RemoteAddr) {
        let Some(word) = self.runtime.word_at_hand(self.words.real(at)) else { return };
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint, of any address; processors without it do nothing.
        unsafe {
            let word = std::ptr::from_ref(word);
            std::arch::asm!("prefetchw [{}]", in(reg) word, options(nostack, preserves_flags));
        }
        let _ = word;
    }

    /// A rank that has died, if one has.
    pub(super) fn lost(&self) -> Option<Rank> {
        self.runtime.node().lot().lost()
    }

    /// Whether an operation is to be heard by who runs a vertex.
    fn is_of_vertex(&self, op: &Op) -> bool {
        op.notify && op.remote.key == self.key() && self.tree.contains(&op.remote.offset)
    }

    /// Wakes a worker of `rank`, which is near, or its helper if all compute.
    fn ring(&self, rank: Rank) {
        let control = self.runtime.node().member().control_of(rank);
        control.bells().ring_helped(&SystemFutex, || {});
    }
}

impl Means for Ways {
    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        if self.is_of_vertex(op) && self.runtime.node().member().is_near(op.remote.rank) {
            return self.carry_near(op);
        }
        self.words.carry(op)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn try_add(&self, at: RemoteAddr, delta: u64) -> Option<u64> {
        self.words.try_add(at, delta)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn try_swap(&self, at: RemoteAddr, expected: u64, new: u64) -> Option<u64> {
        self.words.try_swap(at, expected, new)
    }

    fn wait(
        &self,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        self.words.wait(at, until, limit)
    }

    fn carry_as(&self, claim: &Claim, op: &Op) -> Result<u64, AddrError> {
        debug_assert!(!self.is_of_vertex(op), "no claim has words of a vertex");
        self.words.carry_as(claim, op)
    }

    fn wait_as(
        &self,
        claim: &Claim,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        self.words.wait_as(claim, at, until, limit)
    }
}

const BELL: u64 = LOCK_BYTES;
const COMPLETED: u64 = BELL + 8;
const POSTED: u64 = BELL + LOCK_BYTES;
