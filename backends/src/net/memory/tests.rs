//! The directory of a rank, and its checks of other ranks' directories.

use super::*;
use tsumugi_conformance::Seeded;

fn listing(slot: usize, generation: u32) -> Listing {
    Listing {
        key: RegionKey::new(slot, generation),
        access: 3,
        bytes: 64,
        origin: 0x1000,
        skew: 0,
        raw: WireKey::of(5),
    }
}

#[test]
fn a_listing_is_decoded_as_it_was_encoded() {
    let listing = listing(7, 3);
    assert_eq!(Listing::decode(&Listing::encode(Some(&listing))), Ok(Some(listing)));
    assert_eq!(Listing::decode(&Listing::encode(None)), Ok(None));
}

#[test]
fn every_mix_of_an_old_and_a_new_slot_is_torn() {
    let (old, new) = (listing(7, 3), Listing { origin: 0x2000, bytes: 32, ..listing(7, 4) });
    for (old, new) in [(Some(&old), Some(&new)), (None, Some(&new)), (Some(&old), None)] {
        let (old, new) = (Listing::encode(old), Listing::encode(new));
        let differing: Vec<usize> = (0..SLOT_WORDS).filter(|&at| old[at] != new[at]).collect();
        for mix in 1..(1 << differing.len()) - 1 {
            let mut words = old;
            for (bit, &at) in differing.iter().enumerate() {
                if mix >> bit & 1 == 1 {
                    words[at] = new[at];
                }
            }
            assert_eq!(Listing::decode(&words), Err(Torn), "{mix:#b}");
        }
    }
}

#[test]
fn hostile_slots_decode_to_valid_listings_or_none() {
    let mut seeded = Seeded(5);
    for _ in 0..20_000 {
        let mut words = Listing::encode(Some(&listing(7, 3)));
        words[1 + seeded.below(5) as usize] = seeded.next() >> seeded.below(64);
        words[0] = check(&words);
        if let Some(listing) = Listing::decode(&words).unwrap() {
            assert!(listing.raw.bytes as usize <= KEY_WORDS * 8 && listing.skew < 64);
            assert!(listing.origin.checked_add(listing.bytes).is_some());
            assert!(matches!(listing.access, 1 | 3) && listing.key.generation() > 0);
        }
    }
}

#[test]
fn a_region_is_found_under_its_own_key_only() {
    let (mut cache, rank) = (RegionCache::new(), Rank(2));
    assert!(cache.add(rank, &listing(7, 3), 0, 5).is_none());
    assert!(cache.find(rank, RegionKey::new(7, 3)).is_some());
    assert!(cache.find(rank, RegionKey::new(7, 4)).is_none());
    assert!(cache.find(Rank(3), RegionKey::new(7, 3)).is_none());
    let gone = cache.add(rank, &listing(7, 4), 0, 6).unwrap();
    assert_eq!((gone.listing_key.generation(), gone.remote.key), (3, 5));
    assert_eq!(cache.forget(|known| known.rank == rank), [6]);
    assert!(cache.find(rank, RegionKey::new(7, 4)).is_none());
}

#[test]
fn the_cache_is_bounded_and_keeps_the_newest_entry() {
    let mut cache = RegionCache::new();
    for rank in 0..10_000 {
        cache.add(Rank(rank), &listing(1, 1), 0, u64::from(rank));
        assert!(cache.find(Rank(rank), RegionKey::new(1, 1)).is_some(), "{rank}");
    }
    assert!(cache.forget(|_| true).len() <= SETS * WAYS);
}

#[test]
fn regions_of_many_ranks_and_many_of_one_are_known_side_by_side() {
    let mut cache = RegionCache::new();
    let all = || {
        let of_ranks = (0..64).map(|rank| (Rank(rank), 1));
        of_ranks.chain((2..64).map(|slot| (Rank(0), slot)))
    };
    for (rank, slot) in all() {
        assert!(cache.add(rank, &listing(slot, 1), 0, 0).is_none());
    }
    assert!(all().all(|(rank, slot)| cache.find(rank, RegionKey::new(slot, 1)).is_some()));
}

/// In a full set the oldest entry is evicted.
#[test]
fn a_full_set_evicts_its_oldest_entry() {
    let (mut cache, key) = (RegionCache::new(), RegionKey::new(1, 1));
    let first = set(Rank(0), key);
    let mut ranks = (0..).map(Rank).filter(|rank| set(*rank, key) == first);
    let ranks: [Rank; 3 * WAYS] = core::array::from_fn(|_| ranks.next().unwrap());
    for (count, rank) in ranks.into_iter().enumerate() {
        let gone = cache.add(rank, &listing(1, 1), 0, u64::from(rank.0));
        assert_eq!(gone.is_some(), count >= WAYS);
        let known = ranks.iter().filter(|rank| cache.find(**rank, key).is_some()).count();
        assert_eq!(known, (count + 1).min(WAYS));
    }
    for rank in &ranks[2 * WAYS..] {
        assert!(cache.find(*rank, key).is_some());
    }
}

#[test]
fn a_listing_beyond_a_limit_is_refused() {
    let decoded = |change: &dyn Fn(&mut Listing)| {
        let mut listing = listing(7, 3);
        change(&mut listing);
        Listing::decode(&Listing::encode(Some(&listing))).unwrap().is_some()
    };
    assert!(decoded(&|listing| listing.skew = 63) && !decoded(&|listing| listing.skew = 64));
    assert!(decoded(&|listing| listing.raw.bytes = 80));
    assert!(!decoded(&|listing| listing.raw.bytes = 81));
    assert!(decoded(&|listing| listing.raw.bytes = 1));
    assert!(!decoded(&|listing| listing.raw.bytes = 0));
    assert!(decoded(&|listing| listing.access = 1));
    assert!([0, 2, 4].into_iter().all(|access| !decoded(&|listing| listing.access = access)));
    assert!(decoded(&|listing| listing.origin = u64::MAX - 64));
    assert!(!decoded(&|listing| listing.origin = u64::MAX - 63));
    assert!(!decoded(&|listing| listing.key = RegionKey::from_bits(7)), "generation 0 is invalid");
}

#[test]
fn a_directory_keeps_a_listing_until_it_is_retracted() {
    let memory = vec![0u64; Directory::BYTES / 8].leak();
    // SAFETY: as many zeroed bytes, leaked.
    let mut directory = unsafe { Directory::new(NonNull::from(&mut memory[..]).cast()) };
    let mr = |key| {
        let (raw, desc) = (core::ptr::null_mut(), core::ptr::null_mut());
        Some(Mr { raw, desc, key: WireKey::of(key), origin: 0 })
    };
    let number = |mr: Option<&Mr>| mr.map(|mr| mr.key.words[0]);
    assert!(directory.mr(0).is_none() && directory.retract(9).is_none());
    directory.publish(5, Some(&listing(5, 1)), mr(50));
    directory.publish(2, None, mr(20));
    directory.publish(REGIONS_MAX - 1, Some(&listing(REGIONS_MAX - 1, 1)), mr(90));
    assert_eq!([2, 3, 5].map(|slot| number(directory.mr(slot))), [Some(20), None, Some(50)]);
    assert_eq!((directory.key(5), directory.key(2)), (Some(RegionKey::new(5, 1)), None));
    assert_eq!(directory.key(REGIONS_MAX), None);
    assert_eq!(directory.key(REGIONS_MAX - 1), Some(RegionKey::new(REGIONS_MAX - 1, 1)));
    assert_eq!(number(directory.retract(5).as_ref()), Some(50));
    assert!(directory.retract(5).is_none() && directory.mr(5).is_none());
    assert_eq!(directory.key(5), None);
    let rest: Vec<u64> = directory.take_all().map(|mr| mr.key.words[0]).collect();
    assert_eq!((rest, directory.take_all().count()), (vec![20, 90], 0));
}

#[test]
fn a_region_is_used_to_its_last_byte_and_no_further() {
    let mut cache = RegionCache::new();
    let listing = Listing { skew: 60, ..listing(7, 3) };
    cache.add(Rank(0), &listing, 9, 5);
    let known = *cache.find(Rank(0), listing.key).unwrap();
    assert!(known.is_open());
    let addr = |offset| RemoteAddr { rank: Rank(0), key: listing.key, offset };
    let remote = |offset: u64| Ok(RemoteBuffer { peer: 9, addr: 0x1000 + offset, key: 5 });
    assert_eq!(known.resolve(addr(0), 64, Need::Write, 1), remote(0));
    assert_eq!(known.resolve(addr(60), 4, Need::Write, 4), remote(60));
    assert_eq!(known.resolve(addr(64), 0, Need::Read, 1), remote(64));
    for (offset, bytes) in [(0, 65), (61, 4), (65, 0), (1, 64)] {
        let wrong = AddrError::OutOfRange { addr: addr(offset), bytes, region_bytes: Some(64) };
        assert_eq!(known.resolve(addr(offset), bytes, Need::Read, 1), Err(wrong));
    }
    let unaligned = AddrError::Unaligned { addr: addr(2), align: 4 };
    assert_eq!(known.resolve(addr(2), 4, Need::Read, 4), Err(unaligned));
    assert_eq!(known.resolve(addr(2), 2, Need::Read, 2), remote(2));
}

#[test]
fn a_failed_check_names_the_wrong_value() {
    let mut cache = RegionCache::new();
    let readable = Listing { access: 1, skew: 4, ..listing(7, 3) };
    cache.add(Rank(0), &readable, 0, 5);
    let known = *cache.find(Rank(0), RegionKey::new(7, 3)).unwrap();
    let addr = |offset| RemoteAddr { rank: Rank(0), key: readable.key, offset };
    let resolve = |offset, bytes, need| known.resolve(addr(offset), bytes, need, bytes.max(1));
    assert!(resolve(4, 8, Need::Read).is_ok());
    let unaligned = AddrError::Unaligned { addr: addr(0), align: 8 };
    assert_eq!(resolve(0, 8, Need::Read), Err(unaligned));
    assert_eq!(resolve(4, 8, Need::Write), Err(AddrError::ReadOnly { addr: addr(4) }));
    let range = AddrError::OutOfRange { addr: addr(60), bytes: 8, region_bytes: Some(64) };
    assert_eq!(resolve(60, 8, Need::Read), Err(range));
    assert!(matches!(resolve(u64::MAX, 1, Need::Read), Err(AddrError::OutOfRange { .. })));
}
