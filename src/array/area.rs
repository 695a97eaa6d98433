//! Addresses for copies of all elements of an array, of which only those that
//! are used have memory.

use super::ArrayError;
use std::ops::Range;
use std::ptr::{self, NonNull};

/// Zero bytes, of this process alone. What lies where is its user's to know:
/// it only maps.
#[derive(Debug)]
pub(super) struct Area {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns the mapping, and does nothing with the bytes.
unsafe impl Send for Area {}
// SAFETY: the same.
unsafe impl Sync for Area {}

impl Area {
    pub(super) fn new(bytes: usize) -> Result<Self, ArrayError> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping where nothing is.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(found) if start != libc::MAP_FAILED => Ok(Self { start: found, bytes }),
            _ => Err(ArrayError::NoAddresses { bytes }),
        }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Gives back the memory of the pages of the system's that lie in `range`;
    /// they are zero again.
    ///
    /// # Safety
    ///
    /// Nobody uses these bytes.
    pub(super) unsafe fn forget(&self, range: Range<usize>) {
        let start = range.start.next_multiple_of(SYSTEM_PAGE);
        let end = match range.end {
            end if end >= self.bytes => self.bytes,
            end => end - end % SYSTEM_PAGE,
        };
        if start < end {
            // SAFETY: part of the mapping; unused: the caller's.
            unsafe {
                let at = self.start.as_ptr().add(start);
                libc::madvise(at.cast(), end - start, libc::MADV_DONTNEED);
            }
        }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: its own mapping, which nobody uses who does not have it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// One that is larger keeps some more of it.
const SYSTEM_PAGE: usize = 4096;
