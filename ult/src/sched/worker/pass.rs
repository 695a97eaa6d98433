//! Leaving without the hub: a ULT that yields, parks or sleeps goes straight to the one
//! that the hub would take next, if there is one worker.
//!
//! A hub does after the switch what would let another worker resume a ULT that
//! is still running. Where there is no other worker, nobody can, whatever is
//! said of the ULT before the switch: threads that are no workers queue ULTs,
//! and do not run them. So it is the running ULT that queues itself, or says
//! that it sleeps, takes the next, and switches once, not twice.
//!
//! Whatever is not usual is left to the hub, and every so often everything is:
//! see [`Turn`](crate::sched::turn::Turn).

use super::{AbortOnUnwind, Worker, wake};
use crate::sched::shared::{Seat, Shared};
use crate::sched::turn::{SWITCH, Spent};
use crate::sched::wake::end_limited_park;
use crate::slab::Slot;
use crate::stack::Head;
use crate::task::Task;
use crate::token::Found;
use core::hint::cold_path;
use core::ptr::{self, NonNull};
use tsumugi_core::sync::{Ordering, mutant};
use tsumugi_core::wait::Waker;

/// How a ULT goes on that wants to sleep.
pub(crate) enum Way {
    /// It does not sleep.
    On,
    /// It sleeps, and is to switch to this one.
    Pass(Slot),
    /// It sleeps, and is to leave to the hub.
    Leave,
    /// Nothing has changed: it is to ask the hub.
    Ask,
}

impl Worker {
    /// Queues the running ULT, which lets others run, and makes the oldest of
    /// those that did so before the running one: the caller is to switch to
    /// it. If it is the only one here, it is its own next. `None`: it is to
    /// leave, and nothing has changed.
    ///
    /// Every so often it is, so that a yield loop comes to the hub.
    // Not inlined: it saves no registers, and a ULT's code has it but once.
    #[inline(never)]
    pub(crate) fn let_run(&self, slot: Slot) -> Option<Slot> {
        self.look_first(slot, "yield");
        // SAFETY: the running ULT.
        let (seat, task) = (self.seat(), unsafe { slot.as_ref() });
        let spent = seat.place.parks.inside().get();
        if self.free_head(spent, task).is_some()
            // SAFETY: we are the seat's owner.
            && unsafe { seat.ready.youngest() }.is_none()
            // SAFETY: the same, alone; what is queued is alive and ours.
            && let Some(next) = unsafe {
                seat.yielded.rotate(
                    slot.as_ptr(),
                    |oldest| (*oldest).is_usual(),
                    |soon| (*soon).saved().fetch(),
                )
            }
        {
            seat.place.parks.inside().set(spent.yielded());
            // SAFETY: an item of the queue.
            let next = unsafe { NonNull::new_unchecked(next) };
            seat.place.current.store(next.as_ptr(), Ordering::Relaxed);
            return Some(next);
        }
        // A call that this ends with: the rest saves no registers.
        self.let_alone_run(slot)
    }

    /// A ULT goes on that would let others run, of whom there are none here.
    #[cold]
    #[inline(never)]
    fn let_alone_run(&self, slot: Slot) -> Option<Slot> {
        self.look_aside(slot, "yield");
        self.is_alone().then_some(slot)
    }

    /// Says that the running ULT is parked, and makes the youngest that may run
    /// the running one: the caller is to switch to it. If there is a token, that
    /// is taken, and the ULT is its own next. `None`: it is to leave, and nothing
    /// has changed.
    // Inlined where it is optimised: a call and its way back are two of the few
    // stores and branches that a park is made of.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn let_park(&self, slot: Slot) -> Option<Slot> {
        self.look_first(slot, "park");
        // SAFETY: the running ULT.
        let task = unsafe { slot.as_ref() };
        let seat = self.seat();
        let parks = &seat.place.parks;
        let spent = parks.inside().get();
        let Some(head) = self.free_head(spent, task) else { return self.take_token(slot) };
        if !seat.has_parks(spent) {
            return self.take_token(slot);
        }
        // SAFETY: we are the seat's owner, alone; what is queued is alive and
        // ours.
        let next = unsafe { seat.ready.pop_alone_if(|youngest| (*youngest).is_usual()) };
        let Some(next) = next.and_then(NonNull::new) else {
            cold_path();
            parks.inside().leave_with(spent);
            return self.take_token(slot);
        };
        if !task.park.begin_alone() {
            cold_path();
            parks.inside().leave_with(spent);
            // SAFETY: we are the seat's owner.
            unsafe { seat.ready.push(next.as_ptr()) };
            return Some(slot);
        }
        // Nobody else has looked at the word until we go out.
        self.note_since(head);
        parks.inside().leave_with(spent.parked());
        seat.place.current.store(next.as_ptr(), Ordering::Relaxed);
        Some(next)
    }

    /// A ULT that would park goes on if there is a token.
    #[cold]
    #[inline(never)]
    fn take_token(&self, slot: Slot) -> Option<Slot> {
        self.look_aside(slot, "park");
        // SAFETY: the running ULT.
        unsafe { slot.as_ref() }.park.take().then_some(slot)
    }

    /// Puts the running ULT to sleep, if `commit` agrees, and makes the youngest
    /// that may run the running one.
    #[inline(never)]
    pub(crate) fn let_sleep(&self, slot: Slot, commit: &mut dyn FnMut(Waker) -> bool) -> Way {
        // SAFETY: the running ULT is on a stack, which stays.
        let (task, head) = unsafe { (slot.as_ref(), (*slot.as_ptr()).head().unwrap_unchecked()) };
        let (seat, spent) = (self.seat(), self.turn().get());
        self.look_first(slot, task.what());
        if self.free_head(spent, task).is_none() {
            return self.ask(slot);
        }
        self.turn().set(spent.parked());
        self.put_to_sleep(slot, head);
        // As for the hub: what blocks in there is no ULT.
        seat.place.current.store(ptr::null_mut(), Ordering::Relaxed);
        let unwinding = AbortOnUnwind;
        // SAFETY: a waker that is used up makes the task ready, once, and the
        // task is kept until then.
        let asleep = commit(unsafe { Waker::new(slot.as_ptr().cast(), wake) });
        core::mem::forget(unwinding);
        if !asleep && !mutant("let_sleep_refused") {
            task.set_runnable();
            self.set_current(slot);
            return Way::On;
        }
        // Something may have come meanwhile that goes before what is queued.
        let is_free = self.ties.get() == 0 && !self.shared.is_wanted();
        let next = if is_free {
            // SAFETY: we are the seat's owner, alone; what is queued is alive and
            // ours.
            unsafe { seat.ready.pop_alone_if(|youngest| (*youngest).is_usual()) }
        } else {
            None
        };
        let next = next.and_then(NonNull::new);
        self.set_current(next.unwrap_or(slot));
        match next {
            // It was woken.
            Some(next) if next == slot => Way::On,
            Some(next) => Way::Pass(next),
            None => Way::Leave,
        }
    }

    /// A ULT asks the hub, which puts it to sleep.
    #[cold]
    #[inline(never)]
    fn ask(&self, slot: Slot) -> Way {
        // SAFETY: the running ULT.
        self.look_aside(slot, unsafe { slot.as_ref() }.what());
        Way::Ask
    }

    /// Unparks a ULT, if the park words are this worker's; whether they are.
    ///
    /// # Safety
    ///
    /// It is a descriptor of this scheduler, which is given, and this is the
    /// calling thread's worker.
    #[inline(always)]
    pub(in crate::sched) unsafe fn unpark_alone(&self, shared: &Shared, slot: Slot) -> bool {
        // SAFETY: descriptors stay as long as the scheduler.
        let task = unsafe { slot.as_ref() };
        let seat = self.seat();
        let turn = seat.place.parks.inside();
        let spent = turn.get();
        if !seat.has_parks(spent) {
            return false;
        }
        let found = task.park.unpark_alone();
        if found != Found::Parked {
            cold_path();
            turn.leave_with(spent);
            if found == Found::Limited {
                end_limited_park(task);
            }
            return true;
        }
        turn.leave_with(spent.woke());
        // SAFETY: we ended its park, which is its waker, and this worker is the
        // only one: the bias is its own.
        unsafe { self.ready_alone(shared, seat, slot) };
        true
    }

    /// The top of the running ULT's stack, if it may pass its place on: this is
    /// the only worker, which has no part in its leaving, nor has a joiner below;
    /// and nothing comes before the own queues.
    #[inline(always)]
    fn free_head<'a>(&self, spent: Spent, task: &'a Task) -> Option<&'a Head> {
        if spent.leaves(SWITCH) && self.ties.get() == 0 && !self.shared.is_wanted() {
            return task.free_head();
        }
        None
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
        let spent = self.turn().get();
        let alone = seat.yielded.is_empty()
            && seat.ready.is_empty()
            && spent.leaves(SWITCH)
            && !seat.offer.is_full()
            && self.own_count.get() == 0
            && seat.pinned.is_empty()
            && self.shared.urgent.is_empty()
            && self.shared.inject.is_empty();
        if alone {
            self.turn().set(spent.less(SWITCH));
        }
        alone
    }
}

impl Seat {
    /// Goes inside the park words' bias, if it is this seat's worker's, whose
    /// turn is as given.
    #[inline(always)]
    fn has_parks(&self, spent: Spent) -> bool {
        let parks = &self.place.parks;
        parks.inside().go_in_with(spent);
        // The worker's name, if it has one.
        parks.may_stay(ptr::from_ref(self).addr())
    }
}
