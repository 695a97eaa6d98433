//! What peers reach of this rank, and what this rank knows of theirs.
//!
//! A region's key in `core` is a slot and a generation; a device wants keys
//! and addresses of its own. Each rank keeps a directory in registered memory,
//! one slot for each region, and peers read the slot (a get) when they first
//! meet a key:
//!
//! ```text
//!  directory slot:  check | key, access | bytes | origin | skew | key bytes | key ...
//!       ▲ read once                                                 (128 bytes)
//!  cache of a peer: (rank, slot) ─► key, access, bytes, origin, device's key
//! ```
//!
//! The check is over the whole slot: a slot that changed while it was read is
//! read again (no assumption on the order in which bytes arrive: A6), and an
//! empty one is all zeroes, as the memory is before it is used. A cached
//! slot is used for the very key that it was read for and for no other, so a
//! region that took over the slot is read anew. When an operation fails, its
//! slot is read again before anybody says why.
//!
//! The cache holds a fixed number of regions, in sets of four; a region that
//! has lost its place is read again.

use super::wire::{Far, KEY_WORDS, Key, Mr};
use core::ptr::NonNull;
use tsumugi_core::mem::{Access, AddrError, Need, Rank, RegionKey, RemoteAddr};
use tsumugi_core::sync::mapped::{AtomicU64, Ordering};

/// What a directory says of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    pub key: RegionKey,
    pub access: u32,
    pub bytes: u64,
    /// What an offset is added to.
    pub origin: u64,
    /// The start's place in its cache line, for alignment.
    pub skew: u64,
    pub raw: Key,
}

/// A slot that changed while it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Torn;

impl Listing {
    pub(super) fn encode(listing: Option<&Self>) -> [u64; SLOT_WORDS] {
        let mut words = [0; SLOT_WORDS];
        if let Some(listing) = listing {
            words[1] = u64::from(listing.key.to_bits()) | u64::from(listing.access) << 32;
            words[2] = listing.bytes;
            words[3] = listing.origin;
            words[4] = listing.skew;
            words[5] = u64::from(listing.raw.bytes);
            words[6..].copy_from_slice(&listing.raw.words);
            words[0] = check(&words);
        }
        words
    }

    /// The region in a slot that came from the network, if there is one.
    pub(super) fn decode(words: &[u64; SLOT_WORDS]) -> Result<Option<Self>, Torn> {
        if *words == [0; SLOT_WORDS] {
            return Ok(None);
        }
        if words[0] != check(words) {
            return Err(Torn);
        }
        let key = RegionKey::from_bits(words[1] as u32);
        let access = (words[1] >> 32) as u32;
        let is_open = access == Access::Read as u32 || access == Access::ReadWrite as u32;
        let is_sound = words[3].checked_add(words[2]).is_some()
            && words[4] < LINE_BYTES
            && (1..=8 * KEY_WORDS as u64).contains(&words[5]);
        if key.generation() == 0 || !is_open || !is_sound {
            return Ok(None);
        }
        let raw = Key { bytes: words[5] as u32, words: core::array::from_fn(|at| words[6 + at]) };
        let (bytes, origin, skew) = (words[2], words[3], words[4]);
        Ok(Some(Self { key, access, bytes, origin, skew, raw }))
    }
}

/// The own directory, in registered memory, and the registrations in it.
pub(super) struct Directory {
    words: NonNull<u64>,
    /// Up to the last slot that was used.
    mrs: Vec<Option<Mr>>,
}

impl Directory {
    /// A directory with nothing in it.
    ///
    /// # Safety
    ///
    /// `memory` is for [`BYTES`](Self::BYTES) bytes, zeroed and aligned to 8,
    /// which stay as long as the directory and are nobody else's, but for peers
    /// who read.
    pub(super) unsafe fn new(memory: NonNull<u8>) -> Self {
        Self { words: memory.cast(), mrs: Vec::new() }
    }

    /// Bytes that peers read.
    pub(super) const BYTES: usize = REGIONS_MAX * SLOT_BYTES;

    /// Bytes of the registrations of a rank that has not registered anything
    /// but what comes with the start.
    pub(super) const MRS_BYTES: usize = REGIONS_AT_START * size_of::<Option<Mr>>();

    /// Holds a registration, and shows it to peers if there is a listing.
    pub(super) fn publish(&mut self, slot: usize, listing: Option<&Listing>, mr: Option<Mr>) {
        if slot >= self.mrs.len() {
            self.mrs.resize_with(slot + 1, || None);
        }
        self.mrs[slot] = mr;
        if listing.is_some() {
            self.write(slot, listing);
        }
    }

    /// Ends a listing and gives the registration back.
    pub(super) fn retract(&mut self, slot: usize) -> Option<Mr> {
        self.write(slot, None);
        self.mrs.get_mut(slot)?.take()
    }

    /// The registration of a slot.
    #[inline]
    pub(super) fn mr(&self, slot: usize) -> Option<&Mr> {
        self.mrs.get(slot)?.as_ref()
    }

    /// The key that is listed in a slot.
    pub(super) fn key(&self, slot: usize) -> Option<RegionKey> {
        if slot >= REGIONS_MAX {
            return None;
        }
        let key =
            RegionKey::from_bits(u64::from_le(self.word(slot, 1).load(Ordering::Relaxed)) as u32);
        (key.generation() != 0).then_some(key)
    }

    /// All of them, given back.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Mr> + '_ {
        self.mrs.iter_mut().filter_map(Option::take)
    }

    fn write(&mut self, slot: usize, listing: Option<&Listing>) {
        for (at, word) in Listing::encode(listing).into_iter().enumerate() {
            // Relaxed: the check carries it.
            self.word(slot, at).store(word.to_le(), Ordering::Relaxed);
        }
    }

    fn word(&self, slot: usize, at: usize) -> &AtomicU64 {
        assert!(slot < REGIONS_MAX && at < SLOT_WORDS, "slot {slot}");
        // SAFETY: inside the directory, and shared as atomics only: a device
        // may read it meanwhile and finds out by the check.
        unsafe { AtomicU64::from_ptr(self.words.as_ptr().add(slot * SLOT_WORDS + at)) }
    }
}

/// What one endpoint knows of its peers' regions.
pub(super) struct Cache {
    known: Vec<Option<Known>>,
    turn: usize,
}

/// A region of a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub rank: Rank,
    pub listing_key: RegionKey,
    access: u32,
    bytes: u64,
    skew: u64,
    /// The region's start.
    pub far: Far,
}

impl Cache {
    /// Bytes of a cache.
    pub(super) const BYTES: usize = SETS * WAYS * size_of::<Option<Known>>();

    pub(super) fn new() -> Self {
        Self { known: vec![None; SETS * WAYS], turn: 0 }
    }

    /// The region, if it is known under this very key.
    #[inline]
    pub(super) fn find(&self, rank: Rank, key: RegionKey) -> Option<&Known> {
        let start = set(rank, key) * WAYS;
        self.known[start..start + WAYS]
            .iter()
            .flatten()
            .find(|known| known.rank == rank && known.listing_key == key)
    }

    /// Remembers a region; one that lost its place is returned.
    pub(super) fn add(
        &mut self,
        rank: Rank,
        listing: &Listing,
        peer: u64,
        key: u64,
    ) -> Option<Known> {
        let start = set(rank, listing.key) * WAYS;
        let ways = &self.known[start..start + WAYS];
        let same_slot =
            |known: &Known| known.rank == rank && known.listing_key.index() == listing.key.index();
        let way = (ways.iter().position(|known| known.as_ref().is_some_and(same_slot)))
            .or_else(|| ways.iter().position(Option::is_none))
            .unwrap_or_else(|| {
                self.turn += 1;
                self.turn % WAYS
            });
        self.known[start + way].replace(Known {
            rank,
            listing_key: listing.key,
            access: listing.access,
            bytes: listing.bytes,
            skew: listing.skew,
            far: Far { peer, addr: listing.origin, key },
        })
    }

    /// Forgets what `of` says, and returns the device's keys.
    pub(super) fn forget(&mut self, mut of: impl FnMut(&Known) -> bool) -> Vec<u64> {
        let mut keys = Vec::new();
        for place in &mut self.known {
            if let Some(known) = place.take_if(|known| of(known)) {
                keys.push(known.far.key);
            }
        }
        keys
    }
}

impl Known {
    /// Whether peers may write to it.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.access == Access::ReadWrite as u32
    }

    /// The place of `bytes` bytes at `addr`, if they are there, may be used as
    /// `need` says, and are aligned.
    #[inline]
    pub(super) fn resolve(
        &self,
        addr: RemoteAddr,
        bytes: u64,
        need: Need,
        align: u64,
    ) -> Result<Far, AddrError> {
        if bytes > self.bytes || addr.offset > self.bytes - bytes {
            return Err(AddrError::OutOfRange { addr, bytes, region_bytes: self.bytes });
        }
        if self.access & need as u32 != need as u32 {
            return Err(AddrError::ReadOnly { addr });
        }
        if (self.skew + addr.offset) & (align - 1) != 0 {
            return Err(AddrError::Unaligned { addr, align });
        }
        Ok(Far { addr: self.far.addr + addr.offset, ..self.far })
    }
}

fn set(rank: Rank, key: RegionKey) -> usize {
    let mixed = (u64::from(rank.0) << 12 | key.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - SETS.ilog2())) as usize
}

/// Of all words but the first, and never zero for words that are zero.
fn check(words: &[u64; SLOT_WORDS]) -> u64 {
    words[1..].iter().fold(0x0074_7375_6d75_6769_u64, |sum, word| {
        let mixed = (sum ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 29
    })
}

/// Regions of a rank: as many as there are keys, so that keys may come from
/// elsewhere.
pub(super) const REGIONS_MAX: usize = RegionKey::INDEX_MAX;

/// Words of a directory slot.
pub(super) const SLOT_WORDS: usize = 6 + KEY_WORDS;

/// Bytes of a directory slot.
pub(super) const SLOT_BYTES: usize = SLOT_WORDS * 8;

/// More than a rank has at its start.
const REGIONS_AT_START: usize = 32;
const SETS: usize = 256;
const WAYS: usize = 4;
const LINE_BYTES: u64 = 64;

const _: () = assert!(SLOT_BYTES == 128 && REGIONS_MAX.is_power_of_two());

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_conformance::Seeded;

    fn listing(slot: usize, generation: u32) -> Listing {
        Listing {
            key: RegionKey::new(slot, generation),
            access: 3,
            bytes: 64,
            origin: 0x1000,
            skew: 0,
            raw: Key::of(5),
        }
    }

    #[test]
    fn a_listing_survives_the_way() {
        let listing = listing(7, 3);
        assert_eq!(Listing::decode(&Listing::encode(Some(&listing))), Ok(Some(listing)));
        assert_eq!(Listing::decode(&Listing::encode(None)), Ok(None));
    }

    #[test]
    fn every_mix_of_an_old_and_a_new_slot_is_found_out() {
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
    fn hostile_slots_give_nothing_that_could_be_used() {
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
    fn a_region_is_known_under_its_own_key_only() {
        let (mut cache, rank) = (Cache::new(), Rank(2));
        assert!(cache.add(rank, &listing(7, 3), 0, 5).is_none());
        assert!(cache.find(rank, RegionKey::new(7, 3)).is_some());
        assert!(cache.find(rank, RegionKey::new(7, 4)).is_none());
        assert!(cache.find(Rank(3), RegionKey::new(7, 3)).is_none());
        let gone = cache.add(rank, &listing(7, 4), 0, 6).unwrap();
        assert_eq!((gone.listing_key.generation(), gone.far.key), (3, 5));
        assert_eq!(cache.forget(|known| known.rank == rank), [6]);
        assert!(cache.find(rank, RegionKey::new(7, 4)).is_none());
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_came_last() {
        let mut cache = Cache::new();
        for rank in 0..10_000 {
            cache.add(Rank(rank), &listing(1, 1), 0, u64::from(rank));
            assert!(cache.find(Rank(rank), RegionKey::new(1, 1)).is_some(), "{rank}");
        }
        assert!(cache.forget(|_| true).len() <= SETS * WAYS);
    }

    #[test]
    fn the_checks_name_what_is_wrong() {
        let mut cache = Cache::new();
        let readable = Listing { access: 1, skew: 4, ..listing(7, 3) };
        cache.add(Rank(0), &readable, 0, 5);
        let known = *cache.find(Rank(0), RegionKey::new(7, 3)).unwrap();
        let addr = |offset| RemoteAddr { rank: Rank(0), key: readable.key, offset };
        let resolve = |offset, bytes, need| known.resolve(addr(offset), bytes, need, bytes.max(1));
        assert!(resolve(4, 8, Need::Read).is_ok());
        let unaligned = AddrError::Unaligned { addr: addr(0), align: 8 };
        assert_eq!(resolve(0, 8, Need::Read), Err(unaligned));
        assert_eq!(resolve(4, 8, Need::Write), Err(AddrError::ReadOnly { addr: addr(4) }));
        let range = AddrError::OutOfRange { addr: addr(60), bytes: 8, region_bytes: 64 };
        assert_eq!(resolve(60, 8, Need::Read), Err(range));
        assert!(matches!(resolve(u64::MAX, 1, Need::Read), Err(AddrError::OutOfRange { .. })));
    }
}
