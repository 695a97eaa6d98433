//! Memory for tables that live as long as a job.

use crate::error::Error;
use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;
use tsumugi_core::mem::MemorySource;
use tsumugi_pvas::Member;
use tsumugi_pvas::config::EXPOSED;

/// A boxed slice that is lent out; it is freed when this is dropped.
pub struct LeakedSlice<T>(*mut [T]);

/// Lends a slice. The borrower must be dropped before the `LeakedSlice`.
#[inline]
pub fn lend<T>(values: Vec<T>) -> (&'static mut [T], LeakedSlice<T>) {
    let slice = Box::into_raw(values.into_boxed_slice());
    // SAFETY: just boxed; only the borrower uses it until the `LeakedSlice` is dropped.
    (unsafe { &mut *slice }, LeakedSlice(slice))
}

impl<T> fmt::Debug for LeakedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeakedSlice({})", self.0.len())
    }
}

impl<T> LeakedSlice<T> {
    /// The length of the slice.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

// SAFETY: an owned box, which only the drop accesses.
unsafe impl<T: Send> Send for LeakedSlice<T> {}
// SAFETY: a shared reference gives no access to the values.
unsafe impl<T: Send> Sync for LeakedSlice<T> {}

impl<T> Drop for LeakedSlice<T> {
    fn drop(&mut self) {
        // SAFETY: from a box, and the borrower is gone, as `lend` requires.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Allocates zeroed memory in the rank's area for rings, for the rest of the job.
pub(crate) fn zeroes(member: &Member, bytes: usize) -> Result<NonNull<u8>, Error> {
    let block = layout(bytes).and_then(|layout| member.rings().allocate_zeroed(layout));
    block.ok_or(Error::OutOfMemory { bytes, variable: EXPOSED })
}

/// Gives back memory that could not be used after all.
///
/// # Safety
///
/// The memory came from [`zeroes`] for as many bytes, and is not used any more.
pub(crate) unsafe fn give_back(member: &Member, at: NonNull<u8>, bytes: usize) {
    let layout = layout(bytes).expect("the layout is that of the allocation");
    // SAFETY: the caller's promise.
    unsafe { member.rings().release(at, layout) };
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, ALIGN).ok()
}

/// The alignment of blocks: enough for cells of four cache lines.
const ALIGN: usize = 256;
