//! The board of posted receives: a sender claims and copies while the owner
//! posts, takes from the lane, and cancels.

use crate::{check, retry};
use loom::thread;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::mem::{LocalRank, PeerIndex};
use tsumugi_core::msg::locked_matching::{Board, BoardPost, BoardShape, PostState};
use tsumugi_core::msg::{
    Copy, INLINE_WORDS, Label, LaneTransport, LoggedMessage, MatchingDesign, MessageBytes,
    MessageMachine, MessagePeer, MessageShape, MessageTables, MirroredOffer, Offer, Packet,
    PacketKind, PacketLoad, Pattern, RequestEntry, Returned, Thresholds, UnexpectedMessage,
};
use tsumugi_core::sync::{AtomicU32, Ordering, UnsafeCell};

const SHAPE: BoardShape = BoardShape { peers: 2, posts: 2 };
const OWNER: LocalRank = LocalRank(0);
const SENDER: LocalRank = LocalRank(1);
/// The sender as a peer of the owner's machine.
const PEER: PeerIndex = PeerIndex(1);
const LABEL: Label = Label { context: 0, tag: 1 };

/// A board, the buffers of its posts, and the number of messages in the lane from the sender.
struct Shared {
    memory: NonNull<u8>,
    board: Board<'static>,
    buffers: [UnsafeCell<u32>; 2],
    lane: AtomicU32,
}

// SAFETY: the board is atomics; the model checks the accesses to the buffers.
unsafe impl Send for Shared {}
// SAFETY: the same.
unsafe impl Sync for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        // SAFETY: not empty.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout()) }).unwrap();
        // SAFETY: large and aligned enough, and freed with the last use.
        let board = unsafe { Board::init(memory, SHAPE) }.unwrap();
        let buffers = [UnsafeCell::new(0), UnsafeCell::new(0)];
        Arc::new(Self { memory, board, buffers, lane: AtomicU32::new(0) })
    }

    fn post(&self, index: u32, source: Option<LocalRank>) {
        // The buffer is the owner's until it is posted.
        // SAFETY: no sender has claimed it.
        self.buffers[index as usize].with_mut(|buffer| unsafe { *buffer = 0 });
        let pattern = Pattern { context: 0, source, tag: None };
        let at = u64::from(index);
        let post = BoardPost { number: index, pattern, at, room: 4, in_reach: true };
        self.hold(|board| board.post(index, &post));
    }

    /// Runs a function under the lock.
    fn hold<R>(&self, with: impl FnOnce(&Board<'_>) -> R) -> R {
        self.board.lock(OWNER);
        let result = with(&self.board);
        self.board.unlock();
        result
    }

    /// Sends the message `number` into a post or by the lane; returns whether into a post.
    fn send(&self, number: u32) -> bool {
        match self.board.try_claim(SENDER, number, LABEL, 4) {
            Ok(claim) => {
                // SAFETY: claimed.
                self.buffers[claim.at as usize].with_mut(|buffer| unsafe { *buffer = number + 1 });
                self.board.finish(SENDER, claim.index, true);
                true
            }
            Err(_) => {
                self.lane.store(number + 1, Ordering::Release);
                false
            }
        }
    }

    /// The message in the buffer of a post that is done.
    fn finished(&self, index: u32) -> Option<u32> {
        let PostState::Done(arrival) = self.board.standing(index) else { return None };
        assert_eq!((arrival.source, arrival.tag, arrival.len), (SENDER, LABEL.tag, 4));
        self.hold(|board| board.remove(index, Some(SENDER)));
        // SAFETY: done and taken down.
        Some(self.buffers[index as usize].with(|buffer| unsafe { *buffer }) - 1)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: allocated so, and the last use of it.
        unsafe { dealloc(self.memory.as_ptr(), layout()) }
    }
}

fn layout() -> Layout {
    Layout::from_size_align(Board::memory_size(SHAPE), Board::ALIGN).unwrap()
}

#[test]
fn a_finished_claim_shows_the_copied_bytes() {
    check(&["board_lock_relaxed", "board_unlock_relaxed", "board_done_relaxed"], || {
        let shared = Shared::new();
        let sender = {
            let shared = shared.clone();
            thread::spawn(move || shared.send(0))
        };
        shared.post(0, Some(SENDER));
        let seen = retry(2, || shared.finished(0));
        let direct = sender.join().unwrap();
        let seen = seen.or_else(|| shared.finished(0));
        assert_eq!(seen, direct.then_some(0));
    });
}

#[test]
fn a_cancelled_receive_is_not_copied_into() {
    check(&["board_claim_after_unlock", "board_withdraws_claimed"], || {
        let shared = Shared::new();
        shared.post(0, Some(SENDER));
        let sender = {
            let shared = shared.clone();
            thread::spawn(move || shared.send(0))
        };
        let withdrawn = shared.hold(|board| board.withdraw(0, Some(SENDER))).is_ok();
        if withdrawn {
            // The buffer belongs to the owner again.
            // SAFETY: taken down.
            shared.buffers[0].with_mut(|buffer| unsafe { *buffer = 9 });
        }
        let direct = sender.join().unwrap();
        assert_ne!(withdrawn, direct, "either the cancel or the sender has the receive");
        assert_eq!(shared.finished(0), direct.then_some(0));
    });
}

#[test]
fn a_message_does_not_overtake_one_in_the_lane() {
    check(&["board_expected_ignored", "msg_expected_early"], || {
        let shared = Shared::new();
        let boards = [shared.board, shared.board];
        let shape =
            MessageShape { peers: 2, lines: 8, slots: 1, slot_bytes: 64, quota: 1, mirror: 1 };
        let tables = MessageTables {
            peers: &mut [MessagePeer::EMPTY; 2],
            requests: &mut [RequestEntry::EMPTY; 2],
            unexpected: &mut vec![UnexpectedMessage::EMPTY; shape.unexpected()],
            log: &mut vec![LoggedMessage::EMPTY; shape.log()],
            mirror: &mut vec![MirroredOffer::EMPTY; shape.mirrored()],
        };
        let thresholds = Thresholds::DEFAULT;
        let machine = MessageMachine::new(OWNER, shape, MatchingDesign::Locked, thresholds, tables);
        let mut machine = machine.unwrap();
        machine.put_up(&boards);
        // The first message is in the lane, as if the lock had been taken.
        let mut wire = OnePacket { is_there: true };
        let mut requests = Vec::new();
        for at in [0, 1] {
            let pattern = Pattern { context: 0, source: (at == 1).then_some(PEER), tag: None };
            let into = MessageBytes { at, len: 4, in_reach: true };
            requests.extend(machine.receive(&mut wire, pattern, into).unwrap().pending());
        }
        let sender = {
            let shared = shared.clone();
            thread::spawn(move || shared.board.try_claim(SENDER, 1, LABEL, 4))
        };
        machine.advance_from(&mut wire, PEER);
        assert!(
            matches!(machine.take(requests[0]), Some(Ok(_))),
            "the first receive has the message"
        );
        if let Ok(claim) = sender.join().unwrap() {
            assert_eq!(claim.at, 1);
        }
    });
}

/// A lane from the sender with one packet.
struct OnePacket {
    is_there: bool,
}

impl LaneTransport for OnePacket {
    fn has_room(&mut self, _: PeerIndex, _: u32) -> bool {
        false
    }
    fn push(&mut self, to: PeerIndex, packet: &Packet, _: PacketLoad) {
        panic!("{packet:?} to {to:?}");
    }
    fn peek(&mut self, from: PeerIndex) -> Option<Packet> {
        let packet = Packet { count: 4, tag: LABEL.tag, ..Packet::new(PacketKind::Inline) };
        (from == PEER && self.is_there).then_some(packet)
    }
    fn deliver(&mut self, _: PeerIndex, at: u64, _: u64) {
        assert_eq!(at, 0, "the first message is for the first receive");
    }
    fn keep(&mut self, _: PeerIndex, _: &mut [u64; INLINE_WORDS]) {}
    fn deliver_kept(&mut self, _: &[u64; INLINE_WORDS], _: u64, _: u64) {}
    fn offer(&mut self, from: PeerIndex) -> Offer {
        panic!("no offer from {from:?}");
    }
    fn pop(&mut self, _: PeerIndex) {
        self.is_there = false;
    }
    fn returned(&mut self, _: PeerIndex) -> Returned {
        Returned::default()
    }
    fn give_back(&mut self, _: PeerIndex, _: Returned) -> bool {
        false
    }
    fn untold(&mut self, _: PeerIndex) -> u32 {
        0
    }
    fn set_starved(&mut self, _: PeerIndex) {}
    fn is_starved(&mut self, _: PeerIndex) -> bool {
        false
    }
    fn fence(&mut self) {}
    fn ring(&mut self, _: PeerIndex) {}
    fn write_slots(&mut self, _: PeerIndex, _: u32, _: u64, _: u64) {}
    fn read_slots(&mut self, _: PeerIndex, _: u32, _: u64, _: u64) {}
    fn copy(&mut self, _: &Copy) {}
}

#[test]
fn a_dead_sender_does_not_keep_the_lock() {
    check(&["board_dead_keeps_lock"], || {
        let shared = Shared::new();
        shared.post(0, Some(SENDER));
        let dying = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.board.lock(SENDER);
                shared.board.lost(SENDER);
            })
        };
        // Without this the owner waits for ever.
        let free = retry(2, || shared.board.try_lock(OWNER).then_some(()));
        if free.is_some() {
            shared.board.unlock();
        }
        dying.join().unwrap();
        assert!(shared.board.try_lock(OWNER));
        assert_eq!(shared.board.withdraw(0, Some(SENDER)), Ok(()));
        shared.board.unlock();
    });
}

#[test]
fn receives_are_taken_in_the_order_of_their_posts() {
    check(&["board_exact_first"], || {
        let shared = Shared::new();
        shared.post(0, None);
        let sender = {
            let shared = shared.clone();
            thread::spawn(move || shared.send(0))
        };
        shared.post(1, Some(SENDER));
        let direct = sender.join().unwrap();
        assert_eq!(shared.finished(1), None);
        assert!(!direct || shared.board.standing(0) != PostState::Posted);
    });
}
