//! Why a ring could not be made or found.

use core::fmt;

/// Why no ring was made, or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingError {
    /// The number of slots is not a power of two from 2 to 2^31.
    Slots {
        /// The number of slots that the caller asked for.
        slots: usize,
    },
    /// The memory is not aligned to the view's `ALIGN`.
    Unaligned {
        /// The address of the memory.
        address: usize,
        /// The alignment that the view needs.
        align: usize,
    },
    /// The memory contains no ring, or a ring of another shape.
    Shape {
        /// Slots found; 0 if there is no ring.
        slots: u32,
        /// Bytes of each slot found.
        slot_bytes: u32,
    },
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots { slots } => {
                write!(f, "a ring of {slots} slots: it needs a power of two from 2 to 2^31")
            }
            Self::Unaligned { address, align } => {
                write!(f, "the memory at {address:#x} is not aligned to {align} bytes")
            }
            Self::Shape { slots: 0, .. } => f.write_str("the memory contains no ring"),
            Self::Shape { slots, slot_bytes } => {
                write!(f, "the memory contains another ring: {slots} slots of {slot_bytes} bytes")
            }
        }
    }
}

impl core::error::Error for RingError {}
