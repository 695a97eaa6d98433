//! Why a call on a container failed.

use crate::address::GlobalAddr;
use crate::heap::HeapError;
use core::fmt;
use tsumugi_core::mem::AddrError;

/// Why a call on a container failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContainerError {
    /// There is no memory for it, or the block to be freed is no block.
    Heap(HeapError),
    /// Some memory of the container is out of reach.
    Access(AddrError<GlobalAddr>),
    /// The container has no such bytes.
    OutOfRange {
        /// The first byte of the request.
        at: u64,
        /// The number of bytes of the request.
        bytes: u64,
        /// The number of bytes that the container has.
        size: u64,
    },
    /// A table must have ranks, and slots on each.
    NoSlots,
}

impl From<AddrError<GlobalAddr>> for ContainerError {
    fn from(error: AddrError<GlobalAddr>) -> Self {
        Self::Access(error)
    }
}

impl From<HeapError> for ContainerError {
    fn from(error: HeapError) -> Self {
        match error {
            HeapError::Access(error) => Self::Access(error),
            error => Self::Heap(error),
        }
    }
}

impl fmt::Display for ContainerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heap(error) => error.fmt(f),
            Self::Access(error) => error.fmt(f),
            Self::OutOfRange { at, bytes, size } => {
                write!(f, "{bytes} bytes at offset {at}: the container has {size} bytes")
            }
            Self::NoSlots => f.write_str("a table needs at least one rank, and one slot on each"),
        }
    }
}

impl core::error::Error for ContainerError {}
