//! The private heap: memory of the program in the rank's partition.
//!
//! ```text
//!  block:  16 bytes before it: its length │ the bytes of the program
//! ```

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::ptr;
use tsumugi::GlobalHeap;

/// Allocates `bytes` bytes in this rank's partition, aligned to 16, from which a
/// message is copied once. If the heap is full (`TSUMUGI_HEAP_BYTES`), or if the process is
/// not a rank, the system allocates them. NULL if the system has no memory either.
/// Never waits for another rank.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_malloc(bytes: usize) -> *mut c_void {
    // SAFETY: the layout is not empty.
    allocate(bytes, |layout| unsafe { GlobalHeap.alloc(layout) })
}

/// Allocates `count` zero values of `bytes` bytes each, as `tsumugi_malloc` does. NULL
/// also if the product is no number of bytes.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_calloc(count: usize, bytes: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(bytes) else { return ptr::null_mut() };
    // SAFETY: the layout is not empty.
    allocate(bytes, |layout| unsafe { GlobalHeap.alloc_zeroed(layout) })
}

/// Makes the block `bytes` bytes long, at the same or another place, and returns it;
/// its bytes stay as they are, as far as they fit. A NULL `block` is a new block. If
/// there is no memory, returns NULL, and the block stays as it is.
///
/// # Safety
///
/// `block` is NULL, or is a block of one of these functions that was not freed; no
/// thread uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    if block.is_null() {
        return tsumugi_malloc(bytes);
    }
    let Some(new) = layout(bytes) else { return ptr::null_mut() };
    // SAFETY: the caller's: the block has a head, and the head the length of the block.
    unsafe {
        let (start, old) = head(block);
        let start = GlobalHeap.realloc(start, old, new.size());
        behind_head(start, bytes)
    }
}

/// Frees a block of `tsumugi_malloc`, `tsumugi_calloc`, `tsumugi_realloc` or
/// `tsumugi_recv_whole`. NULL is allowed. Never waits.
///
/// # Safety
///
/// `block` is NULL, or is a block of one of these functions that was not freed; no
/// thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_free(block: *mut c_void) {
    if !block.is_null() {
        // SAFETY: the caller's.
        unsafe {
            let (start, layout) = head(block);
            GlobalHeap.dealloc(start, layout);
        }
    }
}

/// Allocates the head and the bytes of a block.
fn allocate(bytes: usize, by: impl FnOnce(Layout) -> *mut u8) -> *mut c_void {
    let Some(layout) = layout(bytes) else { return ptr::null_mut() };
    // SAFETY: the memory has the size of the layout.
    unsafe { behind_head(by(layout), bytes) }
}

/// Writes the head at `start`, unless that is null, and returns the address behind it.
///
/// # Safety
///
/// `start` is null or valid for a write of a head.
unsafe fn behind_head(start: *mut u8, bytes: usize) -> *mut c_void {
    if start.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: the caller's.
    unsafe {
        start.cast::<usize>().write(bytes);
        start.add(HEAD).cast()
    }
}

/// The start of the memory of a block, and its layout.
///
/// # Safety
///
/// `block` was returned by [`behind_head`] and was not freed.
unsafe fn head(block: *mut c_void) -> (*mut u8, Layout) {
    // SAFETY: the caller's.
    unsafe {
        let start = block.cast::<u8>().sub(HEAD);
        let bytes = start.cast::<usize>().read();
        (start, Layout::from_size_align_unchecked(HEAD + bytes, HEAD))
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(HEAD)?, HEAD).ok()
}

/// The length of a head, and the alignment of blocks.
const HEAD: usize = 16;
