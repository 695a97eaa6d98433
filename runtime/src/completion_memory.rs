//! The memory of a completion table, on the heap. It is filled where it lies: a table is
//! too large for the stacks of small threads, over which a value would move.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::ptr::NonNull;
use tsumugi_core::completion::Completions;

/// A completion table. If it is dropped while
/// operations are in flight, it leaks what they own.
pub(crate) struct CompletionMemory {
    view: Completions<'static>,
    at: NonNull<u8>,
    layout: Layout,
}

impl CompletionMemory {
    /// Makes a table with room for `tags` operations in flight.
    #[cold]
    pub(crate) fn new(tags: usize) -> Self {
        let layout = Layout::from_size_align(Completions::memory_size(tags), Completions::ALIGN);
        let layout = layout.expect("a layout of few tags");
        // SAFETY: the size is not 0.
        let at = unsafe { alloc(layout) };
        let at = NonNull::new(at).unwrap_or_else(|| handle_alloc_error(layout));
        // SAFETY: memory of this size and alignment, which is freed after the last view:
        // `view` lends it for as long as this value is borrowed.
        let view = unsafe { Completions::init(at, tags) };
        Self { view: view.expect("the number of tags is valid"), at, layout }
    }

    /// The view of the operations in flight.
    #[inline]
    pub(crate) fn view(&self) -> Completions<'_> {
        self.view
    }
}

impl Drop for CompletionMemory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`; views are borrowed from this value.
        unsafe { dealloc(self.at.as_ptr(), self.layout) };
    }
}

// SAFETY: the pointer is to memory that this value owns, and that only the view uses.
unsafe impl Send for CompletionMemory {}
// SAFETY: the same.
unsafe impl Sync for CompletionMemory {}

impl fmt::Debug for CompletionMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.fmt(f)
    }
}
