//! A ring in memory that it does not own, and its pushes and pops.

use super::slot::MpscSlot;
use crate::mutate;
use crate::ring::error::RingError;
use crate::ring::header::{self, ASLEEP, RingHeader};
use crate::ring::marked::Pushed;
use crate::sync::Ordering;
use core::fmt;
use core::ptr::NonNull;

/// A ring in memory that the view does not own. Any number of threads may push; a
/// copy of the view is the same ring.
pub struct MpscView<'a, T> {
    pub(super) header: &'a RingHeader,
    pub(super) slots: &'a [MpscSlot<T>],
}

impl<'a, T> MpscView<'a, T> {
    /// The alignment that the memory of a ring needs.
    pub const ALIGN: usize = header::align::<MpscSlot<T>>();

    /// Bytes that a ring of `slots` slots needs.
    pub const fn memory_size(slots: usize) -> usize {
        header::memory_size::<MpscSlot<T>>(slots)
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
        let (header, slots) = unsafe { header::init(memory, slots, MpscSlot::new)? };
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

    /// Puts `value` in, or returns it when the ring is full. Lock-free.
    ///
    /// # Errors
    ///
    /// The value, if the ring is full.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), T> {
        self.try_push_told(value).map(|_| ())
    }

    /// Like [`try_push`](Self::try_push), and also returns whether the consumer had
    /// [marked](super::MpscConsumer::try_mark) itself as asleep: then this producer, and no
    /// other, must wake it. Lock-free.
    ///
    /// # Errors
    ///
    /// The value, if the ring is full.
    #[inline]
    pub fn try_push_told(&self, value: T) -> Result<Pushed, T> {
        let mut tail = self.header.tail.load(Ordering::Relaxed);
        loop {
            let position = tail & !ASLEEP;
            let slot = self.slot(position);
            // Acquire: pairs with the consumer's recycling (Release in `try_pop`):
            // the consumer has read the last element of this slot.
            let sequence = slot.sequence.load(Ordering::Acquire);
            match sequence.wrapping_sub(position) as i64 {
                0 => {
                    match self.claim(tail) {
                        Ok(()) => {
                            // SAFETY: the claim gives the slot to this producer until
                            // the slot's sequence changes.
                            slot.value.with_mut(|cell| unsafe { (*cell).write(value) });
                            // Release: pairs with the Acquire in `try_pop`.
                            let order = mutate!("mpsc_publish_relaxed":
                                Ordering::Release => Ordering::Relaxed);
                            slot.sequence.store(position + 1, order);
                            return Ok(match tail & ASLEEP {
                                0 => Pushed::Awake,
                                _ => Pushed::Asleep,
                            });
                        }
                        Err(changed) => tail = changed,
                    }
                }
                behind if mutate!("mpsc_old_tail_is_full": behind < 0 => true) => {
                    return Err(value);
                }
                _ => tail = self.header.tail.load(Ordering::Relaxed),
            }
        }
    }

    /// Takes the oldest element out. Wait-free.
    ///
    /// # Safety
    ///
    /// No other call of `try_pop`, nor a consumer of this ring, runs at the same
    /// time; a lock or the like orders the calls of several threads.
    #[inline]
    pub unsafe fn try_pop(&self) -> Option<T> {
        // Relaxed: only consumers write it, and the caller orders them.
        let head = self.header.head().load(Ordering::Relaxed);
        let slot = self.slot(head);
        // Acquire: pairs with the producer's publication.
        if slot.sequence.load(Ordering::Acquire) != head.wrapping_add(1) {
            return None;
        }
        // SAFETY: the element is published, and the slot is the consumer's until it
        // is recycled.
        let value = slot.value.with(|cell| unsafe { (*cell).assume_init_read() });
        let next = head.wrapping_add(self.slots.len() as u64);
        // Release: pairs with the Acquire in `try_push`.
        slot.sequence
            .store(next, mutate!("mpsc_recycle_relaxed": Ordering::Release => Ordering::Relaxed));
        self.header.head().store(head.wrapping_add(1), Ordering::Relaxed);
        Some(value)
    }

    /// The number of slots.
    pub const fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The number of elements, with slots that are claimed but not yet published; a
    /// hint.
    pub fn len(&self) -> usize {
        self.header.len(self.slots.len())
    }

    /// Whether the ring seems empty; a hint.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    fn claim(&self, tail: u64) -> Result<(), u64> {
        let (word, next) = (&self.header.tail, (tail & !ASLEEP) + 1);
        mutate!("mpsc_claim_load_store":
            // Relaxed: the slot's sequence carries the order, and the mark and the
            // position are in one word.
            word.compare_exchange_weak(tail, next, Ordering::Relaxed, Ordering::Relaxed).map(drop)
            => {
                word.store(next, Ordering::Relaxed);
                Ok(())
            }
        )
    }

    #[inline(always)]
    pub(super) fn slot(&self, position: u64) -> &'a MpscSlot<T> {
        debug_assert!(self.slots.len().is_power_of_two());
        let index = position as usize & (self.slots.len() - 1);
        // SAFETY: every constructor makes the length a power of two, so the
        // masked position is below it.
        unsafe { self.slots.get_unchecked(index) }
    }
}

impl<T> Clone for MpscView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MpscView<'_, T> {}

// SAFETY: a slot's sequence names the only side that may touch the slot's value, so
// an element moves from one thread to another and is never shared.
unsafe impl<T: Send> Send for MpscView<'_, T> {}

// SAFETY: the same.
unsafe impl<T: Send> Sync for MpscView<'_, T> {}

impl<T> fmt::Debug for MpscView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mpsc({} of {})", self.len(), self.slots.len())
    }
}
