//! Lanes in memory: bytes arrive at their destination and nowhere else.

use super::*;
use crate::mem::LocalRank;

/// Rank 0 pushes an inline message of these bytes to rank 1.
fn push(pair: &mut Pair, bytes: &[u8]) {
    let packet = Packet { count: bytes.len() as u8, ..Packet::new(PacketKind::Inline) };
    pair.lanes[0].push(PeerIndex(1), &packet, PacketLoad::Inline(bytes_of(bytes).at));
}

/// A buffer with guard bytes around it; returns the address of the buffer.
fn guarded(len: usize, shift: usize) -> (&'static mut [u8], u64) {
    let buffer = Vec::leak(vec![0xEE; len + 32]);
    let at = bytes_of(buffer).at + shift as u64;
    (buffer, at)
}

fn check(buffer: &[u8], shift: usize, bytes: &[u8]) {
    let end = shift + bytes.len();
    assert!(buffer[shift..end] == *bytes, "{} bytes at {shift}", bytes.len());
    assert!(buffer[..shift].iter().chain(&buffer[end..]).all(|byte| *byte == 0xEE));
}

#[test]
fn inline_bytes_arrive_as_far_as_there_is_room() {
    for len in (0..INLINE_BYTES_MAX).step_by(7).chain([8, 32, 33, 88, 89, 144, 145, 200]) {
        for room in [0, 1, 7, 8, 9, 31, 33, 40, 89, len] {
            let (room, shift) = (room.min(len), room % 9);
            let mut pair = Pair::new(MatchingDesign::Mirror);
            let out = &text(len + 3, 5)[3..];
            push(&mut pair, out);
            let lanes = &mut pair.lanes[1];
            assert_eq!(lanes.peek(PeerIndex(0)).map(|packet| usize::from(packet.count)), Some(len));
            let (buffer, at) = guarded(room, shift);
            lanes.deliver(PeerIndex(0), at, room as u64);
            check(buffer, shift, &out[..room]);
            let mut kept = [u64::MAX; INLINE_WORDS];
            lanes.keep(PeerIndex(0), &mut kept);
            assert!(kept[len.div_ceil(8)..].iter().all(|word| *word == u64::MAX));
            lanes.pop(PeerIndex(0));
            assert_eq!(
                (lanes.peek(PeerIndex(0)), lanes.untold(PeerIndex(0))),
                (None, Packet::lines_of(len as u64))
            );
            let (buffer, at) = guarded(room, shift);
            lanes.deliver_kept(&kept, at, room as u64);
            check(buffer, shift, &out[..room]);
        }
    }
}

/// The lowest slot first, and only the named slots.
#[test]
fn bytes_lie_in_the_named_slots() {
    for (slots, len) in [(0b1, 256), (0b1010, 400), (0b1111, 1_024), (0b0110, 1), (0b1100, 256)] {
        let mut pair = Pair::new(MatchingDesign::Mirror);
        let (out, other) = (text(len, 3), text(1_024, 9));
        pair.lanes[0].write_slots(PeerIndex(1), !slots & 0b1111, bytes_of(other).at, 1_024);
        pair.lanes[0].write_slots(PeerIndex(1), slots, bytes_of(out).at, len as u64);
        // Another lane has other slots.
        pair.lanes[1].write_slots(PeerIndex(1), 0b1111, bytes_of(other).at, 1_024);
        pair.lanes[1].write_slots(PeerIndex(0), 0b1111, bytes_of(other).at, 1_024);
        let (buffer, at) = guarded(len, 5);
        pair.lanes[1].read_slots(PeerIndex(0), slots, at, len as u64);
        check(buffer, 5, out);
        // Bits of slots that do not exist, and bytes beyond the slots.
        let (buffer, at) = guarded(len, 5);
        pair.lanes[1].read_slots(PeerIndex(0), slots | 0xFFF0, at, len as u64);
        check(buffer, 5, out);
        let end = len.min(256);
        let (buffer, at) = guarded(len, 5);
        let first = slots & slots.wrapping_neg();
        pair.lanes[1].read_slots(PeerIndex(0), first, at, len as u64);
        check(buffer, 5, &out[..end]);
    }
}

#[test]
fn returned_counts_are_read_by_the_sender() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    assert_eq!(pair.lanes[0].returned(PeerIndex(1)), Returned::default());
    (0..3).for_each(|_| push(&mut pair, text(8, 1)));
    assert!(pair.lanes[0].has_room(PeerIndex(1), 13) && !pair.lanes[0].has_room(PeerIndex(1), 14));
    for _ in 0..2 {
        assert!(pair.lanes[1].peek(PeerIndex(0)).is_some());
        pair.lanes[1].pop(PeerIndex(0));
    }
    assert_eq!(pair.lanes[1].untold(PeerIndex(0)), 2);
    assert!(!pair.lanes[1].is_starved(PeerIndex(0)));
    pair.lanes[0].set_starved(PeerIndex(1));
    assert!(pair.lanes[1].is_starved(PeerIndex(0)) && !pair.lanes[1].is_starved(PeerIndex(1)));
    let returned = Returned { lines: 0, taken: 5, matched: 4, slots: 0b11 };
    assert!(pair.lanes[1].give_back(PeerIndex(0), returned), "the peer requested room");
    assert!(!pair.lanes[1].is_starved(PeerIndex(0)));
    assert!(!pair.lanes[1].give_back(PeerIndex(0), returned));
    assert_eq!(pair.lanes[1].untold(PeerIndex(0)), 0);
    assert_eq!(pair.lanes[0].returned(PeerIndex(1)), Returned { lines: 2, ..returned });
    assert!(pair.lanes[0].has_room(PeerIndex(1), 15) && !pair.lanes[0].has_room(PeerIndex(1), 16));
}

/// Each lane has one word, which both of its sides share.
#[test]
fn one_message_of_a_lane_is_split_at_a_time() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    assert!(pair.lanes[0].split_to(PeerIndex(1), 5));
    assert!(!pair.lanes[0].split_to(PeerIndex(1), 6) && !pair.lanes[1].split_from(PeerIndex(0), 6));
    assert!(pair.lanes[1].split_to(PeerIndex(0), 5) && !pair.lanes[0].split_from(PeerIndex(1), 6));
    pair.lanes[1].split(PeerIndex(0), SplitSide::Receiver).close();
    assert!(pair.lanes[1].split_from(PeerIndex(0), 7) && !pair.lanes[0].split_to(PeerIndex(1), 6));
    pair.lanes[0].split(PeerIndex(1), SplitSide::Sender).close();
    assert!(pair.lanes[0].split_to(PeerIndex(1), 6));
}

#[test]
fn an_unconnected_peer_has_no_room_and_no_packets() {
    let memory = vec![0u64; SHAPE.memory_size() / 8 + 8].leak();
    let at = NonNull::from(&mut *memory).cast::<u8>();
    // SAFETY: inside of the memory, which has 64 bytes more.
    let at = unsafe { at.add(at.align_offset(MessageShape::ALIGN)) };
    let ends = Vec::leak(Vec::from([LaneEnd::EMPTY, LaneEnd::EMPTY]));
    // SAFETY: zero lines that live for ever, for these lanes alone.
    let mut lanes = unsafe { NodeLanes::new(LocalRank(1), SHAPE, at, ends) }.unwrap();
    assert!(!lanes.has_room(PeerIndex(0), 0));
    assert_eq!(lanes.returned(PeerIndex(0)), Returned::default());
    lanes.set_starved(PeerIndex(0));
    assert_eq!(lanes.peek(PeerIndex(0)), None);
}

#[test]
fn lanes_need_a_valid_shape_and_an_end_for_each_peer() {
    let lanes = |rank: u32, shape: MessageShape, ends: usize| {
        let memory = Vec::leak((0..256).map(|_| LaneLine::new()).collect::<Vec<_>>());
        let ends = Vec::leak((0..ends).map(|_| LaneEnd::EMPTY).collect::<Vec<_>>());
        // SAFETY: zero lines that live for ever, for these lanes alone.
        unsafe { NodeLanes::new(LocalRank(rank), shape, NonNull::from(memory).cast(), ends) }.err()
    };
    assert_eq!(lanes(1, SHAPE, 2), None);
    assert_eq!(lanes(0, SHAPE, 3), None);
    assert_eq!(lanes(2, SHAPE, 2), Some(SetupError::Shape(SHAPE)));
    let odd = MessageShape { lines: 15, ..SHAPE };
    assert_eq!(lanes(0, odd, 2), Some(SetupError::Shape(odd)));
    assert_eq!(lanes(0, SHAPE, 1), Some(SetupError::Tables { entries: 1, needed: 2 }));
}

#[test]
fn a_copy_copies_exactly_its_length() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    for len in [0, 1, 100, 5_000] {
        let out = text(len, 5);
        let (buffer, to) = guarded(len, 3);
        let from = bytes_of(out).at;
        let len = len as u64;
        let peer = PeerIndex(1);
        pair.lanes[0].copy(&Copy { peer, from, to, len, streaming: false, by_kernel: false });
        check(buffer, 3, out);
    }
}
