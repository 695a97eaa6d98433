//! Why a call refused an address.

use super::{Rank, RemoteAddr};
use core::fmt;

/// Why a call refused an address `A`: a [`RemoteAddr`], or an address of global
/// memory. Each variant has the address or the rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddrError<A = RemoteAddr> {
    /// A job of `size` ranks has no such rank.
    NoSuchRank {
        /// The rank that the caller named.
        rank: Rank,
        /// Ranks of the job.
        size: u32,
    },
    /// The address itself names nothing, in this job: a null address, or one with a
    /// rank or a colour that the job does not have. Only addresses of global memory
    /// can be so; for all others see [`NoSuchRank`](Self::NoSuchRank).
    Nowhere {
        /// The address that the caller gave.
        addr: A,
    },
    /// The key in the address names no region, a region that was unregistered, or a
    /// region that this access may not use: one that only its owner or only the device
    /// accesses.
    StaleKey {
        /// The address that the caller gave.
        addr: A,
    },
    /// Some of the bytes lie outside the region.
    OutOfRange {
        /// The address of the first byte.
        addr: A,
        /// The length of the access.
        bytes: u64,
        /// The length of the region. `None` if the caller's rank does not know it:
        /// another rank has refused its part of a copy, or the bytes reach beyond the
        /// last address that any region can have.
        region_bytes: Option<u64>,
    },
    /// A typed or atomic access that is not naturally aligned.
    Unaligned {
        /// The address that the caller gave.
        addr: A,
        /// The alignment that the access needs.
        align: u64,
    },
    /// A write to a region that is registered for reading only.
    ReadOnly {
        /// The address that the caller gave.
        addr: A,
    },
    /// The rank has died.
    PeerLost {
        /// The dead rank.
        rank: Rank,
    },
    /// Memory of another rank than this call requires: only the owner of a word can
    /// wait for it, and an entry of a list must be between the two ranks of the list.
    OtherRank {
        /// The address of the word, or of the entry's block.
        addr: A,
    },
    /// There is no way to carry out the operation there: the network device lacks the
    /// operation, or only the rank itself may carry it out.
    Unsupported {
        /// The address that the caller gave.
        addr: A,
    },
    /// The rank is on another node, and this path does not leave the node.
    OtherNode {
        /// The rank on the other node.
        rank: Rank,
    },
    /// The caller's own rank has ended before the operation; a part of it may have been
    /// done.
    Ended,
}

impl<A> AddrError<A> {
    /// The same error for the same memory under its other address, `addr`.
    pub fn at<B>(self, addr: B) -> AddrError<B> {
        match self {
            Self::NoSuchRank { rank, size } => AddrError::NoSuchRank { rank, size },
            Self::Nowhere { .. } => AddrError::Nowhere { addr },
            Self::StaleKey { .. } => AddrError::StaleKey { addr },
            Self::OutOfRange { bytes, region_bytes, .. } => {
                AddrError::OutOfRange { addr, bytes, region_bytes }
            }
            Self::Unaligned { align, .. } => AddrError::Unaligned { addr, align },
            Self::ReadOnly { .. } => AddrError::ReadOnly { addr },
            Self::PeerLost { rank } => AddrError::PeerLost { rank },
            Self::OtherRank { .. } => AddrError::OtherRank { addr },
            Self::Unsupported { .. } => AddrError::Unsupported { addr },
            Self::OtherNode { rank } => AddrError::OtherNode { rank },
            Self::Ended => AddrError::Ended,
        }
    }
}

impl<A: fmt::Display> fmt::Display for AddrError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRank { rank, size } => {
                write!(f, "{rank} does not exist: the job has {size} ranks")
            }
            Self::Nowhere { addr } => write!(f, "{addr} names no rank and colour of the job"),
            Self::StaleKey { addr } => {
                write!(f, "{addr}: no region is registered under this key, or not for this access")
            }
            Self::OutOfRange { addr, bytes, region_bytes: Some(region_bytes) } => {
                write!(f, "{addr}: {bytes} bytes do not fit in a region of {region_bytes} bytes")
            }
            Self::OutOfRange { addr, bytes, region_bytes: None } => {
                write!(f, "{addr}: {bytes} bytes do not fit in its region")
            }
            Self::Unaligned { addr, align } => write!(f, "{addr}: not aligned to {align} bytes"),
            Self::ReadOnly { addr } => write!(f, "{addr}: the region is registered read-only"),
            Self::PeerLost { rank } => write!(f, "{rank} has died"),
            Self::OtherRank { addr } => {
                write!(
                    f,
                    "{addr}: the memory belongs to another rank than this call requires; only its \
                     owner can wait for a word, and entries of a list are between its two ranks"
                )
            }
            Self::Unsupported { addr } => {
                write!(
                    f,
                    "{addr}: this rank cannot carry out the operation there: the network device \
                     lacks it, or only the memory's own rank may carry it out"
                )
            }
            Self::OtherNode { rank } => {
                write!(f, "{rank} is on another node, which this path does not reach")
            }
            Self::Ended => f.write_str("this rank has ended before the operation"),
        }
    }
}

impl<A: fmt::Debug + fmt::Display> core::error::Error for AddrError<A> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::RegionKey;

    #[test]
    fn the_length_of_the_region_takes_no_more_room_than_the_kind() {
        assert_eq!(size_of::<AddrError>(), 40);
        assert_eq!(size_of::<Result<u64, AddrError>>(), 40);
    }

    #[test]
    fn an_error_keeps_its_kind_at_another_address() {
        let addr = RemoteAddr { offset: 8, rank: Rank(1), key: RegionKey::new(1, 1) };
        let range = AddrError::OutOfRange { addr, bytes: 9, region_bytes: Some(16) };
        assert_eq!(
            range.at(7),
            AddrError::OutOfRange { addr: 7, bytes: 9, region_bytes: Some(16) }
        );
        for error in [
            range,
            AddrError::NoSuchRank { rank: Rank(4), size: 4 },
            AddrError::Nowhere { addr },
            AddrError::StaleKey { addr },
            AddrError::Unaligned { addr, align: 8 },
            AddrError::ReadOnly { addr },
            AddrError::PeerLost { rank: Rank(1) },
            AddrError::OtherRank { addr },
            AddrError::Unsupported { addr },
            AddrError::OtherNode { rank: Rank(2) },
        ] {
            assert_eq!(error.at(7).at(addr), error);
        }
    }
}
