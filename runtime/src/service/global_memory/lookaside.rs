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
//! (`KeptSlot::hold`), and the registration, by its life. So nothing has to
//! be cleared when a region ends or a table leaves the cache. Only memory of ranks of
//! this node that processors access has entries. A seat takes the memory of its entries
//! with its first note; before that all seats share a buffer without entries.
//!
//! Progress: wait-free, except for the first note of a seat, which allocates.

use crate::guest::{GUESTS, NO_GUEST};
use crate::leaked_slice::{LeakedSlice, lend};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use tsumugi_core::mem::{Access, Need, RegionView};
use tsumugi_core::sync::{AtomicPtr, AtomicU32, Ordering, UnsafeCell};
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

/// Where one region lies. Only the thread of the seat accesses it.
#[derive(Debug)]
struct LookasideEntry(UnsafeCell<NearRegion>);

// SAFETY: one thread at a time is the seat's, and it sees what the thread before has
// written: a worker starts after another one of its number has ended, and the number of a
// guest is handed on by a Release and an Acquire.
unsafe impl Sync for LookasideEntry {}

/// A region in this process, and how its table is held. A cache line.
#[derive(Debug)]
#[repr(C, align(64))]
struct NearRegion {
    /// The address of the region's first byte (rank, region, life), and in its two low
    /// bits, which are 0 there, the accesses that are allowed.
    tag: u64,
    base: NonNull<u8>,
    bytes: u64,
    /// The word that has the registration's life until it ends.
    live: *const AtomicU32,
    /// With the life of the registration. The entry of no region has none.
    kept: MaybeUninit<KeptSlot<'static>>,
}

/// The memory of an address, by an entry. The slot has to be held before it is used. It
/// ends with the next note of its thread.
// It has the entry and not the entry's words, as `KeptSlot` is used.
#[derive(Clone, Copy, Debug)]
pub struct NearMemory {
    /// The first byte.
    pub at: NonNull<u8>,
    region: *const NearRegion,
}

impl NearMemory {
    /// The slot of the table.
    #[inline(always)]
    pub fn kept(&self) -> &KeptSlot<'static> {
        // SAFETY: `find` has made this of an entry of this thread with a region.
        unsafe { (*self.region).kept.assume_init_ref() }
    }

    /// Whether the registration has not ended; to be asked while the slot is held.
    #[inline(always)]
    pub fn is_live(&self) -> bool {
        // SAFETY: as in `kept`; the word is one of a table in a partition, which stays
        // mapped while the driver lives.
        let live = unsafe { &*(*self.region).live };
        // Acquire: as of `RegionView::is_live`.
        live.load(Ordering::Acquire) == self.kept().note
    }
}

impl LookasideEntry {
    /// The entry of no region.
    const fn new() -> Self {
        Self(UnsafeCell::new(NearRegion {
            tag: NO_REGION,
            base: NonNull::dangling(),
            bytes: 0,
            live: ptr::null(),
            kept: MaybeUninit::uninit(),
        }))
    }
}

impl Lookaside {
    /// Makes the buffers of as many seats, without entries.
    pub(super) fn new(seats: usize, region_bytes_max: u64) -> (Self, LookasideMemory) {
        let has_low_bits = region_bytes_max.is_power_of_two() && region_bytes_max > 4;
        assert!(has_low_bits, "regions of {region_bytes_max} bytes");
        assert!(seats <= NO_GUEST, "{seats} seats: a thread without a number has one");
        let no_entries = || AtomicPtr::new((&raw const NO_ENTRIES).cast_mut());
        let (seats, lent) = lend((0..seats).map(|_| no_entries()).collect());
        let seats = &*seats;
        let view = Self { seats, offset_mask: region_bytes_max - 1 };
        (view, LookasideMemory { seats, _lent: lent })
    }

    /// The memory of `bytes` bytes at `addr`, if there is such a seat and it has an entry
    /// that allows the access. The caller is the thread of the seat.
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
        let region = entry(own, first);
        // SAFETY: the entry is this thread's.
        let (tag, base, size) = unsafe { ((*region).tag, (*region).base, (*region).bytes) };
        let is_it = match need {
            Need::Write => tag == first | Access::ReadWrite as u64,
            _ => tag & !(Need::Write as u64) == first | Access::Read as u64,
        };
        // An offset is below 2^63, so the sum does not wrap.
        if !is_it || bytes > i64::MAX as u64 || offset + bytes > size {
            return None;
        }
        // SAFETY: no address has the tag of an entry without a region, so the
        // entry has the words of a `RegionView`. The offset lies inside of the region.
        let at = unsafe { base.add(offset as usize) };
        Some(NearMemory { at, region })
    }

    /// Makes the entry of the region of `addr`. The caller is the thread of the seat,
    /// and holds the slot.
    pub fn note(
        &self,
        seat: usize,
        addr: GlobalAddr,
        mut kept: KeptSlot<'static>,
        view: RegionView<'_>,
    ) {
        let (first, _) = self.split(addr);
        let Some(own) = self.seats.get(seat) else { return };
        if ptr::eq(own.load(Ordering::Relaxed), &NO_ENTRIES) {
            let entries = Box::new([const { LookasideEntry::new() }; ENTRIES]);
            // Relaxed: the next thread of the seat has its number from this one.
            own.store(Box::into_raw(entries), Ordering::Relaxed);
        }
        kept.note = view.life;
        let region = NearRegion {
            tag: first | u64::from(view.access),
            base: view.base,
            bytes: view.bytes,
            live: view.live,
            kept: MaybeUninit::new(kept),
        };
        // SAFETY: the entry is this thread's, and of the box above.
        unsafe { entry(own, first).write(region) };
    }

    /// The address of the region's first byte, and the offset in the region.
    #[inline(always)]
    const fn split(&self, addr: GlobalAddr) -> (u64, u64) {
        let offset = addr.to_bits() & self.offset_mask;
        (addr.to_bits() ^ offset, offset)
    }
}

/// The entry for the region whose first byte has the address `first`.
#[inline(always)]
fn entry(seat: &LookasideSeat, first: u64) -> *mut NearRegion {
    // The high bits of the product depend on all bits of the address.
    let hash = first.wrapping_mul(ODD) >> (64 - ENTRIES.trailing_zeros());
    // Relaxed: as in `note`.
    let entries = seat.load(Ordering::Relaxed);
    // SAFETY: `NO_ENTRIES`, or the box of `note`, which lives as long as the views. The
    // hash has as many bits as there are entries.
    let entry = unsafe { &*entries.cast::<LookasideEntry>().add(hash as usize) };
    entry.0.with_mut(|region| region)
}

/// The entries of a seat that has none; never written.
static NO_ENTRIES: LookasideEntries = [const { LookasideEntry::new() }; ENTRIES];
/// The tag of no region: its offset is not 0.
const NO_REGION: u64 = u64::MAX;
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
const _: () = assert!(ENTRIES.is_power_of_two() && size_of::<LookasideEntry>() == 64);
