//! Lookaside buffers: where the addresses that a worker has used last lie in this
//! process, so that its next access to the same region is a comparison, not a lookup.
//!
//! ```text
//!  addr ─► rank, region, life ─► entry ─► hold the table's slot, if it has the same
//!                                         table ─► is the registration live? ─► memory
//! ```
//!
//! Each *seat* (a worker, or a guest of `crate::guest`) has [`ENTRIES`] entries, which
//! its thread alone reads and writes. An entry is a hint of which all is checked: the
//! table that it was made from, by a hold of its slot
//! (`TableCache::hold_again`), and the registration, by its life. So nothing has to
//! be cleared when a region ends or a table leaves the cache. Only memory of ranks of
//! this node that processors access has entries. A seat takes the memory of its entries
//! with its first note; before that all seats share a buffer without entries.
//!
//! Progress: wait-free, except for the first note of a seat, which allocates.

use crate::guest::GUESTS;
use crate::leaked_slice::{LeakedSlice, lend};
use std::ptr::{self, NonNull};
use tsumugi_core::mem::{Access, Need, RegionView};
use tsumugi_core::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::cache::KeptSlot;

/// The number of entries of a seat.
const ENTRIES: usize = 16;

/// The memory of a seat's pointer to its entries.
pub(super) const SEAT_BYTES: usize = size_of::<LookasideSeat>();

/// The memory of a seat's entries, from its first use on.
pub const LOOKASIDE_BYTES: usize = size_of::<LookasideEntries>();

/// The seat of a guest.
#[inline(always)]
pub const fn seat_of_guest(guest: usize) -> usize {
    guest
}

/// The seat of a worker.
#[inline(always)]
pub const fn seat_of_worker(worker: usize) -> usize {
    GUESTS + worker
}

/// The buffers of all seats of a rank: a view, cheap to copy and to send.
#[derive(Clone, Copy, Debug)]
pub struct Lookaside {
    seats: &'static [LookasideSeat],
    offset_mask: u64,
}

/// The entries of a seat.
type LookasideSeat = AtomicPtr<LookasideEntries>;

/// The entries of one seat.
type LookasideEntries = [LookasideEntry; ENTRIES];

/// The memory of the buffers of all seats, which is freed when this is dropped.
pub(super) struct LookasideMemory {
    seats: &'static [LookasideSeat],
    _lent: LeakedSlice<LookasideSeat>,
}

impl Drop for LookasideMemory {
    fn drop(&mut self) {
        for seat in self.seats {
            let entries = seat.load(Ordering::Relaxed);
            if !ptr::eq(entries, &NO_ENTRIES) {
                // SAFETY: from the box of `note`; all views have gone, as for `lend`.
                drop(unsafe { Box::from_raw(entries) });
            }
        }
    }
}

/// Where one region lies.
// Atomics, because a seat may be of another thread later; none is shared.
#[derive(Debug)]
#[repr(C)]
struct LookasideEntry {
    /// The address of the region's first byte (rank, region, life), and in its two low
    /// bits, which are 0 there, the accesses that are allowed.
    tag: AtomicU64,
    base: AtomicPtr<u8>,
    bytes: AtomicU64,
    live: AtomicPtr<AtomicU32>,
    life: AtomicU32,
    slot: AtomicU32,
    word: AtomicU64,
}

/// The memory of an address, by an entry. The slot has to be held before it is used.
// It has the entry and not the entry's words: each word is loaded where it is used, so that
// few registers are in use at a time.
#[derive(Clone, Copy, Debug)]
pub struct NearMemory {
    /// The first byte.
    pub at: NonNull<u8>,
    entry: &'static LookasideEntry,
}

impl NearMemory {
    /// The slot of the table.
    #[inline(always)]
    pub fn kept(&self) -> KeptSlot {
        // Relaxed: this thread has written them.
        let slot = self.entry.slot.load(Ordering::Relaxed);
        KeptSlot::from_parts(slot, self.entry.word.load(Ordering::Relaxed))
    }

    /// Whether the registration has not ended; to be asked while the slot is held.
    #[inline(always)]
    pub fn is_live(&self) -> bool {
        // SAFETY: an entry with memory has the word of a table in a partition, which
        // stays mapped while the driver lives.
        let live = unsafe { &*self.entry.live.load(Ordering::Relaxed) };
        // Acquire: as of `RegionView::is_live`.
        live.load(Ordering::Acquire) == self.entry.life.load(Ordering::Relaxed)
    }
}

impl LookasideEntry {
    /// The entry of no region.
    const fn new() -> Self {
        Self {
            tag: AtomicU64::new(NO_REGION),
            base: AtomicPtr::new(ptr::null_mut()),
            bytes: AtomicU64::new(0),
            live: AtomicPtr::new(ptr::null_mut()),
            life: AtomicU32::new(0),
            slot: AtomicU32::new(0),
            word: AtomicU64::new(0),
        }
    }
}

impl Lookaside {
    /// Makes the buffers of as many seats, without entries.
    pub(super) fn new(seats: usize, region_bytes_max: u64) -> (Self, LookasideMemory) {
        let has_low_bits = region_bytes_max.is_power_of_two() && region_bytes_max > 4;
        assert!(has_low_bits, "regions of {region_bytes_max} bytes");
        let no_entries = || AtomicPtr::new((&raw const NO_ENTRIES).cast_mut());
        let (seats, lent) = lend((0..seats).map(|_| no_entries()).collect());
        let seats = &*seats;
        let view = Self { seats, offset_mask: region_bytes_max - 1 };
        (view, LookasideMemory { seats, _lent: lent })
    }

    /// The memory of `bytes` bytes at `addr`, if the seat has an entry that allows the
    /// access. The caller is the thread of the seat.
    #[inline(always)]
    pub fn find(
        &self,
        seat: usize,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> Option<NearMemory> {
        let (first, offset) = self.split(addr);
        let own = self.seats.get(seat)?;
        let entry = entry(own, first);
        // Relaxed, like all below: this thread has written them.
        let tag = entry.tag.load(Ordering::Relaxed);
        let is_it = match need {
            Need::Write => tag == first | Access::ReadWrite as u64,
            _ => tag & !(Need::Write as u64) == first | Access::Read as u64,
        };
        // An offset is below 2^63, so the sum does not wrap.
        if !is_it || bytes > i64::MAX as u64 || offset + bytes > entry.bytes.load(Ordering::Relaxed)
        {
            return None;
        }
        let base = entry.base.load(Ordering::Relaxed);
        // SAFETY: no address has the tag of an entry without a region, so the
        // entry has the words of a `RegionView`. The offset lies inside of the region.
        let at = unsafe { NonNull::new_unchecked(base.add(offset as usize)) };
        Some(NearMemory { at, entry })
    }

    /// Makes the entry of the region of `addr`. The caller is the thread of the seat,
    /// and holds the slot.
    pub fn note(&self, seat: usize, addr: GlobalAddr, kept: KeptSlot, view: RegionView<'_>) {
        let (first, _) = self.split(addr);
        let Some(own) = self.seats.get(seat) else { return };
        if ptr::eq(own.load(Ordering::Relaxed), &NO_ENTRIES) {
            let entries = Box::new([const { LookasideEntry::new() }; ENTRIES]);
            // Relaxed: the next thread of the seat has its number from this one.
            own.store(Box::into_raw(entries), Ordering::Relaxed);
        }
        let entry = entry(own, first);
        let (slot, word) = kept.parts();
        // Relaxed, like all below: this thread alone reads them.
        entry.tag.store(first | u64::from(view.access), Ordering::Relaxed);
        entry.base.store(view.base.as_ptr(), Ordering::Relaxed);
        entry.bytes.store(view.bytes, Ordering::Relaxed);
        entry.live.store((&raw const *view.live).cast_mut(), Ordering::Relaxed);
        entry.life.store(view.life, Ordering::Relaxed);
        entry.word.store(word, Ordering::Relaxed);
        entry.slot.store(slot, Ordering::Relaxed);
    }

    /// The address of the region's first byte, and the offset in the region.
    #[inline(always)]
    const fn split(&self, addr: GlobalAddr) -> (u64, u64) {
        (addr.to_bits() & !self.offset_mask, addr.to_bits() & self.offset_mask)
    }
}

/// The entry for the region whose first byte has the address `first`.
#[inline(always)]
fn entry(seat: &LookasideSeat, first: u64) -> &'static LookasideEntry {
    // The high bits of the product depend on all bits of the address.
    let hash = first.wrapping_mul(ODD) >> (64 - ENTRIES.trailing_zeros());
    // Relaxed: as in `note`.
    let entries = seat.load(Ordering::Relaxed);
    // SAFETY: `NO_ENTRIES`, or the box of `note`, which lives as long as the views. The
    // hash has as many bits as there are entries.
    unsafe { &*entries.cast::<LookasideEntry>().add(hash as usize) }
}

/// The entries of a seat that has none; never written.
static NO_ENTRIES: LookasideEntries = [const { LookasideEntry::new() }; ENTRIES];
/// The tag of no region: its offset is not 0.
const NO_REGION: u64 = u64::MAX;
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
const _: () = assert!(ENTRIES.is_power_of_two() && size_of::<LookasideEntry>() == 48);
