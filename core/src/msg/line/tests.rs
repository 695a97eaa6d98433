//! Both ends of one lane, on one thread.

extern crate std;

use super::*;
use crate::msg::packet::{INLINE_BYTES_MAX, PacketKind};
use std::boxed::Box;
use std::vec::Vec;

/// Memory of a lane may be zero at first.
#[test]
fn no_line_has_the_stamp_of_zeroed_memory() {
    for position in [0, 15, 16, u32::MAX - 16, u32::MAX] {
        assert_ne!(stamp(4, position), 0, "line {position}");
        assert_ne!(stamp(4, position), stamp(4, position.wrapping_sub(16)));
    }
}

fn ends(lines: usize) -> (LaneSender<'static>, LaneReceiver<'static>, Lane<'static>) {
    let lane = Lane {
        lines: Vec::leak((0..lines).map(|_| LaneLine::new()).collect()),
        returned: Box::leak(Box::new(ReturnLine::new())),
        need: Box::leak(Box::new(NeedLine::new())),
    };
    // SAFETY: the only ends of a new lane.
    unsafe { (LaneSender::new(lane), LaneReceiver::new(lane), lane) }
}

fn inline(bytes: usize) -> Packet {
    let count = u8::try_from(bytes).unwrap();
    Packet { count, context: 3, tag: 7, id: !0, ..Packet::new(PacketKind::Inline) }
}

fn word(bytes: usize, index: usize) -> u64 {
    (bytes << 32 | index) as u64 | 1 << 63
}

fn words(receiver: &LaneReceiver<'_>, most: usize) -> Vec<(usize, u64)> {
    let mut words = Vec::new();
    receiver.inline(most, |index, word| words.push((index, word)));
    words
}

#[test]
fn inline_messages_arrive_whole_over_many_laps() {
    let (mut sender, mut receiver, _) = ends(8);
    let mut lines = 0;
    for bytes in (0..=INLINE_BYTES_MAX).chain([8, 32, 33, 88, 89, 144, 145]) {
        let packet = inline(bytes);
        assert_eq!(receiver.peek(), None, "nothing is here before {bytes} bytes");
        assert!(sender.has_room(packet.lines()));
        let own = |index| {
            assert!(index < bytes.div_ceil(8), "word {index} of {bytes} bytes");
            word(bytes, index)
        };
        sender.push(&packet, PacketLoad::Inline(0), own);
        let seen = receiver.peek().unwrap();
        assert_eq!((seen.count, seen.context, seen.tag), (packet.count, 3, 7));
        assert_eq!((seen.kind, seen.id), (PacketKind::Inline, !0));
        for most in [0, 3, 4, 5, bytes.div_ceil(8)] {
            let most = most.min(bytes.div_ceil(8));
            let whole: Vec<_> = (0..most).map(|index| (index, word(bytes, index))).collect();
            assert_eq!(words(&receiver, most), whole, "{most} words of {bytes} bytes");
        }
        assert_eq!(receiver.peek(), Some(seen), "a packet stays until it is popped");
        receiver.pop();
        lines += packet.lines();
        assert_eq!((receiver.taken(), receiver.untold()), (lines, packet.lines()));
        assert!(!receiver.give_back(Returned::default()), "no request for room is answered");
        assert_eq!((receiver.untold(), sender.returned().lines), (0, lines));
    }
}

/// At most the words of a packet are read, whatever the packet of a peer contains.
#[test]
fn no_more_words_are_read_than_a_packet_has() {
    let (mut sender, mut receiver, _) = ends(8);
    sender.push(&inline(INLINE_BYTES_MAX), PacketLoad::Inline(0), |index| word(0, index));
    receiver.peek().unwrap();
    assert_eq!(words(&receiver, 2 * INLINE_WORDS).len(), INLINE_WORDS);
}

#[test]
fn packets_follow_each_other_with_their_offers() {
    let (mut sender, mut receiver, _) = ends(8);
    let offer = Offer { id: 5, taken: !0, context: 4, tag: Some(9), at: Some(1 << 40), room: 77 };
    let fin = Packet { id: 1 << 31, tag: 1, a: !0, b: 1 << 63, ..Packet::new(PacketKind::Fin) };
    let post = Packet { a: 3, b: 4, count: Packet::OFFER, ..Packet::new(PacketKind::Post) };
    sender.push(&fin, PacketLoad::Empty, |_| unreachable!("an empty packet has no words"));
    sender.push(&inline(100), PacketLoad::Inline(0), |index| word(100, index));
    sender.push(&post, PacketLoad::Offer(offer), |_| unreachable!("an offer has no words"));
    assert_eq!(receiver.peek(), Some(fin));
    receiver.pop();
    assert_eq!(receiver.peek().unwrap().count, 100);
    assert_eq!(words(&receiver, 13).len(), 13);
    receiver.pop();
    assert_eq!((receiver.peek(), receiver.offer()), (Some(post), offer));
    receiver.pop();
    assert_eq!((receiver.peek(), receiver.taken(), receiver.untold()), (None, 5, 5));
    // A packet that was not looked at is not taken.
    receiver.pop();
    assert_eq!(receiver.taken(), 5);
}

#[test]
fn a_lane_has_room_for_all_of_its_lines() {
    let (mut sender, mut receiver, lane) = ends(8);
    for lap in 0..3 {
        assert!(sender.has_room(8) && !sender.has_room(9), "lap {lap}");
        sender.push(&inline(200), PacketLoad::Inline(0), |_| 0);
        assert!(sender.has_room(4) && !sender.has_room(5));
        sender.push(&inline(100), PacketLoad::Inline(0), |_| 0);
        sender.push(&inline(0), PacketLoad::Inline(0), |_| 0);
        assert!(!sender.has_room(1) && sender.has_room(0));
        let mut free = 0;
        for taken in [4, 3, 1] {
            receiver.peek().unwrap();
            receiver.pop();
            assert!(!sender.has_room(free + 1), "taken lines are not returned yet");
            receiver.give_back(Returned::default());
            free += taken;
            assert!(sender.has_room(free) && !sender.has_room(free + 1));
        }
    }
    // A count above the pushed lines, or more than a lap old, is not trusted.
    while sender.has_room(1) {
        sender.push(&inline(0), PacketLoad::Inline(0), |_| 0);
    }
    let honest = lane.returned.taken.load(Ordering::Relaxed);
    for lines in [24 + 8 + 1, 24 - 1, 0, u64::from(u32::MAX)] {
        lane.returned.taken.store(lines << 32, Ordering::Relaxed);
        for lines in [0, 1, 2, 8, 9] {
            assert!(!sender.has_room(lines) || lines == 0, "for {lines}");
        }
    }
    lane.returned.taken.store(honest, Ordering::Relaxed);
    assert!(!sender.has_room(1));
    while receiver.peek().is_some() {
        receiver.pop();
    }
    receiver.give_back(Returned::default());
    assert!(sender.has_room(8));
}

#[test]
fn returned_counts_are_read_and_answer_a_request() {
    let (mut sender, mut receiver, _) = ends(8);
    assert_eq!(sender.returned(), Returned::default());
    assert!(!receiver.is_starved());
    let mut returned = Returned { lines: 0, taken: 5, matched: !0, slots: 1 << 31 };
    for round in 1..=3 {
        sender.push(&inline(0), PacketLoad::Inline(0), |_| 0);
        receiver.peek().unwrap();
        receiver.pop();
        sender.set_starved();
        assert!(receiver.is_starved(), "round {round}");
        returned = Returned { taken: returned.taken << 9, slots: !returned.slots, ..returned };
        // The lines are those of the lane; the count in the argument is ignored.
        assert!(receiver.give_back(Returned { lines: 99, ..returned }), "the peer requested room");
        assert_eq!(sender.returned(), Returned { lines: round, ..returned });
        assert!(!receiver.is_starved());
        assert!(!receiver.give_back(returned), "the request was answered");
    }
    // Two requests have one answer.
    sender.set_starved();
    sender.set_starved();
    assert!(receiver.give_back(returned) && !receiver.is_starved());
}
