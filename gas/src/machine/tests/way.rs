//! The beginning of jobs, their waits for tables, and their ends.

use super::*;
use crate::request::{Copy, ListCopy, WordRequest};

/// Makes a request with the addresses of a rig.
type Asks<'a> = &'a dyn Fn(&Rig) -> GlobalRequest;

#[test]
fn an_operation_on_a_missing_address_names_the_address() {
    let split = Split::DEFAULT;
    let setup = MachineSetup { split, ..plain() };
    let place = AddressParts { rank: Rank(1), color: 0, region: OPEN, life: 0, offset: 0 };
    let other = |place: AddressParts| split.addr(place).unwrap();
    let beyond = other(AddressParts { rank: Rank(RANKS), ..place });
    let colored = other(AddressParts { color: 1, ..place });
    for addr in [GlobalAddr::NULL, beyond, colored] {
        let mut rig = Rig::new(setup);
        rig.issue(WordRequest::atomic(Kind::GetWord, addr, 0u64));
        assert!(rig.ops().is_empty());
        assert_eq!(rig.result(), Err(AddrError::Nowhere { addr }));
        let own = rig.at(0, OPEN, 0);
        for (dst, src) in [(addr, own), (own, addr)] {
            rig.issue(Copy::new(dst, src, 8));
            assert!(rig.ops().is_empty());
            assert_eq!(rig.result(), Err(AddrError::Nowhere { addr }));
        }
        assert_eq!(rig.machine.want(addr), Err(AddrError::Nowhere { addr }));
        assert_eq!(rig.machine.want_newer(addr, 1), Err(AddrError::Nowhere { addr }));
    }
    // The own rank has no other colour either.
    let mut rig = Rig::new(setup);
    let addr = other(AddressParts { rank: OWN, color: 1, ..place });
    assert_eq!(rig.machine.unregister(addr), Err(AddrError::Nowhere { addr }));
    let addr = other(AddressParts { rank: Rank(1), ..place });
    assert_eq!(rig.machine.unregister(addr), Err(AddrError::Nowhere { addr }));
}

/// A table that is older than the operation is read once more.
#[test]
fn an_unlisted_region_is_looked_up_in_a_newer_table() {
    for is_there in [true, false] {
        let mut rig = Rig::new(plain());
        rig.issue(WordRequest::atomic(Kind::GetWord, rig.at(1, OPEN, 0), 0u64));
        rig.finish();
        assert_eq!((rig.result(), rig.reads), (Ok(0), 1));
        if is_there {
            rig.listed.push((Rank(1), NEW));
        }
        let addr = rig.at(1, NEW, 0);
        rig.issue(WordRequest::atomic(Kind::GetWord, addr, 0u64));
        rig.finish();
        let result = if is_there { Ok(0) } else { Err(AddrError::StaleKey { addr }) };
        assert_eq!((rig.result(), rig.reads), (result, 2));
    }
}

/// The same for both ends of a copy, if both tables are old.
#[test]
fn two_old_tables_are_read_once_more_each() {
    let mut rig = Rig::new(MachineSetup { near: &[Rank(1), Rank(2)], ..plain() });
    rig.issue(Copy::new(rig.at(2, OPEN, 0), rig.at(1, OPEN, 0), 8));
    rig.finish();
    assert_eq!((rig.result(), rig.reads), (Ok(0), 2));
    rig.listed = vec![(Rank(1), NEW), (Rank(2), NEW)];
    rig.issue(Copy::new(rig.at(2, NEW, 0), rig.at(1, NEW, 0), 8));
    assert_eq!(rig.finish().len(), 1);
    assert_eq!((rig.result(), rig.reads), (Ok(0), 4));
}

/// Each part of a request that may need the table of a lost rank.
#[test]
fn a_table_that_cannot_be_read_ends_its_operations() {
    let plain_copy = |rig: &Rig, dst, src| Copy::new(rig.at(dst, OPEN, 0), rig.at(src, OPEN, 0), 8);
    let list =
        |rig: &Rig| ListCopy { entries: rig.at(1, OPEN, 0), count: 1, from: OWN, to: Rank(2) };
    let requests: [(Asks<'_>, usize); 5] = [
        (&|rig| WordRequest::atomic(Kind::FetchAdd, rig.at(1, OPEN, 0), 1u64).into(), 0),
        (&|rig| plain_copy(rig, 1, 0).into(), 0),
        (&|rig| plain_copy(rig, 0, 1).into(), 0),
        (&|rig| list(rig).into(), 0),
        (&|rig| plain_copy(rig, 2, 0).then_add(rig.at(1, OPEN, 0), 1).into(), 1),
    ];
    for (number, (request, ops)) in requests.into_iter().enumerate() {
        let mut rig = Rig::new(plain());
        rig.lost = vec![Rank(1)];
        rig.issue(request(&rig));
        assert_eq!(rig.finish().len(), ops, "{number}");
        assert_eq!(rig.result(), Err(AddrError::PeerLost { rank: Rank(1) }), "{number}");
    }
}

/// An operation ends when nothing of it is in flight any more, with the first error.
#[test]
fn a_failed_operation_ends_when_its_last_part_has_ended() {
    let mut rig = Rig::new(plain());
    let addr = rig.at(1, OPEN, 0);
    rig.issue(Copy::new(addr, rig.at(0, OPEN, 0), 700));
    let ops = rig.ops();
    assert_eq!(ops.len(), 4);
    // The next part needs a table that its owner requests back and that cannot be read again.
    assert!(rig.keeps(1));
    rig.lost = vec![Rank(1)];
    rig.end(&ops[0], Ok(0));
    for out in &ops[1..] {
        assert!(rig.ops().is_empty() && rig.ended().is_empty());
        rig.end(out, Err(LOST));
    }
    let ack = rig.op();
    assert_eq!(ack.op.remote, rig.control.ack(Rank(1)).0);
    assert_eq!(rig.result(), Err(AddrError::PeerLost { rank: Rank(1) }));

    let mut rig = Rig::new(plain());
    rig.issue(Copy::new(addr, rig.at(0, OPEN, 0), 700));
    let ops = rig.ops();
    rig.end(&ops[2], Err(LOST));
    for out in [&ops[0], &ops[1], &ops[3]] {
        assert!(rig.ops().is_empty() && rig.ended().is_empty(), "no part goes after an error");
        rig.end(out, Err(AddrError::Unsupported { addr: remote(1, OPEN, 0) }));
    }
    assert!(rig.ops().is_empty());
    assert_eq!(rig.result(), Err(AddrError::PeerLost { rank: Rank(3) }));
}

/// A flush of a rank waits for all operations that read or change its memory.
#[test]
fn a_flush_waits_for_operations_on_the_rank() {
    let requests: [(Asks<'_>, &[u32]); 5] = [
        (&|rig| WordRequest::atomic(Kind::FetchAdd, rig.at(1, OPEN, 0), 1u64).into(), &[1]),
        (&|rig| Copy::new(rig.at(2, OPEN, 0), rig.at(0, OPEN, 0), 8).into(), &[0, 2]),
        (
            &|rig| {
                let copy = Copy::new(rig.at(0, OPEN, 0), rig.at(2, OPEN, 0), 8);
                copy.then_add(rig.at(3, OPEN, 0), 1).into()
            },
            &[0, 2, 3],
        ),
        (
            &|rig| {
                let entries = rig.at(3, OPEN, 0);
                ListCopy { entries, count: 1, from: OWN, to: Rank(2) }.into()
            },
            &[0, 2, 3],
        ),
        (
            &|rig| {
                let entries = rig.at(0, OPEN, 0);
                ListCopy { entries, count: 1, from: Rank(1), to: OWN }.into()
            },
            &[0, 1],
        ),
    ];
    for (number, (request, touched)) in requests.into_iter().enumerate() {
        for rank in 0..RANKS {
            let mut rig = Rig::new(plain());
            rig.issue(request(&rig));
            rig.ops();
            let flush = rig.machine.try_flush(Rank(rank)).unwrap();
            rig.ops();
            let has_ended = rig.ended().iter().any(|(handle, _)| *handle == flush);
            assert_eq!(has_ended, !touched.contains(&rank), "{number}: {rank}");
        }
    }
}

/// An operation after a flush is not between the two ranks of the operation before
/// the flush: it waits for all.
#[test]
fn a_continuation_after_a_flush_waits_for_all() {
    let mut rig = Rig::new(plain());
    let word = |rig: &Rig, rank| {
        GlobalRequest::from(WordRequest::atomic(Kind::FetchAdd, rig.at(rank, OPEN, 0), 1u64))
    };
    rig.issue(word(&rig, 1));
    rig.issue(word(&rig, 2));
    let mut ops = rig.ops();
    ops.sort_by_key(|out| out.op.remote.rank);
    rig.machine.try_flush(Rank(2)).unwrap();
    rig.machine.try_issue(word(&rig, 2), After::Cont).unwrap();
    rig.end(&ops[1], Ok(0));
    assert!(rig.ops().is_empty());
    assert_eq!(rig.ended().len(), 1);
    assert!(rig.ops().is_empty(), "the other operation is under way");
    assert_eq!(rig.ended().len(), 1, "only the flush has ended");
    assert!(rig.ops().is_empty(), "the other operation is under way");
    rig.end(&ops[0], Ok(0));
    assert!(rig.ops().is_empty());
    assert_eq!(rig.ended().len(), 1);
    assert_eq!(rig.op().op.remote, remote(2, OPEN, 0));
}
