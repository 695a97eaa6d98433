//! Collectives of short values among ranks that share memory: each member publishes its
//! value, and reads those of others, in one round. See [`row`](crate::coll::row).

use super::blocks::{Blocks, CollTables};
use super::step::{BufferSpan, CollBuffer, CollStep, CombineOrder};
use core::ops::Range;

/// One member's part: it publishes a value, if others need one of it, and then takes the
/// values of some members in their order.
///
/// All members combine the values in the same order, so also a sum of floats is the same
/// at all, and the operation need not commute.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    pub(super) size: u32,
    pub(super) sent: Option<BufferSpan>,
    /// The first member whose value is taken, and the one behind the last.
    pub(super) from: (u32, u32),
    /// A member whose value is not taken.
    pub(super) except: Option<u32>,
    pub(super) part: ValuePart,
    pub(super) into: ValueUse,
    /// How many collectives before this one all members have ended one, when this member ends
    /// this one; `None`: not known.
    pub(super) all_left: Option<u64>,
}

/// Which bytes of a published value a member takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValuePart {
    /// All.
    Whole,
    /// From this byte on; the value has so many bytes.
    From { at: usize, of: usize },
}

/// What a member does with the values that it takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValueUse {
    /// It only waits for them.
    Nothing,
    /// A block of the output for each.
    Block(Blocks),
    /// There is only one.
    Copy(BufferSpan),
    /// The first is copied, and the others are combined with it.
    Combine(BufferSpan),
}

impl Published {
    /// Takes the values of these members.
    pub(super) const fn new(size: u32, sent: Option<BufferSpan>, from: Range<u32>) -> Self {
        // Each of the values says that its member has ended the collective before.
        let all_left = if from.end - from.start == size { Some(1) } else { None };
        let from = (from.start, from.end);
        let (part, into) = (ValuePart::Whole, ValueUse::Nothing);
        Self { size, sent, from, except: None, part, into, all_left }
    }

    pub(super) const fn rounds(&self) -> u32 {
        1
    }

    /// The step number `index` of this member. `None`: there are no more.
    #[inline]
    pub fn step(&self, tables: &CollTables<'_>, index: u32) -> Option<CollStep> {
        let (first, end) = self.from;
        let count = end - first;
        if index == 0 {
            return Some(CollStep::Enter { from: self.sent });
        }
        if index > count {
            let all_left = self.all_left;
            return (index == count + 1).then_some(CollStep::Leave { all_left });
        }
        let member = first + index - 1;
        let order = CombineOrder::IntoFirst;
        let (into, combined) = match self.into {
            _ if self.except == Some(member) => (BufferSpan::EMPTY, None),
            ValueUse::Nothing => (BufferSpan::EMPTY, None),
            ValueUse::Block(blocks) => {
                let range = blocks.range(tables, member);
                let (at, len) = (range.start, range.len());
                (BufferSpan { buffer: CollBuffer::Output, at, len }, None)
            }
            ValueUse::Copy(span) => (span, None),
            ValueUse::Combine(span) => (span, (member > first).then_some(order)),
        };
        let (at, value_bytes) = match self.part {
            _ if self.except == Some(member) => (0, None),
            ValuePart::Whole => (0, Some(into.len)),
            ValuePart::From { at, of } => (at, Some(of)),
        };
        Some(CollStep::Take { member, at, value_bytes, into, combined })
    }
}
