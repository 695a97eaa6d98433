//! What a machine reports of its requests, and which lanes it looks at.

use super::script::{Did, OF_THREE, One, apart, at};
use super::*;
use crate::msg::tables::RequestState;

const POST: Packet = Packet::new(PacketKind::Post);

fn of(peers: u32) -> One {
    One::with(MatchingDesign::Mirror, MessageShape { peers, ..SHAPE }, 8)
}

#[test]
fn lanes_are_looked_at_in_turn() {
    let mut one = of(8);
    let mut all = || {
        (0..8).for_each(|rank| one.comes(rank, POST));
        assert!(one.advance());
        one.popped()
    };
    assert_eq!(all(), [1, 1, 1, 1, 0, 0, 0, 0]);
    // Lanes that had packets are looked at beside the next ones in turn.
    assert_eq!(all(), [1, 1, 1, 1, 2, 2, 2, 2]);
}

#[test]
fn lanes_that_had_packets_are_looked_at_first() {
    let mut one = of(16);
    for rank in [9, 10, 11, 12, 10, 13] {
        one.comes(rank, POST);
        assert!(one.machine.advance_from(&mut one.wire, PeerIndex(rank as u32)));
    }
    assert_eq!(one.machine.recent, [13, 10, 12, 11]);
    one.popped();
    for rank in 9..14 {
        one.comes(rank, POST);
    }
    one.comes(4, POST);
    assert!(one.advance(), "the lanes that had packets");
    assert_eq!(one.popped()[9..14], [0, 1, 1, 1, 1]);
    assert_eq!(one.machine.recent, [11, 12, 10, 13]);
    assert!(one.advance() && one.popped()[4] == 1, "the next four lanes");
    assert!(one.advance() && one.popped()[9] == 1, "the next four");
    assert!(!one.advance(), "all lanes are empty");
    assert_eq!(one.machine.turn, 0);
}

#[test]
fn the_lane_of_a_missing_rank_is_empty() {
    let mut one = of(2);
    assert!(!one.machine.advance_from(&mut one.wire, PeerIndex(2)));
    assert!(!one.look(77) && !one.look(1));
    one.comes(1, POST);
    assert!(one.look(1));
}

#[test]
fn a_rest_returns_all_credits_and_looks_at_all_lanes() {
    let mut one = of(8);
    for rank in [1, 7] {
        one.comes_inline(rank, 7, 8);
    }
    assert!(one.rest(), "two messages came");
    let taken = Returned { taken: 1, ..Returned::default() };
    assert_eq!(one.did(), [Did::Told(1, taken), Did::Told(7, taken), Did::Fenced]);
    assert!(!one.rest());
    assert_eq!(one.did(), [Did::Fenced], "the credits were returned");
    // The same once more.
    one.comes_inline(1, 7, 8);
    assert!(one.rest() && !one.rest());
    let taken = Returned { taken: 2, ..Returned::default() };
    assert_eq!(one.did(), [Did::Told(1, taken), Did::Fenced, Did::Fenced]);
}

#[test]
fn a_peer_that_requests_after_its_credits_is_rung() {
    let mut one = of(2);
    for _ in 0..4 {
        one.comes(1, POST);
    }
    assert!(one.advance());
    assert!(matches!(one.did()[..], [Did::Told(1, _)]), "a quarter of the lines is returned");
    one.wire.starved[1] = true;
    assert!(!one.rest());
    assert_eq!(one.did(), [Did::Fenced, Did::Rang(1)], "no further credits to return");
    assert!(!one.rest());
    assert_eq!(one.did(), [Did::Fenced], "once");
    one.comes(1, POST);
    one.lose(1);
    one.did();
    assert!(!one.rest());
    assert_eq!(one.did(), [Did::Fenced], "a dead rank gets nothing");
}

#[test]
fn a_rest_offers_receives_to_a_peer_that_requests_room() {
    let mut one = of(2);
    one.post(Some(1), Some(7), at(64, 8));
    assert!(!one.rest());
    assert_eq!(one.pushed(), []);
    one.wire.starved[1] = true;
    assert!(one.rest());
    assert_eq!(one.pushed(), [PacketKind::Post]);
}

#[test]
fn no_rest_while_there_is_news_or_work() {
    let mut one = of(2);
    one.wire.room[1] = 0;
    let sent = one.send(1, 7, at(0, 8)).pending().unwrap();
    assert!(!one.rest(), "the send waits for room");
    one.wire.returned[1].lines = 1;
    assert!(one.rest(), "the peer has returned something");
    assert!(!one.rest());
    assert!(one.machine.watch(sent));
    one.wire.room[1] = 16;
    assert!(one.rest(), "the message was sent");
    assert!(one.rest() && one.machine.has_news(), "the end is to be reported");
    assert_eq!(one.machine.poll_ended(), Some(sent));
    assert!(!one.rest() && !one.machine.has_news() && !one.machine.wants_poll());
    // Bytes are to be copied.
    one.comes(
        1,
        Packet { id: 5, a: 9_000, count: Packet::IN_REACH, ..Packet::new(PacketKind::Rts) },
    );
    let post = one.post(Some(1), None, apart(64, 9_000));
    assert!(one.rest() && one.rest() && one.machine.has_news() && one.machine.wants_poll());
    let job = one.machine.poll_job().unwrap();
    assert!(!one.rest() && !one.machine.has_news());
    one.done(job, Ok(()));
    assert!(one.take(post).unwrap().is_ok() && !one.rest());
}

#[test]
fn a_request_is_under_way_then_ended_then_gone() {
    let mut one = of(2);
    let post = one.post(Some(1), Some(7), at(64, 8));
    let stands = |one: &One| {
        let machine = &one.machine;
        (machine.is_under_way(post), machine.has_ended(post), machine.is_held(post))
    };
    assert_eq!((stands(&one), one.machine.under_way()), ((true, false, true), 1));
    assert_eq!((one.take(post), one.machine.take_whole(post)), (None, None));
    one.comes_inline(1, 7, 8);
    one.advance();
    assert_eq!((stands(&one), one.machine.under_way()), ((false, true, true), 0));
    assert_eq!(one.take(post), Some(Ok(received(1, 7, 8, false))));
    assert_eq!(stands(&one), (false, false, false));
    assert_eq!((one.take(post), one.machine.watch(post)), (None, false));
    assert_eq!(one.machine.about(post), (None, None));
    // The entry has another name now.
    let next = one.post(Some(1), Some(7), at(64, 8));
    assert_eq!((next.index, stands(&one)), (post.index, (false, false, false)));
    assert_eq!(one.machine.cancel(&mut one.wire, post), Cancel::TooLate);
    assert!(one.machine.is_under_way(next));
}

#[test]
fn a_request_reports_its_rank_and_tag() {
    let mut one = of(2);
    let exact = one.post(Some(1), Some(7), at(64, 8));
    let any = one.post(None, None, at(64, 8));
    one.wire.room[1] = 0;
    let sent = one.send(1, 9, at(0, 8)).pending().unwrap();
    assert_eq!(one.machine.about(exact), (Some(PeerIndex(1)), Some(7)));
    assert_eq!(one.machine.about(any), (None, None));
    assert_eq!(one.machine.about(sent), (Some(PeerIndex(1)), Some(9)));
    let kinds = [exact, sent].map(|request| one.machine.kind_of(request).map(|kind| kind.1));
    assert_eq!(kinds, [Some(true), Some(false)]);
    assert!(!one.machine.is_lost(PeerIndex(1)) && !one.machine.is_lost(PeerIndex(2)));
    one.lose(1);
    assert!(one.machine.is_lost(PeerIndex(1)) && !one.machine.is_lost(PeerIndex(0)));
}

#[test]
fn watched_requests_are_reported_once_and_in_order() {
    let mut one = of(2);
    let posts = [0, 1, 2, 3].map(|tag| one.post(Some(1), Some(tag), at(64, 8)));
    assert!(
        one.machine.watch(posts[0]) && one.machine.watch(posts[1]) && one.machine.watch(posts[3])
    );
    for tag in [0, 2, 1, 3] {
        one.comes_inline(1, tag, 8);
    }
    assert_eq!(one.machine.poll_ended(), None);
    one.advance();
    assert!(!one.machine.watch(posts[2]), "the receive has ended");
    assert_eq!(one.machine.take_whole(posts[0]), None, "the end is to be reported");
    assert_eq!(one.machine.poll_ended(), Some(posts[0]));
    assert!(one.machine.take_whole(posts[0]).is_some());
    // A request that is taken before it was reported is not reported any more.
    assert!(one.take(posts[1]).is_some() && one.machine.wants_poll());
    assert_eq!(one.machine.poll_ended(), Some(posts[3]));
    assert_eq!(one.machine.poll_ended(), None);
    assert!(one.take(posts[2]).is_some() && one.take(posts[3]).is_some());
}

/// Together with other messages, and alone.
#[test]
fn a_watched_receive_is_listed_however_its_message_comes() {
    for (kind, count) in [(PacketKind::Inline, 8), (PacketKind::Eager, 0)] {
        let mut one = of(2);
        let post = one.post(Some(1), Some(7), at(64, 300));
        assert!(one.machine.watch(post) && !one.machine.wants_poll());
        one.comes(1, Packet { tag: 7, count, a: 8, b: 1, ..Packet::new(kind) });
        one.look(1);
        assert!(one.machine.wants_poll() && one.entry(post).listed);
        assert_eq!(one.machine.poll_ended(), Some(post));
        assert!(!one.entry(post).listed && !one.machine.wants_poll());
    }
}

#[test]
fn take_whole_takes_only_whole_messages() {
    let mut one = of(2);
    let posts = [8, 9, 7].map(|len| one.post(Some(1), Some(7), at(64, len)));
    let cancelled = one.post(Some(1), Some(8), at(64, 8));
    for _ in 0..3 {
        one.comes_inline(1, 7, 8);
    }
    one.advance();
    assert_eq!(one.machine.cancel(&mut one.wire, cancelled), Cancel::Done);
    assert_eq!(one.machine.take_whole(posts[0]), Some(received(1, 7, 8, false)));
    assert_eq!(one.machine.take_whole(posts[1]), Some(received(1, 7, 8, false)));
    assert_eq!(one.machine.take_whole(posts[2]), None);
    assert_eq!(one.take(posts[2]), Some(Ok(received(1, 7, 8, true))));
    assert_eq!(one.machine.take_whole(cancelled), None);
    assert_eq!(one.take(cancelled), Some(Err(RequestError::Cancelled)));
}

#[test]
fn a_waiting_send_can_be_cancelled() {
    let mut one = of(2);
    one.wire.room[1] = 0;
    let sends = [7, 8, 9].map(|tag| one.send(1, tag, at(0, 8)).pending().unwrap());
    assert!(one.machine.wants_poll() && one.machine.under_way() == 3);
    assert_eq!(one.machine.cancel(&mut one.wire, sends[1]), Cancel::Done);
    assert_eq!(one.take(sends[1]), Some(Err(RequestError::Cancelled)));
    one.wire.room[1] = 16;
    one.did();
    assert!(one.advance());
    assert_eq!(one.did(), [Did::Inline(1, 8, 7), Did::Inline(1, 8, 9)]);
    assert_eq!(one.machine.cancel(&mut one.wire, sends[0]), Cancel::TooLate);
    assert!(!one.machine.wants_poll() && one.machine.under_way() == 0);
    // A send that was announced to the receiver cannot be cancelled.
    let told = one.send(1, 7, at(0, 9_000)).pending().unwrap();
    assert_eq!(one.machine.cancel(&mut one.wire, told), Cancel::TooLate);
    assert!(one.machine.is_under_way(told));
}

/// A name in a packet is valid for one request, with that peer, in that state.
#[test]
fn a_request_is_found_by_its_name_alone() {
    let mut one = One::with(MatchingDesign::Mirror, OF_THREE, 8);
    let sent = one.send(1, 7, at(0, 9_000)).pending().unwrap();
    let id = one.id(sent);
    let told = RequestState::Told;
    let machine = &one.machine;
    assert_eq!(machine.named(id, 1, told), Some(sent.index as usize));
    assert_eq!(machine.named(id, 2, told), None, "a request of another peer");
    assert_eq!(machine.named(id, 1, RequestState::Pushing), None, "another state");
    assert_eq!(machine.named(id + (1 << 20), 1, told), None, "another life");
    assert_eq!(machine.named(id + 1, 1, told), None, "another place");
    assert_eq!(machine.named_any(8), None, "no place");
    // A receive from any source belongs to its source once that is known.
    let post = one.post(None, None, apart(64, 9_000));
    let rts = Packet { id: 3, a: 9_000, ..Packet::new(PacketKind::Rts) };
    one.comes(2, rts);
    one.advance();
    let id = one.id(post);
    assert_eq!(one.machine.named(id, 2, RequestState::Coming), Some(post.index as usize));
    assert_eq!(one.machine.named(id, 1, RequestState::Coming), None);
    assert_eq!(one.open(), 2);
}

/// Any rank may request room after credits were returned and before it sees them.
#[test]
fn a_request_at_the_last_moment_is_answered() {
    for rank in 0..3 {
        let mut one = One::with(MatchingDesign::Mirror, OF_THREE, 8);
        one.post(Some(rank), Some(7), at(64, 8));
        one.wire.asks_late = Some(rank as usize);
        assert!(one.rest());
        assert_eq!(one.pushed(), [PacketKind::Post], "rank {rank}");
    }
}
