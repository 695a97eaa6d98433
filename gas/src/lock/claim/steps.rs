//! The steps of a claim: the operation of each step, and the next step by the value
//! that it found.

use super::{At, Claim, Ended};
use crate::lock::count;
use crate::lock::kind::{Kind, Mode};
use crate::lock::node::{NodeId, State};
use crate::lock::words::Word;
use tsumugi_core::mem::{RemoteAddr, Width};
use tsumugi_core::op::{Kind as OpKind, Op};
use tsumugi_core::sync::mutant;

impl Claim {
    pub(super) fn go(&mut self, at: At) {
        self.at = at;
        if self.is_try
            && let At::Waiting(_) = at
        {
            self.leave();
        }
    }

    /// The operation of the next step.
    pub(super) fn op(&self) -> Option<Op> {
        let (lock, own, kind) = (&self.lock, self.own, self.lock.kind);
        let nodes = &lock.nodes;
        let count = lock.word(Word::Count);
        let add = |delta| Op::atomic(OpKind::FetchAdd, count, delta);
        let cas = |from: u64, to: u64| Op::compare_swap(count, from, to);
        let look = |at| Op::get_word(at, Width::W8);
        let store = |at, value| Op::put_word(at, Width::W8, value);
        let swap = |at, value: u64| Op::atomic(OpKind::Swap, at, value);
        // Wakes the claim that waits in the node in state `from`.
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
            At::Drain => add(count::drain(self.found.expect("the count was read"))),
            At::TryJoin => Op::compare_swap(lock.word(Word::Tail), 0, own.to_bits()),
            At::Peek | At::Recheck | At::TryLook | At::LookBits => look(count),
            At::TryTake(seen) => cas(seen, seen | count::THERE),
            At::Arrive => add(count::arrive(kind)),
            At::ReaderJoin => {
                swap(self.readers(self.found.expect("the count was read")), own.to_bits())
            }
            At::LeaveNext(_) => store(nodes.next_of(own), self.behind.to_bits()),
            At::Leave(state) => {
                let (from, to) = (own.state(state), own.state(State::Left));
                Op::compare_swap(nodes.state_of(own), from, to)
            }
            At::Depart => add(count::depart(kind)),
            At::FindHead if mutant("lock_own_next_woken") => look(nodes.next_of(own)),
            At::FindHead => look(lock.word(Word::Head)),
            At::WakeHead(node) => wake(node, State::Head, State::In),
            At::LookNext(node) => look(nodes.next_of(node)),
            At::WakeGiven(_, node) => wake(node, State::Queued, State::In),
            At::Drop if count::has_phases(kind) => {
                add(count::leave(self.found.expect("the count was read")))
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

    /// Goes on after the operation of this step, which has found `old`.
    pub(super) fn advance(&mut self, old: u64) {
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
            // Only a predecessor leaves this value: the state is set already.
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
                let before = self.found.expect("the count was read");
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
                let found = self.found.expect("the count was read");
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
                let found = self.found.expect("the count was read");
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
            At::FindHead if mutant("lock_own_next_woken") => match NodeId::named_by(old) {
                NodeId::NONE => self.finishes(),
                next => At::WakeHead(next),
            },
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

    /// Goes on after the own word has become `value`, which is another state than
    /// the one the claim waits in.
    pub(super) fn woken(&mut self, value: u64) {
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

    /// Goes on as the first of the writers' queue. `woken`: the own state word is
    /// `Head`.
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

    /// The first step of a writer that gives the lock back.
    pub(super) fn writer_goes(&self) -> At {
        match self.lock.kind {
            Kind::Writers if !mutant("lock_preference_lost") => At::LookNext(self.pass),
            Kind::Writers | Kind::Neutral => self.looks_at_bits(),
            _ => At::Drop,
        }
    }

    const fn looks_at_bits(&self) -> At {
        if self.found.is_none() { At::LookBits } else { At::Drop }
    }

    /// The list of the readers that came when the count was `found`.
    fn readers(&self, found: u64) -> RemoteAddr {
        let second = count::has_phases(self.lock.kind)
            && found & count::PHASE != 0
            && !mutant("lock_phase_ignored");
        self.lock.word(if second { Word::OtherReaders } else { Word::Readers })
    }

    fn has_left(&self, node: NodeId, old: u64) -> bool {
        old == node.state(State::Left) && !mutant("lock_left_unnoticed")
    }

    /// `node` is out of the queue; if it is not the own node, its claim has left it,
    /// and it is freed.
    fn frees(&mut self, node: NodeId, next: NodeId, given: bool) -> At {
        if node == self.own { self.goes_on(next, given) } else { At::Free(node, next, given) }
    }

    /// Acts for `next`, if its claim has left it too.
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

    /// Nothing is left to do for other claims here. Passes the writers' queue on, if
    /// that is due.
    pub(super) fn finishes(&mut self) -> At {
        if core::mem::take(&mut self.is_counted) {
            return At::Depart;
        }
        match self.then {
            At::Resting(_) if !self.pass.is_none() => At::PassTail(core::mem::take(&mut self.pass)),
            then => then,
        }
    }
}
