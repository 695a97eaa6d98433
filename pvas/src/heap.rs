//! The allocator of a partition: mimalloc over memory that it is given.
//!
//! Each heap is one exclusive arena of mimalloc: what is allocated from it
//! lies in the partition, and nothing else does. Any thread allocates and any
//! thread of the same process releases; mimalloc keeps a free list for every
//! pair of thread and heap, behind a call that the compiler cannot look into,
//! so that a ULT which has moved to another thread meets the right one.
//!
//! An arena has just under 16 GiB. A larger heap has several, of which the
//! second is made when the first is full; a block lies in one of them.
//!
//! The arenas are pinned: pages that were touched stay, and after them neither
//! `allocate` nor `release` asks the kernel for anything.
//!
//! mimalloc never gives an arena up, so the memory of a heap must stay mapped
//! until the process ends. [`Space`](crate::space::Space) sees to that.
//!
//! Each thread has a table of its free lists, one place for each heap. When
//! mimalloc 3.3 makes one longer, the first of the new places hold what lay
//! there before, which may be the table of a thread that is gone: blocks then
//! come from wherever that leads. So no table grows place by place: as soon as
//! there is a second heap, it is made long enough for all of them at once.

use crate::populate::{Need, Tally};
use libmimalloc_sys as mi;
use std::alloc::Layout;
use std::cell::Cell;
use std::ffi::{c_int, c_long, c_void};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use tsumugi_core::mem::Memory;
use tsumugi_core::sync::{AtomicPtr, AtomicUsize, Ordering};

/// The heap of one partition. `allocate` and `release` are lock-free but for
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

/// Why there is no heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapError {
    /// The allocator takes no more arenas in this process, or not this memory.
    Refused {
        /// Where the memory starts.
        start: usize,
        /// How long it is.
        bytes: usize,
    },
}

impl Heap {
    /// A heap in `bytes` bytes at `start`: at least 32 MiB, aligned to 64 KiB.
    /// With a `tally`, pages come when the allocator takes them for the first
    /// time, 64 KiB or more at once.
    ///
    /// # Errors
    ///
    /// [`HeapError`].
    ///
    /// # Safety
    ///
    /// The memory is mapped, all zeroes, nobody else's, and stays so until
    /// the process ends.
    pub unsafe fn new(
        start: NonNull<u8>,
        bytes: usize,
        tally: Option<&'static Tally>,
    ) -> Result<Self, HeapError> {
        // SAFETY: sizes in KiB, and nobody else sets them meanwhile.
        OPTIONS.call_once(|| unsafe {
            // The allocator's own tables need little: a small reserve keeps
            // it under an address space limit.
            mi::mi_option_set_default(OPTION_ARENA_RESERVE, 64 << 10);
            // One object may be as large as an arena.
            mi::mi_option_set(OPTION_ARENA_MAX_OBJECT_SIZE, 16 << 20);
        });
        // SAFETY: the caller's.
        let first = unsafe { Arena::new(start, bytes.min(ARENA_BYTES_MAX), tally) };
        let first = first.ok_or(HeapError::Refused { start: start.as_ptr() as usize, bytes })?;
        let further = bytes.div_ceil(ARENA_BYTES_MAX).saturating_sub(1);
        let further = (0..further).map(|_| OnceLock::new()).collect();
        Ok(Self { start, bytes, first, further, tally })
    }

    /// The same for good, as its arenas are.
    pub fn keep(self) -> &'static Self {
        let heap: &Self = Box::leak(Box::new(self));
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(heap);
        heap
    }

    /// Where its memory starts.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How much memory it has, its own tables included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether `memory` lies in this heap.
    pub fn contains(&self, memory: NonNull<u8>) -> bool {
        (memory.as_ptr() as usize).wrapping_sub(self.start.as_ptr() as usize) < self.bytes
    }
}

impl Heap {
    /// As [`allocate`](Memory::allocate), and every byte is zero: pages that
    /// were never used are not touched for that.
    pub fn allocate_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.align() > ALIGN_MAX {
            return None;
        }
        let (size, align) = (layout.size().max(1), layout.align());
        // SAFETY: the heap lives as long as the process.
        let block = unsafe { mi::mi_heap_zalloc_aligned(self.first.heap(), size, align) };
        NonNull::new(block.cast()).or_else(|| {
            let block = self.allocate_further((size, align))?;
            // SAFETY: the block was just lent to us, whole.
            unsafe { block.write_bytes(0, size) };
            Some(block)
        })
    }

    /// A block of the layout with the first bytes of `block`, which is its
    /// caller's no more. `None`: the heap is full, and `block` is as it was.
    ///
    /// # Safety
    ///
    /// `block` came from this heap, with the layout's alignment.
    pub unsafe fn reallocate(&self, block: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>> {
        debug_assert!(self.contains(block), "{block:p} is not of this heap");
        let (size, align) = (layout.size().max(1), layout.align());
        // SAFETY: the caller's.
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
            // SAFETY: `offset` is below `bytes`, and the memory is as `new`
            // was promised; no arena overlaps another.
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
        // "Committed" memory is there; the other is asked for before its use.
        let committed = tally.is_none();
        let (pinned, zero, exclusive, any_node) = (true, true, true, -1);
        // SAFETY: the memory is as the caller promises, and the arena never
        // has to be given back.
        let managed = unsafe {
            mi_manage_memory(
                start.as_ptr().cast(),
                bytes,
                committed,
                pinned,
                zero,
                any_node,
                exclusive,
                tally.map(|_| commit as Commit),
                tally.map_or(ptr::null_mut(), |tally| ptr::from_ref(tally).cast_mut().cast()),
                &mut arena,
            )
        };
        // SAFETY: the arena was made just now.
        let heap = if managed { unsafe { mi::mi_heap_new_in_arena(arena) } } else { return None };
        (!heap.is_null()).then_some(Self(heap))
    }

    /// The heap, for a call by which this thread may get its place in it.
    #[inline]
    fn heap(&self) -> *mut mi::mi_heap_t {
        // Acquire: pairs with the Release in `make_tables_long`, which was
        // before there was a second heap to ask.
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

// SAFETY: mimalloc's heaps are open to every thread, and an exclusive arena
// lends each block once. What it cannot align it refuses.
unsafe impl Memory for Heap {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.align() > ALIGN_MAX {
            return None;
        }
        let layout = (layout.size().max(1), layout.align());
        self.first.allocate(layout).or_else(|| self.allocate_further(layout))
    }

    unsafe fn release(&self, memory: NonNull<u8>, _layout: Layout) {
        debug_assert!(self.contains(memory), "{memory:p} is not of this heap");
        // SAFETY: the caller's: it came from `allocate`.
        unsafe { mi::mi_free(memory.as_ptr().cast::<c_void>()) };
    }
}

// SAFETY: memory of the process; what it is used for, `Memory` says.
unsafe impl Send for Heap {}
// SAFETY: the same.
unsafe impl Sync for Heap {}
// SAFETY: the pointer is only passed to calls that any thread may make.
unsafe impl Send for Arena {}
// SAFETY: the same.
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
                write!(f, "the allocator refused {bytes:#x} bytes at {start:#x} as a heap")
            }
        }
    }
}

impl std::error::Error for HeapError {}

/// From now on a thread's table has room for every heap there can be: who
/// takes the place behind all others makes it that long. Places are given out
/// in their order.
fn make_tables_long() {
    // SAFETY: they are ours, and nobody else knows them.
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

/// Not inlined: a ULT that asks may have come from another thread, and the
/// address of what is a thread's must not have come with it.
#[inline(never)]
fn make_table_long(last: *mut mi::mi_heap_t) {
    if !IS_LONG.replace(true) {
        // SAFETY: a heap for good.
        unsafe { mi_heap_theap(last) };
    }
}

/// mimalloc's tables for an arena of 16 GiB would be larger than it allows.
const ARENA_BYTES_MAX: usize = 15 << 30;
/// mimalloc takes no more of them in one process.
const ARENAS_MAX: usize = 160;
/// Above it mimalloc would go to the system, which an exclusive arena forbids.
const ALIGN_MAX: usize = 64 << 10;

/// Called before an arena uses memory for the first time, and for its tables,
/// which it uses sparsely.
type Commit = extern "C" fn(bool, *mut c_void, usize, *mut bool, *mut c_void) -> bool;

extern "C" fn commit(
    is_commit: bool,
    start: *mut c_void,
    bytes: usize,
    is_zero: *mut bool,
    tally: *mut c_void,
) -> bool {
    // Whether it is zero nobody asks of the tables.
    if is_commit && !is_zero.is_null() {
        let start = start.addr();
        // SAFETY: what `Arena::new` passed, for good.
        let tally = unsafe { &*tally.cast::<Tally>() };
        // SAFETY: memory of the arena, about to be lent.
        unsafe { tally.populate(start..start + bytes, Need::Write) };
    }
    true
}

// mimalloc exports it, and its bindings leave it out.
unsafe extern "C" {
    fn mi_manage_memory(
        start: *mut c_void,
        bytes: usize,
        is_committed: bool,
        is_pinned: bool,
        is_zero: bool,
        numa_node: c_int,
        exclusive: bool,
        commit: Option<Commit>,
        commit_arg: *mut c_void,
        arena: *mut mi::mi_arena_id_t,
    ) -> bool;
    fn mi_heap_theap(heap: *mut mi::mi_heap_t) -> *mut c_void;
}

/// So that no checker takes them for lost.
static KEPT: Mutex<Vec<&Heap>> = Mutex::new(Vec::new());
/// mimalloc's options are those of the process.
static OPTIONS: Once = Once::new();
/// How many arenas were asked for.
static ARENAS: AtomicUsize = AtomicUsize::new(0);
/// When there is a second one.
static LONG: Once = Once::new();
/// The heap whose place in a thread's table is behind all others'.
static LAST: AtomicPtr<mi::mi_heap_t> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// Whether this thread's table has room for all heaps.
    static IS_LONG: Cell<bool> = const { Cell::new(false) };
}

// Places in mimalloc's list of options that its bindings have no names for.
const OPTION_ARENA_RESERVE: mi::mi_option_t = 23;
const OPTION_ARENA_MAX_OBJECT_SIZE: mi::mi_option_t = mi::_mi_option_last - 2;
const _: () = assert!(mi::_mi_option_last == 47 && size_of::<c_long>() == 8);

#[cfg(test)]
mod tests;
