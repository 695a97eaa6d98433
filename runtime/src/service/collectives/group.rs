//! A group of ranks, as one of its members sees it.

use super::buffers::{CollBuffers, Combine};
use super::contexts::WORLD;
use super::exchange::Exchange;
use super::service::Collectives;
use crate::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tsumugi_core::coll::CollError;
use tsumugi_core::coll::schedule::{
    BufferSpan, CollBuffer, CollMember, CollPlan, CollTables, CollThresholds, CombineOrder,
    Elements, NodeView, RootView,
};
use tsumugi_core::mem::Rank;
use tsumugi_core::sync::{AtomicU32, Ordering};

/// A group of ranks. Cheap to clone.
#[derive(Clone)]
pub struct GroupHandle(Arc<GroupShared>);

struct GroupShared {
    service: Arc<Collectives>,
    context: u16,
    /// The members in their order; `None`: all ranks of the job.
    members: Option<Box<[Rank]>>,
    me: u32,
    size: u32,
    /// The number of the next collective.
    next: AtomicU32,
    nodes: OnceLock<Option<GroupNodes>>,
    /// The scratch buffer of the last collective, for the next one.
    scratch: Mutex<Vec<u128>>,
}

/// The nodes of a group that lies on several of them.
struct GroupNodes {
    view: NodeView,
    /// The number, in this group, of each member's node, and its place there.
    of: Box<[(u32, u32)]>,
    neighbours: Box<[u32]>,
    leaders: Box<[u32]>,
}

impl GroupHandle {
    /// The group of all ranks.
    pub(crate) fn world(service: &Arc<Collectives>) -> Self {
        let (me, size) = (service.member().rank().0, service.member().size());
        Self::with(service.clone(), WORLD, None, me, size)
    }

    fn with(
        service: Arc<Collectives>,
        context: u16,
        members: Option<Box<[Rank]>>,
        me: u32,
        size: u32,
    ) -> Self {
        service.broken().add_group(context);
        let (next, nodes) = (AtomicU32::new(0), OnceLock::new());
        let scratch = Mutex::default();
        Self(Arc::new(GroupShared { service, context, members, me, size, next, nodes, scratch }))
    }

    /// The number of members.
    pub fn size(&self) -> u32 {
        self.0.size
    }

    /// This rank's place among the members.
    pub fn me(&self) -> u32 {
        self.0.me
    }

    /// The rank of a member in the job.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    #[inline]
    pub fn rank_of(&self, member: u32) -> Rank {
        match &self.0.members {
            None if member < self.0.size => Rank(member),
            None => panic!("member {member} of {}", self.0.size),
            Some(members) => members[member as usize],
        }
    }

    /// The place of a rank among the members, if it is one.
    pub fn place_of(&self, rank: Rank) -> Option<u32> {
        match &self.0.members {
            None => (rank.0 < self.0.size).then_some(rank.0),
            Some(members) => members.iter().position(|member| *member == rank).map(|at| at as u32),
        }
    }

    /// The member that this rank is, for a plan.
    pub fn member(&self) -> CollMember {
        CollMember::of_all(self.0.me, self.0.size)
    }

    /// How the members lie on nodes, if a collective should take stages.
    pub fn view(&self) -> Option<NodeView> {
        self.nodes().map(|nodes| nodes.view)
    }

    /// Where a root is.
    ///
    /// # Errors
    ///
    /// [`CollError::NoSuchRoot`].
    pub fn root(&self, root: u32) -> Result<RootView, Error> {
        let size = self.0.size;
        if root >= size {
            return Err(Error::Coll(CollError::NoSuchRoot { root, size }));
        }
        let of = self.nodes().map(|nodes| nodes.of[root as usize]);
        let (node, place) = of.unwrap_or_default();
        Ok(RootView { root, node, place })
    }

    /// The tables of a collective with blocks of one length.
    pub fn tables(&self) -> CollTables<'_> {
        let nodes = self.nodes();
        CollTables {
            neighbours: nodes.map_or(&[], |nodes| &nodes.neighbours),
            leaders: nodes.map_or(&[], |nodes| &nodes.leaders),
            ..CollTables::default()
        }
    }

    fn nodes(&self) -> Option<&GroupNodes> {
        let several = self.0.service.member().nodes().count() > 1;
        if !several {
            return None;
        }
        self.0.nodes.get_or_init(|| self.find_nodes()).as_ref()
    }

    fn find_nodes(&self) -> Option<GroupNodes> {
        let job = self.0.service.member().nodes();
        let (mut numbers, mut of) = (std::collections::HashMap::new(), Vec::new());
        let (mut leaders, mut counts) = (Vec::new(), Vec::<u32>::new());
        for member in 0..self.0.size {
            let place = job.place(self.rank_of(member))?;
            let next = leaders.len() as u32;
            let node = *numbers.entry(place.node).or_insert(next);
            if node == next {
                leaders.push(member);
                counts.push(0);
            }
            of.push((node, counts[node as usize]));
            counts[node as usize] += 1;
        }
        let (node, place) = of[self.0.me as usize];
        let here = |member: &u32| of[*member as usize].0 == node;
        let neighbours: Box<[u32]> = (0..self.0.size).filter(here).collect();
        let view = NodeView {
            place,
            neighbours: neighbours.len() as u32,
            node,
            nodes: leaders.len() as u32,
            is_ordered: of.is_sorted(),
        };
        let view = view.of_several(self.0.size)?;
        Some(GroupNodes { view, of: of.into(), neighbours, leaders: leaders.into() })
    }

    pub(super) fn service(&self) -> &Arc<Collectives> {
        &self.0.service
    }

    pub(super) fn context(&self) -> u16 {
        self.0.context
    }

    /// The number of a collective that begins: the same at all members, because all
    /// begin their collectives in one order.
    pub(super) fn next(&self) -> u32 {
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes part in a collective, and waits for its end.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, or a member's call does not fit;
    /// [`Error::Message`]: a message could not be sent.
    ///
    /// # Safety
    ///
    /// The buffers have the bytes that the plan needs, and tables those that it names;
    /// they are not otherwise used until this returns.
    pub unsafe fn run(
        &self,
        plan: CollPlan,
        tables: &CollTables<'_>,
        buffers: &CollBuffers,
        combine: Combine<'_>,
    ) -> Result<(), Error> {
        tsumugi_ult::assert_may_block("collective");
        self.0.service.check()?;
        let mut exchange = Exchange::new(plan, self.next());
        loop {
            // SAFETY: the caller's promise.
            unsafe { exchange.post(self, tables, buffers, combine) };
            if let Some(result) = exchange.poll_done() {
                return result;
            }
            exchange.wait(self);
        }
    }

    /// Takes part in a collective, with the scratch buffer that it needs.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    ///
    /// # Safety
    ///
    /// That of [`run`](Self::run), without the scratch buffer.
    pub unsafe fn run_with_scratch(
        &self,
        plan: CollPlan,
        tables: &CollTables<'_>,
        input: *const u8,
        output: *mut u8,
        combine: Combine<'_>,
    ) -> Result<(), Error> {
        let bytes = plan.scratch_bytes();
        let mut scratch = match bytes {
            0 => Vec::new(),
            _ => std::mem::take(&mut *self.scratch()),
        };
        scratch.clear();
        scratch.reserve_exact(bytes.div_ceil(size_of::<u128>()));
        let buffers = CollBuffers { input, output, scratch: scratch.as_mut_ptr().cast() };
        // SAFETY: the caller's promise; the vector has room for so many bytes.
        let result = unsafe { self.run(plan, tables, &buffers, combine) };
        if bytes > 0 {
            *self.scratch() = scratch;
        }
        result
    }

    fn scratch(&self) -> MutexGuard<'_, Vec<u128>> {
        self.0.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Combines one word of each member for all.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub fn combine_words(
        &self,
        word: u64,
        operation: impl Fn(u64, u64) -> u64 + Send + Sync,
    ) -> Result<u64, Error> {
        let elements = Elements { count: 1, bytes: size_of::<u64>(), commutes: true };
        let plan = CollThresholds::DEFAULT.allreduce(self.member(), self.view(), elements);
        let mut scratch = [0u64; WORD_SCRATCH];
        assert!(plan.scratch_bytes() <= size_of_val(&scratch));
        let mut result = word;
        let at = &raw mut result;
        let buffers = CollBuffers {
            input: at.cast(),
            output: at.cast(),
            scratch: scratch.as_mut_ptr().cast(),
        };
        let combine = |from: *const u8, into: *mut u8, _: usize, _: CombineOrder| {
            let (from, into) = (from.cast::<u64>(), into.cast::<u64>());
            // SAFETY: words of the buffers above.
            unsafe {
                into.write_unaligned(operation(into.read_unaligned(), from.read_unaligned()))
            };
        };
        // SAFETY: local variables, of the sizes of the plan.
        unsafe { self.run(plan, &self.tables(), &buffers, Some(&combine)) }?;
        Ok(result)
    }

    /// Claims a context number that is free at all members. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), and [`CollError::NoContext`].
    pub fn claim_context(&self) -> Result<u16, Error> {
        let service = &self.0.service;
        let mut from = 0;
        loop {
            let free = service.contexts().first_free(from);
            let number = self.combine_words(free.unwrap_or(u32::MAX).into(), u64::max)? as u32;
            if number == u32::MAX {
                return Err(Error::Coll(CollError::NoContext));
            }
            // Another thread may have claimed it for another group meanwhile.
            let is_mine = service.contexts().claim(number);
            let all = self.combine_words(is_mine.into(), u64::min);
            match all {
                Ok(1) => return Ok(number as u16),
                _ if is_mine => service.contexts().free(number),
                _ => {}
            }
            all?;
            from = number + 1;
        }
    }

    /// Makes groups of the members that bring the same color; in each group the order
    /// is that of the keys, and of the places here for equal ones. `None` for a member
    /// without a color. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`claim_context`](Self::claim_context).
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Self>, Error> {
        let color = color.map_or(u64::MAX, u64::from);
        let own = [color, key.cast_unsigned()];
        let mut all = vec![[0u64; 2]; self.0.size as usize];
        let bytes = size_of_val(&own);
        let (span, total) = (BufferSpan::first(CollBuffer::Input, bytes), size_of_val(&*all));
        let blocks = tsumugi_core::coll::schedule::Blocks::Even { bytes };
        let at = self.0.me as usize * bytes;
        let plan = CollThresholds::DEFAULT.allgather(self.member(), span, at, total, blocks);
        let mut scratch = vec![0u64; plan.scratch_bytes().div_ceil(size_of::<u64>())];
        let buffers = CollBuffers {
            input: (&raw const own).cast(),
            output: all.as_mut_ptr().cast(),
            scratch: scratch.as_mut_ptr().cast(),
        };
        // SAFETY: local buffers, of the sizes of the plan.
        unsafe { self.run(plan, &self.tables(), &buffers, None) }?;
        let context = self.claim_context()?;
        let mut members: Vec<(i64, u32)> = (0..)
            .zip(&all)
            .filter(|(_, [other, _])| *other == color)
            .map(|(member, [_, key])| (key.cast_signed(), member))
            .collect();
        if color == u64::MAX {
            self.0.service.contexts().free(context.into());
            return Ok(None);
        }
        members.sort_unstable();
        let me = members.iter().position(|(_, member)| *member == self.0.me);
        let me = me.expect("this rank has this color") as u32;
        let ranks: Box<[Rank]> = members.iter().map(|(_, member)| self.rank_of(*member)).collect();
        let size = ranks.len() as u32;
        Ok(Some(Self::with(self.0.service.clone(), context, Some(ranks), me, size)))
    }
}

impl Drop for GroupShared {
    fn drop(&mut self) {
        self.service.broken().remove_group(self.context);
        self.service.contexts().free(self.context.into());
    }
}

impl fmt::Debug for GroupHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupHandle({}: member {} of {})", self.0.context, self.0.me, self.0.size)
    }
}

/// Words of scratch memory of a collective of one word: at most three parts, each at the
/// beginning of a line.
const WORD_SCRATCH: usize = 32;
