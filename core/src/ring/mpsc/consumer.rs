//! The only consumer of a ring, which may mark itself as asleep.

use super::view::MpscView;
use crate::mutate;
use crate::ring::header::ASLEEP;
use crate::sync::Ordering;
use core::fmt;

/// The only consumer of a ring.
pub struct MpscConsumer<'a, T> {
    pub(super) view: MpscView<'a, T>,
}

impl<'a, T> MpscView<'a, T> {
    /// The consumer.
    ///
    /// # Safety
    ///
    /// As for [`try_pop`](Self::try_pop), for as long as the consumer lives.
    pub unsafe fn consumer(&self) -> MpscConsumer<'a, T> {
        MpscConsumer { view: *self }
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

impl<T> fmt::Debug for MpscConsumer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.fmt(f)
    }
}
