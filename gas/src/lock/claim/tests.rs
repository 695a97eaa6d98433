//! The operations of a claim without contention, and their order.

use super::super::{NodePool, NodeSlot, NodeTable};
use super::*;
use tsumugi_core::mem::RegionKey;
use tsumugi_core::op::Kind as OpKind;

/// The kinds of the operations that a claim takes to lock and to unlock without
/// contention.
fn alone(kind: LockKind, mode: LockMode) -> ([Option<OpKind>; 8], [Option<OpKind>; 8]) {
    let nodes = NodeTable { key: RegionKey::new(1, 1), offset: 0 };
    let home = RemoteAddr { rank: Rank(1), key: RegionKey::new(0, 1), offset: 0 };
    let lock = Lock { home, nodes, kind };
    let mut slots = [NodeSlot::default()];
    let own = NodePool::new(Rank(0), &mut slots).try_take(|_| 0).unwrap();
    let mut claim = LockClaim::new(lock, own);
    let mut words = [0; 8];
    claim.begin(mode);
    let locking = run(&mut claim, &mut words);
    assert_eq!(claim.standing(), ClaimStatus::Held);
    claim.release();
    let unlocking = run(&mut claim, &mut words);
    assert_eq!(claim.standing(), ClaimStatus::Resting(ClaimEnd::Released));
    (locking, unlocking)
}

/// Runs a claim, and returns the kinds of its operations on the lock's words.
fn run(claim: &mut LockClaim, words: &mut [u64; 8]) -> [Option<OpKind>; 8] {
    let mut kinds = [None; 8];
    let mut count = 0;
    while let Some((id, op)) = claim.poll_op() {
        if op.remote.rank == Rank(0) {
            assert_eq!(op.kind, OpKind::PutWord, "a store to the own node");
            claim.handle_completed(id, Ok(0));
            continue;
        }
        let word = &mut words[(op.remote.offset / 8) as usize];
        let old = *word;
        match op.kind {
            OpKind::FetchAdd => *word = old.wrapping_add(op.operand()),
            OpKind::CompareSwap if old != op.compare() => {}
            OpKind::GetWord => {}
            _ => *word = op.operand(),
        }
        kinds[count] = Some(op.kind);
        count += 1;
        claim.handle_completed(id, Ok(old));
        claim.handle_completed(id, Ok(u64::MAX));
    }
    kinds
}

fn first<const N: usize>(kinds: [OpKind; N]) -> [Option<OpKind>; 8] {
    core::array::from_fn(|index| kinds.get(index).copied())
}

#[test]
fn a_reader_alone_takes_two_atomics() {
    for kind in [LockKind::Readers, LockKind::Neutral, LockKind::Writers] {
        let (locking, unlocking) = alone(kind, LockMode::Shared);
        assert_eq!(locking, first([OpKind::FetchAdd]), "{kind:?}");
        assert_eq!(unlocking, first([OpKind::FetchAdd]), "{kind:?}");
    }
}

#[test]
fn a_writer_alone_takes_two_atomics_or_four() {
    let (locking, unlocking) = alone(LockKind::Readers, LockMode::Exclusive);
    assert_eq!(locking, first([OpKind::CompareSwap]));
    assert_eq!(unlocking, first([OpKind::CompareSwap]));
    let (locking, unlocking) = alone(LockKind::Mutex, LockMode::Exclusive);
    assert_eq!(locking, first([OpKind::Swap]));
    assert_eq!(unlocking, first([OpKind::CompareSwap]));
    let (locking, unlocking) = alone(LockKind::Neutral, LockMode::Exclusive);
    assert_eq!(locking, first([OpKind::Swap, OpKind::FetchAdd]));
    assert_eq!(unlocking, first([OpKind::FetchAdd, OpKind::CompareSwap]));
}

/// After a successful try the lock is left as after a claim by the queue: with another phase,
/// and free.
#[test]
fn a_try_leaves_the_lock_as_a_queued_claim_does() {
    let nodes = NodeTable { key: RegionKey::new(1, 1), offset: 0 };
    let home = RemoteAddr { rank: Rank(1), key: RegionKey::new(0, 1), offset: 0 };
    let lock = Lock { home, nodes, kind: LockKind::Neutral };
    let mut slots = [NodeSlot::default()];
    let own = NodePool::new(Rank(0), &mut slots).try_take(|_| 0).unwrap();
    let (mut by_try, mut by_queue) = ([0; 8], [0; 8]);
    for round in 0..4 {
        for (is_try, words) in [(true, &mut by_try), (false, &mut by_queue)] {
            let mut claim = LockClaim::new(lock, own);
            if is_try {
                claim.begin_try(LockMode::Exclusive);
            } else {
                claim.begin(LockMode::Exclusive);
            }
            run(&mut claim, words);
            assert_eq!(claim.standing(), ClaimStatus::Held);
            assert!(claim.keep().found.is_some(), "the claim knows the state that it leaves");
            claim.release();
            run(&mut claim, words);
            assert_eq!(claim.standing(), ClaimStatus::Resting(ClaimEnd::Released));
            let mut reader = LockClaim::new(lock, own);
            reader.begin(LockMode::Shared);
            run(&mut reader, words);
            assert_eq!(reader.standing(), ClaimStatus::Held, "round {round}");
            reader.release();
            run(&mut reader, words);
        }
        assert_eq!(by_try, by_queue, "round {round}");
    }
}

/// A reader that tries gets the lock if there is no writer, and otherwise leaves no
/// trace.
#[test]
fn a_reader_that_tries_is_refused_by_writers_alone() {
    let nodes = NodeTable { key: RegionKey::new(1, 1), offset: 0 };
    let home = RemoteAddr { rank: Rank(1), key: RegionKey::new(0, 1), offset: 0 };
    for kind in [LockKind::Readers, LockKind::Neutral, LockKind::Writers] {
        let lock = Lock { home, nodes, kind };
        let mut slots = [NodeSlot::default(), NodeSlot::default()];
        let mut pool = NodePool::new(Rank(0), &mut slots);
        let [own, other] = [0, 1].map(|_| pool.try_take(|_| 0).unwrap());
        let mut words = [0; 8];
        let mut reader = LockClaim::new(lock, own);
        reader.begin_try(LockMode::Shared);
        run(&mut reader, &mut words);
        assert_eq!(reader.standing(), ClaimStatus::Held, "{kind:?}");
        reader.release();
        run(&mut reader, &mut words);
        let mut writer = LockClaim::new(lock, other);
        writer.begin(LockMode::Exclusive);
        run(&mut writer, &mut words);
        assert_eq!(writer.standing(), ClaimStatus::Held, "{kind:?}");
        let before = words;
        reader.begin_try(LockMode::Shared);
        run(&mut reader, &mut words);
        assert_eq!(reader.standing(), ClaimStatus::Resting(ClaimEnd::Refused), "{kind:?}");
        assert_eq!(words, before, "{kind:?}");
    }
}

fn lock_of(kind: LockKind) -> Lock {
    let nodes = NodeTable { key: RegionKey::new(1, 1), offset: 0 };
    let home = RemoteAddr { rank: Rank(1), key: RegionKey::new(0, 1), offset: 0 };
    Lock { home, nodes, kind }
}

fn node() -> NodeId {
    NodePool::new(Rank(0), &mut [NodeSlot::default()]).try_take(|_| 0).unwrap()
}

/// Carries out the next operation, which finds `old`.
fn finds(claim: &mut LockClaim, old: u64) -> Op {
    let (id, op) = claim.poll_op().expect("the claim has an operation");
    claim.handle_completed(id, Ok(old));
    op
}

/// A claim that was used is equal to a new one.
#[test]
fn a_used_claim_equals_a_new_one() {
    for kind in [LockKind::Mutex, LockKind::Readers, LockKind::Neutral] {
        let (lock, own, mut words) = (lock_of(kind), node(), [0; 8]);
        let mut used = LockClaim::new(lock, own);
        used.begin(LockMode::Exclusive);
        run(&mut used, &mut words);
        used.release();
        assert_eq!(used.standing(), ClaimStatus::Going, "{kind:?}");
        run(&mut used, &mut words);
        for mode in [LockMode::Shared, LockMode::Exclusive] {
            let mut new = LockClaim::new(lock, own);
            [&mut used, &mut new].into_iter().for_each(|claim| claim.begin(mode));
            assert_eq!(used, new, "{kind:?}");
            run(&mut used, &mut words);
            used.release();
            run(&mut used, &mut words);
        }
    }
}

/// A lock or unlock by a single operation, where one is enough.
#[test]
fn uncontended_operations_can_be_done_without_a_claim() {
    for kind in [LockKind::Readers, LockKind::Neutral, LockKind::Writers] {
        let lock = lock_of(kind);
        assert!(
            lock.first_op(LockMode::Shared).is_some() && lock.last_op(LockMode::Shared).is_some()
        );
        let alone = kind == LockKind::Readers;
        assert_eq!(lock.first_op(LockMode::Exclusive).is_some(), alone);
        assert_eq!(lock.last_op(LockMode::Exclusive).is_some(), alone);
    }
    assert!(lock_of(LockKind::Mutex).first_op(LockMode::Exclusive).is_none());
}

/// Only a claim that waits can give up.
#[test]
fn a_claim_that_does_not_wait_cannot_give_up() {
    let mut claim = LockClaim::new(lock_of(LockKind::Mutex), node());
    assert!(!claim.leave());
    claim.begin(LockMode::Exclusive);
    assert!(!claim.leave());
    [0, 0].into_iter().for_each(|old| _ = finds(&mut claim, old));
    let before = NodePool::new(Rank(2), &mut [NodeSlot::default()]).try_take(|_| 0).unwrap();
    finds(&mut claim, before.to_bits());
    finds(&mut claim, before.nobody_yet());
    assert!(claim.waits_for().is_some() && claim.leave());
}

/// The lock counts a reader that has come, and not a writer.
#[test]
fn only_a_reader_is_blocked_without_a_node() {
    for kind in [LockKind::Mutex, LockKind::Neutral, LockKind::Writers] {
        let mut claim = LockClaim::new(lock_of(kind), NodeId::NONE);
        claim.begin(LockMode::Exclusive);
        assert!(claim.lacks_node() && !claim.is_blocked_reader());
    }
    for (found, is_blocked) in [(0, false), (count::THERE, true)] {
        let mut claim = LockClaim::new(lock_of(LockKind::Neutral), NodeId::NONE);
        claim.begin_found(LockMode::Shared, found);
        assert_eq!(claim.is_blocked_reader(), is_blocked);
    }
}

/// A reader that tries while a writer comes in does not wait: it leaves, or has been
/// let in.
#[test]
fn a_reader_that_tries_never_waits() {
    for is_in in [false, true] {
        let own = node();
        let mut claim = LockClaim::new(lock_of(LockKind::Neutral), own);
        claim.begin_try(LockMode::Shared);
        finds(&mut claim, 0);
        // The operations: arrive, state, list, count; a writer is there.
        [count::THERE, 0, 0, count::THERE].into_iter().for_each(|old| _ = finds(&mut claim, old));
        assert_eq!(claim.waits_for(), None);
        finds(&mut claim, 0);
        finds(&mut claim, own.state(if is_in { NodeState::In } else { NodeState::Queued }));
        let left = ClaimStatus::Resting(ClaimEnd::Left { in_queue: true });
        assert_eq!(claim.standing(), if is_in { ClaimStatus::Held } else { left });
    }
}

/// A writer that gives up after it has become the first must wait for the readers.
#[test]
fn a_claim_that_gives_up_too_late_continues() {
    let own = node();
    let mut claim = LockClaim::new(lock_of(LockKind::Neutral), own);
    claim.begin(LockMode::Exclusive);
    let before = NodePool::new(Rank(2), &mut [NodeSlot::default()]).try_take(|_| 0).unwrap();
    [0, 0, before.to_bits(), before.nobody_yet()]
        .into_iter()
        .for_each(|old| _ = finds(&mut claim, old));
    assert!(claim.leave());
    finds(&mut claim, own.state(NodeState::Head));
    let reader = count::arrive(LockKind::Neutral);
    // The operations: in, head; the reader is still there.
    [reader, 0, reader].into_iter().for_each(|old| _ = finds(&mut claim, old));
    assert!(claim.waits_for().is_some(), "{claim:?}");
    assert!(claim.poll_op().is_none());
    claim.handle_word(own.state(NodeState::In));
    assert_eq!(claim.standing(), ClaimStatus::Held);
}

/// A writer that was made the first by its predecessor tries to take the lock at
/// once.
#[test]
fn the_next_writer_seizes_a_free_lock_at_once() {
    let own = node();
    let mut claim = LockClaim::new(lock_of(LockKind::Readers), own);
    claim.begin(LockMode::Exclusive);
    let before = NodePool::new(Rank(2), &mut [NodeSlot::default()]).try_take(|_| 0).unwrap();
    [count::INSIDE, 0, 0, before.to_bits(), before.nobody_yet()]
        .into_iter()
        .for_each(|old| _ = finds(&mut claim, old));
    claim.handle_word(own.state(NodeState::Head));
    let op = finds(&mut claim, 0);
    assert_eq!((op.kind, op.compare(), op.operand()), (OpKind::CompareSwap, 0, count::INSIDE));
    assert_eq!(claim.standing(), ClaimStatus::Held);
}
