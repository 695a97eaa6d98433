//! Messages that both sides copy: the conditions, and how each side ends.

use super::moves::{REACHED, copied, fin, pushed, rts};
use super::script::{Did, One, apart, at};
use super::sends::{copy, direct};
use super::*;
use crate::msg::tables::{RequestState, SplitProgress};

#[test]
fn both_sides_copy_a_message_that_was_found() {
    let mut one = One::new(MatchingDesign::Mirror);
    one.thresholds(1).both_from = 5_000;
    let opened = |id: u32| Did::Opened(1, SplitSide::Receiver, id);
    // Too short, out of reach on either side, on another node, or the word is used by another
    // message.
    let short = one.met(at(64, 10_000), rts(1, 4_999, REACHED)).1;
    assert!(!short.iter().any(|did| matches!(did, Did::Opened(..))), "{short:?}");
    for (into, flags) in [(at(64, 10_000), 0), (apart(64, 10_000), REACHED)] {
        let did = one.met(into, rts(1, 5_000, flags)).1;
        assert!(!did.iter().any(|did| matches!(did, Did::Opened(..))), "{did:?}");
    }
    let (post, did) = one.met(at(64, 10_000), rts(1, 5_000, REACHED));
    assert_eq!((did[0].clone(), one.entry(post).both), (opened(one.id(post)), SplitProgress::No));
    one.wire.split_is_free = true;
    one.wire.room[1] = 16;
    let (post, did) = one.met(at(64, 10_000), rts(9, 5_000, REACHED));
    let id = one.id(post);
    let count = REACHED | Packet::SPLIT;
    let cts = Packet { id: 9, tag: id, a: 5_000, b: 64, count, ..Packet::new(PacketKind::Cts) };
    assert_eq!(did, [opened(id), pushed(cts)]);
    assert_eq!(one.entry(post).state, RequestState::Helping);
    let job = one.machine.poll_job().unwrap();
    assert_eq!(
        (job.split, job.copy.len, job.copy.streaming),
        (Some((id, SplitSide::Receiver)), 5_000, false)
    );
    assert_eq!((job.copy.from, job.copy.to), (0x9000, 64));
    one.machine.set_remote(PeerIndex(1));
    let did = one.met(at(64, 10_000), rts(1, 5_000, REACHED)).1;
    assert_eq!(did, []);
}

/// How the receiver's side ends: by the parts that each side has claimed, and
/// whether the sender has reported the end of its part.
#[test]
fn a_receiver_ends_when_both_parts_are_there() {
    for (own, other, heard) in [
        (true, true, true),
        (true, true, false),
        (true, false, false),
        (false, true, true),
        (false, true, false),
    ] {
        let mut one = One::new(MatchingDesign::Mirror);
        one.thresholds(1).both_from = 5_000;
        one.wire.split_is_free = true;
        let (post, _) = one.met(at(64, 10_000), rts(9, 5_000, REACHED));
        let (id, job) = (one.id(post), one.machine.poll_job().unwrap());
        if heard {
            one.comes(1, copied(id, 0));
            one.look(1);
            one.comes(1, copied(id, 0));
            one.look(1);
            assert_eq!(one.machine.counts().dropped, 1, "the report counts once");
        }
        one.acts();
        one.machine.split_done(&mut one.wire, job.request, [own, other]);
        let fins = if own { vec![pushed(fin(9, 0))] } else { vec![] };
        if other && !heard {
            assert_eq!((one.acts(), one.entry(post).state), (vec![], RequestState::Coming));
            assert_eq!(one.take(post), None);
            one.comes(1, copied(id, 0));
            one.look(1);
        }
        assert_eq!(one.acts(), fins);
        assert_eq!(one.take(post), Some(Ok(received(1, 7, 5_000, false))));
        one.machine.split_done(&mut one.wire, job.request, [own, other]);
        assert_eq!(one.acts(), [], "the receive has ended");
    }
}

/// How the sender's side ends.
#[test]
fn a_sender_ends_when_its_buffer_is_read() {
    for (own, other, heard) in [
        (true, true, true),
        (true, true, false),
        (true, false, false),
        (false, true, true),
        (false, true, false),
    ] {
        let mut one = One::new(MatchingDesign::TwoCopy);
        let sent = one.told(at(0x100, 50_000));
        one.asks(sent, 40_000, REACHED | Packet::SPLIT);
        let id = one.id(sent);
        let job = one.machine.poll_job().unwrap();
        assert_eq!((job.split, job.copy.len), (Some((77, SplitSide::Sender)), 40_000));
        assert_eq!((job.copy.from, job.copy.to, job.copy.streaming), (0x100, 0x5000, false));
        one.acts();
        if heard {
            for dropped in [0, 1] {
                one.comes(1, fin(id, 0));
                one.look(1);
                assert_eq!(one.machine.counts().dropped, dropped, "the report counts once");
            }
        }
        one.machine.split_done(&mut one.wire, job.request, [own, other]);
        let said = if own && !heard { vec![pushed(copied(77, 0))] } else { vec![] };
        assert_eq!(one.acts(), said, "{own} {other} {heard}");
        if other && !heard {
            assert_eq!((one.take(sent), one.entry(sent).state), (None, RequestState::Told));
            one.comes(1, fin(id, 0));
            one.look(1);
        }
        assert!(one.take(sent).unwrap().is_ok(), "{own} {other} {heard}");
    }
}

#[test]
fn no_part_of_a_dead_rank_is_awaited() {
    let died = Some(Err(RequestError::PeerLost { peer: PeerIndex(1) }));
    for claimed in [[true, true], [false, true]] {
        let mut one = One::new(MatchingDesign::Mirror);
        one.thresholds(1).both_from = 5_000;
        one.wire.split_is_free = true;
        let (post, _) = one.met(at(64, 10_000), rts(9, 5_000, REACHED));
        let job = one.machine.poll_job().unwrap();
        let sent = one.told(at(0x100, 50_000));
        one.asks(sent, 40_000, REACHED | Packet::SPLIT);
        let own = one.machine.poll_job().unwrap();
        one.lose(1);
        one.machine.split_done(&mut one.wire, job.request, claimed);
        one.machine.split_done(&mut one.wire, own.request, claimed);
        assert_eq!((one.take(post), one.take(sent)), (died, died));
    }
}

/// Both sides copy a message with a known receive, if the word of the lane is
/// free.
#[test]
fn a_message_for_a_known_receive_is_split() {
    let opened = Did::Opened(1, SplitSide::Sender, 9);
    let sends = |bytes: MessageBytes, room: u64, from: u32, is_free: bool| {
        let mut one = One::new(MatchingDesign::Mirror);
        one.thresholds(1).both_from = from;
        one.wire.split_is_free = is_free;
        one.is_offered(1, 9, 7, at(0x5000, room));
        let sent = one.send(1, 7, bytes).pending();
        (one, sent)
    };
    for (bytes, room) in
        [(at(0x100, 4_999), 9_000), (at(0x100, 9_000), 4_999), (apart(0x100, 9_000), 9_000)]
    {
        let did = sends(bytes, room, 5_000, true).0.did();
        assert!(!did.contains(&opened), "{did:?}");
    }
    let mut one = One::new(MatchingDesign::Mirror);
    (one.thresholds(1).inline_max, one.thresholds(1).both_from) = (0, 0);
    one.is_offered(1, 9, 7, at(0x5000, 100));
    one.send(1, 7, at(0x100, 1));
    assert_eq!(one.did()[0], opened, "a message of the smallest split length");
    let did = sends(at(0x100, 9_000), 0, 0, true).0.did();
    assert!(!did.contains(&opened), "the receive has no room");
    let did = sends(at(0x100, 5_000), 5_000, 5_000, false).0.did();
    let whole = Did::Copied(copy(0x100, 0x5000, 5_000, false));
    assert_eq!(did, [opened.clone(), whole, pushed(direct(9, 5_000, Packet::DONE))]);
    for (len, room) in [(5_000, 5_000), (6_000, 5_500), (200_000, 150_000)] {
        let (mut one, sent) = sends(at(0x100, len), room, 5_000, true);
        let sent = sent.unwrap();
        let place =
            Offer { id: one.id(sent), taken: 0, context: 0, tag: None, at: Some(0x100), room: len };
        let packet = direct(9, len, Packet::SPLIT);
        assert_eq!(one.did(), [opened.clone(), Did::Pushed(1, packet, Some(place))]);
        assert_eq!(
            (one.entry(sent).state, one.entry(sent).both),
            (RequestState::Pushing, SplitProgress::Copying)
        );
        let job = one.machine.poll_job().unwrap();
        assert_eq!(
            (job.split, job.copy),
            (Some((9, SplitSide::Sender)), copy(0x100, 0x5000, len.min(room), false))
        );
        let messages = one.machine.counts().messages(MessagePath::Direct).iter().sum::<u64>();
        assert_eq!(messages, 1);
    }
}

/// The receiver of such a message.
#[test]
fn the_receiver_of_a_split_message_fetches_its_parts() {
    let mut one = One::new(MatchingDesign::Mirror);
    let post = one.post(Some(1), Some(7), at(0x700, 9_000));
    one.advance();
    let id = one.id(post);
    let place = Offer { id: 55, taken: 0, context: 0, tag: None, at: Some(0x9000), room: 8_000 };
    one.wire.came[1].push_back((direct(id, 8_000, Packet::SPLIT), Some(place)));
    one.did();
    one.look(1);
    assert_eq!(
        (one.entry(post).state, one.entry(post).both),
        (RequestState::Helping, SplitProgress::Copying)
    );
    let job = one.machine.poll_job().unwrap();
    assert_eq!(
        (job.split, job.copy.from, job.copy.to),
        (Some((id, SplitSide::Receiver)), 0x9000, 0x700)
    );
    assert_eq!((job.copy.len, job.copy.peer), (8_000, PeerIndex(1)));
    one.did();
    one.machine.split_done(&mut one.wire, job.request, [true, false]);
    assert_eq!(one.did(), [pushed(Packet { id: 55, ..Packet::new(PacketKind::Fin) })]);
    assert_eq!(one.take(post), Some(Ok(received(1, 7, 8_000, false))));
}
