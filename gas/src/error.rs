//! Why an access to global memory was refused. Each error has the address or the
//! rank.

use crate::address::GlobalAddr;
use core::fmt;
use tsumugi_core::mem::{AddrError, Rank};

/// Why an access was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// The null address, or a word that names no rank of the job, or no colour that
    /// the ranks of the job have.
    Nowhere {
        /// The address.
        addr: GlobalAddr,
    },
    /// The address's rank has registered no region under that name, has unregistered
    /// the region that the address is of, or has registered it for itself alone.
    Stale {
        /// The address.
        addr: GlobalAddr,
    },
    /// Some of the bytes lie outside the region.
    OutOfRange {
        /// The address of the first byte.
        addr: GlobalAddr,
        /// The number of bytes.
        bytes: u64,
    },
    /// An atomic off its natural alignment.
    Unaligned {
        /// The address.
        addr: GlobalAddr,
    },
    /// A write to a region that is registered for reading only.
    ReadOnly {
        /// The address.
        addr: GlobalAddr,
    },
    /// The rank has died.
    PeerLost {
        /// The rank.
        rank: Rank,
    },
    /// An entry of a list is not between the two ranks of the list, or a word to
    /// wait for is another rank's.
    Elsewhere {
        /// The address of the entry's block, or of the word.
        addr: GlobalAddr,
    },
    /// This rank has no way to carry out the operation there: the network device
    /// lacks the operation, the path does not leave the node, or only the rank
    /// itself may carry it out.
    Unsupported {
        /// The address.
        addr: GlobalAddr,
    },
}

impl AccessError {
    /// The error for a backend's refusal of an operation on `addr`.
    pub const fn of(error: AddrError, addr: GlobalAddr) -> Self {
        match error {
            AddrError::PeerLost { rank } => Self::PeerLost { rank },
            AddrError::StaleKey { .. } => Self::Stale { addr },
            AddrError::OutOfRange { bytes, .. } => Self::OutOfRange { addr, bytes },
            AddrError::Unaligned { .. } => Self::Unaligned { addr },
            AddrError::ReadOnly { .. } => Self::ReadOnly { addr },
            AddrError::NoSuchRank { .. } => Self::Nowhere { addr },
            AddrError::NotOwn { .. }
            | AddrError::Unsupported { .. }
            | AddrError::OtherNode { .. } => Self::Unsupported { addr },
        }
    }

    /// The error as a word of 32 bits that can be sent to another rank: the kind,
    /// and for a death the rank. The other rank knows the address.
    pub(crate) const fn to_code(self) -> u32 {
        match self {
            Self::Nowhere { .. } => 1,
            Self::Stale { .. } => 2,
            Self::OutOfRange { .. } => 3,
            Self::Unaligned { .. } => 4,
            Self::ReadOnly { .. } => 5,
            Self::Elsewhere { .. } => 6,
            Self::Unsupported { .. } => 7,
            Self::PeerLost { rank } => LOST | rank.0,
        }
    }

    /// The error in such a word; `None` if the word means success.
    pub(crate) const fn from_code(code: u32, addr: GlobalAddr, bytes: u64) -> Option<Self> {
        Some(match code {
            0 => return None,
            1 => Self::Nowhere { addr },
            2 => Self::Stale { addr },
            3 => Self::OutOfRange { addr, bytes },
            4 => Self::Unaligned { addr },
            5 => Self::ReadOnly { addr },
            6 => Self::Elsewhere { addr },
            lost if lost & LOST != 0 => Self::PeerLost { rank: Rank(lost & !LOST) },
            _ => Self::Unsupported { addr },
        })
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere { addr } => write!(f, "{addr} names no rank and colour of the job"),
            Self::Stale { addr } => write!(f, "{addr}: no region is registered at this address"),
            Self::OutOfRange { addr, bytes } => {
                write!(f, "{addr}: {bytes} bytes do not fit in its region")
            }
            Self::Unaligned { addr } => {
                write!(f, "{addr}: an atomic must be aligned to the size of its word")
            }
            Self::ReadOnly { addr } => write!(f, "{addr}: the region is registered read-only"),
            Self::PeerLost { rank } => write!(f, "{rank} has died"),
            Self::Elsewhere { addr } => {
                write!(f, "{addr} belongs to another rank than the one that this call requires")
            }
            Self::Unsupported { addr } => {
                write!(f, "{addr}: this rank has no way to carry out the operation there")
            }
        }
    }
}

impl core::error::Error for AccessError {}

/// Set in the code of a death.
const LOST: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_decoded_to_its_error() {
        let addr = GlobalAddr::from_bits(77);
        for error in [
            AccessError::Nowhere { addr },
            AccessError::Stale { addr },
            AccessError::OutOfRange { addr, bytes: 8 },
            AccessError::Unaligned { addr },
            AccessError::ReadOnly { addr },
            AccessError::Elsewhere { addr },
            AccessError::Unsupported { addr },
            AccessError::PeerLost { rank: Rank(1 << 20) },
        ] {
            assert_eq!(AccessError::from_code(error.to_code(), addr, 8), Some(error));
        }
        assert_eq!(AccessError::from_code(0, addr, 8), None);
    }
}
