//! Looking at a suspension before it begins: whether it breaks a rule, see
//! `check`.
//!
//! In builds with debug assertions each is looked at where it begins. In others
//! those of a scheduler that is asked to check do not go the usual way, as while
//! somebody watches, and are looked at where the unusual one begins: so the usual
//! way costs nothing more.
//!
//! # Who unwinds
//!
//! The standard library counts panics by OS thread, and one that sleeps while it
//! unwinds leaves its count behind, to whoever runs there next. So that a thread
//! panics says nothing of the ULT on it; that it did not when that ULT went on
//! does. The worker notes it whenever it gives a ULT the thread, and each ULT
//! that leaves does for the next.

use super::Worker;
use crate::check::{Record, SuspensionCheck, is_first_to_unwind, tell};
use crate::host;
use crate::sched::UltId;
use crate::sched::record::Wanted;
use crate::slab::Slot;
use alloc::format;
use core::hint::cold_path;

impl Worker {
    /// Where each suspension begins.
    #[inline(always)]
    pub(crate) fn look_first(&self, slot: Slot, what: &'static str) {
        if cfg!(debug_assertions) && self.shared.suspension_check != SuspensionCheck::Off {
            self.look(slot, what);
        }
    }

    /// Where one begins that does not go the usual way.
    #[inline(always)]
    pub(crate) fn look_aside(&self, slot: Slot, what: &'static str) {
        if cfg!(not(debug_assertions)) && self.shared.wanted.has(Wanted::CHECK) {
            cold_path();
            self.look(slot, what);
        }
    }

    /// A ULT joins another, which may mean to run that one in its own place.
    #[inline(always)]
    pub(super) fn look_at_join(&self, joiner: Slot, child: Slot) {
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

    /// The same, where the unusual way is gone.
    pub(super) fn note_panics_aside(&self) {
        let comes_back = self.comes_back.take();
        if self.shared.suspension_check != SuspensionCheck::Off && !comes_back {
            self.panics.set(host::panicking());
        }
    }

    /// The running ULT is about to suspend.
    #[cold]
    #[inline(never)]
    fn look(&self, slot: Slot, what: &'static str) {
        // SAFETY: the running ULT.
        let task = unsafe { slot.as_ref() };
        let panics = host::panicking();
        let did = self.panics.replace(panics);
        let home = task.locals.with_mut(|locals| locals);
        if panics && !did && is_first_to_unwind() {
            self.report(slot, &format!("suspends ({what}) while it unwinds from a panic"));
        }
        // SAFETY: the running ULT's own.
        if let Some(made_at) = unsafe { Record::seen(home) }.and_then(|known| known.suspends(what))
        {
            self.report(slot, &format!("suspends ({what}) under the NoSuspend of {made_at}"));
        }
    }

    fn report(&self, slot: Slot, did: &str) {
        // SAFETY: the running ULT is not cleared.
        let name = unsafe { slot.as_ref().name() };
        let mut who = format!("{}", UltId::of(slot));
        if let Some(name) = name {
            who = format!("{who} ({name})");
        }
        tell(self.shared.suspension_check, &who, name.unwrap_or_default(), did);
    }
}
