//! Why a space cannot be made.

use super::taken::OccupiedRange;
use crate::config;
use crate::heap::HeapError;
use crate::partition::{HeaderError, ShapeError};
use crate::system::OldSystem;
use std::fmt;
use std::io;
use tsumugi_core::mem::LocalRank;

/// Why a space cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpaceError {
    /// The kernel or the C library is too old.
    OldSystem(OldSystem),
    /// The partitions do not fit.
    Shape(ShapeError),
    /// A memory file could not be made, or its length could not be read.
    File {
        /// The rank that the file belongs to.
        rank: LocalRank,
        /// The length that it should have; 0 if its length could not be read.
        bytes: usize,
        /// The system's error number.
        errno: i32,
    },
    /// A partition could not be mapped at its place.
    Map {
        /// The rank that the partition belongs to.
        rank: LocalRank,
        /// The address; 0 for the head that a launcher maps at any address.
        at: usize,
        /// The length.
        bytes: usize,
        /// The system's error number.
        errno: i32,
        /// The mapping that lies there.
        taken: Option<OccupiedRange>,
    },
    /// Peers' memory could not be made read-only.
    Protect {
        /// The rank that the partition belongs to.
        rank: LocalRank,
        /// The system's error number.
        errno: i32,
    },
    /// A memory file does not have the expected length.
    Length {
        /// The rank that the file belongs to.
        rank: LocalRank,
        /// Its length.
        found: u64,
        /// The expected length.
        wanted: u64,
    },
    /// A partition was made by a program that differs from this one.
    Header {
        /// The rank that the partition belongs to.
        rank: LocalRank,
        /// The field that differs.
        error: HeaderError,
    },
    /// The allocator refused the memory of a partition's heap.
    Heap(HeapError),
}

impl fmt::Display for SpaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = |errno: &i32| io::Error::from_raw_os_error(*errno);
        match self {
            Self::OldSystem(error) => error.fmt(f),
            Self::Shape(error) => error.fmt(f),
            Self::File { rank, bytes: 0, errno } => {
                write!(f, "reading the length of the memory file of {rank}: {}", system(errno))
            }
            Self::File { rank, bytes, errno } => write!(
                f,
                "making the memory file (memfd_create) of {rank} with {bytes:#x} bytes: {}",
                system(errno)
            ),
            Self::Map { rank, at: 0, bytes, errno, .. } => {
                write!(f, "mapping {bytes:#x} bytes of the head of {rank}: {}", system(errno))
            }
            Self::Map { rank, at, bytes, errno, taken } => {
                write!(f, "mapping {bytes:#x} bytes of {rank} at {at:#x}: {}", system(errno))?;
                match taken {
                    Some(taken) => write!(f, ": {taken}")?,
                    None if *errno == libc::EEXIST => {
                        f.write_str(": nothing may be mapped there")?
                    }
                    None => {}
                }
                write!(
                    f,
                    "; {} moves the partitions (free with ThreadSanitizer: 256 GiB from {:#x}; \
                     with AddressSanitizer: from {:#x})",
                    config::BASE,
                    config::BASE_TSAN,
                    config::BASE_DEFAULT
                )
            }
            Self::Protect { rank, errno } => {
                write!(f, "making the partition of {rank} read-only: {}", system(errno))
            }
            Self::Length { rank, found, wanted } => {
                write!(f, "the memory file of {rank} has {found:#x} bytes instead of {wanted:#x}")
            }
            Self::Header { rank, error } => write!(f, "the partition of {rank}: {error}"),
            Self::Heap(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SpaceError {}

/// The system's number of an error.
pub(super) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}
