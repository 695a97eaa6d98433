//! Memory for the tables and boards of all ranks.

use std::ptr::NonNull;
use tsumugi_core::msg::board::{Board, BoardShape};
use tsumugi_core::msg::*;

/// Memory for the tables of one machine.
pub struct Room {
    peers: Vec<Peer>,
    requests: Vec<Entry>,
    unexpected: Vec<Unexpected>,
    log: Vec<Logged>,
    mirror: Vec<Mirrored>,
}

/// Memory for a board.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Memory for the boards of all ranks.
pub struct Wall {
    lines: Vec<Line>,
    shape: BoardShape,
}

impl Room {
    pub fn new(shape: Shape, requests: usize) -> Self {
        Self {
            peers: vec![Peer::EMPTY; shape.peers as usize],
            requests: vec![Entry::EMPTY; requests],
            unexpected: vec![Unexpected::EMPTY; shape.unexpected()],
            log: vec![Logged::EMPTY; shape.log()],
            mirror: vec![Mirrored::EMPTY; shape.mirrored()],
        }
    }

    pub fn tables(&mut self) -> Tables<'_> {
        Tables {
            peers: &mut self.peers,
            requests: &mut self.requests,
            unexpected: &mut self.unexpected,
            log: &mut self.log,
            mirror: &mut self.mirror,
        }
    }
}

impl Wall {
    pub fn new(shape: Shape, requests: usize) -> Self {
        let shape = BoardShape { peers: shape.peers, posts: requests as u32 };
        let lines = Self::lines_of(shape) * shape.peers as usize;
        Self { lines: vec![Line([0; 64]); lines], shape }
    }

    pub fn boards(&mut self) -> Vec<Board<'_>> {
        let chunks = self.lines.chunks_exact_mut(Self::lines_of(self.shape));
        let places = chunks.map(|lines| NonNull::from(lines).cast());
        // SAFETY: lines enough and aligned, and lent as long as the boards.
        places.map(|place| unsafe { Board::init(place, self.shape) }.unwrap()).collect()
    }

    fn lines_of(shape: BoardShape) -> usize {
        Board::memory_size(shape).div_ceil(size_of::<Line>())
    }
}
