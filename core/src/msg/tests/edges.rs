//! Rare cases: packets while bytes move, packets out of place, offers that wait, and packets
//! for a dead rank.

use super::*;
use crate::msg::locked_matching::Board;
use crate::msg::offer::LOOK;
use crate::msg::tables::RequestState;

impl Pair {
    fn entry(&self, of: usize, request: RequestId) -> &RequestEntry {
        &self.machines[of].tables.requests[request.index as usize]
    }

    fn advance(&mut self, rank: usize) {
        self.machines[rank].advance(&mut self.lanes[rank]);
    }

    fn lose(&mut self, by: usize, rank: u32) {
        self.machines[by].lost(&mut self.lanes[by], PeerIndex(rank));
    }

    /// Lets rank 0 copy a long message into a receive of rank 1: both requests.
    fn asked_for(&mut self, len: usize) -> (RequestId, RequestId) {
        self.machines[1].tables.peers[0].thresholds.ask_from = 0;
        let sent = self.send(0, 1, LABEL, text(len, 3)).pending().unwrap();
        self.advance(1);
        let post = self.receive(1, Some(0), None, buffer(len)).pending().unwrap();
        self.advance(0);
        (sent, post)
    }
}

#[test]
fn a_part_is_reported_while_the_next_is_copied() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let (sent, post) = pair.asked_for(200_000);
    let mut told = 0;
    let mut parts = 0;
    while let Some(job) = pair.machines[0].poll_job() {
        assert_eq!(pair.entry(1, post).moved, told, "after {parts} parts");
        pair.lanes[0].copy(&job.copy);
        pair.machines[0].job_done(&mut pair.lanes[0], job.request, Ok(()));
        pair.advance(1);
        (told, parts) = (told + job.copy.len, parts + 1);
    }
    assert!(parts > 4 && told == 200_000, "{parts} parts, {told} bytes");
    pair.settle();
    assert_eq!(pair.take(1, Some(post)), Some(Ok(received(0, 7, 200_000, false))));
    assert!(pair.take(0, Some(sent)).unwrap().is_ok());
}

#[test]
fn a_report_below_the_last_one_or_beyond_the_message_is_dropped() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let (_, post) = pair.asked_for(200_000);
    let id = pair.machines[1].id(post.index as usize);
    for (bytes, moved) in [(5_000, 5_000), (4_999, 5_000), (200_001, 5_000), (200_000, 200_000)] {
        let part = Packet { id, a: bytes, ..Packet::new(PacketKind::Part) };
        pair.lanes[0].push(PeerIndex(1), &part, PacketLoad::Empty);
        pair.advance(1);
        assert_eq!(pair.entry(1, post).moved, moved, "a report of {bytes} bytes");
    }
    assert_eq!(pair.machines[1].counts().dropped, 2);
}

/// A part is not reported in a reserved line: the report of the next part covers it.
#[test]
fn a_part_is_not_reported_in_a_reserved_line() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    pair.asked_for(200_000);
    let reserve = SHAPE.reserve();
    while pair.lanes[0].has_room(PeerIndex(1), reserve + 1) {
        pair.lanes[0].push(PeerIndex(1), &Packet::new(PacketKind::Post), PacketLoad::Empty);
    }
    let job = pair.machines[0].poll_job().unwrap();
    pair.machines[0].job_done(&mut pair.lanes[0], job.request, Ok(()));
    assert!(pair.lanes[0].has_room(PeerIndex(1), reserve));
    assert!(pair.machines[0].poll_job().is_some(), "the next part is copied all the same");
}

#[test]
fn no_further_part_is_copied_to_a_dead_rank() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let (sent, _) = pair.asked_for(200_000);
    let job = pair.machines[0].poll_job().unwrap();
    pair.lose(0, 1);
    pair.machines[0].job_done(&mut pair.lanes[0], job.request, Ok(()));
    assert_eq!(pair.machines[0].poll_job(), None);
    let died = Err(RequestError::PeerLost { peer: PeerIndex(1) });
    assert_eq!(pair.take(0, Some(sent)), Some(died));
}

#[test]
fn a_fetch_that_fails_after_a_death_requests_nothing() {
    let mut pair = Pair::new(MatchingDesign::TwoCopy);
    pair.machines[1].set_remote(PeerIndex(0));
    pair.send(0, 1, LABEL, text(100_000, 3));
    pair.advance(1);
    let post = pair.receive(1, Some(0), None, buffer(100_000)).pending();
    let job = pair.machines[1].poll_job().expect("the message is fetched from another node");
    pair.lose(1, 0);
    let failed = Err(RequestError::Failed { peer: PeerIndex(0) });
    pair.machines[1].job_done(&mut pair.lanes[1], job.request, failed);
    assert_eq!(pair.take(1, post), Some(Err(RequestError::PeerLost { peer: PeerIndex(0) })));
}

/// Only the next bytes of a message, and only as many as there is room for.
#[test]
fn bytes_out_of_place_are_dropped() {
    let mut pair = Pair::new(MatchingDesign::TwoCopy);
    let apart = |bytes: &[u8]| MessageBytes { in_reach: false, ..bytes_of(bytes) };
    let (out, into) = (text(4_000, 3), buffer(4_000));
    let pattern = Pattern { context: 0, source: Some(PeerIndex(0)), tag: None };
    let post = pair.machines[1].receive(&mut pair.lanes[1], pattern, apart(&into[..100])).unwrap();
    pair.machines[0].send(&mut pair.lanes[0], PeerIndex(1), LABEL, apart(out)).unwrap();
    pair.advance(1);
    let post = post.pending().unwrap();
    let id = pair.machines[1].id(post.index as usize);
    for (at, len, moved) in [(0, 1024, 0), (50, 10, 0), (0, 60, 60), (60, 60, 60), (0, 40, 60)] {
        let b = 0b1111 << 32 | len;
        let data = Packet { id, a: at, b, ..Packet::new(PacketKind::Data) };
        pair.lanes[0].write_slots(PeerIndex(1), 0b1111, out.as_ptr() as u64, 1024);
        pair.lanes[0].push(PeerIndex(1), &data, PacketLoad::Empty);
        pair.advance(1);
        let end = moved as usize;
        assert_eq!(pair.entry(1, post).moved, moved, "{len} bytes at {at}");
        assert!(into[..end] == out[..end] && into[end..].iter().all(|byte| *byte == 0));
    }
    assert!(!pair.machines[1].has_ended(post) && pair.machines[1].counts().dropped == 4);
    let last = Packet { id, a: 60, b: 0b1 << 32 | 40, ..Packet::new(PacketKind::Data) };
    pair.lanes[0].push(PeerIndex(1), &last, PacketLoad::Empty);
    pair.advance(1);
    assert_eq!(pair.take(1, Some(post)), Some(Ok(received(0, 7, 4_000, true))));
}

/// The sender has room for as many answers as offers, so that no more cancels are sent.
#[test]
fn cancels_are_counted_until_they_are_answered() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let offer = |pair: &mut Pair| -> Vec<_> {
        let posts = (0..4).map(|_| pair.receive(1, Some(0), Some(7), buffer(3_000)).pending());
        posts.map(Option::unwrap).collect()
    };
    let ask_back = |pair: &mut Pair, posts: &[RequestId]| {
        for post in posts {
            assert_eq!(pair.machines[1].cancel(&mut pair.lanes[1], *post), Cancel::Asked);
        }
        pair.machines[1].tables.peers[0].asked
    };
    let early = offer(&mut pair);
    pair.settle();
    for _ in 0..4 {
        assert_eq!(pair.send(0, 1, LABEL, text(3_000, 1)), Begun::Done(()));
    }
    // Cancels and messages cross; then the same with four more.
    assert_eq!(ask_back(&mut pair, &early), 4);
    pair.advance(1);
    let late = offer(&mut pair);
    pair.advance(1);
    assert_eq!(ask_back(&mut pair, &late), 4, "more answers than the sender has room for");
    pair.settle();
    assert_eq!(pair.machines[1].tables.peers[0].asked, 0);
    for (posts, is_there) in [(early, true), (late, false)] {
        for post in posts {
            assert_eq!(pair.take(1, Some(post)).unwrap().is_ok(), is_there);
        }
    }
}

#[test]
fn an_unrequested_answer_cancels_nothing() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let post = pair.receive(1, Some(0), Some(7), buffer(3_000)).pending().unwrap();
    pair.settle();
    let id = pair.machines[1].id(post.index as usize);
    pair.machines[1].cancel_answered(0, id);
    assert!(pair.machines[1].is_under_way(post), "the receive was offered and not cancelled");
    assert_eq!(pair.machines[1].cancel(&mut pair.lanes[1], post), Cancel::Asked);
    pair.machines[1].cancel_answered(1, id);
    assert!(pair.machines[1].is_under_way(post), "another rank's answer");
    pair.settle();
    assert_eq!(pair.take(1, Some(post)), Some(Err(RequestError::Cancelled)));
}

#[test]
fn all_receives_that_were_held_back_are_offered() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let any = pair.receive(1, None, Some(7), buffer(8)).pending().unwrap();
    for _ in 0..3 {
        pair.receive(1, Some(0), Some(7), buffer(3_000));
    }
    pair.settle();
    assert_eq!(pair.machines[1].counts().offered, 0, "the first receive takes from any source");
    assert_eq!(pair.machines[1].cancel(&mut pair.lanes[1], any), Cancel::Done);
    pair.settle();
    assert_eq!(pair.machines[1].counts().offered, 3);
}

/// An offer is compared with a bounded number of receives: beyond that it waits.
#[test]
fn an_offer_is_compared_with_a_limited_number_of_receives() {
    for (earlier, offered) in [(LOOK, 1), (LOOK + 1, 0)] {
        let mut pair = Pair::new(MatchingDesign::Mirror);
        for tag in 0..earlier {
            pair.receive(1, Some(0), Some(100 + tag), buffer(8));
        }
        pair.receive(1, Some(0), Some(7), buffer(3_000));
        pair.settle();
        assert_eq!(pair.machines[1].counts().offered, offered, "{earlier} before it");
    }
}

/// A rank that was given up may go on, and its packets may come.
#[test]
fn a_message_of_a_lost_rank_is_not_received() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    pair.lose(1, 0);
    pair.send(0, 1, LABEL, text(8, 1));
    let pattern = Pattern { context: 0, source: Some(PeerIndex(0)), tag: None };
    let (machine, lanes) = (&mut pair.machines[1], &mut pair.lanes[1]);
    assert_eq!(machine.receive_next(lanes, &pattern, bytes_of(buffer(8))), None);
}

#[test]
fn a_message_copied_within_the_call_leaves_no_request() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let into = buffer(3_000);
    let sent = pair.send(0, 1, LABEL, text(3_000, 9)).pending();
    pair.advance(1);
    let got = pair.receive(1, Some(0), None, into);
    assert_eq!(got, Begun::Done(received(0, 7, 3_000, false)));
    assert!(into == text(3_000, 9));
    pair.settle();
    assert!(pair.take(0, sent).unwrap().is_ok());
    for machine in &pair.machines {
        assert!(machine.tables.requests.iter().all(|entry| entry.state == RequestState::Free));
    }
}

/// A quarter of the quota that was matched, or of the lines that were taken, is
/// returned at once; less of it with what goes anyway.
#[test]
fn a_quarter_is_returned_at_once() {
    for (quota, lines, is_posted, quarter) in [(32, 256, true, 8), (256, 64, false, 16)] {
        let mut pair = Pair::with(MatchingDesign::TwoCopy, MessageShape { quota, lines, ..SHAPE });
        for message in 1..=quarter {
            if is_posted {
                pair.receive(1, Some(0), None, buffer(8));
            }
            pair.send(0, 1, LABEL, text(8, 1));
            pair.advance(1);
            let untold = pair.lanes[1].untold(PeerIndex(0));
            assert_eq!(untold, if message < quarter { message } else { 0 }, "of {quarter}");
        }
    }
}

/// A receive held back by a short one is offered when the short one has its
/// message.
#[test]
fn a_receive_that_has_its_message_holds_nothing_back() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let first = pair.receive(1, Some(0), Some(7), buffer(8)).pending();
    pair.receive(1, Some(0), Some(7), buffer(3_000));
    pair.settle();
    assert_eq!(pair.machines[1].counts().offered, 0, "the first would take its message");
    pair.send(0, 1, LABEL, text(8, 1));
    pair.settle();
    assert!(pair.take(1, first).unwrap().is_ok());
    assert_eq!(pair.machines[1].counts().offered, 1);
}

/// A message that meets its receive at once gives up no place that was granted.
#[test]
fn a_message_received_from_the_lane_returns_no_grant() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    pair.machines[1].tables.peers[0].granted = 1;
    pair.send(0, 1, LABEL, text(8, 1));
    let pattern = Pattern { context: 0, source: Some(PeerIndex(0)), tag: None };
    let (machine, lanes) = (&mut pair.machines[1], &mut pair.lanes[1]);
    assert!(machine.receive_next(lanes, &pattern, bytes_of(buffer(8))).is_some());
    let peer = &pair.machines[1].tables.peers[0];
    assert_eq!((peer.granted, peer.here.matched), (1, 1));
}

/// Bytes of a message with a known receive may use the last slot.
#[test]
fn no_more_slots_are_requested_than_exist() {
    let apart = |bytes: &[u8]| MessageBytes { in_reach: false, ..bytes_of(bytes) };
    for (len, asks) in [(4 * 256, false), (4 * 256 + 1, true)] {
        let mut pair = Pair::new(MatchingDesign::TwoCopy);
        pair.machines[0].tables.peers[1].thresholds.eager_max = 0;
        let pattern = Pattern { context: 0, source: Some(PeerIndex(0)), tag: None };
        pair.machines[1].receive(&mut pair.lanes[1], pattern, apart(buffer(len))).unwrap();
        let out = apart(text(len, 2));
        pair.machines[0].send(&mut pair.lanes[0], PeerIndex(1), LABEL, out).unwrap();
        pair.advance(1);
        pair.advance(0);
        assert_eq!(pair.lanes[1].is_starved(PeerIndex(0)), asks, "{len} bytes");
        pair.settle();
    }
}

#[test]
fn a_message_by_lane_lets_the_next_one_claim() {
    let mut pair = Pair::new(MatchingDesign::Locked);
    let boards: Vec<Board<'_>> = (0..2)
        .map(|_| {
            let shape = pair.machines[0].board_shape();
            let lines = Board::memory_size(shape).div_ceil(size_of::<LaneLine>());
            let memory = Vec::leak((0..lines).map(|_| LaneLine::new()).collect());
            // SAFETY: zero lines, as aligned as a board, that live for ever.
            unsafe { Board::init(NonNull::from(memory).cast(), shape) }.unwrap()
        })
        .collect();
    let boards: &'static [Board<'static>] = Vec::leak(boards);
    for machine in &mut pair.machines {
        machine.put_up(boards);
    }
    let direct =
        |pair: &Pair| pair.machines[0].counts().messages(MessagePath::Direct).iter().sum::<u64>();
    // No receive is on the board: each message goes by the lane.
    for _ in 0..2 {
        pair.send(0, 1, LABEL, text(8, 1));
    }
    pair.settle();
    for _ in 0..2 {
        pair.receive(1, Some(0), None, buffer(8));
    }
    assert_eq!(direct(&pair), 0);
    let post = pair.receive(1, Some(0), None, buffer(900)).pending();
    pair.send(0, 1, LABEL, text(900, 2));
    assert_eq!(direct(&pair), 1, "its number is the one that the board expects");
    pair.settle();
    assert_eq!(pair.take(1, post), Some(Ok(received(0, 7, 900, false))));
}
