//! Gather and scatter: one block of each member, at one of them. The trees are for
//! blocks of one length, of which the inner members know the places; the flat forms
//! are for any blocks.
//!
//! A subtree has the numbers `first .. end`, counted from the root. In the root's
//! buffer the blocks lie in the order of the group, so the blocks of one subtree may
//! wrap around its end: then they travel in two messages.

use super::blocks::{Blocks, CollTables};
use super::peers::{Binomial, plus};
use super::step::{BufferSpan, CollBuffer, CollStep};
use crate::mutate;
use core::ops::Range;

/// A binomial tree for blocks of one length. log2 P deep; the blocks of inner members
/// lie in the scratch buffer meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct RootedTree {
    /// Numbers count from the root.
    pub(super) at: Binomial,
    pub(super) root: u32,
    pub(super) bytes: usize,
    pub(super) is_scatter: bool,
    /// The root's own block is in its place already.
    pub(super) in_place: bool,
}

impl RootedTree {
    pub(super) const fn rounds(&self) -> u32 {
        2
    }

    /// Bytes of the scratch buffer.
    pub(super) const fn scratch_bytes(&self) -> usize {
        let count = self.at.end() - self.at.number;
        if self.at.number == 0 || count == 1 { 0 } else { count as usize * self.bytes }
    }

    /// The buffer with this member's own block.
    fn own(&self) -> BufferSpan {
        let buffer = if self.is_scatter { CollBuffer::Output } else { CollBuffer::Input };
        BufferSpan::first(buffer, self.bytes)
    }

    /// The blocks of the numbers `range` at this member; the second part is empty
    /// unless they wrap around at the root.
    fn parts(&self, range: Range<u32>) -> [BufferSpan; 2] {
        let Self { at, root, bytes, .. } = *self;
        let bytes_of = |from: u32, to: u32| from as usize * bytes..to as usize * bytes;
        if at.number > 0 {
            if at.end() - at.number == 1 {
                return [self.own(), BufferSpan::EMPTY];
            }
            let whole = BufferSpan::scratch(0, self.scratch_bytes());
            // The other end of a message to or from the root has two parts, too.
            let split = self.split(&range);
            let of = |from, to| whole.part(bytes_of(from - at.number, to - at.number));
            return [of(range.start, split), of(split, range.end)];
        }
        let buffer = if self.is_scatter { CollBuffer::Input } else { CollBuffer::Output };
        let whole = BufferSpan::first(buffer, at.size as usize * bytes);
        let split = self.split(&range);
        let first = plus(range.start, root, at.size);
        let count = split - range.start;
        let second = whole.part(bytes_of(0, range.end - split));
        [whole.part(bytes_of(first, first + count)), second]
    }

    /// The first number after those that do not wrap around in the order of the group.
    fn split(&self, range: &Range<u32>) -> u32 {
        let until = self.at.size - self.root;
        let wraps = range.start < until && until < range.end;
        if wraps { until } else { range.end }
    }

    /// The number of messages that carry these numbers' blocks to or from `parent`.
    fn messages(&self, parent: u32, range: &Range<u32>) -> u32 {
        let is_split = parent == 0 && self.split(range) < range.end;
        1 + u32::from(is_split)
    }

    fn part_of(&self, parent: u32, range: Range<u32>, index: u32) -> BufferSpan {
        let [first, second] = self.parts(range.clone());
        match (self.messages(parent, &range), index) {
            (1, _) => BufferSpan { len: first.len + second.len, ..first },
            (_, 0) => first,
            _ => second,
        }
    }

    fn with_parent(&self, index: u32) -> Option<(u32, BufferSpan)> {
        let parent = self.at.parent()?;
        let range = self.at.number..self.at.end();
        let is_one = index < self.messages(parent, &range);
        is_one.then(|| (parent, self.part_of(parent, range, index)))
    }

    /// The message number `index` of all those to or from children, the largest
    /// subtree first.
    fn with_children(&self, mut index: u32) -> Option<(u32, BufferSpan)> {
        for child in (0..self.at.children()).rev() {
            let number = self.at.child(child);
            let range = number..Binomial { number, ..self.at }.end();
            let messages = self.messages(self.at.number, &range);
            if index < messages {
                return Some((number, self.part_of(self.at.number, range, index)));
            }
            index -= messages;
        }
        None
    }

    /// The copy of this member's own block, unless it is in its place.
    fn local(&self) -> Option<CollStep> {
        let is_leaf = self.at.end() - self.at.number == 1;
        if self.at.number > 0 && is_leaf || self.at.number == 0 && self.in_place {
            return None;
        }
        let kept = self.parts(self.at.number..self.at.number + 1)[0];
        Some(if self.is_scatter {
            CollStep::Copy { from: kept, to: self.own() }
        } else {
            CollStep::Copy { from: self.own(), to: kept }
        })
    }

    pub(super) fn step(&self, round: u32, index: u32) -> Option<CollStep> {
        let into = |(from, into)| CollStep::Receive { from, into };
        let send = |(to, from)| CollStep::Send { to, from };
        match (self.is_scatter, round) {
            (true, 0) => self.with_parent(index).map(into),
            (true, _) | (false, 0) => {
                let local = self.local();
                if index == 0 && local.is_some() {
                    return local;
                }
                let message = self.with_children(index - u32::from(local.is_some()))?;
                Some(if self.is_scatter { send(message) } else { into(message) })
            }
            (false, _) => self.with_parent(index).map(send),
        }
    }
}

/// The root exchanges with each member itself, some of them at a time.
#[derive(Clone, Copy, Debug)]
pub struct RootedFlat {
    pub(super) me: u32,
    pub(super) root: u32,
    pub(super) size: u32,
    /// The blocks of the root's buffer.
    pub(super) blocks: Blocks,
    /// Bytes of this member's block.
    pub(super) own_bytes: usize,
    pub(super) is_scatter: bool,
    /// The root's own block is in its place already.
    pub(super) in_place: bool,
    /// The root's buffer, if it is not the one of the program.
    pub(super) at: Option<BufferSpan>,
    /// This member's block, if it is not the one of the program.
    pub(super) own: Option<BufferSpan>,
}

impl RootedFlat {
    pub(super) const fn rounds(&self) -> u32 {
        if self.me == self.root { 1 + (self.size - 1).div_ceil(AT_ONCE) } else { 1 }
    }

    pub(super) fn step(&self, tables: &CollTables<'_>, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, root, size, blocks, own_bytes, is_scatter, in_place, at, own } = *self;
        let (near, far) = match is_scatter {
            true => (CollBuffer::Output, CollBuffer::Input),
            false => (CollBuffer::Input, CollBuffer::Output),
        };
        let own = own.unwrap_or(BufferSpan::first(near, own_bytes));
        if me != root {
            return (index == 0).then_some(match is_scatter {
                true => CollStep::Receive { from: root, into: own },
                false => CollStep::Send { to: root, from: own },
            });
        }
        let block = |member| {
            let range = blocks.range(tables, member);
            match at {
                Some(at) => at.part(range),
                None => BufferSpan { buffer: far, at: range.start, len: range.len() },
            }
        };
        if round == 0 {
            let (from, to) = if is_scatter { (block(me), own) } else { (own, block(me)) };
            let len = from.len.min(to.len);
            let (from, to) = (from.part(0..len), to.part(0..len));
            return (index == 0 && !in_place).then_some(CollStep::Copy { from, to });
        }
        let distance = (round - 1) * AT_ONCE + index + 1;
        if index >= AT_ONCE || distance >= size {
            return None;
        }
        let member = plus(root, distance, size);
        let at = block(mutate!("coll_flat_block": member => me));
        Some(match is_scatter {
            true => CollStep::Send { to: member, from: at },
            false => CollStep::Receive { from: member, into: at },
        })
    }
}

/// Members with which one exchanges messages in a round, in a flat exchange and in a pairwise one.
pub(super) const AT_ONCE: u32 = 16;
