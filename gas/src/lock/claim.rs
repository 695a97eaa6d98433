//! One claim to one lock, from the request to the release, without IO: the claim
//! returns operations, and takes completions and changes of its own node's word.
//!
//! ```text
//!  Resting ── begin ─► asking ─────────────► Held ── release ─► going ─► Resting
//!                        │   ▲                ▲                   │
//!                        ▼   │ word changed   │        acts for nodes that
//!                      Waiting ───────────────┘        have left
//!                        └── leave ─► Resting (Left)
//! ```
//!
//! One operation is under way at a time: each step needs the result of the step
//! before, and a completion means that the operation has taken effect at its target.
//! A claim that waits has no operation under way; only its own node's word ends the
//! wait.
//!
//! | | not contended, atomics | |
//! |---|---|---|
//! | shared | 1 to lock, 1 to unlock | fetch-add |
//! | exclusive, [`LockKind::Readers`] | 1, 1 | compare-swap, twice |
//! | exclusive, phases | 2, 2 | and two stores to the own node |
//! | mutex | 1, 1 | swap, compare-swap, and two such stores |
//!
//! With [`LockKind::Readers`], a writer that leaves while readers wait first becomes a
//! reader, wakes the other readers, and then leaves as a reader. Otherwise another
//! writer could come in before the first one has taken the readers' list, and new
//! readers of that list would be woken while it is inside.
//!
//! # Leaving
//!
//! A claim cannot remove its node from the middle of a queue. A claim that gives up
//! marks its node. The claim that later comes to wake the node acts in its place: it
//! unlocks, passes the queue on, and frees the node. Until then the node is in use.

mod steps;

use super::count;
use super::kind::{LockKind, LockMode};
use super::node::{NodeId, NodeState};
use super::step::StepId;
use super::words::Lock;
use core::fmt;
use core::hash::{Hash, Hasher};
use tsumugi_core::mem::{AddrError, Rank, RemoteAddr};
use tsumugi_core::mutate;
use tsumugi_core::op::Op;
use tsumugi_core::signal::Until;

/// A claim to a lock. Two claims are equal if they will do the same; the numbers of
/// their operations do not matter.
#[derive(Clone, Debug)]
pub struct LockClaim {
    lock: Lock,
    own: NodeId,
    at: ClaimStep,
    /// The number of the operation under way, or of the next one.
    step: u32,
    is_posted: bool,
    mode: LockMode,
    /// The claim ends where it would have to wait.
    is_try: bool,
    /// Readers: the count that the arrival found. Writers that need to know their
    /// phase: the count that they read last.
    found: Option<u64>,
    /// The successor in the readers' list.
    behind: NodeId,
    /// The successor, in the readers' list, of a node that its claim has left.
    chain: NodeId,
    /// The node from which the writers' queue is to be passed on.
    pass: NodeId,
    /// A writer that leaves as a reader and is still counted as a reader.
    is_counted: bool,
    /// The step that comes when there is nothing left to do for other claims.
    then: ClaimStep,
}

/// The state of a claim, as its caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimStatus {
    /// Nothing is under way, and nothing is held.
    Resting(ClaimEnd),
    /// The claim has asked for the lock.
    Asking,
    /// The claim has the lock.
    Held,
    /// The claim is giving the lock back.
    Going,
    /// An operation has failed or a rank has died: the claim and its node cannot be
    /// used any more.
    Failed(AddrError),
}

/// How a claim came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimEnd {
    /// The claim never began, or gave the lock back.
    Released,
    /// The claim was only a try, and other claims were in the way.
    Refused,
    /// The claim has given up waiting. If its node is still in a queue, the node
    /// must be released as left.
    Left {
        /// Whether the node is still in a queue.
        in_queue: bool,
    },
}

/// The part of a claim that is needed while it holds its lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptClaim {
    own: NodeId,
    pass: NodeId,
    found: Option<u64>,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ClaimStep {
    Resting(ClaimEnd),
    Waiting(NodeState),
    Held,
    Failed(AddrError),

    // A writer asks for the lock.
    Seize,
    SetState,
    SetNext,
    Join,
    Link(NodeId),
    HeadSeize,
    HeadState,
    HeadWord,
    Announce,
    Take,
    Enter(bool),
    Drain,
    TryJoin,
    TryLook,
    TryTake(u64),

    // A reader asks for the lock.
    Peek,
    Arrive,
    ReaderState,
    ReaderJoin,
    Recheck,

    // A claim gives up waiting.
    LeaveNext(NodeState),
    Leave(NodeState),

    // Gives the lock back, for this claim or for a node that its claim has left.
    Depart,
    HandOver,
    FindHead,
    WakeHead(NodeId),
    LookNext(NodeId),
    WakeGiven(NodeId, NodeId),
    LookBits,
    Drop,
    Downgrade,
    TakeReaders(u64),
    WakeReader(NodeId),
    LeftNext(NodeId),
    LeftFree(NodeId),
    PassTail(NodeId),
    PassNext(NodeId),
    WakeNext(NodeId, NodeId),
    Free(NodeId, NodeId, bool),
}

impl KeptClaim {
    /// Of a claim that had its lock by one operation.
    pub(super) const ALONE: Self = Self { own: NodeId::NONE, pass: NodeId::NONE, found: None };
}

impl LockClaim {
    /// A claim to `lock` that waits in the node `own`, where it has to.
    pub const fn new(lock: Lock, own: NodeId) -> Self {
        Self {
            lock,
            own,
            at: ClaimStep::Resting(ClaimEnd::Released),
            step: 0,
            is_posted: false,
            mode: LockMode::Shared,
            is_try: false,
            found: None,
            behind: NodeId::NONE,
            chain: NodeId::NONE,
            pass: NodeId::NONE,
            is_counted: false,
            then: ClaimStep::Held,
        }
    }

    /// Asks for the lock.
    ///
    /// # Panics
    ///
    /// If the claim does not rest.
    pub fn begin(&mut self, mode: LockMode) {
        self.ask(mode, false);
    }

    /// Asks for the lock unless others are in the way. It ends without waiting
    /// for them: `Held`, or `Resting` with [`ClaimEnd::Refused`] (or, with
    /// phases and if a writer comes at the same moment, [`ClaimEnd::Left`]).
    ///
    /// # Panics
    ///
    /// If the claim does not rest.
    pub fn begin_try(&mut self, mode: LockMode) {
        self.ask(mode, true);
    }

    /// Asks for the lock like [`begin`](Self::begin), after the caller has carried
    /// out [`Lock::first_op`] itself, and found `old`.
    ///
    /// # Panics
    ///
    /// If the claim does not rest, or there is no such operation.
    pub fn begin_found(&mut self, mode: LockMode, old: u64) {
        self.ask(mode, false);
        assert!(
            matches!(self.at, ClaimStep::Arrive | ClaimStep::Seize),
            "this claim does not begin with one operation on the lock's word: {self:?}"
        );
        self.advance(old);
    }

    /// Gives back a lock that was taken by [`Lock::first_op`] alone, after the
    /// caller has carried out [`Lock::last_op`] itself, and found `old`. The claim
    /// needs no node.
    ///
    /// # Panics
    ///
    /// If the claim does not rest, or there is no such operation.
    pub fn release_found(&mut self, mode: LockMode, old: u64) {
        assert!(
            self.lock.last_op(mode).is_some(),
            "one operation does not release a lock of this kind: {self:?}"
        );
        self.ask(mode, false);
        self.then = ClaimStep::Resting(ClaimEnd::Released);
        self.at = if mode == LockMode::Shared { ClaimStep::Depart } else { ClaimStep::Drop };
        self.advance(old);
    }

    /// Gives the lock back. Operations under the lock must have completed, at the
    /// remote ends.
    ///
    /// # Panics
    ///
    /// If the lock is not held.
    pub fn release(&mut self) {
        assert!(self.at == ClaimStep::Held, "release of a claim that holds nothing: {self:?}");
        self.then = ClaimStep::Resting(ClaimEnd::Released);
        let kind = self.lock.kind;
        let next = match self.mode {
            _ if kind == LockKind::Mutex => self.finishes(),
            LockMode::Shared => ClaimStep::Depart,
            LockMode::Exclusive => self.writer_goes(),
        };
        self.go(next);
    }

    /// Gives up waiting. The claim goes on: it will rest, or hold the lock after all
    /// if that was decided before. False: the claim does not wait.
    pub fn leave(&mut self) -> bool {
        let ClaimStep::Waiting(state) = self.at else { return false };
        self.go(if self.mode == LockMode::Shared {
            ClaimStep::LeaveNext(state)
        } else {
            ClaimStep::Leave(state)
        });
        true
    }

    /// The next operation to post, with remote completion. A caller that cannot post
    /// it at once must keep it.
    pub fn poll_op(&mut self) -> Option<(StepId, Op)> {
        if self.is_posted {
            return None;
        }
        let op = self.op()?;
        let id = StepId::from_bits(self.step);
        self.is_posted = true;
        match self.at {
            ClaimStep::HeadWord => mutate!("lock_head_unflushed":
                () => self.handle_completed(id, Ok(0))),
            ClaimStep::SetState | ClaimStep::ReaderState => mutate!("lock_state_late":
                () => self.handle_completed(id, Ok(0))),
            _ => {}
        }
        Some((id, op))
    }

    /// Handles the end of an operation. A second end of the same operation is
    /// ignored.
    pub fn handle_completed(&mut self, id: StepId, result: Result<u64, AddrError>) {
        if !self.is_posted || id.to_bits() != self.step {
            return;
        }
        self.is_posted = false;
        self.step = self.step.wrapping_add(1);
        match result {
            Ok(old) => self.advance(old),
            Err(error) => self.at = ClaimStep::Failed(error),
        }
    }

    /// The own word that ends the wait, and the condition for its value.
    pub fn waits_for(&self) -> Option<(RemoteAddr, Until)> {
        let ClaimStep::Waiting(state) = self.at else { return None };
        Some((self.lock.nodes.state_of(self.own), Until::NotEqual(self.own.state(state))))
    }

    /// Handles that the own word has the value `value`.
    pub fn handle_word(&mut self, value: u64) {
        if let ClaimStep::Waiting(state) = self.at
            && value != self.own.state(state)
        {
            self.woken(value);
        }
    }

    /// Handles the death of a rank, which may be the rank that would have woken this
    /// claim. A claim that does not wait learns of the death by its operations.
    pub fn handle_lost(&mut self, rank: Rank) {
        if matches!(self.at, ClaimStep::Waiting(_)) {
            self.at = ClaimStep::Failed(AddrError::PeerLost { rank });
        }
    }

    /// The operation that is posted and has not ended.
    pub fn under_way(&self) -> Option<StepId> {
        self.is_posted.then_some(StepId::from_bits(self.step))
    }

    /// The state of the claim.
    pub fn standing(&self) -> ClaimStatus {
        match (self.at, self.then) {
            (ClaimStep::Resting(ended), _) => ClaimStatus::Resting(ended),
            (ClaimStep::Held, _) => ClaimStatus::Held,
            (ClaimStep::Failed(error), _) => ClaimStatus::Failed(error),
            (_, ClaimStep::Resting(_)) => ClaimStatus::Going,
            _ => ClaimStatus::Asking,
        }
    }

    /// The node in which the claim waits.
    pub const fn node(&self) -> NodeId {
        self.own
    }

    /// Whether the claim has no node ([`NodeId::NONE`]), and cannot go on without a
    /// node.
    pub(super) const fn lacks_node(&self) -> bool {
        self.own.is_none() && matches!(self.at, ClaimStep::SetState | ClaimStep::ReaderState)
    }

    /// Gives the claim, which has no node, the node in which it waits.
    pub(super) fn waits_in(&mut self, node: NodeId) {
        debug_assert!(self.own.is_none(), "a second node for this claim: {self:?}");
        self.own = node;
    }

    /// Whether the claim is a reader that must wait: the lock counts it, although it
    /// holds nothing.
    pub fn is_blocked_reader(&self) -> bool {
        self.lacks_node() && self.found.is_some()
    }

    /// The lock.
    pub const fn lock(&self) -> Lock {
        self.lock
    }

    /// The part of the claim that is needed while it holds its lock.
    pub(super) fn keep(&self) -> KeptClaim {
        debug_assert_eq!(self.at, ClaimStep::Held);
        KeptClaim { own: self.own, pass: self.pass, found: self.found }
    }

    /// The claim that holds its lock, from that part.
    pub(super) const fn kept(lock: Lock, mode: LockMode, kept: KeptClaim) -> Self {
        let KeptClaim { own, pass, found } = kept;
        Self { at: ClaimStep::Held, mode, pass, found, ..Self::new(lock, own) }
    }

    fn ask(&mut self, mode: LockMode, is_try: bool) {
        assert!(
            matches!(self.at, ClaimStep::Resting(_)),
            "begin of a claim that does not rest: {self:?}"
        );
        let kind = self.lock.kind;
        let mode = if kind == LockKind::Mutex { LockMode::Exclusive } else { mode };
        (self.mode, self.is_try, self.then) = (mode, is_try, ClaimStep::Held);
        (self.found, self.behind, self.pass) = (None, NodeId::NONE, NodeId::NONE);
        self.go(match mode {
            _ if kind == LockKind::Mutex => ClaimStep::SetState,
            LockMode::Exclusive if kind == LockKind::Readers => ClaimStep::Seize,
            LockMode::Exclusive => ClaimStep::SetState,
            LockMode::Shared if is_try && count::has_phases(kind) => ClaimStep::Peek,
            LockMode::Shared => ClaimStep::Arrive,
        });
    }
}

impl LockClaim {
    fn future(&self) -> impl Eq + Hash + use<> {
        let Self { lock, own, at, is_posted, mode, is_try, found, .. } = *self;
        let Self { behind, chain, pass, is_counted, then, .. } = *self;
        ((lock, own, at, is_posted, mode, is_try, found), (behind, chain, pass, is_counted, then))
    }
}

impl PartialEq for LockClaim {
    fn eq(&self, other: &Self) -> bool {
        self.future() == other.future()
    }
}

impl Eq for LockClaim {}

impl Hash for LockClaim {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.future().hash(state);
    }
}

impl fmt::Display for ClaimEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Released => "the lock was released",
            Self::Refused => "other claims hold the lock or wait for it",
            Self::Left { .. } => "the claim gave up waiting",
        })
    }
}

#[cfg(test)]
mod tests;
