//! Memory for tables that live as long as a job.

use crate::Error;
use std::alloc::Layout;
use std::ptr::NonNull;
use tsumugi_core::mem::Memory;
use tsumugi_pvas::Member;
use tsumugi_pvas::config::EXPOSED;

/// A boxed slice that is lent out for as long as this lives.
pub(crate) struct Lent<T>(*mut [T]);

/// The slice is used by what is dropped before the `Lent`.
pub(crate) fn lend<T>(values: Vec<T>) -> (&'static mut [T], Lent<T>) {
    let slice = Box::into_raw(values.into_boxed_slice());
    // SAFETY: just boxed; nobody else uses it until the `Lent` is dropped.
    (unsafe { &mut *slice }, Lent(slice))
}

impl<T> Lent<T> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

// SAFETY: a box, and only its drop touches it.
unsafe impl<T: Send> Send for Lent<T> {}
// SAFETY: nothing of it is reached by reference.
unsafe impl<T: Send> Sync for Lent<T> {}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        // SAFETY: of a box, and the borrower is gone, see `lend`.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Zeroes of the rank's memory for rings, for the rest of the job.
pub(crate) fn zeroes(member: &Member, bytes: usize) -> Result<NonNull<u8>, Error> {
    let block = layout(bytes).and_then(|layout| member.rings().allocate_zeroed(layout));
    block.ok_or(Error::OutOfMemory { bytes, variable: EXPOSED })
}

/// Gives back what could not be used after all.
///
/// # Safety
///
/// It came from [`zeroes`] for as many bytes, and nobody uses it.
pub(crate) unsafe fn give_back(member: &Member, at: NonNull<u8>, bytes: usize) {
    let layout = layout(bytes).expect("as it was lent");
    // SAFETY: the caller's.
    unsafe { member.rings().release(at, layout) };
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, ALIGN).ok()
}

/// Wide enough for cells of four cache lines.
const ALIGN: usize = 256;
