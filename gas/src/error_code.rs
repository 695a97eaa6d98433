//! The code of an error, by which a rank that carries out a copy for another one
//! tells it why the copy has failed.

use crate::address::GlobalAddr;
use tsumugi_core::mem::{AddrError, Rank};

/// The error as a word of 32 bits that can be sent to another rank: the kind, for a
/// death the rank, and for a bad alignment the one that the access needs. The other
/// rank knows the address.
///
/// ```text
///  lost 1 | rank 31                  a death
///       0 | log2 of the alignment 23 | kind 8
/// ```
pub(crate) const fn to_code(error: AddrError<GlobalAddr>) -> u32 {
    match error {
        AddrError::Nowhere { .. } | AddrError::NoSuchRank { .. } => NOWHERE,
        AddrError::StaleKey { .. } => STALE_KEY,
        AddrError::OutOfRange { .. } => OUT_OF_RANGE,
        AddrError::Unaligned { align, .. } => UNALIGNED | align.trailing_zeros() << 8,
        AddrError::ReadOnly { .. } => READ_ONLY,
        AddrError::OtherRank { .. } => OTHER_RANK,
        AddrError::Unsupported { .. } | AddrError::OtherNode { .. } | AddrError::Ended => {
            UNSUPPORTED
        }
        AddrError::PeerLost { rank } => LOST | rank.0,
    }
}

/// The error in such a word; `None` if the word means success.
pub(crate) const fn from_code(
    code: u32,
    addr: GlobalAddr,
    bytes: u64,
) -> Option<AddrError<GlobalAddr>> {
    if code & LOST != 0 {
        return Some(AddrError::PeerLost { rank: Rank(code & !LOST) });
    }
    if code == 0 {
        return None;
    }
    Some(match code & 0xff {
        NOWHERE => AddrError::Nowhere { addr },
        STALE_KEY => AddrError::StaleKey { addr },
        OUT_OF_RANGE => AddrError::OutOfRange { addr, bytes, region_bytes: None },
        UNALIGNED => AddrError::Unaligned { addr, align: 1 << (code >> 8 & 63) },
        READ_ONLY => AddrError::ReadOnly { addr },
        OTHER_RANK => AddrError::OtherRank { addr },
        _ => AddrError::Unsupported { addr },
    })
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
        let addr = GlobalAddr::from_bits(77);
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
            assert_eq!(from_code(to_code(error), addr, 8), Some(error));
        }
        assert_eq!(from_code(0, addr, 8), None);
    }

    #[test]
    fn any_code_but_zero_is_an_error() {
        let addr = GlobalAddr::from_bits(77);
        for code in (1..1 << 16).chain([u32::MAX >> 1, u32::MAX, LOST]) {
            assert!(from_code(code, addr, 8).is_some(), "{code:#x}");
        }
    }
}
