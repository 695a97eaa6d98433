//! The memory of all stacks: one range, private to this process or in a rank's
//! partition.
//!
//! The range is kept from forked children, because in a shared mapping a child that
//! still runs on its parent's stack would overwrite that stack. If the system refuses
//! this, the process reports so once on standard error, and all else works.

use crate::host::{self, page_bytes};
use core::fmt;
use core::ptr::NonNull;

/// A range of memory for stacks.
#[derive(Debug)]
pub struct StackArea {
    base: NonNull<u8>,
    bytes: usize,
    mapped: bool,
}

/// Why a stack area cannot be made or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StackError {
    /// The system gave no memory, or refused to keep the range from forked children.
    Map {
        /// The bytes that were requested.
        bytes: usize,
        /// The system's error number.
        errno: i32,
    },
    /// The range does not begin and end on a page.
    Unaligned {
        /// The range's first byte.
        base: usize,
        /// The range's length in bytes.
        bytes: usize,
    },
    /// No stack can have this size: it is not a multiple of the page, or less than 8
    /// KiB.
    Size {
        /// The size in bytes.
        stack_bytes: usize,
    },
    /// The stack size is larger than the area, or than 16 TiB.
    Large {
        /// The size in bytes.
        stack_bytes: usize,
        /// The area's length in bytes.
        bytes: usize,
    },
    /// The area has no room for main's stack and one more stack.
    Small {
        /// The area's length in bytes.
        bytes: usize,
        /// The length that would be enough.
        needed: usize,
    },
}

// SAFETY: an area is a range of addresses, not tied to a thread; its owner may use it
// from any thread.
unsafe impl Send for StackArea {}
// SAFETY: as for `Send`; and no method of a shared area writes.
unsafe impl Sync for StackArea {}

impl StackArea {
    /// Reserves `bytes` of private memory; the system provides pages when they are
    /// first touched. With `std` only.
    ///
    /// # Errors
    ///
    /// [`StackError::Map`] if the system gives no memory or refuses to keep the range
    /// from forked children, [`StackError::Unaligned`] if `bytes` is no multiple of
    /// the page.
    #[cfg(feature = "std")]
    pub fn map(bytes: usize) -> Result<Self, StackError> {
        let base = host::map(bytes).map_err(|errno| StackError::Map { bytes, errno })?;
        // If the next call fails, the drop of `area` unmaps the range.
        let area = Self { base, bytes, mapped: true };
        area.keep_from_children()?;
        Ok(area)
    }

    /// An area in memory that the caller has, such as a rank's partition.
    ///
    /// # Safety
    ///
    /// The range is readable and writable and no other code uses it. It stays so
    /// until the scheduler that takes the area has been dropped or its `run` has
    /// returned, which gives the range back as it was; if that scheduler abandons
    /// sleeping ULTs (see [`Scheduler`](crate::Scheduler)), for ever.
    ///
    /// # Errors
    ///
    /// [`StackError::Unaligned`] if the range does not begin and end on a page;
    /// [`StackError::Map`] if the system refuses to keep it from forked children.
    pub unsafe fn from_raw(base: NonNull<u8>, bytes: usize) -> Result<Self, StackError> {
        let area = Self { base, bytes, mapped: false };
        area.keep_from_children()?;
        Ok(area)
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// The area's length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes for `stacks` stacks of `stack_bytes` beside main's stack. If the sum
    /// overflows, `usize::MAX`, a length that no area has.
    pub fn bytes_for(stacks: usize, stack_bytes: usize, main_stack_bytes: usize) -> usize {
        let page = page_bytes();
        let each = stacks.saturating_mul(stack_bytes.saturating_add(page));
        each.saturating_add(main_stack_bytes).saturating_add(2 * page)
    }

    fn keep_from_children(&self) -> Result<(), StackError> {
        let (base, bytes) = (self.base.as_ptr(), self.bytes);
        if base.addr() % page_bytes() != 0 || bytes % page_bytes() != 0 {
            return Err(StackError::Unaligned { base: base.addr(), bytes });
        }
        // SAFETY: the range belongs to the area.
        unsafe { host::keep_from_children(self.base, bytes) }
            .map_err(|errno| StackError::Map { bytes, errno })
    }
}

impl Drop for StackArea {
    fn drop(&mut self) {
        // SAFETY: the range belongs to the area, and no ULT runs in it any more.
        unsafe {
            if self.mapped {
                host::unmap(self.base, self.bytes);
            } else {
                // The caller of `from_raw` gets the range back in its first state.
                host::hand_back(self.base, self.bytes);
            }
        }
    }
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Map { bytes, errno } => {
                #[cfg(feature = "std")]
                let errno = std::io::Error::from_raw_os_error(errno);
                write!(f, "the system refused {bytes} bytes for stacks: {errno}")
            }
            Self::Unaligned { base, bytes } => {
                let page = page_bytes();
                write!(
                    f,
                    "{bytes} bytes of stacks at {base:#x} must be whole pages of {page} bytes"
                )
            }
            Self::Size { stack_bytes } => {
                write!(
                    f,
                    "a stack of {stack_bytes} bytes: it must be a multiple of {} and at least {}",
                    page_bytes(),
                    STACK_BYTES_MIN
                )
            }
            Self::Large { stack_bytes, bytes } => {
                write!(
                    f,
                    "a stack of {stack_bytes} bytes does not fit into an area of {bytes} bytes, or \
                     is larger than 16 TiB"
                )
            }
            Self::Small { bytes, needed } => {
                write!(
                    f,
                    "an area of {bytes} bytes is too small for stacks: {needed} bytes are needed"
                )
            }
        }
    }
}

impl core::error::Error for StackError {}

/// The smallest stack: on less, a ULT could not even panic.
pub(crate) const STACK_BYTES_MIN: usize = 8192;
