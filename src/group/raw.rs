//! Collectives on memory that is given by address, with lengths in bytes: for programs of
//! other languages, whose types are known at run time.
//!
//! A call here makes the plan of a collective. It is then carried out by
//! [`RawCollective::run`], or begun by [`RawCollective::begin`].

use super::call::{THRESHOLDS, check_len, total_of};
use super::handle::Group;
use super::operation::{Operation, combine_of};
use crate::{Error, Plain};
use std::fmt;
use tsumugi_core::coll::schedule::{
    Block, Blocks, BufferSpan, CollBuffer, CollPlan, CollTables, CombineOrder, Elements,
};
use tsumugi_runtime::service::collectives::{
    CollBegun, CollCall, CollInFlight, CollOwner, CollScratch, Combine, CombineFn,
};

/// A collective of which the lengths are known.
pub struct RawCollective<'a> {
    group: &'a Group,
    plan: CollPlan,
    /// The blocks of the input and of the output, if their lengths differ.
    blocks: [Vec<Block>; 2],
}

/// Blocks of different lengths, one for each member: their bytes, and where they begin.
#[derive(Clone, Copy, Debug)]
pub struct RawBlocks<'a> {
    /// The bytes of each block.
    pub bytes: &'a [usize],
    /// The offset of each block in its buffer; `None`: they follow each other.
    pub places: Option<&'a [usize]>,
}

/// The function that combines elements of `T` by an operation. The box of an operation
/// without a value has no bytes.
///
/// # Safety
///
/// The function is called with memory of elements of `T`, as a
/// [`CombineFn`] gets it.
pub unsafe fn raw_combine<T: Plain>(
    operation: impl Operation<T> + 'static,
) -> Box<CombineFn<'static>> {
    Box::new(combine_of(operation))
}

impl Group {
    /// As [`barrier`](Self::barrier). No buffers.
    pub fn raw_barrier(&self) -> RawCollective<'_> {
        self.raw(
            "in group barrier",
            THRESHOLDS.barrier(self.handle().member(), self.handle().view()),
        )
    }

    /// As [`broadcast`](Self::broadcast), of `bytes` bytes of the output.
    ///
    /// # Errors
    ///
    /// There is no member `root`.
    pub fn raw_broadcast(&self, bytes: usize, root: u32) -> Result<RawCollective<'_>, Error> {
        let (root, handle) = (self.handle().root(root)?, self.handle());
        Ok(self
            .raw("in broadcast", THRESHOLDS.broadcast(handle.member(), handle.view(), root, bytes)))
    }

    /// As [`reduce`](Self::reduce). The output is used at the root alone.
    ///
    /// # Errors
    ///
    /// There is no member `root`.
    pub fn raw_reduce(&self, elements: Elements, root: u32) -> Result<RawCollective<'_>, Error> {
        let (root, handle) = (self.handle().root(root)?, self.handle());
        Ok(self.raw("in reduce", THRESHOLDS.reduce(handle.member(), handle.view(), root, elements)))
    }

    /// As [`allreduce`](Self::allreduce).
    pub fn raw_allreduce(&self, elements: Elements) -> RawCollective<'_> {
        self.raw(
            "in allreduce",
            THRESHOLDS.allreduce(self.handle().member(), self.handle().view(), elements),
        )
    }

    /// As [`scan`](Self::scan), or [`exscan`](Self::exscan): then the output of the first
    /// member is not written.
    pub fn raw_scan(&self, elements: Elements, exclusive: bool) -> RawCollective<'_> {
        let name = if exclusive { "in exscan" } else { "in scan" };
        self.raw(name, THRESHOLDS.scan(self.handle().member(), elements, exclusive))
    }

    /// As [`reduce_scatter`](Self::reduce_scatter), with blocks of `elements.count`
    /// elements.
    pub fn raw_reduce_scatter(&self, elements: Elements) -> RawCollective<'_> {
        let bytes = elements.total();
        let own = self.rank() as usize * bytes;
        let all = Elements { count: elements.count * self.size() as usize, ..elements };
        let (member, blocks) = (self.handle().member(), Blocks::Even { bytes });
        self.raw(
            "in reduce_scatter",
            THRESHOLDS.reduce_scatter(member, all, blocks, own..own + bytes),
        )
    }

    /// As [`reduce_scatter_v`](Self::reduce_scatter_v), with `counts` of elements; the
    /// count of `elements` is not used.
    ///
    /// # Errors
    ///
    /// `counts` is not as long as the group.
    pub fn raw_reduce_scatter_v(
        &self,
        elements: Elements,
        counts: &[usize],
    ) -> Result<RawCollective<'_>, Error> {
        check_len(counts.len(), self.size() as usize)?;
        let lens = counts.iter().map(|count| count.saturating_mul(elements.bytes));
        let mut blocks = vec![Block::default(); counts.len()];
        Block::fill(&mut blocks, lens, None);
        let own = blocks[self.rank() as usize];
        let all = Elements { count: total_of(counts), ..elements };
        let range = own.at..own.at + own.len;
        let plan = THRESHOLDS.reduce_scatter(self.handle().member(), all, Blocks::Sent, range);
        Ok(RawCollective { blocks: [blocks, Vec::new()], ..self.raw("in reduce_scatter_v", plan) })
    }

    /// As [`gather`](Self::gather), of `bytes` bytes of each member.
    ///
    /// # Errors
    ///
    /// There is no member `root`.
    pub fn raw_gather(&self, bytes: usize, root: u32) -> Result<RawCollective<'_>, Error> {
        let root = self.handle().root(root)?;
        Ok(self
            .raw("in gather", THRESHOLDS.rooted(self.handle().member(), root, bytes, false, false)))
    }

    /// As [`gather_v`](Self::gather_v), of `bytes` bytes of this member; `blocks` is used
    /// at the root alone.
    ///
    /// # Errors
    ///
    /// There is no member `root`; `blocks` does not have a block for each member, or this
    /// member's has not `bytes` bytes.
    pub fn raw_gather_v(
        &self,
        bytes: usize,
        blocks: RawBlocks<'_>,
        root: u32,
    ) -> Result<RawCollective<'_>, Error> {
        let blocks = self.blocks_of_root(bytes, blocks, root)?;
        let (member, mut plan) = (self.handle().member(), CollPlan::default());
        plan.rooted_flat(member, root, Blocks::Received, bytes, false, false);
        Ok(RawCollective { blocks: [Vec::new(), blocks], ..self.raw("in gather_v", plan) })
    }

    /// As [`scatter`](Self::scatter), of `bytes` bytes for each member.
    ///
    /// # Errors
    ///
    /// There is no member `root`.
    pub fn raw_scatter(&self, bytes: usize, root: u32) -> Result<RawCollective<'_>, Error> {
        let root = self.handle().root(root)?;
        Ok(self
            .raw("in scatter", THRESHOLDS.rooted(self.handle().member(), root, bytes, true, false)))
    }

    /// As [`scatter_v`](Self::scatter_v), of `bytes` bytes for this member; `blocks` is
    /// used at the root alone.
    ///
    /// # Errors
    ///
    /// Those of [`raw_gather_v`](Self::raw_gather_v).
    pub fn raw_scatter_v(
        &self,
        bytes: usize,
        blocks: RawBlocks<'_>,
        root: u32,
    ) -> Result<RawCollective<'_>, Error> {
        let blocks = self.blocks_of_root(bytes, blocks, root)?;
        let (member, mut plan) = (self.handle().member(), CollPlan::default());
        plan.rooted_flat(member, root, Blocks::Sent, bytes, true, false);
        Ok(RawCollective { blocks: [blocks, Vec::new()], ..self.raw("in scatter_v", plan) })
    }

    /// As [`allgather`](Self::allgather), of `bytes` bytes of each member.
    pub fn raw_allgather(&self, bytes: usize) -> RawCollective<'_> {
        let own = BufferSpan::first(CollBuffer::Input, bytes);
        let (at, total) = (self.rank() as usize * bytes, self.size() as usize * bytes);
        let member = self.handle().member();
        self.raw(
            "in allgather",
            THRESHOLDS.allgather(member, own, at, total, Blocks::Even { bytes }),
        )
    }

    /// As [`allgather_v`](Self::allgather_v), of `bytes` bytes of this member. The blocks
    /// follow each other.
    ///
    /// # Errors
    ///
    /// `lens` has not a length for each member, or this member's is not `bytes`.
    pub fn raw_allgather_v(
        &self,
        bytes: usize,
        lens: &[usize],
    ) -> Result<RawCollective<'_>, Error> {
        let blocks = self.raw_blocks(RawBlocks { bytes: lens, places: None })?;
        let block = blocks[self.rank() as usize];
        check_len(bytes, block.len)?;
        let own = BufferSpan::first(CollBuffer::Input, bytes);
        let (member, total) = (self.handle().member(), total_of(lens));
        let plan = THRESHOLDS.allgather(member, own, block.at, total, Blocks::Received);
        Ok(RawCollective { blocks: [Vec::new(), blocks], ..self.raw("in allgather_v", plan) })
    }

    /// As [`alltoall`](Self::alltoall), of blocks of `bytes` bytes.
    pub fn raw_alltoall(&self, bytes: usize) -> RawCollective<'_> {
        self.raw("in alltoall", THRESHOLDS.alltoall(self.handle().member(), bytes))
    }

    /// As [`alltoall_v`](Self::alltoall_v).
    ///
    /// # Errors
    ///
    /// There is not a block for each member, or the own ones differ in length.
    pub fn raw_alltoall_v(
        &self,
        sent: RawBlocks<'_>,
        received: RawBlocks<'_>,
    ) -> Result<RawCollective<'_>, Error> {
        let (sent, received) = (self.raw_blocks(sent)?, self.raw_blocks(received)?);
        let me = self.rank() as usize;
        check_len(received[me].len, sent[me].len)?;
        let mut plan = CollPlan::default();
        plan.alltoall(self.handle().member(), Blocks::Sent, Blocks::Received);
        Ok(RawCollective { blocks: [sent, received], ..self.raw("in alltoall_v", plan) })
    }

    fn raw(&self, name: &'static str, mut plan: CollPlan) -> RawCollective<'_> {
        plan.set_name(name);
        RawCollective { group: self, plan, blocks: Default::default() }
    }

    /// The blocks at the root, and none at other members.
    fn blocks_of_root(
        &self,
        bytes: usize,
        blocks: RawBlocks<'_>,
        root: u32,
    ) -> Result<Vec<Block>, Error> {
        if self.handle().root(root)?.root != self.rank() {
            return Ok(Vec::new());
        }
        let blocks = self.raw_blocks(blocks)?;
        check_len(bytes, blocks[root as usize].len)?;
        Ok(blocks)
    }

    fn raw_blocks(&self, of: RawBlocks<'_>) -> Result<Vec<Block>, Error> {
        let size = self.size() as usize;
        check_len(of.bytes.len(), size)?;
        check_len(of.places.map_or(size, <[usize]>::len), size)?;
        let mut blocks = vec![Block::default(); size];
        Block::fill(&mut blocks, of.bytes.iter().copied(), of.places);
        Ok(blocks)
    }
}

impl RawCollective<'_> {
    /// Takes part in the collective, and waits for its end. Blocking.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, or members have given lengths that do
    /// not fit.
    ///
    /// # Safety
    ///
    /// The buffers have the bytes of the lengths, and are not otherwise used until this
    /// returns. They do not overlap, or they are one: then the collective combines values,
    /// and not to blocks. `combine` is for elements of the length that was given.
    pub unsafe fn run(
        self,
        input: *const u8,
        output: *mut u8,
        combine: Combine<'_>,
    ) -> Result<(), Error> {
        let handle = self.group.handle();
        let [sent, received] = &self.blocks;
        let tables = CollTables { sent, received, ..handle.tables() };
        // SAFETY: the caller's.
        unsafe { handle.run_with_scratch(self.plan, &tables, input, output, combine) }
    }

    /// Begins the collective, which goes on by itself, also if the result is dropped. Lets
    /// others run while as many operations are in flight as the rank has room for.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died.
    ///
    /// # Safety
    ///
    /// That of [`run`](Self::run), until the collective has ended.
    pub unsafe fn begin(
        self,
        input: *const u8,
        output: *mut u8,
        combine: Option<Box<CombineFn<'static>>>,
    ) -> Result<StartedCollective, Error> {
        let (handle, combines) = (self.group.handle(), combine.is_some());
        let mut owner = CombineOnly(combine);
        loop {
            let (plan, scratch) = (self.plan.clone(), CollScratch::of_blocks(self.blocks.clone()));
            let call = CollCall { plan, scratch, input, output, combines };
            // SAFETY: the caller's.
            match unsafe { handle.begin_owned(call, owner) } {
                Ok(CollBegun::Ended(result)) => {
                    return result.map(|()| StartedCollective(None));
                }
                Ok(CollBegun::InFlight(one)) => return Ok(StartedCollective(Some(one.detach()))),
                Err((back, _)) => {
                    handle.make_progress();
                    tsumugi_ult::yield_now();
                    owner = back;
                }
            }
        }
    }
}

/// A collective on memory of the program that has begun. Dropped early, it goes on to its
/// end.
#[must_use = "a collective that fails says so by its result"]
pub struct StartedCollective(Option<CollInFlight<'static, CombineOnly>>);

/// The operation of a collective; the program keeps its memory.
struct CombineOnly(Option<Box<CombineFn<'static>>>);

impl CollOwner for CombineOnly {
    type Output = ();

    fn combine(&self, from: *const u8, into: *mut u8, bytes: usize, order: CombineOrder) {
        if let Some(combine) = &self.0 {
            combine(from, into, bytes, order);
        }
    }

    fn output(self) {}
}

impl StartedCollective {
    /// Whether the collective has ended; moves it on if it has not. Never waits.
    pub fn is_done(&self) -> bool {
        self.0.as_ref().is_none_or(CollInFlight::is_done)
    }

    /// Waits for the end. Blocking.
    ///
    /// # Errors
    ///
    /// Those of [`RawCollective::run`].
    pub fn wait(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), CollInFlight::wait)
    }
}

impl fmt::Debug for StartedCollective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StartedCollective({:?})", self.0)
    }
}

impl fmt::Debug for RawCollective<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawCollective({:?})", self.group)
    }
}
