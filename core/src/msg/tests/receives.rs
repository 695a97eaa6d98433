//! Receives: what each call finds and which entries it leaves in the tables.

use super::script::{Did, OF_THREE, One, apart, at};
use super::*;

pub(super) const PATTERN: Pattern =
    Pattern { context: 0, source: Some(PeerIndex(1)), tag: Some(7) };

impl One {
    fn receive_next(&mut self, pattern: Pattern, into: MessageBytes) -> Option<ReceivedMessage> {
        self.machine.receive_next(&mut self.wire, &pattern, into)
    }

    pub(super) fn post_short(&mut self, pattern: Pattern, into: MessageBytes) -> Option<RequestId> {
        self.machine.post_short(&mut self.wire, &pattern, into)
    }
}

#[test]
fn the_next_message_goes_straight_into_its_buffer() {
    let mut one = One::new(MatchingDesign::Mirror);
    assert_eq!(one.receive_next(PATTERN, at(64, 8)), None, "the lane is empty");
    for (len, room) in [(8, 8), (9, 8), (8, 9)] {
        one.comes_inline(1, 7, len);
        one.did();
        let got = one.receive_next(PATTERN, at(64, room));
        let len = u64::from(len);
        assert_eq!(got, Some(received(1, 7, len, len > room)));
        assert_eq!(one.did()[0], Did::Delivered(64, len.min(room)));
    }
    assert_eq!((one.peer(1).here.taken, one.peer(1).here.matched), (3, 3));
    assert_eq!(one.machine.under_way(), 0);
}

/// Otherwise the packet is taken as at any other look.
#[test]
fn the_next_message_may_be_for_another_receive() {
    let taken = |prepare: fn(&mut One), pattern: Pattern, packet: Packet| {
        let mut one = One::new(MatchingDesign::TwoCopy);
        prepare(&mut one);
        one.comes(1, packet);
        let got = one.receive_next(pattern, at(64, 8));
        (got.is_some(), one.wire.came[1].is_empty())
    };
    let inline = Packet { tag: 7, count: 8, ..Packet::new(PacketKind::Inline) };
    let plain: fn(&mut One) = |_| {};
    assert_eq!(taken(plain, PATTERN, inline), (true, true));
    let any = Pattern { source: None, ..PATTERN };
    assert_eq!(taken(plain, any, inline), (false, false));
    let none = Pattern { source: Some(PeerIndex(3)), ..PATTERN };
    assert_eq!(taken(plain, none, inline), (false, false));
    assert_eq!(taken(plain, Pattern { tag: Some(8), ..PATTERN }, inline), (false, true));
    assert_eq!(taken(plain, Pattern { context: 1, ..PATTERN }, inline), (false, true));
    let eager = Packet { tag: 7, a: 8, b: 1, ..Packet::new(PacketKind::Eager) };
    assert_eq!(taken(plain, PATTERN, eager), (false, true));
    let post: fn(&mut One) = |one| {
        one.post(Some(1), Some(7), apart(64, 8));
    };
    assert_eq!(taken(post, PATTERN, inline), (false, true), "an earlier receive has it");
    let post: fn(&mut One) = |one| {
        one.post(None, Some(7), apart(64, 8));
    };
    assert_eq!(
        taken(post, PATTERN, inline),
        (false, true),
        "an earlier receive from any source has it"
    );
    let post: fn(&mut One) = |one| {
        one.post(Some(1), Some(9), apart(64, 8));
    };
    assert_eq!(
        taken(post, PATTERN, inline),
        (true, true),
        "the earlier receive is for another tag"
    );
    let before: fn(&mut One) = |one| {
        one.comes_inline(1, 7, 4);
        one.look(1);
    };
    assert_eq!(taken(before, PATTERN, inline), (false, true), "an earlier message is here");
    let lost: fn(&mut One) = |one| one.lose(1);
    assert_eq!(taken(lost, PATTERN, inline), (false, false));
}

#[test]
fn earlier_receives_get_their_messages_before_the_next() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    let early = one.post(Some(1), Some(7), apart(64, 8));
    one.comes_inline(1, 7, 8);
    one.comes_inline(1, 7, 5);
    assert_eq!(one.receive_next(PATTERN, at(128, 8)), Some(received(1, 7, 5, false)));
    let told = |taken: u32| Did::Told(1, Returned { taken, matched: taken, ..Returned::default() });
    assert_eq!(one.did(), [Did::Delivered(64, 8), told(1), Did::Delivered(128, 5), told(2)]);
    assert_eq!(one.take(early), Some(Ok(received(1, 7, 8, false))));
}

#[test]
fn a_short_post_needs_a_source_without_pending_traffic() {
    let mut one = One::with(MatchingDesign::Mirror, OF_THREE, 2);
    let post = one.post_short(PATTERN, apart(64, 8)).unwrap();
    assert_eq!((one.peer(1).unoffered, one.machine.under_way()), (1, 1));
    assert_eq!(one.machine.about(post), (Some(PeerIndex(1)), Some(7)));
    one.comes_inline(1, 7, 8);
    one.look(1);
    assert_eq!(one.take(post), Some(Ok(received(1, 7, 8, false))));
    assert_eq!(one.peer(1).unoffered, 0);
    assert_eq!(one.post_short(PATTERN, at(64, 8)), None, "the receive could be offered");
    assert_eq!(one.post_short(Pattern { source: None, ..PATTERN }, apart(64, 8)), None);
    assert_eq!(
        one.post_short(Pattern { source: Some(PeerIndex(3)), ..PATTERN }, apart(64, 8)),
        None
    );
    assert!(one.machine.is_quiet(&mut one.wire, PeerIndex(1)));
    one.wire.starved[1] = true;
    assert_eq!(one.post_short(PATTERN, apart(64, 8)), None, "the source waits for room");
    assert!(!one.machine.is_quiet(&mut one.wire, PeerIndex(1)));
    one.wire.starved[1] = false;
    one.comes_inline(1, 9, 8);
    one.look(1);
    assert_eq!(one.post_short(PATTERN, apart(64, 8)), None, "a message is here");
    assert!(!one.machine.is_quiet(&mut one.wire, PeerIndex(1)));
    assert!(one.machine.is_quiet(&mut one.wire, PeerIndex(2)));
    one.lose(2);
    assert!(!one.machine.is_quiet(&mut one.wire, PeerIndex(2)));
    assert_eq!(
        one.post_short(Pattern { source: Some(PeerIndex(2)), ..PATTERN }, apart(64, 8)),
        None
    );
    assert_eq!((one.machine.under_way(), one.peer(1).unoffered), (0, 0));
    // All requests are under way.
    let mut one = One::with(MatchingDesign::Mirror, OF_THREE, 1);
    assert!(one.post_short(PATTERN, apart(64, 8)).is_some());
    assert_eq!(one.post_short(PATTERN, apart(64, 8)), None);
    assert_eq!(one.peer(1).unoffered, 1);
}

/// The first message that arrived, from one source or from any.
#[test]
fn a_receive_gets_the_first_message_of_its_pattern() {
    let mut one = One::new(MatchingDesign::Mirror);
    for (from, tag, len) in [(2, 7, 1), (1, 8, 2), (1, 7, 3), (2, 8, 4), (1, 7, 5)] {
        one.comes_inline(from, tag, len);
        one.look(from as u32);
    }
    let mut probed = |source: Option<u32>, tag: Option<u32>| {
        let pattern = Pattern { context: 0, source: source.map(PeerIndex), tag };
        let probed = one.machine.probe(&pattern).map(|found| found.len);
        let got = one.machine.receive(&mut one.wire, pattern, at(64, 8)).unwrap().done();
        assert_eq!(got.map(|got| got.len), probed);
        probed
    };
    assert_eq!(probed(Some(1), Some(7)), Some(3));
    assert_eq!(probed(None, Some(8)), Some(2));
    assert_eq!(probed(None, None), Some(1));
    assert_eq!(probed(Some(1), None), Some(5));
    assert_eq!(probed(Some(1), None), None);
    assert_eq!(probed(Some(2), Some(8)), Some(4));
    let context = Pattern { context: 1, source: None, tag: None };
    one.comes_inline(1, 7, 8);
    one.look(1);
    assert_eq!(one.machine.probe(&context), None);
    let none = Pattern { source: Some(PeerIndex(3)), ..PATTERN };
    assert_eq!(one.machine.probe(&none), None);
}

/// A message that needs a request stays until there is one.
#[test]
fn a_message_that_cannot_be_fetched_stays() {
    let mut one = One::with(MatchingDesign::Mirror, OF_THREE, 1);
    let post = one.post(Some(2), None, apart(64, 8));
    one.comes(1, Packet { id: 5, tag: 7, a: 900, ..Packet::new(PacketKind::Rts) });
    one.comes_inline(1, 8, 8);
    one.look(1);
    let full = Err(CallError::Busy(Why::NoTag));
    assert_eq!(one.machine.receive(&mut one.wire, PATTERN, at(64, 900)), full);
    assert!(
        one.receive(Some(1), Some(8), at(64, 8)).done().is_some(),
        "the message needs no request"
    );
    assert_eq!(one.cancel(post), Cancel::Done);
    assert!(one.take(post).is_some());
    assert!(one.receive(Some(1), Some(7), at(64, 900)).pending().is_some());
}
