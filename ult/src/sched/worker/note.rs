//! Counting what happens, and recording events while that is requested.

use super::thread::Worker;
use crate::fp::FpControl;
use crate::sched::record::{EventKind, UltEvent, WorkerRequests};
use crate::sched::worker_slot::WorkerSlot;
use crate::slab::TaskSlot;
use crate::stack::{Left, StackHead};
use crate::task::{SuspendRequest, Task};
use core::ptr;
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::Ordering;

impl Worker {
    /// Counts a ULT that was just filled.
    #[inline(always)]
    pub(crate) fn note_spawned(&self, slot: TaskSlot) {
        self.count(Counter::Spawned);
        self.note(EventKind::Spawn, slot);
    }

    /// Adds one to a counter; does nothing in the model, where it would only cost
    /// time.
    #[inline(always)]
    pub(crate) fn count(&self, counter: Counter) {
        self.count_at(self.worker_slot(), counter);
    }

    /// Adds one to a counter of `worker_slot`, which is this worker's.
    #[inline(always)]
    pub(super) fn count_at(&self, worker_slot: &WorkerSlot, counter: Counter) {
        if cfg!(not(tsumugi_loom)) {
            worker_slot.counters.bump(counter);
        }
    }

    /// Records what happens to a ULT, if events are recorded.
    #[inline(always)]
    pub(super) fn note(&self, kind: EventKind, slot: TaskSlot) {
        if self.shared.wanted.any() {
            // SAFETY: a ULT to which something happens is alive.
            self.record(kind, unsafe { slot.as_ref() }, "");
        }
    }

    /// Records that a ULT came from another thread, woken or new, if events are
    /// recorded.
    #[inline(always)]
    pub(super) fn note_come(&self, slot: TaskSlot, woken: bool) {
        if self.shared.wanted.any() {
            // SAFETY: the ULT was taken from a queue, so it is this worker's.
            let task = unsafe { slot.as_ref() };
            self.record(EventKind::Come, task, if woken { "wake" } else { "spawn" });
        }
    }

    #[cold]
    fn record(&self, kind: EventKind, task: &Task, what: &'static str) {
        if self.shared.wanted.has(WorkerRequests::TRACE) {
            let generation = task.generation.load(Ordering::Relaxed);
            let at = self.shared.now();
            self.worker_slot().notes.record(UltEvent {
                at,
                kind,
                slot: task.slot(),
                generation,
                what,
            });
        }
    }

    /// Resumes a ULT that has control words of its own, or while events are
    /// recorded.
    ///
    /// # Safety
    ///
    /// As for `StackHead::resume`.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn resume_with_care(&self, slot: TaskSlot, head: &StackHead) -> Left {
        // SAFETY: the caller's.
        let task = unsafe { slot.as_ref() };
        let looked_at = self.shared.wanted.any();
        if looked_at {
            self.worker_slot().notes.set_running(slot.as_ptr());
            self.record(EventKind::Run, task, "");
            // In builds with debug assertions the caller has done that.
            if cfg!(not(debug_assertions)) {
                self.note_panics_aside();
            }
        }
        // SAFETY: by the caller's contract the task is this worker's until it has
        // left.
        let fp = unsafe { task.fp() };
        let before = FpControl::read();
        if let Some(fp) = fp {
            // SAFETY: as above.
            fp.with(|fp| unsafe { *fp }).write();
        }
        // SAFETY: the caller's.
        let left =
            unsafe { head.resume(task.saved(), &self.link, slot.as_ptr().cast_const().cast()) };
        if let Some(fp) = fp {
            // SAFETY: as above. A ULT that has control words does not switch
            // directly to another, so the words on this thread are still this ULT's.
            fp.with_mut(|fp| unsafe { *fp = FpControl::read() });
            before.write();
        }
        if looked_at {
            self.note_left(left);
        }
        left
    }

    /// Records how the ULT that ran last has left.
    #[cold]
    fn note_left(&self, left: Left) {
        self.worker_slot().notes.set_running(ptr::null_mut());
        let Some(slot) = self.current() else { return };
        // SAFETY: the ULT has just left this worker, and is not queued yet.
        let task = unsafe { slot.as_ref() };
        if left.is_end() {
            return self.record(EventKind::End, task, "");
        }
        let mut left = left;
        loop {
            if left.is_yield() {
                return self.record(EventKind::Yield, task, "");
            }
            if left.is_park() {
                return self.record(EventKind::Sleep, task, "park");
            }
            if left.is_asleep() {
                return self.record(EventKind::Sleep, task, task.what());
            }
            // SAFETY: the request is on a stack that is suspended.
            match unsafe { &*left.into_request::<SuspendRequest>() } {
                SuspendRequest::Sleep(_) => {
                    return self.record(EventKind::Sleep, task, task.what());
                }
                SuspendRequest::OnOsStack(_) => {
                    return self.record(EventKind::Sleep, task, "on_os_stack");
                }
                SuspendRequest::RunFirst(_) => return self.record(EventKind::Yield, task, ""),
                // The request with which the innermost ULT left.
                SuspendRequest::Follow(follow) => left = follow.left,
            }
        }
    }
}
