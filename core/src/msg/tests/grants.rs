//! Credits that are returned for messages, and messages that are granted to a
//! peer that requests room.

use super::arrivals::{POST, returned};
use super::script::{Did, OF_THREE, One, apart, at};
use super::*;

#[test]
fn credits_are_returned_by_quarters_or_on_request() {
    // A quarter of 16 lines, or of a quota of 4.
    let mut one = One::new(MatchingDesign::TwoCopy);
    for line in 1..=4 {
        one.comes(1, POST);
        one.look(1);
        let told = vec![Did::Told(1, returned(0, 0, 0))];
        assert_eq!(one.did(), if line == 4 { told } else { vec![] });
    }
    one.post(Some(1), None, apart(64, 8));
    one.comes_inline(1, 7, 8);
    one.look(1);
    assert_eq!(one.did(), [Did::Delivered(64, 8), Did::Told(1, returned(1, 1, 0))]);
    // Credits for one message wait until the peer requests more.
    one.comes_inline(1, 7, 8);
    one.look(1);
    assert_eq!(one.did(), []);
    one.wire.starved[1] = true;
    one.comes(1, POST);
    one.look(1);
    assert_eq!(one.did(), [Did::Told(1, returned(2, 1, 0)), Did::Rang(1)]);
    // A request gets no answer while there are no new credits.
    one.wire.starved[1] = true;
    one.machine.settle(&mut one.wire, 1);
    assert_eq!(one.did(), []);
}

#[test]
fn a_quarter_of_a_quota_is_at_least_one_message() {
    for (quota, quarter) in [(1, 1), (2, 1), (8, 2)] {
        let shape = MessageShape { quota, lines: 64, ..OF_THREE };
        let mut one = One::with(MatchingDesign::TwoCopy, shape, 32);
        for message in 1..=quarter {
            one.post(Some(1), None, apart(64, 8));
            one.comes_inline(1, 7, 8);
            one.look(1);
            let told = one.did().iter().any(|did| matches!(did, Did::Told(..)));
            assert_eq!(told, message == quarter, "{message} of {quota}");
        }
    }
}

/// A peer that requests room is granted more only if a receive or a probe waits
/// here, and only if the peer's quota is used up.
#[test]
fn a_peer_that_has_used_up_its_quota_is_granted_more() {
    let waits: [fn(&mut One); 4] = [
        |_| {},
        |one| {
            one.post(Some(1), Some(9), apart(64, 8));
        },
        |one| {
            one.post(None, Some(9), apart(64, 8));
        },
        |one| {
            let pattern = Pattern { context: 0, source: None, tag: Some(9) };
            assert_eq!(one.machine.probe(&pattern), None);
        },
    ];
    for (way, wait) in waits.into_iter().enumerate() {
        for unmatched in [3, 4] {
            let mut one = One::new(MatchingDesign::TwoCopy);
            wait(&mut one);
            (0..unmatched).for_each(|_| one.comes_inline(1, 7, 8));
            one.look(1);
            one.did();
            one.wire.starved[1] = true;
            assert!(!one.look(1));
            let granted = if unmatched == 4 && way > 0 { 4 } else { 0 };
            assert_eq!(one.peer(1).granted, granted, "way {way}, {unmatched}");
            assert_eq!(one.machine.spare, 16 - granted);
            if granted > 0 {
                let told = Did::Told(1, returned(4, 4, 0));
                assert_eq!(one.did(), [told, Did::Rang(1)]);
            }
        }
    }
}

#[test]
fn grants_are_bounded() {
    let filled = |shape: MessageShape, spare: Option<u32>| {
        let mut one = One::with(MatchingDesign::TwoCopy, shape, 8);
        one.post(Some(1), Some(9), apart(64, 8));
        (0..shape.quota).for_each(|_| one.comes_inline(1, 7, 8));
        while one.look(1) {}
        one.wire.starved[1] = true;
        one.machine.spare = spare.unwrap_or(one.machine.spare);
        one.look(1);
        (one.peer(1).granted, one.machine.spare)
    };
    assert_eq!(filled(OF_THREE, None), (4, 12), "one quota");
    assert_eq!(filled(MessageShape { quota: 32, ..OF_THREE }, None), (16, 112), "sixteen");
    assert_eq!(filled(OF_THREE, Some(3)), (3, 0), "the rest of the room");
    assert_eq!(filled(OF_THREE, Some(0)), (0, 0));
}

/// With all room granted the machine tells its caller that a receive may wait for a message
/// behind the others; once it has more room, the request that is still open gets more.
#[test]
fn a_machine_without_room_says_so_and_grants_when_it_is_widened() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    one.wire.starved[1] = true;
    for messages in 1..=20 {
        one.comes_inline(1, 7, 8);
        one.wire.starved[1] = true;
        one.look(1);
        assert!(!one.machine.is_cramped(), "{messages}: no receive waits");
    }
    one.post(Some(1), Some(9), apart(64, 8));
    while one.machine.spare > 0 {
        one.wire.starved[1] = true;
        one.look(1);
    }
    while one.machine.spare == 0 && !one.machine.is_cramped() {
        one.comes_inline(1, 7, 8);
        one.wire.starved[1] = true;
        one.look(1);
    }
    let (places, granted) = (one.machine.places(), one.peer(1).granted);
    assert_eq!(places, OF_THREE.unexpected());
    let refused = one.machine.widen(8);
    assert_eq!(refused, Err(SetupError::Tables { entries: places, needed: places + 8 }));
    assert!(one.machine.is_cramped());
    one.grow(OF_THREE, places + 8);
    one.machine.widen(8).unwrap();
    assert!(!one.machine.is_cramped() && one.machine.places() == places + 8);
    one.look(1);
    assert_eq!((one.peer(1).granted, one.machine.spare), (granted, 8), "no request is open");
    one.wire.starved[1] = true;
    one.look(1);
    assert_eq!((one.peer(1).granted, one.machine.spare), (granted + 4, 4));
    // A peer that is admitted does not get these places.
    assert_eq!(one.machine.admit(), None);
}

/// A probe lets one grant through, and no more until the next probe.
#[test]
fn a_probe_grants_once() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    let pattern = Pattern { context: 0, source: None, tag: Some(9) };
    for (probes, granted) in [(true, 4), (false, 4), (true, 8)] {
        if probes {
            assert_eq!(one.machine.probe(&pattern), None);
        }
        (0..4).for_each(|_| one.comes_inline(1, 7, 8));
        one.wire.starved[1] = true;
        one.look(1);
        one.wire.starved[1] = true;
        one.look(1);
        assert_eq!(one.peer(1).granted, granted);
    }
    let found = Pattern { tag: Some(7), ..pattern };
    assert!(one.machine.probe(&found).is_some());
    assert!(!one.machine.is_probed, "the probed message is here");
}

#[test]
fn a_granted_place_is_free_again_when_its_message_is_received() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    one.post(Some(1), Some(9), apart(64, 8));
    (0..5).for_each(|_| one.comes_inline(1, 7, 8));
    one.look(1);
    one.wire.starved[1] = true;
    one.look(1);
    let state = |one: &One| (one.peer(1).granted, one.machine.spare, one.peer(1).here.matched);
    assert_eq!(state(&one), (4, 12, 4));
    for granted in (0..4).rev() {
        assert!(one.receive(Some(1), Some(7), apart(64, 8)).done().is_some());
        assert_eq!(state(&one), (granted, 16 - granted, 4));
    }
    assert!(one.receive(Some(1), Some(7), apart(64, 8)).done().is_some());
    assert_eq!(state(&one), (0, 16, 5));
    // A message that met its receive at once gives up no grant.
    one.machine.tables.peers[1].granted = 2;
    one.comes_inline(1, 9, 8);
    one.look(1);
    assert_eq!(state(&one), (2, 16, 6));
}

/// A peer that requests room gets offers of all receives, also of short ones.
#[test]
fn a_request_for_room_is_answered_with_all_receives() {
    for (design, offered) in [(MatchingDesign::Mirror, 2), (MatchingDesign::TwoCopy, 0)] {
        let mut one = One::new(design);
        one.post(Some(1), Some(8), at(64, 8));
        one.post(Some(1), Some(9), apart(64, 8));
        one.post(Some(2), Some(9), at(64, 8));
        assert!(!one.advance());
        assert_eq!(one.pushed(), []);
        one.wire.starved[1] = true;
        assert_eq!(one.advance(), offered > 0);
        let did = one.did();
        assert_eq!(did.len(), offered);
        let reached: Vec<_> = did
            .iter()
            .map(|did| match did {
                Did::Pushed(
                    1,
                    Packet { kind: PacketKind::Post, count: Packet::OFFER, .. },
                    Some(offer),
                ) => (offer.tag, offer.at, offer.room),
                other => panic!("{other:?}"),
            })
            .collect();
        let all = [(Some(8), Some(64), 8), (Some(9), None, 8)];
        assert_eq!(reached, all[..offered]);
    }
}

/// Offers that wait for a packet go, too; a dead rank gets nothing.
#[test]
fn a_request_for_room_is_answered_with_the_waiting_offer() {
    let mut one = One::new(MatchingDesign::Mirror);
    one.post(Some(1), Some(8), at(64, 1_000));
    assert!(!one.advance() && one.pushed().is_empty());
    one.wire.starved[1] = true;
    assert!(one.advance());
    assert_eq!(one.pushed(), [PacketKind::Post]);
    assert!(!one.advance(), "once");
    let mut one = One::new(MatchingDesign::Mirror);
    one.post(None, Some(8), at(64, 1_000));
    (0..4).for_each(|_| one.comes_inline(1, 7, 8));
    one.look(1);
    one.lose(1);
    one.did();
    one.wire.starved[1] = true;
    assert!(!one.look(1));
    assert_eq!((one.did(), one.peer(1).granted), (vec![], 0), "a dead rank gets no grant");
}

/// A request that cannot be answered gives no reason to look again.
#[test]
fn a_request_without_an_answer_causes_no_further_look() {
    for (source, design) in [(None, MatchingDesign::Mirror), (Some(1), MatchingDesign::TwoCopy)] {
        let mut one = One::new(design);
        one.post(source, Some(7), at(64, 8));
        one.wire.starved[1] = true;
        assert!(!one.look(1) && !one.machine.wants_poll());
    }
}

/// A message that meets its receive at once, by any path, gives up no place.
#[test]
fn a_message_with_a_waiting_receive_returns_no_grant() {
    for (source, kind) in
        [(None, PacketKind::Inline), (Some(1), PacketKind::Eager), (Some(1), PacketKind::Rts)]
    {
        let mut one = One::new(MatchingDesign::TwoCopy);
        one.machine.tables.peers[1].granted = 1;
        one.post(source, Some(7), at(64, 8));
        one.comes(1, Packet { tag: 7, a: 8, b: 1, id: 3, ..Packet::new(kind) });
        one.look(1);
        let peer = one.peer(1);
        assert_eq!((peer.granted, peer.here.matched), (1, 1), "{kind:?}");
    }
}
