//! The memory of a deque's items: a header and the slots behind it in one allocation,
//! so that the owner reads one pointer on its way to an item.

use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::ptr;
use tsumugi_core::sync::AtomicPtr;

/// A ring of slots. A copy is a pointer to the same slots; its holder must make sure
/// that they are still allocated.
pub(super) struct DequeBuffer<T>(*mut BufferHeader<T>);

#[repr(C)]
pub(super) struct BufferHeader<T> {
    mask: i64,
    slots: [AtomicPtr<T>; 0],
}

impl<T> Clone for DequeBuffer<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DequeBuffer<T> {}

impl<T> DequeBuffer<T> {
    /// Empty slots, a power of two of them.
    pub(super) fn new(slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "a deque of {slots} slots: it needs a power of two");
        let layout = Self::layout(slots);
        // SAFETY: the layout has the header's bytes at least.
        let header = unsafe { alloc(layout) }.cast::<BufferHeader<T>>();
        if header.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: new memory of this layout.
        unsafe {
            (&raw mut (*header).mask).write(slots as i64 - 1);
            let first = (&raw mut (*header).slots).cast::<AtomicPtr<T>>();
            for at in 0..slots {
                first.add(at).write(AtomicPtr::new(ptr::null_mut()));
            }
        }
        Self(header)
    }

    /// The size in bytes of a buffer with so many slots.
    pub(super) const fn bytes(slots: usize) -> usize {
        size_of::<BufferHeader<T>>() + slots * size_of::<AtomicPtr<T>>()
    }

    /// The buffer as a word that other threads may load.
    pub(super) fn into_raw(self) -> *mut BufferHeader<T> {
        self.0
    }

    /// The buffer that a word stands for.
    ///
    /// # Safety
    ///
    /// The word comes from `into_raw`, and the slots are allocated as long as the
    /// result is used.
    #[inline(always)]
    pub(super) unsafe fn from_raw(raw: *mut BufferHeader<T>) -> Self {
        Self(raw)
    }

    /// The number of slots less one: the greatest distance of two items.
    #[inline(always)]
    pub(super) fn mask(self) -> i64 {
        // SAFETY: by the contract of `from_raw`, the header is allocated.
        unsafe { (*self.0).mask }
    }

    /// The slot of the item at place `at`.
    #[inline(always)]
    pub(super) fn slot<'a>(self, at: i64) -> &'a AtomicPtr<T> {
        // SAFETY: by the contract of `from_raw`, the slots are allocated. The mask is
        // the number of slots less one, and that number is a power of two.
        unsafe {
            let first = (&raw const (*self.0).slots).cast::<AtomicPtr<T>>();
            &*first.add((at & self.mask()) as usize)
        }
    }

    /// Frees the memory.
    ///
    /// # Safety
    ///
    /// No thread uses a copy from here on.
    pub(super) unsafe fn free(self) {
        let slots = self.mask() as usize + 1;
        // SAFETY: no copy is used any more; `new` made the buffer with this layout.
        unsafe {
            let first = (&raw mut (*self.0).slots).cast::<AtomicPtr<T>>();
            ptr::slice_from_raw_parts_mut(first, slots).drop_in_place();
            dealloc(self.0.cast(), Self::layout(slots));
        }
    }

    fn layout(slots: usize) -> Layout {
        let align = align_of::<BufferHeader<T>>();
        Layout::from_size_align(Self::bytes(slots), align).expect("the slots fit in memory")
    }
}
