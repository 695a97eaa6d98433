//! The memory files of a job that a launcher starts, and what the launcher
//! itself sees of them.

use super::SpaceError;
use super::error::errno;
use crate::config::Config;
use crate::partition::{CONTROL_BYTES, Control, Limits, Shape};
use crate::sys;
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
    /// One a rank.
    pub files: Vec<OwnedFd>,
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

    pub(super) fn new(shape: Shape, size: u32) -> Result<Self, SpaceError> {
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
