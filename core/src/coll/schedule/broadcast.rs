//! One member's bytes to all: by a binomial tree, to each by itself, by a chain in pieces, or
//! scattered by a tree, after which all gather the blocks (R. van de Geijn: "On global combine
//! operations", 1994). The sender has the number 0.

use super::blocks::{Blocks, CollTables};
use super::peers::Binomial;
use super::rooted::AT_ONCE;
use super::step::{BufferSpan, CollStep};
use crate::mutate;

/// Each member that has the bytes sends them to its children, the largest subtree
/// first. log2 P deep.
#[derive(Clone, Copy, Debug)]
pub struct TreeBroadcast {
    pub(super) at: Binomial,
    pub(super) data: BufferSpan,
}

impl TreeBroadcast {
    pub(super) const fn rounds(&self) -> u32 {
        (self.at.number > 0) as u32 + (self.at.children() > 0) as u32
    }

    pub(super) fn step(&self, round: u32, index: u32) -> Option<CollStep> {
        let data = self.data;
        match self.at.parent() {
            Some(from) if round == 0 => {
                (index == 0).then_some(CollStep::Receive { from, into: data })
            }
            _ => {
                let child = self.at.children().checked_sub(index + 1)?;
                Some(CollStep::Send { to: self.at.child(child), from: data })
            }
        }
    }
}

/// The sender sends to each member itself, some of them at a time. No member waits for another
/// one but the sender: where ranks share cores, each needs one turn.
#[derive(Clone, Copy, Debug)]
pub struct FlatBroadcast {
    pub(super) me: u32,
    pub(super) size: u32,
    pub(super) data: BufferSpan,
}

impl FlatBroadcast {
    pub(super) const fn rounds(&self) -> u32 {
        if self.me > 0 { 1 } else { (self.size - 1).div_ceil(AT_ONCE) }
    }

    pub(super) fn step(&self, round: u32, index: u32) -> Option<CollStep> {
        if self.me > 0 {
            return (index == 0).then_some(CollStep::Receive { from: 0, into: self.data });
        }
        let to = round * AT_ONCE + index + 1;
        let end = mutate!("coll_flat_last": self.size => self.size - 1);
        (index < AT_ONCE && to < end).then_some(CollStep::Send { to, from: self.data })
    }
}

/// Each member passes a piece on while the next one arrives: P - 2 pieces more than
/// the bytes have.
#[derive(Clone, Copy, Debug)]
pub struct ChainBroadcast {
    pub(super) me: u32,
    pub(super) size: u32,
    pub(super) data: BufferSpan,
    pub(super) piece: usize,
}

impl ChainBroadcast {
    pub(super) const fn rounds(&self) -> u32 {
        let is_inner = self.me > 0 && self.me + 1 < self.size;
        if self.size == 1 { 0 } else { self.pieces() + is_inner as u32 }
    }

    const fn pieces(&self) -> u32 {
        self.data.len.div_ceil(self.piece) as u32
    }

    fn span(&self, piece: u32) -> BufferSpan {
        let start = piece as usize * self.piece;
        self.data.part(start..(start + self.piece).min(self.data.len))
    }

    pub(super) fn step(&self, round: u32, index: u32) -> Option<CollStep> {
        let receives = self.me > 0 && round < self.pieces();
        if receives && index == 0 {
            return Some(CollStep::Receive { from: self.me - 1, into: self.span(round) });
        }
        if index > u32::from(receives) || self.me + 1 == self.size {
            return None;
        }
        let ready = if self.me == 0 { round } else { round.checked_sub(1)? };
        let ready = mutate!("coll_chain_ahead": ready => round.min(self.pieces() - 1));
        Some(CollStep::Send { to: self.me + 1, from: self.span(ready) })
    }
}

/// Each member gets the blocks of its subtree, in their final places.
#[derive(Clone, Copy, Debug)]
pub struct TreeSpread {
    pub(super) at: Binomial,
    pub(super) data: BufferSpan,
    pub(super) blocks: Blocks,
}

impl TreeSpread {
    pub(super) const fn rounds(&self) -> u32 {
        (self.at.number > 0) as u32 + (self.at.children() > 0) as u32
    }

    pub(super) fn step(&self, tables: &CollTables<'_>, round: u32, index: u32) -> Option<CollStep> {
        let of = |at: Binomial| self.data.part(self.blocks.run(tables, at.number, at.end()));
        match self.at.parent() {
            Some(from) if round == 0 => {
                (index == 0).then(|| CollStep::Receive { from, into: of(self.at) })
            }
            _ => {
                let child = self.at.child(self.at.children().checked_sub(index + 1)?);
                let at = Binomial { number: child, ..self.at };
                Some(CollStep::Send { to: child, from: of(at) })
            }
        }
    }
}
