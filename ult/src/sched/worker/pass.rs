//! Leaving without the hub: a ULT that yields or parks goes straight to the one
//! that the hub would take next, if there is one worker.
//!
//! A hub does after the switch what would let another worker resume a ULT that
//! is still running. Where there is no other worker, nobody can, whatever is
//! said of the ULT before the switch: threads that are no workers queue ULTs,
//! and do not run them. So it is the running ULT that queues itself, or says
//! that it is parked, takes the next, and switches once, not twice.
//!
//! Whatever is not usual is left to the hub, and every so often everything is:
//! see [`FAIR_TURN`](super::search::FAIR_TURN).

use super::Worker;
use super::search::SWITCH;
use crate::slab::Slot;
use crate::stack::Head;
use crate::task::Task;
use core::ptr::{self, NonNull};
use tsumugi_core::stats::Counter;

impl Worker {
    /// Queues the running ULT, which lets others run, and makes the oldest of
    /// those that did so before the running one: the caller is to switch to
    /// it. If it is the only one here, it is its own next. `None`: it is to
    /// leave, and nothing has changed.
    ///
    /// Every so often it is, so that a yield loop comes to the hub.
    // Not inlined: it saves no registers, and a ULT's code has it but once.
    #[inline(never)]
    pub(crate) fn let_run<'a>(&self, slot: Slot) -> Option<&'a Head> {
        let seat = self.seat();
        // SAFETY: the running ULT is on a stack, which stays.
        let (task, head) = unsafe { (&*slot.as_ptr(), slot.as_ref().head().unwrap_unchecked()) };
        let until_fair = self.until_fair.get();
        if self.may_pass(until_fair, task, head)
            // SAFETY: we are the seat's owner.
            && unsafe { seat.ready.youngest() }.is_none()
            // SAFETY: the same, alone; what is queued is alive and ours.
            && let Some(next) = unsafe {
                seat.yielded.rotate(slot.as_ptr(), |oldest| (*oldest).is_usual())
            }
        {
            self.until_fair.set(until_fair - SWITCH);
            self.count_at(seat, Counter::Yields);
            task.set_yielded();
            self.current.set(next);
            // SAFETY: as above, and usual: `rotate` has asked.
            return Some(unsafe { (*next).go_on() });
        }
        self.is_alone().then_some(head)
    }

    /// Says that the running ULT is parked, and makes the youngest that may run
    /// the running one: the caller is to switch to it. If there is a token, that
    /// is taken, and the ULT is its own next. `None`: it is to leave, and nothing
    /// has changed.
    #[inline(never)]
    pub(crate) fn let_park<'a>(&self, slot: Slot) -> Option<&'a Head> {
        // SAFETY: the running ULT is on a stack, which stays.
        let (task, head) = unsafe { (&*slot.as_ptr(), slot.as_ref().head().unwrap_unchecked()) };
        let (until_fair, parks) = (self.until_fair.get(), &self.shared.parks);
        if self.may_pass(until_fair, task, head) && parks.go_in(self.name) {
            let seat = self.seat();
            // SAFETY: we are the seat's owner, alone; what is queued is alive and
            // ours.
            let next = unsafe { seat.ready.pop_alone_if(|youngest| (*youngest).is_usual()) };
            let asleep = next.is_some() && task.park.begin_alone();
            if asleep {
                // Nobody else has looked at the word until we go out.
                self.count_at(seat, Counter::Parks);
                self.note_since(head);
                task.set_parked();
            }
            parks.leave();
            match next {
                // SAFETY: we took it, and it is usual: `pop_alone_if` has asked.
                Some(next) if asleep => unsafe {
                    self.until_fair.set(until_fair - SWITCH);
                    self.current.set(next);
                    return Some((*next).go_on());
                },
                Some(next) => {
                    // SAFETY: we are the seat's owner.
                    unsafe { seat.ready.push(next) };
                    return Some(head);
                }
                None => {}
            }
        }
        task.park.take().then_some(head)
    }

    /// Whether the running ULT may pass its place on: this is the only worker,
    /// which has no part in its leaving, nor has a joiner below; and nothing
    /// comes before the own queues.
    #[inline(always)]
    fn may_pass(&self, until_fair: u32, task: &Task, head: &Head) -> bool {
        until_fair > SWITCH
            && self.ties.get() == 0
            && !self.shared.is_wanted()
            && task.is_free()
            && head.is_intact()
    }

    /// Makes a ULT the next, before any queue; answers which was.
    pub(super) fn set_next(&self, slot: Slot) -> Option<Slot> {
        let before = NonNull::new(self.next.replace(slot.as_ptr()));
        if before.is_none() {
            self.tie();
        }
        before
    }

    /// Takes the next.
    #[inline(always)]
    pub(super) fn take_next(&self) -> Option<Slot> {
        let next = NonNull::new(self.next.get())?;
        self.next.set(ptr::null_mut());
        self.untie();
        Some(next)
    }

    /// One reason more why nobody passes its place on.
    #[inline(always)]
    pub(super) fn tie(&self) {
        self.ties.set(self.ties.get() + 1);
    }

    /// One reason less.
    #[inline(always)]
    pub(super) fn untie(&self) {
        self.ties.set(self.ties.get() - 1);
    }

    /// Whether a ULT that would yield is the only one this worker knows of.
    /// Every so often it says no, so that a yield loop comes to the hub.
    // Seldom worth its place in `let_run`.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_alone(&self) -> bool {
        let seat = self.seat();
        let until_fair = self.until_fair.get();
        let alone = seat.yielded.is_empty()
            && seat.ready.is_empty()
            && until_fair > SWITCH
            && self.next.get().is_null()
            && !seat.offer.is_full()
            && self.own_count.get() == 0
            && seat.pinned.is_empty()
            && self.shared.urgent.is_empty()
            && self.shared.inject.is_empty();
        if alone {
            self.until_fair.set(until_fair - SWITCH);
        }
        alone
    }
}
