//! The room at a peer, the known receives of a peer, and the state of both after the peer's
//! death.

use super::*;

const FULL: Packet = Packet::new(PacketKind::Fin);

fn advance(pair: &mut Pair, rank: usize) -> bool {
    pair.machines[rank].advance(&mut pair.lanes[rank])
}

/// Fills the lane from one rank to the other with packets that are dropped.
fn fill(pair: &mut Pair, from: usize) {
    let to = PeerIndex(1 - from as u32);
    while pair.lanes[from].has_room(to, 1) {
        pair.lanes[from].push(to, &Packet { id: !0, ..FULL }, PacketLoad::Empty);
    }
}

fn dropped(pair: &Pair, rank: usize) -> u64 {
    pair.machines[rank].counts().dropped
}

fn offer(id: u32, tag: Option<u32>) -> Offer {
    Offer { id, taken: 0, context: 0, tag, at: None, room: 3_000 }
}

#[test]
fn slots_are_taken_from_the_lowest_and_returned_one_by_one() {
    let mut pair = Pair::new(MatchingDesign::TwoCopy);
    let take = |pair: &mut Pair, len, more| {
        pair.machines[0].take_slots(&mut pair.lanes[0], PeerIndex(1), len, more)
    };
    assert_eq!(take(&mut pair, 257, 3), None, "two of four slots, with three more in reserve");
    assert_eq!(take(&mut pair, 257, 2), Some(0b0011));
    assert_eq!(take(&mut pair, 1, 2), None);
    assert_eq!(take(&mut pair, 256, 1), Some(0b0100));
    assert_eq!((take(&mut pair, 257, 0), take(&mut pair, 1, 0)), (None, Some(0b1000)));
    assert_eq!(take(&mut pair, 1, 0), None);
    pair.lanes[1].give_back(PeerIndex(0), Returned { slots: 0b0110, ..Returned::default() });
    assert_eq!((take(&mut pair, 512, 0), take(&mut pair, 1, 0)), (Some(0b0110), None));
    pair.lanes[1].give_back(PeerIndex(0), Returned { slots: 0b1001, ..Returned::default() });
    assert_eq!(take(&mut pair, 1024, 0), Some(0b1111), "each slot was returned once");
}

#[test]
fn room_is_requested_once_until_there_is_an_answer() {
    let mut pair = Pair::new(MatchingDesign::TwoCopy);
    let has_lines = |pair: &mut Pair, lines| {
        pair.machines[0].has_lines(&mut pair.lanes[0], PeerIndex(1), lines)
    };
    assert!(has_lines(&mut pair, SHAPE.lines));
    assert!(!pair.lanes[1].is_starved(PeerIndex(0)), "there is room");
    fill(&mut pair, 0);
    assert!(!has_lines(&mut pair, 1) && pair.lanes[1].is_starved(PeerIndex(0)));
    // An answer with nothing new: there is no second request.
    assert!(pair.lanes[1].give_back(PeerIndex(0), Returned::default()));
    assert!(!has_lines(&mut pair, 1) && !pair.lanes[1].is_starved(PeerIndex(0)));
    // An answer that is not enough: there is a second request.
    for _ in 0..2 {
        pair.lanes[1].peek(PeerIndex(0)).unwrap();
        pair.lanes[1].pop(PeerIndex(0));
    }
    pair.lanes[1].give_back(PeerIndex(0), Returned::default());
    assert!(!has_lines(&mut pair, 3) && pair.lanes[1].is_starved(PeerIndex(0)));
    assert!(has_lines(&mut pair, 2));
}

#[test]
fn impossible_counts_of_a_peer_are_ignored() {
    let mut pair = Pair::new(MatchingDesign::TwoCopy);
    for _ in 0..3 {
        pair.send(0, 1, LABEL, text(8, 1));
    }
    let known = |pair: &mut Pair, taken, matched| {
        pair.lanes[1].give_back(PeerIndex(0), Returned { taken, matched, ..Returned::default() });
        pair.machines[0].has_learned = false;
        pair.machines[0].refresh(&mut pair.lanes[0], PeerIndex(1));
        let peer = &pair.machines[0].tables.peers[1];
        (peer.taken_there, peer.matched_there, pair.machines[0].has_learned)
    };
    assert_eq!(known(&mut pair, 0, 0), (0, 0, false));
    assert_eq!(known(&mut pair, 2, 1), (2, 1, true));
    assert_eq!(known(&mut pair, 2, 1), (2, 1, false), "the counts did not change");
    assert_eq!(known(&mut pair, 4, 1), (2, 1, false), "more messages than were sent");
    assert_eq!(known(&mut pair, 3, 4), (3, 1, true));
    assert_eq!(known(&mut pair, 2, 3), (3, 3, true), "fewer messages than before");
    assert_eq!(known(&mut pair, u32::MAX, 0), (3, 3, false));
}

#[test]
fn offers_are_met_in_any_order_by_their_own_messages() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    let orders = [[2, 0, 3, 1], [3, 2, 1, 0], [0, 1, 2, 3], [1, 3, 0, 2], [0, 3, 1, 2]];
    for order in orders {
        let posts: Vec<_> = (0..4)
            .map(|tag| {
                let into = buffer(3_000);
                (tag, pair.receive(1, Some(0), Some(tag), into).pending(), into)
            })
            .collect();
        pair.settle();
        for tag in order {
            let label = Label { tag, ..LABEL };
            assert_eq!(pair.send(0, 1, label, text(3_000, tag as u8)), Begun::Done(()));
        }
        pair.settle();
        for (tag, post, into) in posts {
            assert_eq!(pair.take(1, post), Some(Ok(received(0, tag, 3_000, false))));
            assert!(into == text(3_000, tag as u8), "{tag} of {order:?}");
        }
        assert_eq!(pair.machines[0].tables.peers[1].mirror_len, 0);
    }
    let direct: u64 = pair.machines[0].counts().messages(MessagePath::Direct).iter().sum();
    assert_eq!((direct, dropped(&pair, 0)), (20, 0));
}

#[test]
fn offers_beyond_the_mirror_or_without_one_are_dropped() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    for id in 0..6 {
        let post = Packet { count: Packet::OFFER, ..Packet::new(PacketKind::Post) };
        pair.lanes[1].push(PeerIndex(0), &post, PacketLoad::Offer(offer(id, Some(id))));
        advance(&mut pair, 0);
        let kept = pair.machines[0].tables.peers[1].mirror_len;
        assert_eq!((kept, dropped(&pair, 0)), ((id + 1).min(4), u64::from(id.saturating_sub(3))));
    }
    let mut without = Pair::new(MatchingDesign::TwoCopy);
    for times in 1..3 {
        without.machines[0].offered(1, offer(1, None));
        assert_eq!(without.machines[0].tables.peers[1].mirror_len, 0);
        assert_eq!(dropped(&without, 0), times);
    }
}

/// The message is in the lane already: the receiver matches them in the same way.
#[test]
fn an_offer_that_a_logged_message_meets_is_not_kept() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    for tag in [5, 6, 5] {
        pair.send(0, 1, Label { tag, ..LABEL }, text(8, 1));
    }
    let machine = &mut pair.machines[0];
    let kept = |machine: &MessageMachine<'_>| machine.tables.peers[1].mirror_len;
    machine.offered(1, offer(1, Some(6)));
    assert_eq!(kept(machine), 0);
    machine.offered(1, offer(2, Some(6)));
    assert_eq!(kept(machine), 1, "each message meets one offer");
    // Two messages were taken before the offer: the first is not for it.
    machine.offered(1, Offer { taken: 2, ..offer(3, Some(5)) });
    assert_eq!((kept(machine), machine.tables.peers[1].log_low), (1, 2));
    machine.offered(1, Offer { taken: 2, ..offer(4, None) });
    assert_eq!(kept(machine), 2);
    // A message that was never sent was not taken.
    machine.offered(1, Offer { taken: 4, ..offer(5, None) });
    assert_eq!((kept(machine), machine.tables.peers[1].log_low), (3, 2));
    machine.offered(1, Offer { taken: 3, ..offer(6, None) });
    assert_eq!((kept(machine), machine.tables.peers[1].log_low), (4, 3));
}

/// Answers go in the order of the cancels, as soon as there is room.
#[test]
fn answers_wait_for_room() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    for round in 0..3 {
        for id in 0..3 {
            pair.machines[0].offered(1, offer(10 * round + id, Some(id)));
        }
        fill(&mut pair, 0);
        let asked = [10 * round + 2, 99, 10 * round, 10 * round];
        for id in asked {
            let question = Packet { id, ..Packet::new(PacketKind::Cancel) };
            pair.lanes[1].push(PeerIndex(0), &question, PacketLoad::Empty);
        }
        advance(&mut pair, 0);
        let peer = &pair.machines[0].tables.peers[1];
        assert_eq!((peer.acks, peer.mirror_len), (4, 1));
        assert!(pair.machines[0].wants_poll(), "the answers are still to be sent");
        let before = dropped(&pair, 0);
        let more = Packet { id: 98, ..Packet::new(PacketKind::Cancel) };
        pair.lanes[1].push(PeerIndex(0), &more, PacketLoad::Empty);
        advance(&mut pair, 0);
        assert_eq!(dropped(&pair, 0), before + 1, "more answers than the mirror has offers");
        while pair.lanes[1].peek(PeerIndex(0)).is_some() {
            pair.lanes[1].pop(PeerIndex(0));
        }
        pair.lanes[1].give_back(PeerIndex(0), Returned::default());
        advance(&mut pair, 0);
        let mut open = vec![];
        for id in asked {
            let answer = pair.lanes[1].peek(PeerIndex(0)).unwrap();
            pair.lanes[1].pop(PeerIndex(0));
            assert_eq!((answer.kind, answer.id), (PacketKind::CancelAck, id));
            open.push(!answer.has(Packet::DONE));
        }
        assert_eq!(open, [true, false, true, false]);
        assert_eq!(pair.machines[0].tables.peers[1].acks, 0);
        pair.lanes[1].give_back(PeerIndex(0), Returned::default());
        pair.send(0, 1, Label { tag: 1, ..LABEL }, text(3_000, 1));
        pair.lanes[1].peek(PeerIndex(0)).unwrap();
        pair.lanes[1].pop(PeerIndex(0));
        let returned = Returned { taken: round + 1, matched: round + 1, ..Returned::default() };
        pair.lanes[1].give_back(PeerIndex(0), returned);
        advance(&mut pair, 0);
        assert_eq!(pair.machines[0].tables.peers[1].mirror_len, 0);
    }
}

#[test]
fn a_death_ends_all_work_for_the_rank() {
    let mut pair = Pair::new(MatchingDesign::Mirror);
    for id in 0..2 {
        pair.machines[0].offered(1, offer(id, Some(id)));
    }
    fill(&mut pair, 0);
    let question = Packet { id: 0, ..Packet::new(PacketKind::Cancel) };
    pair.lanes[1].push(PeerIndex(0), &question, PacketLoad::Empty);
    advance(&mut pair, 0);
    let sends: Vec<_> = (0..3).map(|_| pair.send(0, 1, LABEL, text(8, 1)).pending()).collect();
    let post = pair.receive(0, Some(1), Some(7), buffer(3_000)).pending();
    let own = pair.receive(0, None, Some(7), buffer(8)).pending();
    pair.machines[0].tables.peers[1].revisit = true;
    assert!(pair.machines[0].wants_poll() && pair.machines[0].under_way() == 5);
    // A rank that does not exist is not a lost rank.
    pair.machines[0].lost(&mut pair.lanes[0], PeerIndex(2));
    pair.machines[0].lost(&mut pair.lanes[0], PeerIndex(u32::MAX));
    assert!(!pair.machines[0].is_lost(PeerIndex(1)) && !pair.machines[0].is_lost(PeerIndex(2)));
    for _ in 0..2 {
        pair.machines[0].lost(&mut pair.lanes[0], PeerIndex(1));
        assert!(pair.machines[0].is_lost(PeerIndex(1)) && !pair.machines[0].is_lost(PeerIndex(0)));
        assert_eq!(pair.machines[0].under_way(), 1);
        let peer = &pair.machines[0].tables.peers[1];
        assert_eq!((peer.mirror_len, peer.acks, peer.revisit), (0, 0, false));
        assert!(!peer.busy && !peer.credits_due && peer.dues.is_empty() && peer.waiting.is_empty());
        assert!(!pair.machines[0].wants_poll());
    }
    let died = Some(Err(RequestError::PeerLost { peer: PeerIndex(1) }));
    assert!(sends.into_iter().chain([post]).all(|request| pair.take(0, request) == died));
    assert_eq!(pair.take(0, own), None);
    assert!(!advance(&mut pair, 0) && !pair.machines[0].rest(&mut pair.lanes[0]));
    assert_eq!(pair.machines[0].cancel(&mut pair.lanes[0], own.unwrap()), Cancel::Done);
}
