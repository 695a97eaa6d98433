//! The program's heap. With `TSUMUGI_MPI_HEAP=on` the blocks that the program allocates after
//! MPI_Init lie in the partition of the rank, so that ranks of the node copy a message straight
//! from one buffer into the other.
//!
//! ```text
//!   malloc ─┬─ before MPI_Init, short, or in a forked child ───► libc's block
//!           └─ otherwise ─► block of the partition ─ full ─────► libc's block
//!   free   ─── by the address of the block
//! ```
//!
//! The library replaces the functions of libc that make and free blocks in any case, as every
//! library may do; without the variable they only call libc. The rules are those of
//! [`GlobalHeap`]: a child that the program forks shares the blocks with its parent, which is why
//! the program has to ask for it.

use std::alloc::Layout;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use tsumugi::GlobalHeap;
use tsumugi::pvas::Heap;
use tsumugi_core::mem::MemorySource;
use tsumugi_core::sync::{AtomicBool, Ordering};

/// New blocks lie in the partition from here on.
pub(crate) fn use_partition() {
    // Relaxed: a thread that sees this late gets a block of libc.
    IS_ON.store(true, Ordering::Relaxed);
}

/// The heap for a block; `None`: libc is to make it.
#[inline]
fn heap_for(bytes: usize) -> Option<&'static Heap> {
    if bytes < SHARED_FROM || !IS_ON.load(Ordering::Relaxed) {
        return None;
    }
    GlobalHeap::current()
}

fn layout(bytes: usize, align: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, align.max(ALIGN)).ok()
}

fn aligned(bytes: usize, align: usize) -> *mut c_void {
    let block = heap_for(bytes).and_then(|heap| heap.allocate(layout(bytes, align)?));
    // SAFETY: any arguments are allowed.
    block.map_or_else(|| unsafe { __libc_memalign(align, bytes) }, |block| block.as_ptr().cast())
}

/// A block of `bytes` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(bytes: usize) -> *mut c_void {
    let block = heap_for(bytes).and_then(|heap| heap.allocate(layout(bytes, ALIGN)?));
    // SAFETY: any length is allowed.
    block.map_or_else(|| unsafe { __libc_malloc(bytes) }, |block| block.as_ptr().cast())
}

/// A block of zeroes.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    let all = count.checked_mul(bytes).unwrap_or(0);
    let block = heap_for(all).and_then(|heap| heap.allocate_zeroed(layout(all, ALIGN)?));
    // SAFETY: any arguments are allowed.
    block.map_or_else(|| unsafe { __libc_calloc(count, bytes) }, |block| block.as_ptr().cast())
}

/// Frees a block.
///
/// # Safety
///
/// `block` is NULL, or a block that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    let shared = NonNull::new(block.cast::<u8>()).filter(|block| GlobalHeap::holds(*block));
    let Some(shared) = shared else {
        // SAFETY: the caller's; the address shows that libc made the block.
        return unsafe { __libc_free(block) };
    };
    if let Some(heap) = GlobalHeap::current() {
        // SAFETY: the caller's; the address shows that the heap made the block, which does not
        // use the layout.
        unsafe { heap.release(shared, Layout::new::<u8>()) };
    }
}

/// A block of another length with the bytes of an old one.
///
/// # Safety
///
/// `block` is NULL, or a block that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    let Some(old) = NonNull::new(block.cast::<u8>()) else { return malloc(bytes) };
    if !GlobalHeap::holds(old) {
        // SAFETY: the caller's; the address shows that libc made the block.
        return unsafe { __libc_realloc(block, bytes) };
    }
    if bytes == 0 {
        // SAFETY: the caller's.
        unsafe { free(block) };
        return ptr::null_mut();
    }
    if let (Some(heap), Some(new)) = (GlobalHeap::current(), layout(bytes, ALIGN)) {
        // SAFETY: the caller's; the heap made the block.
        if let Some(moved) = unsafe { heap.reallocate(old, new) } {
            return moved.as_ptr().cast();
        }
    }
    // The heap is full, or belongs to the parent of this process.
    let new = malloc(bytes);
    if !new.is_null() {
        let kept = GlobalHeap::block_bytes(old).min(bytes);
        // SAFETY: both blocks have so many bytes, and a new block is no other one.
        unsafe {
            new.cast::<u8>().copy_from_nonoverlapping(old.as_ptr(), kept);
            free(block);
        }
    }
    new
}

/// A block with an alignment, which is a power of two.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    aligned(bytes, align)
}

/// A block with an alignment, which is a power of two.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    aligned(bytes, align)
}

/// A block with an alignment, which is a power of two and a multiple of the size of a pointer.
///
/// # Safety
///
/// `block` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    block: *mut *mut c_void,
    align: usize,
    bytes: usize,
) -> c_int {
    if !align.is_power_of_two() || align < size_of::<usize>() {
        return libc::EINVAL;
    }
    let made = aligned(bytes, align);
    if made.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's.
    unsafe { block.write(made) };
    0
}

/// A block that begins with a page.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(bytes: usize) -> *mut c_void {
    aligned(bytes, PAGE)
}

/// A block of whole pages.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    aligned(bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes).max(PAGE), PAGE)
}

/// The bytes of a block that can be used.
///
/// # Safety
///
/// `block` is NULL, or a block that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    let Some(of) = NonNull::new(block.cast::<u8>()) else { return 0 };
    if GlobalHeap::holds(of) {
        return GlobalHeap::block_bytes(of);
    }
    // SAFETY: the name is a string of C; the next library with this function is libc.
    let next = *NEXT.get_or_init(|| unsafe {
        libc::dlsym(libc::RTLD_NEXT, c"malloc_usable_size".as_ptr()).addr()
    });
    if next == 0 {
        return 0;
    }
    let next = ptr::with_exposed_provenance::<c_void>(next);
    // SAFETY: libc's function, which has this type; the caller's block is libc's.
    unsafe {
        std::mem::transmute::<*const c_void, unsafe extern "C" fn(*mut c_void) -> usize>(next)(
            block,
        )
    }
}

unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, bytes: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, bytes: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, bytes: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

static IS_ON: AtomicBool = AtomicBool::new(false);
static NEXT: OnceLock<usize> = OnceLock::new();
/// Shorter blocks are libc's: a message of this length costs the same from any memory.
const SHARED_FROM: usize = 256;
/// The alignment of a block whose alignment the program does not give.
const ALIGN: usize = 16;
const PAGE: usize = 4096;
