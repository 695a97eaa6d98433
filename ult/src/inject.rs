//! The injection queue: threads that are no workers push ULTs, and a worker takes all
//! of them at once.
//!
//! ```text
//!   head ─► youngest ─► ... ─► oldest        linked through the items
//! ```
//!
//! Pushing is one CAS on a stack, of one item or of a chain. Taking swaps the whole
//! stack out and reverses it, so items come out first-in first-out. Because no thread
//! takes a single item, an item that is back on the stack (ABA) does no harm.
//!
//! Progress: `push` and `take_all` are lock-free.

use core::ptr;
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicPtr, Ordering};

/// An item that can be queued: it has a pointer for the queue's use.
///
/// # Safety
///
/// `link` always returns the same word of the item, and only the queue uses that word
/// while the item is queued.
pub unsafe trait Linked: Sized {
    /// The item's pointer to the next item.
    fn link(&self) -> &AtomicPtr<Self>;
}

/// A queue. An item is in one queue at a time.
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
        // SAFETY: the caller promises that the item is in no queue and stays.
        unsafe { self.push_all(item, item) };
    }

    /// Adds a chain of items at once. The items are linked from the youngest to the
    /// oldest.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push), for each item of the chain.
    pub unsafe fn push_all(&self, youngest: *mut T, oldest: *mut T) {
        let mut first = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the items are ours until the CAS succeeds.
            unsafe { (*oldest).link().store(first, Ordering::Relaxed) };
            // Release: pairs with the Acquire in `take_all`.
            let order = mutate!("inject_push_relaxed": Ordering::Release => Ordering::Relaxed);
            match self.head.compare_exchange_weak(first, youngest, order, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => first = changed,
            }
        }
    }

    /// Takes all items and gives them to `each`, oldest first.
    pub fn take_all(&self, mut each: impl FnMut(*mut T)) {
        // A swap on an empty queue would take the cache line from all threads that
        // look at it.
        if self.is_empty() {
            return;
        }
        // Acquire: pairs with the Release in `push`.
        let mut item = mutate!("inject_load_then_store":
            self.head.swap(ptr::null_mut(), Ordering::Acquire)
            => {
                let seen = self.head.load(Ordering::Acquire);
                self.head.store(ptr::null_mut(), Ordering::Release);
                seen
            }
        );
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

    /// Whether the queue looked empty; see `WorkDeque::is_empty`.
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

    // SAFETY: the field is used for nothing but the link.
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
        // SAFETY: as above; after `take_all` the items are in no queue.
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
