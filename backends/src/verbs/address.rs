//! The address of a rank's endpoint, in the form that crosses the network.
//!
//! ```text
//!  gid 16 | cm_qp 4 | lid 2 | mtu 1 | reads 1 | target 4      numbers are little-endian
//! ```
//!
//! The parser accepts any bytes.

use super::sys::*;
use core::ffi::c_int;

/// The address of an endpoint; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub gid: ibv_gid,
    /// The number of the queue pair that receives calls (the CM endpoint).
    pub cm_qp: u32,
    pub lid: u16,
    /// libibverbs' number for the bytes of a packet.
    pub mtu: u8,
    pub reads_max: u8,
    /// The number of the target (DCT), which any peer can send requests to; 0:
    /// there is none.
    pub target: u32,
}

impl Address {
    pub(super) fn to_bytes(self) -> [u8; ADDRESS_BYTES] {
        let mut bytes = [0; ADDRESS_BYTES];
        bytes[..16].copy_from_slice(&self.gid.raw);
        bytes[16..20].copy_from_slice(&self.cm_qp.to_le_bytes());
        bytes[20..22].copy_from_slice(&self.lid.to_le_bytes());
        (bytes[22], bytes[23]) = (self.mtu, self.reads_max);
        bytes[24..].copy_from_slice(&self.target.to_le_bytes());
        bytes
    }

    /// An address that came from the network, if it can be one.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; ADDRESS_BYTES] = bytes.try_into().ok()?;
        let mut raw = [0; 16];
        raw.copy_from_slice(&bytes[..16]);
        let address = Self {
            gid: ibv_gid { raw },
            cm_qp: u32::from_le_bytes(bytes[16..20].try_into().expect("4 bytes")),
            lid: u16::from_le_bytes(bytes[20..22].try_into().expect("2 bytes")),
            mtu: bytes[22],
            reads_max: bytes[23],
            target: u32::from_le_bytes(bytes[24..].try_into().expect("4 bytes")),
        };
        let is_sound = (IBV_MTU_256..=IBV_MTU_4096).contains(&u32::from(address.mtu))
            && (1..=READS_MAX as u8).contains(&address.reads_max)
            && address.cm_qp.max(address.target) < 1 << 24;
        is_sound.then_some(address)
    }
}

/// Bytes of an address.
pub(super) const ADDRESS_BYTES: usize = 28;

/// The largest number of gets and atomics under way.
pub(super) const READS_MAX: c_int = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_conformance::Seeded;

    fn address() -> Address {
        Address {
            gid: ibv_gid { raw: [7; 16] },
            cm_qp: 5,
            lid: 9,
            mtu: 5,
            reads_max: 16,
            target: 3,
        }
    }

    #[test]
    fn an_address_is_read_as_it_was_written() {
        assert_eq!(Address::parse(&address().to_bytes()), Some(address()));
    }

    #[test]
    fn an_invalid_address_is_refused() {
        let bytes = address().to_bytes();
        assert_eq!(Address::parse(&bytes[1..]), None);
        for (at, value) in [(19, 1), (22, 0), (22, 6), (23, 0), (23, 17), (27, 1)] {
            let mut bytes = bytes;
            bytes[at] = value;
            assert_eq!(Address::parse(&bytes), None, "{at}");
        }
        let mut seeded = Seeded(3);
        for _ in 0..10_000 {
            let mut bytes = bytes;
            bytes[16 + seeded.below(12) as usize] = seeded.next() as u8;
            if let Some(address) = Address::parse(&bytes) {
                assert!((1..=5).contains(&address.mtu));
                assert!(address.cm_qp < 1 << 24 && address.target < 1 << 24);
            }
        }
    }
}
