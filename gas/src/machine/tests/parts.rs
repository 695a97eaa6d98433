//! The operations for a copy, a list and a word, and their order.

use super::*;
use crate::request::{Copy, ENTRY_BYTES, ListCopy, WordRequest};

/// The kind of a put or get, the other rank's address, the own offset, and the
/// bytes.
fn told(out: &OutgoingOp) -> (Kind, RemoteAddr, u64, u64) {
    (out.op.kind, out.op.remote, out.op.local().offset, out.op.bytes())
}

#[test]
fn a_copy_goes_part_by_part_a_quarter_of_the_flights_at_a_time() {
    for is_push in [true, false] {
        let mut rig = Rig::new(plain());
        let (own, theirs) = (rig.at(0, OPEN, 8), rig.at(1, OPEN, 16));
        let (dst, src) = if is_push { (theirs, own) } else { (own, theirs) };
        rig.issue(Copy::new(dst, src, 650));
        let kind = if is_push { Kind::Put } else { Kind::Get };
        let part = |index: u64| {
            let bytes = if index == 6 { 50 } else { 100 };
            (kind, remote(1, OPEN, 16 + 100 * index), 8 + 100 * index, bytes)
        };
        let mut flown = rig.ops();
        assert_eq!(flown.iter().map(told).collect::<Vec<_>>(), [0, 1, 2, 3].map(part));
        for next in 4..7 {
            rig.end(&flown[next - 1], Ok(0));
            let out = rig.op();
            assert_eq!(told(&out), part(next as u64));
            flown.push(out);
        }
        for at in [0, 1, 2] {
            rig.end(&flown[at], Ok(9));
            assert!(rig.ops().is_empty() && rig.ended().is_empty());
        }
        rig.end(&flown[6], Ok(9));
        assert!(rig.ops().is_empty());
        assert_eq!(rig.result(), Ok(0));
        assert!(!rig.keeps(1), "no operation on rank 1 is under way");
    }
}

#[test]
fn a_read_only_region_is_not_written() {
    for (kind, name, is_good) in [
        (Kind::GetWord, READ, true),
        (Kind::PutWord, READ, false),
        (Kind::FetchAdd, READ, false),
        (Kind::PutWord, OPEN, true),
    ] {
        let mut rig = Rig::new(plain());
        let addr = rig.at(1, name, 8);
        rig.issue(WordRequest::atomic(kind, addr, 3u64));
        let ops = rig.finish();
        assert_eq!(ops.len(), usize::from(is_good), "{kind:?}");
        let result = if is_good { Ok(0) } else { Err(AddrError::ReadOnly { addr }) };
        assert_eq!(rig.result(), result, "{kind:?}");
    }
    for (is_push, result) in [(true, false), (false, true)] {
        let mut rig = Rig::new(plain());
        let (own, addr) = (rig.at(0, OPEN, 0), rig.at(1, READ, 0));
        let (dst, src) = if is_push { (addr, own) } else { (own, addr) };
        rig.issue(Copy::new(dst, src, 8));
        rig.finish();
        let expected = if result { Ok(0) } else { Err(AddrError::ReadOnly { addr }) };
        assert_eq!(rig.result(), expected);
        assert!(!rig.keeps(1));
    }
    // The same for the word that reports that a copy has landed.
    let mut rig = Rig::new(plain());
    let (own, dst, addr) = (rig.at(0, OPEN, 0), rig.at(1, OPEN, 0), rig.at(2, READ, 0));
    rig.issue(Copy::new(dst, own, 8).then_add(addr, 1));
    assert_eq!(rig.finish().len(), 1);
    assert_eq!(rig.result(), Err(AddrError::ReadOnly { addr }));
}

/// Whether a part is inside a region is checked part by part; whether addresses have
/// room for a block is checked before any part of it goes.
#[test]
fn bytes_beyond_a_region_are_not_accessed() {
    let end = plain().split.region_bytes_max();
    for (offset, bytes, refused) in [
        (BYTES - 8, 8, None),
        (BYTES - 8, 9, Some(9)),
        (BYTES - 8, 101, Some(100)),
        (end - 200, 200, Some(100)),
        (end - 200, 201, Some(201)),
        (end - 1, 2, Some(2)),
    ] {
        for is_push in [true, false] {
            let mut rig = Rig::new(plain());
            let (own, addr) = (rig.at(0, OPEN, 0), rig.at(1, OPEN, offset));
            let (dst, src) = if is_push { (addr, own) } else { (own, addr) };
            rig.issue(Copy::new(dst, src, bytes));
            assert_eq!(rig.finish().len(), usize::from(refused.is_none()));
            // The sum of address and length is checked without the region.
            let region_bytes = (offset + bytes <= end).then_some(BYTES);
            let error = |bytes| AddrError::OutOfRange { addr, bytes, region_bytes };
            assert_eq!(rig.result(), refused.map_or(Ok(0), |bytes| Err(error(bytes))));
        }
    }
}

/// If a put that has completed may not have landed, its last byte is read back
/// before the word that reports the landing is changed.
#[test]
fn put_bytes_are_read_back_before_the_flag_is_changed() {
    let unconfirmed = MachineSetup { remote_completion: false, ..plain() };
    let mut rig = Rig::new(unconfirmed);
    let (own, theirs, flag) = (rig.at(0, OPEN, 0), rig.at(1, OPEN, 16), rig.at(2, OPEN, 24));
    rig.issue(Copy::new(theirs, own, 250).then_add(flag, 7));
    let ops = rig.finish();
    let kinds: Vec<Kind> = ops.iter().map(|out| out.op.kind).collect();
    assert_eq!(kinds, [Kind::Put, Kind::Put, Kind::Put, Kind::GetWord, Kind::FetchAdd]);
    let (read, add) = (ops[3].op, ops[4].op);
    assert_eq!((read.remote, read.bytes(), read.notify), (remote(1, OPEN, 265), 1, false));
    assert_eq!((add.remote, add.operand(), add.notify), (remote(2, OPEN, 24), 7, true));
    assert_eq!(rig.result(), Ok(0));

    for (kind, reads) in [(Kind::PutWord, 1), (Kind::FetchAdd, 0), (Kind::GetWord, 0)] {
        let mut rig = Rig::new(unconfirmed);
        rig.issue(WordRequest::atomic(kind, rig.at(1, OPEN, 40), 1u64));
        let ops = rig.finish();
        assert_eq!(ops.len(), 1 + reads, "{kind:?}");
        assert!(ops[1..].iter().all(|out| out.op.remote == remote(1, OPEN, 40)));
        assert_eq!(rig.result(), Ok(0));
    }
    let mut rig = Rig::new(unconfirmed);
    rig.issue(Copy::new(rig.at(0, OPEN, 0), rig.at(1, OPEN, 0), 8));
    assert_eq!(rig.finish().len(), 1, "a get has landed");
}

/// The result is the word's old value for an operation on a word, and 0 for all
/// others.
#[test]
fn only_an_operation_on_a_word_has_a_value() {
    let mut rig = Rig::new(plain());
    rig.issue(WordRequest::atomic(Kind::FetchAdd, rig.at(1, OPEN, 0), 1u64));
    let out = rig.op();
    rig.end(&out, Ok(41));
    assert!(rig.ops().is_empty());
    assert_eq!(rig.result(), Ok(41));
    rig.issue(Copy::new(rig.at(1, OPEN, 0), rig.at(0, OPEN, 0), 8));
    let out = rig.op();
    rig.end(&out, Ok(41));
    assert!(rig.ops().is_empty());
    assert_eq!(rig.result(), Ok(0));
}

const BOTH: &[Rank] = &[Rank(1), Rank(2)];

/// The driver copies between two near ranks; their tables stay meanwhile.
#[test]
fn a_copy_between_near_ranks_is_done_by_the_driver() {
    let mut rig = Rig::new(MachineSetup { near: BOTH, remote_completion: false, ..plain() });
    rig.issue(Copy::new(rig.at(2, OPEN, 8), rig.at(1, OPEN, 16), 64));
    let out = rig.op();
    assert_eq!(out.source, Some(remote(1, OPEN, 16)));
    assert_eq!((out.op.kind, out.op.remote), (Kind::Put, remote(2, OPEN, 8)));
    assert!(rig.keeps(1) && rig.keeps(2));
    rig.end(&out, Ok(0));
    // Both ranks get their answers now, and nothing is read back.
    let asked: Vec<RemoteAddr> = rig.ops().iter().map(|out| out.op.remote).collect();
    assert_eq!(asked, [1, 2].map(|rank| rig.control.ack(Rank(rank)).0));
    assert_eq!(rig.result(), Ok(0));
}

/// The same if the memory of one of the two belongs to a device: then the source
/// gets a command, because it has the device, and no table is kept for that.
#[test]
fn a_copy_of_device_memory_between_near_ranks_is_done_by_the_source() {
    for (from, to) in [(DEVICES, OPEN), (OPEN, DEVICES), (DEVICES, DEVICES)] {
        let mut rig = Rig::new(MachineSetup { near: BOTH, ..plain() });
        rig.issue(Copy::new(rig.at(2, to, 8), rig.at(1, from, 16), 64));
        let out = rig.op();
        assert_eq!((out.op.kind, out.op.remote.rank), (Kind::CompareSwap, Rank(1)));
        assert_eq!(out.op.remote.key, rig.control.key, "the operation is a note");
        assert!(!rig.keeps(1) && !rig.keeps(2), "{from} {to}");
        // Its note is tried as often as any.
        rig.end(&out, Ok(5));
        for _ in 1..4 {
            assert_eq!(rig.machine.next_deadline(), None);
            let out = rig.op();
            rig.end(&out, Ok(5));
        }
        assert!(rig.ops().is_empty() && rig.machine.next_deadline().is_some());
    }
}

/// The table that is here already is kept while the table of the other end comes.
#[test]
fn the_table_of_one_end_waits_for_that_of_the_other() {
    let mut rig = Rig::new(MachineSetup { near: BOTH, ..plain() });
    rig.issue(WordRequest::atomic(Kind::GetWord, rig.at(1, OPEN, 0), 0u64));
    rig.finish();
    rig.issue(Copy::new(rig.at(2, OPEN, 0), rig.at(1, OPEN, 0), 8));
    let out = rig.machine.poll_op().unwrap();
    assert_eq!(out.op.remote, rig.control.holder(Rank(2)).0);
    assert!(rig.keeps(1));
    rig.end(&out, Ok(0));
    assert!(rig.finish().iter().any(|out| out.source == Some(remote(1, OPEN, 0))));
    assert!(!rig.keeps(1) && !rig.keeps(2), "no operation is under way");
}

/// Also if the other table does not come.
#[test]
fn the_table_of_one_end_is_kept_only_until_the_copy_has_ended() {
    let mut rig = Rig::new(MachineSetup { near: BOTH, ..plain() });
    rig.issue(WordRequest::atomic(Kind::GetWord, rig.at(1, OPEN, 0), 0u64));
    rig.finish();
    assert_eq!(rig.result(), Ok(0));
    rig.lost = vec![Rank(2)];
    rig.issue(Copy::new(rig.at(2, OPEN, 0), rig.at(1, OPEN, 0), 8));
    assert!(rig.finish().is_empty());
    assert_eq!(rig.result(), Err(AddrError::PeerLost { rank: Rank(2) }));
    assert!(!rig.keeps(1), "no operation is under way");
}

/// The entries of a list are fetched in batches that fit in a landing; entries of 0
/// bytes are skipped.
#[test]
fn a_list_is_read_in_batches() {
    let mut rig = Rig::new(plain());
    let list = ListCopy { entries: rig.at(0, OPEN, 1024), count: 12, from: OWN, to: Rank(1) };
    rig.issue(list);
    let (mut put, mut index, mut next) = (Vec::new(), 0, rig.ops());
    for count in [10, 2] {
        let get = next.remove(0);
        let at = remote(0, OPEN, 1024 + ENTRY_BYTES * index);
        let landing = rig.control.landing(0).offset;
        assert_eq!(told(&get), (Kind::Get, at, landing, ENTRY_BYTES * count));
        for entry in 0..count {
            let bytes = if index == 3 { 0 } else { 8 };
            rig.land(entry, rig.at(1, OPEN, 8 * index), rig.at(0, READ, 16 * index), bytes);
            index += 1;
        }
        rig.end(&get, Ok(0));
        next = rig.ops();
        // The next entries are fetched after the parts of these have completed.
        while next.first().is_some_and(|out| out.op.kind == Kind::Put) {
            put.extend(next.iter().map(told));
            next.iter().for_each(|out| rig.end(out, Ok(0)));
            next = rig.ops();
        }
    }
    assert!(next.is_empty());
    let entry = |index: u64| (Kind::Put, remote(1, OPEN, 8 * index), 16 * index, 8);
    let all: Vec<_> = (0..12).filter(|index| *index != 3).map(entry).collect();
    assert_eq!(put, all);
    assert_eq!(rig.result(), Ok(0));
}

/// Of a list of which the entries go on beyond the last address of their region, the
/// entries before that are taken.
#[test]
fn a_list_that_leaves_the_range_of_an_address_fails_there() {
    let mut rig = Rig::new(plain());
    let bytes = rig.split.region_bytes_max();
    let region =
        Region { key: key(OWN, NEW), base: NonNull::dangling(), bytes, access: Access::ReadWrite };
    let first = rig.machine.register(0, &region, Agent::Cpu).unwrap();
    assert_eq!(first, rig.at(0, NEW, 0));
    let entries = rig.at(0, NEW, bytes - 10 * ENTRY_BYTES);
    rig.issue(ListCopy { entries, count: 12, from: OWN, to: Rank(1) });
    let get = rig.op();
    assert_eq!((get.op.kind, get.op.bytes()), (Kind::Get, 10 * ENTRY_BYTES));
    for entry in 0..10 {
        rig.land(entry, rig.at(1, OPEN, 8 * entry), rig.at(0, READ, 0), 8);
    }
    rig.end(&get, Ok(0));
    assert_eq!(rig.finish().len(), 10);
    let beyond =
        AddrError::OutOfRange { addr: entries, bytes: 2 * ENTRY_BYTES, region_bytes: None };
    assert_eq!(rig.result(), Err(beyond));
}

#[test]
fn an_entry_with_other_ranks_ends_a_list() {
    for (to, from) in [(2, 0), (1, 3), (1, 0)] {
        let mut rig = Rig::new(plain());
        let list = ListCopy { entries: rig.at(0, OPEN, 0), count: 1, from: OWN, to: Rank(1) };
        rig.issue(list);
        let get = rig.op();
        let (dst, src) = (rig.at(to, OPEN, 0), rig.at(from, OPEN, 0));
        rig.land(0, dst, src, 8);
        rig.end(&get, Ok(0));
        let expected = match (to, from) {
            (1, 0) => Ok(0),
            (1, _) => Err(AddrError::OtherRank { addr: src }),
            _ => Err(AddrError::OtherRank { addr: dst }),
        };
        assert_eq!(rig.finish().len(), usize::from(expected.is_ok()));
        assert_eq!(rig.result(), expected);
    }
}

/// If an entry of a list needs a device, the source gets a command for the list,
/// after the operations in flight have completed.
#[test]
fn a_list_with_device_memory_is_passed_to_its_source() {
    let mut rig = Rig::new(MachineSetup { near: BOTH, ..plain() });
    let list = ListCopy { entries: rig.at(0, OPEN, 0), count: 2, from: Rank(1), to: Rank(2) };
    rig.issue(list);
    let get = rig.op();
    rig.land(0, rig.at(2, OPEN, 0), rig.at(1, OPEN, 0), 8);
    rig.land(1, rig.at(2, DEVICES, 0), rig.at(1, OPEN, 0), 8);
    rig.end(&get, Ok(0));
    let first = rig.op();
    assert_eq!(first.source, Some(remote(1, OPEN, 0)));
    assert!(rig.ops().is_empty());
    rig.end(&first, Ok(0));
    let note = rig.op();
    assert_eq!((note.op.kind, note.op.remote.rank), (Kind::CompareSwap, Rank(1)));
    assert_eq!(rig.command(0).map(|command| command.request), Some(GlobalRequest::List(list)));
}
