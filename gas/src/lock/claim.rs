//! One claim to one lock, from asking for it to giving it back, without IO:
//! operations out, completions and changes of the own node's word in.
//!
//! ```text
//!  Resting ── begin ─► asking ─────────────► Held ── release ─► going ─► Resting
//!                        │   ▲                ▲                   │
//!                        ▼   │ word changed   │        acts for those that
//!                      Waiting ───────────────┘        it finds gone
//!                        └── leave ─► Resting (Left)
//! ```
//!
//! One operation is under way at a time: each step needs what the one before
//! has found, and its completion says that it has taken effect there. A claim
//! that waits has none under way; only its own node's word ends the wait.
//!
//! | | not contended, atomics | |
//! |---|---|---|
//! | shared | 1 to lock, 1 to unlock | fetch-add |
//! | exclusive, [`Kind::Readers`] | 1, 1 | compare-swap, twice |
//! | exclusive, phases | 2, 2 | and two stores to the own node |
//! | mutex | 1, 1 | swap, compare-swap, and two such stores |
//!
//! A writer that goes while readers wait, with [`Kind::Readers`], becomes a
//! reader first, wakes the others and then leaves as one: another writer that
//! came in before it has taken the readers' list would find new readers woken.
//!
//! # Leaving
//!
//! Nobody can take himself out of the middle of a queue. A claim that gives up
//! marks its node; whoever comes to wake it acts in its place: unlocks, passes
//! the queue on, and frees the node. Until then the node is in use.

mod steps;

use super::count;
use super::node::{NodeId, State};
use super::{Kind, Lock};
use core::fmt;
use core::hash::{Hash, Hasher};
use tsumugi_core::mem::{AddrError, Rank, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::signal::Until;
use tsumugi_core::sync::mutant;

/// A claim to a lock. Two are equal if they will do the same, however their
/// operations are numbered.
#[derive(Clone, Debug)]
pub struct Claim {
    lock: Lock,
    own: NodeId,
    at: At,
    /// The operation under way, or the next.
    step: u32,
    is_posted: bool,
    mode: Mode,
    /// Goes rather than waits.
    is_try: bool,
    /// What the arrival found, for readers; the last look at the count, for
    /// writers that have to know their phase.
    found: Option<u64>,
    /// Own successor in the readers' list.
    behind: NodeId,
    /// Successor of one that has left it.
    chain: NodeId,
    /// Whose place in the writers' queue is to be passed on.
    pass: NodeId,
    /// A writer that goes as a reader: it is counted still.
    is_counted: bool,
    /// What comes when there is nothing left to do for others.
    then: At,
}

/// What a claim wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Beside others that share.
    Shared,
    /// Alone. All that [`Kind::Mutex`] knows.
    Exclusive,
}

/// How a claim stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Nothing is under way, and nothing is held.
    Resting(Ended),
    /// It has asked.
    Asking,
    /// The lock is its.
    Held,
    /// It is giving back what it holds.
    Going,
    /// It is over with this claim, and with its node.
    Failed(AddrError),
}

/// How a claim came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// It never began, or gave the lock back.
    Released,
    /// It was to try only, and others were there.
    Refused,
    /// It had waited for too long; if its node is still in a queue, it is to
    /// be released as left.
    Left {
        /// Whether it is.
        in_queue: bool,
    },
}

/// An operation of a claim, until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(u32);

/// What a claim that holds its lock has to remember.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    own: NodeId,
    pass: NodeId,
    found: Option<u64>,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Resting(Ended),
    Waiting(State),
    Held,
    Failed(AddrError),

    // A writer asks.
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

    // A reader asks.
    Peek,
    Arrive,
    ReaderState,
    ReaderJoin,
    Recheck,

    // Gone before it was its turn.
    LeaveNext(State),
    Leave(State),

    // Giving back, for oneself or for one that has left.
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

impl Kept {
    /// Of one that had its lock by one operation.
    pub(super) const ALONE: Self = Self { own: NodeId::NONE, pass: NodeId::NONE, found: None };
}

impl Claim {
    /// A claim to `lock` that waits, where it has to, in `own`.
    pub const fn new(lock: Lock, own: NodeId) -> Self {
        Self {
            lock,
            own,
            at: At::Resting(Ended::Released),
            step: 0,
            is_posted: false,
            mode: Mode::Shared,
            is_try: false,
            found: None,
            behind: NodeId::NONE,
            chain: NodeId::NONE,
            pass: NodeId::NONE,
            is_counted: false,
            then: At::Held,
        }
    }

    /// Asks for the lock.
    ///
    /// # Panics
    ///
    /// If the claim does not rest.
    pub fn begin(&mut self, mode: Mode) {
        self.ask(mode, false);
    }

    /// Asks for the lock unless others are in the way. It ends without waiting
    /// for them: `Held`, or `Resting` with [`Ended::Refused`] (or, with
    /// phases and if a writer comes at the same moment, [`Ended::Left`]).
    ///
    /// # Panics
    ///
    /// If the claim does not rest.
    pub fn begin_try(&mut self, mode: Mode) {
        self.ask(mode, true);
    }

    /// The same as [`begin`](Self::begin), by whoever has carried out
    /// [`Lock::first_op`] itself, and found `old`.
    ///
    /// # Panics
    ///
    /// If the claim does not rest, or there is no such operation.
    pub fn begin_found(&mut self, mode: Mode, old: u64) {
        self.ask(mode, false);
        assert!(matches!(self.at, At::Arrive | At::Seize), "{self:?} begins otherwise");
        self.advance(old);
    }

    /// Gives back what was had by [`Lock::first_op`] alone, by whoever has
    /// carried out [`Lock::last_op`] itself, and found `old`. The claim needs
    /// no node.
    ///
    /// # Panics
    ///
    /// If the claim does not rest, or there is no such operation.
    pub fn release_found(&mut self, mode: Mode, old: u64) {
        assert!(self.lock.last_op(mode).is_some(), "{self:?} ends otherwise");
        self.ask(mode, false);
        self.then = At::Resting(Ended::Released);
        self.at = if mode == Mode::Shared { At::Depart } else { At::Drop };
        self.advance(old);
    }

    /// Gives the lock back. What was done under it must have completed, at the
    /// remote ends.
    ///
    /// # Panics
    ///
    /// If the lock is not held.
    pub fn release(&mut self) {
        assert!(self.at == At::Held, "{self:?} holds nothing");
        self.then = At::Resting(Ended::Released);
        let kind = self.lock.kind;
        let next = match self.mode {
            _ if kind == Kind::Mutex => self.finishes(),
            Mode::Shared => At::Depart,
            Mode::Exclusive => self.writer_goes(),
        };
        self.go(next);
    }

    /// Gives up waiting. The claim goes on: it will rest, or hold the lock
    /// after all if that had been decided. False: it does not wait.
    pub fn leave(&mut self) -> bool {
        let At::Waiting(state) = self.at else { return false };
        self.go(if self.mode == Mode::Shared { At::LeaveNext(state) } else { At::Leave(state) });
        true
    }

    /// The next operation to post, whose completion must be remote. Whoever
    /// cannot post it keeps it.
    pub fn poll_op(&mut self) -> Option<(StepId, Op)> {
        if self.is_posted {
            return None;
        }
        let op = self.op()?;
        let id = StepId(self.step);
        self.is_posted = true;
        let unflushed = match self.at {
            At::HeadWord => mutant("lock_head_unflushed"),
            At::SetState | At::ReaderState => mutant("lock_state_late"),
            _ => false,
        };
        if unflushed {
            self.handle_completed(id, Ok(0));
        }
        Some((id, op))
    }

    /// An operation has ended. One that ends a second time is ignored.
    pub fn handle_completed(&mut self, id: StepId, result: Result<u64, AddrError>) {
        if !self.is_posted || id.0 != self.step {
            return;
        }
        self.is_posted = false;
        self.step = self.step.wrapping_add(1);
        match result {
            Ok(old) => self.advance(old),
            Err(error) => self.at = At::Failed(error),
        }
    }

    /// The own word that ends the wait, and what it must become.
    pub fn waits_for(&self) -> Option<(RemoteAddr, Until)> {
        let At::Waiting(state) = self.at else { return None };
        Some((self.lock.nodes.state_of(self.own), Until::NotEqual(self.own.state(state))))
    }

    /// That word is now `value`.
    pub fn handle_word(&mut self, value: u64) {
        if let At::Waiting(state) = self.at
            && value != self.own.state(state)
        {
            self.woken(value);
        }
    }

    /// A rank has died, and with it perhaps whoever would have woken us. Where
    /// a claim does not wait, its operations tell.
    pub fn handle_lost(&mut self, rank: Rank) {
        if matches!(self.at, At::Waiting(_)) {
            self.at = At::Failed(AddrError::PeerLost { rank });
        }
    }

    /// The operation that is posted and has not ended.
    pub fn under_way(&self) -> Option<StepId> {
        self.is_posted.then_some(StepId(self.step))
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        match (self.at, self.then) {
            (At::Resting(ended), _) => Standing::Resting(ended),
            (At::Held, _) => Standing::Held,
            (At::Failed(error), _) => Standing::Failed(error),
            (_, At::Resting(_)) => Standing::Going,
            _ => Standing::Asking,
        }
    }

    /// The node that it waits in.
    pub const fn node(&self) -> NodeId {
        self.own
    }

    /// Whether it has none ([`NodeId::NONE`]), and cannot go on without.
    pub(super) const fn lacks_node(&self) -> bool {
        self.own.is_none() && matches!(self.at, At::SetState | At::ReaderState)
    }

    /// Where it waits, of a claim that has no node.
    pub(super) fn waits_in(&mut self, node: NodeId) {
        debug_assert!(self.own.is_none(), "{self:?} has a node");
        self.own = node;
    }

    /// Whether the lock counts it, though it holds nothing: a reader that is to wait.
    pub fn is_blocked_reader(&self) -> bool {
        self.lacks_node() && self.found.is_some()
    }

    /// The lock.
    pub const fn lock(&self) -> Lock {
        self.lock
    }

    /// What a claim that holds its lock has to remember.
    pub(super) fn keep(&self) -> Kept {
        debug_assert_eq!(self.at, At::Held);
        Kept { own: self.own, pass: self.pass, found: self.found }
    }

    /// The claim again.
    pub(super) const fn kept(lock: Lock, mode: Mode, kept: Kept) -> Self {
        let Kept { own, pass, found } = kept;
        Self { at: At::Held, mode, pass, found, ..Self::new(lock, own) }
    }

    fn ask(&mut self, mode: Mode, is_try: bool) {
        assert!(matches!(self.at, At::Resting(_)), "{self:?} is under way");
        let kind = self.lock.kind;
        let mode = if kind == Kind::Mutex { Mode::Exclusive } else { mode };
        (self.mode, self.is_try, self.then) = (mode, is_try, At::Held);
        (self.found, self.behind, self.pass) = (None, NodeId::NONE, NodeId::NONE);
        self.go(match mode {
            _ if kind == Kind::Mutex => At::SetState,
            Mode::Exclusive if kind == Kind::Readers => At::Seize,
            Mode::Exclusive => At::SetState,
            Mode::Shared if is_try && count::has_phases(kind) => At::Peek,
            Mode::Shared => At::Arrive,
        });
    }
}

impl Claim {
    fn future(&self) -> impl Eq + Hash + use<> {
        let Self { lock, own, at, is_posted, mode, is_try, found, .. } = *self;
        let Self { behind, chain, pass, is_counted, then, .. } = *self;
        ((lock, own, at, is_posted, mode, is_try, found), (behind, chain, pass, is_counted, then))
    }
}

impl PartialEq for Claim {
    fn eq(&self, other: &Self) -> bool {
        self.future() == other.future()
    }
}

impl Eq for Claim {}

impl Hash for Claim {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.future().hash(state);
    }
}

impl StepId {
    /// As a word that a tag may carry.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// From such a word.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Released => "given back",
            Self::Refused => "others hold the lock",
            Self::Left { .. } => "the time was over",
        })
    }
}

#[cfg(test)]
mod tests;
