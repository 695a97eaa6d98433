//! The allocator of a partition: mimalloc over memory that it is given.
//!
//! Each heap is one exclusive arena of mimalloc: every block from the heap lies in
//! the partition, and no other block does. Any thread allocates and any thread of
//! the same process releases; mimalloc keeps a free list for every pair of thread
//! and heap, behind a call that the compiler cannot inline, so that a ULT that has
//! moved to another thread uses the right list.
//!
//! An arena has just under 16 GiB. A larger heap has several arenas, of which the
//! second is made when the first is full; a block lies in one of them.
//!
//! The arenas are pinned: pages that were touched stay, and after that neither
//! `allocate` nor `release` makes a system call.
//!
//! mimalloc never frees an arena, so the memory of a heap must stay mapped until
//! the process ends. [`Space`](crate::space::Space) guarantees that.
//!
//! Each thread has a table of its free lists, one entry for each heap. When
//! mimalloc 3.3 makes a table longer, the first of the new entries keep the
//! previous content of that memory, which may be the table of a thread that has
//! ended: blocks then come from wherever that content points. Therefore no table
//! may grow entry by entry: as soon as there is a second heap, each table is made
//! long enough for all possible heaps at once.

use crate::populate::{Need, Tally};
use libmimalloc_sys as mi;
use std::alloc::Layout;
use std::cell::Cell;
use std::ffi::{c_int, c_long, c_void};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use tsumugi_core::mem::MemorySource;
use tsumugi_core::sync::{AtomicPtr, AtomicUsize, Ordering};

/// The heap of one partition. `allocate` and `release` are lock-free, except for
/// the first allocation of a thread.
pub struct Heap {
    start: NonNull<u8>,
    bytes: usize,
    first: Arena,
    further: Vec<OnceLock<Option<Arena>>>,
    tally: Option<&'static Tally>,
}

/// An exclusive arena and the heap that allocates from it.
struct Arena(*mut mi::mi_heap_t);

/// Why a heap cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapError {
    /// The allocator accepts no more arenas in this process, or not this memory.
    Refused {
        /// Where the memory starts.
        start: usize,
        /// The length of the memory.
        bytes: usize,
    },
}

impl Heap {
    /// Makes a heap in `bytes` bytes at `start`: at least 32 MiB, aligned to 64
    /// KiB. With a `tally`, pages are populated when the allocator takes them for
    /// the first time, 64 KiB or more at once.
    ///
    /// # Errors
    ///
    /// [`HeapError::Refused`] if mimalloc has as many arenas in this process as it accepts
    /// (160), or does not accept this memory.
    ///
    /// # Safety
    ///
    /// The memory must be mapped, all zeroes and not used otherwise, and must stay
    /// so until the process ends.
    pub unsafe fn new(
        start: NonNull<u8>,
        bytes: usize,
        tally: Option<&'static Tally>,
    ) -> Result<Self, HeapError> {
        // SAFETY: the options are numbers in KiB, and `OPTIONS` lets one thread set
        // them.
        OPTIONS.call_once(|| unsafe {
            // The allocator's own tables need little: a small reserve keeps the
            // allocator under an address space limit.
            mi::mi_option_set_default(OPTION_ARENA_RESERVE, 64 << 10);
            // One object may be as large as an arena.
            mi::mi_option_set(OPTION_ARENA_MAX_OBJECT_SIZE, 16 << 20);
        });
        // SAFETY: the caller's contract covers this part of the memory.
        let first = unsafe { Arena::new(start, bytes.min(ARENA_BYTES_MAX), tally) };
        let first = first.ok_or(HeapError::Refused { start: start.as_ptr() as usize, bytes })?;
        let further = bytes.div_ceil(ARENA_BYTES_MAX).saturating_sub(1);
        let further = (0..further).map(|_| OnceLock::new()).collect();
        Ok(Self { start, bytes, first, further, tally })
    }

    /// Keeps the heap until the process ends, as mimalloc keeps its arenas.
    pub fn keep(self) -> &'static Self {
        let heap: &Self = Box::leak(Box::new(self));
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(heap);
        heap
    }

    /// The start of the heap's memory.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The length of the heap's memory, its own tables included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes that a block of a heap has, at least those for which it was allocated.
    pub fn block_bytes(block: NonNull<u8>) -> usize {
        // SAFETY: mimalloc reads its own tables, which say nothing about other memory.
        unsafe { mi::mi_usable_size(block.as_ptr().cast()) }
    }

    /// Whether `memory` lies in this heap.
    pub fn contains(&self, memory: NonNull<u8>) -> bool {
        (memory.as_ptr() as usize).wrapping_sub(self.start.as_ptr() as usize) < self.bytes
    }
}

impl Heap {
    /// As [`allocate`](MemorySource::allocate), and every byte is zero: pages that were
    /// never used are zero already and are not touched.
    pub fn allocate_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.align() > ALIGN_MAX {
            return None;
        }
        let (size, align) = (layout.size().max(1), layout.align());
        // SAFETY: the heap lives as long as the process.
        let block = unsafe { mi::mi_heap_zalloc_aligned(self.first.heap(), size, align) };
        NonNull::new(block.cast()).or_else(|| {
            let block = self.allocate_further((size, align))?;
            // SAFETY: the whole block was just allocated for this call.
            unsafe { block.write_bytes(0, size) };
            Some(block)
        })
    }

    /// Reallocates: returns a block of the layout with the first bytes of `block`,
    /// which the caller must not use any more. `None`: the heap is full, and
    /// `block` is unchanged.
    ///
    /// # Safety
    ///
    /// `block` must come from this heap, with the layout's alignment.
    pub unsafe fn reallocate(&self, block: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>> {
        debug_assert!(self.contains(block), "{block:p} is not in this heap");
        let (size, align) = (layout.size().max(1), layout.align());
        // SAFETY: the caller guarantees that the block is the heap's.
        let moved = unsafe {
            mi::mi_heap_realloc_aligned(self.first.heap(), block.as_ptr().cast(), size, align)
        };
        NonNull::new(moved.cast())
    }

    #[cold]
    fn allocate_further(&self, layout: (usize, usize)) -> Option<NonNull<u8>> {
        self.further.iter().enumerate().find_map(|(index, arena)| {
            let offset = (index + 1) * ARENA_BYTES_MAX;
            let bytes = (self.bytes - offset).min(ARENA_BYTES_MAX);
            // SAFETY: `offset` is below `bytes`, and the memory fulfils the
            // contract of `new`; no arena overlaps another.
            let make = || unsafe { Arena::new(self.start.add(offset), bytes, self.tally) };
            let arena = arena.get_or_init(make);
            arena.as_ref()?.allocate(layout)
        })
    }
}

impl Arena {
    /// # Safety
    ///
    /// As [`Heap::new`].
    unsafe fn new(start: NonNull<u8>, bytes: usize, tally: Option<&'static Tally>) -> Option<Self> {
        // Relaxed: it only counts.
        if ARENAS.fetch_add(1, Ordering::Relaxed) > 0 {
            LONG.call_once(make_tables_long);
        }
        let mut arena: mi::mi_arena_id_t = ptr::null_mut();
        // "Committed" memory can be used at once; mimalloc calls `commit` before it
        // uses other memory.
        let committed = tally.is_none();
        let (pinned, zero, exclusive, any_node) = (true, true, true, -1);
        // SAFETY: the memory is as the caller guarantees, and the arena is never
        // freed.
        let managed = unsafe {
            mi_manage_memory(
                start.as_ptr().cast(),
                bytes,
                committed,
                pinned,
                zero,
                any_node,
                exclusive,
                tally.map(|_| commit as CommitCallback),
                tally.map_or(ptr::null_mut(), |tally| ptr::from_ref(tally).cast_mut().cast()),
                &mut arena,
            )
        };
        // SAFETY: the arena was made just now.
        let heap = if managed { unsafe { mi::mi_heap_new_in_arena(arena) } } else { return None };
        (!heap.is_null()).then_some(Self(heap))
    }

    /// The heap, for a call in which this thread's table may get its entry for the
    /// heap.
    #[inline]
    fn heap(&self) -> *mut mi::mi_heap_t {
        // Acquire: pairs with the Release in `make_tables_long`, which ran before a
        // second heap existed that can be used here.
        let last = LAST.load(Ordering::Acquire);
        if !last.is_null() {
            make_table_long(last);
        }
        self.0
    }

    fn allocate(&self, (size, align): (usize, usize)) -> Option<NonNull<u8>> {
        // SAFETY: the heap lives as long as the process.
        NonNull::new(unsafe { mi::mi_heap_malloc_aligned(self.heap(), size, align) }.cast())
    }
}

// SAFETY: every thread may use mimalloc's heaps, and an exclusive arena gives each
// block to one owner. A block that cannot be aligned is refused.
unsafe impl MemorySource for Heap {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.align() > ALIGN_MAX {
            return None;
        }
        let layout = (layout.size().max(1), layout.align());
        self.first.allocate(layout).or_else(|| self.allocate_further(layout))
    }

    unsafe fn release(&self, memory: NonNull<u8>, _layout: Layout) {
        debug_assert!(self.contains(memory), "{memory:p} is not in this heap");
        // SAFETY: the caller guarantees that the block came from `allocate`.
        unsafe { mi::mi_free(memory.as_ptr().cast::<c_void>()) };
    }
}

// SAFETY: `start` names memory of the process that is not bound to a thread; the
// contract of `MemorySource` covers its use.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}
// SAFETY: the pointer is only passed to calls that any thread may make.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Heap({:#x} bytes at {:p})", self.bytes, self.start)
    }
}

impl fmt::Display for HeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { start, bytes } => {
                write!(
                    f,
                    "the allocator refused {bytes:#x} bytes at {start:#x} as a heap: a \
                     process has heaps for at most {ARENAS_MAX} ranks at a time"
                )
            }
        }
    }
}

impl std::error::Error for HeapError {}

/// Makes every thread's table long enough for all possible heaps from now on: it
/// reserves the entry behind all others, and a thread that takes that entry makes
/// its table that long. mimalloc hands entries out in their order.
fn make_tables_long() {
    // SAFETY: the heaps are made here, and no other thread knows them.
    unsafe {
        let mut heaps = [ptr::null_mut(); ARENAS_MAX + 1];
        heaps.fill_with(|| mi::mi_heap_new());
        let [others @ .., last] = heaps;
        for other in others.into_iter().filter(|heap| !heap.is_null()) {
            mi::mi_heap_delete(other);
        }
        // Release: pairs with the Acquire in `Arena::heap`.
        LAST.store(last, Ordering::Release);
    }
}

/// Makes this thread's table long. Not inlined: the calling ULT may have come from
/// another thread, and must not use an address of that thread's variables that the
/// compiler has kept.
#[inline(never)]
fn make_table_long(last: *mut mi::mi_heap_t) {
    if !IS_LONG.replace(true) {
        // SAFETY: `last` is a heap that is never freed.
        unsafe { mi_heap_theap(last) };
    }
}

/// The largest arena: mimalloc's tables for 16 GiB would be larger than it allows.
const ARENA_BYTES_MAX: usize = 15 << 30;
/// The largest number of arenas that mimalloc accepts in one process.
const ARENAS_MAX: usize = 160;
/// The largest alignment: above it mimalloc would allocate from the system, which
/// an exclusive arena forbids.
const ALIGN_MAX: usize = 64 << 10;

/// The callback that mimalloc calls before an arena uses memory for the first time,
/// and for the arena's tables, which are sparsely used.
type CommitCallback = extern "C" fn(bool, *mut c_void, usize, *mut bool, *mut c_void) -> bool;

extern "C" fn commit(
    is_commit: bool,
    start: *mut c_void,
    bytes: usize,
    is_zero: *mut bool,
    tally: *mut c_void,
) -> bool {
    // For the tables mimalloc passes no `is_zero`.
    if is_commit && !is_zero.is_null() {
        let start = start.addr();
        // SAFETY: `Arena::new` passed this pointer, and a tally is never freed.
        let tally = unsafe { &*tally.cast::<Tally>() };
        // SAFETY: the range is memory of the arena that is about to be used.
        unsafe { tally.populate(start..start + bytes, Need::Write) };
    }
    true
}

// mimalloc exports these functions, but its bindings leave them out.
unsafe extern "C" {
    fn mi_manage_memory(
        start: *mut c_void,
        bytes: usize,
        is_committed: bool,
        is_pinned: bool,
        is_zero: bool,
        numa_node: c_int,
        exclusive: bool,
        commit: Option<CommitCallback>,
        commit_arg: *mut c_void,
        arena: *mut mi::mi_arena_id_t,
    ) -> bool;
    fn mi_heap_theap(heap: *mut mi::mi_heap_t) -> *mut c_void;
}

/// All heaps that are kept, so that no leak checker reports them.
static KEPT: Mutex<Vec<&Heap>> = Mutex::new(Vec::new());
/// mimalloc's options are set once for the process.
static OPTIONS: Once = Once::new();
/// How many arenas have been requested.
static ARENAS: AtomicUsize = AtomicUsize::new(0);
/// Runs `make_tables_long` once, when there is a second arena.
static LONG: Once = Once::new();
/// The heap with the last entry in a thread's table.
static LAST: AtomicPtr<mi::mi_heap_t> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// Whether this thread's table has room for all heaps.
    static IS_LONG: Cell<bool> = const { Cell::new(false) };
}

// Indices in mimalloc's list of options for which its bindings have no names.
const OPTION_ARENA_RESERVE: mi::mi_option_t = 23;
const OPTION_ARENA_MAX_OBJECT_SIZE: mi::mi_option_t = mi::_mi_option_last - 2;
const _: () = assert!(mi::_mi_option_last == 47 && size_of::<c_long>() == 8);

#[cfg(test)]
mod tests;
