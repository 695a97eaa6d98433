//! The numbers (immediate data) by which a put notifies its target of the written
//! word: the region's slot and the offset in it, as far as they fit in 32 bits.
//!
//! ```text
//!  place in words of 8 bytes 20 | slot 12
//! ```
//!
//! If they do not fit, a packet carries the notification.

use super::memory::REGIONS_MAX;
use super::nic_endpoint::{DomainShared, NicEndpoint};
use super::wire::NetWire;
use tsumugi_core::mem::{LocalAddr, Need, RegionKey, RemoteAddr};

/// The number for a put to this address, if there is one.
pub(super) fn immediate_of(at: RemoteAddr) -> Option<u32> {
    let units = at.offset / UNIT_BYTES;
    let fits = at.offset.is_multiple_of(UNIT_BYTES) && units < 1 << (u32::BITS - SLOT_BITS);
    fits.then(|| (units as u32) << SLOT_BITS | at.key.index() as u32)
}

impl<W: NetWire> NicEndpoint<W> {
    /// The word of this rank that such a number names. The region is the one that
    /// is listed in that slot now.
    pub(super) fn word_of_immediate(
        &self,
        shared: &DomainShared,
        number: u32,
    ) -> Option<LocalAddr> {
        let key = self.directory.key((number & ((1 << SLOT_BITS) - 1)) as usize)?;
        let offset = u64::from(number >> SLOT_BITS) * UNIT_BYTES;
        writable_word(shared, key, offset)
    }
}

/// The local address of a word that a peer reports as changed, if peers may write
/// to it; otherwise no peer can have changed it.
pub(super) fn writable_word(
    shared: &DomainShared,
    key: RegionKey,
    offset: u64,
) -> Option<LocalAddr> {
    let addr = RemoteAddr { rank: shared.rank, key, offset };
    shared.table.resolve(addr, 1, Need::Write).ok()?;
    Some(LocalAddr { offset, key })
}

/// A number is a slot and an offset: it covers the first 8 MiB of a region.
const SLOT_BITS: u32 = REGIONS_MAX.ilog2();
const UNIT_BYTES: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_core::mem::Rank;

    #[test]
    fn a_number_encodes_a_word_where_it_fits() {
        let at =
            |index, offset| RemoteAddr { rank: Rank(1), key: RegionKey::new(index, 3), offset };
        assert_eq!(immediate_of(at(5, 0)), Some(5));
        assert_eq!(immediate_of(at(REGIONS_MAX - 1, 16)), Some(0x2fff));
        assert_eq!(immediate_of(at(5, (8 << 20) - 8)), Some(0xffff_f005));
        assert_eq!(immediate_of(at(5, 8 << 20)), None);
        assert_eq!(immediate_of(at(5, 4)), None);
    }
}
