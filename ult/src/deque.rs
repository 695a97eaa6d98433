//! A worker's queue: its owner works at one end, thieves at the other.
//!
//! ```text
//!    top (thieves, by CAS)                 bottom (the owner)
//!     │ first in                            │ last in
//!     ▼                                     ▼
//!   ┌───┬───┬───┬───┬───┬───┐
//!   │   │ a │ b │ c │ d │   │   take_first, steal: a     pop: d
//!   └───┴───┴───┴───┴───┴───┘
//! ```
//!
//! Last-in first-out for the owner keeps a tree of ULTs depth first, and its
//! memory small; first-in first-out for thieves gives them the big branches.
//! [`Deque::take_first`] lets the owner use a deque as a fair queue.
//!
//! It grows: a full buffer is copied into one twice as large and kept until
//! the deque is dropped, because a thief may still read it. All buffers
//! together are at most twice the largest.
//!
//! Progress: `push`, `pop` and `take_first` are wait-free but for growth;
//! `steal` is lock-free.
//!
//! # References
//!
//! - Chase, Lev: Dynamic Circular Work-Stealing Deque. SPAA 2005.
//! - Lê, Pop, Cohen, Zappa Nardelli: Correct and Efficient Work-Stealing for
//!   Weak Memory Models. PPoPP 2013. The orderings are theirs.

use core::ptr;
use tsumugi_core::sync::{AtomicI64, AtomicPtr, CachePadded, Ordering, UnsafeCell, fence, mutant};

/// A queue of pointers; who may call what is on each function.
pub struct Deque<T> {
    /// Written by thieves and the owner.
    top: CachePadded<AtomicI64>,
    /// Written by the owner, as are all fields below.
    bottom: CachePadded<AtomicI64>,
    buffer: AtomicPtr<Buffer<T>>,
    retired: UnsafeCell<Vec<*mut Buffer<T>>>,
}

/// What a thief got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steal<T> {
    /// The oldest item.
    Taken(*mut T),
    /// Nothing was there.
    Empty,
    /// Another thief or the owner was faster.
    Lost,
}

struct Buffer<T> {
    mask: i64,
    slots: Box<[AtomicPtr<T>]>,
}

// SAFETY: pointers are handed over whole; `retired` is the owner's.
unsafe impl<T: Send> Send for Deque<T> {}
// SAFETY: the same; the owner's calls are `unsafe fn`.
unsafe impl<T: Send> Sync for Deque<T> {}

impl<T> Deque<T> {
    /// An empty deque with room for `slots` (a power of two) before it grows.
    pub fn new(slots: usize) -> Self {
        Self {
            top: CachePadded::new(AtomicI64::new(0)),
            bottom: CachePadded::new(AtomicI64::new(0)),
            buffer: AtomicPtr::new(Buffer::new(slots)),
            retired: UnsafeCell::new(Vec::new()),
        }
    }

    /// Bytes of the buffer of an empty deque with room for `slots`.
    pub(crate) const fn buffer_bytes(slots: usize) -> usize {
        size_of::<Buffer<T>>() + slots * size_of::<AtomicPtr<T>>()
    }

    /// Adds an item at the bottom.
    ///
    /// # Safety
    ///
    /// One thread at a time is the owner; only the owner calls.
    #[inline]
    pub unsafe fn push(&self, item: *mut T) {
        let bottom = self.bottom.load(Ordering::Relaxed);
        // Acquire: pairs with the CAS of a thief: its slot may be reused.
        let top = self.top.load(Ordering::Acquire);
        // SAFETY: the current buffer lives as long as the deque.
        let mut buffer = unsafe { &*self.buffer.load(Ordering::Relaxed) };
        if bottom - top > buffer.mask {
            // SAFETY: we are the owner.
            buffer = unsafe { self.grow(top, bottom) };
        }
        buffer.slot(bottom).store(item, Ordering::Relaxed);
        // Release: pairs with the Acquire of `bottom` in `steal`.
        let order =
            if mutant("deque_push_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        self.bottom.store(bottom + 1, order);
    }

    /// Takes the youngest item.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    #[inline]
    pub unsafe fn pop(&self) -> Option<*mut T> {
        let bottom = self.bottom.load(Ordering::Relaxed) - 1;
        // The owner's view of `top` can only be too old, so this is empty
        // for certain, and no fence is needed to say so.
        if bottom < self.top.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: the current buffer lives as long as the deque.
        let buffer = unsafe { &*self.buffer.load(Ordering::Relaxed) };
        self.bottom.store(bottom, Ordering::Relaxed);
        if !mutant("deque_pop_no_fence") {
            // SeqCst: the thief and the owner each write one end and read the
            // other; pairs with the fence in `steal`.
            fence(Ordering::SeqCst);
        }
        let top = self.top.load(Ordering::Relaxed);
        if top > bottom {
            self.bottom.store(bottom + 1, Ordering::Relaxed);
            return None;
        }
        let item = buffer.slot(bottom).load(Ordering::Relaxed);
        if top < bottom {
            return Some(item);
        }
        // The last one: thieves may want it too.
        let won = mutant("deque_last_no_cas")
            || self.top.compare_exchange(top, top + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        self.bottom.store(bottom + 1, Ordering::Relaxed);
        won.then_some(item)
    }

    /// Takes the oldest item.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    #[inline]
    pub unsafe fn take_first(&self) -> Option<*mut T> {
        let bottom = self.bottom.load(Ordering::Relaxed);
        let mut top = self.top.load(Ordering::Relaxed);
        while top < bottom {
            // SAFETY: the current buffer lives as long as the deque.
            let buffer = unsafe { &*self.buffer.load(Ordering::Relaxed) };
            let item = buffer.slot(top).load(Ordering::Relaxed);
            // The owner knows the bottom, so unlike a thief it needs no fence.
            match self.top.compare_exchange(top, top + 1, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return Some(item),
                Err(moved) => top = moved,
            }
        }
        None
    }

    /// Takes the oldest item; any thread.
    pub fn steal(&self) -> Steal<T> {
        // Acquire: pairs with the CAS of other thieves.
        let top = self.top.load(Ordering::Acquire);
        if !mutant("deque_steal_no_fence") {
            // SeqCst: pairs with the fence in `pop`.
            fence(Ordering::SeqCst);
        }
        // Acquire: pairs with the Release in `push`.
        let bottom = self.bottom.load(Ordering::Acquire);
        if top >= bottom {
            return Steal::Empty;
        }
        // Acquire: pairs with the Release in `grow`.
        // SAFETY: retired buffers are kept until the deque is dropped.
        let buffer = unsafe { &*self.buffer.load(Ordering::Acquire) };
        let item = buffer.slot(top).load(Ordering::Relaxed);
        match self.top.compare_exchange(top, top + 1, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => Steal::Taken(item),
            Err(_) => Steal::Lost,
        }
    }

    /// Whether the deque looked empty; any thread. False may be out of date,
    /// true too, unless a fence orders it after the push in question.
    pub fn is_empty(&self) -> bool {
        // Acquire: the pair is read in the order in which a thief reads it.
        let top = self.top.load(Ordering::Acquire);
        top >= self.bottom.load(Ordering::Acquire)
    }

    #[cold]
    unsafe fn grow(&self, top: i64, bottom: i64) -> &Buffer<T> {
        let old_raw = self.buffer.load(Ordering::Relaxed);
        // SAFETY: the current buffer lives as long as the deque.
        let old = unsafe { &*old_raw };
        let new_raw = Buffer::new(2 * old.slots.len());
        // SAFETY: just made.
        let new = unsafe { &*new_raw };
        for at in top..bottom {
            new.slot(at).store(old.slot(at).load(Ordering::Relaxed), Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `steal`.
        self.buffer.store(new_raw, Ordering::Release);
        // SAFETY: only the owner is here.
        self.retired.with_mut(|retired| unsafe { (*retired).push(old_raw) });
        new
    }
}

impl<T> Buffer<T> {
    fn new(slots: usize) -> *mut Self {
        assert!(slots.is_power_of_two(), "a deque of {slots} slots");
        let slots = (0..slots).map(|_| AtomicPtr::new(ptr::null_mut())).collect::<Box<[_]>>();
        Box::into_raw(Box::new(Self { mask: slots.len() as i64 - 1, slots }))
    }

    #[inline(always)]
    fn slot(&self, at: i64) -> &AtomicPtr<T> {
        &self.slots[(at & self.mask) as usize]
    }
}

impl<T> Drop for Deque<T> {
    fn drop(&mut self) {
        let last = self.buffer.load(Ordering::Relaxed);
        // SAFETY: nobody else has the deque any more; each buffer is in one
        // place, and was made by `Box::into_raw`.
        self.retired.with_mut(|retired| unsafe {
            for buffer in (*retired).drain(..).chain([last]) {
                drop(Box::from_raw(buffer));
            }
        });
    }
}

impl<T> core::fmt::Debug for Deque<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Deque(empty: {})", self.is_empty())
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    fn item(n: usize) -> *mut u8 {
        ptr::without_provenance_mut(n)
    }

    #[test]
    fn the_owner_takes_the_youngest_a_thief_the_oldest() {
        let deque = Deque::<u8>::new(2);
        // SAFETY: one thread.
        unsafe {
            for n in 1..=100 {
                deque.push(item(n));
            }
            assert_eq!(deque.pop(), Some(item(100)));
            assert_eq!(deque.steal(), Steal::Taken(item(1)));
            assert_eq!(deque.take_first(), Some(item(2)));
            for n in (3..100).rev() {
                assert_eq!(deque.pop(), Some(item(n)));
            }
            assert_eq!((deque.pop(), deque.take_first()), (None, None));
            assert_eq!(deque.steal(), Steal::Empty);
            assert!(deque.is_empty());
        }
    }

    #[test]
    fn every_item_is_taken_once() {
        const ITEMS: usize = 20_000;
        let deque = Deque::<u8>::new(4);
        let sum = std::thread::scope(|scope| {
            let thief = scope.spawn(|| {
                let (mut sum, mut empty) = (0, 0);
                while empty < 1000 {
                    match deque.steal() {
                        Steal::Taken(item) => sum += item.addr(),
                        Steal::Empty => {
                            empty += 1;
                            std::thread::yield_now();
                        }
                        Steal::Lost => {}
                    }
                }
                sum
            });
            let mut sum = 0;
            for n in 1..=ITEMS {
                // SAFETY: this thread alone is the owner.
                unsafe {
                    deque.push(item(n));
                    if n % 3 == 0 {
                        sum += deque.pop().map_or(0, |item| item.addr());
                    }
                    if n % 5 == 0 {
                        sum += deque.take_first().map_or(0, |item| item.addr());
                    }
                }
            }
            // SAFETY: as above.
            while let Some(item) = unsafe { deque.pop() } {
                sum += item.addr();
            }
            sum + thief.join().unwrap()
        });
        assert_eq!(sum, ITEMS * (ITEMS + 1) / 2);
    }
}
