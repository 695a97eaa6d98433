//! A queue with many producers and one consumer: the sequence number of each slot
//! decides which side may use the slot.
//!
//! ```text
//!  slot i, lap k (position p = k * N + i):
//!
//!    sequence = p          free for the producer that claims position p
//!      │ claim: CAS tail p → p + 1, write the element
//!      ▼ publish: Release
//!    sequence = p + 1      the consumer's, when its head is p
//!      │ read the element
//!      ▼ recycle: Release
//!    sequence = p + N      free for the next lap
//! ```
//!
//! A producer that finds a sequence smaller than its position has met the element of
//! the last lap. No producer has claimed the position yet, so the producer's tail
//! was not old, and the ring is full. If the sequence is greater, the tail was old.
//! Producers never access head.
//!
//! The consumer accesses tail only when it is about to sleep: it sets the highest
//! bit, by an exchange that succeeds only if the ring is empty. From its own
//! exchange the next producer then learns that it must wake the consumer. So a push
//! to a consumer that is awake needs neither a fence nor a check of a second word
//! ([`Marked`](super::Marked) is the paper's form).
//!
//! ```text
//!  tail   63               62 .. 0
//!         consumer sleeps  elements ever claimed
//! ```
//!
//! Progress: `try_push` is lock-free, `try_pop` wait-free.
//!
//! # References
//!
//! Dmitry Vyukov, "Bounded MPMC queue", 1024cores.net, of which this is the
//! single-consumer half.

use super::error::RingError;
use super::header::{self, ASLEEP, RingHeader};
use super::marked::Pushed;
use crate::mutate;
use crate::sync::{AtomicU64, Ordering, UnsafeCell};
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

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

/// A ring in memory that the view does not own. Any number of threads may push; a
/// copy of the view is the same ring.
pub struct MpscView<'a, T> {
    header: &'a RingHeader,
    slots: &'a [MpscSlot<T>],
}

/// The only consumer of a ring.
pub struct MpscConsumer<'a, T> {
    view: MpscView<'a, T>,
}

#[repr(C)]
struct MpscSlot<T> {
    sequence: AtomicU64,
    value: UnsafeCell<MaybeUninit<T>>,
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
    /// [marked](MpscConsumer::try_mark) itself as asleep: then this producer, and no
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

    /// The consumer.
    ///
    /// # Safety
    ///
    /// As for [`try_pop`](Self::try_pop), for as long as the consumer lives.
    pub unsafe fn consumer(&self) -> MpscConsumer<'a, T> {
        MpscConsumer { view: *self }
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
    fn slot(&self, position: u64) -> &'a MpscSlot<T> {
        debug_assert!(self.slots.len().is_power_of_two());
        let index = position as usize & (self.slots.len() - 1);
        // SAFETY: every constructor makes the length a power of two, so the
        // masked position is below it.
        unsafe { self.slots.get_unchecked(index) }
    }
}

impl<'a, T> MpscConsumer<'a, T> {
    /// Takes the oldest element out. Wait-free.
    #[inline]
    pub fn try_pop(&mut self) -> Option<T> {
        // SAFETY: this is the only consumer.
        unsafe { self.view.try_pop() }
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

    /// Whether a `try_pop` would return an element now.
    #[inline]
    pub fn is_ready(&self) -> bool {
        let head = self.view.header.head().load(Ordering::Relaxed);
        // Acquire: as in `try_pop`.
        self.view.slot(head).sequence.load(Ordering::Acquire) == head.wrapping_add(1)
    }

    /// Marks the consumer as asleep from now on: the next producer that calls
    /// [`try_push_told`](MpscView::try_push_told) learns that it must wake the
    /// consumer. Returns false if the ring has an element, or will have one at once.
    /// Wait-free.
    ///
    /// If the consumer writes data and executes a fence before this call, the
    /// producer that must wake it sees the data after a fence of its own.
    #[inline]
    pub fn try_mark(&mut self) -> bool {
        let empty = self.view.header.head().load(Ordering::Relaxed);
        let tail = &self.view.header.tail;
        // Relaxed: only one word is involved, and it has one modification order.
        let marked = mutate!("mpsc_mark_load_store":
            tail.compare_exchange(empty, empty | ASLEEP, Ordering::Relaxed, Ordering::Relaxed)
            => {
                let seen = tail.load(Ordering::Relaxed) & !ASLEEP;
                if seen == empty {
                    tail.store(empty | ASLEEP, Ordering::Relaxed);
                    Ok(empty)
                } else {
                    Err(seen)
                }
            }
        );
        marked.is_ok() || marked == Err(empty | ASLEEP)
    }

    /// The ring as a view, for pushes.
    pub fn view(&self) -> MpscView<'a, T> {
        self.view
    }
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
// SAFETY: the same.
unsafe impl<T: Send, const N: usize> Sync for Mpsc<T, N> {}

impl<T> fmt::Debug for MpscView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mpsc({} of {})", self.len(), self.slots.len())
    }
}

impl<T> fmt::Debug for MpscConsumer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.fmt(f)
    }
}

impl<T, const N: usize> fmt::Debug for Mpsc<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl<T> MpscSlot<T> {
    #[cfg(not(tsumugi_loom))]
    const fn new(index: usize) -> Self {
        Self {
            sequence: AtomicU64::new(index as u64),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    #[cfg(tsumugi_loom)]
    fn new(index: usize) -> Self {
        Self {
            sequence: AtomicU64::new(index as u64),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}

/// An operation and its slot's sequence share one cache line.
const _: () = assert!(cfg!(tsumugi_loom) || size_of::<MpscSlot<[u64; 7]>>() == 64);
