//! When a message goes, and in which order messages wait.

use super::moves::pushed;
use super::script::{Did, OF_THREE, One, apart, at};
use super::*;
use crate::msg::tables::RequestState;

pub(super) fn copy(from: u64, to: u64, len: u64, streaming: bool) -> Copy {
    Copy { peer: PeerIndex(1), from, to, len, streaming, by_kernel: false }
}

/// The packet that a peer gets of a message for the receive `id`.
pub(super) fn direct(id: u32, len: u64, count: u8) -> Packet {
    Packet { id, tag: 7, a: len, count, ..Packet::new(PacketKind::Direct) }
}

const LABEL_8: Label = Label { context: 0, tag: 8 };

impl One {
    fn try_send(&mut self, tag: u32, bytes: MessageBytes) -> Option<Begun<()>> {
        let label = Label { context: 0, tag };
        self.machine.try_send(&mut self.wire, PeerIndex(1), label, bytes).unwrap()
    }

    fn send_short(&mut self, to: u32, len: u64) -> bool {
        self.machine.send_short(&mut self.wire, PeerIndex(to), LABEL, at(0x100, len))
    }
}

/// Messages leave a reserve of lines for other packets.
#[test]
fn a_message_needs_its_lines_and_the_reserve() {
    let needs =
        [(0, 5), (32, 5), (33, 6), (88, 6), (89, 7), (144, 7), (145, 8), (200, 8), (300, 5)];
    for (len, lines) in needs {
        for is_short in [false, true] {
            if is_short && len > 200 {
                continue;
            }
            let mut one = One::new(MatchingDesign::Mirror);
            let mut goes = |room: u32| {
                one.wire.room[1] = room;
                let went = if is_short {
                    one.send_short(1, len)
                } else {
                    one.try_send(7, at(0x100, len)).is_some()
                };
                (went, one.pushed().len(), one.peer(1).sent)
            };
            assert_eq!(goes(lines - 1), (false, 0, 0), "{len} bytes");
            assert_eq!(goes(lines), (true, 1, 1), "{len} bytes");
        }
    }
}

#[test]
fn a_message_that_finds_no_room_requests_it_once() {
    let mut one = One::new(MatchingDesign::Mirror);
    one.wire.room[1] = 4;
    assert_eq!(one.try_send(7, at(0, 8)), None);
    assert_eq!((one.did(), one.machine.under_way()), (vec![Did::Asked(1)], 0));
    let first = one.send(1, 7, at(0, 200)).pending().unwrap();
    let second = one.send(1, 8, at(0, 8)).pending().unwrap();
    assert_eq!(one.machine.counts().waited, 2);
    assert_eq!(one.try_send(9, at(0, 8)), None, "earlier messages wait");
    assert_eq!(one.did(), []);
    // There is room for the second one alone.
    one.wire.room[1] = 5;
    assert!(!one.advance());
    assert_eq!(one.did(), []);
    one.wire.room[1] = 9;
    assert!(one.advance());
    assert_eq!(one.did(), [Did::Inline(1, 200, 7), Did::Inline(1, 8, 8)]);
    assert!(one.take(first).unwrap().is_ok() && one.take(second).unwrap().is_ok());
    assert!(!one.machine.wants_poll());
}

/// The peer returned something that was not enough, and may have missed the first request.
#[test]
fn a_sender_requests_again_after_an_insufficient_answer() {
    let mut one = One::new(MatchingDesign::Mirror);
    (0..4).for_each(|_| {
        one.send(1, 7, at(0, 8));
    });
    one.did();
    one.wire.is_restless = true;
    assert_eq!(one.try_send(7, at(0, 8)), None);
    assert_eq!(one.did(), [Did::Asked(1), Did::Asked(1)]);
    assert!(one.peer(1).starving);
}

#[test]
fn a_used_up_quota_is_refilled_by_matched_messages() {
    let mut one = One::new(MatchingDesign::Mirror);
    for _ in 0..4 {
        assert_eq!(one.try_send(7, at(0, 8)), Some(Begun::Done(())));
    }
    assert_eq!(one.wire.looks, 0, "the known counts are enough");
    assert_eq!(one.try_send(7, at(0, 8)), None);
    assert!(!one.send_short(1, 8));
    one.wire.returned[1].matched = 1;
    assert_eq!(one.try_send(7, at(0, 8)), Some(Begun::Done(())));
    assert_eq!(one.try_send(7, at(0, 8)), None);
    // Impossible counts are not trusted.
    one.wire.returned[1].matched = 6;
    assert_eq!(one.try_send(7, at(0, 8)), None);
    assert_eq!(one.peer(1).sent, 5);
}

/// The log has twice the quota; entries are dropped only as far as messages were taken.
#[test]
fn a_full_log_holds_messages_back() {
    let mut one = One::new(MatchingDesign::Mirror);
    for number in 0..8 {
        one.wire.returned[1].matched = number;
        assert!(one.try_send(7, at(0, 8)).is_some(), "{number}");
    }
    one.wire.returned[1].matched = 8;
    for _ in 0..2 {
        assert_eq!(one.try_send(7, at(0, 8)), None, "no message is known to be taken");
        assert!(!one.send_short(1, 8));
    }
    assert_eq!((one.peer(1).matched_there, one.peer(1).log_low), (8, 0));
    one.wire.returned[1].taken = 1;
    assert!(one.try_send(7, at(0, 8)).is_some());
    assert_eq!(one.try_send(7, at(0, 8)), None);
    assert_eq!((one.peer(1).sent, one.peer(1).log_low), (9, 1));
    // Without a mirror there is no log.
    let mut one = One::new(MatchingDesign::TwoCopy);
    for number in 0..20 {
        one.wire.room[1] = 16;
        one.wire.returned[1].matched = number;
        assert!(one.try_send(7, at(0, 8)).is_some(), "{number}");
    }
}

#[test]
fn a_short_send_needs_a_peer_without_pending_traffic() {
    let begins = |prepare: fn(&mut One), to: u32, len: u64| {
        let mut one = One::new(MatchingDesign::Mirror);
        prepare(&mut one);
        one.did();
        let sent = one.peer(1).sent;
        let goes = one.send_short(to, len);
        let inline = vec![Did::Inline(to, len as u8, 7)];
        assert_eq!(one.did(), if goes { inline } else { vec![] });
        assert_eq!(one.peer(1).sent, sent + u32::from(goes && to == 1));
        if goes {
            assert_eq!(one.machine.counts().messages(MessagePath::Inline).iter().sum::<u64>(), 1);
            // The message may still meet an offer that is under way.
            one.is_offered(to as usize, 9, 7, at(0x500, 3_000));
            assert_eq!(one.peer(to as usize).mirror_len, 0);
        }
        goes
    };
    assert!(begins(|_| {}, 1, 200) && begins(|_| {}, 1, 0) && begins(|_| {}, 2, 200));
    assert!(!begins(|_| {}, 1, 201) && !begins(|_| {}, 3, 8));
    assert!(!begins(|one| one.is_offered(1, 9, 9, at(0, 3_000)), 1, 8), "a receive is known");
    assert!(!begins(|one| one.lose(1), 1, 8));
    let waits = |one: &mut One| {
        one.wire.room[1] = 0;
        one.send(1, 7, at(0, 8));
        one.wire.room[1] = 16;
    };
    assert!(!begins(waits, 1, 8));
}

/// A message with a known receive passes messages without one.
#[test]
fn a_message_passes_others_if_its_receive_is_known() {
    let mut one = One::new(MatchingDesign::Mirror);
    (0..4).for_each(|_| {
        one.send(1, 7, at(0, 8));
    });
    let waiting = [7, 8, 7].map(|tag| one.send(1, tag, at(0, 8)).pending().unwrap());
    one.did();
    assert!(!one.advance());
    one.is_offered(1, 9, 8, apart(0, 8));
    assert!(one.machine.wants_poll());
    assert!(one.advance());
    assert_eq!(one.did(), [Did::Inline(1, 8, 8)]);
    assert_eq!(waiting.map(|request| one.machine.has_ended(request)), [false, true, false]);
    assert_eq!(one.peer(1).mirror_len, 0);
    // There is room for one message: the first without a known receive goes.
    one.wire.returned[1].matched = 2;
    assert!(one.advance());
    assert_eq!(one.did()[0], Did::Inline(1, 8, 7));
    assert_eq!(waiting.map(|request| one.machine.has_ended(request)), [true, true, false]);
}

/// A limited number of waiting messages is searched for one that may pass.
#[test]
fn a_limited_number_of_messages_is_searched_for_one_that_passes() {
    for (before, passes) in [(63, true), (64, false)] {
        let mut one = One::new(MatchingDesign::Mirror);
        (0..4).for_each(|_| {
            one.send(1, 7, at(0, 8));
        });
        (0..before).for_each(|_| {
            one.send(1, 7, at(0, 8)).pending().unwrap();
        });
        one.send(1, 8, at(0, 8)).pending().unwrap();
        one.is_offered(1, 9, 8, apart(0, 8));
        assert_eq!(one.advance(), passes, "{before} before it");
    }
}

#[test]
fn a_send_with_bad_arguments_is_refused() {
    let mut one = One::with(MatchingDesign::Mirror, OF_THREE, 1);
    let none = Err(CallError::NoSuchPeer { peer: PeerIndex(3), peers: 3 });
    assert_eq!(one.machine.try_send(&mut one.wire, PeerIndex(3), LABEL, at(0, 8)), none);
    one.send(1, 7, at(0, 9_000)).pending().unwrap();
    let full = Err(CallError::Busy(Why::NoTag));
    assert_eq!(one.machine.try_send(&mut one.wire, PeerIndex(1), LABEL, at(0, 9_000)), full);
    assert!(one.try_send(7, at(0, 8)).is_some(), "an inline message needs no request");
    one.wire.room[1] = 0;
    let full = Err(CallError::Busy(Why::NoTag));
    assert_eq!(one.machine.send(&mut one.wire, PeerIndex(1), LABEL, at(0, 8)), full);
    assert!(!one.machine.wants_poll());
    one.lose(2);
    let lost = Err(CallError::PeerLost { peer: PeerIndex(2) });
    assert_eq!(one.machine.try_send(&mut one.wire, PeerIndex(2), LABEL, at(0, 8)), lost);
}

/// A message that waited has its request, even if no other is free.
#[test]
fn a_long_message_that_waited_keeps_its_request() {
    let mut one = One::with(MatchingDesign::Mirror, OF_THREE, 1);
    one.wire.room[1] = 0;
    let sent = one.send(1, 7, at(0x100, 9_000)).pending().unwrap();
    one.wire.room[1] = 16;
    one.did();
    assert!(one.advance());
    let rts = Packet {
        id: one.id(sent),
        tag: 7,
        a: 9_000,
        b: 0x100,
        count: 2,
        ..Packet::new(PacketKind::Rts)
    };
    assert_eq!(one.did(), [pushed(rts)]);
    assert_eq!((one.entry(sent).state, one.machine.wants_poll()), (RequestState::Told, false));
    assert_eq!(one.peer(1).sent, 1);
}

#[test]
fn an_offer_rides_on_a_message_that_is_not_inline() {
    let mut one = One::new(MatchingDesign::Mirror);
    let post = one.post(Some(1), None, at(0x700, 1_000));
    one.send(1, 7, at(0x100, 8));
    assert_eq!(one.did(), [Did::Inline(1, 8, 7)]);
    one.send(1, 7, at(0x100, 300));
    let id = one.id(post);
    let offer = Offer { id, taken: 0, context: 0, tag: None, at: Some(0x700), room: 1_000 };
    let packet =
        Packet { tag: 7, a: 300, b: 0b11, count: Packet::OFFER, ..Packet::new(PacketKind::Eager) };
    assert_eq!(one.did()[1], Did::Pushed(1, packet, Some(offer)));
    one.send(1, 7, at(0x100, 9_000));
    assert!(
        matches!(one.did()[..], [Did::Pushed(1, Packet { count: 2, .. }, None)]),
        "the peer learns the count"
    );
}

#[test]
fn a_message_that_waited_keeps_its_label() {
    let mut one = One::new(MatchingDesign::Mirror);
    one.wire.room[1] = 0;
    let label = Label { context: 3, ..LABEL_8 };
    one.machine.send(&mut one.wire, PeerIndex(1), label, apart(0x100, 300)).unwrap();
    one.wire.room[1] = 16;
    one.did();
    assert!(one.advance());
    let packet = Packet { context: 3, tag: 8, a: 300, b: 0b11, ..Packet::new(PacketKind::Eager) };
    assert_eq!(one.did(), [Did::Wrote(1, 0b11, 0x100, 300), pushed(packet)]);
}
