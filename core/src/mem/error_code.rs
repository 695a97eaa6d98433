//! The code of an error, by which a rank that carries out a copy for another one
//! tells it why the copy has failed.

use super::{AddrError, Rank};

// Here, beside the enum: the compiler asks for a code of each new error.
impl<A: Copy> AddrError<A> {
    /// The error as a word of 32 bits that can be sent to another rank: the kind, for a
    /// death the rank, and for a bad alignment the one that the access needs. The other
    /// rank knows the address.
    ///
    /// ```text
    ///  lost 1 | rank 31                  a death
    ///       0 | log2 of the alignment 23 | kind 8
    /// ```
    pub fn to_code(self) -> u32 {
        match self {
            Self::Nowhere { .. } | Self::NoSuchRank { .. } => NOWHERE,
            Self::StaleKey { .. } => STALE_KEY,
            Self::OutOfRange { .. } => OUT_OF_RANGE,
            Self::Unaligned { align, .. } => UNALIGNED | align.trailing_zeros() << 8,
            Self::ReadOnly { .. } => READ_ONLY,
            Self::OtherRank { .. } => OTHER_RANK,
            Self::Unsupported { .. } | Self::OtherNode { .. } | Self::Ended => UNSUPPORTED,
            Self::PeerLost { rank } => LOST | rank.0,
        }
    }

    /// The error in a code of [`to_code`](Self::to_code), for an access to `bytes` bytes at
    /// `addr`; `None` if the code is 0, which means success. A code of no error is
    /// [`Unsupported`](Self::Unsupported).
    pub fn from_code(code: u32, addr: A, bytes: u64) -> Option<Self> {
        if code & LOST != 0 {
            return Some(Self::PeerLost { rank: Rank(code & !LOST) });
        }
        if code == 0 {
            return None;
        }
        Some(match code & 0xff {
            NOWHERE => Self::Nowhere { addr },
            STALE_KEY => Self::StaleKey { addr },
            OUT_OF_RANGE => Self::OutOfRange { addr, bytes, region_bytes: None },
            UNALIGNED => Self::Unaligned { addr, align: 1 << (code >> 8 & 63) },
            READ_ONLY => Self::ReadOnly { addr },
            OTHER_RANK => Self::OtherRank { addr },
            _ => Self::Unsupported { addr },
        })
    }
}

const NOWHERE: u32 = 1;
const STALE_KEY: u32 = 2;
const OUT_OF_RANGE: u32 = 3;
const UNALIGNED: u32 = 4;
const READ_ONLY: u32 = 5;
const OTHER_RANK: u32 = 6;
const UNSUPPORTED: u32 = 7;
/// Set in the code of a death.
const LOST: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_decoded_to_its_error() {
        let addr = 77;
        for error in [
            AddrError::Nowhere { addr },
            AddrError::StaleKey { addr },
            AddrError::OutOfRange { addr, bytes: 8, region_bytes: None },
            AddrError::Unaligned { addr, align: 8 },
            AddrError::ReadOnly { addr },
            AddrError::OtherRank { addr },
            AddrError::Unsupported { addr },
            AddrError::PeerLost { rank: Rank(1 << 20) },
        ] {
            assert_eq!(AddrError::from_code(error.to_code(), addr, 8), Some(error));
        }
        assert_eq!(AddrError::from_code(0, addr, 8), None);
    }

    #[test]
    fn any_code_but_zero_is_an_error() {
        let addr = 77;
        for code in (1..1 << 16).chain([u32::MAX >> 1, u32::MAX, LOST]) {
            assert!(AddrError::from_code(code, addr, 8).is_some(), "{code:#x}");
        }
    }
}
