//! The steps of a claim: the operation of each step, and the next step by the value
//! that it found.

use super::{ClaimEnd, ClaimStep, LockClaim};
use crate::lock::count;
use crate::lock::kind::{LockKind, LockMode};
use crate::lock::node::{NodeId, NodeState};
use crate::lock::words::LockWord;
use tsumugi_core::mem::{RemoteAddr, Width};
use tsumugi_core::mutate;
use tsumugi_core::op::{Kind as OpKind, Op};

impl LockClaim {
    pub(super) fn go(&mut self, at: ClaimStep) {
        self.at = at;
        if self.is_try
            && let ClaimStep::Waiting(_) = at
        {
            self.leave();
        }
    }

    /// The operation of the next step.
    pub(super) fn op(&self) -> Option<Op> {
        let (lock, own, kind) = (&self.lock, self.own, self.lock.kind);
        let nodes = &lock.nodes;
        let count = lock.word(LockWord::Count);
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
            ClaimStep::Resting(_)
            | ClaimStep::Waiting(_)
            | ClaimStep::Held
            | ClaimStep::Failed(_) => return None,
            ClaimStep::Seize | ClaimStep::HeadSeize => cas(0, count::INSIDE),
            ClaimStep::SetState | ClaimStep::ReaderState => {
                store(nodes.state_of(own), own.state(NodeState::Queued))
            }
            ClaimStep::SetNext => store(nodes.next_of(own), own.nobody_yet()),
            ClaimStep::Join => swap(lock.word(LockWord::Tail), own.to_bits()),
            ClaimStep::Link(before) => {
                Op::compare_swap(nodes.next_of(before), before.nobody_yet(), own.to_bits())
            }
            ClaimStep::HeadState => store(nodes.state_of(own), own.state(NodeState::Head)),
            ClaimStep::HeadWord => store(lock.word(LockWord::Head), own.to_bits()),
            ClaimStep::Announce => add(count::INTERESTED),
            ClaimStep::Take | ClaimStep::HandOver => cas(count::INTERESTED, count::INSIDE),
            ClaimStep::Enter(_) => add(count::THERE),
            ClaimStep::Drain => add(count::drain(self.found.expect("the count was read"))),
            ClaimStep::TryJoin => Op::compare_swap(lock.word(LockWord::Tail), 0, own.to_bits()),
            ClaimStep::Peek | ClaimStep::Recheck | ClaimStep::TryLook | ClaimStep::LookBits => {
                look(count)
            }
            ClaimStep::TryTake(seen) => cas(seen, seen | count::THERE),
            ClaimStep::Arrive => add(count::arrive(kind)),
            ClaimStep::ReaderJoin => {
                swap(self.readers(self.found.expect("the count was read")), own.to_bits())
            }
            ClaimStep::LeaveNext(_) => store(nodes.next_of(own), self.behind.to_bits()),
            ClaimStep::Leave(state) => {
                let (from, to) = (own.state(state), own.state(NodeState::Left));
                Op::compare_swap(nodes.state_of(own), from, to)
            }
            ClaimStep::Depart => add(count::depart(kind)),
            ClaimStep::FindHead => mutate!("lock_own_next_woken":
                look(lock.word(LockWord::Head)) => look(nodes.next_of(own))),
            ClaimStep::WakeHead(node) => wake(node, NodeState::Head, NodeState::In),
            ClaimStep::LookNext(node) => look(nodes.next_of(node)),
            ClaimStep::WakeGiven(_, node) => wake(node, NodeState::Queued, NodeState::In),
            ClaimStep::Drop if count::has_phases(kind) => {
                add(count::leave(self.found.expect("the count was read")))
            }
            ClaimStep::Drop => mutate!("lock_sweep_unguarded":
                cas(count::INSIDE, 0) => add(count::INSIDE.wrapping_neg())),
            ClaimStep::Downgrade => add(count::arrive(kind).wrapping_sub(count::INSIDE)),
            ClaimStep::TakeReaders(found) => swap(self.readers(found), 0),
            ClaimStep::WakeReader(node) => wake(node, NodeState::Queued, NodeState::In),
            ClaimStep::LeftNext(node) => look(nodes.next_of(node)),
            ClaimStep::LeftFree(node) | ClaimStep::Free(node, ..) => {
                store(nodes.state_of(node), node.state(NodeState::Free))
            }
            ClaimStep::PassTail(node) => {
                Op::compare_swap(lock.word(LockWord::Tail), node.to_bits(), 0u64)
            }
            ClaimStep::PassNext(node) => swap(nodes.next_of(node), node.passed_on()),
            ClaimStep::WakeNext(_, node) => wake(node, NodeState::Queued, NodeState::Head),
        })
    }

    /// Goes on after the operation of this step, which has found `old`.
    pub(super) fn advance(&mut self, old: u64) {
        let (own, kind) = (self.own, self.lock.kind);
        let next = match self.at {
            ClaimStep::Resting(_)
            | ClaimStep::Waiting(_)
            | ClaimStep::Held
            | ClaimStep::Failed(_) => return,

            ClaimStep::Seize if old == 0 => ClaimStep::Held,
            ClaimStep::Seize if self.is_try => ClaimStep::Resting(ClaimEnd::Refused),
            ClaimStep::Seize => ClaimStep::SetState,
            ClaimStep::SetState => mutate!("lock_next_not_reset":
                ClaimStep::SetNext => ClaimStep::Join),
            ClaimStep::SetNext if self.is_try => ClaimStep::TryJoin,
            ClaimStep::SetNext => ClaimStep::Join,
            ClaimStep::Join => match NodeId::from_bits(old) {
                NodeId::NONE => self.leads(false),
                before => ClaimStep::Link(before),
            },
            ClaimStep::Link(before) if old == before.nobody_yet() => {
                ClaimStep::Waiting(NodeState::Queued)
            }
            ClaimStep::Link(_) => self.leads(false),
            ClaimStep::HeadSeize if old == 0 => ClaimStep::Held,
            // Only a predecessor leaves this value: the state is set already.
            ClaimStep::HeadSeize => ClaimStep::HeadWord,
            ClaimStep::HeadState => ClaimStep::HeadWord,
            ClaimStep::HeadWord if count::has_phases(kind) => ClaimStep::Drain,
            ClaimStep::HeadWord => ClaimStep::Announce,
            ClaimStep::Announce => {
                let was_free = mutate!("lock_new_value_tested":
                    old == 0 => old == count::INTERESTED);
                if was_free { ClaimStep::Take } else { ClaimStep::Waiting(NodeState::Head) }
            }
            ClaimStep::Take => {
                let taken = mutate!("lock_take_unchecked": has_swapped(old) => true);
                if taken { ClaimStep::Held } else { ClaimStep::Waiting(NodeState::Head) }
            }
            ClaimStep::Enter(is_head) => {
                self.found = Some(old);
                if count::readers(old) == 0 {
                    self.found = Some(old | count::THERE);
                    ClaimStep::Held
                } else if is_head {
                    ClaimStep::HeadWord
                } else {
                    ClaimStep::HeadState
                }
            }
            ClaimStep::Drain => {
                let before = self.found.expect("the count was read");
                self.found = Some(before | count::THERE | count::DRAINING);
                let is_drained = mutate!("lock_drain_unasked":
                    count::is_drained(before, old) => false);
                if is_drained { ClaimStep::Held } else { ClaimStep::Waiting(NodeState::Head) }
            }
            ClaimStep::TryJoin if old != 0 => ClaimStep::Resting(ClaimEnd::Refused),
            ClaimStep::TryJoin => {
                self.pass = own;
                if kind == LockKind::Mutex { ClaimStep::Held } else { ClaimStep::TryLook }
            }
            ClaimStep::TryLook if count::has_readers(kind, old) => self.refuses(),
            ClaimStep::TryLook => ClaimStep::TryTake(old),
            ClaimStep::TryTake(seen) if old == seen => {
                self.found = Some(seen | count::THERE);
                ClaimStep::Held
            }
            ClaimStep::TryTake(_) => self.refuses(),

            ClaimStep::Peek if count::blocks(kind, old) => ClaimStep::Resting(ClaimEnd::Refused),
            ClaimStep::Peek => ClaimStep::Arrive,
            ClaimStep::Arrive => {
                self.found = Some(old);
                if !count::blocks(kind, old) {
                    ClaimStep::Held
                } else if self.is_try && !count::has_phases(kind) {
                    self.then = ClaimStep::Resting(ClaimEnd::Refused);
                    ClaimStep::Depart
                } else {
                    ClaimStep::ReaderState
                }
            }
            ClaimStep::ReaderState => mutate!("lock_recheck_early":
                ClaimStep::ReaderJoin => ClaimStep::Recheck),
            ClaimStep::ReaderJoin => {
                self.behind = NodeId::from_bits(old);
                self.then = ClaimStep::Waiting(NodeState::Queued);
                let next = mutate!("lock_recheck_skipped":
                    ClaimStep::Recheck => ClaimStep::Waiting(NodeState::Queued));
                let next = mutate!("lock_recheck_early":
                    next => ClaimStep::Waiting(NodeState::Queued));
                mutate!("lock_next_before_wait":
                    next => match core::mem::take(&mut self.behind) {
                        NodeId::NONE => next,
                        behind => ClaimStep::WakeReader(behind),
                    }
                )
            }
            ClaimStep::Recheck => {
                let found = self.found.expect("the count was read");
                if count::let_in(kind, found, old) {
                    mutate!("lock_recheck_early": ClaimStep::TakeReaders(found) => ClaimStep::Held)
                } else {
                    mutate!("lock_recheck_early":
                        ClaimStep::Waiting(NodeState::Queued) => ClaimStep::ReaderJoin)
                }
            }
            ClaimStep::LeaveNext(state) => ClaimStep::Leave(state),
            ClaimStep::Leave(state) if old == own.state(state) => {
                ClaimStep::Resting(ClaimEnd::Left { in_queue: true })
            }
            ClaimStep::Leave(_) => {
                self.is_try = false;
                self.woken(old);
                return;
            }

            ClaimStep::Depart if count::was_last(kind, old) => {
                if count::has_phases(kind) {
                    ClaimStep::FindHead
                } else {
                    ClaimStep::HandOver
                }
            }
            ClaimStep::Depart => self.next_of_chain(),
            ClaimStep::HandOver => {
                let taken = mutate!("lock_hand_over_unchecked": has_swapped(old) => true);
                if taken { ClaimStep::FindHead } else { self.finishes() }
            }
            ClaimStep::FindHead => mutate!("lock_own_next_woken":
                ClaimStep::WakeHead(NodeId::from_bits(old)) => match NodeId::named_by(old) {
                    NodeId::NONE => self.finishes(),
                    next => ClaimStep::WakeHead(next),
                }
            ),
            ClaimStep::WakeHead(node) if self.has_left(node, old) => {
                (self.pass, self.found) = (node, None);
                self.writer_goes()
            }
            ClaimStep::WakeHead(_) => self.finishes(),
            ClaimStep::LookNext(node) => match NodeId::named_by(old) {
                NodeId::NONE => self.looks_at_bits(),
                next => ClaimStep::WakeGiven(node, next),
            },
            ClaimStep::WakeGiven(node, next) => {
                self.pass = NodeId::NONE;
                let left = self.has_left(next, old);
                self.frees(node, if left { next } else { NodeId::NONE }, true)
            }
            ClaimStep::LookBits => {
                self.found = Some(old);
                ClaimStep::Drop
            }
            ClaimStep::Drop if !count::has_phases(kind) => mutate!("lock_sweep_unguarded":
                if old == count::INSIDE { self.finishes() } else { ClaimStep::Downgrade }
                => match old {
                    _ if count::has_readers(kind, old) => ClaimStep::TakeReaders(old),
                    _ if old & count::INTERESTED != 0 => ClaimStep::HandOver,
                    _ => self.finishes(),
                }
            ),
            ClaimStep::Drop | ClaimStep::Downgrade => {
                self.is_counted = self.at == ClaimStep::Downgrade;
                let has_readers = mutate!("lock_readers_not_woken":
                    count::has_readers(kind, old) => false);
                if has_readers { ClaimStep::TakeReaders(old) } else { self.finishes() }
            }
            ClaimStep::TakeReaders(_) => match NodeId::from_bits(old) {
                NodeId::NONE => self.finishes(),
                node => ClaimStep::WakeReader(node),
            },
            ClaimStep::WakeReader(node) if self.has_left(node, old) => ClaimStep::LeftNext(node),
            ClaimStep::WakeReader(_) => self.finishes(),
            ClaimStep::LeftNext(node) => {
                self.chain = NodeId::from_bits(old);
                ClaimStep::LeftFree(node)
            }
            ClaimStep::LeftFree(_) => mutate!("lock_left_counted":
                ClaimStep::Depart => self.next_of_chain()),
            ClaimStep::PassTail(node) if old == node.to_bits() => {
                self.frees(node, NodeId::NONE, false)
            }
            ClaimStep::PassTail(node) => mutate!("lock_link_lost":
                ClaimStep::PassNext(node) => self.frees(node, NodeId::NONE, false)),
            ClaimStep::PassNext(node) => match NodeId::named_by(old) {
                NodeId::NONE => self.frees(node, NodeId::NONE, false),
                next => ClaimStep::WakeNext(node, next),
            },
            ClaimStep::WakeNext(node, next) => {
                let left = self.has_left(next, old);
                self.frees(node, if left { next } else { NodeId::NONE }, false)
            }
            ClaimStep::Free(_, next, given) => self.goes_on(next, given),
        };
        self.go(next);
    }

    /// Goes on after the own word has become `value`, which is another state than
    /// the one the claim waits in.
    pub(super) fn woken(&mut self, value: u64) {
        self.then = ClaimStep::Held;
        let next = if value == self.own.state(NodeState::Head) {
            self.leads(true)
        } else if !self.behind.is_none() {
            ClaimStep::WakeReader(core::mem::take(&mut self.behind))
        } else {
            if self.mode == LockMode::Exclusive {
                self.pass = self.own;
            }
            ClaimStep::Held
        };
        self.go(next);
    }

    /// Goes on as the first of the writers' queue. `woken`: the own state word is
    /// `Head`.
    fn leads(&mut self, woken: bool) -> ClaimStep {
        self.pass = self.own;
        match self.lock.kind {
            LockKind::Mutex => ClaimStep::Held,
            LockKind::Readers if woken => ClaimStep::HeadSeize,
            LockKind::Readers => ClaimStep::HeadState,
            LockKind::Neutral | LockKind::Writers => ClaimStep::Enter(woken),
        }
    }

    fn refuses(&mut self) -> ClaimStep {
        self.then = ClaimStep::Resting(ClaimEnd::Refused);
        self.finishes()
    }

    /// The first step of a writer that gives the lock back.
    pub(super) fn writer_goes(&self) -> ClaimStep {
        match self.lock.kind {
            LockKind::Writers => mutate!("lock_preference_lost":
                ClaimStep::LookNext(self.pass) => self.looks_at_bits()),
            LockKind::Neutral => self.looks_at_bits(),
            _ => ClaimStep::Drop,
        }
    }

    const fn looks_at_bits(&self) -> ClaimStep {
        if self.found.is_none() { ClaimStep::LookBits } else { ClaimStep::Drop }
    }

    /// The list of the readers that came when the count was `found`.
    fn readers(&self, found: u64) -> RemoteAddr {
        let second = count::has_phases(self.lock.kind) && found & count::PHASE != 0;
        let second = mutate!("lock_phase_ignored": second => false);
        self.lock.word(if second { LockWord::OtherReaders } else { LockWord::Readers })
    }

    fn has_left(&self, node: NodeId, old: u64) -> bool {
        mutate!("lock_left_unnoticed": old == node.state(NodeState::Left) => false)
    }

    /// `node` is out of the queue; if it is not the own node, its claim has left it,
    /// and it is freed.
    fn frees(&mut self, node: NodeId, next: NodeId, given: bool) -> ClaimStep {
        if node == self.own {
            self.goes_on(next, given)
        } else {
            ClaimStep::Free(node, next, given)
        }
    }

    /// Acts for `next`, if its claim has left it too.
    fn goes_on(&mut self, next: NodeId, given: bool) -> ClaimStep {
        match next {
            NodeId::NONE => self.finishes(),
            next if given => {
                (self.pass, self.found) = (next, None);
                self.writer_goes()
            }
            next => ClaimStep::PassTail(next),
        }
    }

    fn next_of_chain(&mut self) -> ClaimStep {
        match core::mem::take(&mut self.chain) {
            NodeId::NONE => self.finishes(),
            node => ClaimStep::WakeReader(node),
        }
    }

    /// Nothing is left to do for other claims here. Passes the writers' queue on, if
    /// that is due.
    pub(super) fn finishes(&mut self) -> ClaimStep {
        if core::mem::take(&mut self.is_counted) {
            return ClaimStep::Depart;
        }
        match self.then {
            ClaimStep::Resting(_) if !self.pass.is_none() => {
                ClaimStep::PassTail(core::mem::take(&mut self.pass))
            }
            then => then,
        }
    }
}

/// Whether a compare-and-swap of the count from `INTERESTED` has changed it: `old` is
/// the value that it found, and no boolean.
fn has_swapped(old: u64) -> bool {
    mutate!("lock_cas_as_boolean": old == count::INTERESTED => old != 0)
}
