//! Waking ULTs, and waking the workers that are to run them.

use super::current;
use super::shared::SchedulerShared;
use crate::futex::SystemFutex;
use crate::slab::TaskSlot;
use crate::task::Task;
use crate::token::FoundSleeper;
use tsumugi_core::mutate;
use tsumugi_core::sync::{Ordering, fence};

impl SchedulerShared {
    /// Makes a ULT ready. On any thread.
    ///
    /// # Safety
    ///
    /// The caller used up the ULT's waker.
    #[inline]
    pub(crate) unsafe fn ready(slot: TaskSlot) {
        // SAFETY: a task that may be made ready is alive.
        let task = unsafe { slot.as_ref() };
        // SAFETY: a ULT that is alive keeps its scheduler's memory.
        let home = unsafe { &*task.home().cast::<Self>() };
        match current::worker() {
            // SAFETY: the pointer is this thread's own worker.
            Some(worker) if home.has(unsafe { worker.as_ref() }) => unsafe {
                worker.as_ref().ready(slot)
            },
            // SAFETY: by the caller's contract the waker is used up.
            _ => unsafe { home.ready_from_outside(slot) },
        }
    }

    /// Parks a ULT that has left this thread's worker, the name of which is `me`.
    /// False: there was a token, and the ULT goes on.
    #[inline(always)]
    pub(in crate::sched) fn begin_park(&self, task: &Task, me: usize) -> bool {
        let parks = self.parks();
        // With several workers the first worker's slot is not read: that worker
        // writes there all the time, and a load would take its cache line.
        if self.worker_slots.len() > 1 || !parks.enter(me) {
            task.set_parked();
            return task.park.begin();
        }
        let asleep = task.park.begin_alone();
        parks.leave();
        asleep
    }

    /// Unparks the ULT that has this descriptor now. On any thread.
    ///
    /// # Safety
    ///
    /// `slot` is a descriptor of this scheduler.
    #[inline(always)]
    pub(crate) unsafe fn unpark(&self, slot: TaskSlot) {
        if let Some(worker) = current::worker() {
            // SAFETY: the pointer is this thread's own worker.
            let worker = unsafe { worker.as_ref() };
            // SAFETY: the caller's.
            if self.has(worker) && unsafe { worker.unpark_alone(self, slot) } {
                return;
            }
        }
        // SAFETY: the caller's.
        unsafe { self.unpark_shared(slot) }
    }

    /// Unparks a ULT that other threads may unpark at the same time.
    #[inline(never)]
    unsafe fn unpark_shared(&self, slot: TaskSlot) {
        // SAFETY: as in `unpark`.
        let task = unsafe { slot.as_ref() };
        // SAFETY: the pointer is this thread's own worker.
        let worker = current::worker().filter(|worker| self.has(unsafe { worker.as_ref() }));
        if worker.is_none() {
            self.parks().end_and_wait();
        }
        match (task.park.unpark(), worker) {
            (FoundSleeper::Awake, _) => {}
            // SAFETY: this call ended the park, which is the same as using up a
            // waker.
            (FoundSleeper::Parked, Some(worker)) => unsafe { worker.as_ref().ready(slot) },
            // SAFETY: the same.
            (FoundSleeper::Parked, None) => unsafe { self.ready_from_outside(slot) },
            (FoundSleeper::Limited, _) => end_limited_park(task),
        }
    }

    /// Makes a ULT ready on any thread, at any point: async-signal-safe.
    ///
    /// # Safety
    ///
    /// As for [`ready`](Self::ready).
    pub(crate) unsafe fn wake_from_outside(slot: TaskSlot) {
        // SAFETY: a ULT that sleeps is alive, and so is its scheduler's memory.
        unsafe { (*slot.as_ref().home().cast::<Self>()).ready_from_outside(slot) };
    }

    /// Makes a ULT ready that slept. The calling thread is no worker of this
    /// scheduler.
    ///
    /// # Safety
    ///
    /// As for [`ready`](Self::ready).
    unsafe fn ready_from_outside(&self, slot: TaskSlot) {
        // SAFETY: the caller's.
        let task = unsafe { slot.as_ref() };
        let last = task.last();
        // No visit is needed: a sleeping ULT keeps its scheduler's memory even
        // beyond the scheduler's end, and after the ULT is sent nothing of that
        // memory is accessed.
        if self.worker_slots[last].handoff.try_send(slot.into()) {
            return;
        }
        // A scheduler that has ended has cut the ULT off, and has kept it.
        let Some(_visit) = self.visit() else { return };
        task.set_runnable();
        // SAFETY: the ULT was asleep, and so in no queue.
        unsafe { self.inject(slot) };
    }

    /// Queues a ULT from a thread that is no worker.
    ///
    /// # Safety
    ///
    /// The ULT is in no queue, and may run.
    pub(crate) unsafe fn inject(&self, slot: TaskSlot) {
        // SAFETY: the caller's.
        unsafe {
            let task = slot.as_ref();
            if let Some(worker) = task.worker() {
                return self.post(worker, slot);
            }
            if task.is_plain() {
                self.inject.push(slot.as_ptr());
            } else {
                self.push_urgent(slot);
            }
        }
        self.notify_sleepers();
    }

    /// Queues a ULT that comes before all others.
    ///
    /// # Safety
    ///
    /// As for [`inject`](Self::inject).
    pub(crate) unsafe fn push_urgent(&self, slot: TaskSlot) {
        mutate!("urgent_said_early": () => self.wanted.ask_for_urgent());
        // SAFETY: the caller's.
        unsafe { self.urgent.push(slot.as_ptr()) };
        mutate!("urgent_said_early": self.wanted.ask_for_urgent() => ());
    }

    /// Queues a ULT for this worker alone.
    ///
    /// # Safety
    ///
    /// As for [`inject`](Self::inject).
    pub(crate) unsafe fn post(&self, worker: usize, slot: TaskSlot) {
        // SAFETY: the caller's.
        unsafe { self.worker_slots[worker].pinned.push(slot.as_ptr()) };
        // No fence: a worker that is about to sleep and `ring_one` change one word, and the
        // second of the two sees what came before the first.
        self.bells.ring_one(worker, &SystemFutex);
    }

    /// Returns how many workers sleep. Called by a worker after a push; it must
    /// wake one if there are any.
    #[inline(always)]
    pub(crate) fn sleepers(&self) -> usize {
        // Pairs with the heavy half before a worker's last look.
        mutate!("notify_no_light": self.fences.light() => ());
        self.idle.sleepers.load(Ordering::Relaxed)
    }

    /// Wakes a worker if one sleeps and none searches. Called after a push, on
    /// any thread.
    #[cold]
    pub(crate) fn notify_sleepers(&self) {
        // SeqCst: between the push and the loads below; pairs with the fence
        // before a worker's last look.
        mutate!("notify_no_fence": fence(Ordering::SeqCst) => ());
        if self.idle.searching.load(Ordering::Relaxed) == 0 && self.bells.asleep() > 0 {
            self.bells.ring(&SystemFutex);
        }
    }
}

/// Wakes a ULT that parked with a time limit. The caller has ended its park.
#[cold]
pub(in crate::sched) fn end_limited_park(task: &Task) {
    // SAFETY: the ULT is parked, so it is on a stack.
    let head = unsafe { task.head().expect("a ULT that parks is on a stack") };
    // SAFETY: the caller ended the park, so only this thread takes the waker.
    let waker = head.park_waker.with_mut(|slot| unsafe { (*slot).take() });
    waker.expect("a parked ULT left a waker").wake();
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
