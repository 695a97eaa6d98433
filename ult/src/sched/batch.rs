//! ULTs that are woken together: they are queued as one chain, and one
//! notification is sent for all of them.
//!
//! ```text
//!   first ─► ... ─► last         linked through the ULTs, the latest first
//! ```
//!
//! A worker pushes the ULTs to its own queue. A thread that is no worker pushes
//! the whole chain to the queue for ULTs from outside. Either rings for one
//! worker that sleeps. A searcher that found a ULT wakes the next sleeper, so as
//! many workers wake as there is work.
//!
//! Progress: lock-free, as a single wake.

use super::current;
use super::shared::SchedulerShared;
use super::waker;
use crate::inject::Linked;
use crate::slab::TaskSlot;
use core::ptr::{self, NonNull};
use tsumugi_core::mutate;
use tsumugi_core::sync::Ordering;
use tsumugi_core::wait::Waker;

/// ULTs of one scheduler with wakers that are used up. They sleep until the batch
/// is sent.
#[must_use = "ULTs in a batch sleep until it is sent"]
pub(crate) struct Batch {
    first: Option<TaskSlot>,
    last: Option<TaskSlot>,
}

impl Batch {
    pub(crate) const fn new() -> Self {
        Self { first: None, last: None }
    }

    /// Adds the ULT that the waker is for, if it may run on any worker: it wakes
    /// when the batch is sent. Wakes any other target of a waker at once.
    #[inline]
    pub(crate) fn wake(&mut self, waker: Waker) {
        let waker = match waker::sleeper_of(waker) {
            Ok(slot) => {
                // SAFETY: it sleeps, so it is alive.
                if unsafe { slot.as_ref() }.is_plain() {
                    return self.add(slot);
                }
                // SAFETY: the waker that was taken apart was for this ULT, and it
                // is used up by this call.
                return unsafe { SchedulerShared::ready(slot) };
            }
            Err(waker) => waker,
        };
        waker.wake();
    }

    #[inline]
    fn add(&mut self, slot: TaskSlot) {
        // SAFETY: both sleep, so they are alive.
        let (task, first) = unsafe { (slot.as_ref(), self.first.map(|first| first.as_ref())) };
        if first.is_some_and(|first| first.home() != task.home()) {
            core::mem::replace(self, Self::new()).send();
        }
        // The ULT's link is free: it sleeps, so it is in no queue, and this batch
        // has used up its waker.
        let next = self.first.map_or(ptr::null_mut(), NonNull::as_ptr);
        task.link().store(next, Ordering::Relaxed);
        self.first = Some(slot);
        self.last = self.last.or(Some(slot));
    }

    /// Makes the ULTs ready. On any thread.
    #[inline]
    pub(crate) fn send(self) {
        let (Some(first), Some(last)) = (self.first, self.last) else { return };
        if first == last {
            // SAFETY: the ULT's waker is used up.
            return unsafe { SchedulerShared::ready(first) };
        }
        // SAFETY: the ULTs sleep, and a sleeping ULT keeps its scheduler's memory.
        let home = unsafe { &*first.as_ref().home().cast::<SchedulerShared>() };
        match current::worker() {
            // SAFETY: the pointer is this thread's own worker; the ULTs' wakers
            // are used up.
            Some(worker) if home.has(unsafe { worker.as_ref() }) => unsafe {
                worker.as_ref().ready_all(first)
            },
            // SAFETY: the same.
            _ => unsafe { home.ready_all_from_outside(first, last) },
        }
    }
}

impl SchedulerShared {
    /// Makes a chain of sleeping ULTs ready. The calling thread is no worker of
    /// this scheduler.
    ///
    /// # Safety
    ///
    /// The caller used up the wakers of the ULTs; all of them may run on any worker.
    #[cold]
    unsafe fn ready_all_from_outside(&self, first: TaskSlot, last: TaskSlot) {
        // A scheduler that has ended has cut the ULTs off, and has kept them.
        let Some(_visit) = self.visit() else { return };
        let mut chain = Some(first);
        while let Some(slot) = chain {
            // SAFETY: the ULT sleeps, and its waker is used up, so no other
            // thread accesses it until it is pushed.
            let task = unsafe { slot.as_ref() };
            task.set_runnable();
            chain = NonNull::new(task.link().load(Ordering::Relaxed));
        }
        mutate!("batch_told_early": () => self.notify_sleepers());
        // SAFETY: the ULTs slept, so they are in no queue.
        unsafe { self.inject.push_all(first.as_ptr(), last.as_ptr()) };
        mutate!("batch_told_early": self.notify_sleepers() => ());
    }
}
