//! The path of a message, by its size and by its known receive.

use super::moves::pushed;
use super::script::{Did, One, at};
use super::sends::{copy, direct};
use super::*;

/// The path of a message with a known receive.
#[test]
fn the_size_decides_the_path_of_a_message_with_a_known_receive() {
    let way = |len: u64, in_reach: bool, is_known: bool, set: fn(&mut Thresholds)| {
        let mut one = One::new(MatchingDesign::Mirror);
        set(one.thresholds(1));
        one.is_offered(1, 9, 7, MessageBytes { in_reach: is_known, ..at(0x5000, 1 << 20) });
        let begun = one.send(1, 7, MessageBytes { in_reach, ..at(0x100, len) });
        assert_eq!(one.peer(1).mirror_len, 0, "the mirror has no other receive");
        let job = one.machine.poll_job().map(|job| job.copy);
        (one.did(), begun.done().is_some(), job)
    };
    let defaults: fn(&mut Thresholds) = |_| {};
    let (did, done, _) = way(200, true, true, defaults);
    assert_eq!((did, done), (vec![Did::Inline(1, 200, 7)], true));
    for len in [201, 8_192] {
        let (did, done, _) = way(len, true, true, defaults);
        let copied = Did::Copied(copy(0x100, 0x5000, len, false));
        assert_eq!((did, done), (vec![copied, pushed(direct(9, len, Packet::DONE))], true));
    }
    for (len, in_reach) in [(8_193, true), (16_383, true), (16_384, false)] {
        let (did, done, job) = way(len, in_reach, true, defaults);
        assert_eq!((did, done), (vec![pushed(direct(9, len, 0))], false));
        let part = Thresholds::DEFAULT.part_of(len, false);
        let first = if len / 2 >= part { part } else { len };
        assert_eq!(job, Some(copy(0x100, 0x5000, first, false)));
    }
    let told = |len: u64, count: u8| {
        pushed(Packet { id: 0, tag: 7, a: len, b: 0x100, count, ..Packet::new(PacketKind::Rts) })
    };
    assert_eq!(way(16_384, true, true, defaults), (vec![told(16_384, 2)], false, None));
    assert_eq!(way(16_385, false, true, defaults), (vec![told(16_385, 0)], false, None));
    assert_eq!(way(131_071, true, true, defaults), (vec![told(131_071, 2)], false, None));
    let (did, _, job) = way(131_072, true, true, defaults);
    assert_eq!(did, [pushed(direct(9, 131_072, 0))]);
    assert_eq!(job, Some(copy(0x100, 0x5000, 32 << 10, true)));
    // Fetched, although the message would fit into slots.
    let pull: fn(&mut Thresholds) = |to| (to.pull_from, to.direct_from) = (500, 10_000);
    assert_eq!(way(500, true, true, pull), (vec![told(500, 2)], false, None));
    // A buffer out of reach, or not worth it, is treated as if it were unknown.
    let eager = |len: u64| {
        let slots = (1 << len.div_ceil(256)) - 1;
        let packet = Packet { tag: 7, a: len, b: slots, ..Packet::new(PacketKind::Eager) };
        vec![Did::Wrote(1, slots as u32, 0x100, len), pushed(packet)]
    };
    assert_eq!(way(500, false, true, pull), (eager(500), true, None));
    assert_eq!(way(499, true, true, pull), (eager(499), true, None));
    assert_eq!(way(300, true, false, defaults), (eager(300), true, None));
    assert_eq!(way(768, true, false, defaults), (eager(768), true, None));
    assert_eq!(way(769, true, false, defaults), (vec![told(769, 2)], false, None));
    let kernel: fn(&mut Thresholds) = |to| to.kernel_from = 1_000;
    assert_eq!(way(1_000, false, false, kernel), (vec![told(1_000, 32)], false, None));
    assert_eq!(way(999, false, false, kernel), (vec![told(999, 0)], false, None));
    assert_eq!(way(1_000, true, false, kernel), (vec![told(1_000, 2)], false, None));
}

/// Bytes for which the receive has no room are not copied.
#[test]
fn a_message_is_copied_as_far_as_there_is_room() {
    let mut one = One::new(MatchingDesign::Mirror);
    one.is_offered(1, 9, 7, at(0x5000, 100));
    one.send(1, 7, at(0x100, 5_000));
    let whole = Did::Copied(copy(0x100, 0x5000, 100, false));
    assert_eq!(one.did(), [whole, pushed(direct(9, 5_000, Packet::DONE))]);
    one.is_offered(1, 9, 7, at(0x5000, 8_193));
    let sent = one.send(1, 7, at(0x100, 12_000)).pending().unwrap();
    assert_eq!(one.pushed(), [PacketKind::Direct]);
    assert_eq!(one.entry(sent).size, 8_193);
    let job = one.machine.poll_job().unwrap();
    assert_eq!(job.copy.len, 8_193);
    one.done(job, Ok(()));
    assert_eq!(one.did(), [pushed(Packet { id: 9, ..Packet::new(PacketKind::Copied) })]);
    assert!(one.take(sent).unwrap().is_ok());
    assert_eq!(one.machine.counts().messages(MessagePath::Direct).iter().sum::<u64>(), 2);
}

#[test]
fn a_message_in_halves_is_reported_after_each_half() {
    for (len, room, half) in [(3_000, 6, Some(1_536)), (3_000, 5, None), (999, 6, None)] {
        let mut one = One::new(MatchingDesign::Mirror);
        one.thresholds(1).halves_from = 1_000;
        one.is_offered(1, 9, 7, at(0x5000, 5_000));
        one.wire.room[1] = room;
        assert_eq!(one.send(1, 7, at(0x100, len)), Begun::Done(()));
        let Some(half) = half else {
            let whole = Did::Copied(copy(0x100, 0x5000, len, false));
            assert_eq!(one.did(), [whole, pushed(direct(9, len, Packet::DONE))]);
            continue;
        };
        let rest = copy(0x100 + half, 0x5000 + half, len - half, false);
        let did = [
            Did::Copied(copy(0x100, 0x5000, half, false)),
            pushed(Packet { b: half, ..direct(9, len, 0) }),
            Did::Copied(rest),
            pushed(Packet { id: 9, ..Packet::new(PacketKind::Copied) }),
        ];
        assert_eq!(one.did(), did);
    }
}

/// Without a free slot a message stays with its sender.
#[test]
fn a_message_without_slots_is_announced() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    let mut kinds = || {
        one.send(1, 7, at(0x100, 300));
        one.pushed()
    };
    assert_eq!(kinds(), [PacketKind::Eager]);
    assert_eq!(kinds(), [PacketKind::Rts], "two slots are free, of which one is reserved");
    one.wire.returned[1].slots = 0b0011;
    let mut kinds = || {
        one.send(1, 7, at(0x100, 300));
        one.pushed()
    };
    assert_eq!(kinds(), [PacketKind::Eager]);
    let eager = one.machine.counts().messages(MessagePath::Eager).iter().sum::<u64>();
    let told = one.machine.counts().messages(MessagePath::Rendezvous).iter().sum::<u64>();
    assert_eq!((eager, told), (2, 1));
}
