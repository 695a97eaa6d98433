//! Waiting for room: for a tag, or a place in a ring.
//!
//! A submit that answered [`Busy`](crate::completion::Busy) may be tried again
//! when something has ended. Who wants to sleep until then parks here, and
//! each completion wakes all who do: they come in the order of their sleep,
//! and those for whom there is no room yet park again.
//!
//! ```text
//!  waiter                            completer
//!  waiting + 1                       free the tag / pop the ring
//!  push the node                     waiting = 0? done: one load
//!  try once more                     take all nodes, wake them
//!  sleep
//! ```
//!
//! Progress: lock-free.

use crate::sync::{AtomicPtr, AtomicU32, CachePadded, Ordering, UnsafeCell, edge};
use crate::wait::{Reason, Wait, Waker};
use core::fmt;
use core::ptr;

/// Those who wait for room. Nobody at first.
pub struct Room {
    waiting: CachePadded<AtomicU32>,
    parked: AtomicPtr<Node>,
}

/// On the waiter's stack from its sleep to its wake.
struct Node {
    next: UnsafeCell<*mut Node>,
    waker: UnsafeCell<Option<Waker>>,
}

impl Room {
    /// Nobody waiting.
    pub fn new() -> Self {
        Self {
            waiting: CachePadded::new(AtomicU32::new(0)),
            parked: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Sleeps until somebody made room after `has_room`, whose loads are
    /// sequentially consistent, was last false. A hint: there may be none
    /// again.
    pub fn wait(&self, wait: &dyn Wait, has_room: &(dyn Fn() -> bool + Sync)) {
        // SeqCst: before the last look at the room; pairs with `made`.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let node = Node { next: UnsafeCell::new(ptr::null_mut()), waker: UnsafeCell::new(None) };
        let mut park = |waker| {
            // Copied out of the caller's frame, which may be gone as soon as
            // the node is parked.
            let (this, has_room, node) = (self, has_room, &raw const node as *mut Node);
            // SAFETY: nobody else knows the node yet.
            unsafe { (*node).waker.with_mut(|slot| *slot = Some(waker)) };
            this.park(node);
            edge("room_edge");
            if has_room() {
                // It was made before we were seen, perhaps.
                this.wake_all();
            }
            true
        };
        // SAFETY: the node has the waker, and whoever takes the node uses it.
        unsafe { wait.sleep(Reason::new("room"), &mut park) };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Something has ended: whoever waits may try again. What made the room
    /// was a sequentially consistent read-modify-write of the caller's, as
    /// that which frees a tag is: on the processors at hand it is a fence
    /// already.
    #[inline]
    pub fn made(&self) {
        edge("room_no_fence");
        // SeqCst: after what made the room; pairs with `wait`.
        if self.waiting.load(Ordering::SeqCst) != 0 {
            self.wake_all();
        }
    }

    fn park(&self, node: *mut Node) {
        let mut first = self.parked.load(Ordering::Relaxed);
        loop {
            // SAFETY: not pushed yet, so ours alone.
            unsafe { (*node).next.with_mut(|next| *next = first) };
            // SeqCst: before the last look at the room. Release: the node is
            // whole, pairs with the swap in `wake_all`.
            match self.parked.compare_exchange_weak(
                first,
                node,
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(changed) => first = changed,
            }
        }
    }

    #[cold]
    fn wake_all(&self) {
        // SeqCst: as in `park`; a node is in one hand only.
        let mut node = self.parked.swap(ptr::null_mut(), Ordering::SeqCst);
        // Turned round: the one that came first goes first.
        let mut oldest = ptr::null_mut();
        while !node.is_null() {
            // SAFETY: nodes stay until they are woken, and the list is ours.
            let next = unsafe { (*node).next.with_mut(|next| ptr::replace(next, oldest)) };
            oldest = node;
            node = next;
        }
        while !oldest.is_null() {
            // SAFETY: as above; the waker was set before the push.
            let (next, waker) = unsafe {
                ((*oldest).next.with(|next| *next), (*oldest).waker.with_mut(|slot| (*slot).take()))
            };
            waker.expect("a parked node has a waker").wake();
            oldest = next;
        }
    }
}

// SAFETY: a node is reached only through `parked`, by whoever took it out.
unsafe impl Send for Room {}
// SAFETY: the same.
unsafe impl Sync for Room {}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Room({} waiting)", self.waiting.load(Ordering::Relaxed))
    }
}
