//! Combining the values of all members: to one of them by a binomial tree, or to all
//! by recursive doubling, by recursive halving, or in a ring (R. Thakur, R.
//! Rabenseifner, W. Gropp: "Optimization of collective communication operations in
//! MPICH", 2005).
//!
//! All work in place: `data` has this member's value at first. A value that comes
//! goes to `temp`, and is combined at the beginning of the next round.

use super::blocks::{Blocks, CollTables};
use super::peers::{Binomial, minus, plus};
use super::step::{BufferSpan, CollStep, CombineOrder};
use crate::mutate;
use core::ops::Range;

/// To the member with the number 0. Each member combines its children's values in
/// their order, so the result is in the order of the numbers. log2 P deep.
#[derive(Clone, Copy, Debug)]
pub struct TreeReduce {
    pub(super) at: Binomial,
    pub(super) data: BufferSpan,
    pub(super) temp: BufferSpan,
}

impl TreeReduce {
    pub(super) const fn rounds(&self) -> u32 {
        if self.at.size == 1 { 0 } else { self.at.children() + 1 }
    }

    pub(super) fn step(&self, round: u32, index: u32) -> Option<CollStep> {
        let Self { at, data, temp } = *self;
        if round > 0 && index == 0 {
            let order = mutate!(
                "coll_tree_order": CombineOrder::IntoFirst => CombineOrder::FromFirst
            );
            return Some(CollStep::Combine { from: temp, into: data, order });
        }
        match index - u32::from(round > 0) {
            0 if round < at.children() => {
                Some(CollStep::Receive { from: at.child(round), into: temp })
            }
            0 => at.parent().map(|to| CollStep::Send { to, from: data }),
            _ => None,
        }
    }
}

/// The members of the first `2 * pairs` numbers meet in pairs, so that a power of two
/// of members is left: the first of a pair gives its value to the second, and gets the
/// result at the end.
#[derive(Clone, Copy, Debug)]
pub struct Pairing {
    pub(super) me: u32,
    pub(super) pairs: u32,
    pub(super) data: BufferSpan,
    pub(super) temp: BufferSpan,
    /// The result comes back; before that, values were given.
    pub(super) is_end: bool,
}

impl Pairing {
    pub(super) const fn rounds(&self) -> u32 {
        let is_second = self.me % 2 == 1;
        if self.me >= 2 * self.pairs { 0 } else { 1 + (is_second && !self.is_end) as u32 }
    }

    pub(super) fn step(&self, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, data, temp, is_end, .. } = *self;
        if index > 0 {
            return None;
        }
        Some(match (me % 2, is_end) {
            (0, false) => CollStep::Send { to: me + 1, from: data },
            (0, true) => CollStep::Receive { from: me + 1, into: data },
            (_, false) if round == 0 => CollStep::Receive { from: me - 1, into: temp },
            (_, false) => {
                CollStep::Combine { from: temp, into: data, order: CombineOrder::FromFirst }
            }
            (_, true) => CollStep::Send { to: me - 1, from: data },
        })
    }
}

/// In round `k` each member exchanges what it has with the one of which the number
/// differs in bit `k`; keeps the order. For a power of two of members; log2 P deep.
#[derive(Clone, Copy, Debug)]
pub struct Doubling {
    pub(super) me: u32,
    pub(super) size: u32,
    pub(super) data: BufferSpan,
    pub(super) temp: BufferSpan,
}

impl Doubling {
    pub(super) const fn rounds(&self) -> u32 {
        if self.size == 1 { 0 } else { self.size.trailing_zeros() + 1 }
    }

    pub(super) fn step(&self, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, data, temp, .. } = *self;
        if round > 0 && index == 0 {
            let order = order_of(me ^ (1 << (round - 1)), me);
            let order = mutate!("coll_doubling_order": order => CombineOrder::FromFirst);
            return Some(CollStep::Combine { from: temp, into: data, order });
        }
        if round + 1 == self.rounds() {
            return None;
        }
        let partner = me ^ (1 << round);
        match index - u32::from(round > 0) {
            0 => Some(CollStep::Send { to: partner, from: data }),
            1 => Some(CollStep::Receive { from: partner, into: temp }),
            _ => None,
        }
    }
}

/// In each round a member gives half of its blocks to a partner, and combines the
/// other half with the partner's; at the end it has its own block. For a power of two
/// of members, and operations that commute; log2 P deep, and each byte is sent once.
#[derive(Clone, Copy, Debug)]
pub struct Halving {
    pub(super) me: u32,
    pub(super) size: u32,
    pub(super) data: BufferSpan,
    pub(super) temp: BufferSpan,
    pub(super) blocks: Blocks,
}

impl Halving {
    pub(super) const fn rounds(&self) -> u32 {
        if self.size == 1 { 0 } else { self.size.trailing_zeros() + 1 }
    }

    pub(super) fn step(&self, tables: &CollTables<'_>, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, size, data, temp, blocks } = *self;
        let half_of = |of: u32, round: u32| -> Range<usize> {
            let half = size >> (round + 1);
            let first = of & !(half - 1);
            blocks.run(tables, first, first + half)
        };
        if round > 0 && index == 0 {
            let (kept, partner) = (half_of(me, round - 1), me ^ (size >> round));
            let (from, into) = (temp.part(kept.clone()), data.part(kept));
            return Some(CollStep::Combine { from, into, order: order_of(partner, me) });
        }
        if round + 1 == self.rounds() {
            return None;
        }
        let partner = me ^ (size >> (round + 1));
        match index - u32::from(round > 0) {
            0 => Some(CollStep::Send { to: partner, from: data.part(half_of(partner, round)) }),
            1 => Some(CollStep::Receive { from: partner, into: temp.part(half_of(me, round)) }),
            _ => None,
        }
    }
}

/// Each block goes round the ring, and each member adds its own value; at the end a
/// member has the block after its own. For operations that commute; P - 1 deep, with
/// the least bytes.
#[derive(Clone, Copy, Debug)]
pub struct RingReduce {
    pub(super) me: u32,
    pub(super) size: u32,
    pub(super) data: BufferSpan,
    pub(super) temp: BufferSpan,
    pub(super) blocks: Blocks,
}

impl RingReduce {
    pub(super) const fn rounds(&self) -> u32 {
        if self.size == 1 { 0 } else { self.size }
    }

    pub(super) fn step(&self, tables: &CollTables<'_>, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, size, data, temp, blocks } = *self;
        let of = |back: u32| blocks.range(tables, minus(me, back, size));
        // All blocks have the same place in `temp`, which is as long as the longest.
        let temp_of = |block: &Range<usize>| temp.part(0..block.len());
        if round > 0 && index == 0 {
            let block = of(round);
            let (from, into) = (temp_of(&block), data.part(block));
            return Some(CollStep::Combine { from, into, order: CombineOrder::FromFirst });
        }
        if round + 1 == size {
            return None;
        }
        match index - u32::from(round > 0) {
            0 => Some(CollStep::Send { to: plus(me, 1, size), from: data.part(of(round)) }),
            1 => {
                let into = temp_of(&of(round + 1));
                Some(CollStep::Receive { from: minus(me, 1, size), into })
            }
            _ => None,
        }
    }
}

/// Each member sends to every other one that one's block, and combines what it gets
/// in the order of the members: the values of lower ones in `result`, and those of
/// higher ones in `high`. P - 1 deep, for any operation.
#[derive(Clone, Copy, Debug)]
pub struct PairwiseReduce {
    pub(super) me: u32,
    pub(super) size: u32,
    pub(super) input: BufferSpan,
    pub(super) blocks: Blocks,
    pub(super) result: BufferSpan,
    pub(super) temp: BufferSpan,
    pub(super) high: BufferSpan,
}

impl PairwiseReduce {
    pub(super) const fn rounds(&self) -> u32 {
        self.size
    }

    pub(super) fn step(&self, tables: &CollTables<'_>, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, size, input, blocks, result, temp, high } = *self;
        let block_of = |member: u32| input.part(blocks.range(tables, member));
        let locals = if round == 0 { 1 } else { 1 + u32::from(round + 1 == size && me + 1 < size) };
        if index < locals {
            let order = CombineOrder::FromFirst;
            return Some(match (round, index) {
                (0, _) => CollStep::Copy { from: block_of(me), to: result },
                (_, 0) if round <= me => CollStep::Combine { from: temp, into: result, order },
                (_, 0) if round == me + 1 => CollStep::Copy { from: temp, to: high },
                (_, 0) => CollStep::Combine { from: temp, into: high, order },
                _ => CollStep::Combine { from: high, into: result, order: CombineOrder::IntoFirst },
            });
        }
        if round + 1 == size {
            return None;
        }
        match index - locals {
            0 => {
                let to = plus(me, round + 1, size);
                Some(CollStep::Send { to, from: block_of(to) })
            }
            1 => Some(CollStep::Receive { from: minus(me, round + 1, size), into: temp }),
            _ => None,
        }
    }
}

fn order_of(partner: u32, me: u32) -> CombineOrder {
    if partner < me { CombineOrder::FromFirst } else { CombineOrder::IntoFirst }
}
