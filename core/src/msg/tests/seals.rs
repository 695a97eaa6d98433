//! The end of a rank while messages are under way.

use super::boards::up;
use super::script::at;
use super::*;

const ENDED: Option<Result<ReceivedMessage, RequestError>> = Some(Err(RequestError::Ended));

impl Pair {
    fn seal(&mut self, by: usize) {
        self.machines[by].seal();
    }

    fn end_all(&mut self, by: usize) {
        self.machines[by].end_all(&mut self.lanes[by]);
    }
}

#[test]
fn requests_that_no_peer_knows_end_at_once() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let small = pair.receive(0, Some(1), None, buffer(8)).pending();
    let any = pair.receive(0, None, Some(9), buffer(8)).pending();
    // The quota of rank 1 is used up, so that the last message waits.
    let mut waiting = None;
    for _ in 0..=SHAPE.quota {
        waiting = pair.send(0, 1, LABEL, text(8, 1)).pending();
    }
    assert!(waiting.is_some());
    pair.seal(0);
    for request in [small, any, waiting] {
        assert_eq!(pair.take(0, request), ENDED);
    }
    let refused =
        pair.machines[0].send(&mut pair.lanes[0], PeerIndex(1), LABEL, bytes_of(text(8, 1)));
    assert_eq!(refused, Err(CallError::PeerLost { peer: PeerIndex(1) }));
}

#[test]
fn a_receive_that_the_sender_knows_keeps_its_buffer_until_the_sender_has_ended() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let into = buffer(200_000);
    let post = pair.receive(1, Some(0), None, into).pending();
    pair.settle();
    assert_eq!(pair.machines[1].tables.peers[0].offered, 1, "the receive is offered");
    pair.seal(1);
    assert_eq!(pair.take(1, post), None, "rank 0 may still write there");
    // It does.
    let sent = pair.send(0, 1, LABEL, text(200_000, 3)).pending();
    let job = pair.machines[0].poll_job().expect("rank 0 copies");
    pair.seal(0);
    assert!(pair.machines[0].is_copying());
    assert!(!pair.machines[1].is_copying());
    let mut job = Some(job);
    while let Some(part) = job {
        pair.lanes[0].copy(&part.copy);
        pair.machines[0].job_done(&mut pair.lanes[0], part.request, Ok(()));
        job = pair.machines[0].poll_job();
    }
    assert!(!pair.machines[0].is_copying());
    assert!(matches!(pair.take(0, sent), Some(Err(_))), "nobody reads the report of the copy");
    assert_eq!(pair.take(1, post), None);
    pair.end_all(1);
    assert_eq!(pair.take(1, post), ENDED);
}

#[test]
fn a_message_that_was_announced_is_not_fetched_after_the_end() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let sent = pair.send(0, 1, LABEL, text(100_000, 3)).pending();
    pair.seal(0);
    assert_eq!(pair.take(0, sent), None, "rank 1 may still read there");
    let post = pair.receive(1, Some(0), None, buffer(8)).pending();
    pair.seal(1);
    pair.settle();
    assert!(!pair.machines[1].is_copying(), "the announcement stays in the lane");
    pair.end_all(0);
    pair.end_all(1);
    assert_eq!(pair.take(0, sent), ENDED);
    assert_eq!(pair.take(1, post), ENDED);
    assert_eq!(pair.machines.each_ref().map(|machine| machine.under_way()), [0, 0]);
}

#[test]
fn a_receive_on_the_board_ends_unless_a_sender_has_claimed_it() {
    let mut up = up();
    let posts = [7, 8].map(|tag| {
        let pattern = Pattern { context: 0, source: None, tag: Some(tag) };
        let begun = up.one.machine.receive(&mut up.one.wire, pattern, at(0x1000, 64)).unwrap();
        begun.pending().unwrap()
    });
    let label = Label { context: 0, tag: 7 };
    let _claim =
        up.boards[0].try_claim(LocalRank(1), 0, label, 64).expect("rank 1 claims the first");
    let take = |machine: &mut MessageMachine<'_>, at: usize| machine.take(posts[at]);
    up.one.machine.seal();
    assert_eq!(take(&mut up.one.machine, 1), ENDED);
    assert_eq!(take(&mut up.one.machine, 0), None, "rank 1 may still write there");
    up.one.machine.end_all(&mut up.one.wire);
    assert_eq!(take(&mut up.one.machine, 0), ENDED);
}
