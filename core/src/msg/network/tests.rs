//! Two ranks, and parcels that a test carries by hand.

use super::*;
use crate::msg::packet::{INLINE_BYTES_MAX, PacketKind};
use std::boxed::Box;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

const SHAPE: MessageShape =
    MessageShape { peers: 2, lines: 8, slots: 4, slot_bytes: 256, quota: 4, mirror: 1 };
/// The number of chunks that the lanes can have at most.
const CHUNKS: usize = 2 * NetworkLane::places(&SHAPE);
const A: PeerIndex = PeerIndex(0);
const B: PeerIndex = PeerIndex(1);

/// Memory in which an address is an offset.
struct Memory(Vec<u8>);

impl Buffers for Memory {
    fn read(&mut self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0[at as usize..][..into.len()]);
    }
    fn write(&mut self, at: u64, bytes: &[u8]) {
        self.0[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }
}

/// Memory that far ranks can fetch from: the word of a buffer is its address and length.
struct Fetchable;

impl Buffers for Fetchable {
    fn read(&mut self, _: u64, _: &mut [u8]) {}
    fn write(&mut self, _: u64, _: &[u8]) {}
    fn place(&mut self, at: u64, len: u64) -> Option<u64> {
        Some(at << 32 | len)
    }
}

fn mail() -> NetworkLanes<'static> {
    mail_of(SHAPE)
}

fn mail_of(shape: MessageShape) -> NetworkLanes<'static> {
    let ends = Vec::leak((0..2).map(|_| NetworkLaneEnd::EMPTY).collect());
    let mut mail = NetworkLanes::new(shape, ends).unwrap();
    for rank in [A, B] {
        let places = Vec::leak((0..NetworkLane::places(&shape)).map(|_| None).collect());
        mail.connect(rank, Box::leak(Box::new(NetworkLane::new(&shape, places).unwrap())));
    }
    let chunks = 2 * NetworkLane::places(&shape);
    mail.feed(Vec::leak((0..chunks).map(|_| LaneChunk::EMPTY).collect()));
    assert!(!mail.is_short());
    mail
}

/// All parcels to be sent, each of at most `bytes_max` bytes.
fn parcels(mail: &mut NetworkLanes<'_>, bytes_max: usize) -> Vec<Vec<u8>> {
    let mut into = vec![0; bytes_max];
    let mut parcels = Vec::new();
    while let Some((to, len)) = mail.poll_parcel(&mut into) {
        parcels.push(into[..len].to_vec());
        mail.posted(to);
    }
    parcels
}

fn inline(tag: u32, count: u8) -> Packet {
    Packet { count, tag, context: 3, ..Packet::new(PacketKind::Inline) }
}

#[test]
fn packets_share_a_parcel_and_come_in_order() {
    let (mut a, mut b) = (mail(), mail());
    let mut memory = Memory((0..=255).collect());
    a.push(B, &inline(1, 8), PacketLoad::Inline(10), &mut memory);
    a.push(B, &inline(2, 100), PacketLoad::Inline(20), &mut memory);
    let offer = Offer { id: 4, taken: 2, context: 1, tag: None, at: Some(9), room: 5 };
    let post = Packet { count: Packet::OFFER, ..Packet::new(PacketKind::Post) };
    a.push(B, &post, PacketLoad::Offer(offer), &mut memory);
    assert!(a.has_room(B, 3) && !a.has_room(B, 4));
    let [parcel] = &parcels(&mut a, 1024)[..] else { panic!("one parcel") };
    b.take(A, parcel).unwrap();
    assert_eq!((b.poll_arrived(), b.poll_arrived()), (Some(A), None));
    assert_eq!(b.peek(A), Some(inline(1, 8)));
    b.deliver(A, 200, 7, &mut memory);
    assert_eq!(memory.0[200..208], [10, 11, 12, 13, 14, 15, 16, 207]);
    b.pop(A);
    assert_eq!(b.peek(A), Some(inline(2, 100)));
    let mut kept = [0; INLINE_WORDS];
    b.keep(A, &mut kept);
    assert_eq!(kept[12].to_ne_bytes(), [116, 117, 118, 119, 0, 0, 0, 0]);
    b.pop(A);
    assert_eq!(b.peek(A), Some(post));
    assert_eq!(b.offer(A), Offer { at: None, ..offer });
    b.pop(A);
    assert_eq!((b.peek(A), b.untold(A)), (None, 5));
}

#[test]
fn an_early_parcel_waits_for_its_predecessors() {
    let (mut a, mut b) = (mail(), mail());
    let mut memory = Memory((0..2048).map(|at| at as u8).collect());
    a.write_slots(B, 0b1101, 3, 600, &mut memory);
    let eager = Packet { a: 600, b: 0b1101, ..Packet::new(PacketKind::Eager) };
    a.push(B, &eager, PacketLoad::Empty, &mut memory);
    a.push(B, &inline(1, 0), PacketLoad::Inline(0), &mut memory);
    let mut parcels = parcels(&mut a, PARCEL_BYTES_MIN);
    assert!(parcels.len() >= 4, "{}", parcels.len());
    let first = parcels.remove(0);
    for parcel in parcels.iter().rev() {
        b.take(A, parcel).unwrap();
        assert_eq!((b.peek(A), b.poll_arrived()), (None, None));
        assert!(matches!(b.take(A, parcel), Err(ParcelError::Number(_))), "a duplicate parcel");
    }
    b.take(A, &first).unwrap();
    assert_eq!((b.poll_arrived(), b.peek(A)), (Some(A), Some(eager)));
    b.read_slots(A, 0b1101, 1024, 600, &mut memory);
    let (left, right) = memory.0.split_at(1024);
    assert_eq!(left[3..603], right[..600]);
    b.pop(A);
    assert_eq!(b.peek(A), Some(inline(1, 0)));
}

#[test]
fn a_refused_parcel_is_sent_later_with_more_packets() {
    let (mut a, mut b) = (mail(), mail());
    let mut memory = Memory(vec![1; 16]);
    a.push(B, &inline(1, 4), PacketLoad::Inline(0), &mut memory);
    let mut into = [0; 1024];
    let (to, first) = a.poll_parcel(&mut into).unwrap();
    a.refused(to);
    assert!(a.has_unsent() && a.keeps_back(B));
    a.push(B, &inline(2, 4), PacketLoad::Inline(4), &mut memory);
    let (to, len) = a.poll_parcel(&mut into).unwrap();
    assert!(len > first);
    a.posted(to);
    assert!(!a.has_unsent() && !a.keeps_back(B));
    b.take(A, &into[..len]).unwrap();
    assert_eq!(b.peek(A), Some(inline(1, 4)));
}

/// Sends one packet and takes it.
fn one(a: &mut NetworkLanes<'_>, b: &mut NetworkLanes<'_>) {
    a.push(B, &inline(1, 0), PacketLoad::Inline(0), &mut Memory(Vec::new()));
    for parcel in parcels(a, 1024) {
        b.take(A, &parcel).unwrap();
    }
    assert!(b.peek(A).is_some());
    b.pop(A);
}

#[test]
fn returned_counts_go_with_other_packets_or_on_request() {
    let (mut a, mut b) = (mail(), mail());
    one(&mut a, &mut b);
    let returned = Returned { taken: 1, ..Returned::default() };
    assert!(!b.give_back(A, returned));
    assert!(!b.has_unsent(), "one line is not worth a parcel");
    a.set_starved(B);
    let [ask] = &parcels(&mut a, 1024)[..] else { panic!("one parcel") };
    b.take(A, ask).unwrap();
    assert!(b.is_starved(A));
    let [answer] = &parcels(&mut b, 1024)[..] else { panic!("one parcel") };
    a.take(B, answer).unwrap();
    assert_eq!(a.returned(B), Returned { lines: 1, ..returned });
    assert!(b.give_back(A, returned) && !b.is_starved(A));
    let [answer] = &parcels(&mut b, 1024)[..] else { panic!("a request is answered") };
    a.take(B, answer).unwrap();
    one(&mut a, &mut b);
    one(&mut a, &mut b);
    b.give_back(A, Returned { taken: 3, matched: 3, ..returned });
    let [much] = &parcels(&mut b, 1024)[..] else { panic!("one parcel") };
    a.take(B, much).unwrap();
    assert_eq!(a.returned(B).lines, 3);
    assert!(!a.has_unsent() && !b.has_unsent(), "an answer needs no answer");
}

#[test]
fn the_count_of_taken_messages_arrives_with_the_last_earlier_packet() {
    let (mut a, mut b) = (mail(), mail());
    let mut memory = Memory(vec![0; 256]);
    for _ in 0..2 {
        a.push(B, &inline(1, 200), PacketLoad::Inline(0), &mut memory);
    }
    a.give_back(B, Returned { taken: 7, matched: 7, ..Returned::default() });
    let [first, second] = &parcels(&mut a, PARCEL_BYTES_MIN)[..] else { panic!("two parcels") };
    b.take(A, first).unwrap();
    assert_eq!((b.returned(A).taken, b.returned(A).matched), (0, 7));
    b.take(A, second).unwrap();
    assert_eq!(b.returned(A).taken, 7);
}

/// A parcel contains the count of messages that were taken when its last packet
/// was pushed, if that count is the latest or the oldest that was not sent.
#[test]
fn a_parcel_carries_the_count_that_was_taken_before_its_packets() {
    let mut a = mail_of(MessageShape { lines: 64, ..SHAPE });
    let mut b = mail_of(MessageShape { lines: 64, ..SHAPE });
    let mut memory = Memory(vec![0; 256]);
    let push = |a: &mut NetworkLanes<'_>, memory: &mut Memory, taken| {
        a.push(B, &inline(1, 200), PacketLoad::Inline(0), memory);
        a.give_back(B, Returned { taken, ..Returned::default() });
    };
    let mut tell = |a: &mut NetworkLanes<'_>| {
        let mut into = vec![0; PARCEL_BYTES_MIN];
        let (to, len) = a.poll_parcel(&mut into).unwrap();
        a.posted(to);
        b.take(A, &into[..len]).unwrap();
        b.returned(A).taken
    };
    push(&mut a, &mut memory, 1);
    push(&mut a, &mut memory, 2);
    assert_eq!(tell(&mut a), 1);
    push(&mut a, &mut memory, 3);
    assert_eq!(tell(&mut a), 2);
    push(&mut a, &mut memory, 3);
    assert_eq!(tell(&mut a), 3);
    push(&mut a, &mut memory, 4);
    push(&mut a, &mut memory, 5);
    assert_eq!([tell(&mut a), tell(&mut a), tell(&mut a)], [3, 4, 5]);
}

#[test]
fn a_limited_number_of_parcels_is_under_way() {
    let (mut a, mut b) = (mail(), mail());
    let mut sent = Vec::new();
    for _ in 0..40 {
        a.set_starved(B);
        sent.extend(parcels(&mut a, 1024));
    }
    assert_eq!(sent.len(), 32);
    for parcel in &sent[..16] {
        b.take(A, parcel).unwrap();
    }
    let [alone] = &parcels(&mut b, 1024)[..] else { panic!("one acknowledgement") };
    assert_eq!(alone.len(), 8, "an acknowledgement has no number");
    a.take(B, alone).unwrap();
    let [last] = &parcels(&mut a, 1024)[..] else {
        panic!("the requests made meanwhile are one parcel")
    };
    for parcel in &sent[16..] {
        b.take(A, parcel).unwrap();
    }
    b.take(A, last).unwrap();
    let [alone] = &parcels(&mut b, 1024)[..] else { panic!("one acknowledgement") };
    assert_eq!(alone.len(), 8, "an acknowledgement has no number");
    a.take(B, alone).unwrap();
    assert!(!a.has_unsent() && !b.has_unsent(), "an acknowledgement is not acknowledged");
}

#[test]
fn a_very_late_parcel_does_not_move_the_window_back() {
    let (mut a, mut b) = (mail(), mail());
    b.set_starved(A);
    let late = parcels(&mut b, 1024).remove(0);
    for _ in 0..10 {
        for _ in 0..16 {
            a.set_starved(B);
            b.take(A, &parcels(&mut a, 1024).remove(0)).unwrap();
        }
        // It acknowledges alone: a numbered parcel would wait for the late one.
        let alone = parcels(&mut b, 1024).remove(0);
        a.take(B, &alone).unwrap();
    }
    a.take(B, &late).unwrap();
    assert!(a.is_starved(B));
    a.set_starved(B);
    assert_eq!(parcels(&mut a, 1024).len(), 1, "the window has not moved back");
}

#[test]
fn a_lost_rank_gets_nothing_and_its_packets_can_be_read() {
    let (mut a, mut b) = (mail(), mail());
    let mut memory = Memory(vec![7; 512]);
    b.write_slots(A, 1, 0, 100, &mut memory);
    let eager = Packet { a: 100, b: 1, ..Packet::new(PacketKind::Eager) };
    b.push(A, &eager, PacketLoad::Empty, &mut memory);
    let parcel = parcels(&mut b, 1024).remove(0);
    a.take(B, &parcel).unwrap();
    a.push(B, &inline(1, 0), PacketLoad::Inline(0), &mut memory);
    a.lost(B);
    assert!(!a.has_unsent());
    a.give_back(B, Returned { taken: 1, ..Returned::default() });
    assert!(parcels(&mut a, 1024).is_empty());
    assert_eq!(a.take(B, &parcel), Err(ParcelError::NoLane));
    a.read_slots(B, 1, 300, 100, &mut memory);
    assert_eq!(a.peek(B), Some(eager));
}

#[test]
fn malformed_parcels_are_refused() {
    let (mut a, mut b) = (mail(), mail());
    let mut memory = Memory(vec![7; 512]);
    a.write_slots(B, 1, 0, 100, &mut memory);
    a.push(
        B,
        &Packet { a: 100, b: 1, ..Packet::new(PacketKind::Eager) },
        PacketLoad::Empty,
        &mut memory,
    );
    let good = parcels(&mut a, 1024).remove(0);
    for len in 0..good.len() {
        let refused = b.take(A, &good[..len]);
        assert!(refused.is_err(), "cut off at {len}");
    }
    let changed = |at: usize, to: u8| {
        let mut parcel = good.clone();
        parcel[at] = to;
        parcel
    };
    let lines = |start, lines| Err(ParcelError::Lines { start, lines });
    for (at, to, why) in [
        (0, 9, Err(ParcelError::Kind(9))),
        (4, 32, Err(ParcelError::Number(32))),
        (8, 1, Err(ParcelError::Acknowledged(1))),
        (12, 8, lines(8, 1)),
        (16, 2, lines(0, 2)),
        (40 + 1, 4, Err(ParcelError::Slot(4))),
        (40 + 4, 157, Err(ParcelError::Slot(0))),
        (40 + 112, PacketKind::Direct as u8, Err(ParcelError::Kind(3))),
        (40 + 112, 77, Err(ParcelError::Kind(77))),
    ] {
        assert_eq!(b.take(A, &changed(at, to)), why, "byte {at}");
    }
    assert_eq!(b.take(PeerIndex(2), &good), Err(ParcelError::NoLane));
    assert_eq!(b.peek(A), None, "refused parcels deliver nothing");
    b.take(A, &good).unwrap();
    assert!(b.peek(A).is_some());
    for error in [ParcelError::Short { bytes: 3 }, ParcelError::Broken, ParcelError::Inline(9)] {
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn an_address_of_another_node_is_refused() {
    let (mut a, mut b) = (mail(), mail());
    let told = Packet { id: 6, tag: 5, a: 100, ..Packet::new(PacketKind::Cts) };
    a.push(B, &told, PacketLoad::Empty, &mut Memory(Vec::new()));
    let mut parcel = parcels(&mut a, 1024).remove(0);
    parcel[40 + 1] |= Packet::IN_REACH | Packet::SPLIT;
    parcel[40 + 20..][..8].fill(0x20);
    b.take(A, &parcel).unwrap();
    assert_eq!(b.peek(A), Some(told));
}

#[test]
fn a_parcel_with_a_wrong_position_breaks_its_lane() {
    let (mut a, mut b) = (mail(), mail());
    for _ in 0..2 {
        a.push(B, &inline(1, 0), PacketLoad::Inline(0), &mut Memory(Vec::new()));
        let mut parcel = parcels(&mut a, 1024).remove(0);
        if parcel[12] == 1 {
            // The second parcel starts where the first ended; its start is moved
            // by two lines.
            parcel[12] = 3;
        }
        b.take(A, &parcel).unwrap();
    }
    assert_eq!(b.peek(A), None);
    let parcel = {
        a.push(B, &inline(1, 0), PacketLoad::Inline(0), &mut Memory(Vec::new()));
        parcels(&mut a, 1024).remove(0)
    };
    assert_eq!(b.take(A, &parcel), Err(ParcelError::Broken));
}

#[test]
fn a_lane_has_memory_for_its_unread_bytes() {
    let (mut a, mut b) = (mail(), mail());
    let mut memory = Memory(vec![7; 1024]);
    for _ in 0..3 {
        a.write_slots(B, 0b11, 0, 400, &mut memory);
        let eager = Packet { a: 400, b: 0b11, ..Packet::new(PacketKind::Eager) };
        a.push(B, &eager, PacketLoad::Empty, &mut memory);
        a.push(B, &inline(1, 8), PacketLoad::Inline(0), &mut memory);
        assert_eq!(a.chunks_free(), CHUNKS - 2, "one chunk for lines and one for slots");
        let mut parcels = parcels(&mut a, PARCEL_BYTES_MIN);
        assert_eq!(a.chunks_free(), CHUNKS, "the network has copied all bytes");
        let first = parcels.remove(0);
        for parcel in parcels {
            b.take(A, &parcel).unwrap();
        }
        assert_eq!(b.chunks_free(), CHUNKS - 3, "one more chunk for the records of early parcels");
        b.take(A, &first).unwrap();
        assert_eq!(b.chunks_free(), CHUNKS - 2);
        assert_eq!(b.peek(A), Some(eager));
        b.pop(A);
        b.read_slots(A, 0b11, 0, 400, &mut memory);
        assert_eq!(b.chunks_free(), CHUNKS - 1, "the bytes of slots were read");
        assert_eq!(b.peek(A), Some(inline(1, 8)));
        b.pop(A);
        assert_eq!(b.chunks_free(), CHUNKS);
        b.give_back(A, Returned::default());
        b.set_starved(A);
        for parcel in self::parcels(&mut b, 1024) {
            a.take(B, &parcel).unwrap();
        }
    }
    // Bytes that were not read are freed when their slot is returned, or when their rank is
    // lost.
    a.write_slots(B, 0b100, 0, 10, &mut memory);
    let eager = Packet { a: 10, b: 0b100, ..Packet::new(PacketKind::Eager) };
    a.push(B, &eager, PacketLoad::Empty, &mut memory);
    b.take(A, &parcels(&mut a, 1024)[0]).unwrap();
    b.peek(A);
    b.pop(A);
    assert_eq!(b.chunks_free(), CHUNKS - 1);
    b.give_back(A, Returned { slots: 0b100, ..Returned::default() });
    assert_eq!(b.chunks_free(), CHUNKS);
    a.write_slots(B, 0b1001, 0, 400, &mut memory);
    a.push(B, &inline(1, 0), PacketLoad::Inline(0), &mut memory);
    assert_eq!(a.chunks_free(), CHUNKS - 2);
    a.lost(B);
    assert_eq!(a.chunks_free(), CHUNKS);
}

/// A quarter of the lines, or of the quota, is returned in a parcel of its own; less of it
/// goes in another parcel.
#[test]
fn a_quarter_is_returned_in_a_parcel_of_its_own() {
    let (mut a, mut b) = (mail_of(SHAPE), mail_of(SHAPE));
    one(&mut a, &mut b);
    b.give_back(A, Returned::default());
    assert!(!b.has_unsent(), "one line of eight");
    one(&mut a, &mut b);
    b.give_back(A, Returned::default());
    assert!(b.has_unsent(), "two lines of eight");
    for (matched, is_much) in [(7, false), (8, true), (9, true)] {
        let mut mail = mail_of(MessageShape { lines: 64, quota: 32, ..SHAPE });
        mail.give_back(A, Returned { matched, ..Returned::default() });
        assert_eq!(mail.has_unsent(), is_much, "{matched} of 32");
    }
}

/// A chunk is given up with the last of its lines, but not while lines of the
/// next round lie at its start.
#[test]
fn a_chunk_is_freed_with_the_last_of_its_lines() {
    for (from, to, reach, free) in [
        (0, 31, 64, 2),
        (0, 32, 64, 3),
        (31, 32, 64, 3),
        (0, 63, 64, 3),
        (40, 64, 96, 3),
        (0, 64, 64, 4),
        (0, 64, 96, 4),
        (0, 32, 128, 3),
        (0, 32, 129, 2),
    ] {
        let mut pool = Pool::default();
        for chunk in Vec::leak((0..4).map(|_| LaneChunk::EMPTY).collect()) {
            pool.give(chunk);
        }
        let mut ring = ring::Ring::new(128, Vec::leak((0..4).map(|_| None).collect()));
        for line in 0..64 {
            ring.write(&mut pool, line, &[7; 64]);
        }
        assert_eq!(pool.free(), 2);
        ring.pass(&mut pool, from, to, reach);
        assert_eq!(pool.free(), free, "from {from} to {to} of {reach}");
    }
}

#[test]
fn a_lane_with_a_bad_shape_is_refused() {
    let bad = MessageShape { lines: 7, ..SHAPE };
    let places = Vec::leak((0..NetworkLane::places(&SHAPE)).map(|_| None).collect());
    assert_eq!(NetworkLane::new(&bad, places).err(), Some(SetupError::Shape(bad)));
    let ends = Vec::leak((0..2).map(|_| NetworkLaneEnd::EMPTY).collect());
    assert_eq!(NetworkLanes::new(bad, ends).err(), Some(SetupError::Shape(bad)));
}

#[test]
fn mail_keeps_its_packets_when_it_grows() {
    let (mut a, mut b) = (mail(), mail());
    a.push(B, &inline(1, 4), PacketLoad::Inline(0), &mut Memory(vec![1; 4]));
    b.push(A, &inline(2, 4), PacketLoad::Inline(0), &mut Memory(vec![2; 4]));
    b.take(A, &parcels(&mut a, 1024)[0]).unwrap();
    let ends = |count| Vec::leak((0..count).map(|_| NetworkLaneEnd::EMPTY).collect());
    let refused = Err(SetupError::Tables { entries: 1, needed: 2 });
    assert_eq!(b.grow(ends(1)), refused);
    assert_eq!(b.grow(ends(2)), Ok(()));
    assert_eq!(b.grow(ends(3)), Ok(()));
    assert_eq!(b.grow(ends(2)), Err(SetupError::Tables { entries: 2, needed: 3 }));
    assert!(b.is_connected(A) && b.is_connected(B) && !b.is_connected(PeerIndex(2)));
    assert_eq!((b.poll_arrived(), b.peek(A)), (Some(A), Some(inline(1, 4))));
    assert!(b.has_unsent() && b.keeps_back(A));
    a.take(B, &parcels(&mut b, 1024)[0]).unwrap();
    assert_eq!(a.peek(B), Some(inline(2, 4)));
    // The new rank can be connected; a rank beyond it has no lane.
    let places = Vec::leak((0..NetworkLane::places(&SHAPE)).map(|_| None).collect());
    b.connect(PeerIndex(2), Box::leak(Box::new(NetworkLane::new(&SHAPE, places).unwrap())));
    assert!(
        b.is_connected(PeerIndex(2)) && b.has_room(PeerIndex(2), 8) && !b.has_room(PeerIndex(2), 9)
    );
    assert_eq!(b.take(PeerIndex(3), &[]), Err(ParcelError::NoLane));
}

#[test]
fn a_lane_needs_its_places_and_the_lanes_their_ends() {
    let needed = NetworkLane::places(&SHAPE);
    let places = |count| -> &'static mut [ChunkPlace<'static>] {
        Vec::leak((0..count).map(|_| None).collect())
    };
    let short = SetupError::Tables { entries: needed - 1, needed };
    assert_eq!(NetworkLane::new(&SHAPE, places(needed - 1)).err(), Some(short));
    assert!(NetworkLane::new(&SHAPE, places(needed)).is_ok());
    let ends = |count| Vec::leak((0..count).map(|_| NetworkLaneEnd::EMPTY).collect());
    let short = SetupError::Tables { entries: 1, needed: 2 };
    assert_eq!(NetworkLanes::new(SHAPE, ends(1)).err(), Some(short));
    assert!(NetworkLanes::new(SHAPE, ends(2)).is_ok());
}

/// Nothing is sent to a lost rank, and nothing from it waits here.
#[test]
fn a_lost_rank_is_skipped_by_the_next_parcel() {
    let mut a = mail();
    for to in [A, B] {
        a.push(to, &inline(1, 0), PacketLoad::Inline(0), &mut Memory(Vec::new()));
    }
    a.lost(A);
    a.lost(PeerIndex(7));
    a.push(A, &inline(1, 0), PacketLoad::Inline(0), &mut Memory(Vec::new()));
    a.set_starved(A);
    let mut into = [0; 1024];
    assert_eq!(a.poll_parcel(&mut into).map(|(to, _)| to), Some(B));
    a.posted(B);
    assert_eq!((a.poll_parcel(&mut into), a.has_unsent()), (None, false));
}

/// The rank with the refused parcel goes behind the other rank.
#[test]
fn the_ranks_with_unsent_packets_take_turns() {
    let mut a = mail();
    for to in [A, B] {
        a.push(to, &inline(1, 0), PacketLoad::Inline(0), &mut Memory(Vec::new()));
    }
    let mut into = [0; 1024];
    let mut next = |a: &mut NetworkLanes<'_>| a.poll_parcel(&mut into).map(|(to, _)| to);
    assert_eq!(
        (next(&mut a), next(&mut a)),
        (Some(A), Some(A)),
        "rank A is first until its parcel is posted or refused"
    );
    a.refused(A);
    assert_eq!(next(&mut a), Some(B));
    a.refused(B);
    assert_eq!(next(&mut a), Some(A));
    a.posted(A);
    assert_eq!(next(&mut a), Some(B));
    a.posted(B);
    assert_eq!(next(&mut a), None);
}

/// Only a message that its sender offers for fetching names its place; of all other packets
/// the address stays here.
#[test]
fn a_packet_names_a_place_only_if_it_offers_one() {
    let reach = Packet::IN_REACH;
    for (kind, count, there) in [
        (PacketKind::Rts, reach, (reach, 5 << 32 | 700)),
        (PacketKind::Rts, 0, (0, 0)),
        (PacketKind::Cts, reach, (0, 0)),
        (PacketKind::Cts, 0, (0, 0)),
        (PacketKind::Fin, reach, (reach, 5)),
    ] {
        let (mut a, mut b) = (mail(), mail());
        let packet = Packet { count, a: 700, b: 5, ..Packet::new(kind) };
        a.push(B, &packet, PacketLoad::Empty, &mut Fetchable);
        b.take(A, &parcels(&mut a, 1024)[0]).unwrap();
        let came = b.peek(A).unwrap();
        assert_eq!((came.count, came.b), there, "{kind:?} {count}");
        assert_eq!((came.kind, came.a), (kind, 700));
    }
    // A buffer without a place is sent through slots.
    let (mut a, mut b) = (mail(), mail());
    let packet = Packet { count: reach, a: 700, b: 5, ..Packet::new(PacketKind::Rts) };
    a.push(B, &packet, PacketLoad::Empty, &mut Memory(Vec::new()));
    b.take(A, &parcels(&mut a, 1024)[0]).unwrap();
    assert_eq!(b.peek(A), Some(Packet { count: 0, b: 0, ..packet }));
}

/// The rest of a parcel gets a piece of the bytes that come next if all of them fit, or at
/// least 128 bytes.
#[test]
fn a_short_piece_is_not_cut_off() {
    for (bytes, room, piece) in
        [(250, 127, 0), (250, 128, 128), (250, 129, 129), (100, 99, 0), (100, 100, 100)]
    {
        let (mut a, mut b) = (mail(), mail());
        let mut memory = Memory(vec![7; 512]);
        a.push(B, &inline(1, 160), PacketLoad::Inline(0), &mut memory);
        a.write_slots(B, 1, 0, bytes, &mut memory);
        let eager = Packet { a: bytes, b: 1, ..Packet::new(PacketKind::Eager) };
        a.push(B, &eager, PacketLoad::Empty, &mut memory);
        let before = parcel::HEAD_BYTES + parcel::INLINE_HEAD + 160;
        let mut into = vec![0; before + parcel::BYTES_HEAD + room];
        let (to, len) = a.poll_parcel(&mut into).unwrap();
        let record = if piece == 0 { 0 } else { parcel::BYTES_HEAD + piece };
        assert_eq!(len, before + record, "{bytes} bytes in {room}");
        a.posted(to);
        b.take(A, &into[..len]).unwrap();
        for parcel in parcels(&mut a, 1024) {
            b.take(A, &parcel).unwrap();
        }
        b.pop(A);
        assert_eq!(b.peek(A), Some(inline(1, 160)));
        b.pop(A);
        assert_eq!(b.peek(A), Some(eager));
        memory.0.fill(0);
        b.read_slots(A, 1, 0, bytes, &mut memory);
        assert_eq!(memory.0.iter().filter(|byte| **byte == 7).count() as u64, bytes);
    }
}

/// A rank without a lane has no packets, counts or room, and a rank that does not exist
/// neither.
#[test]
fn a_rank_without_a_lane_has_nothing() {
    let ends = Vec::leak((0..2).map(|_| NetworkLaneEnd::EMPTY).collect());
    let mut mail = NetworkLanes::new(SHAPE, ends).unwrap();
    let mut memory = Memory(vec![7; 64]);
    for rank in [B, PeerIndex(2)] {
        assert!(!mail.is_connected(rank) && !mail.has_room(rank, 0) && !mail.keeps_back(rank));
        assert_eq!((mail.peek(rank), mail.untold(rank)), (None, 0));
        assert_eq!(mail.returned(rank), Returned::default());
        assert!(!mail.is_starved(rank));
        assert!(!mail.give_back(rank, Returned { taken: 1, ..Returned::default() }));
        mail.set_starved(rank);
        mail.pop(rank);
        mail.deliver(rank, 0, 8, &mut memory);
        mail.write_slots(rank, 1, 0, 8, &mut memory);
        mail.read_slots(rank, 1, 0, 8, &mut memory);
        let mut kept = [3; INLINE_WORDS];
        mail.keep(rank, &mut kept);
        assert_eq!(kept, [3; INLINE_WORDS]);
        assert_eq!(mail.take(rank, &[2, 0, 0, 0, 0, 0, 0, 0]), Err(ParcelError::NoLane));
        mail.lost(rank);
    }
    assert_eq!(memory.0, [7; 64]);
    assert_eq!((mail.poll_arrived(), mail.has_unsent()), (None, false));
}

/// A lane takes as many lines as it has, and no line more before some are returned.
#[test]
fn a_lane_is_filled_to_its_last_line() {
    let (mut a, mut b) = (mail(), mail());
    for tag in 0..8 {
        a.push(B, &inline(tag, 0), PacketLoad::Inline(0), &mut Memory(Vec::new()));
    }
    let parcel = parcels(&mut a, 1024).remove(0);
    b.take(A, &parcel).unwrap();
    let mut next = parcel.clone();
    (next[4], next[12]) = (1, 8);
    assert_eq!(b.take(A, &next), Err(ParcelError::Lines { start: 8, lines: 8 }));
    for _ in 0..7 {
        b.peek(A);
        b.pop(A);
    }
    b.give_back(A, Returned::default());
    assert_eq!(b.take(A, &next), Err(ParcelError::Lines { start: 8, lines: 8 }));
    b.peek(A);
    b.pop(A);
    b.give_back(A, Returned::default());
    assert_eq!(b.take(A, &next), Ok(()));
}

/// A parcel that was built before its rank was lost, and is posted after that.
#[test]
fn a_parcel_that_is_posted_after_a_loss_changes_nothing() {
    let mut a = mail();
    for tag in 0..2 {
        let mut memory = Memory(vec![1; 200]);
        a.push(B, &inline(tag, 200), PacketLoad::Inline(0), &mut memory);
    }
    let mut into = [0; PARCEL_BYTES_MIN];
    assert!(a.poll_parcel(&mut into).is_some());
    a.lost(B);
    assert!(!a.keeps_back(B));
    a.posted(B);
    assert!(!a.keeps_back(B) && !a.has_unsent());
    assert_eq!(a.chunks_free(), CHUNKS);
}

/// A rank that wants more says so in one parcel; the parcels around it become visible with it.
#[test]
fn a_request_is_answered_whichever_parcels_come_with_it() {
    for asks_first in [true, false] {
        let (mut a, mut b) = (mail(), mail());
        one(&mut a, &mut b);
        b.give_back(A, Returned { taken: 1, ..Returned::default() });
        let mut sent = Vec::new();
        for asks in [asks_first, !asks_first] {
            if asks {
                a.set_starved(B);
            } else {
                a.push(B, &inline(1, 0), PacketLoad::Inline(0), &mut Memory(Vec::new()));
            }
            sent.append(&mut parcels(&mut a, 1024));
        }
        b.take(A, &sent[1]).unwrap();
        assert!(!b.has_unsent());
        b.take(A, &sent[0]).unwrap();
        assert!(b.is_starved(A) && b.has_unsent(), "the counts are due");
    }
}

/// The packet of an early parcel lies over that of an earlier one, and takes more lines.
#[test]
fn overlapping_parcels_break_their_lane() {
    let (mut a, mut b) = (mail(), mail());
    let mut memory = Memory(vec![1; 200]);
    let mut sent = Vec::new();
    for count in [0, 0, 100] {
        a.push(B, &inline(7, count), PacketLoad::Inline(0), &mut memory);
        sent.append(&mut parcels(&mut a, 1024));
    }
    // The last one begins one line too early, and one number is missing before it.
    (sent[2][4], sent[2][12]) = (3, 1);
    b.take(A, &sent[1]).unwrap();
    b.take(A, &sent[2]).unwrap();
    b.take(A, &sent[0]).unwrap();
    assert_eq!(b.peek(A), Some(inline(7, 0)));
    b.pop(A);
    assert_eq!(b.peek(A), None, "one line is visible, and the packet has three");
    a.push(B, &inline(1, 0), PacketLoad::Inline(0), &mut memory);
    assert_eq!(b.take(A, &parcels(&mut a, 1024)[0]), Err(ParcelError::Broken));
}

/// The packet that was looked at before stays where it is, and what was held is dropped.
#[test]
fn a_broken_lane_takes_nothing_out() {
    let (mut a, mut b) = (mail(), mail());
    let mut sent = Vec::new();
    for tag in 0..4 {
        a.push(B, &inline(tag, 0), PacketLoad::Inline(0), &mut Memory(Vec::new()));
        sent.append(&mut parcels(&mut a, 1024));
    }
    b.take(A, &sent[0]).unwrap();
    b.take(A, &sent[3]).unwrap();
    let held = b.chunks_free();
    assert_eq!(b.peek(A), Some(inline(0, 0)));
    sent[1][12] = 2;
    b.take(A, &sent[1]).unwrap();
    assert_eq!(b.chunks_free(), held + 1, "the head of the early parcel is dropped");
    b.pop(A);
    assert_eq!((b.peek(A), b.untold(A)), (None, 0));
    b.pop(A);
    assert_eq!((b.peek(A), b.untold(A)), (None, 0));
}

#[test]
fn inline_bytes_have_a_limit() {
    let (mut a, mut b) = (mail(), mail());
    let most = INLINE_BYTES_MAX as u8;
    a.push(B, &inline(1, most), PacketLoad::Inline(0), &mut Memory(vec![7; 256]));
    let good = parcels(&mut a, 1024).remove(0);
    let mut long = good.clone();
    long[parcel::HEAD_BYTES + 1] = most + 1;
    long.push(7);
    assert_eq!(b.take(A, &long), Err(ParcelError::Inline(most + 1)));
    assert_eq!(b.take(A, &good), Ok(()));
    assert_eq!(b.peek(A), Some(inline(1, most)));
}
