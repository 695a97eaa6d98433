//! Which bytes are accepted as a packet, and as a notification.

use super::*;
use core::ptr::NonNull;
use std::sync::{Mutex, OnceLock};
use tsumugi_conformance::Seeded;
use tsumugi_core::mem::{Access, LocalAddr, RegionTable};
use tsumugi_core::sync::{AtomicU32, AtomicU64, AtomicUsize};

fn shared() -> DomainShared {
    DomainShared {
        rank: Rank(0),
        size: 3,
        job: AtomicU64::new(7),
        table: Box::new(RegionTable::new()),
        own: OnceLock::new(),
        cards: OnceLock::new(),
        lost: Mutex::default(),
        lost_count: AtomicUsize::new(0),
        kept: AtomicU32::new(0),
    }
}

fn packet(job: u64, from: u32, kind: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = job.to_le_bytes().to_vec();
    bytes.extend(from.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.extend(rest);
    bytes
}

#[test]
fn only_packets_of_the_job_are_delivered() {
    let shared = shared();
    let good = packet(7, 2, PACKET, b"abc");
    let arrival = Arrival::Packet { from: Rank(2), bytes: b"abc" };
    assert_eq!(parse(&good, &shared), Some(arrival));
    for bad in [
        packet(8, 2, PACKET, b"abc"),
        packet(7, 3, PACKET, b"abc"),
        packet(7, 2, 9, b"abc"),
        packet(7, 2, NOTIFICATION, b"short"),
        good[..15].to_vec(),
        Vec::new(),
    ] {
        assert_eq!(parse(&bad, &shared), None, "{bad:?}");
    }
}

#[test]
fn a_bell_rings_only_where_a_peer_may_write() {
    let (shared, mut memory) = (shared(), [0u64; 8]);
    let base = NonNull::from(&mut memory).cast();
    // SAFETY: the memory outlives the table.
    let region = unsafe { shared.table.register(base, 64, Access::ReadWrite) }.unwrap();
    let bell = |key: RegionKey, offset: u64| {
        let mut rest = key.to_bits().to_le_bytes().to_vec();
        rest.extend([0; 4]);
        rest.extend(offset.to_le_bytes());
        packet(7, 1, NOTIFICATION, &rest)
    };
    let addr = LocalAddr { key: region.key, offset: 8 };
    assert_eq!(parse(&bell(region.key, 8), &shared), Some(Arrival::Notified(addr)));
    assert_eq!(parse(&bell(region.key, 64), &shared), None);
    assert_eq!(parse(&bell(RegionKey::from_bits(5), 8), &shared), None);
    let mut seeded = Seeded(1);
    for _ in 0..10_000 {
        let mut bytes = bell(region.key, seeded.below(80));
        let at = seeded.below(bytes.len() as u64) as usize;
        bytes[at] = seeded.next() as u8;
        bytes.truncate(seeded.below(40) as usize);
        if let Some(Arrival::Notified(addr)) = parse(&bytes, &shared) {
            assert!(addr.offset < 64);
        }
    }
}
