//! The partitions of all ranks of a node, mapped at their places.
//!
//! Each partition is a memory file of its own, mapped directly where it
//! belongs and nowhere else: nothing is reserved around it, since a
//! reservation counts against the address space limit. Rank r's place is
//! `base + (r << shift)`, so that translation is a shift and an addition.
//!
//! The files are handed over as descriptors and have no name: they are gone
//! with the last process that maps them, however it ends.

mod error;
mod files;
mod retired;

pub use error::SpaceError;
pub use files::{Files, Window, limits};

use crate::config::{self, Config};
use crate::exposed::ExposedArea;
use crate::heap::Heap;
use crate::partition::{Control, Shape};
use crate::sys;
use error::errno;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::mem::Rank;

/// The mapped partitions of `size` ranks.
pub struct Space {
    shape: Shape,
    size: u32,
    /// Mapped partitions: `size`, or more in a space that was used before.
    mapped: u32,
    /// The only rank of this process, or all of them.
    own: Option<Rank>,
    /// That of `own`, or those of all mapped partitions.
    owns: Vec<Own>,
}

/// What the owner of a partition takes its memory from.
struct Own {
    exposed: ExposedArea,
    heap: Heap,
}

impl Space {
    /// All partitions in this process: a job of one rank, or ranks that are
    /// threads.
    ///
    /// # Errors
    ///
    /// [`SpaceError`].
    pub fn create(size: u32, config: &Config) -> Result<Arc<Self>, SpaceError> {
        let shape = Shape::fit(size, config, limits()).map_err(SpaceError::Shape)?;
        if let Some(space) = retired::reuse(size, shape, config.base) {
            return Ok(Arc::new(space));
        }
        let files = Files::new(shape, size)?;
        let shape = Self::map(shape, &files.files, config.base.is_none())?;
        let mut space = Self { shape, size, mapped: size, own: None, owns: Vec::new() };
        space.make_headers();
        for rank in 0..size {
            space.tune_own(Rank(rank));
            space.add_own(Rank(rank))?;
        }
        Ok(Arc::new(space))
    }

    /// The partitions that a launcher made, seen as rank `own`.
    ///
    /// # Errors
    ///
    /// [`SpaceError`].
    pub fn adopt(files: &Files, own: Rank) -> Result<Arc<Self>, SpaceError> {
        let shape = files.shape;
        let size = files.files.len() as u32;
        for (rank, file) in (0..).map(Rank).zip(&files.files) {
            let error = |e: io::Error| SpaceError::File { rank, bytes: 0, errno: errno(&e) };
            let found = sys::file_bytes(file.as_fd()).map_err(error)?;
            let wanted = shape.bytes() as u64;
            if found != wanted {
                return Err(SpaceError::Length { rank, found, wanted });
            }
        }
        let shape = Self::map(shape, &files.files, false)?;
        let mut space = Self { shape, size, mapped: size, own: Some(own), owns: Vec::new() };
        for rank in (0..size).map(Rank) {
            let checked = space.control(rank).check(rank, size);
            checked.map_err(|error| SpaceError::Header { rank, error })?;
            if rank != own {
                // SAFETY: mapped above; the advice is about core dumps.
                unsafe { sys::advise(shape.start(rank), shape.bytes(), libc::MADV_DONTDUMP) };
            }
        }
        space.tune_own(own);
        space.add_own(own)?;
        Ok(Arc::new(space))
    }

    /// Ranks of the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Where the partitions lie and how they are cut.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The head of `rank`'s partition.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn control(&self, rank: Rank) -> &Control {
        assert!(rank.0 < self.size, "{rank} of {}", self.size);
        // SAFETY: it is mapped as long as `self` lives, and atomics alone.
        unsafe { &*(self.shape.start(rank) as *const Control) }
    }

    /// The heads of all partitions, in order.
    pub fn controls(&self) -> impl Iterator<Item = &Control> + Clone {
        (0..self.size).map(|rank| self.control(Rank(rank)))
    }

    /// The heap of `rank`, if that rank is of this process.
    pub fn heap(&self, rank: Rank) -> Option<&Heap> {
        self.own_of(rank).map(|own| &own.heap)
    }

    /// Where `rank` takes memory from that peers reach, if that rank is of
    /// this process.
    pub fn exposed(&self, rank: Rank) -> Option<&ExposedArea> {
        self.own_of(rank).map(|own| &own.exposed)
    }

    fn own_of(&self, rank: Rank) -> Option<&Own> {
        match self.own {
            Some(own) if own == rank => self.owns.first(),
            Some(_) => None,
            None if rank.0 < self.size => self.owns.get(rank.0 as usize),
            None => None,
        }
    }

    /// Whether these bytes lie where peers may write into `rank`'s partition:
    /// from its starter memory to the end of its exposed memory.
    pub fn is_exposed(&self, rank: Rank, base: NonNull<u8>, bytes: u64) -> bool {
        self.is_between(self.shape.starter_offset(), self.shape.heap_offset(), rank, base, bytes)
    }

    /// Whether these bytes lie where peers may read in `rank`'s partition: in
    /// its exposed memory, or in its heap.
    pub fn is_readable(&self, rank: Rank, base: NonNull<u8>, bytes: u64) -> bool {
        self.is_between(self.shape.starter_offset(), self.shape.stacks_offset(), rank, base, bytes)
    }

    fn is_between(
        &self,
        first: usize,
        end: usize,
        rank: Rank,
        base: NonNull<u8>,
        bytes: u64,
    ) -> bool {
        let (first, end) = (first as u64, end as u64);
        let start = (base.as_ptr() as u64).wrapping_sub(self.shape.start(rank) as u64);
        start >= first && start <= end && bytes <= end - start
    }

    /// Maps all files at their places; further up if that is allowed and
    /// something is there already.
    fn map(mut shape: Shape, files: &[OwnedFd], may_move: bool) -> Result<Shape, SpaceError> {
        let bytes = shape.bytes();
        loop {
            let mut failed = None;
            for (rank, file) in (0..).map(Rank).zip(files) {
                let at = shape.start(rank);
                if let Err(error) = sys::map(file.as_fd(), Some(at), bytes) {
                    failed = Some((rank, at, error));
                    break;
                }
            }
            let Some((rank, at, error)) = failed else { return Ok(shape) };
            Self::unmap(shape, rank.0);
            let next = shape.base + (files.len() << shape.shift);
            if !may_move
                || error.kind() != io::ErrorKind::AlreadyExists
                || next + (files.len() << shape.shift) > config::BASE_MAX
            {
                return Err(SpaceError::Map { rank, at, bytes, errno: errno(&error) });
            }
            shape.base = next;
        }
    }

    fn unmap(shape: Shape, count: u32) {
        for rank in (0..count).map(Rank) {
            // SAFETY: mapped by `map`, and lent to nobody who is still here.
            unsafe { sys::unmap(place(shape, rank, 0), shape.bytes()) };
        }
    }

    fn make_headers(&self) {
        for (rank, control) in (0..).map(Rank).zip(self.controls()) {
            control.make(rank, self.size);
        }
    }

    /// A child that was forked while a ULT runs must not write into its
    /// parent's stacks. The heap stays: between fork and exec the child reads
    /// its arguments there.
    fn tune_own(&self, rank: Rank) {
        let stacks = self.shape.start(rank) + self.shape.stacks_offset();
        // SAFETY: mapped; the advice is about forked children.
        unsafe { sys::advise(stacks, self.shape.stack_bytes, libc::MADV_DONTFORK) };
    }

    fn add_own(&mut self, rank: Rank) -> Result<(), SpaceError> {
        let start = place(self.shape, rank, self.shape.heap_offset());
        // SAFETY: the heap's part of a fresh partition; `drop` keeps the
        // mapping of a space that has heaps.
        let heap = unsafe { Heap::new(start, self.shape.heap_bytes) };
        let heap = heap.map_err(SpaceError::Heap)?;
        // SAFETY: the exposed part of the same.
        let exposed = unsafe { Own::exposed(self.shape, rank) };
        self.owns.push(Own { exposed, heap });
        Ok(())
    }
}

impl Own {
    /// # Safety
    ///
    /// The exposed part of the partition is mapped for good, all zeroes and
    /// nobody else's.
    unsafe fn exposed(shape: Shape, rank: Rank) -> ExposedArea {
        let start = place(shape, rank, shape.exposed_offset());
        // SAFETY: the caller's.
        unsafe { ExposedArea::new(start, shape.exposed_bytes) }
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
        retired::retire(Self { owns, ..*self });
    }
}

/// Where something lies in a partition.
fn place(shape: Shape, rank: Rank, offset: usize) -> NonNull<u8> {
    NonNull::new((shape.start(rank) + offset) as *mut u8).expect("a base above zero")
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { base, shift, .. } = self.shape;
        write!(f, "Space({} ranks at {base:#x}, 1 << {shift} apart)", self.size)
    }
}

#[cfg(test)]
mod tests;
