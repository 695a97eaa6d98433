//! The memory files of a job that a launcher starts, and what the launcher
//! itself sees of them.

use super::SpaceError;
use super::error::errno;
use crate::config::{Config, HugePages, Policy};
use crate::partition::{CONTROL_BYTES, Control, Limits, Shape};
use crate::sys;
use std::fs;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use tsumugi_core::mem::Rank;

/// The memory files of a job that has not started yet.
#[derive(Debug)]
pub struct Files {
    /// Where they are to be mapped.
    pub shape: Shape,
    /// How pages come, and who may write to them.
    pub policy: Policy,
    /// One a rank.
    pub files: Vec<OwnedFd>,
    /// Huge pages for each rank's exposed memory and heap, if the policy is to
    /// take them from the pool.
    pub huge: Vec<OwnedFd>,
}

/// The head of a partition, mapped wherever there is room: what a launcher
/// sees of its ranks.
#[derive(Debug)]
pub struct Window(NonNull<Control>);

impl Files {
    /// The files of `size` ranks as `config` and the limits of this process
    /// want them, with their headers written.
    ///
    /// # Errors
    ///
    /// [`SpaceError`].
    pub fn create(size: u32, config: &Config) -> Result<(Self, Vec<Window>), SpaceError> {
        let shape = Shape::fit(size, config, limits()).map_err(SpaceError::Shape)?;
        let files = Self::new(shape, config.policy, size)?;
        let mut windows = Vec::new();
        for (rank, file) in (0..).map(Rank).zip(&files.files) {
            let window = Window::new(file).map_err(|error| SpaceError::Map {
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

    pub(super) fn new(shape: Shape, policy: Policy, size: u32) -> Result<Self, SpaceError> {
        let make = |bytes, file: fn(usize) -> io::Result<OwnedFd>| {
            let error = |rank, e: io::Error| SpaceError::File { rank, bytes, errno: errno(&e) };
            let file = |rank| file(bytes).map_err(|e| error(rank, e));
            (0..size).map(Rank).map(file).collect::<Result<_, _>>()
        };
        let files = make(shape.bytes(), sys::memory_file)?;
        let huge = match policy.huge_pages {
            HugePages::Reserved => make(huge_bytes(shape), sys::huge_file)?,
            HugePages::None | HugePages::Advise => Vec::new(),
        };
        Ok(Self { shape, policy, files, huge })
    }

    /// Checks that the files are those that the shape and the policy speak of.
    pub(super) fn check(&self) -> Result<(), SpaceError> {
        let kinds = [(&self.files, self.shape.bytes()), (&self.huge, huge_bytes(self.shape))];
        for (files, bytes) in kinds {
            for (rank, file) in (0..).map(Rank).zip(files) {
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

/// What a partition has of huge pages, if it has any: its exposed memory and
/// its heap.
pub(super) fn huge_bytes(shape: Shape) -> usize {
    shape.stacks_offset() - shape.exposed_offset()
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

/// The limits of this process, and the huge pages that are free.
pub fn limits() -> Limits {
    Limits {
        address_space_bytes: sys::limit(libc::RLIMIT_AS),
        file_bytes: sys::limit(libc::RLIMIT_FSIZE),
        huge_page_bytes: free_huge_pages(),
    }
}

/// Bytes of the pool that nobody uses or has reserved.
fn free_huge_pages() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    let pages = number("HugePages_Free:").saturating_sub(number("HugePages_Rsvd:"));
    if number("Hugepagesize:") == 2048 { pages << 21 } else { 0 }
}
