//! A ring that has its slots.

use super::consumer::MpscConsumer;
use super::slot::MpscSlot;
use super::view::MpscView;
use crate::ring::header::{self, RingHeader};
#[cfg(not(tsumugi_loom))]
use crate::sync::AtomicU64;
use core::fmt;

/// A ring of `N` slots: a power of two, at least 2.
///
/// ```compile_fail
/// tsumugi_core::ring::Mpsc::<u64, 1>::new(); // refused at compile time
/// ```
///
/// ```compile_fail
/// tsumugi_core::ring::Mpsc::<u64, 6>::new(); // so is this
/// ```
#[repr(C)]
pub struct Mpsc<T, const N: usize> {
    header: RingHeader,
    slots: [MpscSlot<T>; N],
}

impl<T, const N: usize> Mpsc<T, N> {
    const N_IS_VALID: () = assert!(header::is_slot_count(N), "N is a power of two from 2 to 2^31");

    /// An empty ring.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        let () = Self::N_IS_VALID;
        let mut slots = [const { MpscSlot::new(0) }; N];
        let mut index = 1;
        while index < N {
            slots[index].sequence = AtomicU64::new(index as u64);
            index += 1;
        }
        Self { header: RingHeader::new(), slots }
    }

    /// An empty ring.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        let () = Self::N_IS_VALID;
        Self { header: RingHeader::new(), slots: core::array::from_fn(MpscSlot::new) }
    }

    /// The ring as a view, for pushes and, by its unsafe calls, for pops.
    #[inline(always)]
    pub const fn view(&self) -> MpscView<'_, T> {
        MpscView { header: &self.header, slots: &self.slots }
    }

    /// The two ends of the ring.
    pub fn split(&mut self) -> (MpscView<'_, T>, MpscConsumer<'_, T>) {
        let view = self.view();
        (view, MpscConsumer { view })
    }

    /// Puts `value` in, or returns it when the ring is full. Lock-free.
    ///
    /// # Errors
    ///
    /// The value, if the ring is full.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), T> {
        self.view().try_push(value)
    }
}

impl<T, const N: usize> Default for Mpsc<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Drop for Mpsc<T, N> {
    fn drop(&mut self) {
        // SAFETY: the ring is being dropped, so no other code can use it.
        while unsafe { self.view().try_pop() }.is_some() {}
    }
}

// SAFETY: as for the view: an element moves from one thread to another and is never
// shared.
unsafe impl<T: Send, const N: usize> Sync for Mpsc<T, N> {}

impl<T, const N: usize> fmt::Debug for Mpsc<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}
