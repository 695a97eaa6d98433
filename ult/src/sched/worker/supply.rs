//! Descriptors and stacks: they are taken, given back, and checked when a ULT
//! leaves.
//!
//! A new ULT for which there is no stack waits in a queue that all workers share
//! and is queued to run when a stack is given back.

use super::thread::Worker;
use crate::overflow::Overflow;
use crate::slab::TaskSlot;
use crate::stack::{Class, Stack, StackHead};
use crate::task::Task;

impl Worker {
    /// Takes a free descriptor.
    #[inline]
    pub(crate) fn slot(&self) -> TaskSlot {
        self.slots.with_mut(|cache| {
            // SAFETY: the cache is this thread's own, and `take` does not access
            // it by another way.
            self.shared.slab.take(unsafe { &mut *cache }, self.shared.home())
        })
    }

    /// Takes a descriptor back.
    ///
    /// # Safety
    ///
    /// As for `Slab::put`; this is the calling thread's worker.
    #[inline]
    pub(crate) unsafe fn release(&self, slot: TaskSlot) {
        // SAFETY: the cache is this thread's own; by the caller's contract the
        // slot may be put back.
        self.slots.with_mut(|cache| unsafe { self.shared.slab.put(slot, &mut *cache) });
    }

    /// Returns the stack that a ULT is on, or binds one to it if it never ran.
    /// `None`: no stack is free.
    ///
    /// # Safety
    ///
    /// The task is this worker's.
    #[inline(always)]
    pub(super) unsafe fn stack_of<'a>(&self, task: &'a Task) -> Option<&'a StackHead> {
        // SAFETY: by the caller's contract the task is this worker's.
        if let Some(head) = unsafe { task.head() } {
            return Some(head);
        }
        let class = task.class();
        let stack = self.stacks.with_mut(|cache| {
            // SAFETY: the cache is this thread's own, and `take` does not access
            // it by another way.
            self.shared.stacks.take(class, unsafe { &mut *cache })
        })?;
        // SAFETY: the task is this worker's and has no stack.
        Some(unsafe { task.bind(stack) })
    }

    /// Takes a stack back, and queues a ULT that waited for one.
    #[inline(always)]
    pub(super) fn put_stack(&self, stack: Stack) {
        self.cache_stack(stack);
        if let Some(resumed) = self.resume_stack_waiter() {
            self.route(resumed);
        }
    }

    /// Binds a stack of the ordinary size to a new ULT that needs no other.
    ///
    /// # Safety
    ///
    /// The task is this worker's, plain, and has no stack.
    #[inline(always)]
    pub(super) unsafe fn usual_stack_of<'a>(&self, task: &'a Task) -> Option<&'a StackHead> {
        // SAFETY: the cache is this thread's own.
        match self.stacks.with_mut(|cache| unsafe { &mut *cache }.take_cached()) {
            // SAFETY: the task is this worker's and has no stack.
            Some(stack) => Some(unsafe { task.bind_usual(stack) }),
            // SAFETY: the caller's.
            None => unsafe { self.stack_of(task) },
        }
    }

    /// Takes a stack of the ordinary size back, into the own cache. The youngest stack of
    /// a cache stays there until this worker takes it.
    #[inline(always)]
    pub(super) fn put_usual_stack(&self, stack: Stack) {
        // SAFETY: the cache is this thread's own.
        let full = self.stacks.with_mut(|cache| unsafe { &mut *cache }.put_cached(stack));
        if let Some(stack) = full {
            self.cache_stack(stack);
        }
    }

    /// Takes a stack back, into the own cache.
    #[inline]
    fn cache_stack(&self, stack: Stack) {
        // SAFETY: the cache is this thread's own, and `put` does not access it by
        // another way.
        self.stacks.with_mut(|cache| self.shared.stacks.put(stack, unsafe { &mut *cache }));
    }

    /// Makes a new ULT wait until another one ends, because no stack is free.
    #[cold]
    pub(super) fn wait_for_stack(&self, slot: TaskSlot) {
        self.shared.stack_waiters.push(slot);
        // Another worker may have stacks in its cache.
        self.shared.notify_sleepers();
    }

    /// Takes a new ULT that waited for a stack, if there is a stack now.
    #[inline]
    pub(super) fn resume_stack_waiter(&self) -> Option<TaskSlot> {
        if self.shared.stack_waiters.is_empty() { None } else { self.resume_first_waiter() }
    }

    #[cold]
    fn resume_first_waiter(&self) -> Option<TaskSlot> {
        let resumed = self.shared.stack_waiters.pop(|slot| {
            // SAFETY: a ULT that waits for a stack is alive, and the queue is
            // locked meanwhile.
            self.has_spare_stack(unsafe { slot.as_ref().class() })
        })?;
        // SAFETY: the ULT waited for a stack, and is in no queue.
        match unsafe { resumed.as_ref() }.worker() {
            Some(worker) if worker != self.index => {
                // The other worker cannot take a stack out of this worker's cache.
                self.stacks.with_mut(|cache| {
                    // SAFETY: the cache is this thread's own, and `drain` does
                    // not access it by another way.
                    self.shared.stacks.drain(unsafe { &mut *cache })
                });
                self.route(resumed);
                None
            }
            _ => Some(resumed),
        }
    }

    pub(super) fn has_spare_stack(&self, class: Class) -> bool {
        // SAFETY: the cache is this thread's own.
        self.stacks.with(|cache| self.shared.stacks.has_spare(class, unsafe { &*cache }))
    }

    #[inline(always)]
    pub(super) fn check_canary(&self, slot: TaskSlot, head: &StackHead) {
        if !head.is_intact() {
            // SAFETY: the task is this worker's.
            let task = unsafe { slot.as_ref() };
            // SAFETY: as above; the task is not cleared.
            let name = unsafe { task.name() };
            let origin = self.shared.origin;
            Overflow { origin, id: task.slot().into(), name, stack_bytes: head.bytes() }.abort()
        }
    }
}
