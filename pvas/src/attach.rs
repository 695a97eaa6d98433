//! How a process becomes a rank.
//!
//! A process that tsumugi's launcher started finds in its environment the
//! descriptors of the memory files and the shape of the space; [`attach`] maps the
//! files and takes the rank. A process that a site's launcher started first meets
//! the other ranks of its node ([`Member::meet`]); on one node, the rank, the size
//! and the job's name in the environment are enough for that. Without these
//! variables the program is a job of one rank, or its ranks are threads:
//! [`Member::threads`].

use crate::config::{self, ConfigError, HugePages, SpaceConfig};
use crate::direct::Direct;
use crate::exposed::ExposedArea;
use crate::first_failure::FirstFailure;
use crate::heap::Heap;
use crate::meet::{MeetError, Meeting, NodeId};
use crate::nodes::Nodes;
use crate::partition::{
    COLLECTIVE_KEY, COLLECTIVE_WORDS, ControlBlock, DeathLog, Gone, PartitionShape, RankState,
    STARTER_KEY, break_off, declare_lost_as,
};
use crate::space::{Files, Space, SpaceError};
use crate::sys;
use std::fmt;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_core::excerpt::Excerpt;
use tsumugi_core::mem::{Access, LocalRank, Rank, Region};

/// A rank of this process: its partition and its view of all others.
#[derive(Clone, Debug)]
pub struct Member {
    space: Arc<Space>,
    rank: Rank,
    local: LocalRank,
    nodes: Arc<Nodes>,
    first_failure: Arc<FirstFailure>,
}

/// Why a process that was started as a rank cannot be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttachError {
    /// The launcher sets all of its variables, and this variable is missing, or is not
    /// valid Unicode.
    Missing {
        /// The name of the variable.
        name: &'static str,
    },
    /// A variable does not hold a number.
    Number(ConfigError),
    /// A variable does not hold what the launcher puts there.
    Malformed {
        /// The name of the variable.
        name: &'static str,
        /// The value of the variable, as far as it fits.
        value: Excerpt,
    },
    /// The rank is not below the size, or there is not one file for each rank (two
    /// with reserved huge pages).
    Size {
        /// This rank.
        rank: u32,
        /// Ranks of the job.
        size: u32,
        /// Descriptors that were handed over.
        files: usize,
    },
    /// The process has not inherited a descriptor: a program between the launcher
    /// and this program closes descriptors.
    Descriptor {
        /// The rank that the memory file belongs to.
        rank: LocalRank,
        /// The number of the descriptor.
        fd: RawFd,
    },
    /// The process has taken the descriptors already, so it is or was a rank: a process is
    /// one at most once. Another copy of this library may have done so.
    Again {
        /// The rank that the process has, or had.
        rank: LocalRank,
    },
    /// The partitions could not be mapped, or belong to another program.
    Space(SpaceError),
    /// The ranks of the node did not meet.
    Meet(MeetError),
    /// Another process has taken this rank already.
    Taken {
        /// The rank.
        rank: Rank,
        /// The process.
        pid: u32,
    },
}

/// Whether the launcher that started this process as a rank watches over it.
pub fn is_watched() -> bool {
    std::env::var_os(config::FDS).is_some()
}

/// The rank that this process was started as; `None` if it was not started as a
/// rank. A process can be a rank only once.
pub fn attach() -> Option<Result<Member, AttachError>> {
    match std::env::var(config::FDS) {
        Ok(fds) => Some(Member::from_env(&fds)),
        Err(_) if is_rank() => Some(Member::meet_from_env()),
        Err(_) => None,
    }
}

/// Whether this process was started as a rank of a job: by tsumugi's launcher, or
/// by another launcher that sets the rank, the size and the job in the environment.
pub fn is_rank() -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    is_set(&config::FDS) || [config::RANK, config::SIZE, config::JOB].iter().all(is_set)
}

impl Member {
    /// Makes a job of `size` ranks that are threads of this process; with one rank,
    /// the job is a single program.
    ///
    /// # Errors
    ///
    /// Those of [`Space::create`].
    pub fn threads(size: u32, config: &SpaceConfig) -> Result<Vec<Self>, SpaceError> {
        let space = Space::create(size, config)?;
        let nodes = Arc::new(Nodes::one(size));
        let member = |local| {
            let member = Self::new(space.clone(), nodes.clone(), local);
            member.take().expect("a fresh partition is not taken");
            member
        };
        Ok((0..size).map(LocalRank).map(member).collect())
    }

    fn from_env(fds: &str) -> Result<Self, AttachError> {
        let rank = variable_number(config::RANK)?;
        let size = variable_number(config::SIZE)?;
        let text = variable(config::SHAPE)?;
        let malformed = |name, value| AttachError::Malformed { name, value: Excerpt::new(value) };
        let shape = PartitionShape::from_text(&text).ok_or(malformed(config::SHAPE, &text))?;
        let policy = SpaceConfig::from_env().map_err(AttachError::Number)?.policy;
        let fds = fds.split(',').map(|fd| fd.parse().map_err(|_| malformed(config::FDS, fds)));
        let fds = fds.collect::<Result<Vec<RawFd>, _>>()?;
        let kinds = if policy.huge_pages == HugePages::Reserved { 2 } else { 1 };
        if rank >= size || fds.len() != kinds * size as usize {
            return Err(AttachError::Size { rank, size, files: fds.len() });
        }
        let again =
            || sys::maps_memory_file().then_some(AttachError::Again { rank: LocalRank(rank) });
        let take = |(rank, fd)| {
            sys::inherited(fd).map_err(|_| again().unwrap_or(AttachError::Descriptor { rank, fd }))
        };
        let ranks = (0..size).map(LocalRank).cycle();
        let mut files = ranks.zip(fds).map(take).collect::<Result<Vec<_>, _>>()?;
        let huge = files.split_off(size as usize);
        Self::adopt(&Files { shape, policy, files, huge }, LocalRank(rank))
    }

    fn meet_from_env() -> Result<Self, AttachError> {
        let meeting = Meeting {
            job: &variable(config::JOB)?,
            node: NodeId::here(),
            local: LocalRank(variable_number(config::RANK)?),
            size: variable_number(config::SIZE)?,
            limit: MEET_WITHIN,
        };
        Self::meet(&meeting, &SpaceConfig::from_env().map_err(AttachError::Number)?)
    }

    /// Makes this process a rank when the launcher is not tsumugi's: waits for the
    /// other ranks of its node, which must all call this function. The `config` of
    /// the leader is used.
    ///
    /// # Errors
    ///
    /// - [`AttachError::Meet`]: the ranks of the node did not meet; the errors of
    ///   [`Files::meet`].
    /// - [`AttachError::Space`]: the partitions cannot be mapped; the errors of
    ///   [`Space::adopt`].
    /// - [`AttachError::Taken`]: another process has taken the rank.
    pub fn meet(meeting: &Meeting<'_>, config: &SpaceConfig) -> Result<Self, AttachError> {
        let files = Files::meet(meeting, config).map_err(AttachError::Meet)?;
        Self::adopt(&files, meeting.local)
    }

    /// Takes the rank in a space of which this process has received the files.
    fn adopt(files: &Files, local: LocalRank) -> Result<Self, AttachError> {
        let space = Space::adopt(files, local).map_err(AttachError::Space)?;
        let nodes = Arc::new(Nodes::one(space.size()));
        let member = Self::new(space, nodes, local);
        member.take()?;
        Ok(member)
    }

    /// A member of a job of one node, in which the rank is its place on the node.
    fn new(space: Arc<Space>, nodes: Arc<Nodes>, local: LocalRank) -> Self {
        Self { space, rank: Rank(local.0), local, nodes, first_failure: Arc::default() }
    }

    /// This rank as a member of a job of several nodes; from here on its numbers
    /// are those of that job.
    ///
    /// # Panics
    ///
    /// If `nodes` gives this rank another place on its node, or gives the node
    /// another number of ranks.
    #[must_use]
    pub fn among(self, nodes: Arc<Nodes>, rank: Rank) -> Self {
        let place = nodes.place(rank).map(|place| (place.local, place.size));
        assert_eq!(
            place,
            Some((self.local, self.space.size())),
            "{rank} has another place in {nodes:?}"
        );
        Self { rank, nodes, ..self }
    }

    /// Takes the rank and registers the regions that peers reach from the start.
    fn take(&self) -> Result<(), AttachError> {
        let rank = self.rank;
        let taken = |pid| AttachError::Taken { rank, pid };
        self.control().set_pid_space(sys::pid_space());
        self.control().attach(std::process::id()).map_err(taken)?;
        let Region { base, bytes, access, .. } = self.starter();
        let words = self.collective();
        // SAFETY: both regions lie in the partition, hold plain bytes and atomics,
        // and stay mapped as long as the space does.
        let (starter, words) = unsafe {
            let table = self.control().regions();
            (
                table.register(base, bytes, access),
                table.register_runtime(words.base, words.bytes, words.access),
            )
        };
        let keys = (starter.map(|region| region.key), words.map(|region| region.key));
        assert_eq!(
            keys,
            (Ok(STARTER_KEY), Ok(COLLECTIVE_KEY)),
            "the keys of the first two regions"
        );
        Ok(())
    }

    /// The number of this rank in the job.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// How many ranks the job has.
    pub fn size(&self) -> u32 {
        self.nodes.ranks()
    }

    /// The nodes of the job, with the places of the ranks on them.
    pub fn nodes(&self) -> &Arc<Nodes> {
        &self.nodes
    }

    /// This rank's place among the ranks of its node, which is its number there.
    pub fn local(&self) -> LocalRank {
        self.local
    }

    /// The ranks of this node, this rank included, in the order of their places.
    pub fn neighbours(&self) -> impl Iterator<Item = Rank> + '_ {
        self.nodes.ranks_of(self.node())
    }

    /// Whether `rank` is on this node, so that its memory can be loaded and stored.
    pub fn is_near(&self, rank: Rank) -> bool {
        self.local_of(rank).is_some()
    }

    /// The place of a rank on this node; `None` if the rank is on another node.
    pub fn local_of(&self, rank: Rank) -> Option<LocalRank> {
        let place = self.nodes.place(rank)?;
        (place.node == self.node()).then_some(place.local)
    }

    /// The number of this node in the job.
    pub fn node(&self) -> u32 {
        self.nodes.place(self.rank).expect("this rank has a place").node
    }

    /// The partitions of the node's ranks, by their local numbers.
    pub fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// The head of this rank's partition.
    pub fn control(&self) -> &ControlBlock {
        self.space.control(self.local)
    }

    /// The head of `rank`'s partition.
    ///
    /// # Panics
    ///
    /// If there is no such rank on this node.
    pub fn control_of(&self, rank: Rank) -> &ControlBlock {
        let local = self.local_of(rank);
        self.space.control(local.unwrap_or_else(|| panic!("{rank} is not on this node")))
    }

    /// Whether the rank has not been declared lost.
    pub fn is_alive(&self, rank: Rank) -> bool {
        let Some(place) = self.nodes.place(rank) else { return false };
        if place.node == self.node() {
            return self.space.control(place.local).is_alive();
        }
        !self.gone().any(|gone| gone == Gone::Rank(rank) || gone == Gone::Node(place.node))
    }

    /// Declares a rank dead to all ranks of this node. Returns whether the rank had
    /// not been declared dead before.
    pub fn declare_lost(&self, rank: Rank) -> bool {
        let Some(local) = self.local_of(rank) else {
            return self.declare_gone(Gone::Rank(rank), rank);
        };
        // A second declaration would hide a rank that died later from
        // `ParkingLot::latest_lost`.
        let is_news = self.space.control(local).is_alive();
        if is_news {
            self.first_failure.declares(rank);
            declare_lost_as(local, rank, self.space.controls());
        }
        is_news
    }

    /// Declares all ranks of another node dead to all ranks of this node. Returns
    /// whether one of them had not been declared dead before.
    pub fn declare_node_lost(&self, node: u32) -> bool {
        let alive = self.nodes.ranks_of(node).find(|rank| self.is_alive(*rank));
        node != self.node() && alive.is_some_and(|rank| self.declare_gone(Gone::Node(node), rank))
    }

    fn declare_gone(&self, gone: Gone, rank: Rank) -> bool {
        if !self.is_alive(rank) {
            return false;
        }
        self.first_failure.declares(rank);
        let is_news = self.death_log().record(gone);
        if is_news {
            break_off(rank, self.space.controls());
        }
        is_news
    }

    /// The record of the rank that failed first, as the launcher reports it.
    pub fn first_failure(&self) -> &FirstFailure {
        &self.first_failure
    }

    /// The ranks and nodes, other than this node, that have been declared dead.
    pub fn gone(&self) -> impl Iterator<Item = Gone> + '_ {
        self.death_log().iter()
    }

    /// The length of the list that [`gone`](Self::gone) walks: one load.
    #[inline]
    pub fn gone_count(&self) -> u32 {
        self.death_log().count()
    }

    fn death_log(&self) -> &DeathLog {
        self.space.control(LocalRank(0)).death_log()
    }

    /// The allocator for this rank's regions: memory that peers may reach.
    pub fn exposed(&self) -> &ExposedArea {
        self.space.exposed(self.local).expect("a member's memory is made with its space")
    }

    /// The allocator for rings and mailboxes: memory that peers also write in a job
    /// in which [`Peers`](crate::Peers) otherwise may only read.
    pub fn rings(&self) -> &ExposedArea {
        self.space.rings(self.local).expect("a member's memory is made with its space")
    }

    /// This rank's heap, for memory that only this rank uses.
    pub fn heap(&self) -> &'static Heap {
        self.space.heap(self.local).expect("a member's heap is made with its space")
    }

    /// The starter memory, which every rank reaches under [`STARTER_KEY`] as soon
    /// as its owner has attached. It is all zeroes at first.
    pub fn starter(&self) -> Region {
        let shape = self.space.shape();
        let base = self.place(shape.starter_offset());
        let bytes = shape.starter_bytes as u64;
        Region { key: STARTER_KEY, base, bytes, access: Access::ReadWrite }
    }

    /// The words for barriers and sums, which every rank reaches under
    /// [`COLLECTIVE_KEY`].
    pub fn collective(&self) -> Region {
        let base = NonNull::from(self.control().collective()).cast();
        let bytes = COLLECTIVE_WORDS as u64 * 8;
        Region { key: COLLECTIVE_KEY, base, bytes, access: Access::ReadWrite }
    }

    /// The start and the length of the area for stacks. Forked children do not have
    /// this area.
    pub fn stacks(&self) -> (NonNull<u8>, usize) {
        let shape = self.space.shape();
        (self.place(shape.stacks_offset()), shape.stack_bytes)
    }

    /// This rank's load/store access to the memory of all ranks of its node.
    pub fn direct(&self) -> Direct {
        Direct::new(self.space.clone(), self.nodes.clone(), self.rank, self.local)
    }

    /// Declares that this rank is done: from here on its end is no failure.
    pub fn finish(&self) {
        self.control().set_state(RankState::Finished);
    }

    fn place(&self, offset: usize) -> NonNull<u8> {
        let at = self.space.shape().start(self.local) + offset;
        NonNull::new(at as *mut u8).expect("a base above zero")
    }
}

fn variable(name: &'static str) -> Result<String, AttachError> {
    std::env::var(name).map_err(|_| AttachError::Missing { name })
}

fn variable_number(name: &'static str) -> Result<u32, AttachError> {
    let text = variable(name)?;
    let number = config::parse_number(name, &text).map_err(AttachError::Number)?;
    let value = Excerpt::new(&text);
    number.try_into().map_err(|_| AttachError::Malformed { name, value })
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name } => {
                write!(f, "{name} is not set, or not valid Unicode: the launcher must set it")
            }
            Self::Number(error) => error.fmt(f),
            Self::Malformed { name, value } => {
                write!(f, "{name}={value:?} is not a value that a launcher sets")
            }
            Self::Size { rank, size, .. } if rank >= size => {
                write!(f, "rank {rank} does not exist: the job has {size} ranks")
            }
            Self::Size { rank, size, files } => write!(
                f,
                "rank {rank} has {files} memory files: a job of {size} ranks has one for each \
                 rank, or two with {}=reserved",
                config::HUGE_PAGES
            ),
            Self::Descriptor { rank, fd } => write!(
                f,
                "descriptor {fd}, the memory of {rank}, is not open here: this process was not \
                 started by the launcher itself"
            ),
            Self::Again { rank } => write!(
                f,
                "this process is {rank} already, or was it: a process is a rank at most once, also \
                 if two copies of tsumugi are in it"
            ),
            Self::Space(error) => error.fmt(f),
            Self::Meet(error) => error.fmt(f),
            Self::Taken { rank, pid } => write!(f, "{rank} is taken by process {pid}"),
        }
    }
}

impl std::error::Error for AttachError {}

/// The limit is long because some launchers start hundreds of processes one after
/// the other.
const MEET_WITHIN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
