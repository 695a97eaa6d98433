//! Every member's block to all members: in a ring, by recursive doubling, or as in J.
//! Bruck et al., "Efficient algorithms for all-to-all communications in multiport
//! message-passing systems", 1997, for any number of members.

use super::blocks::{Blocks, CollTables};
use super::peers::{log2_ceil, minus, plus};
use super::step::{BufferSpan, CollStep};
use crate::mutate;

/// Each member passes on the block that it got last. P - 1 deep; a block is copied
/// into its place once. For any blocks.
#[derive(Clone, Copy, Debug)]
pub struct RingGather {
    pub(super) me: u32,
    pub(super) size: u32,
    pub(super) data: BufferSpan,
    pub(super) blocks: Blocks,
    /// Each member has the block so far after its own at first.
    pub(super) ahead: u32,
}

impl RingGather {
    pub(super) const fn rounds(&self) -> u32 {
        self.size - 1
    }

    pub(super) fn step(&self, tables: &CollTables<'_>, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, size, data, blocks, ahead } = *self;
        let first = plus(me, ahead, size);
        let of = |back: u32| data.part(blocks.range(tables, minus(first, back, size)));
        match index {
            0 => Some(CollStep::Send { to: plus(me, 1, size), from: of(round) }),
            1 => Some(CollStep::Receive { from: minus(me, 1, size), into: of(round + 1) }),
            _ => None,
        }
    }
}

/// In round `k` partners exchange the `2^k` blocks that each has. For a power of two of
/// members and blocks that follow each other; log2 P deep.
#[derive(Clone, Copy, Debug)]
pub struct DoublingGather {
    pub(super) me: u32,
    pub(super) size: u32,
    pub(super) data: BufferSpan,
    pub(super) blocks: Blocks,
}

impl DoublingGather {
    pub(super) const fn rounds(&self) -> u32 {
        self.size.trailing_zeros()
    }

    pub(super) fn step(&self, tables: &CollTables<'_>, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, data, blocks, .. } = *self;
        let partner = me ^ (1 << round);
        let of = |member: u32| {
            let first = member & !((1 << round) - 1);
            data.part(blocks.run(tables, first, first + (1 << round)))
        };
        match index {
            0 => Some(CollStep::Send { to: partner, from: of(me) }),
            1 => Some(CollStep::Receive { from: partner, into: of(partner) }),
            _ => None,
        }
    }
}

/// In round `k` each member sends the first `2^k` blocks, counted from its own, to the
/// one `2^k` below. log2 P deep; the blocks lie in the scratch buffer meanwhile, and are
/// copied to their places at the end. For any blocks.
#[derive(Clone, Copy, Debug)]
pub struct BruckGather {
    pub(super) me: u32,
    pub(super) size: u32,
    pub(super) own: BufferSpan,
    pub(super) data: BufferSpan,
    pub(super) blocks: Blocks,
}

impl BruckGather {
    pub(super) const fn rounds(&self) -> u32 {
        log2_ceil(self.size) + 1
    }

    /// Where the block at this distance from the own one lies, and all before it.
    fn offset(&self, tables: &CollTables<'_>, distance: u32) -> usize {
        let Self { me, size, blocks, .. } = *self;
        let before = |index| blocks.before(tables, index);
        let end = me + distance;
        if end <= size {
            before(end) - before(me)
        } else {
            before(size) - before(me) + before(end - size)
        }
    }

    fn span(&self, tables: &CollTables<'_>, from: u32, to: u32) -> BufferSpan {
        let start = self.offset(tables, from);
        BufferSpan::scratch(start, self.offset(tables, to) - start)
    }

    pub(super) fn step(&self, tables: &CollTables<'_>, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, size, own, data, blocks } = *self;
        if round + 1 == self.rounds() {
            // With one member the own block has not been copied yet.
            let from = |index| if size == 1 { own } else { self.span(tables, index, index + 1) };
            return (index < size).then(|| CollStep::Copy {
                from: from(index),
                to: data.part(blocks.range(tables, plus(me, index, size))),
            });
        }
        let mut index = index;
        if round == 0 {
            if index == 0 {
                return Some(CollStep::Copy { from: own, to: self.span(tables, 0, 1) });
            }
            index -= 1;
        }
        let distance = 1u32 << round;
        let count = distance.min(size - distance);
        let count = mutate!("coll_bruck_last": count => distance.min(size - 1));
        match index {
            0 => {
                let from = self.span(tables, 0, count);
                Some(CollStep::Send { to: minus(me, distance, size), from })
            }
            1 => {
                let into = self.span(tables, distance, (distance + count).min(size));
                Some(CollStep::Receive { from: plus(me, distance, size), into })
            }
            _ => None,
        }
    }
}
