//! How a window's locks reach their words: as other locks do, and besides by ringing
//! the rank that runs the vertex of a word.
//!
//! ```text
//!  words of a rank:  lock 8 │ bell, completed 8 │ posted, one a rank │ tree
//! ```

use crate::lock::Words;
use crate::{AddrError, Agent, Error, Rank, Remote, Runtime, Until};
use std::ops::Range;
use std::time::Duration;
use tsumugi_core::backend::execute;
use tsumugi_core::mem::{RegionKey, RemoteAddr, Width};
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicU64, Ordering};
use tsumugi_gas::lock::drive::LockDriver;
use tsumugi_gas::lock::{LOCK_BYTES, LockClaim, NodeId, NodeTable};
use tsumugi_runtime::service::am::RemoteOps;
use tsumugi_ult::SystemFutex;

/// The words of a window's locks on all ranks.
pub(crate) struct WindowWords {
    words: Words,
    runtime: Runtime,
    /// The range of the words of the tree.
    tree: Range<u64>,
}

impl WindowWords {
    /// Makes words with atomics by `agent`, and `tree` bytes for a tree on each
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

    /// The offset of the tree's words.
    pub(super) fn tree(&self) -> u64 {
        self.tree.start
    }

    /// The agent that carries out the atomics on the words.
    pub(super) fn agent(&self) -> Agent {
        self.words.agent()
    }

    pub(super) fn node_table(&self) -> NodeTable {
        self.words.node_table()
    }

    pub(super) fn take_node(&self) -> NodeId {
        self.words.take_node()
    }

    pub(super) fn take_node_for(&self, claim: &LockClaim) -> NodeId {
        self.words.take_node_for(claim)
    }

    pub(super) fn release_node(&self, node: NodeId) {
        self.words.release_node(node, false);
    }

    /// How many origins have completed their epoch at `rank`.
    pub(super) fn completed(&self, rank: Rank) -> Remote<u64> {
        self.words.at(rank, COMPLETED)
    }

    /// How often `target` has posted an epoch to `origin`; the word is at `origin`.
    pub(super) fn posted(&self, origin: Rank, target: Rank) -> Remote<u64> {
        self.words.at(origin, POSTED + u64::from(target.0) * 8)
    }

    /// Makes the table of the tree service's operations to other nodes.
    pub(super) fn carried(&self, places: usize) -> Option<RemoteOps> {
        let net = self.runtime.handle().net().cloned()?;
        Some(RemoteOps::new(net, self.runtime.handle().node().member(), places))
    }

    /// The bell: set when a word of one of this rank's vertices has changed.
    pub(super) fn bell(&self) -> &AtomicU64 {
        let bell = self.words.at(self.rank(), BELL);
        self.runtime.handle().own_word(bell).expect("the bell is a word of this rank")
    }

    /// Sets the bell and wakes a worker after a word of an own vertex has changed.
    pub(super) fn rang(&self) {
        // SeqCst: after the word, and before the check of the sleepers.
        self.bell().store(1, Ordering::SeqCst);
        self.ring(self.rank());
    }

    /// Reads a word of this rank. Wait-free.
    pub(super) fn load(&self, at: RemoteAddr) -> Result<u64, AddrError> {
        execute(self.runtime.handle().direct(), &Op::get_word(self.words.real(at), Width::W8))
    }

    /// The operation under the key that the words have at its rank.
    pub(super) fn real(&self, op: &Op) -> Op {
        let mut real = *op;
        real.remote = self.words.real(op.remote);
        real
    }

    /// Carries out an operation on a rank of this node. Wait-free.
    pub(super) fn carry_near(&self, op: &Op) -> Result<u64, AddrError> {
        let real = self.real(op);
        let result = execute(self.runtime.handle().direct(), &real)?;
        if self.is_of_vertex(op) {
            // After the word, and before the check of the sleepers.
            let bell = self.words.at(op.remote.rank, BELL).addr();
            execute(self.runtime.handle().direct(), &Op::put_word(bell, Width::W8, 1).notifying())?;
            self.ring(op.remote.rank);
        }
        Ok(result)
    }

    /// Prefetches a word's cache line for writing, if the word is in reach: then the
    /// lines of many words come at once and not one after the other.
    #[inline(always)]
    pub(super) fn sends_for(&self, at: RemoteAddr) {
        let Some(word) = self.runtime.handle().word_at_hand(self.words.real(at)) else { return };
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint, for any address; processors without it ignore it.
        unsafe {
            let word = std::ptr::from_ref(word);
            std::arch::asm!("prefetchw [{}]", in(reg) word, options(nostack, preserves_flags));
        }
        let _ = word;
    }

    /// A rank that has died, if there is one.
    pub(super) fn lost(&self) -> Option<Rank> {
        self.runtime.handle().node().parking_lot().lost()
    }

    /// Whether the rank that runs a vertex must see this operation.
    fn is_of_vertex(&self, op: &Op) -> bool {
        op.notify && op.remote.key == self.key() && self.tree.contains(&op.remote.offset)
    }

    /// Wakes a worker of `rank`, which is of this node, or its helper if all workers
    /// compute.
    fn ring(&self, rank: Rank) {
        let control = self.runtime.handle().node().member().control_of(rank);
        control.bells().ring_helped(&SystemFutex, || {});
    }
}

impl LockDriver for WindowWords {
    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        if self.is_of_vertex(op) && self.runtime.handle().node().member().is_near(op.remote.rank) {
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

    fn carry_as(&self, claim: &LockClaim, op: &Op) -> Result<u64, AddrError> {
        debug_assert!(!self.is_of_vertex(op), "no claim has words of a vertex");
        self.words.carry_as(claim, op)
    }

    fn wait_as(
        &self,
        claim: &LockClaim,
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
