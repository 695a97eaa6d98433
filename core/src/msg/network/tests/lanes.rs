//! The memory of a lane, and its limits.

use super::*;

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
