//! Parcels that are malformed, or contradict others of their lane.

use super::*;

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
