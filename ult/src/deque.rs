//! The deque of a worker: its owner works at one end, thieves at the other.
//!
//! ```text
//!    freed   top (thieves)                 bottom (the owner)
//!     │       │ first in                    │ last in
//!     ▼       ▼                             ▼
//!   ┌───┬───┬───┬───┬───┬───┐
//!   │ x │ y │ a │ b │ c │   │   steal: a, perhaps b    pop: c
//!   └───┴───┴───┴───┴───┴───┘
//!     being copied by a thief
//! ```
//!
//! For the owner the deque is last-in first-out, which keeps a tree of ULTs depth
//! first and its memory small. For thieves it is first-in first-out, which gives them
//! the big branches. [`WorkDeque::take_first`] lets the owner use a deque as a fair
//! queue.
//!
//! # How the ends meet
//!
//! The owner takes an item by moving `bottom` down and then reading `top`. A thief
//! claims items by moving `top` up and then reading `bottom`. At least one of the two
//! sees the other ([`Fences`]), and the side that sees the other yields: the owner
//! puts `bottom` back, the thief gives back what it claimed beyond `bottom`. Thieves
//! come one at a time, under a lock that the owner's `push` and `pop` never take. So
//! a thief can claim many items for the price of one barrier.
//!
//! The owner's calls may return nothing while a thief claims, although the thief then
//! leaves an item. The owner must look again before it sleeps.
//!
//! The deque grows: a full buffer is copied into one twice as large, and kept until
//! the deque is dropped, because a thief may still read it. All buffers together are
//! at most twice the largest.
//!
//! Progress: `push` and `pop` are wait-free but for growth. `take_first` and `steal`
//! are wait-free too, and give up when a thief is at work.
//!
//! # References
//!
//! - Frigo, Leiserson, Randall: The Implementation of the Cilk-5 Multithreaded
//!   Language. PLDI 1998: the THE protocol.
//! - Chase, Lev: Dynamic Circular Work-Stealing Deque. SPAA 2005: the buffer.

mod alone;
mod buffer;
mod top;

use crate::fences::Fences;
use alloc::vec::Vec;
use buffer::{BufferHeader, DequeBuffer};
use core::hint::cold_path;
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicBool, AtomicI64, AtomicPtr, CachePadded, Ordering, UnsafeCell};

/// A queue of pointers; each function says which thread may call it.
pub struct WorkDeque<T> {
    thieves: CachePadded<Thieves>,
    owner: CachePadded<OwnerState<T>>,
}

/// The end where thieves work; written by the holder of `busy`.
struct Thieves {
    top: AtomicI64,
    /// Slots below this place are free; at most `top`. Not kept without thieves.
    freed: AtomicI64,
    busy: AtomicBool,
}

/// Written by the owner.
struct OwnerState<T> {
    bottom: AtomicI64,
    buffer: AtomicPtr<BufferHeader<T>>,
    /// The limit of `bottom`: at this place the owner must look at `freed` again.
    limit: UnsafeCell<i64>,
    retired: UnsafeCell<Vec<*mut BufferHeader<T>>>,
    fences: Fences,
    /// Whether there are thieves.
    shared: bool,
}

/// The result of a theft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steal<T> {
    /// The oldest item.
    Taken(*mut T),
    /// There was nothing, or nothing that the thief wanted.
    Empty,
    /// Another thief or the owner was faster.
    Lost,
}

// SAFETY: pointers are handed over whole; only the owner uses the owner's cells.
unsafe impl<T: Send> Send for WorkDeque<T> {}
// SAFETY: as for `Send`; the calls that use the owner's cells are `unsafe fn`, and
// only the owner may make them.
unsafe impl<T: Send> Sync for WorkDeque<T> {}

impl<T> WorkDeque<T> {
    /// An empty deque with room for `slots` items (a power of two) before it grows.
    /// Unless `shared`, there are no thieves.
    pub fn new(slots: usize, shared: bool, fences: Fences) -> Self {
        Self {
            thieves: CachePadded::new(Thieves {
                top: AtomicI64::new(0),
                freed: AtomicI64::new(0),
                busy: AtomicBool::new(false),
            }),
            owner: CachePadded::new(OwnerState {
                bottom: AtomicI64::new(0),
                buffer: AtomicPtr::new(DequeBuffer::new(slots).into_raw()),
                limit: UnsafeCell::new(slots as i64),
                retired: UnsafeCell::new(Vec::new()),
                fences,
                shared,
            }),
        }
    }

    /// Bytes of the buffer of an empty deque with room for `slots`.
    pub(crate) const fn buffer_bytes(slots: usize) -> usize {
        DequeBuffer::<T>::bytes(slots)
    }

    /// Adds an item at the bottom.
    ///
    /// # Safety
    ///
    /// One thread at a time is the owner; only the owner calls.
    #[inline(always)]
    pub unsafe fn push(&self, item: *mut T) {
        let bottom = self.owner.bottom.load(Ordering::Relaxed);
        // SAFETY: we are the owner.
        if bottom >= self.owner.limit.with(|limit| unsafe { *limit }) {
            // SAFETY: we are the owner.
            return unsafe { self.push_full(bottom, item) };
        }
        // SAFETY: the current buffer lives as long as the deque.
        let buffer = unsafe { DequeBuffer::from_raw(self.owner.buffer.load(Ordering::Relaxed)) };
        self.put(buffer, bottom, item);
    }

    /// Adds an item when the owner sees no room. This is a call of its own, so that
    /// `push` saves no registers.
    #[cold]
    #[inline(never)]
    unsafe fn push_full(&self, bottom: i64, item: *mut T) {
        // SAFETY: the caller is the owner.
        let buffer = unsafe { self.make_room(bottom) };
        self.put(buffer, bottom, item);
    }

    #[inline(always)]
    fn put(&self, buffer: DequeBuffer<T>, bottom: i64, item: *mut T) {
        let order = mutate!("deque_push_relaxed": Ordering::Release => Ordering::Relaxed);
        // Release: pairs with the Acquire of a thief that looks at an item before it
        // claims it. The slot may then be older or newer than `bottom` shows.
        buffer.slot(bottom).store(item, order);
        // Release: pairs with the Acquire of `bottom` in `steal`.
        self.owner.bottom.store(bottom + 1, order);
    }

    /// Takes the youngest item.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    #[inline]
    pub unsafe fn pop(&self) -> Option<*mut T> {
        // SAFETY: the caller is the owner.
        unsafe { self.pop_if(|_| true) }
    }

    /// Takes the youngest item, if `wants` returns true for it. Thieves may take the
    /// item while `wants` runs.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    #[inline(always)]
    pub unsafe fn pop_if(&self, wants: impl FnOnce(*mut T) -> bool) -> Option<*mut T> {
        // SAFETY: the caller is the owner.
        let (place, item) = unsafe { self.youngest_if(wants) }?;
        // SAFETY: as above, and nothing has changed since `youngest_if` returned the
        // place.
        unsafe { self.pop_at(place) }.then_some(item)
    }

    /// Takes the youngest item, which is at `place`; false if a thief claims it.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push), and the owner has changed nothing since it got
    /// the place.
    #[inline(always)]
    pub(crate) unsafe fn pop_at(&self, place: i64) -> bool {
        // Release: a thief that reads this `bottom` also sees the items below.
        self.owner.bottom.store(place, Ordering::Release);
        if self.owner.shared {
            // Pairs with the heavy half in `steal`.
            mutate!("deque_pop_no_fence": self.owner.fences.light() => ());
            if self.thieves.top.load(Ordering::Relaxed) > place {
                cold_path();
                // A thief has claimed the item. Release: as above.
                self.owner.bottom.store(place + 1, Ordering::Release);
                return false;
            }
        }
        true
    }

    /// The place of `item`, if it is the youngest.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    #[inline(always)]
    pub(crate) unsafe fn place_of(&self, item: *mut T) -> Option<i64> {
        // SAFETY: the caller is the owner.
        unsafe { self.youngest_if(|youngest| youngest == item) }.map(|(place, _)| place)
    }

    /// The youngest item, which stays in the deque: a thief may take it at any time.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    #[inline]
    pub unsafe fn youngest(&self) -> Option<*mut T> {
        // SAFETY: the caller is the owner.
        unsafe { self.youngest_if(|_| true) }.map(|(_, item)| item)
    }

    /// The place of the youngest item and the item, if `wants` returns true for it;
    /// nothing changes.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    #[inline(always)]
    unsafe fn youngest_if(&self, wants: impl FnOnce(*mut T) -> bool) -> Option<(i64, *mut T)> {
        let place = self.owner.bottom.load(Ordering::Relaxed) - 1;
        // The owner may see an old `top`, or a claim that the thief will give back in
        // part. In both cases there is nothing to take now.
        if place < self.thieves.top.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: the current buffer lives as long as the deque.
        let buffer = unsafe { DequeBuffer::from_raw(self.owner.buffer.load(Ordering::Relaxed)) };
        let item = buffer.slot(place).load(Ordering::Relaxed);
        wants(item).then_some((place, item))
    }

    /// Whether the deque looked empty; any thread. Either answer may be out of date,
    /// unless a fence orders the call after the push in question.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Acquire: `top` and `bottom` are read in the order in which a thief reads
        // them.
        let top = self.thieves.top.load(Ordering::Acquire);
        top >= self.owner.bottom.load(Ordering::Acquire)
    }

    /// Whether there looked to be several items; see [`is_empty`](Self::is_empty).
    pub fn has_several(&self) -> bool {
        // Acquire: as in `is_empty`.
        let top = self.thieves.top.load(Ordering::Acquire);
        top + 1 < self.owner.bottom.load(Ordering::Acquire)
    }

    /// Finds room for one item more, in freed slots or a larger buffer.
    unsafe fn make_room(&self, bottom: i64) -> DequeBuffer<T> {
        // Without thieves, all slots below `top` are free. Acquire: pairs with the
        // Release in `steal`, after which the thief's slots may be reused.
        let freed = if self.owner.shared { &self.thieves.freed } else { &self.thieves.top };
        let freed = freed.load(Ordering::Acquire);
        // SAFETY: the caller is the owner.
        let set_limit =
            |mask| self.owner.limit.with_mut(|limit| unsafe { *limit = freed + mask + 1 });
        let old_raw = self.owner.buffer.load(Ordering::Relaxed);
        // SAFETY: the current buffer lives as long as the deque.
        let old = unsafe { DequeBuffer::from_raw(old_raw) };
        if bottom - freed <= old.mask() {
            set_limit(old.mask());
            return old;
        }
        let new = DequeBuffer::new(2 * (old.mask() as usize + 1));
        for at in freed..bottom {
            new.slot(at).store(old.slot(at).load(Ordering::Relaxed), Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `steal`.
        self.owner.buffer.store(new.into_raw(), Ordering::Release);
        set_limit(new.mask());
        // SAFETY: the caller is the owner, and only the owner uses the list.
        self.owner.retired.with_mut(|retired| unsafe { (*retired).push(old_raw) });
        new
    }
}

impl<T> Drop for WorkDeque<T> {
    fn drop(&mut self) {
        let last = self.owner.buffer.load(Ordering::Relaxed);
        // SAFETY: no other thread has the deque any more; each buffer is in one
        // place, and comes from `into_raw`.
        self.owner.retired.with_mut(|retired| unsafe {
            for buffer in (*retired).drain(..).chain([last]) {
                DequeBuffer::from_raw(buffer).free();
            }
        });
    }
}

impl<T> core::fmt::Debug for WorkDeque<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "WorkDeque(empty: {})", self.is_empty())
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
