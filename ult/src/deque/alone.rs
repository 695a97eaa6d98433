//! The owner's calls in fewer steps, for a deque without thieves.

use super::WorkDeque;
use super::buffer::DequeBuffer;
use tsumugi_core::sync::Ordering;

// All orderings here are Relaxed, because no other thread uses the deque.
impl<T> WorkDeque<T> {
    /// Adds an item and takes the oldest of those that were there before, if `wants`
    /// returns true for it. `None`: nothing has changed. In a long queue `soon` gets
    /// the item that will be taken a few calls later.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push); and the deque is not shared.
    #[inline(always)]
    pub unsafe fn rotate(
        &self,
        item: *mut T,
        wants: impl FnOnce(*mut T) -> bool,
        soon: impl FnOnce(*mut T),
    ) -> Option<*mut T> {
        debug_assert!(!self.owner.shared, "a shared deque is used as one without thieves");
        let top = self.thieves.top.load(Ordering::Relaxed);
        let bottom = self.owner.bottom.load(Ordering::Relaxed);
        if top >= bottom {
            return None;
        }
        // SAFETY: the current buffer lives as long as the deque.
        let buffer = unsafe { DequeBuffer::from_raw(self.owner.buffer.load(Ordering::Relaxed)) };
        let oldest = buffer.slot(top).load(Ordering::Relaxed);
        if !wants(oldest) {
            return None;
        }
        // If the deque is full, this is the slot that was just read.
        buffer.slot(bottom).store(item, Ordering::Relaxed);
        self.owner.bottom.store(bottom + 1, Ordering::Relaxed);
        self.thieves.top.store(top + 1, Ordering::Relaxed);
        if top + AHEAD < bottom {
            soon(buffer.slot(top + AHEAD).load(Ordering::Relaxed));
        }
        Some(oldest)
    }

    /// Takes the youngest item, if `wants` returns true for it.
    ///
    /// # Safety
    ///
    /// As for [`rotate`](Self::rotate).
    #[inline(always)]
    pub unsafe fn pop_alone_if(&self, wants: impl FnOnce(*mut T) -> bool) -> Option<*mut T> {
        debug_assert!(!self.owner.shared, "a shared deque is used as one without thieves");
        // SAFETY: the caller is the owner.
        let (bottom, item) = unsafe { self.youngest_if(wants) }?;
        self.owner.bottom.store(bottom, Ordering::Relaxed);
        Some(item)
    }
}

/// How many calls ahead `soon` looks: a line from the second-level cache takes that
/// long.
const AHEAD: i64 = 3;
