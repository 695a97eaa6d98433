//! The allocator of the memory that peers reach; its bookkeeping lies outside of
//! that memory.
//!
//! An operation of a peer resolves its address and then accesses the bytes. If the
//! peer is held up in between, the access may come after the owner has unregistered
//! and released the bytes. A wait for such operations would cost something with
//! every operation; instead, a late operation finds nothing that it could break. An
//! area holds blocks of plain bytes and nothing else, ever: no link of a free list,
//! no object, no stack. The list of free ranges lies in ordinary memory of the
//! owner:
//!
//! ```text
//!  start                           fresh                      start + bytes
//!  ├─ block ─┬─ free ──┬─ block ─┬─ free ┼╌╌╌╌╌ never lent ╌╌╌╌┤
//!              was lent before           │ still all zeroes
//! ```
//!
//! Blocks are cut from the free range that fits best, in multiples of a cache line,
//! and adjacent free ranges are always merged: when all blocks are released, there
//! is one range. [`allocate_zeroed`](ExposedArea::allocate_zeroed) clears the
//! memory that was in use before and leaves the rest as it is, so that a large
//! array costs no memory before it is used. A large block returns its pages to the
//! kernel when it is released.
//!
//! Progress: blocking, under a lock that is held for a walk over the free ranges.
//! There are at most as many of them as live blocks and one more, and a rank has
//! no more blocks under registration than
//! [`REGIONS_MAX`](crate::partition::REGIONS_MAX).

use crate::populate::{Need, Tally};
use crate::sys;
use range_alloc::RangeAllocator;
use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi_core::mem::MemorySource;

/// Memory of one rank for blocks that peers may reach.
pub struct ExposedArea {
    start: NonNull<u8>,
    bytes: usize,
    books: Mutex<Books>,
    tally: Option<&'static Tally>,
}

/// The bookkeeping of an area; addresses are numbers.
struct Books {
    free: RangeAllocator<usize>,
    free_bytes: usize,
    /// From this address on nothing has been allocated yet.
    fresh: usize,
}

impl ExposedArea {
    /// Makes an area of `bytes` bytes at `start`. With a `tally`, the pages of a
    /// block are populated when it is allocated.
    ///
    /// # Safety
    ///
    /// The memory must be mapped, shared, all zeroes and not used otherwise, and
    /// must stay so as long as the area or a block of it is used.
    pub unsafe fn new(start: NonNull<u8>, bytes: usize, tally: Option<&'static Tally>) -> Self {
        let at = start.as_ptr() as usize;
        let free = RangeAllocator::new(at..at + bytes);
        let books = Mutex::new(Books { free, free_bytes: bytes, fresh: at });
        Self { start, bytes, books, tally }
    }

    /// The start of the area.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The length of the area.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bytes are free, in any number of ranges.
    pub fn free_bytes(&self) -> usize {
        self.books().free_bytes
    }

    /// Whether `memory` lies in this area.
    pub fn contains(&self, memory: NonNull<u8>) -> bool {
        (memory.as_ptr() as usize).wrapping_sub(self.start.as_ptr() as usize) < self.bytes
    }

    /// As [`allocate`](MemorySource::allocate), and every byte is zero. Only bytes that
    /// were in use before are written.
    pub fn allocate_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        let (block, fresh) = self.lend(layout)?;
        let start = block.as_ptr() as usize;
        let used = fresh.saturating_sub(start).min(block_bytes(layout));
        // SAFETY: the block was just allocated for this call; a late operation of a
        // peer does no more harm here than to any other bytes of the area.
        unsafe { clear(start, used) };
        self.populate(block, fresh, layout);
        Some(block)
    }

    /// Populates the pages of a block that may be missing: pages that were never in
    /// use, and all pages of a large block, because those were returned to the
    /// kernel.
    fn populate(&self, block: NonNull<u8>, fresh: usize, layout: Layout) {
        let Some(tally) = self.tally else { return };
        let (start, bytes) = (block.as_ptr() as usize, block_bytes(layout));
        let first = if bytes >= DISCARD_BYTES_MIN { start } else { start.max(fresh) };
        if first < start + bytes {
            // SAFETY: the range lies in this area, which is mapped and the owner's.
            unsafe { tally.populate(first..start + bytes, Need::Write) };
        }
    }

    /// Allocates a block; returns it with the address up to which memory had been
    /// in use.
    fn lend(&self, layout: Layout) -> Option<(NonNull<u8>, usize)> {
        let bytes = block_bytes(layout);
        if bytes > self.bytes || layout.align() > ALIGN_MAX {
            return None;
        }
        let mut books = self.books();
        let block = books.free.allocate_range_aligned(bytes, layout.align().max(LINE)).ok()?;
        let fresh = books.fresh;
        books.fresh = fresh.max(block.end);
        books.free_bytes -= bytes;
        let offset = block.start - self.start.as_ptr() as usize;
        // SAFETY: the bookkeeping holds no address outside of the area.
        Some((unsafe { self.start.add(offset) }, fresh))
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: the bookkeeping gives a range to one owner until it is released; a range
// lies inside of the area and is aligned; the contents of the blocks have no part
// in it.
unsafe impl MemorySource for ExposedArea {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let (block, fresh) = self.lend(layout)?;
        self.populate(block, fresh, layout);
        Some(block)
    }

    unsafe fn release(&self, memory: NonNull<u8>, layout: Layout) {
        debug_assert!(self.contains(memory), "{memory:p} is not in this area");
        let (start, bytes) = (memory.as_ptr() as usize, block_bytes(layout));
        if bytes >= DISCARD_BYTES_MIN {
            // SAFETY: the caller guarantees that the block is not used any more. If
            // the pages cannot be returned, they merely stay in memory.
            let _ = unsafe { discard_within(start, bytes) };
        }
        let mut books = self.books();
        books.free.free_range(start..start + bytes);
        books.free_bytes += bytes;
    }
}

// SAFETY: `start` names memory of the process that is not bound to a thread; the
// contract of `MemorySource` covers its use.
unsafe impl Send for ExposedArea {}
// SAFETY: as above, and the bookkeeping is behind a lock.
unsafe impl Sync for ExposedArea {}

impl fmt::Debug for ExposedArea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, bytes, .. } = self;
        write!(f, "ExposedArea({:#x} of {bytes:#x} bytes free at {start:p})", self.free_bytes())
    }
}

/// The bytes that a block of this layout takes; for an absurd layout, more than any
/// area has.
fn block_bytes(layout: Layout) -> usize {
    layout.size().max(1).next_multiple_of(LINE)
}

/// Makes `bytes` bytes at `start` zero: for a large range by returning its pages to
/// the kernel, so that no page is touched that is not used.
///
/// # Safety
///
/// The bytes must lie in one block of an area, which no thread uses.
unsafe fn clear(start: usize, bytes: usize) {
    let mut discarded = start..start;
    if bytes >= DISCARD_BYTES_MIN {
        // SAFETY: the caller's contract is the same.
        discarded = unsafe { discard_within(start, bytes) }.unwrap_or(discarded);
    }
    for part in [start..discarded.start, discarded.end..start + bytes] {
        // SAFETY: both parts lie in the caller's range.
        unsafe { (part.start as *mut u8).write_bytes(0, part.len()) };
    }
}

/// Returns the whole pages among these bytes to the kernel, and returns their
/// range; `None` if the system refuses.
///
/// # Safety
///
/// As [`clear`].
unsafe fn discard_within(start: usize, bytes: usize) -> Option<std::ops::Range<usize>> {
    let end = (start + bytes) / PAGE_BYTES_MAX * PAGE_BYTES_MAX;
    let start = start.next_multiple_of(PAGE_BYTES_MAX);
    // SAFETY: the caller's contract is the same, and at least a page lies in
    // between.
    unsafe { sys::discard(start, end - start) }.then_some(start..end)
}

/// Blocks do not share a cache line.
const LINE: usize = 64;
/// The largest alignment of a block: a huge page.
const ALIGN_MAX: usize = 2 << 20;
/// The largest page of any system: a huge page.
const PAGE_BYTES_MAX: usize = 2 << 20;
/// From this size on pages are returned to the kernel. Each page costs a fault when
/// it is used again, many times the cost of clearing it; therefore smaller blocks
/// keep their pages.
const DISCARD_BYTES_MIN: usize = 64 << 20;

const _: () = assert!(DISCARD_BYTES_MIN > 2 * PAGE_BYTES_MAX);

#[cfg(test)]
mod tests;
