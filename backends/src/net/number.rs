//! The numbers by which a put tells its target of what it has written: the
//! region's slot and the place in it, as far as they fit in 32 bits.
//!
//! ```text
//!  place in words of 8 bytes 20 | slot 12
//! ```
//!
//! What does not fit is told by a packet.

use super::memory::REGIONS_MAX;
use super::rail::{Rail, Shared};
use super::wire::Wire;
use tsumugi_core::mem::{LocalAddr, Need, RegionKey, RemoteAddr};

/// The number by which a put tells of what it has written, if there is one.
pub(super) fn number_of(at: RemoteAddr) -> Option<u32> {
    let units = at.offset / UNIT_BYTES;
    let fits = at.offset.is_multiple_of(UNIT_BYTES) && units < 1 << (u32::BITS - SLOT_BITS);
    fits.then(|| (units as u32) << SLOT_BITS | at.key.index() as u32)
}

impl<W: Wire> Rail<W> {
    /// The word of ours that such a number is about. The region is the one that
    /// is shown in that slot now.
    pub(super) fn word_of(&self, shared: &Shared, number: u32) -> Option<LocalAddr> {
        let key = self.directory.key((number & ((1 << SLOT_BITS) - 1)) as usize)?;
        let offset = u64::from(number >> SLOT_BITS) * UNIT_BYTES;
        may_ring(shared, key, offset)
    }
}

/// Only what a peer may write to can have been changed by one.
pub(super) fn may_ring(shared: &Shared, key: RegionKey, offset: u64) -> Option<LocalAddr> {
    let addr = RemoteAddr { rank: shared.rank, key, offset };
    shared.table.resolve(addr, 1, Need::Write).ok()?;
    Some(LocalAddr { offset, key })
}

/// A number is a slot and a place: of a region, the first 8 MiB.
const SLOT_BITS: u32 = REGIONS_MAX.ilog2();
const UNIT_BYTES: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_core::mem::Rank;

    #[test]
    fn a_number_says_which_word_where_it_fits() {
        let at =
            |index, offset| RemoteAddr { rank: Rank(1), key: RegionKey::new(index, 3), offset };
        assert_eq!(number_of(at(5, 0)), Some(5));
        assert_eq!(number_of(at(REGIONS_MAX - 1, 16)), Some(0x2fff));
        assert_eq!(number_of(at(5, (8 << 20) - 8)), Some(0xffff_f005));
        assert_eq!(number_of(at(5, 8 << 20)), None);
        assert_eq!(number_of(at(5, 4)), None);
    }
}
