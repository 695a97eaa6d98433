//! The MPSC ring of the paper: the mark of a sleeping consumer is the lowest
//! bit of the tail.
//!
//! ```text
//!  tail   63 .. 1  elements ever claimed     0  the consumer sleeps
//!
//!  producer                            consumer
//!  CAS(tail: t → t + 1, unmarked)      nothing there?
//!  write the value, then `filled`      CAS(tail: empty, unmarked → marked)
//!  the old tail was marked?            sleep, until a producer wakes it
//!    it must wake the consumer
//! ```
//!
//! From its own exchange a producer learns whether it must wake the consumer, so
//! under load there is neither a fence nor a check of a second word. But whether the
//! ring is full depends on the head, which every producer must read.
//! [`Mpsc`](super::Mpsc) has the mark too, and decides by the slot's sequence.
//! `tsumugi bench rma` measures which form is faster, and compares both with a ring
//! that uses only an [`EventWord`](crate::wait::EventWord).
//!
//! The listing in the paper waits with the wrong polarity, and the paper states a
//! capacity of N - 1 elements, while its code holds N, which is sound. A stale tail
//! together with a newer head does not mean that the ring is full: the tail is read
//! again.
//!
//! Progress: `try_push` is lock-free, `try_pop` and `try_mark` wait-free.
//!
//! # References
//!
//! Listings 3 to 5 of the first paper of `docs/papers.md`.

use super::header;
use crate::mutate;
use crate::sync::{AtomicBool, AtomicU64, CachePadded, Ordering, UnsafeCell};
use core::fmt;
use core::mem::MaybeUninit;

/// A ring of `N` elements, a power of two, at least 2.
pub struct Marked<T, const N: usize> {
    /// Written by producers, and by the consumer's mark.
    tail: CachePadded<AtomicU64>,
    /// Written by the consumer.
    head: CachePadded<AtomicU64>,
    slots: [MarkedSlot<T>; N],
}

/// The result of a successful push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a consumer that sleeps must be woken"]
pub enum Pushed {
    /// The consumer is awake.
    Awake,
    /// The consumer had marked itself as asleep; only this producer is notified.
    Asleep,
}

struct MarkedSlot<T> {
    filled: AtomicBool,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: a value is touched only by the producer that claimed its position until
// `filled` is set, and only by the consumer from then until the head has passed it.
unsafe impl<T: Send, const N: usize> Sync for Marked<T, N> {}

impl<T, const N: usize> Marked<T, N> {
    const N_IS_VALID: () = assert!(header::is_slot_count(N), "N is a power of two from 2 to 2^31");

    /// An empty ring, with the consumer awake.
    pub fn new() -> Self {
        let () = Self::N_IS_VALID;
        let slot = |_| MarkedSlot {
            filled: AtomicBool::new(false),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        };
        Self {
            tail: CachePadded::new(AtomicU64::new(0)),
            head: CachePadded::new(AtomicU64::new(0)),
            slots: core::array::from_fn(slot),
        }
    }

    /// Puts `value` in, or returns it when the ring is full. Lock-free.
    ///
    /// # Errors
    ///
    /// The value, if the ring is full.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<Pushed, T> {
        let mut tail = self.tail.load(Ordering::Relaxed);
        loop {
            let position = tail >> 1;
            // Acquire: pairs with the Release in `try_pop`: the slot is empty.
            let head = self.head.load(Ordering::Acquire);
            // A head beyond the position belongs to a newer tail, and then the
            // exchange fails. Otherwise the ring has at least as many elements as
            // head and position are apart, because the tail only grows.
            let is_newer = mutate!("marked_old_tail_is_full": head > position => false);
            if !is_newer && position.wrapping_sub(head) >= N as u64 {
                return Err(value);
            }
            // Relaxed: `filled` carries the order, and the mark and the position are
            // in one word.
            match self.tail.compare_exchange_weak(
                tail,
                (position + 1) << 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    let slot = &self.slots[position as usize & (N - 1)];
                    // SAFETY: the exchange gives the slot to this producer until
                    // `filled` is set.
                    slot.value.with_mut(|cell| unsafe { (*cell).write(value) });
                    // Release: pairs with the Acquire in `try_pop`.
                    slot.filled.store(
                        true,
                        mutate!("marked_publish_relaxed": Ordering::Release => Ordering::Relaxed),
                    );
                    return Ok(if tail & MARK != 0 { Pushed::Asleep } else { Pushed::Awake });
                }
                Err(changed) => tail = changed,
            }
        }
    }

    /// Takes the oldest element out. Wait-free.
    ///
    /// # Safety
    ///
    /// No other call of `try_pop` or `try_mark` runs at the same time.
    #[inline]
    pub unsafe fn try_pop(&self) -> Option<T> {
        let head = self.head.load(Ordering::Relaxed);
        let slot = &self.slots[head as usize & (N - 1)];
        // Acquire: pairs with the Release in `try_push`.
        if !slot.filled.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the slot is filled, and it is the consumer's until the head moves.
        let value = slot.value.with(|cell| unsafe { (*cell).assume_init_read() });
        slot.filled.store(false, Ordering::Relaxed);
        // Release: pairs with the Acquire in `try_push`. The two stores must not be
        // reordered, or a producer's store to `filled` would be lost.
        self.head.store(
            head + 1,
            mutate!("marked_recycle_relaxed": Ordering::Release => Ordering::Relaxed),
        );
        Some(value)
    }

    /// Marks the consumer as asleep from now on: the next producer learns that it
    /// must wake the consumer. Returns false if the ring has an element, or will
    /// have one at once.
    ///
    /// # Safety
    ///
    /// As for [`try_pop`](Self::try_pop).
    pub unsafe fn try_mark(&self) -> bool {
        let empty = self.head.load(Ordering::Relaxed) << 1;
        let tail = &self.tail;
        // Relaxed: only one word is involved, and it has one modification order.
        let marked = mutate!("marked_load_then_store":
            tail.compare_exchange(empty, empty | MARK, Ordering::Relaxed, Ordering::Relaxed)
            => match tail.load(Ordering::Relaxed) {
                seen if seen == empty => {
                    tail.store(empty | MARK, Ordering::Relaxed);
                    Ok(empty)
                }
                _ => Err(empty),
            }
        );
        marked.is_ok() || marked == Err(empty | MARK)
    }

    /// Whether the mark is still set, that is, no producer has pushed since.
    pub fn is_marked(&self) -> bool {
        self.tail.load(Ordering::Relaxed) & MARK != 0
    }
}

impl<T, const N: usize> Default for Marked<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Drop for Marked<T, N> {
    fn drop(&mut self) {
        // SAFETY: the ring is being dropped, so no other code can use it.
        while unsafe { self.try_pop() }.is_some() {}
    }
}

impl<T, const N: usize> fmt::Debug for Marked<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = self.head.load(Ordering::Relaxed);
        let tail = self.tail.load(Ordering::Relaxed) >> 1;
        write!(f, "Marked({} of {N})", tail.saturating_sub(head))
    }
}

const MARK: u64 = 1;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_marked_ring_holds_n_elements_in_order() {
        let ring = Marked::<u32, 4>::new();
        // SAFETY: one thread.
        assert_eq!(unsafe { ring.try_pop() }, None, "nothing was ever pushed");
        for round in 0..3 {
            for value in 0..4 {
                assert_eq!(ring.try_push(round * 10 + value), Ok(Pushed::Awake));
            }
            assert_eq!(ring.try_push(99), Err(99));
            for value in 0..4 {
                // SAFETY: one thread.
                assert_eq!(unsafe { ring.try_pop() }, Some(round * 10 + value));
            }
            // SAFETY: one thread.
            assert_eq!(unsafe { ring.try_pop() }, None);
        }
    }

    #[test]
    fn the_first_push_after_a_mark_reports_it() {
        let ring = Marked::<u32, 4>::new();
        // SAFETY: one thread.
        unsafe {
            assert!(ring.try_mark() && ring.is_marked());
            assert!(ring.try_mark(), "the ring is already marked");
            assert_eq!(ring.try_push(1), Ok(Pushed::Asleep));
            assert!(!ring.is_marked());
            assert_eq!(ring.try_push(2), Ok(Pushed::Awake));
            assert!(!ring.try_mark(), "the ring is not empty");
            ring.try_pop();
            ring.try_pop();
            assert!(ring.try_mark());
        }
    }
}
