//! Lanes to a rank that has died.

use super::*;

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
