//! Claims whose owner never continues after one of their operations, and which another thread
//! ends: then the lock is free, and so is the claim's node.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;
use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind as OpKind, Op};
use tsumugi_core::signal::Until;
use tsumugi_gas::lock::drive::{self, HeldLock, LockDriver, LockRefused};
use tsumugi_gas::lock::{
    LOCK_BYTES, Lock, LockClaim, LockKind, LockMode, NODE_BYTES, NodeId, NodePool, NodeSlot,
    NodeTable,
};

/// The words of one rank, and the operation after which the caller is cut off.
struct Memory {
    words: RefCell<Vec<u64>>,
    slots: RefCell<[NodeSlot; SLOTS]>,
    /// The number of operations until the caller is cut off; `None`: it is not.
    left: Cell<Option<usize>>,
    /// The claim, and the result of its operation.
    cut: RefCell<Option<(LockClaim, Option<u64>)>>,
    /// The number of operations until one fails.
    fails_after: Cell<Option<usize>>,
    has_failed: Cell<bool>,
}

impl Memory {
    fn new() -> Self {
        let words = LOCK_BYTES as usize / 8 + SLOTS * NODE_BYTES as usize / 8;
        Self {
            words: RefCell::new(vec![0; words]),
            slots: RefCell::default(),
            left: Cell::new(None),
            cut: RefCell::new(None),
            fails_after: Cell::new(None),
            has_failed: Cell::new(false),
        }
    }

    fn load(&self, offset: u64) -> u64 {
        self.words.borrow()[offset as usize / 8]
    }

    fn node(&self) -> NodeId {
        let load = |slot: usize| self.load(LOCK_BYTES + slot as u64 * NODE_BYTES);
        NodePool::new(Rank(0), &mut *self.slots.borrow_mut()).try_take(load).expect("a free node")
    }

    fn release(&self, node: NodeId, has_left: bool) {
        NodePool::new(Rank(0), &mut *self.slots.borrow_mut()).release(node, has_left);
    }

    /// Cuts the caller off, if its time has come.
    fn may_cut(&self, claim: &LockClaim, found: Option<u64>) {
        match self.left.get() {
            Some(0) => {
                self.left.set(None);
                *self.cut.borrow_mut() = Some((claim.clone(), found));
                resume_unwind(Box::new("cut off"));
            }
            left => self.left.set(left.map(|left| left - 1)),
        }
    }

    fn lock(&self, lock: &Lock, mode: LockMode) -> HeldLock {
        let node = |claim: &LockClaim| {
            if claim.is_blocked_reader() {
                self.may_cut(claim, None);
            }
            self.node()
        };
        drive::lock(self, lock, mode, node).expect("no rank dies")
    }

    fn unlock(&self, lock: &Lock, held: HeldLock) {
        if let Some(node) = held.unlock(self, lock).expect("no rank dies") {
            self.release(node, false);
        }
    }
}

impl LockDriver for Memory {
    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        let (operand, compare) = (op.operand(), op.compare());
        let word = &mut self.words.borrow_mut()[op.remote.offset as usize / 8];
        let old = *word;
        match op.kind {
            OpKind::GetWord => {}
            OpKind::FetchAdd => *word = old.wrapping_add(operand),
            OpKind::CompareSwap if old != compare => {}
            _ => *word = operand,
        }
        Ok(old)
    }

    fn carry_as(&self, claim: &LockClaim, op: &Op) -> Result<u64, AddrError> {
        match self.fails_after.get() {
            Some(0) => {
                self.fails_after.set(None);
                self.has_failed.set(true);
                return Err(LOST);
            }
            after => self.fails_after.set(after.map(|after| after - 1)),
        }
        assert!(!self.has_failed.get(), "an operation after one that failed");
        let result = self.carry(op);
        self.may_cut(claim, result.ok());
        result
    }

    fn wait(
        &self,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        let value = self.load(at.offset);
        assert!(until.holds(value) || limit.is_some(), "it waits for ever at {at:?}");
        Ok(until.holds(value).then_some(value))
    }

    fn wait_as(
        &self,
        claim: &LockClaim,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        if self.left.get().is_some() && !until.holds(self.load(at.offset)) {
            self.left.set(Some(0));
            self.may_cut(claim, None);
        }
        self.wait(at, until, limit)
    }
}

/// Locks and unlocks, and is cut off at an operation; `holder` has the lock meanwhile, and
/// releases it before the claim is passed on or after. Returns whether there was such an
/// operation.
fn cut(
    kind: LockKind,
    mode: LockMode,
    holder: Option<LockMode>,
    holder_first: bool,
    at: usize,
) -> bool {
    let (memory, lock) = (Memory::new(), lock_of(kind));
    let held = holder.map(|mode| memory.lock(&lock, mode));
    memory.left.set(Some(at));
    let whole = || memory.unlock(&lock, memory.lock(&lock, mode));
    let is_cut = catch_unwind(AssertUnwindSafe(whole)).is_err();
    memory.left.set(None);
    let give_back =
        |held: Option<HeldLock>| held.into_iter().for_each(|held| memory.unlock(&lock, held));
    let pass_on = |(claim, found): (LockClaim, Option<u64>)| {
        let passed = drive::pass_on(&memory, claim, found.map(Ok), || memory.node());
        if let Some(LockRefused { node, has_left }) = passed.expect("no rank dies") {
            memory.release(node, has_left);
        }
    };
    let claimed = memory.cut.take();
    assert_eq!(is_cut, claimed.is_some(), "{kind:?} {mode:?} {holder:?} {at}");
    if holder_first {
        give_back(held);
        claimed.into_iter().for_each(pass_on);
    } else {
        claimed.into_iter().for_each(pass_on);
        give_back(held);
    }
    for mode in [LockMode::Exclusive, LockMode::Shared, LockMode::Exclusive] {
        memory.unlock(&lock, memory.lock(&lock, mode));
    }
    // All nodes are free as well.
    (0..SLOTS).for_each(|_| _ = memory.node());
    is_cut
}

#[test]
fn a_claim_that_is_cut_off_at_any_operation_is_ended_by_another() {
    let mut cuts = 0;
    for kind in [LockKind::Mutex, LockKind::Readers, LockKind::Neutral, LockKind::Writers] {
        for mode in [LockMode::Exclusive, LockMode::Shared] {
            for holder in [None, Some(LockMode::Exclusive), Some(LockMode::Shared)] {
                for holder_first in [false, true] {
                    let ended = |at: &usize| !cut(kind, mode, holder, holder_first, *at);
                    cuts += (0..OPERATIONS_MAX).find(ended).unwrap_or(OPERATIONS_MAX);
                }
            }
        }
    }
    assert!(cuts > 100, "{cuts}");
}

/// Whichever operation fails in a lock or an unlock, that call ends with its error and posts
/// nothing more.
#[test]
fn a_failed_operation_ends_lock_or_unlock() {
    let mut failed = [0; 2];
    for kind in [LockKind::Mutex, LockKind::Readers, LockKind::Neutral, LockKind::Writers] {
        for mode in [LockMode::Exclusive, LockMode::Shared] {
            for after in 0.. {
                let (memory, lock) = (Memory::new(), lock_of(kind));
                memory.fails_after.set(Some(after));
                let held = match drive::lock(&memory, &lock, mode, |_| memory.node()) {
                    Ok(held) => held,
                    Err(error) => {
                        assert!(error == LOST && memory.has_failed.get(), "{kind:?} {mode:?}");
                        failed[0] += 1;
                        continue;
                    }
                };
                assert!(!memory.has_failed.get(), "{kind:?} {mode:?}: held in spite of the error");
                match held.unlock(&memory, &lock) {
                    Err(error) => assert!(error == LOST && memory.has_failed.get()),
                    Ok(_) if memory.has_failed.get() => {
                        panic!("{kind:?} {mode:?}: success in spite of the error")
                    }
                    Ok(_) => break,
                }
                failed[1] += 1;
            }
        }
    }
    assert!(failed[0] > 10 && failed[1] > 10, "{failed:?}");
}

fn lock_of(kind: LockKind) -> Lock {
    let key = RegionKey::new(0, 1);
    let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
    Lock { home, nodes: NodeTable { key, offset: LOCK_BYTES }, kind }
}

const LOST: AddrError = AddrError::PeerLost { rank: Rank(7) };
const SLOTS: usize = 3;
/// More operations than a claim takes to lock and to unlock.
const OPERATIONS_MAX: usize = 30;
