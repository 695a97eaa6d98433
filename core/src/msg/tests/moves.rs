//! Bytes that move after their message was announced: the side that copies, the
//! packet that reports the end, and the failures.

use super::script::{Did, One, apart, at};
use super::*;
use crate::msg::tables::RequestState;

/// The announcement of a message that stays with rank 1.
pub(super) fn rts(id: u32, len: u64, flags: u8) -> Packet {
    Packet { id, tag: 7, a: len, b: 0x9000, count: flags, ..Packet::new(PacketKind::Rts) }
}

pub(super) fn fin(id: u32, flags: u8) -> Packet {
    Packet { id, count: flags, ..Packet::new(PacketKind::Fin) }
}

pub(super) fn copied(id: u32, flags: u8) -> Packet {
    Packet { id, count: flags, ..Packet::new(PacketKind::Copied) }
}

pub(super) fn failed(rank: u32) -> RequestError {
    RequestError::Failed { peer: PeerIndex(rank) }
}

pub(super) fn pushed(packet: Packet) -> Did {
    Did::Pushed(1, packet, None)
}

pub(super) const REACHED: u8 = Packet::IN_REACH;

impl One {
    /// The calls on the wire, except returned credits.
    pub(super) fn acts(&mut self) -> Vec<Did> {
        let mut did = self.did();
        did.retain(|did| !matches!(did, Did::Told(..)));
        did
    }

    /// A receive that has met a message of rank 1, and the calls on the wire for
    /// it.
    pub(super) fn met(&mut self, into: MessageBytes, rts: Packet) -> (RequestId, Vec<Did>) {
        let post = self.post(Some(1), Some(7), into);
        self.comes(1, rts);
        self.acts();
        self.look(1);
        (post, self.acts())
    }

    /// Sends a message to rank 1 that is announced there.
    pub(super) fn told(&mut self, bytes: MessageBytes) -> RequestId {
        let sent = self.send(1, 7, bytes).pending().unwrap();
        assert_eq!(self.entry(sent).state, RequestState::Told);
        self.acts();
        sent
    }

    /// Lets rank 1 request the bytes.
    pub(super) fn asks(&mut self, sent: RequestId, len: u64, flags: u8) {
        let id = self.id(sent);
        self.comes(
            1,
            Packet { id, tag: 77, a: len, b: 0x5000, count: flags, ..Packet::new(PacketKind::Cts) },
        );
        self.look(1);
    }
}

#[test]
fn a_short_message_in_reach_is_copied_at_once() {
    for (len, is_job) in [(8192, false), (8193, true)] {
        let mut one = One::new(MatchingDesign::Mirror);
        let (post, did) = one.met(at(64, 10_000), rts(5, len, REACHED));
        let copy = Copy {
            peer: PeerIndex(1),
            from: 0x9000,
            to: 64,
            len,
            streaming: false,
            by_kernel: false,
        };
        if is_job {
            assert_eq!((did, one.entry(post).state), (vec![], RequestState::Fetching));
            let job = one.machine.poll_job().unwrap();
            assert_eq!((job.copy, job.split, job.request), (copy, None, post));
            assert_eq!(one.machine.poll_job(), None);
            one.done(job, Ok(()));
            assert_eq!(one.acts(), [pushed(fin(5, 0))]);
            one.done(job, Ok(()));
            assert_eq!(one.acts(), [], "the message has ended");
        } else {
            assert_eq!(did, [Did::Copied(copy), pushed(fin(5, 0))]);
        }
        assert_eq!(one.take(post), Some(Ok(received(1, 7, len, false))));
        assert_eq!(one.machine.under_way(), 0);
    }
}

/// Fetched bytes are never copied past the cache; pushed bytes are, from a size
/// on.
#[test]
fn only_pushed_bytes_are_copied_past_the_cache() {
    for (len, streaming) in [(19_999, false), (20_000, true)] {
        let mut one = One::new(MatchingDesign::TwoCopy);
        one.thresholds(1).nt_from = 20_000;
        one.met(at(64, 50_000), rts(5, 30_000, REACHED));
        assert!(!one.machine.poll_job().unwrap().copy.streaming);
        let sent = one.told(at(0, len));
        one.asks(sent, len, REACHED);
        assert_eq!(one.machine.poll_job().unwrap().copy.streaming, streaming);
    }
}

#[test]
fn an_empty_message_is_answered_and_not_copied() {
    for (room, len) in [(100, 0), (0, 9_000)] {
        let mut one = One::new(MatchingDesign::Mirror);
        one.thresholds(1).both_from = 0;
        one.wire.split_is_free = room == 0;
        let (post, did) = one.met(at(64, room), rts(5, len, REACHED));
        assert_eq!(did, [pushed(fin(5, 0))]);
        assert_eq!(one.take(post), Some(Ok(received(1, 7, len, len > 0))));
    }
}

/// The sender copies where it alone reaches the other buffer, or from a size on.
#[test]
fn the_sender_is_asked_to_copy() {
    let cases = [
        (true, REACHED, 5_000, 5_000, true),
        (true, REACHED, 4_999, 5_000, false),
        (false, REACHED, 5_000, 5_000, false),
        (true, 0, 300, u32::MAX, true),
        (false, 0, 300, u32::MAX, true),
    ];
    for (in_reach, flags, len, ask_from, asks) in cases {
        let mut one = One::new(MatchingDesign::TwoCopy);
        one.thresholds(1).ask_from = ask_from;
        let (post, did) = one.met(MessageBytes { in_reach, ..at(64, 10_000) }, rts(5, len, flags));
        let cts = Packet {
            id: 5,
            tag: one.id(post),
            a: len,
            b: 64,
            count: if in_reach { REACHED } else { 0 },
            ..Packet::new(PacketKind::Cts)
        };
        assert_eq!(did == [pushed(cts)], asks, "{did:?}");
        assert_eq!(one.entry(post).state == RequestState::Coming, asks);
        if asks && in_reach {
            let id = one.id(post);
            one.comes(1, copied(id, 0));
            one.look(1);
            assert_eq!(one.take(post), Some(Ok(received(1, 7, len, false))));
        }
    }
}

#[test]
fn the_kernel_fetches_messages_out_of_reach() {
    let kernel = Packet::BY_KERNEL;
    let cases = [
        (false, kernel, 5_000, false, true),
        (false, kernel, 4_999, false, false),
        (false, 0, 5_000, false, false),
        (true, kernel, 5_000, false, false),
        (false, kernel | REACHED, 5_000, false, false),
        (false, kernel, 5_000, true, false),
    ];
    for (in_reach, flags, len, far, by_kernel) in cases {
        let mut one = One::new(MatchingDesign::TwoCopy);
        one.thresholds(1).kernel_from = 5_000;
        if far {
            one.machine.set_remote(PeerIndex(1));
        }
        let (post, did) = one.met(MessageBytes { in_reach, ..at(64, 10_000) }, rts(5, len, flags));
        let job = one.machine.poll_job();
        assert_eq!(job.is_some_and(|job| job.copy.by_kernel), by_kernel, "{did:?}");
        assert_eq!(one.entry(post).by_kernel, by_kernel);
        let Some(job) = job else { continue };
        assert_eq!((job.copy.from, job.copy.to, job.copy.len), (0x9000, 64, len));
        one.done(job, Ok(()));
        assert_eq!(one.acts(), [pushed(fin(5, 0))]);
        assert_eq!(one.machine.counts().by_kernel, 1);
    }
}

#[test]
fn a_failed_fetch_by_kernel_or_network_asks_the_sender_to_copy() {
    for (flags, far) in [(Packet::BY_KERNEL, false), (REACHED, true), (REACHED, false)] {
        let mut one = One::new(MatchingDesign::TwoCopy);
        one.thresholds(1).kernel_from = 0;
        if far {
            one.machine.set_remote(PeerIndex(1));
        }
        let (post, did) = one.met(apart(64, 10_000), rts(5, 9_000, flags));
        assert_eq!(did, []);
        let job = one.machine.poll_job().unwrap();
        one.done(job, Err(failed(1)));
        assert_eq!(one.machine.counts().by_kernel, 0);
        if flags == REACHED && !far {
            assert_eq!(one.acts(), [pushed(fin(5, Packet::FAILED))]);
            assert_eq!(one.take(post), Some(Err(failed(1))));
            continue;
        }
        let cts =
            Packet { id: 5, tag: one.id(post), a: 9_000, b: 64, ..Packet::new(PacketKind::Cts) };
        assert_eq!(one.acts(), [pushed(cts)]);
        assert_eq!((one.entry(post).state, one.entry(post).error), (RequestState::Coming, None));
        assert!(!one.entry(post).by_kernel);
        // Any other failure ends the receive.
        let (post, _) = one.met(apart(64, 10_000), rts(6, 9_000, flags));
        let job = one.machine.poll_job().unwrap();
        one.done(job, Err(RequestError::Cancelled));
        assert_eq!(one.acts(), [pushed(fin(6, Packet::FAILED))]);
        assert_eq!(one.take(post), Some(Err(RequestError::Cancelled)));
    }
}

/// Short or long: bytes of another node are never copied within a call.
#[test]
fn bytes_of_another_node_are_fetched_by_a_job() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    one.machine.set_remote(PeerIndex(1));
    one.thresholds(1).ask_from = 0;
    let (post, did) = one.met(at(64, 10_000), rts(5, 100, REACHED));
    assert_eq!((did, one.entry(post).state), (vec![], RequestState::Fetching));
    let job = one.machine.poll_job().unwrap();
    assert_eq!((job.copy.peer, job.copy.len), (PeerIndex(1), 100));
    let mut one = One::new(MatchingDesign::TwoCopy);
    one.machine.set_remote(PeerIndex(2));
    assert!(
        !one.met(at(64, 10_000), rts(5, 100, REACHED)).1.is_empty(),
        "the limit is of another peer"
    );
}

/// A packet waits for a line, and packets go in order.
#[test]
fn packets_without_a_free_line_wait_in_order() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    one.wire.room[1] = 0;
    let (first, did) = one.met(at(64, 100), rts(5, 100, REACHED));
    assert!(matches!(did[..], [Did::Copied(_), Did::Asked(1)]), "{did:?}");
    let (second, _) = one.met(apart(64, 100), rts(6, 100, 0));
    assert_eq!(one.machine.take(first), None, "the sender has not learned of the end");
    assert!(!one.advance() && one.machine.wants_poll() && one.machine.under_way() == 2);
    one.acts();
    one.wire.room[1] = 1;
    assert!(one.advance());
    assert_eq!(one.pushed(), [PacketKind::Fin]);
    assert!(one.take(first).unwrap().is_ok());
    assert_eq!(one.entry(second).state, RequestState::Coming);
    one.wire.room[1] = 1;
    assert!(one.advance());
    assert_eq!(one.pushed(), [PacketKind::Cts]);
    assert!(!one.machine.wants_poll());
}

#[test]
fn the_end_of_an_old_job_is_ignored() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    let (post, _) = one.met(at(64, 10_000), rts(5, 9_000, REACHED));
    let job = one.machine.poll_job().unwrap();
    one.done(job, Ok(()));
    assert!(one.take(post).is_some());
    let (next, _) = one.met(at(64, 10_000), rts(6, 9_000, REACHED));
    assert_eq!(next.index, post.index);
    one.acts();
    one.done(job, Ok(()));
    one.machine.split_done(&mut one.wire, job.request, [true, false]);
    let none = CopyJob { request: RequestId { index: 9_999, generation: 0 }, ..job };
    one.done(none, Ok(()));
    one.machine.split_done(&mut one.wire, none.request, [true, false]);
    assert_eq!((one.acts(), one.entry(next).state), (vec![], RequestState::Fetching));
    // A receive that is only posted has no job.
    let posted = one.post(Some(2), None, at(64, 8));
    one.done(CopyJob { request: posted, ..job }, Ok(()));
    assert!(one.machine.is_under_way(posted));
}

/// A death at the last moment does not affect bytes that are here.
#[test]
fn a_message_that_is_here_when_its_sender_dies_is_received() {
    for is_here in [true, false] {
        let mut one = One::new(MatchingDesign::TwoCopy);
        let (post, _) = one.met(at(64, 10_000), rts(5, 9_000, REACHED));
        let job = one.machine.poll_job().unwrap();
        one.lose(1);
        one.done(job, if is_here { Ok(()) } else { Err(failed(1)) });
        let died = Err(RequestError::PeerLost { peer: PeerIndex(1) });
        let whole = Ok(received(1, 7, 9_000, false));
        assert_eq!(one.take(post), Some(if is_here { whole } else { died }));
        assert_eq!((one.acts(), one.machine.under_way()), (vec![], 0));
    }
    // A send that is being copied to the dead rank.
    let mut one = One::new(MatchingDesign::TwoCopy);
    let sent = one.told(at(0, 9_000));
    one.asks(sent, 9_000, REACHED);
    one.thresholds(1).chunk = 60_000;
    let job = one.machine.poll_job().unwrap();
    one.lose(1);
    one.done(job, Ok(()));
    assert_eq!(one.take(sent), Some(Err(RequestError::PeerLost { peer: PeerIndex(1) })));
    // A message of a sender that died before its receive came.
    one.comes(2, rts(5, 9_000, REACHED));
    one.look(2);
    one.lose(2);
    let late = one.post(Some(2), None, at(64, 10_000));
    assert_eq!(one.take(late), Some(Err(RequestError::PeerLost { peer: PeerIndex(2) })));
}

/// The values of the announcement are kept for a message that arrived before its receive.
#[test]
fn an_early_message_keeps_the_values_of_its_packet() {
    for (in_reach, flags, by_kernel) in
        [(false, Packet::BY_KERNEL, true), (false, REACHED, false), (true, REACHED, false)]
    {
        let mut one = One::new(MatchingDesign::TwoCopy);
        one.thresholds(1).kernel_from = 0;
        one.comes(1, Packet { context: 3, ..rts(5, 9_000, flags) });
        one.look(1);
        let pattern = Pattern { context: 3, source: None, tag: None };
        let into = MessageBytes { in_reach, ..at(64, 10_000) };
        let post = one.machine.receive(&mut one.wire, pattern, into).unwrap().pending().unwrap();
        let job = one.machine.poll_job().unwrap();
        let streaming = false;
        let copy =
            Copy { peer: PeerIndex(1), from: 0x9000, to: 64, len: 9_000, streaming, by_kernel };
        assert_eq!(job.copy, copy);
        one.acts();
        one.done(job, Ok(()));
        assert_eq!(one.acts(), [pushed(fin(5, 0))]);
        assert_eq!(one.machine.counts().by_kernel, u64::from(by_kernel));
        assert_eq!(one.take(post), Some(Ok(received(1, 7, 9_000, false))));
    }
}
