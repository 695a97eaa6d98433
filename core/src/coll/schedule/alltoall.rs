//! A block of each member for each member: in pairs, or as in J. Bruck et al. (1997; see
//! `allgather`), where short blocks travel together in log2 P rounds.

use super::blocks::{Blocks, CollTables};
use super::peers::{log2_ceil, minus, plus};
use super::rooted::AT_ONCE;
use super::step::{BufferSpan, CollBuffer, CollStep};
use crate::mutate;

/// Each member sends to the ones above it and receives from the ones below it, at some
/// distances at a time. For any blocks; each is sent once.
#[derive(Clone, Copy, Debug)]
pub struct PairwiseExchange {
    pub(super) me: u32,
    pub(super) size: u32,
    pub(super) sent: Blocks,
    pub(super) received: Blocks,
    /// The buffers.
    pub(super) from: BufferSpan,
    pub(super) into: BufferSpan,
}

impl PairwiseExchange {
    pub(super) const fn rounds(&self) -> u32 {
        1 + (self.size - 1).div_ceil(AT_ONCE)
    }

    pub(super) fn step(&self, tables: &CollTables<'_>, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, size, sent, received, from, into } = *self;
        let block =
            |buffer: BufferSpan, blocks: Blocks, member| buffer.part(blocks.range(tables, member));
        let from = |member| block(from, sent, member);
        let into = |member| block(into, received, member);
        if round == 0 {
            let (from, to) = (from(me), into(me));
            let len = from.len.min(to.len);
            let (from, to) = (from.part(0..len), to.part(0..len));
            return (index == 0).then_some(CollStep::Copy { from, to });
        }
        let distance = (round - 1) * AT_ONCE + index / 2 + 1;
        if index >= 2 * AT_ONCE || distance >= size {
            return None;
        }
        Some(if index.is_multiple_of(2) {
            let to = plus(me, distance, size);
            CollStep::Send { to, from: from(mutate!("coll_pair_block": to => me)) }
        } else {
            let source = minus(me, distance, size);
            CollStep::Receive { from: source, into: into(source) }
        })
    }
}

/// Blocks of one length. The block for the member at a distance travels along the
/// bits of that distance: in round `k` all blocks with bit `k` are packed, and go `2^k`
/// up. log2 P deep, and half of all blocks are sent in each round.
#[derive(Clone, Copy, Debug)]
pub struct BruckExchange {
    pub(super) me: u32,
    pub(super) size: u32,
    pub(super) bytes: usize,
}

impl BruckExchange {
    pub(super) const fn rounds(&self) -> u32 {
        log2_ceil(self.size) + 1
    }

    pub(super) const fn scratch_bytes(&self) -> usize {
        2 * self.size as usize * self.bytes
    }

    /// The number of distances below `size` that have bit `bit`.
    fn travellers(&self, bit: u32) -> u32 {
        let (period, half) = (2u64 << bit, 1u64 << bit);
        let size = u64::from(self.size);
        ((size / period) * half + (size % period).saturating_sub(half)) as u32
    }

    /// The distance number `index` of those with bit `bit`.
    const fn traveller(bit: u32, index: u32) -> u32 {
        (index >> bit) << (bit + 1) | 1 << bit | (index & ((1 << bit) - 1))
    }

    /// The block for the member at a distance.
    fn scratch(&self, block: u32) -> BufferSpan {
        BufferSpan::scratch(block as usize * self.bytes, self.bytes)
    }

    /// The packed blocks: those that go in the first half, those that come behind.
    fn packed(&self, from: u32, count: u32) -> BufferSpan {
        let start = (self.size + from) as usize * self.bytes;
        BufferSpan::scratch(start, count as usize * self.bytes)
    }

    fn program(&self, buffer: CollBuffer, member: u32) -> BufferSpan {
        BufferSpan { buffer, at: member as usize * self.bytes, len: self.bytes }
    }

    pub(super) fn step(&self, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, size, .. } = *self;
        let mut index = index;
        if round == 0 {
            if index < size {
                let from = self.program(CollBuffer::Input, plus(me, index, size));
                return Some(CollStep::Copy { from, to: self.scratch(index) });
            }
            index -= size;
        } else {
            // What has come in the round before.
            let bit = round - 1;
            let come = self.travellers(bit);
            if index < come {
                let from = self.packed(come + index, 1);
                return Some(CollStep::Copy {
                    from,
                    to: self.scratch(Self::traveller(bit, index)),
                });
            }
            index -= come;
        }
        if round + 1 == self.rounds() {
            return (index < size).then(|| CollStep::Copy {
                from: self.scratch(index),
                to: self.program(CollBuffer::Output, minus(me, index, size)),
            });
        }
        let count = self.travellers(round);
        if index < count {
            let from = self.scratch(Self::traveller(round, index));
            return Some(CollStep::Copy { from, to: self.packed(index, 1) });
        }
        let distance = 1 << round;
        match index - count {
            0 => {
                let from = self.packed(0, count);
                Some(CollStep::Send { to: plus(me, distance, size), from })
            }
            1 => {
                let into = self.packed(count, count);
                Some(CollStep::Receive { from: minus(me, distance, size), into })
            }
            _ => None,
        }
    }
}
