//! Checks of a suspension before it begins: whether it breaks a rule, see `check`.
//!
//! In builds with debug assertions each suspension is checked where it begins. In
//! other builds, if the scheduler is configured to check, its suspensions take
//! the slow path, as they do while events are recorded, and are checked where the
//! slow path begins. So the checks cost nothing on the fast path.
//!
//! # Which ULT unwinds
//!
//! The standard library counts panics by OS thread. A ULT that sleeps while it
//! unwinds leaves its count behind on that thread, where it counts for the next
//! ULT. So from "this thread panics" nothing follows for the ULT on it. But if
//! the thread panics now and did not when the ULT was resumed, this ULT unwinds.
//! So the worker notes whether the thread panics whenever it resumes a ULT, and
//! each ULT that leaves notes it for the next one.

use super::thread::Worker;
use crate::check::{SuspensionCheck, SuspensionRecord, is_first_to_unwind, tell};
use crate::host;
use crate::sched::UltId;
use crate::sched::record::WorkerRequests;
use crate::slab::TaskSlot;
use alloc::format;
use core::hint::cold_path;

impl Worker {
    /// Checks a suspension, where each one begins.
    #[inline(always)]
    pub(crate) fn look_first(&self, slot: TaskSlot, what: &'static str) {
        if cfg!(debug_assertions) && self.shared.suspension_check != SuspensionCheck::Off {
            self.look(slot, what);
        }
    }

    /// Checks a suspension in builds without debug assertions, where the slow
    /// path begins.
    #[inline(always)]
    pub(crate) fn look_aside(&self, slot: TaskSlot, what: &'static str) {
        if cfg!(not(debug_assertions)) && self.shared.wanted.has(WorkerRequests::CHECK) {
            cold_path();
            self.look(slot, what);
        }
    }

    /// Checks a join, in which the joiner may run the other ULT in its own place.
    #[inline(always)]
    pub(super) fn look_at_join(&self, joiner: TaskSlot, child: TaskSlot) {
        // SAFETY: the caller of the join has the handle.
        if cfg!(debug_assertions) && !unsafe { child.as_ref() }.has_finished() {
            self.look_first(joiner, "join");
        }
    }

    /// Notes whether this thread panics, for the ULT that runs from here on.
    #[inline(always)]
    pub(super) fn note_panics(&self) {
        if cfg!(debug_assertions) {
            self.note_panics_aside();
        }
    }

    /// The same, on the slow path of builds without debug assertions.
    pub(super) fn note_panics_aside(&self) {
        let comes_back = self.comes_back.take();
        if self.shared.suspension_check != SuspensionCheck::Off && !comes_back {
            self.panics.set(host::panicking());
        }
    }

    /// Checks the running ULT, which is about to suspend.
    #[cold]
    #[inline(never)]
    fn look(&self, slot: TaskSlot, what: &'static str) {
        // SAFETY: the running ULT.
        let task = unsafe { slot.as_ref() };
        let panics = host::panicking();
        let did = self.panics.replace(panics);
        let home = task.locals.with_mut(|locals| locals);
        if panics && !did && is_first_to_unwind() {
            self.report(slot, &format!("suspends ({what}) while it unwinds from a panic"));
        }
        // SAFETY: the record is the running ULT's own.
        let record = unsafe { SuspensionRecord::seen(home) };
        if let Some(made_at) = record.and_then(|record| record.suspends(what)) {
            self.report(slot, &format!("suspends ({what}) under the NoSuspend made at {made_at}"));
        }
    }

    fn report(&self, slot: TaskSlot, did: &str) {
        // SAFETY: the running ULT is not cleared.
        let name = unsafe { slot.as_ref().name() };
        let mut who = format!("{}", UltId::of(slot));
        if let Some(name) = name {
            who = format!("{who} ({name})");
        }
        tell(self.shared.suspension_check, &who, name.unwrap_or_default(), did);
    }
}
