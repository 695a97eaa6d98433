//! Which receives are offered and when, and what happens to an offer that is
//! taken back.

use super::receives::PATTERN;
use super::script::{Did, OF_THREE, One, apart, at};
use super::*;
use crate::msg::tables::OfferState;

impl One {
    pub(super) fn cancel(&mut self, request: RequestId) -> Cancel {
        self.machine.cancel(&mut self.wire, request)
    }

    fn offered(&self, post: RequestId) -> OfferState {
        self.entry(post).offered
    }

    /// The message of a receive that was offered.
    fn comes_direct(&mut self, post: RequestId) {
        let id = self.id(post);
        let packet =
            Packet { id, tag: 7, a: 9, count: Packet::DONE, ..Packet::new(PacketKind::Direct) };
        self.comes(1, packet);
        self.look(1);
    }

    /// A large receive for tag 7 of rank 1.
    fn large(&mut self) -> RequestId {
        self.post(Some(1), Some(7), at(64, 3_000))
    }
}

/// Which receives are worth an offer, and which offers go in a packet of their own.
#[test]
fn a_receive_is_offered_if_it_pays() {
    let alone = |into: MessageBytes, prepare: fn(&mut One)| {
        let mut one = One::new(MatchingDesign::Mirror);
        prepare(&mut one);
        let post = one.post(Some(1), Some(7), into);
        let offered = one.offered(post);
        (offered, one.machine.wants_poll())
    };
    let plain: fn(&mut One) = |_| {};
    assert_eq!(alone(at(64, 200), plain), (OfferState::No, false));
    assert_eq!(alone(at(64, 201), plain), (OfferState::Ripe, false));
    assert_eq!(alone(apart(64, 5_000), plain), (OfferState::No, false));
    assert_eq!(alone(at(64, 2_047), plain), (OfferState::Ripe, false));
    assert_eq!(alone(at(64, 2_048), plain), (OfferState::Ripe, true));
    let far: fn(&mut One) = |one| one.machine.set_remote(PeerIndex(1));
    assert_eq!(alone(at(64, 5_000), far), (OfferState::No, false));
    let starved: fn(&mut One) = |one| one.wire.starved[1] = true;
    assert_eq!(alone(apart(64, 8), starved), (OfferState::Ripe, true));
    // With two offers none waits, and the one that was posted first goes first.
    let mut one = One::new(MatchingDesign::Mirror);
    let posts = [300, 400].map(|len| one.post(Some(1), None, at(64, len)));
    let rooms: Vec<_> = one
        .did()
        .into_iter()
        .map(|did| match did {
            Did::Pushed(1, Packet { kind: PacketKind::Post, .. }, Some(offer)) => {
                (offer.id, offer.room)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(rooms, [(one.id(posts[0]), 300), (one.id(posts[1]), 400)]);
    assert_eq!((one.machine.counts().offered, one.peer(1).offered), (2, 2));
    assert_eq!(one.peer(1).unoffered, 0);
    // A receive from any source is not offered, nor any receive without a mirror.
    one.post(None, Some(7), at(64, 5_000));
    let mut two = One::new(MatchingDesign::TwoCopy);
    two.post(Some(1), Some(7), at(64, 5_000));
    assert!(!one.advance() && !two.advance());
    assert_eq!((one.did(), two.did(), two.peer(1).unoffered), (vec![], vec![], 1));
}

#[test]
fn an_offer_carries_the_count_of_taken_messages() {
    let mut one = One::new(MatchingDesign::Mirror);
    (0..2).for_each(|_| one.comes_inline(1, 9, 8));
    one.look(1);
    one.did();
    let pattern = Pattern { context: 5, ..PATTERN };
    let post = one.machine.receive(&mut one.wire, pattern, at(64, 3_000)).unwrap().pending();
    assert!(one.advance());
    let id = one.id(post.unwrap());
    let offer = Offer { id, taken: 2, context: 5, tag: Some(7), at: Some(64), room: 3_000 };
    let packet = Packet { count: Packet::OFFER, ..Packet::new(PacketKind::Post) };
    assert_eq!(one.did(), [Did::Pushed(1, packet, Some(offer))]);
    assert!(!one.advance() && !one.machine.wants_poll());
}

#[test]
fn an_offer_waits_for_a_line() {
    let mut one = One::new(MatchingDesign::Mirror);
    one.wire.room[1] = 0;
    let post = one.large();
    assert!(!one.advance() && one.machine.wants_poll());
    assert_eq!(one.did(), [Did::Asked(1)]);
    one.wire.room[1] = 1;
    assert!(one.advance() && one.pushed() == [PacketKind::Post]);
    assert_eq!((one.offered(post), one.machine.wants_poll()), (OfferState::Yes, false));
}

/// As many offers as the mirror holds; the next ones when half of it is free.
#[test]
fn a_receive_for_which_the_mirror_has_no_room_is_held() {
    let mut one = One::new(MatchingDesign::Mirror);
    let posts = [0; 6].map(|_| one.large());
    one.advance();
    assert_eq!(one.pushed(), [PacketKind::Post; 4]);
    assert_eq!(
        [3, 4, 5].map(|at| one.offered(posts[at])),
        [OfferState::Yes, OfferState::Held, OfferState::Held]
    );
    let state = |one: &One| (one.peer(1).offered, one.peer(1).held, one.peer(1).unoffered);
    assert_eq!(state(&one), (4, 2, 2));
    one.comes_direct(posts[0]);
    assert!(!one.advance() && !one.machine.wants_poll());
    assert_eq!((one.pushed(), state(&one)), (vec![], (3, 2, 2)));
    one.comes_direct(posts[1]);
    assert!(one.machine.wants_poll() && one.advance());
    assert_eq!((one.pushed(), state(&one)), (vec![PacketKind::Post; 2], (4, 0, 0)));
    // A held receive is cancelled at once, and the others are looked at.
    let held = [0; 2].map(|_| one.large());
    assert_eq!(one.cancel(held[0]), Cancel::Done);
    assert!(one.machine.wants_poll() && !one.advance() && !one.machine.wants_poll());
    assert_eq!(state(&one), (4, 1, 1));
    assert_eq!(one.cancel(held[1]), Cancel::Done);
    assert_eq!((state(&one), one.machine.wants_poll()), ((4, 0, 0), false));
}

/// Later receives are held back by a receive that could take the same message and was not
/// offered, and by nothing else.
#[test]
fn only_an_overlapping_receive_holds_another_back() {
    let held = |source: Option<u32>, tag: Option<u32>, context: u16, is_first: bool| {
        let mut one = One::new(MatchingDesign::Mirror);
        let other = |one: &mut One| {
            let pattern = Pattern { context, source: source.map(PeerIndex), tag };
            one.machine.receive(&mut one.wire, pattern, at(64, 8)).unwrap();
        };
        if is_first {
            other(&mut one);
        }
        let post = one.large();
        if !is_first {
            other(&mut one);
        }
        one.offered(post) == OfferState::Held
    };
    for source in [Some(1), None] {
        assert!(held(source, Some(7), 0, true) && held(source, None, 0, true));
        assert!(!held(source, Some(8), 0, true) && !held(source, Some(7), 1, true));
        assert!(!held(source, Some(7), 0, false));
    }
    assert!(!held(Some(2), Some(7), 0, true));
    // Each of the last two posts prevents the offer: one of any source, one of this source.
    let mut one = One::new(MatchingDesign::Mirror);
    one.large();
    let any = one.post(None, Some(7), at(64, 8));
    let later = one.large();
    assert_eq!(one.offered(later), OfferState::Held);
    let other = one.post(Some(1), Some(9), at(64, 3_000));
    assert_eq!(one.offered(other), OfferState::Ripe, "the receive is for another tag");
    assert_eq!(one.cancel(any), Cancel::Done);
    assert!(one.machine.wants_poll());
    one.advance();
    assert_eq!((one.offered(later), one.peer(1).held), (OfferState::Yes, 0));
}

#[test]
fn without_held_receives_nothing_is_looked_at_again() {
    let mut one = One::new(MatchingDesign::Mirror);
    let any = one.post(None, Some(7), at(64, 8));
    let exact = one.post(Some(1), Some(8), at(64, 8));
    for post in [any, exact] {
        assert_eq!(one.cancel(post), Cancel::Done);
        assert!(!one.machine.wants_poll());
    }
    let posts = [0; 3].map(|_| one.large());
    one.advance();
    for post in posts {
        one.comes_direct(post);
    }
    assert!(!one.machine.wants_poll());
    assert_eq!((one.peer(1).offered, one.peer(1).unoffered), (0, 0));
}

/// The number of receives that are looked at is bounded.
#[test]
fn a_limited_number_of_receives_is_looked_at_again() {
    for (before, offered) in [(127, 1), (128, 0)] {
        let mut one = One::new(MatchingDesign::TwoCopy);
        one.machine.design = MatchingDesign::Mirror;
        for tag in 0..before {
            one.post(Some(1), Some(100 + tag), apart(64, 8));
        }
        let any = one.post(None, Some(7), at(64, 8));
        let post = one.large();
        assert_eq!(one.offered(post), OfferState::Held);
        assert_eq!(one.cancel(any), Cancel::Done);
        one.advance();
        assert_eq!(one.machine.counts().offered, offered, "{before} before it");
    }
}

/// A waiting offer is taken back at once; for one that was sent, a cancel is
/// sent.
#[test]
fn an_offer_is_withdrawn_locally_or_by_a_cancel() {
    let mut one = One::new(MatchingDesign::Mirror);
    let ripe = one.post(Some(1), Some(7), at(64, 300));
    assert_eq!((one.cancel(ripe), one.peer(1).offered), (Cancel::Done, 0));
    one.send(1, 9, at(0x100, 300));
    assert!(one.did().iter().all(|did| !matches!(did, Did::Pushed(_, _, Some(_)))));
    let gone = one.large();
    one.advance();
    one.did();
    assert_eq!(one.cancel(gone), Cancel::Asked);
    let id = one.id(gone);
    let question = Did::Pushed(1, Packet { id, ..Packet::new(PacketKind::Cancel) }, None);
    assert_eq!(one.did(), [question]);
    assert_eq!(one.cancel(gone), Cancel::Asked);
    assert_eq!((one.did(), one.peer(1).asked), (vec![], 1), "once");
    one.comes(1, Packet { id, ..Packet::new(PacketKind::CancelAck) });
    one.look(1);
    assert_eq!(one.take(gone), Some(Err(RequestError::Cancelled)));
    assert_eq!((one.peer(1).asked, one.peer(1).offered), (0, 0));
    assert_eq!(one.machine.under_way(), 0);
    // Its place is free: there is one place for each receive.
    (1..REQUESTS).for_each(|_| {
        one.post(None, None, at(64, 8));
    });
}

/// A cancel that found no room is not sent when the message has come.
#[test]
fn a_waiting_cancel_is_dropped_when_the_message_arrives() {
    let mut one = One::with(MatchingDesign::Mirror, OF_THREE, 1);
    let post = one.large();
    one.advance();
    one.wire.room[1] = 0;
    assert_eq!(one.cancel(post), Cancel::Asked);
    assert!(one.machine.wants_poll());
    one.comes_direct(post);
    one.did();
    one.wire.room[1] = 16;
    one.advance();
    assert_eq!((one.pushed(), one.peer(1).asked), (vec![], 0));
    assert!(!one.machine.wants_poll());
    assert!(one.take(post).unwrap().is_ok());
    assert!(one.post_short(PATTERN, apart(64, 8)).is_some(), "the place of the receive is free");
}

/// The name of a cancelled receive is free after two events: the answer, or the
/// death of the rank that owes it, and the call that takes the result.
#[test]
fn a_name_is_free_after_the_answer_and_the_end() {
    for is_death in [false, true] {
        for is_taken_first in [false, true] {
            let mut one = One::with(MatchingDesign::Mirror, OF_THREE, 1);
            let post = one.large();
            let id = one.id(post);
            one.advance();
            assert_eq!(one.cancel(post), Cancel::Asked);
            one.comes_direct(post);
            let answer = |one: &mut One| {
                if is_death {
                    one.lose(1);
                } else {
                    one.comes(1, Packet { id, count: 1, ..Packet::new(PacketKind::CancelAck) });
                    one.look(1);
                }
            };
            let is_free = |one: &mut One| {
                let pattern = Pattern { source: Some(PeerIndex(2)), ..PATTERN };
                let post = one.post_short(pattern, apart(64, 8));
                post.is_some_and(|post| {
                    one.cancel(post) == Cancel::Done && one.take(post).is_some()
                })
            };
            assert!(!is_free(&mut one));
            if is_taken_first {
                assert!(one.take(post).unwrap().is_ok());
                assert!(!is_free(&mut one), "the answer may name it");
                answer(&mut one);
            } else {
                answer(&mut one);
                assert!(!is_free(&mut one));
                assert!(one.take(post).unwrap().is_ok());
            }
            assert!(is_free(&mut one), "death: {is_death}, taken first: {is_taken_first}");
        }
    }
}

/// The death of another rank is no answer.
#[test]
fn a_cancel_to_one_rank_stays_when_another_dies() {
    let mut one = One::with(MatchingDesign::Mirror, OF_THREE, 2);
    let post = one.large();
    one.advance();
    assert_eq!(one.cancel(post), Cancel::Asked);
    one.comes_direct(post);
    one.lose(2);
    assert!(one.take(post).unwrap().is_ok());
    assert_eq!(one.entry(post).offered, OfferState::Cancelling);
    // More answers than cancels are ignored.
    for _ in 0..2 {
        one.comes(1, Packet { id: 0xF_FFFF, ..Packet::new(PacketKind::CancelAck) });
        one.look(1);
    }
    assert_eq!(one.peer(1).asked, 0);
}

/// The limit on earlier receives has no effect where none of them can be unknown.
#[test]
fn a_long_mirror_is_filled() {
    let mut one = One::with(MatchingDesign::Mirror, MessageShape { mirror: 256, ..OF_THREE }, 200);
    (0..140).for_each(|_| {
        one.large();
        one.wire.room[1] = 16;
    });
    one.advance();
    assert_eq!((one.peer(1).offered, one.peer(1).held), (140, 0));
}
