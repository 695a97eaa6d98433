//! The load/store backend: a peer's registered memory is memory.
//!
//! `resolve` is the rank check, a shift and an addition to the head of the
//! target's partition, and the check of its region table: no pointer table,
//! no thread-local state, no call. That a rank is alive costs nothing more,
//! since the keys of a dead rank have been struck out of its table.
//!
//! Ranks are the job's. Those that stand next to this one without a gap, and
//! are on its node, are the ones that go so; of all others it is looked up
//! where they are, out of line.

use crate::config::Peers;
use crate::futex::SharedFutex;
use crate::nodes::Nodes;
use crate::partition::Control;
use crate::space::Space;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{
    Access, AddrError, Agent, LocalAddr, Need, Rank, Region, RegionKey, RegisterError, RemoteAddr,
};
use tsumugi_core::sync::mapped::AtomicU64;

/// One rank's way to the memory of all ranks of its node. A rank of another
/// node is [`AddrError::OtherNode`].
#[derive(Clone)]
pub struct Direct {
    /// Where the partition of rank 0 were, if it were one of the neighbours.
    base: usize,
    shift: u32,
    /// The neighbours, and this rank: from the first on, so many.
    first: u32,
    count: u32,
    /// Whether these are all ranks of the node.
    is_whole: bool,
    rank: Rank,
    nodes: Arc<Nodes>,
    space: Arc<Space>,
}

impl Direct {
    /// The way of `rank`, which is of this process and is `local` on its node.
    pub(crate) fn new(space: Arc<Space>, nodes: Arc<Nodes>, rank: Rank, local: Rank) -> Self {
        let (start, shift) = (space.shape().start(local), space.shape().shift);
        let neighbours = nodes.neighbours(rank);
        let (first, count) = (neighbours.start, neighbours.end - neighbours.start);
        let base = start.wrapping_sub((rank.0 as usize) << shift);
        let is_whole = nodes.place(rank).is_some_and(|place| place.size == count);
        Self { base, shift, first, count, is_whole, rank, nodes, space }
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The partitions of all ranks.
    pub fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// Lets peers reach `bytes` bytes at `base` as far as `access` says.
    /// Lock-free. What peers may write lies in this rank's exposed memory (from
    /// [`Member::exposed`](crate::Member::exposed), or starter memory); what
    /// they may only read, there or in its heap, where a late look does no
    /// harm; what is [`Access::Local`] may lie anywhere.
    ///
    /// In a job whose [`Peers`] only read, peers can get and
    /// nothing else, whatever `access` says, but for starter memory and what
    /// comes from [`Member::rings`](crate::Member::rings). The rank's own
    /// operations change what is exposed memory all the same.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    ///
    /// # Safety
    ///
    /// The contract of [`RegionTable::register`](tsumugi_core::mem::RegionTable::register).
    /// A block of exposed memory keeps its second half, on late operations,
    /// for good: the area never holds anything but plain bytes of regions, so
    /// that the block may be released as soon as it is unregistered.
    pub unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        let access = self.in_reach(base, bytes, access)?;
        // SAFETY: the caller's.
        unsafe { self.control(self.rank).regions().register(base, bytes, access) }
    }

    /// The same for what the runtime keeps for itself, as
    /// [`RegionTable::register_runtime`](tsumugi_core::mem::RegionTable::register_runtime)
    /// says.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    ///
    /// # Safety
    ///
    /// That of [`register`](Self::register).
    pub unsafe fn register_runtime(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        let access = self.in_reach(base, bytes, access)?;
        // SAFETY: the caller's.
        unsafe { self.control(self.rank).regions().register_runtime(base, bytes, access) }
    }

    /// What peers may do with memory that is to be registered for `access`.
    fn in_reach(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Access, RegisterError> {
        let is_in_reach = match access {
            Access::Local => true,
            Access::Read => self.space.is_readable(self.local_rank(), base, bytes),
            Access::ReadWrite => self.space.is_exposed(self.local_rank(), base, bytes),
        };
        if !is_in_reach {
            let base = base.as_ptr() as usize;
            return Err(RegisterError::OutOfReach { base, bytes });
        }
        Ok(match access {
            Access::ReadWrite if !self.space.is_open(self.local_rank(), base, bytes) => {
                Access::Read
            }
            access => access,
        })
    }

    /// Names exposed memory of this rank whose words are the device's: here
    /// nobody reaches it but this rank, as the local end of an operation; all
    /// else is [`AddrError::StaleKey`], and has to go by the device. Lock-free.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    ///
    /// # Safety
    ///
    /// That of [`register`](Self::register).
    pub unsafe fn register_for_device(
        &self,
        base: NonNull<u8>,
        bytes: u64,
    ) -> Result<Region, RegisterError> {
        if !self.space.is_exposed(self.local_rank(), base, bytes) {
            let base = base.as_ptr() as usize;
            return Err(RegisterError::OutOfReach { base, bytes });
        }
        let table = self.control(self.rank).regions();
        // SAFETY: the caller's.
        unsafe { table.register_for(Agent::Device, base, bytes, Access::Local) }
    }

    /// Ends a registration; false if it had ended before. Lock-free.
    pub fn unregister(&self, key: RegionKey) -> bool {
        self.control(self.rank).regions().unregister(key)
    }

    /// What peers may only read in this job is its owner's to change: exposed
    /// memory, where nothing but plain bytes lies. What is read where the program
    /// has it, in its heap, is nobody's to change.
    #[cold]
    #[inline(never)]
    fn look_again(
        &self,
        error: AddrError,
        addr: RemoteAddr,
        bytes: u64,
    ) -> Result<NonNull<u8>, AddrError> {
        let is_own = addr.rank == self.rank && self.space.policy().peers == Peers::Read;
        match error {
            AddrError::ReadOnly { .. } if is_own => {
                let at = self.control(addr.rank).regions().resolve(addr, bytes, Need::Read)?;
                let is_exposed = self.space.is_exposed(self.local_rank(), at, bytes);
                if is_exposed { Ok(at) } else { Err(error) }
            }
            error => Err(error),
        }
    }

    /// A rank that is no neighbour: it may be of this node all the same.
    #[cold]
    #[inline(never)]
    fn look_up(&self, rank: Rank) -> Result<&Control, AddrError> {
        if self.is_whole && rank.0 < self.nodes.ranks() {
            return Err(AddrError::OtherNode { rank });
        }
        let Some(place) = self.nodes.place(rank) else {
            return Err(AddrError::NoSuchRank { rank, size: self.nodes.ranks() });
        };
        let own = self.nodes.place(self.rank).expect("one of the job's");
        if place.node != own.node {
            return Err(AddrError::OtherNode { rank });
        }
        Ok(self.space.control(Rank(place.local)))
    }

    /// The word of a neighbour at `offset`, if everybody may change it.
    /// Otherwise an operation on it says why, or finds it after all.
    #[inline(always)]
    pub fn word(&self, rank: Rank, key: RegionKey, offset: u64) -> Option<&AtomicU64> {
        if !self.is_neighbour(rank) {
            return None;
        }
        let addr = RemoteAddr { offset, rank, key };
        let at = self.control(rank).regions().resolve(addr, 8, Need::Write).ok()?;
        let at = at.cast::<AtomicU64>();
        if !at.is_aligned() {
            return None;
        }
        // SAFETY: `resolve` answered for as many bytes, which are only ever
        // accessed as plain bytes and atomics, and stay mapped as long as
        // `space` does; aligned.
        Some(unsafe { at.as_ref() })
    }

    #[inline(always)]
    fn is_neighbour(&self, rank: Rank) -> bool {
        rank.0.wrapping_sub(self.first) < self.count
    }

    /// The caller has checked that it is a neighbour.
    #[inline(always)]
    fn control(&self, rank: Rank) -> &Control {
        debug_assert!(self.is_neighbour(rank));
        let at = self.base.wrapping_add((rank.0 as usize) << self.shift);
        // SAFETY: the head of a partition that `space` keeps mapped.
        unsafe { &*(at as *const Control) }
    }

    /// This rank's place on its node.
    fn local_rank(&self) -> Rank {
        let head: *const Control = self.control(self.rank);
        Rank(((head as usize - self.space.shape().base) >> self.shift) as u32)
    }
}

// SAFETY: a region table holds ranges of what its own rank exposes: `register`
// accepts no others for peers, and `space` keeps all partitions mapped. Local
// registrations are only resolved by their own rank.
unsafe impl LoadStore for Direct {
    #[inline(always)]
    fn size(&self) -> u32 {
        self.nodes.ranks()
    }

    #[inline(always)]
    fn resolve(&self, addr: RemoteAddr, bytes: u64, need: Need) -> Result<NonNull<u8>, AddrError> {
        let target = match self.is_neighbour(addr.rank) {
            true => self.control(addr.rank),
            false => self.look_up(addr.rank)?,
        };
        // What a peer registered for itself alone may lie where only it can go.
        let need = match need {
            Need::Local if addr.rank != self.rank => Need::Read,
            need => need,
        };
        let found = target.regions().resolve(addr, bytes, need);
        found.or_else(|error| self.look_again(error, addr, bytes))
    }

    #[inline(always)]
    fn local(&self, addr: LocalAddr, bytes: u64) -> Result<NonNull<u8>, AddrError> {
        let addr = RemoteAddr { offset: addr.offset, rank: self.rank, key: addr.key };
        self.control(self.rank).regions().resolve(addr, bytes, Need::Local)
    }

    #[inline(always)]
    fn notify(&self, addr: RemoteAddr, at: NonNull<u8>) {
        let target = match self.is_neighbour(addr.rank) {
            true => self.control(addr.rank),
            false => match self.look_up(addr.rank) {
                Ok(target) => target,
                Err(_) => return,
            },
        };
        if target.lot().announce(at.as_ptr() as u64) {
            ring(target);
        }
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Direct({} of {})", self.rank, self.nodes.ranks())
    }
}

#[cold]
#[inline(never)]
fn ring(target: &Control) {
    target.bells().ring(&SharedFutex);
}
