//! Taking packets out of a lane, and how a message meets its receive.

use super::script::{Did, OF_THREE, One, apart, at};
use super::*;
use crate::msg::tables::RequestState;

pub(super) const POST: Packet = Packet::new(PacketKind::Post);

pub(super) fn returned(taken: u32, matched: u32, slots: u32) -> Returned {
    Returned { lines: 0, taken, matched, slots }
}

#[test]
fn one_look_takes_at_most_a_lane_of_packets() {
    let mut one = One::new(MatchingDesign::Mirror);
    (0..40).for_each(|_| one.comes(1, POST));
    assert!(one.look(1));
    assert_eq!(one.popped(), [0, 17, 0]);
    // The same with messages that meet their receives in one run, and with both kinds.
    for posted in [30, 17, 10] {
        let mut one = One::new(MatchingDesign::Mirror);
        for _ in 0..posted {
            one.post(Some(1), None, apart(64, 8));
        }
        (0..40).for_each(|_| one.comes_inline(1, 7, 8));
        assert!(one.look(1));
        assert_eq!(one.popped(), [0, 17, 0]);
        let matched = posted.min(17);
        assert_eq!(one.peer(1).here, returned(17, matched, 0));
        assert_eq!(one.machine.under_way(), posted - matched);
    }
}

#[test]
fn the_log_is_dropped_when_its_lane_is_found_empty() {
    let mut one = One::new(MatchingDesign::Mirror);
    for _ in 0..3 {
        one.send(1, 7, at(0, 8));
    }
    let low = |one: &One| one.peer(1).log_low;
    one.wire.returned[1].taken = 1;
    one.machine.refresh(&mut one.wire, PeerIndex(1));
    assert_eq!(low(&one), 0);
    assert!(!one.look(1));
    assert_eq!(low(&one), 1, "the lane was empty");
    one.wire.returned[1].taken = 2;
    one.machine.refresh(&mut one.wire, PeerIndex(1));
    (0..18).for_each(|_| one.comes(1, POST));
    one.look(1);
    assert_eq!(low(&one), 1, "the lane has more packets");
    one.look(1);
    assert_eq!(low(&one), 2, "all packets were taken");
}

/// Messages that meet one receive after the other, in one go.
#[test]
fn a_run_of_messages_meets_a_run_of_receives() {
    let mut one = One::new(MatchingDesign::Mirror);
    let posts: Vec<RequestId> =
        [8, 4, 100, 8].map(|len| one.post(Some(1), Some(7), apart(64 * len, len))).into();
    one.did();
    for _ in 0..3 {
        one.comes_inline(1, 7, 8);
    }
    assert!(one.look(1));
    assert_eq!(
        one.did(),
        [
            Did::Delivered(512, 8),
            Did::Delivered(256, 4),
            Did::Delivered(6_400, 8),
            Did::Told(1, returned(3, 3, 0)),
        ]
    );
    assert_eq!((one.machine.under_way(), one.peer(1).unoffered), (1, 1));
    let got = |len: u64| Some(Ok(received(1, 7, 8, len < 8)));
    assert_eq!([0, 1, 2].map(|at| one.take(posts[at])), [8, 4, 100].map(got));
    assert_eq!(one.take(posts[3]), None);
    one.comes_inline(1, 7, 8);
    one.look(1);
    assert_eq!(one.take(posts[3]), got(8));
    assert_eq!((one.machine.under_way(), one.peer(1).unoffered), (0, 0));
    assert_eq!(one.peer(1).here, returned(4, 4, 0));
    assert_eq!(one.peer(2).here, returned(0, 0, 0));
}

/// A message goes to the first receive that takes it, in each of these.
#[test]
fn the_first_receive_gets_the_message() {
    // From any source or from this one, first or second, by tag or by any tag.
    for (first, second, tag, by) in [
        (None, Some(1), 7, 0),
        (Some(1), None, 7, 0),
        (None, Some(1), 8, 1),
        (Some(1), None, 8, 1),
        (Some(1), Some(1), 8, 1),
        (None, None, 8, 1),
    ] {
        let mut one = One::new(MatchingDesign::Mirror);
        let posts = [one.post(first, Some(7), apart(64, 8)), one.post(second, None, apart(64, 8))];
        one.comes_inline(1, tag, 8);
        one.look(1);
        assert_eq!(one.take(posts[by]), Some(Ok(received(1, tag, 8, false))), "{first:?}");
        assert_eq!(one.take(posts[1 - by]), None);
        let left = usize::from(by == 0);
        let exact = [first, second][left].is_some();
        assert_eq!(one.machine.any_posted.is_empty(), exact);
        assert_eq!(one.peer(1).posted.is_empty(), !exact);
    }
}

#[test]
fn an_eager_message_is_as_long_as_its_slots() {
    let eager = |len: u64, slots: u64| Packet {
        tag: 7,
        a: len,
        b: slots,
        ..Packet::new(PacketKind::Eager)
    };
    for (packet, len, slots) in [
        (eager(300, 0b0110), 300, 0b0110),
        (eager(513, 0b0110), 512, 0b0110),
        (eager(u64::MAX, 0b1_0001), 256, 0b0001),
    ] {
        for is_posted in [true, false] {
            let mut one = One::new(MatchingDesign::Mirror);
            let post = is_posted.then(|| one.post(Some(1), None, at(64, 400)));
            one.comes(1, packet);
            one.look(1);
            let told = Did::Told(1, returned(1, 1, slots));
            let read = Did::Read(1, slots, 64, len.min(400));
            let whole = received(1, 7, len, len > 400);
            if let Some(post) = post {
                assert_eq!(one.did(), [read, told]);
                assert_eq!(one.take(post), Some(Ok(whole)));
                continue;
            }
            assert_eq!(one.did(), [], "its slots are in use");
            let pattern = Pattern { context: 0, source: Some(PeerIndex(1)), tag: None };
            let described = ReceivedMessage { truncated: false, ..whole };
            assert_eq!(one.machine.probe(&pattern), Some(described));
            assert_eq!(one.receive(Some(1), Some(7), at(64, 400)), Begun::Done(whole));
            assert_eq!(one.did(), [read, told]);
            assert_eq!(one.machine.probe(&pattern), None);
        }
    }
}

#[test]
fn an_inline_message_is_kept_until_it_is_received() {
    let mut one = One::new(MatchingDesign::Mirror);
    one.comes_inline(1, 7, 100);
    one.look(1);
    assert_eq!(one.did(), []);
    let whole = received(1, 7, 100, true);
    assert_eq!(one.receive(None, Some(7), at(64, 99)), Begun::Done(whole));
    assert_eq!(one.did(), [Did::DeliveredKept(64, 99), Did::Told(1, returned(1, 1, 0))]);
    assert_eq!(one.machine.under_way(), 0);
}

/// A message into an offered receive: whole, its first bytes, or its address.
#[test]
fn a_direct_message_ends_whole_in_part_or_by_address() {
    let direct = |one: &mut One, count: u8, b: u64| {
        let post = one.post(Some(1), Some(7), at(64, 3_000));
        one.advance();
        one.did();
        let id = one.id(post);
        one.comes(1, Packet { id, tag: 7, a: 2_000, b, count, ..Packet::new(PacketKind::Direct) });
        one.look(1);
        post
    };
    let mut one = One::new(MatchingDesign::Mirror);
    let post = direct(&mut one, Packet::DONE, 0);
    assert_eq!(one.did(), [Did::Told(1, returned(1, 1, 0))]);
    assert_eq!(one.take(post), Some(Ok(received(1, 7, 2_000, false))));
    let post = direct(&mut one, 0, 1_000);
    assert_eq!(one.did(), [Did::Hinted(64, 1_000), Did::Told(1, returned(2, 2, 0))]);
    assert_eq!((one.entry(post).state, one.entry(post).moved), (RequestState::Coming, 1_000));
    let id = one.id(post);
    one.comes(1, Packet { id, ..Packet::new(PacketKind::Copied) });
    one.look(1);
    assert_eq!(one.take(post), Some(Ok(received(1, 7, 2_000, false))));
    assert_eq!((one.peer(1).offered, one.machine.counts().dropped), (0, 0));
    // A receive of another rank.
    let post = one.post(Some(2), Some(7), at(64, 3_000));
    let packet =
        Packet { id: one.id(post), count: Packet::DONE, ..Packet::new(PacketKind::Direct) };
    one.comes(1, packet);
    one.look(1);
    assert_eq!((one.take(post), one.machine.counts().dropped), (None, 1));
    assert_eq!(one.peer(1).here.taken, 3, "the packet counts as a message all the same");
}

#[test]
fn an_offer_rides_on_any_packet_but_an_inline_one() {
    let offer = Offer { id: 9, taken: 0, context: 0, tag: None, at: Some(5), room: 3_000 };
    for kind in [PacketKind::Post, PacketKind::Eager, PacketKind::Rts] {
        let mut one = One::new(MatchingDesign::Mirror);
        let packet = Packet { tag: 7, b: 1, a: 8, count: Packet::OFFER, ..Packet::new(kind) };
        one.wire.came[1].push_back((packet, Some(offer)));
        one.look(1);
        assert_eq!(one.peer(1).mirror_len, 1, "{kind:?}");
        assert_eq!(one.peer(1).here.taken, u32::from(kind != PacketKind::Post));
    }
    let mut one = One::new(MatchingDesign::Mirror);
    one.comes_inline(1, 7, Packet::OFFER);
    one.look(1);
    assert_eq!(one.peer(1).mirror_len, 0);
}

/// Packets beyond the limits are dropped, and the earlier ones stay.
#[test]
fn packets_beyond_the_limits_are_dropped() {
    let mut one = One::new(MatchingDesign::Mirror);
    let places = OF_THREE.unexpected() as u32;
    for _ in 0..places + 2 {
        one.comes_inline(1, 7, 8);
        one.look(1);
    }
    assert_eq!(one.machine.counts().dropped, 2);
    for _ in 0..places {
        assert!(one.receive(Some(1), None, at(64, 8)).done().is_some());
    }
    assert!(one.receive(Some(1), None, at(64, 8)).done().is_none());
    one.comes(2, Packet { id: 4, a: 9_000, ..Packet::new(PacketKind::Rts) });
    one.look(2);
    assert_eq!(one.machine.counts().dropped, 2, "places are free again");
}

#[test]
fn packets_of_a_lost_rank_stay_in_their_lane() {
    let mut one = One::new(MatchingDesign::Mirror);
    one.post(None, None, apart(64, 8));
    one.lose(1);
    one.comes_inline(1, 7, 8);
    assert!(!one.look(1) && !one.advance() && !one.rest());
    assert_eq!(one.popped(), [0; 3]);
}
