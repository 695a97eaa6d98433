//! The end of a deque where the oldest lie: one at a time moves it, a thief or
//! the owner in a thief's place.

use super::buffer::Buffer;
use super::{Deque, Steal};
use tsumugi_core::sync::{AtomicBool, Ordering, mutant};

/// The right to move `top`.
struct Turn<'a>(&'a AtomicBool);

impl<T> Deque<T> {
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
        // While it is our turn, nobody else moves `top`.
        let top = self.thieves.top.load(Ordering::Relaxed);
        if top >= bottom {
            return None;
        }
        // SAFETY: the current buffer lives as long as the deque.
        let buffer = unsafe { Buffer::from_raw(self.owner.buffer.load(Ordering::Relaxed)) };
        let item = buffer.slot(top).load(Ordering::Relaxed);
        self.thieves.top.store(top + 1, Ordering::Relaxed);
        if self.owner.shared {
            self.thieves.freed.store(top + 1, Ordering::Relaxed);
        }
        Some(item)
    }

    /// Takes the oldest of several: as many as a thief would. The youngest
    /// stays.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    pub unsafe fn take_part(&self, mut each: impl FnMut(*mut T)) {
        let Some(_turn) = self.take_turn() else { return };
        // While it is our turn, nobody else moves `top`.
        let top = self.thieves.top.load(Ordering::Relaxed);
        let there = self.owner.bottom.load(Ordering::Relaxed) - top;
        if there < 2 {
            return;
        }
        let end = top + part_of(there);
        // SAFETY: the current buffer lives as long as the deque.
        let buffer = unsafe { Buffer::from_raw(self.owner.buffer.load(Ordering::Relaxed)) };
        for at in top..end {
            each(buffer.slot(at).load(Ordering::Relaxed));
        }
        self.thieves.top.store(end, Ordering::Relaxed);
        self.thieves.freed.store(end, Ordering::Relaxed);
    }

    /// Takes the oldest item, and of a long queue gives `keep` the next ones,
    /// oldest first: an eighth of what is there. If there is one item only,
    /// `wants` is asked about it, while others may take it. Any thread.
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
        // Acquire: pairs with the Release in `grow`.
        // SAFETY: retired buffers are kept until the deque is dropped.
        let buffer = unsafe { Buffer::from_raw(self.owner.buffer.load(Ordering::Acquire)) };
        // Acquire: pairs with the Release in `push`.
        if there == 1 && !wants(buffer.slot(top).load(Ordering::Acquire)) {
            return Steal::Empty;
        }
        let claimed = top + part_of(there);
        self.thieves.top.store(claimed, Ordering::Relaxed);
        if !mutant("deque_steal_no_fence") {
            // Pairs with the light half in `pop`.
            self.owner.fences.heavy();
        }
        // Acquire: pairs with the Release of whichever call moved it.
        let bottom = self.owner.bottom.load(Ordering::Acquire);
        let mut end = claimed;
        if bottom < claimed && !mutant("deque_claim_kept") {
            // The owner came as far as `bottom`, and takes what is there or
            // sees the claim and leaves it. What lies below is ours.
            end = bottom.max(top);
            self.thieves.top.store(end, Ordering::Relaxed);
        }
        if end == top {
            return Steal::Lost;
        }
        // Acquire: as above, should it have grown.
        // SAFETY: as above.
        let buffer = unsafe { Buffer::from_raw(self.owner.buffer.load(Ordering::Acquire)) };
        if mutant("deque_freed_early") {
            self.thieves.freed.store(end, Ordering::Release);
        }
        let first = buffer.slot(top).load(Ordering::Relaxed);
        for at in top + 1..end {
            keep(buffer.slot(at).load(Ordering::Relaxed));
        }
        // Release: the slots were read; pairs with the Acquire in `make_room`.
        self.thieves.freed.store(end, Ordering::Release);
        Steal::Taken(first)
    }

    #[inline]
    fn take_turn(&self) -> Option<Turn<'_>> {
        let busy = &self.thieves.busy;
        // Acquire: pairs with the Release of the one before.
        busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(Turn(busy))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the next one.
        self.0.store(false, Ordering::Release);
    }
}

/// How many of `there` a thief takes.
fn part_of(there: i64) -> i64 {
    (there / PART).clamp(1, BATCH)
}

/// A thief takes one item of so many. In a tree of ULTs each is as large as all
/// that are younger, so one is enough; of many equal ones it takes a good part.
const PART: i64 = 8;
/// Items that one thief takes at most: the owner may wait for none of them.
const BATCH: i64 = 32;
