//! The partitions of all ranks of a node, mapped at their places.
//!
//! Each partition is a memory file of its own, mapped directly where it
//! belongs and nowhere else: nothing is reserved around it, since a
//! reservation counts against the address space limit. Rank r's place is
//! `base + (r << shift)`, so that translation is a shift and an addition.
//!
//! The files are handed over as descriptors and have no name: they are gone
//! with the last process that maps them, however it ends.

use crate::config::{self, Config};
use crate::heap::{Heap, HeapError};
use crate::partition::{CONTROL_BYTES, Control, HeaderError, Limits, Shape, ShapeError};
use crate::sys;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
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
    heaps: Vec<Heap>,
}

/// The memory files of a job that has not started yet.
#[derive(Debug)]
pub struct Files {
    /// Where they are to be mapped.
    pub shape: Shape,
    /// One a rank.
    pub files: Vec<OwnedFd>,
}

/// The head of a partition, mapped wherever there is room: what a launcher
/// sees of its ranks.
#[derive(Debug)]
pub struct Window(NonNull<Control>);

/// Why there is no space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceError {
    /// The partitions do not fit.
    Shape(ShapeError),
    /// A memory file could not be made.
    File {
        /// Whose.
        rank: Rank,
        /// How long it was to be.
        bytes: usize,
        /// The system's error number.
        errno: i32,
    },
    /// A partition could not be mapped at its place.
    Map {
        /// Whose.
        rank: Rank,
        /// Where.
        at: usize,
        /// How much.
        bytes: usize,
        /// The system's error number.
        errno: i32,
    },
    /// A memory file has not the length that was agreed on.
    Length {
        /// Whose.
        rank: Rank,
        /// What it has.
        found: u64,
        /// What it should have.
        wanted: u64,
    },
    /// A partition was made by a program that differs from this one.
    Header {
        /// Whose.
        rank: Rank,
        /// What differs.
        error: HeaderError,
    },
    /// The allocator did not take a partition's heap.
    Heap(HeapError),
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
        if let Some(space) = Self::reuse(size, shape, config.base) {
            return Ok(Arc::new(space));
        }
        let files = Files::new(shape, size)?;
        let shape = Self::place(shape, &files.files, config.base.is_none())?;
        let mut space = Self { shape, size, mapped: size, own: None, heaps: Vec::new() };
        space.make_headers();
        for rank in 0..size {
            space.tune_own(Rank(rank));
            space.add_heap(Rank(rank))?;
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
        let shape = Self::place(shape, &files.files, false)?;
        let mut space = Self { shape, size, mapped: size, own: Some(own), heaps: Vec::new() };
        for rank in (0..size).map(Rank) {
            let checked = space.control(rank).check(rank, size);
            checked.map_err(|error| SpaceError::Header { rank, error })?;
            if rank != own {
                // SAFETY: mapped above; the advice is about core dumps.
                unsafe { sys::advise(shape.start(rank), shape.bytes(), libc::MADV_DONTDUMP) };
            }
        }
        space.tune_own(own);
        space.add_heap(own)?;
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
        match self.own {
            Some(own) if own == rank => self.heaps.first(),
            Some(_) => None,
            None if rank.0 < self.size => self.heaps.get(rank.0 as usize),
            None => None,
        }
    }

    /// Whether these bytes lie in `rank`'s partition, behind its head.
    pub fn contains(&self, rank: Rank, base: NonNull<u8>, bytes: u64) -> bool {
        let (first, end) = (self.shape.starter_offset() as u64, self.shape.bytes() as u64);
        let start = (base.as_ptr() as u64).wrapping_sub(self.shape.start(rank) as u64);
        start >= first && start <= end && bytes <= end - start
    }

    /// Maps all files at their places; further up if that is allowed and
    /// something is there already.
    fn place(mut shape: Shape, files: &[OwnedFd], may_move: bool) -> Result<Shape, SpaceError> {
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
            let start = NonNull::new(shape.start(rank) as *mut u8).expect("a base above zero");
            // SAFETY: mapped by `place`, and lent to nobody who is still here.
            unsafe { sys::unmap(start, shape.bytes()) };
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

    fn add_heap(&mut self, rank: Rank) -> Result<(), SpaceError> {
        let start = (self.shape.start(rank) + self.shape.heap_offset()) as *mut u8;
        let start = NonNull::new(start).expect("a base above zero");
        // SAFETY: the heap's part of a fresh partition; `drop` keeps the
        // mapping of a space that has heaps.
        let heap = unsafe { Heap::new(start, self.shape.heap_bytes) };
        self.heaps.push(heap.map_err(SpaceError::Heap)?);
        Ok(())
    }

    /// A retired space of the same shape with room for `size` ranks.
    fn reuse(size: u32, shape: Shape, base: Option<usize>) -> Option<Self> {
        let mut retired = RETIRED.lock().unwrap_or_else(PoisonError::into_inner);
        let place = retired.iter().position(|space| {
            let same = Shape { base: shape.base, ..space.shape } == shape;
            same && space.mapped >= size && base.is_none_or(|base| base == space.shape.base)
        })?;
        let mut space = retired.swap_remove(place);
        space.size = size;
        space.make_headers();
        Some(space)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if self.heaps.is_empty() {
            Self::unmap(self.shape, self.mapped);
            return;
        }
        if self.own.is_some() || self.heaps.len() < self.mapped as usize {
            return; // mimalloc keeps the heap: a process is a rank once
        }
        for rank in (0..self.mapped).map(Rank) {
            let (start, shape) = (self.shape.start(rank), self.shape);
            // SAFETY: mapped, and lent to nobody who is still here.
            unsafe {
                sys::discard(start, shape.heap_offset());
                sys::discard(start + shape.stacks_offset(), shape.stack_bytes);
            }
        }
        let heaps = std::mem::take(&mut self.heaps);
        let space = Self { heaps, ..*self };
        RETIRED.lock().unwrap_or_else(PoisonError::into_inner).push(space);
    }
}

/// Spaces whose ranks were threads of this process and are gone. mimalloc
/// never gives an arena up, so the next space of the same shape is made of an
/// old one; what was not released in its heaps is lost.
static RETIRED: Mutex<Vec<Space>> = Mutex::new(Vec::new());

impl Files {
    /// The files of `size` ranks as `config` and the limits of this process
    /// want them, with their headers written.
    ///
    /// # Errors
    ///
    /// [`SpaceError`].
    pub fn create(size: u32, config: &Config) -> Result<(Self, Vec<Window>), SpaceError> {
        let shape = Shape::fit(size, config, limits()).map_err(SpaceError::Shape)?;
        let files = Self::new(shape, size)?;
        let mut windows = Vec::new();
        for (rank, file) in (0..).map(Rank).zip(&files.files) {
            let window = Window::new(file).map_err(|error| SpaceError::Map {
                rank,
                at: 0,
                bytes: CONTROL_BYTES,
                errno: errno(&error),
            })?;
            window.make(rank, size);
            windows.push(window);
        }
        Ok((files, windows))
    }

    fn new(shape: Shape, size: u32) -> Result<Self, SpaceError> {
        let bytes = shape.bytes();
        let file = |rank| {
            let error = |e: io::Error| SpaceError::File { rank, bytes, errno: errno(&e) };
            sys::memory_file(bytes).map_err(error)
        };
        let files = (0..size).map(|rank| file(Rank(rank))).collect::<Result<_, _>>()?;
        Ok(Self { shape, files })
    }
}

impl Window {
    fn new(file: &OwnedFd) -> io::Result<Self> {
        Ok(Self(sys::map(file.as_fd(), None, CONTROL_BYTES)?.cast()))
    }
}

impl Deref for Window {
    type Target = Control;
    fn deref(&self) -> &Control {
        // SAFETY: mapped as long as `self` lives, and atomics alone.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: nothing that was borrowed from `self` is left.
        unsafe { sys::unmap(self.0.cast(), CONTROL_BYTES) };
    }
}

// SAFETY: a window is a pointer to atomics.
unsafe impl Send for Window {}
// SAFETY: the same.
unsafe impl Sync for Window {}

/// The limits of this process.
pub fn limits() -> Limits {
    Limits {
        address_space_bytes: sys::limit(libc::RLIMIT_AS),
        file_bytes: sys::limit(libc::RLIMIT_FSIZE),
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { base, shift, .. } = self.shape;
        write!(f, "Space({} ranks at {base:#x}, 1 << {shift} apart)", self.size)
    }
}

impl fmt::Display for SpaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = |errno: &i32| io::Error::from_raw_os_error(*errno);
        match self {
            Self::Shape(error) => error.fmt(f),
            Self::File { rank, bytes, errno } => {
                write!(f, "the memory file of {rank} ({bytes:#x} bytes): {}", system(errno))
            }
            Self::Map { rank, at, bytes, errno } => write!(
                f,
                "mapping {bytes:#x} bytes of {rank} at {at:#x}: {}; {} moves the partitions",
                system(errno),
                config::BASE
            ),
            Self::Length { rank, found, wanted } => {
                write!(f, "the memory file of {rank} has {found:#x} bytes instead of {wanted:#x}")
            }
            Self::Header { rank, error } => write!(f, "the partition of {rank}: {error}"),
            Self::Heap(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SpaceError {}

#[cfg(test)]
mod tests;
