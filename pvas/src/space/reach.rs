//! Which rank reaches which memory: the partition in which bytes lie, and the ranks
//! that may read or write them there.
//!
//! ```text
//!  head      starter  rings  exposed        heap           stacks
//!  ├─────────┼────────┴──────┼──────────────┼──────────────┼────────────┤
//!            │◄───────────────── place_of: all that all have ──────────►│
//!  ◄──────── Peers::Read ───►│              │                           │
//!  ◄──────── Peers::ReadHeap ──────────────►│  what peers may write to  │
//!  ◄──────── Peers::Write ──────────────────────────────────────────────►
//! ```

use super::mapped::Space;
use crate::config::Peers;
use std::ptr::NonNull;
use tsumugi_core::mem::LocalRank;

impl Space {
    /// The partition that these bytes lie in, by its rank's place on the node, and
    /// their offset in it, if they lie in memory that every rank has mapped at this
    /// address: starter memory, exposed memory, heap or stacks. Wait-free, a shift
    /// and three comparisons.
    #[inline]
    pub fn place_of(&self, at: NonNull<u8>, bytes: u64) -> Option<(LocalRank, u64)> {
        let far = (at.as_ptr() as usize).wrapping_sub(self.shape.base);
        let (rank, offset) = (far >> self.shape.shift, far & ((1 << self.shape.shift) - 1));
        let room = (self.shape.bytes() as u64).checked_sub(offset as u64);
        let is_inside = rank < self.size as usize
            && offset >= self.shape.starter_offset()
            && room.is_some_and(|room| bytes <= room);
        is_inside.then_some((LocalRank(rank as u32), offset as u64))
    }

    /// Whether this process may store to these bytes: in a partition of its own, or
    /// in a peer's as far as the job's [`Peers`] allows. Wait-free.
    #[inline]
    pub fn is_writable(&self, at: NonNull<u8>, bytes: u64) -> bool {
        self.place_of(at, bytes).is_some_and(|(rank, offset)| {
            self.own_of(rank).is_some() || offset + bytes <= self.writable_bytes() as u64
        })
    }

    /// Whether the peers of the rank that owns these bytes may store to them.
    /// Wait-free.
    #[inline]
    pub fn is_offered(&self, at: NonNull<u8>, bytes: u64) -> bool {
        self.place_of(at, bytes)
            .is_some_and(|(_, offset)| offset + bytes <= self.writable_bytes() as u64)
    }

    /// Whether these bytes lie where peers may do operations on `rank`'s
    /// partition: from its starter memory to the end of its exposed memory.
    pub fn is_exposed(&self, rank: LocalRank, base: NonNull<u8>, bytes: u64) -> bool {
        self.is_between(self.shape.starter_offset(), self.shape.heap_offset(), rank, base, bytes)
    }

    /// Whether peers may write to these bytes of `rank`'s exposed memory.
    pub fn is_open(&self, rank: LocalRank, base: NonNull<u8>, bytes: u64) -> bool {
        let end = self.writable_bytes().min(self.shape.heap_offset());
        self.is_between(self.shape.starter_offset(), end, rank, base, bytes)
    }

    /// Whether these bytes lie where peers may read in `rank`'s partition: in
    /// its exposed memory, or in its heap.
    pub fn is_readable(&self, rank: LocalRank, base: NonNull<u8>, bytes: u64) -> bool {
        self.is_between(self.shape.starter_offset(), self.shape.stacks_offset(), rank, base, bytes)
    }

    /// The offset up to which peers may write to a partition.
    #[inline]
    pub(super) fn writable_bytes(&self) -> usize {
        match self.policy.peers {
            Peers::Write => self.shape.bytes(),
            Peers::ReadHeap => self.shape.heap_offset(),
            Peers::Read => self.shape.rings_end(),
        }
    }

    fn is_between(
        &self,
        first: usize,
        end: usize,
        rank: LocalRank,
        base: NonNull<u8>,
        bytes: u64,
    ) -> bool {
        let (first, end) = (first as u64, end as u64);
        let start = (base.as_ptr() as u64).wrapping_sub(self.shape.start(rank) as u64);
        start >= first && start <= end && bytes <= end - start
    }
}
