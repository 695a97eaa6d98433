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

use super::count;
use super::node::{NodeId, State};
use super::{Kind, Lock, Word};
use core::fmt;
use core::hash::{Hash, Hasher};
use tsumugi_core::mem::{AddrError, Rank, RemoteAddr, Width};
use tsumugi_core::op::{Kind as OpKind, Op};
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

    /// The lock.
    pub const fn lock(&self) -> Lock {
        self.lock
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

    fn go(&mut self, at: At) {
        self.at = at;
        if self.is_try
            && let At::Waiting(_) = at
        {
            self.leave();
        }
    }

    /// The operation of the step that comes next.
    fn op(&self) -> Option<Op> {
        let (lock, own, kind) = (&self.lock, self.own, self.lock.kind);
        let nodes = &lock.nodes;
        let count = lock.word(Word::Count);
        let add = |delta| Op::atomic(OpKind::FetchAdd, count, delta);
        let cas = |from: u64, to: u64| Op::compare_swap(count, from, to);
        let look = |at| Op::get_word(at, Width::W8);
        let store = |at, value| Op::put_word(at, Width::W8, value);
        let swap = |at, value: u64| Op::atomic(OpKind::Swap, at, value);
        // Wakes whoever waits there in state `from`.
        let wake = |node: NodeId, from, to| {
            let (from, to) = (node.state(from), node.state(to));
            Op::compare_swap(nodes.state_of(node), from, to).notifying()
        };
        Some(match self.at {
            At::Resting(_) | At::Waiting(_) | At::Held | At::Failed(_) => return None,
            At::Seize | At::HeadSeize => cas(0, count::INSIDE),
            At::SetState | At::ReaderState => store(nodes.state_of(own), own.state(State::Queued)),
            At::SetNext => store(nodes.next_of(own), own.nobody_yet()),
            At::Join => swap(lock.word(Word::Tail), own.to_bits()),
            At::Link(before) => {
                Op::compare_swap(nodes.next_of(before), before.nobody_yet(), own.to_bits())
            }
            At::HeadState => store(nodes.state_of(own), own.state(State::Head)),
            At::HeadWord => store(lock.word(Word::Head), own.to_bits()),
            At::Announce => add(count::INTERESTED),
            At::Take | At::HandOver => cas(count::INTERESTED, count::INSIDE),
            At::Enter(_) => add(count::THERE),
            At::Drain => add(count::drain(self.found.expect("it has entered"))),
            At::TryJoin => Op::compare_swap(lock.word(Word::Tail), 0, own.to_bits()),
            At::Peek | At::Recheck | At::TryLook | At::LookBits => look(count),
            At::TryTake(seen) => cas(seen, seen | count::THERE),
            At::Arrive => add(count::arrive(kind)),
            At::ReaderJoin => swap(self.readers(self.found.expect("it has come")), own.to_bits()),
            At::LeaveNext(_) => store(nodes.next_of(own), self.behind.to_bits()),
            At::Leave(state) => {
                let (from, to) = (own.state(state), own.state(State::Left));
                Op::compare_swap(nodes.state_of(own), from, to)
            }
            At::Depart => add(count::depart(kind)),
            At::FindHead => look(lock.word(Word::Head)),
            At::WakeHead(node) => wake(node, State::Head, State::In),
            At::LookNext(node) => look(nodes.next_of(node)),
            At::WakeGiven(_, node) => wake(node, State::Queued, State::In),
            At::Drop if count::has_phases(kind) => {
                add(count::leave(self.found.expect("it has looked")))
            }
            At::Drop if mutant("lock_sweep_unguarded") => add(count::INSIDE.wrapping_neg()),
            At::Drop => cas(count::INSIDE, 0),
            At::Downgrade => add(count::arrive(kind).wrapping_sub(count::INSIDE)),
            At::TakeReaders(found) => swap(self.readers(found), 0),
            At::WakeReader(node) => wake(node, State::Queued, State::In),
            At::LeftNext(node) => look(nodes.next_of(node)),
            At::LeftFree(node) | At::Free(node, ..) => {
                store(nodes.state_of(node), node.state(State::Free))
            }
            At::PassTail(node) => Op::compare_swap(lock.word(Word::Tail), node.to_bits(), 0u64),
            At::PassNext(node) => swap(nodes.next_of(node), node.passed_on()),
            At::WakeNext(_, node) => wake(node, State::Queued, State::Head),
        })
    }

    /// The operation of this step has found `old`.
    fn advance(&mut self, old: u64) {
        let (own, kind) = (self.own, self.lock.kind);
        let next = match self.at {
            At::Resting(_) | At::Waiting(_) | At::Held | At::Failed(_) => return,

            At::Seize if old == 0 => At::Held,
            At::Seize if self.is_try => At::Resting(Ended::Refused),
            At::Seize => At::SetState,
            At::SetState if mutant("lock_next_not_reset") => At::Join,
            At::SetState => At::SetNext,
            At::SetNext if self.is_try => At::TryJoin,
            At::SetNext => At::Join,
            At::Join => match NodeId::from_bits(old) {
                NodeId::NONE => self.leads(false),
                before => At::Link(before),
            },
            At::Link(before) if old == before.nobody_yet() => At::Waiting(State::Queued),
            At::Link(_) => self.leads(false),
            At::HeadSeize if old == 0 => At::Held,
            // Only a predecessor leaves it so: the state is set already.
            At::HeadSeize => At::HeadWord,
            At::HeadState => At::HeadWord,
            At::HeadWord if count::has_phases(kind) => At::Drain,
            At::HeadWord => At::Announce,
            At::Announce => {
                let was_free = if mutant("lock_new_value_tested") {
                    old == count::INTERESTED
                } else {
                    old == 0
                };
                if was_free { At::Take } else { At::Waiting(State::Head) }
            }
            At::Take => {
                let taken = old == count::INTERESTED
                    || mutant("lock_take_unchecked")
                    || mutant("lock_cas_as_boolean") && old != 0;
                if taken { At::Held } else { At::Waiting(State::Head) }
            }
            At::Enter(is_head) => {
                self.found = Some(old);
                if count::readers(old) == 0 {
                    self.found = Some(old | count::THERE);
                    At::Held
                } else if is_head {
                    At::HeadWord
                } else {
                    At::HeadState
                }
            }
            At::Drain => {
                let before = self.found.expect("it has entered");
                self.found = Some(before | count::THERE | count::DRAINING);
                if count::is_drained(before, old) && !mutant("lock_drain_unasked") {
                    At::Held
                } else {
                    At::Waiting(State::Head)
                }
            }
            At::TryJoin if old != 0 => At::Resting(Ended::Refused),
            At::TryJoin => {
                self.pass = own;
                if kind == Kind::Mutex { At::Held } else { At::TryLook }
            }
            At::TryLook if count::has_readers(kind, old) => self.refuses(),
            At::TryLook => At::TryTake(old),
            At::TryTake(seen) if old == seen => {
                self.found = Some(seen | count::THERE);
                At::Held
            }
            At::TryTake(_) => self.refuses(),

            At::Peek if count::blocks(kind, old) => At::Resting(Ended::Refused),
            At::Peek => At::Arrive,
            At::Arrive => {
                self.found = Some(old);
                if !count::blocks(kind, old) {
                    At::Held
                } else if self.is_try && !count::has_phases(kind) {
                    self.then = At::Resting(Ended::Refused);
                    At::Depart
                } else {
                    At::ReaderState
                }
            }
            At::ReaderState if mutant("lock_recheck_early") => At::Recheck,
            At::ReaderState => At::ReaderJoin,
            At::Recheck if mutant("lock_recheck_early") => {
                let found = self.found.expect("it has come");
                if count::let_in(kind, found, old) { At::Held } else { At::ReaderJoin }
            }
            At::ReaderJoin => {
                self.behind = NodeId::from_bits(old);
                self.then = At::Waiting(State::Queued);
                if mutant("lock_next_before_wait") && !self.behind.is_none() {
                    At::WakeReader(core::mem::take(&mut self.behind))
                } else if mutant("lock_recheck_skipped") || mutant("lock_recheck_early") {
                    At::Waiting(State::Queued)
                } else {
                    At::Recheck
                }
            }
            At::Recheck => {
                let found = self.found.expect("it has come");
                if count::let_in(kind, found, old) {
                    At::TakeReaders(found)
                } else {
                    At::Waiting(State::Queued)
                }
            }

            At::LeaveNext(state) => At::Leave(state),
            At::Leave(state) if old == own.state(state) => {
                At::Resting(Ended::Left { in_queue: true })
            }
            At::Leave(_) => {
                self.is_try = false;
                self.woken(old);
                return;
            }

            At::Depart if count::was_last(kind, old) => {
                if count::has_phases(kind) {
                    At::FindHead
                } else {
                    At::HandOver
                }
            }
            At::Depart => self.next_of_chain(),
            At::HandOver => {
                let taken = old == count::INTERESTED
                    || mutant("lock_hand_over_unchecked")
                    || mutant("lock_cas_as_boolean") && old != 0;
                if taken { At::FindHead } else { self.finishes() }
            }
            At::FindHead => At::WakeHead(NodeId::from_bits(old)),
            At::WakeHead(node) if self.has_left(node, old) => {
                (self.pass, self.found) = (node, None);
                self.writer_goes()
            }
            At::WakeHead(_) => self.finishes(),
            At::LookNext(node) => match NodeId::named_by(old) {
                NodeId::NONE => self.looks_at_bits(),
                next => At::WakeGiven(node, next),
            },
            At::WakeGiven(node, next) => {
                self.pass = NodeId::NONE;
                let left = self.has_left(next, old);
                self.frees(node, if left { next } else { NodeId::NONE }, true)
            }
            At::LookBits => {
                self.found = Some(old);
                At::Drop
            }
            At::Drop if !count::has_phases(kind) && !mutant("lock_sweep_unguarded") => {
                if old == count::INSIDE { self.finishes() } else { At::Downgrade }
            }
            At::Drop | At::Downgrade => {
                self.is_counted = self.at == At::Downgrade;
                if count::has_readers(kind, old) && !mutant("lock_readers_not_woken") {
                    At::TakeReaders(old)
                } else if old & count::INTERESTED != 0 && mutant("lock_sweep_unguarded") {
                    At::HandOver
                } else {
                    self.finishes()
                }
            }
            At::TakeReaders(_) => match NodeId::from_bits(old) {
                NodeId::NONE => self.finishes(),
                node => At::WakeReader(node),
            },
            At::WakeReader(node) if self.has_left(node, old) => At::LeftNext(node),
            At::WakeReader(_) => self.finishes(),
            At::LeftNext(node) => {
                self.chain = NodeId::from_bits(old);
                At::LeftFree(node)
            }
            At::LeftFree(_) if mutant("lock_left_counted") => self.next_of_chain(),
            At::LeftFree(_) => At::Depart,
            At::PassTail(node) if old == node.to_bits() || mutant("lock_link_lost") => {
                self.frees(node, NodeId::NONE, false)
            }
            At::PassTail(node) => At::PassNext(node),
            At::PassNext(node) => match NodeId::named_by(old) {
                NodeId::NONE => self.frees(node, NodeId::NONE, false),
                next => At::WakeNext(node, next),
            },
            At::WakeNext(node, next) => {
                let left = self.has_left(next, old);
                self.frees(node, if left { next } else { NodeId::NONE }, false)
            }
            At::Free(_, next, given) => self.goes_on(next, given),
        };
        self.go(next);
    }

    /// The own word has become `value`, which is not what it waits in.
    fn woken(&mut self, value: u64) {
        self.then = At::Held;
        let next = if value == self.own.state(State::Head) {
            self.leads(true)
        } else if !self.behind.is_none() {
            At::WakeReader(core::mem::take(&mut self.behind))
        } else {
            if self.mode == Mode::Exclusive {
                self.pass = self.own;
            }
            At::Held
        };
        self.go(next);
    }

    /// First of the writers' queue; `woken`: its own state says so.
    fn leads(&mut self, woken: bool) -> At {
        self.pass = self.own;
        match self.lock.kind {
            Kind::Mutex => At::Held,
            Kind::Readers if woken => At::HeadSeize,
            Kind::Readers => At::HeadState,
            Kind::Neutral | Kind::Writers => At::Enter(woken),
        }
    }

    fn refuses(&mut self) -> At {
        self.then = At::Resting(Ended::Refused);
        self.finishes()
    }

    /// The first step of a writer's way out.
    fn writer_goes(&self) -> At {
        match self.lock.kind {
            Kind::Writers if !mutant("lock_preference_lost") => At::LookNext(self.pass),
            Kind::Writers | Kind::Neutral => self.looks_at_bits(),
            _ => At::Drop,
        }
    }

    const fn looks_at_bits(&self) -> At {
        if self.found.is_none() { At::LookBits } else { At::Drop }
    }

    /// Where those wait that came when the count was `found`.
    fn readers(&self, found: u64) -> RemoteAddr {
        let second = count::has_phases(self.lock.kind)
            && found & count::PHASE != 0
            && !mutant("lock_phase_ignored");
        self.lock.word(if second { Word::OtherReaders } else { Word::Readers })
    }

    fn has_left(&self, node: NodeId, old: u64) -> bool {
        old == node.state(State::Left) && !mutant("lock_left_unnoticed")
    }

    /// `node` is out of the queue; if it is one that had left, it is free.
    fn frees(&mut self, node: NodeId, next: NodeId, given: bool) -> At {
        if node == self.own { self.goes_on(next, given) } else { At::Free(node, next, given) }
    }

    /// Acts for `next`, if that has left too.
    fn goes_on(&mut self, next: NodeId, given: bool) -> At {
        match next {
            NodeId::NONE => self.finishes(),
            next if given => {
                (self.pass, self.found) = (next, None);
                self.writer_goes()
            }
            next => At::PassTail(next),
        }
    }

    fn next_of_chain(&mut self) -> At {
        match core::mem::take(&mut self.chain) {
            NodeId::NONE => self.finishes(),
            node => At::WakeReader(node),
        }
    }

    /// Nothing is left to do here: the queue is passed on, if that is due.
    fn finishes(&mut self) -> At {
        if core::mem::take(&mut self.is_counted) {
            return At::Depart;
        }
        match self.then {
            At::Resting(_) if !self.pass.is_none() => At::PassTail(core::mem::take(&mut self.pass)),
            then => then,
        }
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
