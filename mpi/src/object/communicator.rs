//! Communicators: ranks that exchange messages and take part in collectives, with a context
//! for each of the two.

use crate::abi::{self, MPI_Comm, MPI_Errhandler};
use crate::fault::{Answer, fail, need};
use crate::object::attribute::Attributes;
use crate::object::buffered::Buffered;
use crate::object::errhandler::{ErrhandlerCell, ErrhandlerRef};
use crate::object::group::RankGroup;
use crate::object::table::lock;
use crate::object::topology::Topology;
use std::ffi::c_int;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use tsumugi::{Group, Rank};
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_runtime::service::collectives::MessageContext;

/// A communicator.
pub(crate) struct Communicator {
    /// The collectives. Of an intercommunicator: those of the group of this rank.
    pub(crate) group: Group,
    /// The other group of an intercommunicator.
    pub(crate) remote: Option<Remote>,
    /// The context of messages.
    context: u16,
    _claim: MessageContext,
    places: Places,
    handle: AtomicUsize,
    pub(crate) errhandler: ErrhandlerCell,
    pub(crate) attributes: Attributes,
    name: Mutex<Option<String>>,
    pub(crate) topology: Option<Topology>,
    /// The buffer that the program has attached to it.
    pub(crate) buffered: Buffered,
    /// The keys that MPI_Comm_set_info has set.
    pub(crate) info: Mutex<Vec<(String, String)>>,
}

/// The group with which that of this rank exchanges messages.
pub(crate) struct Remote {
    pub(crate) ranks: Box<[Rank]>,
}

impl Remote {
    pub(crate) fn group(&self) -> RankGroup {
        RankGroup { ranks: self.ranks.iter().map(|rank| rank.0).collect() }
    }
}

/// Which member a rank of the job is.
enum Places {
    /// Members are the ranks of the job, in their order.
    All,
    /// Ranks with their places, in the order of the ranks.
    Some(Box<[(Rank, u32)]>),
}

impl Places {
    fn of(ranks: impl Iterator<Item = Rank>) -> Self {
        let mut places: Box<[(Rank, u32)]> = ranks.zip(0..).collect();
        places.sort_unstable();
        Self::Some(places)
    }
}

/// A communicator that a call uses: one of the standard's, or one of the program's, which
/// another thread may free meanwhile.
pub(crate) enum CommRef {
    Given(&'static Communicator),
    Made(Arc<Communicator>),
}

impl Deref for CommRef {
    type Target = Communicator;

    #[inline]
    fn deref(&self) -> &Communicator {
        match self {
            Self::Given(comm) => comm,
            Self::Made(comm) => comm,
        }
    }
}

impl Clone for CommRef {
    fn clone(&self) -> Self {
        match self {
            Self::Given(comm) => Self::Given(comm),
            Self::Made(comm) => Self::Made(comm.clone()),
        }
    }
}

impl Communicator {
    /// All ranks, with contexts of its own: the program may use the group `world` and the
    /// messages of all ranks, too, by other interfaces. Collective over all ranks.
    pub(crate) fn world(world: &Group) -> Answer<Self> {
        let group = world.duplicate()?;
        let claim = group.handle().message_context()?;
        Ok(Self::with(group, claim, Places::All, MPI_Comm::WORLD))
    }

    /// This rank alone. Collective over all ranks.
    pub(crate) fn own(world: &Group) -> Answer<Self> {
        let group = world.split(Some(world.rank()), 0)?;
        let group = group.expect("each rank brings a color");
        let own = Self::new(group)?;
        own.set_handle(MPI_Comm::SELF);
        Ok(own)
    }

    /// The communicator of a new group. Collective over its members.
    pub(crate) fn new(group: Group) -> Answer<Self> {
        let claim = group.handle().message_context()?;
        Ok(Self::of(group, claim))
    }

    /// The communicator of a group, whose members have claimed the context.
    pub(crate) fn of(group: Group, claim: MessageContext) -> Self {
        let places = Places::of((0..group.size()).map(|member| group.handle().rank_of(member)));
        Self::with(group, claim, places, MPI_Comm::NULL)
    }

    /// The communicator between a group and another one. The members of both have claimed the
    /// context.
    pub(crate) fn between(group: Group, claim: MessageContext, ranks: Box<[Rank]>) -> Self {
        let places = Places::of(ranks.iter().copied());
        let made = Self::with(group, claim, places, MPI_Comm::NULL);
        Self { remote: Some(Remote { ranks }), ..made }
    }

    fn with(group: Group, claim: MessageContext, places: Places, handle: MPI_Comm) -> Self {
        Self {
            group,
            remote: None,
            context: claim.number(),
            _claim: claim,
            places,
            handle: AtomicUsize::new(handle.0),
            errhandler: ErrhandlerCell::new(ErrhandlerRef::Given(MPI_Errhandler::FATAL)),
            attributes: Attributes::default(),
            name: Mutex::default(),
            topology: None,
            buffered: Buffered::default(),
            info: Mutex::default(),
        }
    }

    /// With a topology.
    pub(crate) fn arranged(mut self, topology: Option<Topology>) -> Self {
        self.topology = topology;
        self
    }

    /// The context of messages.
    #[inline]
    pub(crate) fn context(&self) -> u16 {
        self.context
    }

    /// This rank's place.
    #[inline]
    pub(crate) fn rank(&self) -> u32 {
        self.group.rank()
    }

    /// The number of members.
    #[inline]
    pub(crate) fn size(&self) -> u32 {
        self.group.size()
    }

    /// The rank of the job that a member is.
    #[inline]
    pub(crate) fn rank_of(&self, member: c_int) -> Answer<Rank> {
        if let Places::All = self.places
            && member.cast_unsigned() < self.size()
        {
            return Ok(Rank(member.cast_unsigned()));
        }
        match (u32::try_from(member), &self.remote) {
            (Ok(member), None) if member < self.size() => Ok(self.group.handle().rank_of(member)),
            (Ok(at), Some(remote)) if (at as usize) < remote.ranks.len() => {
                Ok(remote.ranks[at as usize])
            }
            _ => self.no_member(member),
        }
    }

    /// The number of members to which messages go.
    pub(crate) fn peers(&self) -> usize {
        self.remote.as_ref().map_or(self.size() as usize, |remote| remote.ranks.len())
    }

    #[cold]
    fn no_member(&self, member: c_int) -> Answer<Rank> {
        need!(member != abi::ANY_SOURCE, abi::ERR_RANK, "the rank of a send is MPI_ANY_SOURCE");
        fail!(abi::ERR_RANK, "rank {member} is not one of the {} of {self}", self.peers())
    }

    /// The place of a rank of the job, which is a member.
    #[inline]
    pub(crate) fn place_of(&self, rank: Rank) -> c_int {
        match &self.places {
            Places::All => rank.0 as c_int,
            Places::Some(places) => match places.binary_search_by_key(&rank, |(rank, _)| *rank) {
                Ok(at) => places[at].1 as c_int,
                Err(_) => abi::UNDEFINED,
            },
        }
    }

    /// Checks a root.
    pub(crate) fn root(&self, root: c_int) -> Answer<u32> {
        let size = self.size();
        let is_one = u32::try_from(root).is_ok_and(|root| root < size);
        need!(is_one, abi::ERR_ROOT, "root {root} is not one of the {size} ranks of {self}");
        Ok(root as u32)
    }

    /// The ranks of the job that are members, in their order.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        (0..self.size()).map(|member| self.group.handle().rank_of(member).0).collect()
    }

    // Relaxed: handles are words of the program, which synchronizes their use.
    pub(crate) fn handle(&self) -> MPI_Comm {
        MPI_Comm(self.handle.load(Ordering::Relaxed))
    }

    pub(crate) fn set_handle(&self, handle: MPI_Comm) {
        self.handle.store(handle.0, Ordering::Relaxed);
    }

    /// Deletes all attributes.
    pub(crate) fn delete_attributes(&self) -> Answer {
        self.attributes.delete_all(self.handle().0)
    }

    pub(crate) fn name(&self) -> String {
        lock(&self.name).clone().unwrap_or_else(|| match self.handle() {
            MPI_Comm::WORLD => "MPI_COMM_WORLD".into(),
            MPI_Comm::SELF => "MPI_COMM_SELF".into(),
            _ => String::new(),
        })
    }

    pub(crate) fn set_name(&self, name: String) {
        *lock(&self.name) = Some(name);
    }
}

impl fmt::Display for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        if name.is_empty() {
            return write!(f, "communicator {:#x}", self.handle().0);
        }
        f.write_str(&name)
    }
}
