use super::*;

fn receive(peer: u32, context: u16, tag: Option<u32>) -> RequestEntry {
    let (any_tag, tag) = (tag.is_none(), tag.unwrap_or(0));
    RequestEntry { peer, context, any_tag, tag, ..RequestEntry::EMPTY }
}

#[test]
fn a_receive_takes_its_tag_or_any_of_its_context() {
    for (context, tag, takes) in [(3, Some(7), true), (3, Some(0), false), (3, None, true)] {
        let label = Label { context: 3, tag: 7 };
        let entry = receive(1, context, tag);
        let RequestEntry { tag, any_tag, .. } = entry;
        let offer = MirroredOffer { context, tag, any_tag, ..MirroredOffer::EMPTY };
        assert_eq!((entry.takes(label), offer.takes(label)), (takes, takes), "{tag}");
        let other = Label { context: 4, ..label };
        assert!(!entry.takes(other) && !offer.takes(other), "{tag}");
    }
}

#[test]
fn receives_overlap_if_a_message_can_be_for_either() {
    let one = receive(1, 3, Some(7));
    for (other, overlaps) in [
        (receive(1, 3, Some(7)), true),
        (receive(1, 3, Some(8)), false),
        (receive(1, 3, None), true),
        (receive(ANY, 3, Some(7)), true),
        (receive(ANY, 3, Some(8)), false),
        (receive(ANY, 3, None), true),
        (receive(2, 3, Some(7)), false),
        (receive(2, 3, None), false),
        (receive(1, 4, Some(7)), false),
        (receive(ANY, 4, None), false),
    ] {
        assert_eq!(one.overlaps(&other), overlaps, "{other:?}");
        assert_eq!(other.overlaps(&one), overlaps, "{other:?}");
    }
}

#[test]
fn the_fitting_length_is_the_smaller_of_message_and_room() {
    let fitting = |size, len| RequestEntry { size, len, ..RequestEntry::EMPTY }.fitting();
    assert_eq!([fitting(3, 5), fitting(5, 3), fitting(0, 3)], [3, 3, 0]);
}

#[test]
fn only_a_peer_with_ripe_offers_is_urgent() {
    let mut entries = [RequestEntry::EMPTY];
    let mut ripe = IndexList::EMPTY;
    assert!(!MessagePeer { urgent: true, ..MessagePeer::EMPTY }.has_urgent());
    ripe.push(&mut entries, 0);
    assert!(!MessagePeer { ripe, ..MessagePeer::EMPTY }.has_urgent());
    assert!(MessagePeer { ripe, urgent: true, ..MessagePeer::EMPTY }.has_urgent());
}
