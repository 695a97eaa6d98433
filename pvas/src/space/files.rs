//! The memory files of a job that a launcher starts, and the launcher's own view of
//! them.

use super::error::{SpaceError, errno};
use crate::config::{HugePages, Policy, SpaceConfig};
use crate::partition::{CONTROL_BYTES, ControlBlock, Limits, PartitionShape};
use crate::sys;
use crate::system;
use std::fs;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use tsumugi_core::mem::LocalRank;

/// The memory files of a job that has not started yet.
#[derive(Debug)]
pub struct Files {
    /// Where the files must be mapped.
    pub shape: PartitionShape,
    /// When pages are allocated, and which ranks may write to them.
    pub policy: Policy,
    /// One file for each rank.
    pub files: Vec<OwnedFd>,
    /// Files of huge pages for each rank's exposed memory and heap, if the policy
    /// takes them from the pool.
    pub huge: Vec<OwnedFd>,
}

/// The head of a partition, mapped at any address: the view that a launcher has of
/// a rank.
#[derive(Debug)]
pub struct ControlMapping(NonNull<ControlBlock>);

impl Files {
    /// Makes the files of `size` ranks by `config` and the limits of this process,
    /// and writes their headers.
    ///
    /// # Errors
    ///
    /// - [`SpaceError::OldSystem`]: the kernel or the C library is too old.
    /// - [`SpaceError::Shape`]: the partitions do not fit; the errors of [`PartitionShape::fit`].
    /// - [`SpaceError::File`]: the system cannot make a memory file.
    /// - [`SpaceError::Map`]: the head of a partition cannot be mapped.
    pub fn create(
        size: u32,
        config: &SpaceConfig,
    ) -> Result<(Self, Vec<ControlMapping>), SpaceError> {
        let shape = PartitionShape::fit(size, config, limits()).map_err(SpaceError::Shape)?;
        let files = Self::new(shape, config.policy, size)?;
        let mut windows = Vec::new();
        for (rank, file) in (0..).map(LocalRank).zip(&files.files) {
            let window = ControlMapping::new(file).map_err(|error| SpaceError::Map {
                rank,
                at: 0,
                bytes: CONTROL_BYTES,
                errno: errno(&error),
                taken: None,
            })?;
            window.make(rank, size);
            windows.push(window);
        }
        Ok((files, windows))
    }

    pub(super) fn new(
        shape: PartitionShape,
        policy: Policy,
        size: u32,
    ) -> Result<Self, SpaceError> {
        system::check().map_err(SpaceError::OldSystem)?;
        let make = |bytes, file: fn(usize) -> io::Result<OwnedFd>| {
            let error = |rank, e: io::Error| SpaceError::File { rank, bytes, errno: errno(&e) };
            let file = |rank| file(bytes).map_err(|e| error(rank, e));
            (0..size).map(LocalRank).map(file).collect::<Result<_, _>>()
        };
        let files = make(shape.bytes(), sys::memory_file)?;
        let huge = match policy.huge_pages {
            HugePages::Reserved => make(huge_bytes(shape), sys::huge_file)?,
            HugePages::None | HugePages::Advise => Vec::new(),
        };
        Ok(Self { shape, policy, files, huge })
    }

    /// Checks that the files have the lengths that follow from the shape and the
    /// policy.
    pub(super) fn check(&self) -> Result<(), SpaceError> {
        let kinds = [(&self.files, self.shape.bytes()), (&self.huge, huge_bytes(self.shape))];
        for (files, bytes) in kinds {
            for (rank, file) in (0..).map(LocalRank).zip(files) {
                let error = |e: io::Error| SpaceError::File { rank, bytes: 0, errno: errno(&e) };
                let (found, wanted) = (sys::file_bytes(file.as_fd()).map_err(error)?, bytes as u64);
                if found != wanted {
                    return Err(SpaceError::Length { rank, found, wanted });
                }
            }
        }
        Ok(())
    }
}

/// The bytes of a partition that consist of huge pages, if it has any: its exposed
/// memory and its heap.
pub(super) fn huge_bytes(shape: PartitionShape) -> usize {
    shape.stacks_offset() - shape.exposed_offset()
}

impl ControlMapping {
    fn new(file: &OwnedFd) -> io::Result<Self> {
        Ok(Self(sys::map(file.as_fd(), None, CONTROL_BYTES)?.cast()))
    }
}

impl Deref for ControlMapping {
    type Target = ControlBlock;
    fn deref(&self) -> &ControlBlock {
        // SAFETY: the head is mapped as long as `self` lives, and consists of
        // atomics.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for ControlMapping {
    fn drop(&mut self) {
        // SAFETY: no reference that was borrowed from `self` is left.
        unsafe { sys::unmap(self.0.cast(), CONTROL_BYTES) };
    }
}

// SAFETY: a window is a pointer to atomics, which any thread may access.
unsafe impl Send for ControlMapping {}
// SAFETY: as above.
unsafe impl Sync for ControlMapping {}

/// The limits of this process, and the huge pages that are free.
pub fn limits() -> Limits {
    Limits {
        address_space_bytes: sys::limit(libc::RLIMIT_AS),
        file_bytes: sys::limit(libc::RLIMIT_FSIZE),
        huge_page_bytes: free_huge_pages(),
    }
}

/// The bytes of the pool that are neither used nor reserved.
fn free_huge_pages() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    let pages = number("HugePages_Free:").saturating_sub(number("HugePages_Rsvd:"));
    if number("Hugepagesize:") == 2048 { pages << 21 } else { 0 }
}
