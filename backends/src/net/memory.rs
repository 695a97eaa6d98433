//! The directory of this rank's regions, and the cache of its peers' regions.
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
//! The check word covers the whole slot: a slot that changed while it was read is
//! read again (no assumption on the order in which bytes arrive: A6), and an empty
//! slot is all zeroes, as the memory is before it is used. A cached slot is used
//! only for exactly the key that it was read for, so a region that took over the
//! slot is read anew. When an operation fails, its slot is read again before the
//! error is determined.
//!
//! The cache holds a fixed number of regions, in sets of four; a region that was
//! evicted is read again.

use super::wire::{KEY_WORDS, Mr, RemoteBuffer, WireKey};
use core::ptr::NonNull;
use tsumugi_core::mem::{Access, AddrError, Need, Rank, RegionKey, RemoteAddr};
use tsumugi_core::sync::mapped::{AtomicU64, Ordering};

/// The entry of a region in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    pub key: RegionKey,
    pub access: u32,
    pub bytes: u64,
    /// The address to which an offset is added.
    pub origin: u64,
    /// The offset of the region's start in its cache line, for alignment.
    pub skew: u64,
    pub raw: WireKey,
}

/// The error of a slot that changed while it was read.
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
        let raw =
            WireKey { bytes: words[5] as u32, words: core::array::from_fn(|at| words[6 + at]) };
        let (bytes, origin, skew) = (words[2], words[3], words[4]);
        Ok(Some(Self { key, access, bytes, origin, skew, raw }))
    }
}

/// This rank's own directory, in registered memory, and the registrations in it.
pub(super) struct Directory {
    words: NonNull<u64>,
    /// The registrations, up to the last slot that was used.
    mrs: Vec<Option<Mr>>,
}

impl Directory {
    /// Makes an empty directory.
    ///
    /// # Safety
    ///
    /// `memory` must have [`BYTES`](Self::BYTES) bytes, zeroed and aligned to 8.
    /// They must stay as long as the directory, and only peers may access them
    /// otherwise, by reads.
    pub(super) unsafe fn new(memory: NonNull<u8>) -> Self {
        Self { words: memory.cast(), mrs: Vec::new() }
    }

    /// The bytes that peers can read.
    pub(super) const BYTES: usize = REGIONS_MAX * SLOT_BYTES;

    /// The bytes of the table of registrations at a rank that has registered only
    /// the regions of its start.
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

    /// Removes a listing and returns the registration.
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

    /// All registrations; the directory no longer holds them.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Mr> + '_ {
        self.mrs.iter_mut().filter_map(Option::take)
    }

    fn write(&mut self, slot: usize, listing: Option<&Listing>) {
        for (at, word) in Listing::encode(listing).into_iter().enumerate() {
            // Relaxed: the check word shows whether a reader got a consistent slot.
            self.word(slot, at).store(word.to_le(), Ordering::Relaxed);
        }
    }

    fn word(&self, slot: usize, at: usize) -> &AtomicU64 {
        assert!(
            slot < REGIONS_MAX && at < SLOT_WORDS,
            "word {at} of slot {slot}: the directory has {REGIONS_MAX} slots of {SLOT_WORDS} words"
        );
        // SAFETY: inside the directory, and shared as atomics only: a device may
        // read the word meanwhile, and the reader finds an inconsistent slot by the
        // check.
        unsafe { AtomicU64::from_ptr(self.words.as_ptr().add(slot * SLOT_WORDS + at)) }
    }
}

/// The location cache of one endpoint: regions of its peers.
pub(super) struct RegionCache {
    known: Vec<Option<CachedRegion>>,
    turn: usize,
}

/// A region of a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedRegion {
    pub rank: Rank,
    pub listing_key: RegionKey,
    access: u32,
    bytes: u64,
    skew: u64,
    /// The region's start.
    pub remote: RemoteBuffer,
}

impl RegionCache {
    /// The bytes of a cache.
    pub(super) const BYTES: usize = SETS * WAYS * size_of::<Option<CachedRegion>>();

    pub(super) fn new() -> Self {
        Self { known: vec![None; SETS * WAYS], turn: 0 }
    }

    /// The region, if it is in the cache under exactly this key.
    #[inline]
    pub(super) fn find(&self, rank: Rank, key: RegionKey) -> Option<&CachedRegion> {
        let start = set(rank, key) * WAYS;
        self.known[start..start + WAYS]
            .iter()
            .flatten()
            .find(|known| known.rank == rank && known.listing_key == key)
    }

    /// Adds a region; returns the region that it evicts, if any.
    pub(super) fn add(
        &mut self,
        rank: Rank,
        listing: &Listing,
        peer: u64,
        key: u64,
    ) -> Option<CachedRegion> {
        let start = set(rank, listing.key) * WAYS;
        let ways = &self.known[start..start + WAYS];
        let same_slot = |known: &CachedRegion| {
            known.rank == rank && known.listing_key.index() == listing.key.index()
        };
        let way = (ways.iter().position(|known| known.as_ref().is_some_and(same_slot)))
            .or_else(|| ways.iter().position(Option::is_none))
            .unwrap_or_else(|| {
                self.turn += 1;
                self.turn % WAYS
            });
        self.known[start + way].replace(CachedRegion {
            rank,
            listing_key: listing.key,
            access: listing.access,
            bytes: listing.bytes,
            skew: listing.skew,
            remote: RemoteBuffer { peer, addr: listing.origin, key },
        })
    }

    /// Removes the regions for which `of` is true, and returns the device's keys.
    pub(super) fn forget(&mut self, mut of: impl FnMut(&CachedRegion) -> bool) -> Vec<u64> {
        let mut keys = Vec::new();
        for place in &mut self.known {
            if let Some(known) = place.take_if(|known| of(known)) {
                keys.push(known.remote.key);
            }
        }
        keys
    }
}

impl CachedRegion {
    /// Whether peers may write to the region.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.access == Access::ReadWrite as u32
    }

    /// The remote address of `bytes` bytes at `addr`, if they lie in the region,
    /// may be used as `need` says, and are aligned.
    #[inline]
    pub(super) fn resolve(
        &self,
        addr: RemoteAddr,
        bytes: u64,
        need: Need,
        align: u64,
    ) -> Result<RemoteBuffer, AddrError> {
        if bytes > self.bytes || addr.offset > self.bytes - bytes {
            return Err(AddrError::OutOfRange { addr, bytes, region_bytes: Some(self.bytes) });
        }
        if self.access & need as u32 != need as u32 {
            return Err(AddrError::ReadOnly { addr });
        }
        if (self.skew + addr.offset) & (align - 1) != 0 {
            return Err(AddrError::Unaligned { addr, align });
        }
        Ok(RemoteBuffer { addr: self.remote.addr + addr.offset, ..self.remote })
    }
}

fn set(rank: Rank, key: RegionKey) -> usize {
    let mixed = (u64::from(rank.0) << 12 | key.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - SETS.ilog2())) as usize
}

/// The check word over all words but the first; never zero for words that are zero.
fn check(words: &[u64; SLOT_WORDS]) -> u64 {
    words[1..].iter().fold(0x0074_7375_6d75_6769_u64, |sum, word| {
        let mixed = (sum ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 29
    })
}

/// The largest number of regions of a rank: as many as there are keys, so that keys
/// may be assigned by another table.
pub(super) const REGIONS_MAX: usize = RegionKey::INDEX_MAX;

/// The number of words of a directory slot.
pub(super) const SLOT_WORDS: usize = 6 + KEY_WORDS;

/// The bytes of a directory slot.
pub(super) const SLOT_BYTES: usize = SLOT_WORDS * 8;

/// More regions than a rank has at its start.
const REGIONS_AT_START: usize = 32;
const SETS: usize = 256;
const WAYS: usize = 4;
const LINE_BYTES: u64 = 64;

const _: () = assert!(SLOT_BYTES == 128 && REGIONS_MAX.is_power_of_two());

#[cfg(test)]
mod tests;
