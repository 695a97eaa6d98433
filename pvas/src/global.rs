//! The allocator of a whole program: every `Box`, `Vec` and `String` of a rank
//! in its partition, so that it can be sent without a copy.
//!
//! ```text
//!             before attach     as a rank              forked child, exit
//!  alloc      System            heap, System if full   System
//!  release    System            by address             System; heap's are left
//!  realloc    System            into the heap          out of the heap
//! ```
//!
//! A block belongs to whom its address says, so it does not matter when it was
//! made: what `main` allocated before the partition was there goes back to the
//! system's allocator. A reallocation moves such a block into the heap.
//!
//! What does not fit into the heap, because that is full or because it wants
//! more than a page's alignment, comes from the system
//! ([`spilled`](GlobalHeap::spilled) counts it): the program goes on, and such
//! a block is sent with a copy.
//!
//! The heap is a shared mapping: a child that was forked and wrote to it would
//! write to its parent's. From the fork on it takes its memory from the
//! system's allocator and releases none of the heap's blocks; what it changes in
//! one, its parent sees. `posix_spawn`, which
//! `std::process::Command` uses where it can, allocates nothing in the child.
//! When the process exits the same holds, since the heap's own tables go
//! before the last thread does.
//!
//! The first heap of a process is the program's. Ranks that are threads share
//! it.

use crate::heap::Heap;
use crate::sys;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{self, NonNull};
use tsumugi_core::mem::Memory;
use tsumugi_core::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Memory of the rank's partition for everything that a program allocates.
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
        // Without both calls a child, or the end of the process, would use
        // the heap as if it were its own.
        if sys::on_fork_and_exit(forked, leaving).is_err() {
            return;
        }
        // SAFETY: it lives for good.
        BYTES.store(unsafe { (*heap).bytes() }, Ordering::Relaxed);
        // Release: pairs with the Acquire in `heap`, and hands on the words
        // above.
        HEAP.store(heap, Ordering::Release);
    }

    /// How many blocks, and bytes in all, the system gave since the process is
    /// a rank, because the heap could not.
    pub fn spilled() -> (u64, u64) {
        (SPILLED.load(Ordering::Relaxed), SPILLED_BYTES.load(Ordering::Relaxed))
    }

    /// The heap, while this process is a rank.
    #[inline(always)]
    fn heap() -> Option<&'static Heap> {
        // Acquire: pairs with the Release in `adopt`.
        let heap = HEAP.load(Ordering::Acquire);
        // SAFETY: null, or a heap that lives for good.
        unsafe { heap.as_ref() }
    }

    /// Whether the block is the heap's, also when the heap is not ours to use.
    #[inline(always)]
    fn is_of_heap(block: *mut u8) -> bool {
        // Relaxed: who has a block of the heap has seen it become ours.
        let (start, bytes) = (START.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
        (block as usize).wrapping_sub(start) < bytes
    }

    #[cold]
    #[inline(never)]
    fn spill(layout: Layout, zeroed: bool) -> *mut u8 {
        SPILLED.fetch_add(1, Ordering::Relaxed);
        SPILLED_BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's of the allocator.
        unsafe { if zeroed { System.alloc_zeroed(layout) } else { System.alloc(layout) } }
    }

    /// A new block with what fits of the old one's bytes, which is released.
    ///
    /// # Safety
    ///
    /// As [`GlobalAlloc::realloc`].
    unsafe fn moved(&self, block: *mut u8, old: Layout, new: Layout) -> *mut u8 {
        // SAFETY: the caller's; both blocks are ours and apart.
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

// SAFETY: a block is the heap's or the system's, each of which keeps the
// promises, and goes back to whom its address says. Nothing here allocates by
// itself or panics.
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
            // SAFETY: the caller's; it came from there.
            return unsafe { System.dealloc(block, layout) };
        }
        if let (Some(heap), Some(block)) = (Self::heap(), NonNull::new(block)) {
            // SAFETY: the caller's; its address says that it is the heap's.
            unsafe { heap.release(block, layout) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        // SAFETY: the caller's: the size is a layout's.
        let new = unsafe { Layout::from_size_align_unchecked(new_bytes, layout.align()) };
        // SAFETY: the caller's, in each case.
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

/// In a forked child: the heap is its parent's. Async-signal-safe.
extern "C" fn forked() {
    leaving();
}

/// When the process exits.
extern "C" fn leaving() {
    HEAP.store(ptr::null_mut(), Ordering::Release);
}

// An allocator is of the whole process, and so are these.
static HEAP: AtomicPtr<Heap> = AtomicPtr::new(ptr::null_mut());
/// Where the heap lies: these stay as they are when it is left.
static START: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static SPILLED: AtomicU64 = AtomicU64::new(0);
static SPILLED_BYTES: AtomicU64 = AtomicU64::new(0);
