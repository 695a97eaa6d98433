//! What a claim does when nobody else is there, and in which order.

use super::super::{NodePool, NodeSlot, NodeTable};
use super::*;
use tsumugi_core::mem::RegionKey;
use tsumugi_core::op::Kind as OpKind;

/// The kinds of the operations that a claim alone takes to lock and to unlock.
fn alone(kind: Kind, mode: Mode) -> ([Option<OpKind>; 8], [Option<OpKind>; 8]) {
    let nodes = NodeTable { key: RegionKey::new(1, 1), offset: 0 };
    let home = RemoteAddr { rank: Rank(1), key: RegionKey::new(0, 1), offset: 0 };
    let lock = Lock { home, nodes, kind };
    let mut slots = [NodeSlot::default()];
    let own = NodePool::new(Rank(0), &mut slots).try_take(|_| 0).unwrap();
    let mut claim = Claim::new(lock, own);
    let mut words = [0; 8];
    claim.begin(mode);
    let locking = run(&mut claim, &mut words);
    assert_eq!(claim.standing(), Standing::Held);
    claim.release();
    let unlocking = run(&mut claim, &mut words);
    assert_eq!(claim.standing(), Standing::Resting(Ended::Released));
    (locking, unlocking)
}

/// Runs a claim, and returns what it did to the lock's words.
fn run(claim: &mut Claim, words: &mut [u64; 8]) -> [Option<OpKind>; 8] {
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
    for kind in [Kind::Readers, Kind::Neutral, Kind::Writers] {
        let (locking, unlocking) = alone(kind, Mode::Shared);
        assert_eq!(locking, first([OpKind::FetchAdd]), "{kind:?}");
        assert_eq!(unlocking, first([OpKind::FetchAdd]), "{kind:?}");
    }
}

#[test]
fn a_writer_alone_takes_two_atomics_or_four() {
    let (locking, unlocking) = alone(Kind::Readers, Mode::Exclusive);
    assert_eq!(locking, first([OpKind::CompareSwap]));
    assert_eq!(unlocking, first([OpKind::CompareSwap]));
    let (locking, unlocking) = alone(Kind::Mutex, Mode::Exclusive);
    assert_eq!(locking, first([OpKind::Swap]));
    assert_eq!(unlocking, first([OpKind::CompareSwap]));
    let (locking, unlocking) = alone(Kind::Neutral, Mode::Exclusive);
    assert_eq!(locking, first([OpKind::Swap, OpKind::FetchAdd]));
    assert_eq!(unlocking, first([OpKind::FetchAdd, OpKind::CompareSwap]));
}

/// Who tries and finds nobody leaves the lock as one that came by the queue does:
/// with another phase, and free.
#[test]
fn a_lock_that_was_tried_is_given_back() {
    let nodes = NodeTable { key: RegionKey::new(1, 1), offset: 0 };
    let home = RemoteAddr { rank: Rank(1), key: RegionKey::new(0, 1), offset: 0 };
    let lock = Lock { home, nodes, kind: Kind::Neutral };
    let mut slots = [NodeSlot::default()];
    let own = NodePool::new(Rank(0), &mut slots).try_take(|_| 0).unwrap();
    let (mut by_try, mut by_queue) = ([0; 8], [0; 8]);
    for round in 0..4 {
        for (is_try, words) in [(true, &mut by_try), (false, &mut by_queue)] {
            let mut claim = Claim::new(lock, own);
            if is_try {
                claim.begin_try(Mode::Exclusive);
            } else {
                claim.begin(Mode::Exclusive);
            }
            run(&mut claim, words);
            assert_eq!(claim.standing(), Standing::Held);
            assert!(claim.keep().found.is_some(), "it knows what it leaves");
            claim.release();
            run(&mut claim, words);
            assert_eq!(claim.standing(), Standing::Resting(Ended::Released));
            let mut reader = Claim::new(lock, own);
            reader.begin(Mode::Shared);
            run(&mut reader, words);
            assert_eq!(reader.standing(), Standing::Held, "round {round}");
            reader.release();
            run(&mut reader, words);
        }
        assert_eq!(by_try, by_queue, "round {round}");
    }
}

/// A reader that tries comes in if no writer is there, and else leaves no trace.
#[test]
fn a_reader_that_tries_is_refused_by_writers_alone() {
    let nodes = NodeTable { key: RegionKey::new(1, 1), offset: 0 };
    let home = RemoteAddr { rank: Rank(1), key: RegionKey::new(0, 1), offset: 0 };
    for kind in [Kind::Readers, Kind::Neutral, Kind::Writers] {
        let lock = Lock { home, nodes, kind };
        let mut slots = [NodeSlot::default(), NodeSlot::default()];
        let mut pool = NodePool::new(Rank(0), &mut slots);
        let [own, other] = [0, 1].map(|_| pool.try_take(|_| 0).unwrap());
        let mut words = [0; 8];
        let mut reader = Claim::new(lock, own);
        reader.begin_try(Mode::Shared);
        run(&mut reader, &mut words);
        assert_eq!(reader.standing(), Standing::Held, "{kind:?}");
        reader.release();
        run(&mut reader, &mut words);
        let mut writer = Claim::new(lock, other);
        writer.begin(Mode::Exclusive);
        run(&mut writer, &mut words);
        assert_eq!(writer.standing(), Standing::Held, "{kind:?}");
        let before = words;
        reader.begin_try(Mode::Shared);
        run(&mut reader, &mut words);
        assert_eq!(reader.standing(), Standing::Resting(Ended::Refused), "{kind:?}");
        assert_eq!(words, before, "{kind:?}");
    }
}
