//! Descriptors and stacks: taken, given back, and checked when a ULT leaves.
//!
//! A new ULT for which there is no stack waits in a queue that all share, and
//! is fed when one is given back.

use super::Worker;
use crate::overflow::Overflow;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
use crate::sched::current;
use crate::slab::Slot;
use crate::stack::{Class, Head, Stack};
use crate::task::Task;

impl Worker {
    /// A free descriptor.
    #[inline]
    pub(crate) fn slot(&self) -> Slot {
        self.slots.with_mut(|cache| {
            // SAFETY: this thread's own; `take` does not come back here.
            self.shared.slab.take(unsafe { &mut *cache }, self.shared.home())
        })
    }

    /// Takes a descriptor back.
    ///
    /// # Safety
    ///
    /// As for `Slab::put`; this is the calling thread's worker.
    #[inline]
    pub(crate) unsafe fn release(&self, slot: Slot) {
        // SAFETY: this thread's own, and the caller's.
        self.slots.with_mut(|cache| unsafe { self.shared.slab.put(slot, &mut *cache) });
    }

    /// The stack that a ULT is on, or one for it if it never ran. `None`: no
    /// stack is free.
    ///
    /// # Safety
    ///
    /// The task is ours.
    #[inline(always)]
    pub(super) unsafe fn stack_of<'a>(&self, task: &'a Task) -> Option<&'a Head> {
        // SAFETY: the caller's.
        if let Some(head) = unsafe { task.head() } {
            return Some(head);
        }
        let class = task.class();
        let stack = self.stacks.with_mut(|cache| {
            // SAFETY: this thread's own; `take` does not come back here.
            self.shared.stacks.take(class, unsafe { &mut *cache })
        })?;
        // SAFETY: the task is ours and has none.
        Some(unsafe { task.bind(stack) })
    }

    /// Takes a stack back, and queues a ULT that waited for one.
    #[inline(always)]
    pub(super) fn put_stack(&self, stack: Stack) {
        // SAFETY: this thread's own; `put` does not come back here.
        self.stacks.with_mut(|cache| self.shared.stacks.put(stack, unsafe { &mut *cache }));
        if let Some(fed) = self.feed() {
            self.route(fed);
        }
    }

    /// No stack is free: the new ULT waits until one ends.
    #[cold]
    pub(super) fn starve(&self, slot: Slot) {
        self.shared.hungry.push(slot);
        // Another worker may have stacks in its cache.
        self.shared.notify_sleepers();
    }

    /// A new ULT that waited for a stack, if there is one now.
    #[inline]
    pub(super) fn feed(&self) -> Option<Slot> {
        if self.shared.hungry.is_empty() { None } else { self.feed_hungry() }
    }

    #[cold]
    fn feed_hungry(&self) -> Option<Slot> {
        let fed = self.shared.hungry.pop(|slot| {
            // SAFETY: nobody else takes it meanwhile.
            self.has_spare_stack(unsafe { slot.as_ref().class() })
        })?;
        // SAFETY: it waited for a stack, and is in no queue.
        match unsafe { fed.as_ref() }.worker() {
            Some(worker) if worker != self.index => {
                // It cannot have a stack out of our cache.
                self.stacks.with_mut(|cache| {
                    // SAFETY: this thread's own; nothing comes back here.
                    self.shared.stacks.drain(unsafe { &mut *cache })
                });
                self.route(fed);
                None
            }
            _ => Some(fed),
        }
    }

    pub(super) fn has_spare_stack(&self, class: Class) -> bool {
        // SAFETY: this thread's own.
        self.stacks.with(|cache| self.shared.stacks.has_spare(class, unsafe { &*cache }))
    }

    #[inline(always)]
    pub(super) fn check_canary(&self, slot: Slot, head: &Head) {
        if !head.is_intact() {
            // SAFETY: the task is this worker's.
            let task = unsafe { slot.as_ref() };
            // SAFETY: as above: it is not cleared.
            let name = unsafe { task.name() };
            Overflow { id: task.slot().into(), name, stack_bytes: head.bytes() }.abort()
        }
    }
}

/// What `overflow` asks in a signal handler: is `at` in the guard page of the
/// ULT that runs on this thread?
#[cfg(all(feature = "std", not(tsumugi_loom)))]
pub(in crate::sched) fn overflow_at(at: usize) -> Option<Overflow<'static>> {
    // SAFETY: this thread's worker, stopped in the middle of its ULT.
    let task = unsafe { current::worker()?.as_ref().current()?.as_ref() };
    // SAFETY: it runs.
    let head = unsafe { task.head() }?;
    head.is_guard(at).then(|| Overflow {
        id: task.slot().into(),
        // SAFETY: as above.
        name: unsafe { task.name() },
        stack_bytes: head.bytes(),
    })
}
