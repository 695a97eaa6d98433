//! Packets with addresses that were never announced: whatever buffer a parcel names, bytes are
//! read from messages under way and written to receives under way, and nowhere else.
//!
//! ```text
//!  own memory:  sent │ sent │ received │ unused   │ received │ ...
//!                 ▲ read        ▲ written   ▲ what the packets name
//! ```

use crate::parcels::parcels;
use tsumugi_core::msg::{Packet, PacketKind};

/// Every kind, with every flag, every request's name, and addresses of all sorts.
#[test]
fn an_address_that_was_never_announced_is_not_used() {
    let (mut taken, mut sent) = (0, 0);
    for kind in 1..=12u8 {
        for flags in FLAGS {
            for (id, life) in (0..NAMES).flat_map(|id| [(id, 0), (id, 1)]) {
                for (a, b) in [(50, UNUSED), (200, UNUSED + 8), (u64::MAX, 0), (0, u64::MAX)] {
                    let packet = record(kind, flags, id | life << ID_BITS, a, b);
                    taken += parcels(&framed(&parcel(&packet)));
                    sent += 1;
                }
            }
        }
    }
    // Packets that name a buffer of another message are refused.
    assert!(taken * 3 > sent, "{taken} of {sent} packets came as far as the machine");
}

/// A packet as it stands in a parcel, with room for the fields of an offer.
fn record(kind: u8, flags: u8, id: u32, a: u64, b: u64) -> Vec<u8> {
    let mut bytes = vec![kind, flags, 0, 0];
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(id.to_le_bytes());
    if kind == PacketKind::Inline as u8 {
        bytes.extend(std::iter::repeat_n(0x55, flags.into()));
        return bytes;
    }
    bytes.extend(a.to_le_bytes());
    bytes.extend(b.to_le_bytes());
    if flags & Packet::OFFER != 0 {
        // Name and tag, address, room, and the flag that it is in reach.
        for word in [1 | u64::from(id) << 32, b, a, 1 << 49] {
            bytes.extend(word.to_le_bytes());
        }
    }
    bytes
}

/// The first parcel of a lane, with one packet.
fn parcel(record: &[u8]) -> Vec<u8> {
    let lines =
        if record[0] == PacketKind::Inline as u8 { Packet::lines_of(record[1].into()) } else { 1 };
    let mut bytes = vec![1, 0, 0, 0];
    for word in [0, 0, 0, lines, 0, 0, 0, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(record);
    bytes
}

fn framed(parcel: &[u8]) -> Vec<u8> {
    [&(parcel.len() as u16).to_le_bytes()[..], parcel].concat()
}

const FLAGS: [u8; 6] = [
    0,
    Packet::IN_REACH,
    Packet::BY_KERNEL,
    Packet::OFFER | Packet::IN_REACH,
    Packet::SPLIT | Packet::IN_REACH,
    Packet::DONE | Packet::IN_REACH,
];
/// More than the machine has requests under way; a name is a place in its table, and the
/// number of times that the place was used before.
const NAMES: u32 = 8;
const ID_BITS: u32 = 20;
/// An address in the rank's own memory that no message's buffer contains.
const UNUSED: u64 = 3600;
