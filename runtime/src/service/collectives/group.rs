//! A group of ranks, as one of its members sees it.

use super::buffers::{CollScratch, SpareScratch};
use super::contexts::WORLD;
use super::rows::GroupRows;
use super::service::Collectives;
use crate::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tsumugi_core::coll::CollError;
use tsumugi_core::coll::schedule::{
    Block, CollChoice, CollForced, CollMember, CollTables, NodeView, RootView,
};
use tsumugi_core::mem::Rank;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_core::wait::Reason;

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
    /// All members are on one node.
    is_near: bool,
    /// The algorithms; `None`: those of the job.
    choice: Option<Box<CollChoice>>,
    /// For short values, if all members share a node and a row was free.
    rows: Option<GroupRows>,
    spare: Mutex<SpareScratch>,
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
        let free = service.rows().offer(service.member()).free;
        service.rows().take_back(free & !1);
        let rows = GroupRows::new(service, (0..size).map(Rank), me, (0, 0));
        Self::with(service.clone(), WORLD, None, (me, size), rows)
    }

    fn with(
        service: Arc<Collectives>,
        context: u16,
        members: Option<Box<[Rank]>>,
        (me, size): (u32, u32),
        rows: Option<GroupRows>,
    ) -> Self {
        service.broken().add_group(context);
        let (next, nodes) = (AtomicU32::new(0), OnceLock::new());
        let spare = Mutex::default();
        let is_near = rows.is_some() || is_on_one_node(&service, members.as_deref(), size);
        Self(Arc::new(GroupShared {
            service,
            context,
            members,
            me,
            size,
            next,
            nodes,
            is_near,
            choice: None,
            rows,
            spare,
        }))
    }

    /// Takes other algorithms than the job, as `forced` says: the same at all members, which
    /// have begun no collective of the group. Returns whether this is its only handle;
    /// otherwise nothing changes.
    pub fn force(&mut self, forced: CollForced) -> bool {
        let Some(shared) = Arc::get_mut(&mut self.0) else { return false };
        shared.choice = Some(Box::new(shared.service.choice().forcing(forced)));
        true
    }

    /// How the group chooses algorithms.
    pub fn choice(&self) -> &CollChoice {
        self.0.choice.as_deref().unwrap_or(self.0.service.choice())
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
        CollMember {
            is_near: self.0.is_near,
            has_rows: self.0.rows.is_some(),
            view: self.view(),
            ..CollMember::of_all(self.0.me, self.0.size)
        }
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

    /// Moves messages and collectives of the rank on. Never waits.
    pub fn make_progress(&self) {
        self.0.service.make_progress();
    }

    pub(super) fn service(&self) -> &Arc<Collectives> {
        &self.0.service
    }

    /// The context of the messages of its collectives.
    pub fn context(&self) -> u16 {
        self.0.context
    }

    /// For what the collective `name` with the number `number` waits, in a report: a member,
    /// and the number of the group, 0 for that of all ranks.
    pub(super) fn reason(&self, name: &'static str, number: u32, member: u32) -> Reason {
        let wanted = u64::from(self.rank_of(member).0) + 1;
        Reason { what: name, at: self.numbered(number), wanted }
    }

    /// The collective with this number, in a report.
    pub(super) fn numbered(&self, number: u32) -> u64 {
        let group = if self.0.context == WORLD { 0 } else { u64::from(self.0.context) << 32 };
        group | u64::from(number)
    }

    /// The number of a collective that begins: the same at all members, because all
    /// begin their collectives in one order.
    pub(super) fn next(&self) -> u32 {
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The rows for short values, if the group has them.
    pub(super) fn rows(&self) -> Option<&GroupRows> {
        self.0.rows.as_ref()
    }

    /// Empty tables of blocks, with the memory of a collective that has ended if there is one.
    pub fn take_blocks(&self) -> [Vec<Block>; 2] {
        self.spare().take_blocks()
    }

    /// A scratch buffer of so many bytes, of undefined content, which `scratch` has.
    pub(super) fn fit(&self, scratch: &mut CollScratch, bytes: usize) -> *mut u8 {
        if bytes > 0 {
            scratch.words = self.spare().take_words(bytes.div_ceil(size_of::<u128>()));
        }
        scratch.words.as_mut_ptr().cast()
    }

    /// Keeps the memory of a collective that has ended for later ones.
    pub fn keep_scratch(&self, scratch: CollScratch) {
        self.spare().keep(scratch);
    }

    fn spare(&self) -> MutexGuard<'_, SpareScratch> {
        self.0.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The group of these members, with a context that they have claimed.
    pub(super) fn part(
        &self,
        context: u16,
        members: Box<[Rank]>,
        me: u32,
        rows: Option<GroupRows>,
    ) -> Self {
        let place = (me, members.len() as u32);
        Self::with(self.0.service.clone(), context, Some(members), place, rows)
    }
}

fn is_on_one_node(service: &Collectives, members: Option<&[Rank]>, size: u32) -> bool {
    let nodes = service.member().nodes();
    let node = |rank| nodes.place(rank).map(|place| place.node);
    let here = node(service.member().rank());
    nodes.count() == 1
        || match members {
            None => (0..size).all(|rank| node(Rank(rank)) == here),
            Some(members) => members.iter().all(|rank| node(*rank) == here),
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
