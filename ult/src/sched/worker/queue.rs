//! Where ULTs that may run are queued: in the worker's own queues, or in another
//! worker's.

use super::thread::Worker;
use crate::handoff::HandoffBatch;
use crate::inject::Linked;
use crate::sched::record::EventKind;
use crate::sched::shared::SchedulerShared;
use crate::sched::worker_slot::WorkerSlot;
use crate::slab::TaskSlot;
use crate::task::Task;
use core::hint::cold_path;
use core::ptr::{self, NonNull};
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::Ordering;

impl Worker {
    /// Queues a ULT that was just filled.
    #[inline]
    pub(crate) fn spawned(&self, slot: TaskSlot) {
        self.note_spawned(slot);
        self.push(slot);
    }

    /// Queues a ULT that was just filled and given traits.
    ///
    /// # Panics
    ///
    /// If the ULT is to stay on a worker that does not exist.
    pub(crate) fn spawned_with_traits(&self, slot: TaskSlot) {
        self.note_spawned(slot);
        self.route(slot);
    }

    /// Queues a ULT that slept, or hands it to the worker on which it slept.
    ///
    /// # Safety
    ///
    /// The caller used up the ULT's waker; this is the calling thread's worker.
    // Inlined where a ULT unparks another: a call takes as long as the rest.
    #[inline(always)]
    pub(crate) unsafe fn ready(&self, slot: TaskSlot) {
        self.count(Counter::Wakes);
        // SAFETY: the ULT sleeps, so it is alive.
        let task = unsafe { slot.as_ref() };
        let last = task.last();
        // What is seldom needed is done in tail calls, so that this function
        // saves no registers.
        if self.shared.wanted.any()
            || !task.is_plain()
            || self.handing_over.get()
            || last != self.index
        {
            // SAFETY: by the caller's contract the waker is used up.
            return unsafe { self.ready_in_particular(slot) };
        }
        task.set_runnable();
        self.push(slot);
    }

    /// Does what `ready` does for a ULT that parked, on the only worker: there is
    /// no worker to be woken and no thief. The scheduler and the worker slot are the
    /// worker's own.
    ///
    /// # Safety
    ///
    /// As for [`ready`](Self::ready).
    #[inline(always)]
    pub(super) unsafe fn ready_alone(
        &self,
        shared: &SchedulerShared,
        worker_slot: &WorkerSlot,
        slot: TaskSlot,
    ) {
        // SAFETY: the ULT sleeps, so it is alive.
        let task = unsafe { slot.as_ref() };
        if shared.wanted.any() || !task.is_for_all() {
            cold_path();
            // SAFETY: by the caller's contract the waker is used up.
            return unsafe { self.ready_in_particular(slot) };
        }
        // SAFETY: we are the worker slot's owner.
        unsafe { worker_slot.ready.push(slot.as_ptr()) };
    }

    #[inline(never)]
    unsafe fn ready_in_particular(&self, slot: TaskSlot) {
        self.note(EventKind::Wake, slot);
        // SAFETY: the ULT sleeps, so it is alive.
        let task = unsafe { slot.as_ref() };
        if !task.is_plain() {
            task.set_runnable();
            return self.route(slot);
        }
        if self.handing_over.get() && self.next.get().is_null() {
            task.set_runnable();
            self.set_next(slot);
            return;
        }
        let last = task.last();
        if last != self.index && self.shared.worker_slots[last].handoff.try_send(slot.into()) {
            return;
        }
        task.set_runnable();
        self.push(slot);
    }

    /// Queues a chain of ULTs that slept and may run on any worker, and notifies
    /// other workers once. A ULT that ran last on a worker which spins now is
    /// handed to that worker.
    ///
    /// # Safety
    ///
    /// The caller used up the wakers of the ULTs; this is the calling thread's
    /// worker.
    pub(crate) unsafe fn ready_all(&self, first: TaskSlot) {
        let worker_slot = self.worker_slot();
        let mut chain = Some(first);
        while let Some(slot) = chain {
            // The link is read before another worker can have the ULT.
            chain = self.next_of(slot);
            self.count(Counter::Wakes);
            self.note(EventKind::Wake, slot);
            // SAFETY: the ULT sleeps, so it is alive.
            let task = unsafe { slot.as_ref() };
            let last = task.last();
            if last != self.index {
                let handoff = &self.shared.worker_slots[last].handoff;
                if handoff.is_open() && handoff.try_send(slot.into()) {
                    continue;
                }
            }
            task.set_runnable();
            // SAFETY: we are the worker slot's owner.
            unsafe { worker_slot.ready.push(slot.as_ptr()) };
        }
        self.notify();
    }

    /// Takes what came through the hand-off slot: returns the first ULT, and
    /// queues the ULTs linked to it.
    pub(super) fn accept_batch(&self, batch: HandoffBatch<Task>) -> TaskSlot {
        if batch.more {
            self.queue_all(self.next_of(batch.first));
        }
        // SAFETY: the sender handed the ULT over to this worker.
        let slept = unsafe { batch.first.as_ref() }.set_awake();
        // On the only worker the ULT's state may not tell that it slept (see
        // `pass`), but only woken ULTs come through the hand-off slot there.
        if slept || self.shared.worker_slots.len() == 1 {
            self.count(Counter::WokenAfar);
            self.note_come(batch.first, true);
        } else {
            self.count(Counter::Steals);
            self.note(EventKind::Steal, batch.first);
        }
        batch.first
    }

    /// Queues what came through the hand-off slot, when another ULT is to run.
    #[cold]
    pub(super) fn queue_batch(&self, batch: HandoffBatch<Task>) {
        let slot = self.accept_batch(batch);
        // SAFETY: as in `accept_batch`.
        if unsafe { slot.as_ref() }.is_plain() { self.push(slot) } else { self.route(slot) }
    }

    /// Queues a ULT and the ULTs linked to it.
    fn queue_all(&self, mut chain: Option<TaskSlot>) {
        while let Some(slot) = chain {
            chain = self.next_of(slot);
            // SAFETY: we are the worker slot's owner.
            unsafe { self.worker_slot().ready.push(slot.as_ptr()) };
        }
    }

    fn next_of(&self, slot: TaskSlot) -> Option<TaskSlot> {
        // SAFETY: the worker that takes a chain has all the ULTs of it.
        NonNull::new(unsafe { slot.as_ref() }.link().load(Ordering::Relaxed))
    }

    /// Puts the oldest of several ULTs into the public slot, for a worker that has
    /// nothing. The public slot must be empty.
    fn publish(&self) {
        let worker_slot = self.worker_slot();
        let (mut first, mut last, mut count) = (None, None, 0);
        // SAFETY: we are the worker slot's owner.
        unsafe {
            worker_slot.ready.take_part(|task| {
                let slot = NonNull::new(task);
                (*task).link().store(ptr::null_mut(), Ordering::Relaxed);
                match last {
                    None => first = slot,
                    Some(last) => {
                        NonNull::<Task>::as_ref(&last).link().store(task, Ordering::Relaxed)
                    }
                }
                (last, count) = (slot, count + 1);
            });
        }
        let Some(first) = first else { return };
        // SAFETY: we are the worker slot's owner, and only the owner fills the public slot.
        unsafe { worker_slot.public_slot.publish(HandoffBatch { first, more: count > 1 }) };
    }

    /// Takes back what this worker had published, and returns the youngest of it.
    #[cold]
    #[inline(never)]
    pub(super) fn take_back(&self) -> Option<TaskSlot> {
        let batch = self.worker_slot().public_slot.take()?;
        if !batch.more {
            return Some(batch.first);
        }
        self.queue_all(Some(batch.first));
        // SAFETY: we are the worker slot's owner.
        let youngest = unsafe { self.worker_slot().ready.pop() };
        // The other ULTs were in no queue meanwhile.
        self.notify();
        NonNull::new(youngest?)
    }

    /// Queues a ULT again that was published, if it is the first in the public slot and
    /// the deque is empty. Returns whether it is the youngest of the deque now.
    pub(super) fn queues_again(&self, wanted: TaskSlot) -> bool {
        let worker_slot = self.worker_slot();
        if worker_slot.public_slot.seen().map(|batch| batch.first) != Some(wanted)
            || !worker_slot.ready.is_empty()
        {
            return false;
        }
        let Some(batch) = worker_slot.public_slot.take() else { return false };
        self.queue_all(Some(batch.first));
        if batch.more {
            // The ULTs were in no queue meanwhile.
            self.notify();
        }
        !batch.more
    }

    /// Brings a ULT to the front of the own deque; false if it is not among the
    /// [`REACH`] youngest.
    pub(crate) fn bring_forward(&self, wanted: TaskSlot) -> bool {
        let (mut others, mut found) = ([ptr::null_mut(); REACH], false);
        let mut count = 0;
        while count < REACH && !found {
            // SAFETY: we are the worker slot's owner.
            let Some(task) = (unsafe { self.worker_slot().ready.pop() }) else { break };
            found = ptr::eq(task, wanted.as_ptr());
            if !found {
                others[count] = task;
                count += 1;
            }
        }
        for task in others[..count].iter().rev() {
            // SAFETY: as above.
            unsafe { self.worker_slot().ready.push(*task) };
        }
        if !found && self.worker_slot().public_slot.seen().map(|batch| batch.first) == Some(wanted)
        {
            let batch = self.worker_slot().public_slot.take();
            found = batch.is_some();
            if let Some(HandoffBatch { more: true, .. }) = batch {
                self.queue_all(self.next_of(wanted));
            }
        }
        if found {
            // SAFETY: as above.
            unsafe { self.worker_slot().ready.push(wanted.as_ptr()) };
        }
        // The ULTs were in no queue meanwhile.
        self.notify();
        found
    }

    /// Whether this worker has other ULTs to run.
    pub(crate) fn is_busy(&self) -> bool {
        let worker_slot = self.worker_slot();
        !worker_slot.ready.is_empty()
            || worker_slot.public_slot.is_full()
            || !worker_slot.yielded.is_empty()
            || self.own_count.get() > 0
    }

    /// Queues a ULT that must stay on a worker, or is urgent.
    #[cold]
    pub(super) fn route(&self, slot: TaskSlot) {
        // SAFETY: the ULT is this worker's until it is queued.
        let task = unsafe { slot.as_ref() };
        match task.worker() {
            Some(worker) if worker == self.index => self.keep(slot),
            // SAFETY: as above.
            Some(worker) => unsafe { self.shared.post(worker, slot) },
            None if task.is_plain() => self.push(slot),
            None => {
                // The ULT comes before all others, on the worker that looks first.
                // SAFETY: as above.
                unsafe { self.shared.push_urgent(slot) };
                self.notify();
            }
        }
    }

    /// Queues a ULT that stays on this worker.
    #[cold]
    pub(super) fn keep(&self, slot: TaskSlot) {
        self.own.borrow_mut().push_back(slot);
        self.own_count.set(self.own_count.get() + 1);
        self.block_direct_switches();
    }

    #[inline]
    pub(super) fn push(&self, slot: TaskSlot) {
        // SAFETY: we are the worker slot's owner.
        unsafe { self.worker_slot().ready.push(slot.as_ptr()) };
        self.notify();
    }

    /// Lets other workers have a part of what was pushed, if there are any. What
    /// is seldom needed is a tail call, so that the rest saves no registers.
    #[inline(always)]
    pub(super) fn notify(&self) {
        if !self.worker_slot().public_slot.is_calm() {
            self.serve_idle();
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn serve_idle(&self) {
        let worker_slot = self.worker_slot();
        if !worker_slot.public_slot.is_full() && worker_slot.ready.has_several() {
            self.publish();
        }
        if self.shared.sleepers() > 0 {
            self.shared.notify_sleepers();
        }
    }

    #[inline]
    pub(super) fn queue_yielded(&self, slot: TaskSlot) {
        self.count(Counter::Yields);
        // SAFETY: the ULT is this worker's until it is pushed.
        let task = unsafe { slot.as_ref() };
        task.set_runnable();
        if !task.is_plain() && task.worker().is_some() {
            return self.keep(slot);
        }
        let worker_slot = self.worker_slot();
        // SAFETY: we are the worker slot's owner.
        unsafe { worker_slot.yielded.push(slot.as_ptr()) };
        if self.shared.sleepers() > 0 {
            self.publish_yielded();
        }
    }

    /// Wakes a sleeping worker if this worker has more than one ULT.
    #[cold]
    fn publish_yielded(&self) {
        let worker_slot = self.worker_slot();
        if !worker_slot.ready.is_empty()
            || worker_slot.yielded.has_several()
            || worker_slot.public_slot.is_full()
            || self.own_count.get() > 0
        {
            self.shared.notify_sleepers();
        }
    }
}

/// How many ULTs `bring_forward` looks at.
const REACH: usize = 64;
