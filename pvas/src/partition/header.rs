//! The header of a partition, by which a program that was built differently is
//! refused before it misreads the rest.

use std::fmt;
use tsumugi_core::mem::LocalRank;
use tsumugi_core::release::Release;
use tsumugi_core::sync::{AtomicU32, AtomicU64, Ordering};

/// The header; written once, by the process that makes the file.
#[repr(C)]
pub(super) struct PartitionHeader {
    magic: AtomicU64,
    layout: AtomicU64,
    version: AtomicU32,
    rank: AtomicU32,
    size: AtomicU32,
}

/// Why the head of a partition does not match this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file is no partition at all.
    Magic {
        /// The first word of the file.
        found: u64,
    },
    /// Made by another release.
    Version {
        /// The version of the program that made the partition.
        found: Release,
        /// The version of this program.
        ours: Release,
    },
    /// The same release, but built so that its structures differ.
    Layout {
        /// The layout of the program that made the partition.
        found: u64,
        /// The layout of this program.
        ours: u64,
    },
    /// The partition belongs to another rank.
    Place {
        /// The rank of the partition, and the size of its job.
        found: (u32, u32),
        /// The rank and the size that were expected.
        wanted: (u32, u32),
    },
}

impl PartitionHeader {
    /// Writes the header into a fresh file.
    pub fn make(&self, rank: LocalRank, size: u32, layout: u64) {
        self.layout.store(layout, Ordering::Relaxed);
        self.version.store(Release::OWN.0.into(), Ordering::Relaxed);
        self.rank.store(rank.0, Ordering::Relaxed);
        self.size.store(size, Ordering::Relaxed);
        // Release: pairs with the Acquire in `check`.
        self.magic.store(MAGIC, Ordering::Release);
    }

    /// Checks that this is `rank`'s partition, made by a program like this one.
    ///
    /// # Errors
    ///
    /// [`HeaderError`] for the first field that differs: magic, version, layout, and then
    /// the rank and the size.
    pub fn check(&self, rank: LocalRank, size: u32, layout: u64) -> Result<(), HeaderError> {
        // Acquire: pairs with the Release in `make`.
        let found = self.magic.load(Ordering::Acquire);
        if found != MAGIC {
            return Err(HeaderError::Magic { found });
        }
        let found = Release(self.version.load(Ordering::Relaxed) as u16);
        if found != Release::OWN {
            return Err(HeaderError::Version { found, ours: Release::OWN });
        }
        let found = self.layout.load(Ordering::Relaxed);
        if found != layout {
            return Err(HeaderError::Layout { found, ours: layout });
        }
        let found = (self.rank.load(Ordering::Relaxed), self.size.load(Ordering::Relaxed));
        if found != (rank.0, size) {
            return Err(HeaderError::Place { found, wanted: (rank.0, size) });
        }
        Ok(())
    }

    /// The rank of this partition, as the header has it.
    pub fn rank(&self) -> u32 {
        self.rank.load(Ordering::Relaxed)
    }
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { found } => {
                write!(f, "the memory file is not a partition: it starts with {found:#018x}")
            }
            Self::Version { found, ours } => write!(
                f,
                "the partitions were made by tsumugi {found}, and this program was built with \
                 tsumugi {ours}: build both from one source"
            ),
            Self::Layout { found, ours } => write!(
                f,
                "the partitions have layout {found:#018x} and this program has {ours:#018x}: \
                 build both from one source"
            ),
            Self::Place { found, wanted } => write!(
                f,
                "the memory file belongs to rank {} of {} ranks, not to rank {} of {}",
                found.0, found.1, wanted.0, wanted.1
            ),
        }
    }
}

impl std::error::Error for HeaderError {}

/// FNV-1a over words: makes one number of a layout.
pub(super) const fn digest(words: &[usize]) -> u64 {
    let (mut at, mut hash) = (0, 0xcbf2_9ce4_8422_2325_u64);
    while at < words.len() {
        hash = (hash ^ words[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    hash
}

const MAGIC: u64 = u64::from_le_bytes(*b"tsumugi\x01");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_error_names_the_field_that_differs() {
        // SAFETY: the header consists of atomics, for which all zeroes are valid.
        let header: PartitionHeader = unsafe { std::mem::zeroed() };
        assert_eq!(header.check(LocalRank(0), 1, 5), Err(HeaderError::Magic { found: 0 }));
        header.make(LocalRank(1), 4, 5);
        assert_eq!(header.check(LocalRank(1), 4, 5), Ok(()));
        let place = HeaderError::Place { found: (1, 4), wanted: (2, 4) };
        assert_eq!(header.check(LocalRank(2), 4, 5), Err(place));
        let layout = HeaderError::Layout { found: 5, ours: 6 };
        assert_eq!(header.check(LocalRank(1), 4, 6), Err(layout));
        header.version.store(2 << 12 | 3, Ordering::Relaxed);
        let message = header.check(LocalRank(1), 4, 6).unwrap_err().to_string();
        assert!(message.contains("tsumugi 2.0.3"), "{message}");
    }
}
