//! Bytes that come piece by piece: reported parts of the sender's copy, and
//! slots.

use super::moves::{REACHED, copied, failed, fin, pushed, rts};
use super::script::{Did, One, apart, at};
use super::*;
use crate::msg::tables::RequestState;

#[test]
fn parts_are_copied_one_by_one() {
    let parts = |len: u64, set: fn(&mut Thresholds)| -> Vec<u64> {
        let mut one = One::new(MatchingDesign::TwoCopy);
        set(one.thresholds(1));
        let sent = one.told(at(0x100, 50_000));
        one.asks(sent, len, REACHED);
        let (mut lens, mut moved) = (Vec::new(), 0);
        while let Some(job) = one.machine.poll_job() {
            assert_eq!((job.copy.from, job.copy.to), (0x100 + moved, 0x5000 + moved));
            assert_eq!((job.copy.peer, job.request, job.split), (PeerIndex(1), sent, None));
            moved += job.copy.len;
            lens.push(job.copy.len);
            assert_eq!(one.acts(), [], "no part is reported before it is copied");
            one.wire.room[1] = 16;
            one.done(job, Ok(()));
            let part = Packet { id: 77, a: moved, ..Packet::new(PacketKind::Part) };
            let said = if moved < len { part } else { copied(77, 0) };
            assert_eq!(one.acts(), [pushed(said)]);
        }
        assert_eq!(moved, len);
        assert!(one.take(sent).unwrap().is_ok());
        lens
    };
    let eighths = |thresholds: &mut Thresholds| thresholds.chunk = 1_000;
    assert_eq!(parts(10_400, eighths), [1_300; 8]);
    assert_eq!(parts(10_401, eighths)[..7], [1_300; 7]);
    let streamed = |thresholds: &mut Thresholds| {
        (thresholds.nt_from, thresholds.part) = (9_000, 4_000);
    };
    assert_eq!(parts(9_500, streamed), [4_000, 5_500], "no short part at the end");
    assert_eq!(parts(16_000, streamed), [4_000; 4]);
    assert_eq!(parts(15_999, streamed), [4_000, 4_000, 7_999]);
}

#[test]
fn a_failed_part_ends_the_send_and_is_reported() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    one.thresholds(1).chunk = 1_000;
    let sent = one.told(at(0, 50_000));
    one.asks(sent, 50_000, REACHED);
    let job = one.machine.poll_job().unwrap();
    one.done(job, Err(failed(1)));
    assert_eq!(one.acts(), [pushed(copied(77, Packet::FAILED))]);
    assert_eq!(one.machine.poll_job(), None);
    assert_eq!(one.take(sent), Some(Err(failed(1))));
    // A receiver that gets the report.
    let (post, _) = one.met(at(64, 10_000), rts(5, 9_000, 0));
    let id = one.id(post);
    one.comes(1, copied(id, Packet::FAILED));
    one.look(1);
    assert_eq!(one.take(post), Some(Err(failed(1))));
    // A sender.
    let sent = one.told(at(0, 50_000));
    let id = one.id(sent);
    one.comes(1, fin(id, Packet::FAILED));
    one.look(1);
    assert_eq!(one.take(sent), Some(Err(failed(1))));
    assert_eq!(one.machine.counts().dropped, 0);
}

#[test]
fn a_part_is_reported_only_beyond_the_reserve() {
    for (room, tells) in [(4, false), (5, true)] {
        let mut one = One::new(MatchingDesign::TwoCopy);
        one.thresholds(1).chunk = 1_000;
        let sent = one.told(at(0, 50_000));
        one.asks(sent, 50_000, REACHED);
        one.wire.room[1] = room;
        let job = one.machine.poll_job().unwrap();
        one.done(job, Ok(()));
        assert_eq!(one.pushed().len(), usize::from(tells), "{room} lines");
        assert!(one.machine.poll_job().is_some());
    }
}

#[test]
fn no_more_bytes_are_pushed_than_requested_or_sent() {
    for (asked, len) in [(9_000, 9_000), (60_000, 50_000)] {
        let mut one = One::new(MatchingDesign::TwoCopy);
        one.thresholds(1).chunk = 60_000;
        let sent = one.told(at(0, 50_000));
        one.asks(sent, asked, REACHED);
        assert_eq!(one.machine.poll_job().unwrap().copy.len, len);
    }
    // A short rest is copied at once.
    let mut one = One::new(MatchingDesign::TwoCopy);
    let sent = one.told(at(0x100, 50_000));
    one.asks(sent, 200, REACHED);
    let to = 0x5000;
    let (peer, streaming, by_kernel) = (PeerIndex(1), false, false);
    let copy = Copy { peer, from: 0x100, to, len: 200, streaming, by_kernel };
    assert_eq!(one.acts(), [Did::Copied(copy), pushed(copied(77, 0))]);
    assert!(one.take(sent).unwrap().is_ok());
}

/// Reports of arrived bytes are accepted in order and once.
#[test]
fn a_report_of_arrived_bytes_is_passed_as_a_hint() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    let (post, _) = one.met(at(64, 10_000), rts(5, 9_000, 0));
    let id = one.id(post);
    for (bytes, did) in [
        (100, Some(Did::Hinted(64, 100))),
        (9_000, Some(Did::Hinted(164, 8_900))),
        (8_999, None),
        (9_001, None),
    ] {
        one.comes(1, Packet { id, a: bytes, ..Packet::new(PacketKind::Part) });
        one.look(1);
        assert_eq!(one.acts(), Vec::from_iter(did));
    }
    assert_eq!(one.machine.counts().dropped, 2);
    one.machine.set_remote(PeerIndex(1));
    one.comes(1, Packet { id, a: 9_000, ..Packet::new(PacketKind::Part) });
    one.look(1);
    assert_eq!((one.acts(), one.machine.counts().dropped), (vec![], 3));
}

#[test]
fn bytes_through_slots_wait_for_slots() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    let sent = one.told(apart(0x100, 1_300));
    one.asks(sent, 1_290, 0);
    assert_eq!(one.machine.counts().through_slots, 1);
    assert!(one.machine.wants_poll());
    assert!(one.advance());
    let data = |at: u64, len: u64, slots: u64| {
        pushed(Packet { id: 77, a: at, b: len | slots << 32, ..Packet::new(PacketKind::Data) })
    };
    let piece = |number: u64| {
        let slot = 1 << (number % 4);
        let moved = number * 256;
        let len = 256.min(1_290 - moved);
        [Did::Wrote(1, slot, 0x100 + moved, len), data(moved, len, slot.into())]
    };
    let mut four: Vec<Did> = (0..4).flat_map(piece).collect();
    four.push(Did::Asked(1));
    assert_eq!(one.acts(), four);
    assert!(!one.advance());
    assert_eq!(one.acts(), [], "the request was made");
    assert_eq!(one.entry(sent).state, RequestState::Streaming);
    // One slot comes back, then all others.
    one.wire.returned[1].slots = 0b0001;
    assert!(one.advance());
    let mut fifth = piece(4).to_vec();
    fifth.push(Did::Asked(1));
    assert_eq!(one.acts(), fifth);
    one.wire.returned[1].slots = 0b1110;
    assert!(one.advance());
    let last = [Did::Wrote(1, 0b0001, 0x100 + 1_280, 10), data(1_280, 10, 0b0001)];
    let did = one.acts();
    assert!(did == piece(5) || did == last, "{did:?}");
    assert!(one.take(sent).unwrap().is_ok());
    assert!(!one.machine.wants_poll() && one.machine.under_way() == 0);
}

#[test]
fn bytes_through_slots_wait_for_lines() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    let sent = one.told(apart(0x100, 1_000));
    one.asks(sent, 1_000, 0);
    one.wire.room[1] = 2;
    assert!(one.advance());
    let kinds = one.pushed();
    assert_eq!(kinds, [PacketKind::Data; 2]);
    assert!(!one.advance() && one.machine.wants_poll());
    one.wire.room[1] = 16;
    assert!(one.advance());
    assert_eq!(one.pushed(), [PacketKind::Data; 2]);
    assert!(one.take(sent).unwrap().is_ok());
}

#[test]
fn a_message_with_an_empty_receive_sends_nothing() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    let sent = one.told(apart(0x100, 1_000));
    one.asks(sent, 0, 0);
    assert!(one.advance());
    assert_eq!(one.pushed(), []);
    assert!(one.take(sent).unwrap().is_ok());
}

/// The slots are given back, whatever else the packet contains.
#[test]
fn slots_are_returned_with_any_data_packet() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    let (post, _) = one.met(apart(64, 10_000), rts(5, 600, 0));
    let id = one.id(post);
    let data = |a: u64, len: u64, slots: u64| Packet {
        id,
        a,
        b: len | slots << 32,
        ..Packet::new(PacketKind::Data)
    };
    one.comes(1, data(0, 400, 0b0011));
    one.look(1);
    let slots = |slots: u32| Returned { taken: 1, matched: 1, slots, lines: 0 };
    assert_eq!(one.did(), [Did::Read(1, 0b0011, 64, 400), Did::Told(1, slots(0b0011))]);
    one.comes(1, data(400, 300, 0b1_0000_0100));
    one.look(1);
    assert_eq!(one.did(), [Did::Told(1, slots(0b0111))], "the data are longer than the rest");
    one.comes(1, data(400, 600, 0b0100));
    one.look(1);
    assert_eq!(
        one.did(),
        [Did::Told(1, slots(0b0011))],
        "the data are longer than their slot and than the rest"
    );
    one.comes(1, data(400, 200, 0b0100));
    one.look(1);
    assert_eq!(one.did(), [Did::Read(1, 0b0100, 464, 200), Did::Told(1, slots(0b0111))]);
    assert_eq!(one.machine.counts().dropped, 2);
    assert_eq!(one.take(post), Some(Ok(received(1, 7, 600, false))));
    one.comes(1, data(0, 1, 0b1000));
    one.look(1);
    assert_eq!(one.did(), [Did::Told(1, slots(0b1111))], "no receive waits for the data");
    assert_eq!(one.machine.counts().dropped, 3);
}

/// Counts that were returned before the peer saw the request are used.
#[test]
fn a_request_for_slots_is_followed_by_another_look() {
    let mut one = One::new(MatchingDesign::TwoCopy);
    let sent = one.told(apart(0x100, 1_280));
    one.asks(sent, 1_280, 0);
    one.wire.on_asked = Some(Returned { slots: 0b0100, ..Returned::default() });
    assert!(one.advance());
    let did = one.acts();
    assert_eq!(did[8..10], [Did::Asked(1), Did::Wrote(1, 0b0100, 0x100 + 1_024, 256)]);
    assert!(one.take(sent).unwrap().is_ok());
}
