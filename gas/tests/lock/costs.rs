//! The number of operations that an uncontended lock takes.

use std::cell::RefCell;
use std::time::Duration;
use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind as OpKind, Op};
use tsumugi_core::signal::Until;
use tsumugi_gas::lock::drive::{self, LockDriver};
use tsumugi_gas::lock::{
    LOCK_BYTES, Lock, LockClaim, LockKind, LockMode, NodePool, NodeSlot, NodeTable,
};

/// One rank's words, and every operation on them.
struct Ledger {
    words: RefCell<Vec<u64>>,
    kinds: RefCell<Vec<OpKind>>,
    /// Whether the words are loaded and stored; otherwise each operation is posted.
    is_at_hand: bool,
}

impl Ledger {
    fn new(is_at_hand: bool) -> Self {
        let words = RefCell::new(vec![0; (LOCK_BYTES / 8) as usize + 2]);
        Self { words, kinds: RefCell::default(), is_at_hand }
    }

    /// Atomics, stores and loads since the previous call.
    fn take(&self) -> [usize; 3] {
        let kinds = self.kinds.take();
        let of = |kind| kinds.iter().filter(|other| **other == kind).count();
        let (stores, looks) = (of(OpKind::PutWord), of(OpKind::GetWord));
        [kinds.len() - stores - looks, stores, looks]
    }

    fn run(&self, kind: OpKind, offset: u64, change: impl FnOnce(u64) -> u64) -> u64 {
        self.kinds.borrow_mut().push(kind);
        let word = &mut self.words.borrow_mut()[(offset / 8) as usize];
        std::mem::replace(word, change(*word))
    }
}

impl LockDriver for Ledger {
    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        let (operand, compare) = (op.operand(), op.compare());
        Ok(self.run(op.kind, op.remote.offset, |old| match op.kind {
            OpKind::GetWord => old,
            OpKind::FetchAdd => old.wrapping_add(operand),
            OpKind::CompareSwap if old != compare => old,
            _ => operand,
        }))
    }

    fn try_add(&self, at: RemoteAddr, delta: u64) -> Option<u64> {
        let add = || self.run(OpKind::FetchAdd, at.offset, |old| old.wrapping_add(delta));
        self.is_at_hand.then(add)
    }

    fn try_swap(&self, at: RemoteAddr, expected: u64, new: u64) -> Option<u64> {
        let swapped = |old| if old == expected { new } else { old };
        self.is_at_hand.then(|| self.run(OpKind::CompareSwap, at.offset, swapped))
    }

    fn wait(
        &self,
        at: RemoteAddr,
        _: Until,
        _: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        panic!("waits for {at:?}, but no other rank is there")
    }
}

/// Atomics, stores and loads to lock, and to unlock.
fn costs(is_at_hand: bool, kind: LockKind, mode: LockMode) -> [[usize; 3]; 2] {
    let key = RegionKey::new(0, 1);
    let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
    let lock = Lock { home, nodes: NodeTable { key, offset: LOCK_BYTES }, kind };
    let ledger = Ledger::new(is_at_hand);
    let mut slots = [NodeSlot::default()];
    let rounds = [(); 3].map(|()| {
        let mut pool = NodePool::new(Rank(0), &mut slots);
        let take = |_: &LockClaim| pool.try_take(|_| 0).expect("the node was released");
        let held = drive::lock(&ledger, &lock, mode, take).unwrap();
        let locked = ledger.take();
        if let Some(node) = held.unlock(&ledger, &lock).unwrap() {
            NodePool::new(Rank(0), &mut slots).release(node, false);
        }
        [locked, ledger.take()]
    });
    assert!(
        rounds.iter().all(|round| *round == rounds[0]),
        "each round costs the same: {rounds:?}"
    );
    rounds[0]
}

#[test]
fn an_uncontended_lock_costs_the_documented_operations() {
    let one = [1, 0, 0];
    for is_at_hand in [false, true] {
        for (kind, mode, said) in [
            (LockKind::Readers, LockMode::Shared, [one, one]),
            (LockKind::Readers, LockMode::Exclusive, [one, one]),
            (LockKind::Neutral, LockMode::Shared, [one, one]),
            (LockKind::Writers, LockMode::Shared, [one, one]),
            // Plus two stores to the own node.
            (LockKind::Neutral, LockMode::Exclusive, [[2, 2, 0], [2, 0, 0]]),
            // Plus a load there: a waiting writer is let in first.
            (LockKind::Writers, LockMode::Exclusive, [[2, 2, 0], [2, 0, 1]]),
            (LockKind::Mutex, LockMode::Exclusive, [[1, 2, 0], one]),
        ] {
            assert_eq!(costs(is_at_hand, kind, mode), said, "{kind:?}, {mode:?}");
        }
    }
}
