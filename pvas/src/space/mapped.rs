//! The mapped partitions of a node.

use super::allocators::{PartitionAllocators, place};
use super::error::{SpaceError, errno};
use super::files::{Files, huge_bytes, limits};
use super::retired::{self, RetiredSpace};
use super::taken::{Maps, OccupiedRange};
use super::windows::PopulatedWindows;
use crate::config::{self, HugePages, Policy, Populate, SpaceConfig};
use crate::exposed::ExposedArea;
use crate::global::GlobalHeap;
use crate::heap::Heap;
use crate::partition::{ControlBlock, PartitionShape};
use crate::sys;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use tsumugi_core::mem::LocalRank;

/// The mapped partitions of `size` ranks of one node. A space knows its
/// ranks by their places on the node; a [`Member`](crate::Member) knows their numbers in
/// the job, too.
pub struct Space {
    pub(super) shape: PartitionShape,
    pub(super) policy: Policy,
    pub(super) size: u32,
    /// The number of mapped partitions: `size`, or more in a space that was used
    /// before.
    pub(super) mapped: u32,
    /// The only rank of this process; `None` if all ranks are of this process.
    pub(super) own: Option<LocalRank>,
    /// The allocators of `own`, or of all mapped partitions.
    pub(super) owns: Vec<PartitionAllocators>,
    pub(super) views: PopulatedWindows,
}

impl Space {
    /// Maps all partitions in this process: for a job of one rank, or for ranks
    /// that are threads.
    ///
    /// # Errors
    ///
    /// - [`SpaceError::OldSystem`]: the kernel or the C library is too old.
    /// - [`SpaceError::Shape`]: the partitions do not fit; the errors of [`PartitionShape::fit`].
    /// - [`SpaceError::File`]: the system cannot make a memory file.
    /// - [`SpaceError::Map`]: a partition cannot be mapped at its place.
    /// - [`SpaceError::Heap`]: the allocator refused the memory of a heap.
    pub fn create(size: u32, config: &SpaceConfig) -> Result<Arc<Self>, SpaceError> {
        let shape = PartitionShape::fit(size, config, limits()).map_err(SpaceError::Shape)?;
        if let Some(retired) = retired::take(size, shape, config) {
            let space = Self::from_retired(size, retired);
            space.make_headers();
            return Ok(Arc::new(space));
        }
        let files = Files::new(shape, config.policy, size)?;
        let mut space = Self::map(&files, config.base.is_none(), None)?;
        space.make_headers();
        for rank in 0..size {
            space.tune_own(LocalRank(rank));
            space.add_own(LocalRank(rank))?;
        }
        Ok(Arc::new(space))
    }

    fn from_retired(size: u32, retired: RetiredSpace) -> Self {
        let RetiredSpace { shape, policy, mapped, owns } = retired;
        let views = PopulatedWindows::of(mapped, &policy);
        Self { shape, policy, size, mapped, own: None, owns, views }
    }

    /// Maps the partitions that a launcher made, for the rank `own`.
    ///
    /// # Errors
    ///
    /// - [`SpaceError::Length`], [`SpaceError::Header`]: a file has another length than the
    ///   shape requires, or was made by a program that differs from this one.
    /// - [`SpaceError::File`]: the length of a file cannot be read.
    /// - [`SpaceError::Map`]: a partition cannot be mapped at its place.
    /// - [`SpaceError::Protect`]: the memory of a peer cannot be made read-only.
    /// - [`SpaceError::Heap`]: the allocator refused the memory of this rank's heap.
    pub fn adopt(files: &Files, own: LocalRank) -> Result<Arc<Self>, SpaceError> {
        files.check()?;
        let mut space = Self::map(files, false, Some(own))?;
        for rank in (0..space.size).map(LocalRank) {
            let checked = space.control(rank).check(rank, space.size);
            checked.map_err(|error| SpaceError::Header { rank, error })?;
            if rank != own {
                space.tune_peer(rank)?;
            }
        }
        space.tune_own(own);
        space.add_own(own)?;
        Ok(Arc::new(space))
    }

    /// The number of ranks of the node.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Where the partitions lie and how they are cut.
    pub fn shape(&self) -> PartitionShape {
        self.shape
    }

    /// When pages are allocated, and which ranks may write to them.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The head of `rank`'s partition.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn control(&self, rank: LocalRank) -> &ControlBlock {
        assert!(rank.0 < self.size, "{rank} does not exist: the node has {} ranks", self.size);
        // SAFETY: the head is mapped as long as `self` lives, and consists of
        // atomics.
        unsafe { &*(self.shape.start(rank) as *const ControlBlock) }
    }

    /// The heads of all partitions, in order.
    pub fn controls(&self) -> impl Iterator<Item = &ControlBlock> + Clone {
        (0..self.size).map(|rank| self.control(LocalRank(rank)))
    }

    /// The heap of `rank`, if that rank is in this process.
    pub fn heap(&self, rank: LocalRank) -> Option<&'static Heap> {
        self.own_of(rank).map(|own| own.heap)
    }

    /// The allocator of `rank`'s memory that peers reach, if that rank is in this
    /// process.
    pub fn exposed(&self, rank: LocalRank) -> Option<&ExposedArea> {
        self.own_of(rank).map(|own| &own.exposed)
    }

    /// The allocator of `rank`'s memory that peers write in every job, for rings
    /// and mailboxes, if that rank is in this process.
    pub fn rings(&self, rank: LocalRank) -> Option<&ExposedArea> {
        self.own_of(rank).map(|own| own.rings.as_ref().unwrap_or(&own.exposed))
    }

    pub(super) fn own_of(&self, rank: LocalRank) -> Option<&PartitionAllocators> {
        match self.own {
            Some(own) if own == rank => self.owns.first(),
            Some(_) => None,
            None if rank.0 < self.size => self.owns.get(rank.0 as usize),
            None => None,
        }
    }

    /// Maps all files at their places. If a mapping is in the way and `may_move` is
    /// true, it tries higher addresses, and at last the range that ThreadSanitizer
    /// leaves free.
    fn map(files: &Files, may_move: bool, own: Option<LocalRank>) -> Result<Self, SpaceError> {
        let (mut shape, size) = (files.shape, files.files.len() as u32);
        loop {
            let Err((rank, error, taken)) = Self::map_at(shape, files) else {
                let (policy, views) = (files.policy, PopulatedWindows::of(size, &files.policy));
                return Ok(Self {
                    shape,
                    policy,
                    size,
                    mapped: size,
                    own,
                    owns: Vec::new(),
                    views,
                });
            };
            let range = files.files.len() << shape.shift;
            let may_move = may_move && error.kind() == io::ErrorKind::AlreadyExists;
            match base_after(shape.base, range, taken) {
                Some(next) if may_move => shape.base = next,
                _ => {
                    let (at, bytes) = (shape.start(rank), shape.bytes());
                    let errno = errno(&error);
                    return Err(SpaceError::Map { rank, at, bytes, errno, taken });
                }
            }
        }
    }

    /// Maps all files or none. Mappings in the way are looked up before, because
    /// ThreadSanitizer ends a program that tries to map over them.
    fn map_at(
        shape: PartitionShape,
        files: &Files,
    ) -> Result<(), (LocalRank, io::Error, Option<OccupiedRange>)> {
        let maps = Maps::now();
        for (rank, file) in (0..).map(LocalRank).zip(&files.files) {
            let at = shape.start(rank);
            if let Some(taken) = maps.find(at, shape.bytes()) {
                Self::unmap(shape, rank.0);
                return Err((rank, io::Error::from_raw_os_error(libc::EEXIST), Some(taken)));
            }
            let mapped = sys::map(file.as_fd(), Some(at), shape.bytes()).and_then(|_| {
                let Some(huge) = files.huge.get(rank.0 as usize) else { return Ok(()) };
                let at = at + shape.exposed_offset();
                // SAFETY: the range lies within the mapping that was made just now.
                let done = unsafe { sys::map_over(huge.as_fd(), at, huge_bytes(shape)) };
                done.inspect_err(|_| Self::unmap_one(shape, rank))
            });
            if let Err(error) = mapped {
                Self::unmap(shape, rank.0);
                return Err((rank, error, None));
            }
        }
        Ok(())
    }

    fn unmap(shape: PartitionShape, count: u32) {
        (0..count).map(LocalRank).for_each(|rank| Self::unmap_one(shape, rank));
    }

    fn unmap_one(shape: PartitionShape, rank: LocalRank) {
        // SAFETY: `map_at` mapped it, and no user of the memory is left.
        unsafe { sys::unmap(place(shape, rank, 0), shape.bytes()) };
    }

    fn make_headers(&self) {
        for (rank, control) in (0..).map(LocalRank).zip(self.controls()) {
            control.make(rank, self.size);
        }
    }

    /// Sets the advice for an own partition. A child that was forked while a ULT
    /// runs must not write into its parent's stacks. The heap stays mapped in the
    /// child: between fork and exec the child reads its arguments there.
    fn tune_own(&self, rank: LocalRank) {
        let stacks = self.shape.start(rank) + self.shape.stacks_offset();
        // SAFETY: the range is mapped; the advice is about forked children.
        let _ = unsafe { sys::advise(stacks, self.shape.stack_bytes, libc::MADV_DONTFORK) };
        // No huge pages for the stacks: most of their pages are never used.
        let at = self.shape.start(rank) + self.shape.exposed_offset();
        self.advise_huge(at, huge_bytes(self.shape));
    }

    /// Sets the advice for a peer's partition: it is left out of core dumps, and
    /// can be written as far as the job allows.
    fn tune_peer(&self, rank: LocalRank) -> Result<(), SpaceError> {
        let (start, bytes) = (self.shape.start(rank), self.shape.bytes());
        // SAFETY: the range is mapped; the advice is about core dumps.
        let _ = unsafe { sys::advise(start, bytes, libc::MADV_DONTDUMP) };
        // One call for the whole partition, so that it stays one mapping; the peer
        // itself has touched the pages of its stacks.
        self.advise_huge(start, bytes);
        let writable = self.writable_bytes();
        if writable < bytes {
            // SAFETY: the range was mapped just now, and no code of this process
            // writes to it yet.
            let done = unsafe { sys::protect(start + writable, bytes - writable) };
            done.map_err(|error| SpaceError::Protect { rank, errno: errno(&error) })?;
        }
        Ok(())
    }

    fn advise_huge(&self, at: usize, bytes: usize) {
        if self.policy.huge_pages == HugePages::Advise {
            // SAFETY: the range is mapped; the advice is about the size of pages.
            let _ = unsafe { sys::advise(at, bytes, libc::MADV_HUGEPAGE) };
        }
    }

    fn add_own(&mut self, rank: LocalRank) -> Result<(), SpaceError> {
        let start = place(self.shape, rank, self.shape.heap_offset());
        let tally = match self.policy.populate {
            Populate::None => None,
            Populate::Own | Populate::Peers => Some(&*Box::leak(Box::default())),
        };
        // SAFETY: the range is the heap's part of a fresh partition; `drop` keeps
        // the mapping of a space that has heaps.
        let heap = unsafe { Heap::new(start, self.shape.heap_bytes, tally) };
        let heap = heap.map_err(SpaceError::Heap)?.keep();
        GlobalHeap::adopt(heap);
        // SAFETY: the range is the exposed part of the same fresh partition.
        let (exposed, rings) =
            unsafe { PartitionAllocators::exposed(self.shape, &self.policy, tally, rank) };
        self.owns.push(PartitionAllocators { exposed, rings, heap, tally });
        Ok(())
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if self.owns.is_empty() {
            Self::unmap(self.shape, self.mapped);
            return;
        }
        if self.own.is_some() || self.owns.len() < self.mapped as usize {
            return; // mimalloc keeps the heap: a process is a rank once
        }
        let owns = std::mem::take(&mut self.owns);
        let Self { shape, policy, mapped, .. } = *self;
        retired::retire(RetiredSpace { shape, policy, mapped, owns });
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PartitionShape { base, shift, .. } = self.shape;
        write!(f, "Space({} ranks at {base:#x}, 1 << {shift} apart)", self.size)
    }
}

/// The next base for a range that has found a mapping in its way: beyond that
/// mapping, and at last the range that ThreadSanitizer leaves free (it needs all
/// the rest itself).
fn base_after(base: usize, range: usize, taken: Option<OccupiedRange>) -> Option<usize> {
    let end_tsan = config::BASE_TSAN + config::BASE_TSAN_BYTES;
    let is_tsan = (config::BASE_TSAN..end_tsan).contains(&base);
    let past = taken.map_or(0, |taken| taken.end.saturating_sub(base)).max(1);
    let next = base.checked_add(past.checked_next_multiple_of(range)?)?;
    if next.checked_add(range)? <= if is_tsan { end_tsan } else { config::BASE_MAX } {
        Some(next)
    } else {
        (!is_tsan).then_some(config::BASE_TSAN)
    }
}

#[cfg(test)]
mod tests;
