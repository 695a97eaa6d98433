//! Waiting for room: for a tag, or a place in a ring.
//!
//! A submit that returned [`Busy`](crate::completion::Busy) may be tried again
//! when an operation has ended. A caller that wants to sleep until then parks
//! here, and each completion wakes all parked callers: they try in the order in
//! which they parked, and those that still find no room park again.
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

/// The waiters for room.
pub struct WaiterStack {
    waiting: CachePadded<AtomicU32>,
    parked: AtomicPtr<StackedWaiter>,
}

/// A parked waiter, on the waiter's stack from its sleep to its wake.
struct StackedWaiter {
    next: UnsafeCell<*mut StackedWaiter>,
    waker: UnsafeCell<Option<Waker>>,
}

impl WaiterStack {
    /// Makes a room without waiters.
    pub fn new() -> Self {
        Self {
            waiting: CachePadded::new(AtomicU32::new(0)),
            parked: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Sleeps until room was made after `has_room` last returned false. The loads
    /// of `has_room` must be sequentially consistent. The wake is a hint: the
    /// room may be taken again.
    pub fn wait(&self, wait: &dyn Wait, has_room: &(dyn Fn() -> bool + Sync)) {
        // SeqCst: before the last call of `has_room`; pairs with `made`.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let node =
            StackedWaiter { next: UnsafeCell::new(ptr::null_mut()), waker: UnsafeCell::new(None) };
        let mut park = |waker| {
            // Copied out of the caller's frame, because the frame may be gone as
            // soon as the node is parked.
            let (this, has_room, node) = (self, has_room, &raw const node as *mut StackedWaiter);
            // SAFETY: the node is not pushed yet, so this thread alone can reach
            // it.
            unsafe { (*node).waker.with_mut(|slot| *slot = Some(waker)) };
            this.park(node);
            edge("room_edge");
            if has_room() {
                // Perhaps the room was made before the completer could see this
                // node.
                this.wake_all();
            }
            true
        };
        // SAFETY: the node holds the waker, and the thread that takes the node
        // uses it.
        unsafe { wait.sleep(Reason::new("room"), &mut park) };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes all waiters, after room was made. The caller must have made the room
    /// by a sequentially consistent read-modify-write, as the one that frees a
    /// tag: on the supported processors that is a fence already.
    #[inline]
    pub fn made(&self) {
        edge("room_no_fence");
        // SeqCst: after the operation that made the room; pairs with `wait`.
        if self.waiting.load(Ordering::SeqCst) != 0 {
            self.wake_all();
        }
    }

    fn park(&self, node: *mut StackedWaiter) {
        let mut first = self.parked.load(Ordering::Relaxed);
        loop {
            // SAFETY: the node is not pushed yet, so this thread alone can reach
            // it.
            unsafe { (*node).next.with_mut(|next| *next = first) };
            // SeqCst: before the last call of `has_room`. Release: publishes the
            // node's fields, pairs with the swap in `wake_all`.
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
        // SeqCst: as in `park`; the swap gives each node to one thread only.
        let mut node = self.parked.swap(ptr::null_mut(), Ordering::SeqCst);
        // The list is reversed, so that the node that was parked first is woken
        // first.
        let mut oldest = ptr::null_mut();
        while !node.is_null() {
            // SAFETY: a node stays until it is woken, and the swap gave this
            // thread the list.
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

// SAFETY: a node is reached only through `parked`, by the thread that took it
// out.
unsafe impl Send for WaiterStack {}
// SAFETY: the same.
unsafe impl Sync for WaiterStack {}

impl Default for WaiterStack {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for WaiterStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WaiterStack({} waiting)", self.waiting.load(Ordering::Relaxed))
    }
}
