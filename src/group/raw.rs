//! Collectives on memory that is given by address, with lengths in bytes: for programs of
//! other languages, whose types are known at run time.
//!
//! A call here makes the plan of a collective. It is then carried out by
//! [`RawCollective::run`], or begun by [`RawCollective::begin`].

use super::call::{GroupCall, check_len, total_of};
use super::handle::Group;
use super::operation::{Operation, combine_of};
use crate::{Error, Plain};
use std::fmt;
use tsumugi_core::coll::CollError;
use tsumugi_core::coll::schedule::{Block, Blocks, CollPlan, CollTables, CombineOrder, Elements};
use tsumugi_runtime::service::collectives::{
    CollBegun, CollCall, CollInFlight, CollOwner, CollScratch, Combine, CombineFn,
};

/// A collective of which the lengths are known.
pub struct RawCollective<'a> {
    group: &'a Group,
    steps: Steps,
}

/// What this member does.
enum Steps {
    /// A call with as many elements for each member. It is planned where it runs: a plan takes
    /// a kilobyte, which would be copied with each value that has it.
    Call { call: GroupCall<'static>, elements: Elements, room: usize },
    /// A call with blocks of different lengths, those of its input and of its output.
    Planned(Box<(CollPlan, [Vec<Block>; 2])>),
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
    ///
    /// # Errors
    ///
    /// None.
    pub fn raw_barrier(&self) -> Result<RawCollective<'_>, Error> {
        self.called(GroupCall::Barrier, bytes_of(0), 0)
    }

    /// As [`broadcast`](Self::broadcast), of `bytes` bytes of the output.
    ///
    /// # Errors
    ///
    /// There is no member `root`.
    pub fn raw_broadcast(&self, bytes: usize, root: u32) -> Result<RawCollective<'_>, Error> {
        self.called(GroupCall::Broadcast { root }, bytes_of(bytes), bytes)
    }

    /// As [`reduce`](Self::reduce). The output is used at the root alone.
    ///
    /// # Errors
    ///
    /// There is no member `root`.
    pub fn raw_reduce(&self, elements: Elements, root: u32) -> Result<RawCollective<'_>, Error> {
        self.called(GroupCall::Reduce { root }, elements, elements.count)
    }

    /// As [`allreduce`](Self::allreduce).
    ///
    /// # Errors
    ///
    /// None.
    pub fn raw_allreduce(&self, elements: Elements) -> Result<RawCollective<'_>, Error> {
        self.called(GroupCall::Allreduce, elements, elements.count)
    }

    /// As [`scan`](Self::scan), or [`exscan`](Self::exscan): then the output of the first
    /// member is not written.
    ///
    /// # Errors
    ///
    /// None.
    pub fn raw_scan(
        &self,
        elements: Elements,
        exclusive: bool,
    ) -> Result<RawCollective<'_>, Error> {
        let call = if exclusive { GroupCall::Exscan } else { GroupCall::Scan };
        self.called(call, elements, elements.count)
    }

    /// As [`reduce_scatter`](Self::reduce_scatter), with blocks of `elements.count`
    /// elements.
    ///
    /// # Errors
    ///
    /// The blocks of all members are longer than an address space.
    pub fn raw_reduce_scatter(&self, elements: Elements) -> Result<RawCollective<'_>, Error> {
        let all = Elements { count: self.all_of(elements.count)?, ..elements };
        self.called(GroupCall::ReduceScatter, all, elements.count)
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
        let all = Elements { count: total_of(counts), ..elements };
        let own = counts.get(self.rank() as usize).copied().unwrap_or(0);
        self.planned(GroupCall::ReduceScatterV { counts }, all, own)
    }

    /// As [`gather`](Self::gather), of `bytes` bytes of each member.
    ///
    /// # Errors
    ///
    /// There is no member `root`, or the blocks of all members are longer than an address space.
    pub fn raw_gather(&self, bytes: usize, root: u32) -> Result<RawCollective<'_>, Error> {
        self.called(GroupCall::Gather { root }, bytes_of(bytes), self.all_of(bytes)?)
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
        Ok(self.raw("in gather_v", plan, [Vec::new(), blocks]))
    }

    /// As [`scatter`](Self::scatter), of `bytes` bytes for each member.
    ///
    /// # Errors
    ///
    /// There is no member `root`, or the blocks of all members are longer than an address space.
    pub fn raw_scatter(&self, bytes: usize, root: u32) -> Result<RawCollective<'_>, Error> {
        self.called(GroupCall::Scatter { root }, bytes_of(self.all_of(bytes)?), bytes)
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
        Ok(self.raw("in scatter_v", plan, [blocks, Vec::new()]))
    }

    /// As [`allgather`](Self::allgather), of `bytes` bytes of each member.
    ///
    /// # Errors
    ///
    /// The blocks of all members are longer than an address space.
    pub fn raw_allgather(&self, bytes: usize) -> Result<RawCollective<'_>, Error> {
        self.called(GroupCall::Allgather, bytes_of(bytes), self.all_of(bytes)?)
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
        self.planned(GroupCall::AllgatherV { counts: lens }, bytes_of(bytes), total_of(lens))
    }

    /// As [`alltoall`](Self::alltoall), of blocks of `bytes` bytes.
    ///
    /// # Errors
    ///
    /// The blocks of all members are longer than an address space.
    pub fn raw_alltoall(&self, bytes: usize) -> Result<RawCollective<'_>, Error> {
        let all = self.all_of(bytes)?;
        self.called(GroupCall::Alltoall, bytes_of(all), all)
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
        Ok(self.raw("in alltoall_v", plan, [sent, received]))
    }

    /// A call with as many elements for each member, and with `room` elements for the result.
    #[inline]
    fn called(
        &self,
        call: GroupCall<'static>,
        elements: Elements,
        room: usize,
    ) -> Result<RawCollective<'_>, Error> {
        call.check_root(self.handle())?;
        Ok(RawCollective { group: self, steps: Steps::Call { call, elements, room } })
    }

    /// A call whose blocks follow each other, with `room` elements for the result.
    fn planned(
        &self,
        call: GroupCall<'_>,
        elements: Elements,
        room: usize,
    ) -> Result<RawCollective<'_>, Error> {
        let mut plan = CollPlan::default();
        let scratch = call.plan(&mut plan, self.handle(), elements, room)?;
        let steps = Steps::Planned(Box::new((plan, scratch.blocks)));
        Ok(RawCollective { group: self, steps })
    }

    /// So many of each member.
    ///
    /// # Errors
    ///
    /// [`CollError::WrongLength`]: all of them are more than an address space has bytes.
    fn all_of(&self, each: usize) -> Result<usize, Error> {
        let size = self.size() as usize;
        let too_long = CollError::WrongLength { len: each, needed: usize::MAX / size };
        each.checked_mul(size).ok_or(Error::Coll(too_long))
    }

    fn raw(
        &self,
        name: &'static str,
        mut plan: CollPlan,
        blocks: [Vec<Block>; 2],
    ) -> RawCollective<'_> {
        plan.set_name(name);
        RawCollective { group: self, steps: Steps::Planned(Box::new((plan, blocks))) }
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
        match self.steps {
            Steps::Call { call, elements, room } => {
                let mut plan = CollPlan::default();
                call.plan(&mut plan, handle, elements, room)?;
                let tables = handle.tables();
                // SAFETY: the caller's.
                unsafe { handle.run_with_scratch(&plan, &tables, input, output, combine) }
            }
            Steps::Planned(planned) => {
                let (plan, [sent, received]) = &*planned;
                let tables = CollTables { sent, received, ..handle.tables() };
                // SAFETY: the caller's.
                unsafe { handle.run_with_scratch(plan, &tables, input, output, combine) }
            }
        }
    }

    /// Begins the collective, which goes on by itself, also if the result is dropped. Calls
    /// `busy`, and lets others run, while the rank has no room for another operation; one
    /// that has ended takes room until its result is taken.
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
        mut busy: impl FnMut(),
    ) -> Result<StartedCollective, Error> {
        let (handle, combines) = (self.group.handle(), combine.is_some());
        let mut owner = CombineOnly(combine);
        loop {
            let (plan, scratch) = match &self.steps {
                Steps::Call { call, elements, room } => {
                    let mut plan = CollPlan::default();
                    let scratch = call.plan(&mut plan, handle, *elements, *room)?;
                    (plan, scratch)
                }
                Steps::Planned(planned) => {
                    (planned.0.clone(), CollScratch::of_blocks(planned.1.clone()))
                }
            };
            let call = CollCall { plan, scratch, input, output, combines };
            // SAFETY: the caller's.
            match unsafe { handle.begin_owned(call, owner) } {
                Ok(CollBegun::Ended(result)) => {
                    return result.map(|()| StartedCollective(None));
                }
                Ok(CollBegun::InFlight(one)) => return Ok(StartedCollective(Some(one.detach()))),
                Err((back, _)) => {
                    handle.make_progress();
                    busy();
                    tsumugi_ult::yield_now();
                    owner = back;
                }
            }
        }
    }
}

/// Bytes, as elements.
const fn bytes_of(count: usize) -> Elements {
    Elements { count, bytes: 1, commutes: true }
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

    /// Does the same; reports name the call that has begun the collective.
    ///
    /// # Errors
    ///
    /// Those of [`RawCollective::run`].
    pub fn wait_named(self, call: &'static str) -> Result<(), Error> {
        self.0.map_or(Ok(()), |one| one.wait_named(call))
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
