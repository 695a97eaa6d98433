//! Why a call on a container failed.

use crate::address::GlobalAddr;
use crate::heap::HeapError;
use core::fmt;
use tsumugi_core::mem::{AddrError, Rank};

/// Why a call on a container failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The container has no such element.
    NoElement {
        /// The index of the request.
        index: u64,
        /// The number of elements that the container has.
        len: u64,
    },
    /// No container of this kind, with elements of these types, is there in this pool.
    NoContainer {
        /// The address at which it was to be.
        addr: GlobalAddr,
    },
    /// The rank that was to make a container could not make it.
    NotMade {
        /// The rank.
        rank: Rank,
    },
    /// A container that was to be freed has other handles.
    InUse,
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
            Self::NoElement { index, len } => {
                write!(f, "element {index}: the container has {len} elements")
            }
            Self::NoContainer { addr } => write!(
                f,
                "{addr}: no container of this kind, with elements of these types, is there in this \
                 pool"
            ),
            Self::NotMade { rank } => write!(f, "{rank} could not make the container"),
            Self::InUse => f.write_str(
                "the container is not freed: a rank has a clone of its handle, or has opened it",
            ),
        }
    }
}

impl core::error::Error for ContainerError {}
