//! ULTs that are woken together: queued as one chain, and told of once.
//!
//! ```text
//!   first ─► ... ─► last         linked through the ULTs, the latest first
//! ```
//!
//! A worker queues them for itself; whoever is no worker pushes the whole chain
//! to the outsiders' queue. Either rings for one worker that sleeps: a searcher
//! that found something passes the search on, so as many come as there is work.
//!
//! Progress: as waking one, lock-free.

use super::current;
use super::shared::Shared;
use super::worker;
use crate::inject::Linked;
use crate::slab::Slot;
use core::ptr::{self, NonNull};
use tsumugi_core::sync::{Ordering, mutant};
use tsumugi_core::wait::Waker;

/// ULTs of one scheduler whose wakers are used up, and which sleep until they
/// are sent.
#[must_use = "ULTs in a batch sleep until it is sent"]
pub(crate) struct Batch {
    first: Option<Slot>,
    last: Option<Slot>,
}

impl Batch {
    pub(crate) const fn new() -> Self {
        Self { first: None, last: None }
    }

    /// Wakes a ULT that may run on any worker when the batch is sent; whoever
    /// else the waker is for, at once.
    #[inline]
    pub(crate) fn wake(&mut self, waker: Waker) {
        let waker = match worker::sleeper_of(waker) {
            Ok(slot) => {
                // SAFETY: it sleeps, so it is alive.
                if unsafe { slot.as_ref() }.is_plain() {
                    return self.add(slot);
                }
                // SAFETY: it is the waker's that was taken apart.
                return unsafe { Shared::ready(slot) };
            }
            Err(waker) => waker,
        };
        waker.wake();
    }

    #[inline]
    fn add(&mut self, slot: Slot) {
        // SAFETY: both sleep, so they are alive.
        let (task, first) = unsafe { (slot.as_ref(), self.first.map(|first| first.as_ref())) };
        if first.is_some_and(|first| first.home() != task.home()) {
            core::mem::replace(self, Self::new()).send();
        }
        // Whoever has its waker has its link: it is in no queue.
        let next = self.first.map_or(ptr::null_mut(), NonNull::as_ptr);
        task.link().store(next, Ordering::Relaxed);
        self.first = Some(slot);
        self.last = self.last.or(Some(slot));
    }

    /// Makes them ready. On any thread.
    #[inline]
    pub(crate) fn send(self) {
        let (Some(first), Some(last)) = (self.first, self.last) else { return };
        if first == last {
            // SAFETY: its waker is used up.
            return unsafe { Shared::ready(first) };
        }
        // SAFETY: asleep, they keep their scheduler's memory.
        let home = unsafe { &*first.as_ref().home().cast::<Shared>() };
        match current::worker() {
            // SAFETY: the pointer is this thread's own worker; theirs are the
            // used up wakers.
            Some(worker) if home.has(unsafe { worker.as_ref() }) => unsafe {
                worker.as_ref().ready_all(first)
            },
            // SAFETY: the same.
            _ => unsafe { home.ready_all_from_outside(first, last) },
        }
    }
}

impl Shared {
    /// Makes a chain of ULTs ready that slept, on a thread that is no worker of
    /// ours.
    ///
    /// # Safety
    ///
    /// The caller used up their wakers; all of them may run on any worker.
    #[cold]
    unsafe fn ready_all_from_outside(&self, first: Slot, last: Slot) {
        // A scheduler that ended has cut the ULTs off, and kept them.
        let Some(_visit) = self.visit() else { return };
        let mut chain = Some(first);
        while let Some(slot) = chain {
            // SAFETY: asleep, and nobody else's until they are pushed.
            let task = unsafe { slot.as_ref() };
            task.set_runnable();
            chain = NonNull::new(task.link().load(Ordering::Relaxed));
        }
        if mutant("batch_told_early") {
            self.notify_sleepers();
        }
        // SAFETY: they were asleep, and so in no queue.
        unsafe { self.inject.push_all(first.as_ptr(), last.as_ptr()) };
        if !mutant("batch_told_early") {
            self.notify_sleepers();
        }
    }
}
