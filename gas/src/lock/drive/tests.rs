//! The operations of blocking claims on the lock's words, with one rank on its own
//! memory.

extern crate std;

use super::super::node::NodeState;
use super::super::{LOCK_BYTES, LockKind, NodePool, NodeSlot, NodeTable, count};
use super::*;
use core::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::vec::Vec;
use tsumugi_core::mem::{Rank, RegionKey};
use tsumugi_core::op::Kind as OpKind;

const LOST: AddrError = AddrError::PeerLost { rank: Rank(7) };

/// Words of one rank that no other rank changes; the test sets the result of each
/// wait.
#[derive(Default)]
struct Words {
    words: RefCell<[u64; 24]>,
    /// The results of waits, and the limits that the waits had.
    waits: RefCell<VecDeque<Option<u64>>>,
    limits: RefCell<Vec<Option<Duration>>>,
    /// The results of operations, before those that the words give.
    finds: RefCell<VecDeque<u64>>,
    carried: Cell<usize>,
    /// The caller's processor can change the words.
    is_near: bool,
    /// The number of the operation that fails.
    fails: Cell<usize>,
}

impl Words {
    fn swap(&self, at: RemoteAddr, change: impl FnOnce(u64) -> u64) -> u64 {
        let word = &mut self.words.borrow_mut()[at.offset as usize / 8];
        core::mem::replace(word, change(*word))
    }
}

impl LockDriver for Words {
    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        self.carried.set(self.carried.get() + 1);
        if self.carried.get() == self.fails.get() {
            return Err(LOST);
        }
        if let Some(found) = self.finds.borrow_mut().pop_front() {
            return Ok(found);
        }
        Ok(self.swap(op.remote, |old| match op.kind {
            OpKind::GetWord => old,
            OpKind::FetchAdd => old.wrapping_add(op.operand()),
            OpKind::CompareSwap if old != op.compare() => old,
            _ => op.operand(),
        }))
    }

    fn try_add(&self, at: RemoteAddr, delta: u64) -> Option<u64> {
        self.is_near.then(|| self.swap(at, |old| old.wrapping_add(delta)))
    }

    fn try_swap(&self, at: RemoteAddr, expected: u64, new: u64) -> Option<u64> {
        self.is_near.then(|| self.swap(at, |old| if old == expected { new } else { old }))
    }

    fn wait(
        &self,
        _: RemoteAddr,
        _: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        self.limits.borrow_mut().push(limit);
        Ok(self.waits.borrow_mut().pop_front().expect("no further wait"))
    }
}

fn lock_of(kind: LockKind) -> Lock {
    let key = RegionKey::new(0, 1);
    let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
    Lock { home, nodes: NodeTable { key, offset: LOCK_BYTES }, kind }
}

/// The node with that number.
fn node(index: usize) -> NodeId {
    let mut slots = [NodeSlot::default(); 4];
    let mut pool = NodePool::new(Rank(0), &mut slots);
    (0..=index).map(|_| pool.try_take(|_| 0).unwrap()).last().unwrap()
}

const KINDS: [LockKind; 4] =
    [LockKind::Mutex, LockKind::Readers, LockKind::Neutral, LockKind::Writers];

/// A free lock is taken by a try and by a wait with a limit; a held lock is not.
#[test]
fn a_free_lock_is_taken_by_try_and_by_limit() {
    for kind in KINDS {
        for mode in [LockMode::Exclusive, LockMode::Shared] {
            for is_try in [true, false] {
                let (words, own) = (Words::default(), lock_of(kind));
                let asks = |words: &Words| match is_try {
                    true => try_lock(words, &own, mode, node(0)),
                    false => lock_timeout(words, &own, mode, Duration::from_nanos(5), node(0)),
                };
                let held = asks(&words).unwrap().expect("the lock is free");
                assert_eq!(held.mode(), mode);
                assert_eq!(held.unlock(&words, &own), Ok(Some(node(0))));
                let held = lock(&words, &own, LockMode::Exclusive, |_| node(1)).unwrap();
                words.waits.borrow_mut().push_back(None);
                let refused = asks(&words).unwrap().map(|_| ()).unwrap_err();
                let is_left = !is_try;
                assert_eq!(refused, LockRefused { node: node(0), has_left: is_left }, "{kind:?}");
                let _ = held;
            }
        }
    }
}

/// After its limit a claim leaves once: if it has become the first meanwhile, it
/// waits for the readers inside, however long that takes.
#[test]
fn after_its_limit_a_claim_leaves_once() {
    let (words, own) = (Words::default(), node(0));
    let before = node(1);
    let reader = count::arrive(LockKind::Neutral);
    // The operations: state, next, join, link; leave; in, head; then a reader is inside.
    let finds = [0, 0, before.to_bits(), before.nobody_yet(), own.state(NodeState::Head)];
    words.finds.borrow_mut().extend(finds.into_iter().chain([reader, 0, reader]));
    words.waits.borrow_mut().extend([None, Some(own.state(NodeState::In))]);
    let limit = Duration::from_nanos(5);
    let held = lock_timeout(&words, &lock_of(LockKind::Neutral), LockMode::Exclusive, limit, own);
    assert!(held.is_ok_and(|held| held.is_ok()));
    assert_eq!(*words.limits.borrow(), [Some(limit), None]);
}

/// A reader that leaves by one instruction, and was the last, wakes the writer.
#[test]
fn the_last_reader_wakes_a_writer_however_it_leaves() {
    for is_near in [true, false] {
        for kind in [LockKind::Readers, LockKind::Neutral, LockKind::Writers] {
            let (words, own) = (Words { is_near, ..Words::default() }, lock_of(kind));
            let held =
                lock(&words, &own, LockMode::Shared, |_| panic!("the lock is free")).unwrap();
            assert!(held.is_alone());
            let mut writer = LockClaim::new(own, node(1));
            writer.begin(LockMode::Exclusive);
            while step(&words, &mut writer) {}
            let (at, until) = writer.waits_for().expect("a reader is inside");
            assert_eq!(held.unlock(&words, &own), Ok(None));
            let value = words.words.borrow()[at.offset as usize / 8];
            assert!(until.holds(value), "{kind:?} {is_near}");
            writer.handle_word(value);
            assert_eq!(writer.standing(), ClaimStatus::Held);
        }
    }
}

/// If the lock does not count a claim, nothing has to be ended for it.
#[test]
fn a_writers_claim_without_a_node_is_dropped() {
    let (words, own) = (Words::default(), lock_of(LockKind::Mutex));
    let mut claim = LockClaim::new(own, NodeId::NONE);
    claim.begin(LockMode::Exclusive);
    assert_eq!(pass_on(&words, claim, None, || panic!("the claim needs no node")), Ok(None));
    assert_eq!(words.carried.get(), 0);
}

/// A claim that waits in a queue stays there when it is passed on: its node is in
/// use.
#[test]
fn a_passed_claim_reports_whether_its_node_is_queued() {
    for kind in KINDS {
        let (words, own) = (Words::default(), lock_of(kind));
        let _held = lock(&words, &own, LockMode::Exclusive, |_| node(0)).unwrap();
        let mut claim = LockClaim::new(own, node(1));
        claim.begin(LockMode::Exclusive);
        while step(&words, &mut claim) {}
        let passed = pass_on(&words, claim, None, || panic!("the claim has a node")).unwrap();
        let left = LockRefused { node: node(1), has_left: true };
        assert_eq!(passed, Some(left), "{kind:?}");
        // A claim that has got its lock gives it back, or returns an error.
        for fails in [false, true] {
            let words = Words::default();
            let mut claim = LockClaim::new(own, node(1));
            claim.begin(LockMode::Exclusive);
            while step(&words, &mut claim) {}
            words.fails.set(if fails { words.carried.get() + 1 } else { 0 });
            let passed = pass_on(&words, claim, None, || panic!("the claim has a node"));
            let free = LockRefused { node: node(1), has_left: false };
            assert_eq!(passed, if fails { Err(LOST) } else { Ok(Some(free)) }, "{kind:?}");
        }
    }
}
