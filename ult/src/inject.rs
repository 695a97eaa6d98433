//! The queue for those who are no workers: they push, a worker takes all.
//!
//! ```text
//!   head ─► youngest ─► ... ─► oldest        linked through the items
//! ```
//!
//! Pushing is one CAS on a stack, of one item or of a chain; taking swaps the whole stack out and turns
//! it round, so items come out first-in first-out. Because nobody takes a
//! single item, an item that is back on the stack (ABA) harms nobody.
//!
//! Progress: `push` and `take_all` are lock-free.

use core::ptr;
use tsumugi_core::sync::{AtomicPtr, Ordering, mutant};

/// What can be queued: it lends the queue a pointer of its own.
///
/// # Safety
///
/// `link` is always the same word of the item, and nobody else uses it while
/// the item is queued.
pub unsafe trait Linked: Sized {
    /// The item's pointer to the next.
    fn link(&self) -> &AtomicPtr<Self>;
}

/// A queue of items of which each is in one queue at a time.
#[derive(Debug)]
pub struct Inject<T> {
    head: AtomicPtr<T>,
}

impl<T: Linked> Inject<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Adds an item.
    ///
    /// # Safety
    ///
    /// The item is in no queue and stays where it is until it is taken.
    pub unsafe fn push(&self, item: *mut T) {
        // SAFETY: the caller's.
        unsafe { self.push_all(item, item) };
    }

    /// Adds a chain of items at once, which are linked from the youngest to the
    /// oldest.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push), of each.
    pub unsafe fn push_all(&self, youngest: *mut T, oldest: *mut T) {
        let mut first = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the items are ours until the CAS succeeds.
            unsafe { (*oldest).link().store(first, Ordering::Relaxed) };
            // Release: pairs with the Acquire in `take_all`.
            let order =
                if mutant("inject_push_relaxed") { Ordering::Relaxed } else { Ordering::Release };
            match self.head.compare_exchange_weak(first, youngest, order, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => first = changed,
            }
        }
    }

    /// Takes everything and gives it to `each`, oldest first.
    pub fn take_all(&self, mut each: impl FnMut(*mut T)) {
        // A swap in vain would take the line from all who look.
        if self.is_empty() {
            return;
        }
        // Acquire: pairs with the Release in `push`.
        let mut item = if mutant("inject_load_then_store") {
            let seen = self.head.load(Ordering::Acquire);
            self.head.store(ptr::null_mut(), Ordering::Release);
            seen
        } else {
            self.head.swap(ptr::null_mut(), Ordering::Acquire)
        };
        let mut oldest = ptr::null_mut();
        while !item.is_null() {
            // SAFETY: the swap made the whole list ours.
            let link = unsafe { (*item).link() };
            let next = link.load(Ordering::Relaxed);
            link.store(oldest, Ordering::Relaxed);
            oldest = item;
            item = next;
        }
        while !oldest.is_null() {
            // SAFETY: as above; read before `each` may queue the item again.
            let next = unsafe { (*oldest).link().load(Ordering::Relaxed) };
            each(oldest);
            oldest = next;
        }
    }

    /// Whether the queue looked empty; see `Deque::is_empty`.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).is_null()
    }
}

impl<T: Linked> Default for Inject<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    struct Item(AtomicPtr<Item>, u32);

    // SAFETY: the field is used for nothing else.
    unsafe impl Linked for Item {
        fn link(&self) -> &AtomicPtr<Self> {
            &self.0
        }
    }

    #[test]
    fn first_in_is_first_out() {
        let queue = Inject::new();
        let mut items: Vec<_> = (0..5).map(|n| Item(AtomicPtr::new(ptr::null_mut()), n)).collect();
        for item in &mut items {
            // SAFETY: each is pushed once and outlives the queue.
            unsafe { queue.push(item) };
        }
        // SAFETY: the same, and of a chain only the first is looked at.
        unsafe {
            queue.take_all(|_| {});
            queue.push(&mut items[0]);
            let [_, one, two, three, four] = &mut items[..] else { unreachable!() };
            three.0.store(two, Ordering::Relaxed);
            two.0.store(one, Ordering::Relaxed);
            queue.push_all(three, one);
            queue.push(four);
        }
        let mut seen = Vec::new();
        // SAFETY: the items are alive.
        queue.take_all(|item| seen.push(unsafe { (*item).1 }));
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        assert!(queue.is_empty());
    }
}
