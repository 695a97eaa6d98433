//! Sleepers in the order in which they came, linked on their own stacks.

use core::ptr;
use tsumugi_core::wait::Waker;

/// One sleeper; stays where it is from `push` until its waker is woken.
pub(super) struct Node {
    next: *mut Node,
    waker: Option<Waker>,
}

/// A list that its holder locks.
pub(super) struct Queue {
    first: *mut Node,
    last: *mut Node,
}

// SAFETY: nodes are reached only through a queue, by whoever locked it.
unsafe impl Send for Queue {}

impl Node {
    pub(super) const fn new() -> Self {
        Self { next: ptr::null_mut(), waker: None }
    }
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { first: ptr::null_mut(), last: ptr::null_mut() }
    }

    /// Adds a sleeper.
    ///
    /// # Safety
    ///
    /// The node is in no queue, and stays until its waker is woken.
    pub(super) unsafe fn push(&mut self, node: *mut Node, waker: Waker) {
        // SAFETY: the caller's; the last node is asleep, so it is there.
        unsafe {
            *node = Node { next: ptr::null_mut(), waker: Some(waker) };
            if self.last.is_null() {
                self.first = node;
            } else {
                (*self.last).next = node;
            }
        }
        self.last = node;
    }

    /// Takes the first sleeper out.
    pub(super) fn pop(&mut self) -> Option<Waker> {
        let node = self.first;
        if node.is_null() {
            return None;
        }
        // SAFETY: a queued node is asleep, so it is there; read before a wake.
        let waker = unsafe {
            self.first = (*node).next;
            (*node).waker.take()
        };
        if self.first.is_null() {
            self.last = ptr::null_mut();
        }
        waker
    }

    /// Takes all of them out.
    pub(super) fn take(&mut self) -> Self {
        core::mem::replace(self, Self::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Wakes them, first come first.
    pub(super) fn wake_all(mut self) -> usize {
        let mut woken = 0;
        while let Some(waker) = self.pop() {
            waker.wake();
            woken += 1;
        }
        woken
    }
}
