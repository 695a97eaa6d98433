//! The load/store backend: a peer's registered memory is ordinary memory.
//!
//! `resolve` is the rank check, a shift and an addition that give the head of the
//! target's partition, and the check of the target's region table: no pointer
//! table, no thread-local state, no call. The check that the rank is alive costs
//! nothing more, because the keys of a dead rank have been removed from its table.
//!
//! Ranks are numbered as in the job. The fast path covers the *neighbours*: the
//! ranks of this node with numbers that adjoin this rank's without a gap. The place of
//! any other rank is looked up, out of line.

use crate::config::Peers;
use crate::futex::SharedFutex;
use crate::nodes::Nodes;
use crate::partition::ControlBlock;
use crate::space::Space;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{
    Access, AddrError, Agent, LocalAddr, LocalRank, Need, Rank, Region, RegionKey, RegionView,
    RegisterError, RemoteAddr,
};
use tsumugi_core::sync::mapped::AtomicU64;

/// One rank's load/store access to the memory of all ranks of its node. For a rank
/// of another node it returns [`AddrError::OtherNode`].
#[derive(Clone)]
pub struct Direct {
    /// Where the partition of rank 0 would start if rank 0 were a neighbour.
    base: usize,
    shift: u32,
    /// The neighbours, this rank included: `count` ranks from `first` on.
    first: u32,
    count: u32,
    /// Whether these are all ranks of the node.
    is_whole: bool,
    rank: Rank,
    nodes: Arc<Nodes>,
    space: Arc<Space>,
}

impl Direct {
    /// Makes the access of `rank`, which is a rank of this process with the place
    /// `local` on its node.
    pub(crate) fn new(space: Arc<Space>, nodes: Arc<Nodes>, rank: Rank, local: LocalRank) -> Self {
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

    /// Registers `bytes` bytes at `base`, so that peers reach them as `access`
    /// says. Lock-free. Memory that peers may write must lie in this rank's exposed
    /// memory (from [`Member::exposed`](crate::Member::exposed), or starter
    /// memory); memory that they may only read may also lie in its heap, where a
    /// late read does no harm; memory that is [`Access::Local`] may lie anywhere.
    ///
    /// In a job in which [`Peers`] only read, peers can only get, whatever `access`
    /// is; the exceptions are starter memory and memory from
    /// [`Member::rings`](crate::Member::rings). The rank's own operations can still
    /// change its exposed memory.
    ///
    /// # Errors
    ///
    /// - [`RegisterError::OutOfReach`]: memory that peers may write is not exposed memory
    ///   of this rank, or memory that they may read is neither that nor in its heap.
    /// - [`RegisterError::TableFull`]: all region slots of this rank are in use or worn
    ///   out.
    ///
    /// # Safety
    ///
    /// The contract of [`RegionTable::register`](tsumugi_core::mem::RegionTable::register).
    /// The second half of that contract, on late operations, always holds for a
    /// block of exposed memory: the area never contains anything but plain bytes of
    /// regions. Therefore the block may be released as soon as it is unregistered.
    pub unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        let access = self.in_reach(base, bytes, access)?;
        // SAFETY: the caller keeps the contract of `register`.
        unsafe { self.control(self.rank).regions().register(base, bytes, access) }
    }

    /// As [`register`](Self::register), for memory that the runtime itself uses;
    /// see
    /// [`RegionTable::register_runtime`](tsumugi_core::mem::RegionTable::register_runtime).
    ///
    /// # Errors
    ///
    /// As for [`register`](Self::register).
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
        // SAFETY: the caller keeps the contract of `register`.
        unsafe { self.control(self.rank).regions().register_runtime(base, bytes, access) }
    }

    /// The access that peers get to memory that is to be registered with `access`.
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

    /// Registers exposed memory of this rank of which the words are accessed by the
    /// network device. By load and store only this rank reaches it, as the local
    /// end of an operation; every other access returns [`AddrError::StaleKey`] and
    /// must go through the device. Lock-free.
    ///
    /// # Errors
    ///
    /// - [`RegisterError::OutOfReach`]: the memory is not exposed memory of this rank.
    /// - [`RegisterError::TableFull`]: all region slots of this rank are in use or worn
    ///   out.
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
        // SAFETY: the caller keeps the contract of `register`.
        unsafe { table.register_for(Agent::Device, base, bytes, Access::Local) }
    }

    /// Ends a registration; returns false if it had ended before. Lock-free.
    pub fn unregister(&self, key: RegionKey) -> bool {
        self.control(self.rank).regions().unregister(key)
    }

    /// Lets the owner write to its exposed memory in a job in which peers may only
    /// read: only plain bytes lie there. A read-only region in the heap stays
    /// read-only for the owner's operations too, because the program has references
    /// to it.
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

    /// Finds the head of a rank that is no neighbour, but may be on this node.
    #[cold]
    #[inline(never)]
    fn look_up(&self, rank: Rank) -> Result<&ControlBlock, AddrError> {
        if self.is_whole && rank.0 < self.nodes.ranks() {
            return Err(AddrError::OtherNode { rank });
        }
        let Some(place) = self.nodes.place(rank) else {
            return Err(AddrError::NoSuchRank { rank, size: self.nodes.ranks() });
        };
        let own = self.nodes.place(self.rank).expect("this rank has a place");
        if place.node != own.node {
            return Err(AddrError::OtherNode { rank });
        }
        Ok(self.space.control(place.local))
    }

    /// The word of a neighbour at `offset`, if all ranks may write it. If this
    /// returns `None`, an operation on the word gives the error, or succeeds on its
    /// slow path.
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
        // SAFETY: `resolve` has checked these 8 bytes, which are only ever accessed
        // as plain bytes and atomics and stay mapped as long as `space` does; the
        // alignment was checked above.
        Some(unsafe { at.as_ref() })
    }

    /// The region of an address, for accesses that look it up no more; `None` if it is
    /// not memory of a neighbour that processors access, or is not registered.
    pub fn view(&self, at: &RemoteAddr) -> Option<RegionView<'_>> {
        let is_at_hand = self.is_at_hand(at);
        let view = if is_at_hand { self.control(at.rank).regions().view(at.key) } else { None };
        // Other ranks do not reach a region that is local to its own.
        view.filter(|view| view.access != Access::Local as u32)
    }

    /// Whether the address is one of memory of a neighbour that processors access. If
    /// not, its rank may be on this node all the same.
    #[inline(always)]
    pub fn is_at_hand(&self, at: &RemoteAddr) -> bool {
        self.is_neighbour(at.rank) && at.key.agent() == Agent::Cpu
    }

    #[inline(always)]
    fn is_neighbour(&self, rank: Rank) -> bool {
        rank.0.wrapping_sub(self.first) < self.count
    }

    /// The head of a neighbour's partition. The caller has checked that `rank` is a
    /// neighbour.
    #[inline(always)]
    fn control(&self, rank: Rank) -> &ControlBlock {
        debug_assert!(self.is_neighbour(rank));
        let at = self.base.wrapping_add((rank.0 as usize) << self.shift);
        // SAFETY: `at` is the head of a neighbour's partition, which `space` keeps
        // mapped.
        unsafe { &*(at as *const ControlBlock) }
    }

    /// This rank's place on its node.
    fn local_rank(&self) -> LocalRank {
        let head: *const ControlBlock = self.control(self.rank);
        LocalRank(((head as usize - self.space.shape().base) >> self.shift) as u32)
    }
}

// SAFETY: a region table holds ranges that its own rank exposes: `register` accepts
// no other ranges for peers, and `space` keeps all partitions mapped. Local
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
        // Memory that a peer registered as local may lie where only that peer reaches it.
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
        if target.parking_lot().announce(at.as_ptr() as u64) {
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
fn ring(target: &ControlBlock) {
    target.bells().ring(&SharedFutex);
}
