//! Counting what happens, and recording events while that is requested.

use super::thread::Worker;
use crate::fp::FpControl;
use crate::sched::record::{Event, Kind, Wanted};
use crate::sched::worker_slot::Seat;
use crate::slab::Slot;
use crate::stack::{Head, Left};
use crate::task::{Request, Task};
use core::ptr;
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::Ordering;

impl Worker {
    /// Counts a ULT that was just filled.
    #[inline(always)]
    pub(crate) fn note_spawned(&self, slot: Slot) {
        self.count(Counter::Spawned);
        self.note(Kind::Spawn, slot);
    }

    /// Adds one to a counter; does nothing in the model, where it would only cost
    /// time.
    #[inline(always)]
    pub(crate) fn count(&self, counter: Counter) {
        self.count_at(self.seat(), counter);
    }

    /// Adds one to a counter of `seat`, which is this worker's.
    #[inline(always)]
    pub(super) fn count_at(&self, seat: &Seat, counter: Counter) {
        if cfg!(not(tsumugi_loom)) {
            seat.counters.bump(counter);
        }
    }

    /// Records what happens to a ULT, if events are recorded.
    #[inline(always)]
    pub(super) fn note(&self, kind: Kind, slot: Slot) {
        if self.shared.wanted.any() {
            // SAFETY: a ULT to which something happens is alive.
            self.record(kind, unsafe { slot.as_ref() }, "");
        }
    }

    /// Records that a ULT came from another thread, woken or new, if events are
    /// recorded.
    #[inline(always)]
    pub(super) fn note_come(&self, slot: Slot, woken: bool) {
        if self.shared.wanted.any() {
            // SAFETY: the ULT was taken from a queue, so it is this worker's.
            let task = unsafe { slot.as_ref() };
            self.record(Kind::Come, task, if woken { "wake" } else { "spawn" });
        }
    }

    #[cold]
    fn record(&self, kind: Kind, task: &Task, what: &'static str) {
        if self.shared.wanted.has(Wanted::TRACE) {
            let generation = task.generation.load(Ordering::Relaxed);
            let at = self.shared.now();
            self.seat().notes.record(Event { at, kind, slot: task.slot(), generation, what });
        }
    }

    /// Resumes a ULT that has control words of its own, or while events are
    /// recorded.
    ///
    /// # Safety
    ///
    /// As for `Head::resume`.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn resume_with_care(&self, slot: Slot, head: &Head) -> Left {
        // SAFETY: the caller's.
        let task = unsafe { slot.as_ref() };
        let looked_at = self.shared.wanted.any();
        if looked_at {
            self.seat().notes.set_running(slot.as_ptr());
            self.record(Kind::Run, task, "");
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
        self.seat().notes.set_running(ptr::null_mut());
        let Some(slot) = self.current() else { return };
        // SAFETY: the ULT has just left this worker, and is not queued yet.
        let task = unsafe { slot.as_ref() };
        if left.is_end() {
            return self.record(Kind::End, task, "");
        }
        let mut left = left;
        loop {
            if left.is_yield() {
                return self.record(Kind::Yield, task, "");
            }
            if left.is_park() {
                return self.record(Kind::Sleep, task, "park");
            }
            if left.is_asleep() {
                return self.record(Kind::Sleep, task, task.what());
            }
            // SAFETY: the request is on a stack that is suspended.
            match unsafe { &*left.into_request::<Request>() } {
                Request::Sleep(_) => {
                    return self.record(Kind::Sleep, task, task.what());
                }
                Request::OnOsStack(_) => return self.record(Kind::Sleep, task, "on_os_stack"),
                Request::RunFirst(_) => return self.record(Kind::Yield, task, ""),
                // The request with which the innermost ULT left.
                Request::Follow(follow) => left = follow.left,
            }
        }
    }
}
