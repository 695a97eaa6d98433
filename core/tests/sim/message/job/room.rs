//! Memory for the tables and boards of all ranks.

use std::ptr::NonNull;
use tsumugi_core::msg::locked_matching::{Board, BoardShape};
use tsumugi_core::msg::*;

/// Memory for the tables of one machine.
pub struct Room {
    peers: Vec<MessagePeer>,
    requests: Vec<RequestEntry>,
    unexpected: Vec<UnexpectedMessage>,
    log: Vec<LoggedMessage>,
    mirror: Vec<MirroredOffer>,
}

/// Memory for a board.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct LaneLine([u8; 64]);

/// Memory for the boards of all ranks.
pub struct Wall {
    lines: Vec<LaneLine>,
    shape: BoardShape,
}

impl Room {
    pub fn new(shape: MessageShape, requests: usize) -> Self {
        Self::with(shape, requests, shape.unexpected())
    }

    /// Rooms for the tables to come, each with more places for unexpected messages. A game sends
    /// fewer messages than the last one takes.
    pub fn further(shape: MessageShape, requests: usize) -> Vec<Self> {
        let longer = |more| Self::with(shape, requests, shape.unexpected() + more);
        [512, 128, 32, 8].map(longer).into()
    }

    fn with(shape: MessageShape, requests: usize, unexpected: usize) -> Self {
        Self {
            peers: vec![MessagePeer::EMPTY; shape.peers as usize],
            requests: vec![RequestEntry::EMPTY; requests],
            unexpected: vec![UnexpectedMessage::EMPTY; unexpected],
            log: vec![LoggedMessage::EMPTY; shape.log()],
            mirror: vec![MirroredOffer::EMPTY; shape.mirrored()],
        }
    }

    pub fn tables(&mut self) -> MessageTables<'_> {
        MessageTables {
            peers: &mut self.peers,
            requests: &mut self.requests,
            unexpected: &mut self.unexpected,
            log: &mut self.log,
            mirror: &mut self.mirror,
        }
    }
}

impl Wall {
    pub fn new(shape: MessageShape, requests: usize) -> Self {
        let shape = BoardShape { peers: shape.peers, posts: requests as u32 };
        let lines = Self::lines_of(shape) * shape.peers as usize;
        Self { lines: vec![LaneLine([0; 64]); lines], shape }
    }

    pub fn boards(&mut self) -> Vec<Board<'_>> {
        let chunks = self.lines.chunks_exact_mut(Self::lines_of(self.shape));
        let places = chunks.map(|lines| NonNull::from(lines).cast());
        // SAFETY: lines enough and aligned, and lent as long as the boards.
        places.map(|place| unsafe { Board::init(place, self.shape) }.unwrap()).collect()
    }

    fn lines_of(shape: BoardShape) -> usize {
        Board::memory_size(shape).div_ceil(size_of::<LaneLine>())
    }
}
