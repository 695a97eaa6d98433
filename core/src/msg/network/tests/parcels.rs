//! Which packets go in a parcel, and in which order they come out.

use super::*;

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
