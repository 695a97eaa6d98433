//! A queue with one producer and one consumer: each side writes its own index and
//! keeps a copy of the other side's, which it refreshes only when the ring seems
//! full or empty by the copy.
//!
//! ```text
//!        head                tail
//!          ▼                   ▼
//!   ─ ─ ─ ─┬───┬───┬───┬───┬───┬─ ─ ─ ─
//!          │ a │ b │ c │ d │ e │            valid: head .. tail
//!   ─ ─ ─ ─┴───┴───┴───┴───┴───┴─ ─ ─ ─     full:  tail - head == N
//!      consumer's           producer's
//! ```
//!
//! Progress: everything is wait-free.

use super::error::RingError;
use super::header::{self, RingHeader};
use crate::mutate;
use crate::sync::{Ordering, UnsafeCell};
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// A ring of `N` slots: a power of two, at least 2.
///
/// ```compile_fail
/// tsumugi_core::ring::Spsc::<u64, 3>::new(); // refused at compile time
/// ```
#[repr(C)]
pub struct Spsc<T, const N: usize> {
    header: RingHeader,
    slots: [SpscSlot<T>; N],
}

/// A ring in memory that the view does not own.
pub struct SpscView<'a, T> {
    header: &'a RingHeader,
    slots: &'a [SpscSlot<T>],
}

/// The only producer of a ring.
pub struct SpscProducer<'a, T> {
    view: SpscView<'a, T>,
    tail: u64,
    head_seen: u64,
}

/// The only consumer of a ring.
pub struct SpscConsumer<'a, T> {
    view: SpscView<'a, T>,
    head: u64,
    tail_seen: u64,
}

#[repr(transparent)]
struct SpscSlot<T>(UnsafeCell<MaybeUninit<T>>);

impl<'a, T> SpscView<'a, T> {
    /// The alignment that the memory of a ring needs.
    pub const ALIGN: usize = header::align::<SpscSlot<T>>();

    /// Bytes that a ring of `slots` slots needs.
    pub const fn memory_size(slots: usize) -> usize {
        header::memory_size::<SpscSlot<T>>(slots)
    }

    /// Makes an empty ring in `memory`.
    ///
    /// # Errors
    ///
    /// [`RingError::Slots`] if `slots` is not a power of two from 2 to 2^31;
    /// [`RingError::Unaligned`] if `memory` is not aligned to [`ALIGN`](Self::ALIGN).
    ///
    /// # Safety
    ///
    /// `memory` points to [`memory_size(slots)`](Self::memory_size) bytes that no
    /// other code uses before this returns, and that are used only as this ring for
    /// `'a`. If other processes map the memory, a value of `T` must mean the same in
    /// them.
    pub unsafe fn init(memory: NonNull<u8>, slots: usize) -> Result<Self, RingError> {
        // SAFETY: the caller's.
        let (header, slots) = unsafe { header::init(memory, slots, |_| SpscSlot::new())? };
        Ok(Self { header, slots })
    }

    /// Finds the ring that [`init`](Self::init) has made in `memory`.
    ///
    /// # Errors
    ///
    /// Those of [`init`](Self::init), and [`RingError::Shape`] if the memory contains no
    /// ring yet, or one with another number or size of slots. Memory that is still zero
    /// contains no ring.
    ///
    /// # Safety
    ///
    /// `memory` points to as many bytes as in [`init`](Self::init). For `'a` they
    /// are used only for a ring of `T`, and they were zero before it was made.
    pub unsafe fn attach(memory: NonNull<u8>, slots: usize) -> Result<Self, RingError> {
        // SAFETY: the caller's.
        let (header, slots) = unsafe { header::attach(memory, slots)? };
        Ok(Self { header, slots })
    }

    /// The producer.
    ///
    /// # Safety
    ///
    /// No other producer of this ring exists; the last use of an earlier one
    /// happened before this call, ordered by a lock or the like.
    pub unsafe fn producer(&self) -> SpscProducer<'a, T> {
        SpscProducer {
            // Relaxed: only producers write it.
            tail: self.header.tail.load(Ordering::Relaxed),
            // Acquire: as in `try_push`.
            head_seen: self.header.head().load(Ordering::Acquire),
            view: *self,
        }
    }

    /// The consumer.
    ///
    /// # Safety
    ///
    /// As for [`producer`](Self::producer), with consumers.
    pub unsafe fn consumer(&self) -> SpscConsumer<'a, T> {
        SpscConsumer {
            // Relaxed: only consumers write it.
            head: self.header.head().load(Ordering::Relaxed),
            // Acquire: as in `try_pop`.
            tail_seen: self.header.tail.load(Ordering::Acquire),
            view: *self,
        }
    }

    /// The number of slots.
    pub const fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The number of elements; a hint.
    pub fn len(&self) -> usize {
        self.header.len(self.slots.len())
    }

    /// Whether the ring seems empty; a hint.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    fn slot(&self, position: u64) -> &'a SpscSlot<T> {
        debug_assert!(self.slots.len().is_power_of_two());
        let index = position as usize & (self.slots.len() - 1);
        // SAFETY: every constructor makes the length a power of two, so the
        // masked position is below it.
        unsafe { self.slots.get_unchecked(index) }
    }
}

impl<'a, T> SpscProducer<'a, T> {
    /// Puts `value` in, or returns it when the ring is full. Wait-free.
    ///
    /// # Errors
    ///
    /// The value, if the ring is full.
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), T> {
        let slots = self.view.slots.len() as u64;
        if self.tail.wrapping_sub(self.head_seen) >= slots {
            // Acquire: pairs with the Release in `try_pop`: the consumer has read
            // the elements of all slots before head.
            self.head_seen = self.view.header.head().load(Ordering::Acquire);
            if self.tail.wrapping_sub(self.head_seen) >= slots {
                return Err(value);
            }
        }
        // SAFETY: the position is at tail and the ring is not full, so the slot is
        // the producer's.
        self.view.slot(self.tail).0.with_mut(|cell| unsafe { (*cell).write(value) });
        self.tail = self.tail.wrapping_add(1);
        // Release: pairs with the Acquire in `try_pop`.
        self.view.header.tail.store(
            self.tail,
            mutate!("spsc_publish_relaxed": Ordering::Release => Ordering::Relaxed),
        );
        Ok(())
    }

    /// The ring, for its hints.
    pub fn view(&self) -> SpscView<'a, T> {
        self.view
    }
}

impl<'a, T> SpscConsumer<'a, T> {
    /// Takes the oldest element out. Wait-free.
    #[inline]
    pub fn try_pop(&mut self) -> Option<T> {
        if self.head == self.tail_seen {
            // Acquire: pairs with the Release in `try_push`.
            self.tail_seen = self.view.header.tail.load(Ordering::Acquire);
            if self.head == self.tail_seen {
                return None;
            }
        }
        // SAFETY: the position is before tail, so the element is published; the slot
        // is the consumer's until head has passed it.
        let value = self.view.slot(self.head).0.with(|cell| unsafe { (*cell).assume_init_read() });
        self.head = self.head.wrapping_add(1);
        // Release: pairs with the Acquire in `try_push`.
        self.view.header.head().store(
            self.head,
            mutate!("spsc_recycle_relaxed": Ordering::Release => Ordering::Relaxed),
        );
        Some(value)
    }

    /// Passes up to `max` elements to `each`, the oldest first, and returns their
    /// number. The slot of an element is free before `each` gets the element.
    #[inline]
    pub fn drain(&mut self, max: usize, mut each: impl FnMut(T)) -> usize {
        let mut taken = 0;
        while taken < max
            && let Some(value) = self.try_pop()
        {
            taken += 1;
            each(value);
        }
        taken
    }

    /// The ring, for its hints.
    pub fn view(&self) -> SpscView<'a, T> {
        self.view
    }
}

impl<T, const N: usize> Spsc<T, N> {
    const N_IS_VALID: () = assert!(header::is_slot_count(N), "N is a power of two from 2 to 2^31");

    /// An empty ring.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        let () = Self::N_IS_VALID;
        Self { header: RingHeader::new(), slots: [const { SpscSlot::new() }; N] }
    }

    /// An empty ring.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        let () = Self::N_IS_VALID;
        Self { header: RingHeader::new(), slots: core::array::from_fn(|_| SpscSlot::new()) }
    }

    /// The ring as a view.
    #[inline(always)]
    pub const fn view(&self) -> SpscView<'_, T> {
        SpscView { header: &self.header, slots: &self.slots }
    }

    /// The two ends of the ring.
    pub fn split(&mut self) -> (SpscProducer<'_, T>, SpscConsumer<'_, T>) {
        let view = self.view();
        // SAFETY: the ring is borrowed mutably, so no other code holds an end of it.
        unsafe { (view.producer(), view.consumer()) }
    }
}

impl<T, const N: usize> Default for Spsc<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Drop for Spsc<T, N> {
    fn drop(&mut self) {
        let (_, mut consumer) = self.split();
        while consumer.try_pop().is_some() {}
    }
}

impl<T> Clone for SpscView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SpscView<'_, T> {}

// SAFETY: the indices give a slot to one end at a time, so an element moves from one
// thread to another and is never shared.
unsafe impl<T: Send> Send for SpscView<'_, T> {}
// SAFETY: the same.
unsafe impl<T: Send> Sync for SpscView<'_, T> {}
// SAFETY: the same.
unsafe impl<T: Send, const N: usize> Sync for Spsc<T, N> {}

impl<T> fmt::Debug for SpscView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spsc({} of {})", self.len(), self.slots.len())
    }
}

impl<T> fmt::Debug for SpscProducer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.fmt(f)
    }
}

impl<T> fmt::Debug for SpscConsumer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.fmt(f)
    }
}

impl<T, const N: usize> fmt::Debug for Spsc<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl<T> SpscSlot<T> {
    #[cfg(not(tsumugi_loom))]
    const fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    #[cfg(tsumugi_loom)]
    fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }
}
