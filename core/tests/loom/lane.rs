//! Lanes of messages: packets arrive whole and in order, lines and slots are reused only after
//! they were read, returned counts are visible after the packets pushed before them, and a
//! sender that needs room is not forgotten.

use crate::{check, retry};
use loom::thread;
use std::sync::Arc;
use tsumugi_core::msg::{
    Lane, LaneLine, LaneReceiver, LaneSender, NeedLine, Packet, PacketKind, PacketLoad, ReturnLine,
    Returned,
};

/// A lane that lives as long as the model's threads.
struct Memory {
    lines: Vec<LaneLine>,
    returned: ReturnLine,
    need: NeedLine,
}

impl Memory {
    fn new(lines: usize) -> Arc<Self> {
        let lines = (0..lines).map(|_| LaneLine::new()).collect();
        Arc::new(Self { lines, returned: ReturnLine::new(), need: NeedLine::new() })
    }

    fn lane(&self) -> Lane<'_> {
        Lane { lines: &self.lines, returned: &self.returned, need: &self.need }
    }

    fn sender(&self) -> LaneSender<'_> {
        // SAFETY: each model makes one.
        unsafe { LaneSender::new(self.lane()) }
    }

    fn receiver(&self) -> LaneReceiver<'_> {
        // SAFETY: each model makes one.
        unsafe { LaneReceiver::new(self.lane()) }
    }
}

/// A packet of `bytes` inline bytes, whose words are all `value`.
fn push(sender: &mut LaneSender<'_>, bytes: u8, value: u64) {
    let packet = Packet { count: bytes, tag: value as u32, ..Packet::new(PacketKind::Inline) };
    sender.push(&packet, PacketLoad::Inline(0), |_| value);
}

fn pop(receiver: &mut LaneReceiver<'_>) -> Option<u64> {
    let packet = receiver.peek()?;
    let value = u64::from(packet.tag);
    receiver.inline(usize::from(packet.count).div_ceil(8), |_, word| assert_eq!(word, value));
    receiver.pop();
    Some(value)
}

#[test]
fn a_packet_of_two_lines_comes_whole() {
    check(&["msg_stamp_relaxed", "msg_head_first"], || {
        let memory = Memory::new(4);
        let sending = memory.clone();
        let sender = thread::spawn(move || {
            let mut sender = sending.sender();
            push(&mut sender, 40, 1);
            push(&mut sender, 8, 2);
        });
        let mut receiver = memory.receiver();
        let mut got = Vec::new();
        got.extend(retry(2, || pop(&mut receiver)));
        got.extend(retry(1, || pop(&mut receiver)));
        sender.join().unwrap();
        got.extend(std::iter::from_fn(|| pop(&mut receiver)));
        assert_eq!(got, [1, 2]);
    });
}

#[test]
fn a_line_is_used_again_after_it_was_read() {
    check(&["msg_stamp_relaxed", "msg_return_relaxed"], || {
        let memory = Memory::new(2);
        let sending = memory.clone();
        let sender = thread::spawn(move || {
            let mut sender = sending.sender();
            let sent = (1..=3).take_while(|&value| {
                let has_room = retry(2, || sender.has_room(1).then_some(())).is_some();
                if has_room {
                    push(&mut sender, 8, value);
                }
                has_room
            });
            sent.count() as u64
        });
        let mut receiver = memory.receiver();
        let mut got = Vec::new();
        got.extend(retry(2, || pop(&mut receiver)));
        receiver.give_back(Returned::default());
        let sent = sender.join().unwrap();
        got.extend(std::iter::from_fn(|| pop(&mut receiver)));
        assert!(sent >= 2, "the first two packets have room");
        assert!(got.iter().copied().eq(1..=sent), "{got:?} of {sent}");
    });
}

/// The sender drops its log by this rule: packets that the receiver pushed before it returned
/// its counts are in the other lane.
#[test]
fn a_packet_pushed_before_a_return_is_seen_with_it() {
    check(&["msg_return_relaxed"], || {
        let (there, back) = (Memory::new(2), Memory::new(2));
        let (receiving, pushing) = (there.clone(), back.clone());
        let receiver = thread::spawn(move || {
            let mut receiver = receiving.receiver();
            push(&mut pushing.sender(), 8, 7);
            receiver.give_back(Returned { taken: 1, ..Returned::default() });
        });
        let sender = there.sender();
        let returned = retry(2, || (sender.returned().taken == 1).then_some(()));
        let offer = pop(&mut back.receiver());
        assert!(returned.is_none() || offer == Some(7), "an offer came after the return");
        receiver.join().unwrap();
    });
}

/// The bytes of a slot belong to the sender again when its bit has turned.
#[test]
fn a_slot_is_used_again_after_it_was_read() {
    check(&["msg_stamp_relaxed", "msg_slots_relaxed"], || {
        let memory = Memory::new(4);
        let slot = Arc::new(tsumugi_core::sync::UnsafeCell::new(0));
        let (sending, writing) = (memory.clone(), slot.clone());
        let sender = thread::spawn(move || {
            let mut sender = sending.sender();
            // SAFETY: the slot is free at first.
            writing.with_mut(|slot| unsafe { *slot = 1 });
            push(&mut sender, 0, 1);
            if retry(2, || (sender.returned().slots == 1).then_some(())).is_some() {
                // SAFETY: its bit has turned.
                writing.with_mut(|slot| unsafe { *slot = 2 });
            }
        });
        let mut receiver = memory.receiver();
        if retry(2, || pop(&mut receiver)).is_some() {
            // SAFETY: a packet has named it.
            slot.with(|slot| assert_eq!(unsafe { *slot }, 1));
            receiver.give_back(Returned { slots: 1, ..Returned::default() });
        }
        sender.join().unwrap();
    });
}

/// The receiver takes a line and rests; the sender finds no room, requests it, looks again and
/// sleeps. One of the two notices.
#[test]
fn a_sender_that_needs_room_is_not_forgotten() {
    check(&["msg_starved_unfenced", "msg_rest_unfenced"], || {
        let memory = Memory::new(2);
        let sending = memory.clone();
        let sender = thread::spawn(move || {
            let mut sender = sending.sender();
            push(&mut sender, 8, 1);
            push(&mut sender, 8, 2);
            sender.has_room(1) || {
                sender.set_starved();
                sender.has_room(1)
            }
        });
        let mut receiver = memory.receiver();
        let taken = retry(2, || pop(&mut receiver));
        let rings = taken.is_some() && {
            let was_starved = receiver.give_back(Returned::default());
            LaneReceiver::fence();
            was_starved || receiver.is_starved()
        };
        let sees = sender.join().unwrap();
        assert!(sees || rings || taken.is_none(), "the sender sleeps for ever");
    });
}
