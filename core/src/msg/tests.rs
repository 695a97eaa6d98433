//! Traces of two ranks over lanes in memory, step by step.

extern crate std;

mod arrivals;
mod boards;
mod both;
mod claims;
mod edges;
mod grants;
mod memory;
mod moves;
mod offers;
mod parts;
mod receives;
mod rooms;
mod script;
mod seals;
mod sends;
mod surface;
mod ways;

use super::*;
use crate::completion::Why;
use crate::mem::{LocalRank, PeerIndex};
use core::ptr::NonNull;
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

/// Two ranks. Their memory is leaked, because nothing here is ever freed.
struct Pair {
    machines: [MessageMachine<'static>; 2],
    lanes: [NodeLanes<'static>; 2],
}

const SHAPE: MessageShape =
    MessageShape { peers: 2, lines: 16, slots: 4, slot_bytes: 256, quota: 4, mirror: 4 };
/// The shape of each rank.
const REQUESTS: usize = 160;
const LABEL: Label = Label { context: 0, tag: 7 };

impl Pair {
    fn new(design: MatchingDesign) -> Self {
        Self::with(design, SHAPE)
    }

    fn with(design: MatchingDesign, shape: MessageShape) -> Self {
        let memory = [0, 1].map(|_| {
            let lines = shape.memory_size() / size_of::<LaneLine>();
            let lines: Vec<LaneLine> = (0..lines).map(|_| LaneLine::new()).collect();
            NonNull::from(Box::leak(lines.into_boxed_slice())).cast::<u8>()
        });
        let machines = [0, 1].map(|rank| {
            let tables = MessageTables {
                peers: Vec::leak(vec![MessagePeer::EMPTY; 2]),
                requests: Vec::leak(vec![RequestEntry::EMPTY; REQUESTS]),
                unexpected: Vec::leak(vec![UnexpectedMessage::EMPTY; shape.unexpected()]),
                log: Vec::leak(vec![LoggedMessage::EMPTY; shape.log()]),
                mirror: Vec::leak(vec![MirroredOffer::EMPTY; shape.mirrored()]),
            };
            MessageMachine::new(LocalRank(rank), shape, design, Thresholds::DEFAULT, tables)
                .unwrap()
        });
        let lanes = [0, 1].map(|rank| {
            let ends = Box::leak(Box::new([LaneEnd::EMPTY, LaneEnd::EMPTY]));
            // SAFETY: zero lines that live for ever; buffers outlive the tests.
            unsafe {
                let mut lanes =
                    NodeLanes::new(LocalRank(rank), shape, memory[rank as usize], ends).unwrap();
                lanes.connect(PeerIndex(0), memory[0]);
                lanes.connect(PeerIndex(1), memory[1]);
                lanes
            }
        });
        Self { machines, lanes }
    }

    fn send(&mut self, from: usize, to: u32, label: Label, bytes: &[u8]) -> Begun<()> {
        let out = bytes_of(bytes);
        self.machines[from].send(&mut self.lanes[from], PeerIndex(to), label, out).unwrap()
    }

    /// Sends from the first rank to the second one.
    fn send_synchronous(&mut self, bytes: &[u8]) -> Begun<()> {
        let out = bytes_of(bytes);
        self.machines[0].send_synchronous(&mut self.lanes[0], PeerIndex(1), LABEL, out).unwrap()
    }

    fn receive(
        &mut self,
        by: usize,
        source: Option<u32>,
        tag: Option<u32>,
        into: &[u8],
    ) -> Begun<ReceivedMessage> {
        let pattern = Pattern { context: 0, source: source.map(PeerIndex), tag };
        self.machines[by].receive(&mut self.lanes[by], pattern, bytes_of(into)).unwrap()
    }

    /// Both ranks advance until nothing changes, and carry out all copies.
    fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 4 {
            let mut has_moved = false;
            for (machine, lanes) in self.machines.iter_mut().zip(&mut self.lanes) {
                has_moved |= machine.advance(lanes);
                while let Some(job) = machine.poll_job() {
                    lanes.copy(&job.copy);
                    machine.job_done(lanes, job.request, Ok(()));
                    has_moved = true;
                }
            }
            quiet = if has_moved { 0 } else { quiet + 1 };
        }
    }

    fn take(
        &mut self,
        by: usize,
        request: Option<RequestId>,
    ) -> Option<Result<ReceivedMessage, RequestError>> {
        self.machines[by].take(request.expect("the call is pending"))
    }
}

/// A buffer that lives for ever.
fn buffer(len: usize) -> &'static mut [u8] {
    Vec::leak(vec![0; len])
}

fn text(len: usize, salt: u8) -> &'static [u8] {
    Vec::leak((0..len).map(|at| (at as u8).wrapping_mul(31) ^ salt).collect())
}

fn bytes_of(bytes: &[u8]) -> MessageBytes {
    let at = bytes.as_ptr().expose_provenance() as u64;
    MessageBytes { at, len: bytes.len() as u64, in_reach: true }
}

fn received(source: u32, tag: u32, len: u64, truncated: bool) -> ReceivedMessage {
    ReceivedMessage { source: PeerIndex(source), tag, len, truncated }
}

#[test]
fn a_sender_that_waits_for_a_line_requests_room_each_time() {
    let mut pair =
        Pair::with(MatchingDesign::Mirror, MessageShape { lines: 16, slots: 32, ..SHAPE });
    let (out, into) = (text(100 * 256, 3), buffer(100 * 256));
    let apart = |bytes: &[u8]| MessageBytes { in_reach: false, ..bytes_of(bytes) };
    let pattern = Pattern { context: 0, source: Some(PeerIndex(0)), tag: None };
    let advance = |pair: &mut Pair, rank: usize| {
        while pair.machines[rank].advance(&mut pair.lanes[rank]) {}
    };
    pair.machines[1].receive(&mut pair.lanes[1], pattern, apart(into)).unwrap();
    let sent = pair.machines[0].send(&mut pair.lanes[0], PeerIndex(1), LABEL, apart(out)).unwrap();
    let Begun::Pending(sent) = sent else { panic!("the message is too long to end in the call") };
    advance(&mut pair, 1);
    let mut asked = 0;
    loop {
        advance(&mut pair, 0);
        if pair.machines[0].has_ended(sent) {
            break;
        }
        assert!(
            pair.lanes[1].is_starved(PeerIndex(0)),
            "the sender waits, and requested room {asked} times before"
        );
        asked += 1;
        advance(&mut pair, 1);
    }
    advance(&mut pair, 1);
    assert!(asked > 2 && into == out);
}

#[test]
fn a_message_of_any_size_arrives_whole_early_or_late() {
    for design in [MatchingDesign::TwoCopy, MatchingDesign::Mirror] {
        let mut pair = Pair::new(design);
        for len in [0, 1, 8, 31, 32, 33, 88, 89, 300, 600, 5_000, 9_000, 200_000] {
            for is_posted in [true, false] {
                let (out, into) = (text(len, 5), buffer(len));
                let post = is_posted.then(|| pair.receive(1, Some(0), Some(7), into));
                pair.settle();
                let sent = pair.send(0, 1, LABEL, out).pending();
                pair.settle();
                let begun = post.unwrap_or_else(|| pair.receive(1, Some(0), Some(7), into));
                pair.settle();
                let got = begun.done().map_or_else(|| pair.take(1, begun.pending()).unwrap(), Ok);
                assert_eq!(got, Ok(received(0, 7, len as u64, false)), "{design:?}");
                assert!(sent.is_none() || pair.take(0, sent).is_some(), "the send has ended");
                assert!(into == out, "{len} bytes, {design:?}, posted first: {is_posted}");
            }
        }
        let direct: u64 = pair.machines[0].counts().messages(MessagePath::Direct).iter().sum();
        assert_eq!(direct > 0, design == MatchingDesign::Mirror);
    }
}

#[test]
fn a_synchronous_send_ends_when_its_message_has_met_its_receive() {
    for design in [MatchingDesign::TwoCopy, MatchingDesign::Mirror] {
        let mut pair = Pair::new(design);
        for len in [0, 1, 8, 33, 300, 600, 5_000, 200_000] {
            for is_posted in [true, false] {
                let (out, into) = (text(len, 5), buffer(len));
                let post = is_posted.then(|| pair.receive(1, Some(0), Some(7), into));
                pair.settle();
                let sent = pair.send_synchronous(out).pending();
                pair.settle();
                let ends = |pair: &mut Pair| sent.is_none() || pair.take(0, sent).is_some();
                assert_eq!(ends(&mut pair), is_posted, "{len} bytes, {design:?}");
                let begun = post.unwrap_or_else(|| pair.receive(1, Some(0), Some(7), into));
                pair.settle();
                let got = begun.done().map_or_else(|| pair.take(1, begun.pending()).unwrap(), Ok);
                assert_eq!(got, Ok(received(0, 7, len as u64, false)), "{design:?}");
                assert!(is_posted || ends(&mut pair), "{len} bytes, {design:?}: the send ends");
                assert!(into == out, "{len} bytes, {design:?}, posted first: {is_posted}");
            }
        }
    }
    let waits =
        || Pair::new(MatchingDesign::Mirror).send_synchronous(text(300, 1)).done().is_none();
    assert!(waits());
    #[cfg(debug_assertions)]
    assert!(!crate::sync::with_mutant("msg_synchronous_eager", waits));
}

#[test]
fn a_message_longer_than_its_buffer_is_truncated() {
    for len in [20, 300, 5_000, 50_000] {
        let mut pair = Pair::new(MatchingDesign::Mirror);
        let (out, into) = (text(len, 1), buffer(len));
        let post = pair.receive(1, None, None, &into[..9]).pending();
        let sent = pair.send(0, 1, LABEL, out).pending();
        pair.settle();
        assert_eq!(pair.take(1, post), Some(Ok(received(0, 7, len as u64, true))));
        assert!(sent.is_none() || pair.take(0, sent).unwrap().is_ok(), "the sender cannot know");
        assert_eq!(into[..9], out[..9]);
        assert!(into[9..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_probed_message_is_the_next_that_is_received() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let pattern = Pattern { context: 0, source: None, tag: Some(7) };
    assert_eq!(pair.machines[1].probe(&pattern), None);
    pair.send(0, 1, LABEL, text(600, 2));
    pair.send(0, 1, LABEL, text(3, 3));
    pair.settle();
    assert_eq!(pair.machines[1].probe(&pattern), Some(received(0, 7, 600, false)));
    let into = buffer(600);
    let first = pair.receive(1, Some(0), None, into);
    assert_eq!(
        first.done(),
        Some(received(0, 7, 600, false)),
        "a probed message stays until it is received"
    );
    assert!(into == text(600, 2));
    assert_eq!(pair.machines[1].probe(&pattern), Some(received(0, 7, 3, false)));
}

#[test]
fn unmatched_messages_wait_at_their_sender_and_none_is_lost() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let waiting: Vec<_> =
        (0..30).filter_map(|_| pair.send(0, 1, LABEL, text(8, 4)).pending()).collect();
    pair.settle();
    assert_eq!(waiting.len(), 30 - SHAPE.quota as usize);
    // The last message has a tag that a receive waits for: it comes.
    let last = pair.send(0, 1, Label { tag: 8, ..LABEL }, text(8, 4)).pending();
    let post = pair.receive(1, None, Some(8), buffer(8)).pending();
    for _ in 0..20 {
        pair.settle();
    }
    let passed = pair.take(1, post).is_some();
    assert!(!passed, "30 unmatched are more than all grants");
    for _ in 0..30 {
        let got = pair.receive(1, Some(0), Some(7), buffer(8));
        pair.settle();
        assert!(got.done().is_some() || pair.take(1, got.pending()).unwrap().is_ok());
    }
    pair.settle();
    assert!(pair.take(1, post).unwrap().is_ok() && pair.take(0, last).unwrap().is_ok());
    assert!(waiting.into_iter().all(|request| pair.take(0, Some(request)).is_some()));
}

#[test]
fn a_waiting_receive_grants_its_sender_more() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    for _ in 0..12 {
        pair.send(0, 1, LABEL, text(8, 4));
    }
    pair.send(0, 1, Label { tag: 8, ..LABEL }, text(8, 4));
    pair.settle();
    let post = pair.receive(1, None, Some(8), buffer(8)).pending();
    pair.settle();
    assert!(pair.take(1, post).is_some());
}

#[test]
fn a_lone_offer_waits_for_a_packet() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let (out, into) = (text(1000, 4), buffer(1000));
    let post = pair.receive(1, Some(0), Some(7), into).pending();
    pair.settle();
    assert_eq!(pair.machines[1].counts().offered, 0);
    assert!(!pair.machines[1].wants_poll());
    // The offer goes in a packet that is sent anyway.
    pair.send(1, 0, LABEL, text(1000, 5));
    assert_eq!(pair.machines[1].counts().offered, 1);
    // A message sent at the same time goes as if there had been no offer.
    pair.send(0, 1, LABEL, out);
    pair.settle();
    assert!(pair.take(1, post).unwrap().is_ok());
    assert_eq!(into, out);
    // Two offers are in time only if both go alone; so does an offer that pays.
    for (rooms, offered) in [(&[1000, 1000][..], 2), (&[4000], 1)] {
        let mut pair = Pair::new(MatchingDesign::Mirror);
        for room in rooms {
            pair.receive(1, Some(0), Some(7), buffer(*room));
        }
        pair.settle();
        assert_eq!(pair.machines[1].counts().offered, offered);
    }
}

#[test]
fn a_lone_offer_goes_when_its_source_has_no_room() {
    let comes = || {
        let mut pair = Pair::new(MatchingDesign::Mirror);
        let post = pair.receive(1, Some(0), Some(8), buffer(1000)).pending();
        for _ in 0..30 {
            pair.send(0, 1, LABEL, text(8, 4));
        }
        pair.send(0, 1, Label { tag: 8, ..LABEL }, text(8, 4));
        pair.settle();
        pair.take(1, post).is_some()
    };
    assert!(comes());
    #[cfg(debug_assertions)]
    assert!(!crate::sync::with_mutant("msg_offer_kept", comes));
}

#[test]
fn a_cancelled_receive_gets_nothing_or_its_message() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let into = buffer(4000);
    let post = pair.receive(1, Some(0), Some(7), into).pending().unwrap();
    pair.settle();
    let (machine, lanes) = (&mut pair.machines[1], &mut pair.lanes[1]);
    assert_eq!(machine.cancel(lanes, post), Cancel::Asked);
    // The sender does not have the offer yet.
    assert_eq!(pair.send(0, 1, LABEL, text(4000, 6)), Begun::Done(()));
    pair.settle();
    assert_eq!(pair.take(1, Some(post)), Some(Ok(received(0, 7, 4000, false))));
    assert!(into == text(4000, 6));
    let post = pair.receive(1, Some(0), Some(7), into).pending().unwrap();
    pair.settle();
    pair.machines[1].cancel(&mut pair.lanes[1], post);
    pair.settle();
    assert_eq!(pair.take(1, Some(post)), Some(Err(RequestError::Cancelled)));
    let (machine, lanes) = (&mut pair.machines[1], &mut pair.lanes[1]);
    assert_eq!(machine.cancel(lanes, post), Cancel::TooLate);
}

#[test]
fn a_death_ends_the_requests_that_wait_for_the_rank() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    pair.send(0, 1, LABEL, text(500, 7));
    let far = text(100_000, 7);
    let told = pair.send(0, 1, LABEL, far).pending();
    let exact = pair.receive(0, Some(1), None, buffer(8)).pending();
    let any = pair.receive(0, None, None, buffer(8)).pending();
    let (machine, lanes) = (&mut pair.machines[0], &mut pair.lanes[0]);
    machine.lost(lanes, PeerIndex(1));
    let died = Err(RequestError::PeerLost { peer: PeerIndex(1) });
    assert_eq!((pair.take(0, told), pair.take(0, exact)), (Some(died), Some(died)));
    assert_eq!(pair.take(0, any), None, "another rank may send");
    let (machine, lanes) = (&mut pair.machines[0], &mut pair.lanes[0]);
    let refused = machine.send(lanes, PeerIndex(1), LABEL, bytes_of(far));
    assert_eq!(refused, Err(CallError::PeerLost { peer: PeerIndex(1) }));
    // On the other side, messages sent before the death are still received.
    let (machine, lanes) = (&mut pair.machines[1], &mut pair.lanes[1]);
    machine.lost(lanes, PeerIndex(0));
    let (whole, late) = (buffer(500), buffer(100_000));
    assert!(pair.receive(1, Some(0), None, whole).done().is_some());
    assert!(whole == text(500, 7));
    let late = pair.receive(1, Some(0), None, late).pending();
    assert_eq!(pair.take(1, late), Some(Err(RequestError::PeerLost { peer: PeerIndex(0) })));
}

#[test]
fn malformed_packets_are_dropped() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let post = pair.receive(1, Some(0), None, buffer(200)).pending();
    pair.settle();
    let kinds = [
        PacketKind::Direct,
        PacketKind::Copied,
        PacketKind::Fin,
        PacketKind::Cts,
        PacketKind::Data,
        PacketKind::CancelAck,
    ];
    for kind in kinds {
        for id in [1, 77, u32::MAX] {
            let packet = Packet { id, a: u64::MAX, b: u64::MAX, ..Packet::new(kind) };
            pair.lanes[0].push(PeerIndex(1), &packet, PacketLoad::Empty);
            pair.settle();
        }
    }
    assert!(pair.machines[1].counts().dropped >= 15);
    assert_eq!(pair.take(1, post), None, "no packet was for this receive");
}

#[test]
fn calls_with_bad_arguments_are_refused() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let (machine, lanes) = (&mut pair.machines[0], &mut pair.lanes[0]);
    let none = Err(CallError::NoSuchPeer { peer: PeerIndex(2), peers: 2 });
    assert_eq!(machine.send(lanes, PeerIndex(2), LABEL, bytes_of(&[])), none);
    let pattern = Pattern { context: 0, source: Some(PeerIndex(1)), tag: None };
    for _ in 0..REQUESTS {
        machine.receive(lanes, pattern, bytes_of(&[])).unwrap();
    }
    let full = machine.receive(lanes, pattern, bytes_of(&[]));
    assert_eq!(full, Err(CallError::Busy(Why::NoTag)));
}

#[test]
fn the_name_of_a_cancelled_receive_is_not_reused_before_the_answer() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let first = pair.receive(1, Some(0), Some(7), buffer(3000)).pending().unwrap();
    pair.settle();
    assert_eq!(pair.send(0, 1, LABEL, text(3000, 1)), Begun::Done(()));
    // The cancel and the message cross.
    assert_eq!(pair.machines[1].cancel(&mut pair.lanes[1], first), Cancel::Asked);
    pair.machines[1].advance(&mut pair.lanes[1]);
    assert_eq!(pair.take(1, Some(first)), Some(Ok(received(0, 7, 3000, false))));
    // As many other requests as it takes until a name is used again.
    for _ in 1..1 << 12 {
        let other = pair.receive(1, None, Some(9), buffer(0)).pending();
        let other_request = other.expect("nothing was sent");
        assert_eq!(pair.machines[1].cancel(&mut pair.lanes[1], other_request), Cancel::Done);
        assert_eq!(pair.take(1, other), Some(Err(RequestError::Cancelled)));
    }
    let second = pair.receive(1, Some(0), Some(7), buffer(3000)).pending();
    pair.machines[1].advance(&mut pair.lanes[1]);
    pair.machines[0].advance(&mut pair.lanes[0]);
    assert_eq!(pair.send(0, 1, LABEL, text(3000, 2)), Begun::Done(()));
    let second_request = second.expect("nothing was sent");
    assert_eq!(pair.machines[1].cancel(&mut pair.lanes[1], second_request), Cancel::Asked);
    pair.settle();
    assert_eq!(pair.take(1, second), Some(Ok(received(0, 7, 3000, false))));
    assert_eq!(pair.machines[1].counts().dropped, 0);
}
