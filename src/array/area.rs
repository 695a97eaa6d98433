//! Address space for copies of all elements of an array; only the copies in use
//! have memory.

use super::ArrayError;
use std::ops::Range;
use std::ptr::{self, NonNull};

/// A private mapping of zero bytes. It only maps; its user manages the content.
#[derive(Debug)]
pub(super) struct MappedArea {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the value owns the mapping, and never accesses the bytes.
unsafe impl Send for MappedArea {}
// SAFETY: as for `Send`.
unsafe impl Sync for MappedArea {}

impl MappedArea {
    pub(super) fn new(bytes: usize) -> Result<Self, ArrayError> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(found) if start != libc::MAP_FAILED => Ok(Self { start: found, bytes }),
            _ => Err(ArrayError::NoAddresses { bytes }),
        }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Frees the memory of the system's pages that lie entirely in `range`; they
    /// are zero again.
    ///
    /// # Safety
    ///
    /// No other code uses these bytes.
    pub(super) unsafe fn forget(&self, range: Range<usize>) {
        let start = range.start.next_multiple_of(SYSTEM_PAGE);
        let end = match range.end {
            end if end >= self.bytes => self.bytes,
            end => end - end % SYSTEM_PAGE,
        };
        if start < end {
            // SAFETY: the range is a part of the mapping, and unused by the
            // caller's contract.
            unsafe {
                let at = self.start.as_ptr().add(start);
                libc::madvise(at.cast(), end - start, libc::MADV_DONTNEED);
            }
        }
    }
}

impl Drop for MappedArea {
    fn drop(&mut self) {
        // SAFETY: the value owns the mapping, and all users of the mapping go
        // through the value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The assumed size of the system's pages. If they are larger, some more of the
/// memory is kept.
const SYSTEM_PAGE: usize = 4096;
