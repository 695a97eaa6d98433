//! The global allocator of a program: it puts every `Box`, `Vec` and `String` of a
//! rank into the rank's partition, so that it can be sent without a copy.
//!
//! ```text
//!             before attach     as a rank              forked child, exit
//!  alloc      System            heap, System if full   System
//!  release    System            by address             System; heap's are left
//!  realloc    System            into the heap          out of the heap
//! ```
//!
//! The address of a block decides which allocator owns the block, so it does not
//! matter when the block was made: a block that `main` allocated before the
//! partition was there goes back to the system's allocator. A reallocation moves
//! such a block into the heap.
//!
//! A block that does not fit into the heap, because the heap is full or because the
//! block needs more than a page's alignment, comes from the system
//! ([`spilled`](GlobalHeap::spilled) counts such blocks): the program goes on, and
//! the block is sent with a copy.
//!
//! The heap is a shared mapping: a forked child that wrote to it would write to its
//! parent's heap. From the fork on the child takes its memory from the system's
//! allocator and releases none of the heap's blocks; if the child writes to a
//! block, the parent sees the change. `posix_spawn`, which `std::process::Command`
//! uses where it can, allocates nothing in the child. The same rule holds when the
//! process exits, because the heap's own tables are gone before the last thread
//! ends.
//!
//! The first heap of a process is the program's. Ranks that are threads share it.
//! The first heap of a process is the program's. Ranks that are threads share
//! it.

use crate::heap::Heap;
use crate::sys;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{self, NonNull};
use tsumugi_core::mem::MemorySource;
use tsumugi_core::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// A global allocator that uses the rank's partition for all allocations of a
/// program.
///
/// ```
/// use tsumugi_pvas::GlobalHeap;
///
/// #[global_allocator]
/// static HEAP: GlobalHeap = GlobalHeap;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct GlobalHeap;

impl GlobalHeap {
    /// Makes a heap the program's, unless it has one.
    pub(crate) fn adopt(heap: &'static Heap) {
        let (at, heap) = (heap.start().as_ptr() as usize, ptr::from_ref(heap).cast_mut());
        if START.compare_exchange(0, at, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        // Without both callbacks a forked child, or the process while it exits,
        // would use the heap as if it were its own.
        if sys::on_fork_and_exit(forked, leaving).is_err() {
            return;
        }
        // SAFETY: the heap is never freed.
        BYTES.store(unsafe { (*heap).bytes() }, Ordering::Relaxed);
        // Release: pairs with the Acquire in `heap`, and publishes the stores
        // above.
        HEAP.store(heap, Ordering::Release);
    }

    /// How many blocks, and how many bytes in all, came from the system since the
    /// process is a rank, because the heap could not provide them.
    pub fn spilled() -> (u64, u64) {
        (SPILLED.load(Ordering::Relaxed), SPILLED_BYTES.load(Ordering::Relaxed))
    }

    /// The heap, while this process may use it: it is a rank, not a forked child of one, and
    /// does not exit.
    #[inline]
    pub fn current() -> Option<&'static Heap> {
        Self::heap()
    }

    /// Whether a block lies in the heap, also when this process must not use the heap.
    #[inline]
    pub fn holds(block: NonNull<u8>) -> bool {
        Self::is_of_heap(block.as_ptr())
    }

    /// The bytes that a block of the heap has.
    pub fn block_bytes(block: NonNull<u8>) -> usize {
        debug_assert!(Self::holds(block), "{block:p} is not in the heap");
        Heap::block_bytes(block)
    }

    /// The heap, while this process is a rank.
    #[inline(always)]
    fn heap() -> Option<&'static Heap> {
        // Acquire: pairs with the Release in `adopt`.
        let heap = HEAP.load(Ordering::Acquire);
        // SAFETY: null, or a heap that lives for good.
        unsafe { heap.as_ref() }
    }

    /// Whether the block lies in the heap, also when this process must not use the
    /// heap.
    #[inline(always)]
    fn is_of_heap(block: *mut u8) -> bool {
        // Relaxed: a thread that has a block of the heap has seen these stores
        // before it.
        let (start, bytes) = (START.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
        (block as usize).wrapping_sub(start) < bytes
    }

    #[cold]
    #[inline(never)]
    fn spill(layout: Layout, zeroed: bool) -> *mut u8 {
        SPILLED.fetch_add(1, Ordering::Relaxed);
        SPILLED_BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller of the allocator passes a valid layout.
        unsafe { if zeroed { System.alloc_zeroed(layout) } else { System.alloc(layout) } }
    }

    /// Moves a block: makes a new one with those of the old bytes that fit, and
    /// releases the old one.
    ///
    /// # Safety
    ///
    /// As [`GlobalAlloc::realloc`].
    unsafe fn moved(&self, block: *mut u8, old: Layout, new: Layout) -> *mut u8 {
        // SAFETY: the caller's contract holds for `block`; the two blocks do not
        // overlap.
        unsafe {
            let moved = self.alloc(new);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(block, old.size().min(new.size()));
                self.dealloc(block, old);
            }
            moved
        }
    }
}

// SAFETY: a block comes from the heap or from the system, each of which keeps the
// allocator's contract, and goes back to the one in which its address lies. Nothing
// here allocates by itself or panics.
unsafe impl GlobalAlloc for GlobalHeap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match Self::heap() {
            Some(heap) => match heap.allocate(layout) {
                Some(block) => block.as_ptr(),
                None => Self::spill(layout, false),
            },
            // SAFETY: the caller's.
            None => unsafe { System.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match Self::heap() {
            Some(heap) => match heap.allocate_zeroed(layout) {
                Some(block) => block.as_ptr(),
                None => Self::spill(layout, true),
            },
            // SAFETY: the caller's.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !Self::is_of_heap(block) {
            // SAFETY: the caller's contract; the address shows that the system made
            // the block.
            return unsafe { System.dealloc(block, layout) };
        }
        if let (Some(heap), Some(block)) = (Self::heap(), NonNull::new(block)) {
            // SAFETY: the caller's contract; the address shows that the heap made
            // the block.
            unsafe { heap.release(block, layout) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the size is valid for a layout.
        let new = unsafe { Layout::from_size_align_unchecked(new_bytes, layout.align()) };
        // SAFETY: the caller's contract, in each case; the block goes to its own
        // allocator.
        unsafe {
            match (Self::heap(), Self::is_of_heap(block)) {
                (None, false) => System.realloc(block, layout, new_bytes),
                (Some(heap), true) => heap
                    .reallocate(NonNull::new_unchecked(block), new)
                    .map_or_else(|| self.moved(block, layout, new), NonNull::as_ptr),
                _ => self.moved(block, layout, new),
            }
        }
    }
}

/// Runs in a forked child: from here on the heap is its parent's.
/// Async-signal-safe.
extern "C" fn forked() {
    leaving();
}

/// Runs when the process exits.
extern "C" fn leaving() {
    HEAP.store(ptr::null_mut(), Ordering::Release);
}

// These are statics because an allocator serves the whole process.
static HEAP: AtomicPtr<Heap> = AtomicPtr::new(ptr::null_mut());
/// Where the heap lies: both words stay set when `HEAP` becomes null.
static START: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static SPILLED: AtomicU64 = AtomicU64::new(0);
static SPILLED_BYTES: AtomicU64 = AtomicU64::new(0);
