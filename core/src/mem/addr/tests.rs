//! Keys and addresses: their bits, and their text.

extern crate std;

use super::*;
use std::format;

#[test]
fn a_key_holds_its_index_and_generation() {
    let key = RegionKey::new(4095, RegionKey::GENERATION_MAX);
    assert_eq!((key.index(), key.generation()), (4095, RegionKey::GENERATION_MAX));
    assert_eq!(RegionKey::from_bits(key.to_bits()), key);
}

#[test]
fn an_address_never_wraps() {
    let addr = RemoteAddr { offset: 8, rank: Rank(1), key: RegionKey::new(1, 1) };
    let word = Remote::<u64>::new(addr);
    assert_eq!(word.add(3).addr().offset, 32);
    let last = (1 << 60) - 2;
    assert_eq!(word.add(last).addr().offset, 8 + last * 8);
    assert_eq!(word.add(last).addr().overflow(), None);
    let more = [1 << 60, 1 << 61, (1 << 61) + 7, (1 << 62) - 1];
    let less = [u64::MAX, u64::MAX - 1, u64::MAX << 61, (u64::MAX << 62) + 1];
    for count in [last + 1].into_iter().chain(more).chain(less) {
        let beyond = word.add(count).addr();
        assert!(beyond.offset >= 1 << 63, "{count:#x}");
        assert_eq!(beyond.overflow(), Some(Overflow { index: Some(count) }), "{count:#x}");
        // The index that is kept is the first one that was out of range.
        assert_eq!(Remote::<u64>::new(beyond).add(3).add(u64::MAX).addr(), beyond);
        assert_eq!(beyond.add(u64::MAX), beyond);
        let named = format!("rank 1 region 1.1 index {count}, which");
        assert!(format!("{beyond}").starts_with(&named), "{beyond}");
    }
    for count in [1 << 62, 1 << 63, (1 << 63) - 1, u64::MAX << 62] {
        let beyond = word.add(count).addr();
        assert_eq!(beyond.overflow(), Some(Overflow { index: None }), "{count:#x}");
        assert!(format!("{beyond}").contains("an index from 2^62"), "{beyond}");
    }
    assert_eq!(addr.add(u64::MAX).overflow(), Some(Overflow { index: Some(u64::MAX) }));
    assert_eq!(word.add(last).add(last).addr().overflow(), Some(Overflow { index: Some(last) }));
    // Values of size zero all lie at the same address.
    assert_eq!(Remote::<[u64; 0]>::new(addr).add(u64::MAX).addr(), addr);
}

#[test]
fn a_users_address_never_names_a_region_of_the_runtime() {
    let key = RegionKey::new(5, 7).of(Agent::Device);
    let own = key.of_runtime();
    assert!(own.is_of_runtime() && !key.is_of_runtime());
    assert_eq!((own.index(), own.generation(), own.agent()), (5, 7, Agent::Device));
    assert_eq!(own.of_user(), key);
    let addr = |key| RemoteAddr { offset: 0, rank: Rank(0), key };
    for bits in [own.to_bits(), u32::MAX, 1 << 30] {
        let forged = Remote::<u64>::new(addr(RegionKey::from_bits(bits)));
        assert!(!forged.addr().key.is_of_runtime() && !forged.add(1).addr().key.is_of_runtime());
    }
}

#[test]
fn addresses_stay_small() {
    assert_eq!(size_of::<RemoteAddr>(), 16);
    assert_eq!(size_of::<LocalAddr>(), 16);
    assert_eq!(size_of::<Remote<u64>>(), 16);
}
