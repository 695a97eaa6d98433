//! The allocator of the memory that peers reach: its books lie outside of it.
//!
//! An operation of a peer looks its address up and then touches the bytes. If
//! the peer is held up in between, it may touch them after the owner has
//! unregistered and released them. Waiting for that would cost something with
//! every operation; instead the late operation finds nothing that it could
//! break. An area holds blocks of plain bytes and nothing else, ever: no link
//! of a free list, no object, no stack. Which parts are free is written in
//! ordinary memory of the owner:
//!
//! ```text
//!  start                           fresh                      start + bytes
//!  ├─ block ─┬─ free ──┬─ block ─┬─ free ┼╌╌╌╌╌ never lent ╌╌╌╌┤
//!              was lent before           │ still all zeroes
//! ```
//!
//! Blocks are cut from the free range that fits best, to multiples of a cache
//! line, and free neighbours are always one range: when all is released, there
//! is one. [`allocate_zeroed`](ExposedArea::allocate_zeroed) clears what was
//! lent before and leaves the rest as it is, so that a large array costs no
//! memory before it is used. A large block gives its pages back when it is
//! released.
//!
//! Progress: blocking, under a lock that is held for a walk over the free
//! ranges. There are no more of them than live blocks and one, and a rank has
//! no more blocks under registration than
//! [`REGIONS_MAX`](crate::partition::REGIONS_MAX).

use crate::populate::{Need, Tally};
use crate::sys;
use range_alloc::RangeAllocator;
use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi_core::mem::Memory;

/// Memory of one rank for blocks that peers may be told of.
pub struct ExposedArea {
    start: NonNull<u8>,
    bytes: usize,
    books: Mutex<Books>,
    tally: Option<&'static Tally>,
}

/// What is known about an area; addresses as numbers.
struct Books {
    free: RangeAllocator<usize>,
    free_bytes: usize,
    /// From here on nothing was lent yet.
    fresh: usize,
}

impl ExposedArea {
    /// An area of `bytes` bytes at `start`. With a `tally`, the pages of what
    /// is lent come before it is used.
    ///
    /// # Safety
    ///
    /// The memory is mapped, shared, all zeroes and nobody else's, and stays
    /// so as long as the area or a block of it is used.
    pub unsafe fn new(start: NonNull<u8>, bytes: usize, tally: Option<&'static Tally>) -> Self {
        let at = start.as_ptr() as usize;
        let free = RangeAllocator::new(at..at + bytes);
        let books = Mutex::new(Books { free, free_bytes: bytes, fresh: at });
        Self { start, bytes, books, tally }
    }

    /// Where it starts.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How long it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How much of it is not lent, in however many pieces.
    pub fn free_bytes(&self) -> usize {
        self.books().free_bytes
    }

    /// Whether `memory` lies in this area.
    pub fn contains(&self, memory: NonNull<u8>) -> bool {
        (memory.as_ptr() as usize).wrapping_sub(self.start.as_ptr() as usize) < self.bytes
    }

    /// As [`allocate`](Memory::allocate), and every byte is zero. Only what
    /// was lent before is written to.
    pub fn allocate_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        let (block, fresh) = self.lend(layout)?;
        let start = block.as_ptr() as usize;
        let used = fresh.saturating_sub(start).min(block_bytes(layout));
        // SAFETY: the block was just lent to us; a late operation of a peer
        // does no more harm here than it does to any other bytes of the area.
        unsafe { clear(start, used) };
        self.populate(block, fresh, layout);
        Some(block)
    }

    /// Brings the pages of a block that may not be there: what was never lent,
    /// and all of a large one, whose pages were given back.
    fn populate(&self, block: NonNull<u8>, fresh: usize, layout: Layout) {
        let Some(tally) = self.tally else { return };
        let (start, bytes) = (block.as_ptr() as usize, block_bytes(layout));
        let first = if bytes >= DISCARD_BYTES_MIN { start } else { start.max(fresh) };
        if first < start + bytes {
            // SAFETY: pages of this area.
            unsafe { tally.populate(first..start + bytes, Need::Write) };
        }
    }

    /// A block, and up to where memory had been lent before.
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
        // SAFETY: the books hold no address outside of the area.
        Some((unsafe { self.start.add(offset) }, fresh))
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: a range is lent to one until it is given back, inside of the area
// and aligned; what lies in the blocks has no part in it.
unsafe impl Memory for ExposedArea {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let (block, fresh) = self.lend(layout)?;
        self.populate(block, fresh, layout);
        Some(block)
    }

    unsafe fn release(&self, memory: NonNull<u8>, layout: Layout) {
        debug_assert!(self.contains(memory), "{memory:p} is not of this area");
        let (start, bytes) = (memory.as_ptr() as usize, block_bytes(layout));
        if bytes >= DISCARD_BYTES_MIN {
            // SAFETY: the caller's: nobody uses the block. That its pages
            // could not be given back would be no loss but theirs.
            let _ = unsafe { discard_within(start, bytes) };
        }
        let mut books = self.books();
        books.free.free_range(start..start + bytes);
        books.free_bytes += bytes;
    }
}

// SAFETY: memory of the process; what it is used for, `Memory` says.
unsafe impl Send for ExposedArea {}
// SAFETY: the same, and the books are behind a lock.
unsafe impl Sync for ExposedArea {}

impl fmt::Debug for ExposedArea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, bytes, .. } = self;
        write!(f, "ExposedArea({:#x} of {bytes:#x} bytes free at {start:p})", self.free_bytes())
    }
}

/// What a block of this layout takes; more than there can be if it is absurd.
fn block_bytes(layout: Layout) -> usize {
    layout.size().max(1).next_multiple_of(LINE)
}

/// Makes `bytes` bytes at `start` zero: many of them by giving their pages
/// back, so that none is touched that nobody uses.
///
/// # Safety
///
/// They lie in one block of an area, which nobody uses.
unsafe fn clear(start: usize, bytes: usize) {
    let mut discarded = start..start;
    if bytes >= DISCARD_BYTES_MIN {
        // SAFETY: the caller's.
        discarded = unsafe { discard_within(start, bytes) }.unwrap_or(discarded);
    }
    for part in [start..discarded.start, discarded.end..start + bytes] {
        // SAFETY: the caller's.
        unsafe { (part.start as *mut u8).write_bytes(0, part.len()) };
    }
}

/// Gives the whole pages among these bytes back and says which they were;
/// `None` if the system refuses.
///
/// # Safety
///
/// As [`clear`].
unsafe fn discard_within(start: usize, bytes: usize) -> Option<std::ops::Range<usize>> {
    let end = (start + bytes) / PAGE_BYTES_MAX * PAGE_BYTES_MAX;
    let start = start.next_multiple_of(PAGE_BYTES_MAX);
    // SAFETY: the caller's, and at least a page lies in between.
    unsafe { sys::discard(start, end - start) }.then_some(start..end)
}

/// Blocks do not share a cache line.
const LINE: usize = 64;
/// The largest alignment of a block: a huge page.
const ALIGN_MAX: usize = 2 << 20;
/// No system has larger pages: a huge one.
const PAGE_BYTES_MAX: usize = 2 << 20;
/// From here on pages are given back. Each costs a fault when it is used again,
/// many times what clearing it costs: so smaller blocks keep theirs.
const DISCARD_BYTES_MIN: usize = 64 << 20;

const _: () = assert!(DISCARD_BYTES_MIN > 2 * PAGE_BYTES_MAX);

#[cfg(test)]
mod tests;
