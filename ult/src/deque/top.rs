//! The end of a deque where the oldest items lie. One thread at a time moves it: a
//! thief, or the owner in a thief's place.

use super::buffer::DequeBuffer;
use super::{Steal, WorkDeque};
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicBool, Ordering};

/// The right to move `top`, until it is dropped.
struct TopGuard<'a>(&'a AtomicBool);

impl<T> WorkDeque<T> {
    /// Takes the oldest item.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    #[inline]
    pub unsafe fn take_first(&self) -> Option<*mut T> {
        let bottom = self.owner.bottom.load(Ordering::Relaxed);
        if self.thieves.top.load(Ordering::Relaxed) >= bottom {
            return None;
        }
        let _turn = if self.owner.shared { Some(self.take_turn()?) } else { None };
        // While this thread has the turn, no other thread moves `top`.
        let top = self.thieves.top.load(Ordering::Relaxed);
        if top >= bottom {
            return None;
        }
        // SAFETY: the current buffer lives as long as the deque.
        let buffer = unsafe { DequeBuffer::from_raw(self.owner.buffer.load(Ordering::Relaxed)) };
        let item = buffer.slot(top).load(Ordering::Relaxed);
        self.thieves.top.store(top + 1, Ordering::Relaxed);
        if self.owner.shared {
            self.thieves.freed.store(top + 1, Ordering::Relaxed);
        }
        Some(item)
    }

    /// Takes the oldest of several items, as many as a thief would. The youngest item
    /// stays.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    pub unsafe fn take_part(&self, mut each: impl FnMut(*mut T)) {
        let Some(_turn) = self.take_turn() else { return };
        // While this thread has the turn, no other thread moves `top`.
        let top = self.thieves.top.load(Ordering::Relaxed);
        let there = self.owner.bottom.load(Ordering::Relaxed) - top;
        if there < 2 {
            return;
        }
        let end = top + part_of(there);
        // SAFETY: the current buffer lives as long as the deque.
        let buffer = unsafe { DequeBuffer::from_raw(self.owner.buffer.load(Ordering::Relaxed)) };
        for at in top..end {
            each(buffer.slot(at).load(Ordering::Relaxed));
        }
        self.thieves.top.store(end, Ordering::Relaxed);
        self.thieves.freed.store(end, Ordering::Relaxed);
    }

    /// Takes the oldest item, and of a long queue gives the next ones to `keep`,
    /// oldest first: together an eighth of the queue. If there is only one item,
    /// takes it only if `wants` returns true for it; other threads may take it
    /// meanwhile. Any thread.
    pub fn steal(
        &self,
        wants: impl FnOnce(*mut T) -> bool,
        mut keep: impl FnMut(*mut T),
    ) -> Steal<T> {
        if self.is_empty() {
            return Steal::Empty;
        }
        let Some(_turn) = self.take_turn() else { return Steal::Lost };
        let top = self.thieves.top.load(Ordering::Relaxed);
        // Acquire: pairs with the Release in `push`.
        let there = self.owner.bottom.load(Ordering::Acquire) - top;
        if there <= 0 {
            return Steal::Empty;
        }
        // Acquire: pairs with the Release in `make_room`. SAFETY: retired buffers are
        // kept until the deque is dropped.
        let buffer = unsafe { DequeBuffer::from_raw(self.owner.buffer.load(Ordering::Acquire)) };
        // Acquire: pairs with the Release in `push`.
        if there == 1 && !wants(buffer.slot(top).load(Ordering::Acquire)) {
            return Steal::Empty;
        }
        let claimed = top + part_of(there);
        self.thieves.top.store(claimed, Ordering::Relaxed);
        // Pairs with the light half in `pop`.
        mutate!("deque_steal_no_fence": self.owner.fences.heavy() => ());
        // Acquire: pairs with the Release of the call that moved `bottom`.
        let bottom = self.owner.bottom.load(Ordering::Acquire);
        let mut end = claimed;
        if mutate!("deque_claim_kept": bottom < claimed => false) {
            // The owner has come down as far as `bottom`. It takes the items from
            // there on, or sees the claim and leaves them. The items below are this
            // thief's.
            end = bottom.max(top);
            self.thieves.top.store(end, Ordering::Relaxed);
        }
        if end == top {
            return Steal::Lost;
        }
        // Acquire: as above, because the deque may have grown since. SAFETY: as
        // above.
        let buffer = unsafe { DequeBuffer::from_raw(self.owner.buffer.load(Ordering::Acquire)) };
        mutate!("deque_freed_early": () => self.thieves.freed.store(end, Ordering::Release));
        let first = buffer.slot(top).load(Ordering::Relaxed);
        for at in top + 1..end {
            keep(buffer.slot(at).load(Ordering::Relaxed));
        }
        // Release: the slots have been read; pairs with the Acquire in `make_room`.
        self.thieves.freed.store(end, Ordering::Release);
        Steal::Taken(first)
    }

    #[inline]
    fn take_turn(&self) -> Option<TopGuard<'_>> {
        let busy = &self.thieves.busy;
        // Acquire: pairs with the Release of the thread that had the turn before.
        busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(TopGuard(busy))
    }
}

impl Drop for TopGuard<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the thread that takes the next turn.
        self.0.store(false, Ordering::Release);
    }
}

/// How many of `there` items a thief takes.
fn part_of(there: i64) -> i64 {
    (there / PART).clamp(1, BATCH)
}

/// A thief takes one of so many items. In a tree of ULTs an item is as large as all
/// younger ones together, so one is enough; of many equal items a thief takes a good
/// part.
const PART: i64 = 8;
/// The most items that one thief takes, because the owner may need one of them.
const BATCH: i64 = 32;
