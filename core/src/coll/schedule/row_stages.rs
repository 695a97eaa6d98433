//! The stages of short values, which go through the rows of the group.

use super::algorithm::Algorithm;
use super::blocks::Blocks;
use super::peers::{PeerMap, Subset};
use super::plan::{CollMember, CollPlan, Elements};
use super::published::{Published, ValuePart, ValueUse};
use super::step::{BufferSpan, CollBuffer};
use core::ops::Range;

impl CollPlan {
    fn published(&mut self, published: Published) -> &mut Self {
        self.then(Algorithm::Published(published), PeerMap::new(published.size, 0, Subset::All))
    }

    /// Waits for all members.
    pub(super) fn published_barrier(&mut self, of: CollMember) -> &mut Self {
        let sent = Some(BufferSpan::EMPTY);
        self.published(Published::new(of.size, sent, 0..of.size))
    }

    /// Waits for all members: the first one sees them all, and tells the others.
    pub(super) fn rooted_rows_barrier(&mut self, of: CollMember) -> &mut Self {
        let sent = Some(BufferSpan::EMPTY);
        self.published(Published::new(of.size, sent, all_if_root(of)))
            .published_result(of, BufferSpan::EMPTY)
    }

    /// Combines the inputs of all members at the first one, and brings the result to all: each
    /// other member reads one value, and not the values of all.
    pub(super) fn rooted_rows_allreduce(
        &mut self,
        of: CollMember,
        elements: Elements,
    ) -> &mut Self {
        let output = BufferSpan::first(CollBuffer::Output, elements.total());
        self.published_reduce(of, elements, all_if_root(of)).published_result(of, output)
    }

    /// Brings the bytes `data` of the first member, which has just read the values of all, to
    /// all.
    fn published_result(&mut self, of: CollMember, data: BufferSpan) -> &mut Self {
        // All values of the collective before were published, so all have ended the one before
        // that.
        self.published(Published { all_left: Some(2), ..broadcast(of, 0, data) })
    }

    /// Brings the bytes `data` of the root to all.
    pub(super) fn published_broadcast(
        &mut self,
        of: CollMember,
        root: u32,
        data: BufferSpan,
    ) -> &mut Self {
        self.published(broadcast(of, root, data))
    }

    /// Combines the inputs of these members to the output.
    pub(super) fn published_reduce(
        &mut self,
        of: CollMember,
        elements: Elements,
        from: Range<u32>,
    ) -> &mut Self {
        let input = BufferSpan::first(CollBuffer::Input, elements.total());
        let output = BufferSpan::first(CollBuffer::Output, elements.total());
        let into = ValueUse::Combine(output);
        self.published(Published { into, ..Published::new(of.size, Some(input), from) })
    }

    /// Combines the bytes `own` of the inputs to the output.
    pub(super) fn published_reduce_scatter(
        &mut self,
        of: CollMember,
        elements: Elements,
        own: Range<usize>,
    ) -> &mut Self {
        let input = BufferSpan::first(CollBuffer::Input, elements.total());
        let output = BufferSpan::first(CollBuffer::Output, own.len());
        let part = ValuePart::From { at: own.start, of: input.len };
        let into = ValueUse::Combine(output);
        let all = Published::new(of.size, Some(input), 0..of.size);
        self.published(Published { part, into, ..all })
    }

    /// Brings the block `own` of each member to those that take them all.
    pub(super) fn published_gather(
        &mut self,
        of: CollMember,
        own: BufferSpan,
        blocks: Blocks,
        (takes, except): (bool, Option<u32>),
    ) -> &mut Self {
        let from = if takes { 0..of.size } else { 0..0 };
        let sent = if except == Some(of.me) { BufferSpan::EMPTY } else { own };
        let into = ValueUse::Block(blocks);
        self.published(Published { into, except, ..Published::new(of.size, Some(sent), from) })
    }

    /// Brings a block of `bytes` bytes of the root to each member.
    pub(super) fn published_scatter(
        &mut self,
        of: CollMember,
        root: u32,
        bytes: usize,
        in_place: bool,
    ) -> &mut Self {
        let all = bytes * of.size as usize;
        let sent = BufferSpan::first(CollBuffer::Input, all);
        let except = (of.me == root && in_place).then_some(root);
        let sent = (of.me == root).then_some(sent);
        let part = ValuePart::From { at: of.me as usize * bytes, of: all };
        let into = ValueUse::Copy(BufferSpan::first(CollBuffer::Output, bytes));
        let one = Published::new(of.size, sent, root..root + 1);
        self.published(Published { part, into, except, ..one })
    }

    /// Exchanges blocks of `bytes` bytes of all members with all.
    pub(super) fn published_alltoall(&mut self, of: CollMember, bytes: usize) -> &mut Self {
        let all = bytes * of.size as usize;
        let sent = Some(BufferSpan::first(CollBuffer::Input, all));
        let part = ValuePart::From { at: of.me as usize * bytes, of: all };
        let into = ValueUse::Block(Blocks::Even { bytes });
        self.published(Published { part, into, ..Published::new(of.size, sent, 0..of.size) })
    }
}

/// The part of a member in a broadcast of the bytes `data` of the root.
fn broadcast(of: CollMember, root: u32, data: BufferSpan) -> Published {
    match of.me == root {
        true => Published::new(of.size, Some(data), root..root),
        false => {
            let into = ValueUse::Copy(data);
            Published { into, ..Published::new(of.size, None, root..root + 1) }
        }
    }
}

/// The first member reads the values of all, and the others none.
const fn all_if_root(of: CollMember) -> Range<u32> {
    0..if of.me == 0 { of.size } else { 0 }
}
