//! Where the items of a deque lie: a header and as many slots as there are, in
//! one piece, so that the owner reads one pointer on its way to an item.

use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::ptr;
use tsumugi_core::sync::AtomicPtr;

/// Slots round and round. A copy of this is a pointer to the same ones; whoever
/// has one sees to it that they are there.
pub(super) struct Buffer<T>(*mut Header<T>);

#[repr(C)]
pub(super) struct Header<T> {
    mask: i64,
    slots: [AtomicPtr<T>; 0],
}

impl<T> Clone for Buffer<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Buffer<T> {}

impl<T> Buffer<T> {
    /// Empty slots, a power of two of them.
    pub(super) fn new(slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "a deque of {slots} slots");
        let layout = Self::layout(slots);
        // SAFETY: the layout has the header's bytes at least.
        let header = unsafe { alloc(layout) }.cast::<Header<T>>();
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

    /// Bytes of one with so many slots.
    pub(super) const fn bytes(slots: usize) -> usize {
        size_of::<Header<T>>() + slots * size_of::<AtomicPtr<T>>()
    }

    /// As a word that others may load.
    pub(super) fn into_raw(self) -> *mut Header<T> {
        self.0
    }

    /// What a word stands for.
    ///
    /// # Safety
    ///
    /// It is of `into_raw`, and the slots are there as long as the answer is
    /// used.
    #[inline(always)]
    pub(super) unsafe fn from_raw(raw: *mut Header<T>) -> Self {
        Self(raw)
    }

    /// The slots less one: how many items fit beside one more.
    #[inline(always)]
    pub(super) fn mask(self) -> i64 {
        // SAFETY: as for `from_raw`.
        unsafe { (*self.0).mask }
    }

    /// The slot of the item that is so manieth.
    #[inline(always)]
    pub(super) fn slot<'a>(self, at: i64) -> &'a AtomicPtr<T> {
        // SAFETY: as for `from_raw`. The mask is the number of slots less one,
        // and that is a power of two.
        unsafe {
            let first = (&raw const (*self.0).slots).cast::<AtomicPtr<T>>();
            &*first.add((at & self.mask()) as usize)
        }
    }

    /// Gives the memory back.
    ///
    /// # Safety
    ///
    /// Nobody uses a copy from here on.
    pub(super) unsafe fn free(self) {
        let slots = self.mask() as usize + 1;
        // SAFETY: the caller's; made by `new` with this layout.
        unsafe {
            let first = (&raw mut (*self.0).slots).cast::<AtomicPtr<T>>();
            ptr::slice_from_raw_parts_mut(first, slots).drop_in_place();
            dealloc(self.0.cast(), Self::layout(slots));
        }
    }

    fn layout(slots: usize) -> Layout {
        let align = align_of::<Header<T>>();
        Layout::from_size_align(Self::bytes(slots), align).expect("a deque that memory can hold")
    }
}
