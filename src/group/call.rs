//! The calls of a group: the lengths that each needs, and its plan. A blocking call and an
//! operation as a value have the same plan.

use crate::Error;
use tsumugi_core::coll::CollError;
use tsumugi_core::coll::schedule::{
    Block, Blocks, BufferSpan, CollBuffer, CollPlan, CollTables, Elements,
};
use tsumugi_runtime::service::collectives::{CollScratch, GroupHandle};

/// A collective, with its arguments except for the values.
#[derive(Clone, Copy, Debug)]
pub(super) enum GroupCall<'c> {
    Barrier,
    Broadcast { root: u32 },
    Reduce { root: u32 },
    Allreduce,
    Scan,
    Exscan,
    Gather { root: u32 },
    GatherV { root: u32, counts: &'c [usize] },
    Scatter { root: u32 },
    ScatterV { root: u32, counts: &'c [usize] },
    Allgather,
    AllgatherV { counts: &'c [usize] },
    Alltoall,
    AlltoallV { sent: &'c [usize], received: &'c [usize] },
    ReduceScatter,
    ReduceScatterV { counts: &'c [usize] },
}

impl GroupCall<'_> {
    /// The name in reports.
    const fn name(&self) -> &'static str {
        match self {
            Self::Barrier => "in group barrier",
            Self::Broadcast { .. } => "in broadcast",
            Self::Reduce { .. } => "in reduce",
            Self::Allreduce => "in allreduce",
            Self::Scan => "in scan",
            Self::Exscan => "in exscan",
            Self::Gather { .. } => "in gather",
            Self::GatherV { .. } => "in gather_v",
            Self::Scatter { .. } => "in scatter",
            Self::ScatterV { .. } => "in scatter_v",
            Self::Allgather => "in allgather",
            Self::AllgatherV { .. } => "in allgather_v",
            Self::Alltoall => "in alltoall",
            Self::AlltoallV { .. } => "in alltoall_v",
            Self::ReduceScatter => "in reduce_scatter",
            Self::ReduceScatterV { .. } => "in reduce_scatter_v",
        }
    }
}

impl GroupCall<'_> {
    /// Checks the root, if the call has one.
    ///
    /// # Errors
    ///
    /// There is no such root.
    #[inline]
    pub(super) fn check_root(&self, handle: &GroupHandle) -> Result<(), Error> {
        match *self {
            Self::Broadcast { root }
            | Self::Reduce { root }
            | Self::Gather { root }
            | Self::Scatter { root } => handle.root(root).map(drop),
            _ => Ok(()),
        }
    }

    /// Plans the call of a member, with `elements` as this member's values, and with room for
    /// `room` values of the result if that lies elsewhere. `plan` is empty: it takes a kilobyte,
    /// which would be copied with each value that has it. Returns the tables of blocks, filled.
    ///
    /// # Errors
    ///
    /// There is no such root, or a length does not fit: then this rank has taken no part.
    #[inline]
    pub(super) fn plan(
        self,
        plan: &mut CollPlan,
        handle: &GroupHandle,
        elements: Elements,
        room: usize,
    ) -> Result<CollScratch, Error> {
        let (member, view) = (handle.member(), || handle.view());
        let (me, size) = (handle.me(), handle.size() as usize);
        let (len, total, bytes) = (elements.count, elements.total(), elements.bytes);
        let mut scratch = CollScratch::default();
        let choice = handle.choice();
        match self {
            Self::Barrier => choice.barrier(plan, member, view()),
            Self::Broadcast { root } => {
                choice.broadcast(plan, member, view(), handle.root(root)?, total)
            }
            Self::Reduce { root } => {
                choice.reduce(plan, member, view(), handle.root(root)?, elements)
            }
            Self::Allreduce => choice.allreduce(plan, member, view(), elements),
            Self::Scan => choice.scan(plan, member, elements, false),
            Self::Exscan => choice.scan(plan, member, elements, true),
            Self::Gather { root } => {
                let root = handle.root(root)?;
                if me == root.root {
                    check_len(room, len.saturating_mul(size))?;
                }
                choice.rooted(plan, member, root, total, false, false)
            }
            Self::GatherV { root, counts } => {
                let root = handle.root(root)?.root;
                if me == root {
                    scratch = blocks_of(handle, [None, Some(counts)], bytes)?;
                    check_len(len, counts[root as usize])?;
                    check_len(room, total_of(counts))?;
                }
                plan.rooted_flat(member, root, Blocks::Received, total, false, false);
            }
            Self::Scatter { root } => {
                let root = handle.root(root)?;
                if me == root.root {
                    check_len(len, room.saturating_mul(size))?;
                }
                choice.rooted(plan, member, root, room * bytes, true, false)
            }
            Self::ScatterV { root, counts } => {
                let root = handle.root(root)?.root;
                if me == root {
                    scratch = blocks_of(handle, [Some(counts), None], bytes)?;
                    check_len(room, counts[root as usize])?;
                    check_len(len, total_of(counts))?;
                }
                plan.rooted_flat(member, root, Blocks::Sent, room * bytes, true, false);
            }
            Self::Allgather => {
                check_len(room, len.saturating_mul(size))?;
                let own = BufferSpan::first(CollBuffer::Input, total);
                let (at, blocks) = (me as usize * total, Blocks::Even { bytes: total });
                choice.allgather(plan, member, own, at, room * bytes, blocks)
            }
            Self::AllgatherV { counts } => {
                scratch = blocks_of(handle, [None, Some(counts)], bytes)?;
                check_len(len, counts[me as usize])?;
                check_len(room, total_of(counts))?;
                let own = BufferSpan::first(CollBuffer::Input, total);
                let at = scratch.blocks[1][me as usize].at;
                choice.allgather(plan, member, own, at, room * bytes, Blocks::Received)
            }
            Self::Alltoall => {
                check_len(len, len / size * size)?;
                check_len(room, len)?;
                choice.alltoall(plan, member, total / size)
            }
            Self::AlltoallV { sent, received } => {
                scratch = blocks_of(handle, [Some(sent), Some(received)], bytes)?;
                check_len(len, total_of(sent))?;
                check_len(room, total_of(received))?;
                check_len(received[me as usize], sent[me as usize])?;
                plan.alltoall(member, Blocks::Sent, Blocks::Received);
            }
            Self::ReduceScatter => {
                let own = len / size;
                check_len(len, own * size)?;
                check_len(room, own)?;
                let block = own * bytes;
                let (at, blocks) = (me as usize * block, Blocks::Even { bytes: block });
                choice.reduce_scatter(plan, member, elements, blocks, at..at + block)
            }
            Self::ReduceScatterV { counts } => {
                scratch = blocks_of(handle, [Some(counts), None], bytes)?;
                check_len(len, total_of(counts))?;
                check_len(room, counts[me as usize])?;
                let Block { at, len, .. } = scratch.blocks[0][me as usize];
                choice.reduce_scatter(plan, member, elements, Blocks::Sent, at..at + len)
            }
        }
        plan.set_name(self.name());
        Ok(scratch)
    }
}

/// Tables of blocks that follow each other, of values of `bytes` bytes.
///
/// # Errors
///
/// Counts are not as many as members.
fn blocks_of(
    handle: &GroupHandle,
    counts: [Option<&[usize]>; 2],
    bytes: usize,
) -> Result<CollScratch, Error> {
    let size = handle.size() as usize;
    counts.iter().flatten().try_for_each(|counts| check_len(counts.len(), size))?;
    let mut scratch = CollScratch::of_blocks(handle.take_blocks());
    for (blocks, counts) in scratch.blocks.iter_mut().zip(counts) {
        let counts = counts.unwrap_or(&[]);
        blocks.clear();
        // So that later calls find room, with whichever of the tables.
        blocks.reserve_exact(size);
        blocks.resize(counts.len(), Block::default());
        Block::fill(blocks, counts.iter().map(|count| count.saturating_mul(bytes)), None);
    }
    Ok(scratch)
}

/// The sum of counts that a program has given. It does not wrap: a sum that exceeds all
/// memory is the length of no buffer.
pub(super) fn total_of(counts: &[usize]) -> usize {
    counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

/// The tables of a plan.
pub(super) fn tables_of<'s>(handle: &'s GroupHandle, scratch: &'s CollScratch) -> CollTables<'s> {
    let [sent, received] = &scratch.blocks;
    CollTables { sent, received, ..handle.tables() }
}

/// # Errors
///
/// [`CollError::WrongLength`], unless an argument has as many elements as it needs.
pub(super) fn check_len(len: usize, needed: usize) -> Result<(), Error> {
    match len == needed {
        true => Ok(()),
        false => Err(Error::Coll(CollError::WrongLength { len, needed })),
    }
}
