//! A rank: its machine, the memory of the machine, and the progress of its program.

use super::{By, LONG, REQUESTS, Real};
use crate::program::{End, Message};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use tsumugi_core::mem;
use tsumugi_core::msg::locked_matching::{Board, BoardShape};
use tsumugi_core::msg::{
    LoggedMessage, MessageMachine, MessagePeer, MessageShape, MessageTables, MirroredOffer,
    RequestEntry, RequestId, Thresholds, UnexpectedMessage,
};

/// The memory of a board.
pub struct BoardMemory {
    place: NonNull<u8>,
    layout: Layout,
    shape: BoardShape,
}

/// The memory of a machine.
pub struct Memory {
    peers: Vec<MessagePeer>,
    requests: Vec<RequestEntry>,
    unexpected: Vec<UnexpectedMessage>,
    log: Vec<LoggedMessage>,
    mirror: Vec<MirroredOffer>,
}

/// The operation that a request belongs to.
#[derive(Clone, Copy)]
pub enum Use {
    Send(Message),
    Post(usize),
}

pub struct Node<'m> {
    pub machine: MessageMachine<'m>,
    pub done: usize,
    pub sends: u8,
    pub posts: Vec<(End, Option<RequestId>)>,
    pub uses: BTreeMap<u64, Use>,
    pub ended: Vec<Message>,
    pub is_dead: bool,
    pub lost: [bool; 3],
    /// The digest of the rank's board at its last look.
    pub seen: u64,
}

impl BoardMemory {
    pub fn new(shape: &MessageShape) -> Self {
        let shape = BoardShape { peers: shape.peers, posts: REQUESTS as u32 };
        let layout = Layout::from_size_align(Board::memory_size(shape), Board::ALIGN).unwrap();
        // SAFETY: not empty.
        let place = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
        Self { place, layout, shape }
    }

    pub fn board(&self) -> Board<'_> {
        // SAFETY: large and aligned enough, and lives as long as the board that borrows it.
        unsafe { Board::init(self.place, self.shape) }.unwrap()
    }
}

impl Drop for BoardMemory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no longer borrowed.
        unsafe { dealloc(self.place.as_ptr(), self.layout) }
    }
}

impl Memory {
    pub fn of(shape: &MessageShape) -> Self {
        Self {
            peers: vec![MessagePeer::EMPTY; shape.peers as usize],
            requests: vec![RequestEntry::EMPTY; REQUESTS],
            unexpected: vec![UnexpectedMessage::EMPTY; shape.unexpected()],
            log: vec![LoggedMessage::EMPTY; shape.log()],
            mirror: vec![MirroredOffer::EMPTY; shape.mirrored()],
        }
    }
}

impl<'m> Node<'m> {
    pub fn new(rank: mem::PeerIndex, real: &Real<'_>, memory: &'m mut Memory) -> Self {
        let tables = MessageTables {
            peers: &mut memory.peers,
            requests: &mut memory.requests,
            unexpected: &mut memory.unexpected,
            log: &mut memory.log,
            mirror: &mut memory.mirror,
        };
        let thresholds = Thresholds {
            inline_max: 32,
            direct_from: 33,
            alone_from: if real.rides { u32::MAX } else { 0 },
            direct_max: 1 << 17,
            halves_from: if real.rides { 0 } else { u32::MAX },
            nt_from: 1 << 18,
            pull_from: 1 << 18,
            eager_max: 8 << 10,
            chunk: u32::MAX,
            part: u32::MAX,
            both_from: if real.by == By::Both { LONG as u32 } else { u32::MAX },
            kernel_from: u32::MAX,
            ask_from: if real.by == By::Sender { 0 } else { u32::MAX },
        };
        let machine = MessageMachine::new(
            mem::LocalRank(rank.0),
            real.shape(),
            real.design,
            thresholds,
            tables,
        );
        Self {
            machine: machine.unwrap(),
            done: 0,
            sends: 0,
            posts: Vec::new(),
            uses: BTreeMap::new(),
            ended: Vec::new(),
            is_dead: false,
            lost: [false; 3],
            seen: 0,
        }
    }
}
