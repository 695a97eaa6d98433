//! Direct switches: with one worker, a ULT that yields, parks or sleeps switches
//! directly to the ULT that the hub would take next.
//!
//! The hub does after the switch what would let another worker resume a ULT that
//! is still running. Where there is no other worker, no thread can do so, even if
//! the ULT is published before the switch: threads that are no workers queue
//! ULTs, and do not run them. So the running ULT queues itself, or marks itself
//! as asleep, takes the next ULT, and switches once instead of twice.
//!
//! Everything unusual is left to the hub, and at regular intervals everything is:
//! see [`WorkerTurn`](crate::sched::turn::WorkerTurn).

use super::abort::AbortOnUnwind;
use super::thread::Worker;
use crate::sched::shared::SchedulerShared;
use crate::sched::turn::{SWITCH, Spent};
use crate::sched::wake::end_limited_park;
use crate::sched::waker::wake;
use crate::sched::worker_slot::WorkerSlot;
use crate::slab::TaskSlot;
use crate::stack::StackHead;
use crate::task::Task;
use crate::token::FoundSleeper;
use core::hint::cold_path;
use core::ptr::{self, NonNull};
use tsumugi_core::mutate;
use tsumugi_core::sync::Ordering;
use tsumugi_core::wait::Waker;

/// How a ULT that is to sleep goes on.
pub(crate) enum SleepOutcome {
    /// It does not sleep.
    On,
    /// It sleeps, and must switch to this ULT.
    Pass(TaskSlot),
    /// It sleeps, and must leave to the hub.
    Leave,
    /// Nothing has changed: it must leave to the hub with a request to sleep.
    Ask,
}

impl Worker {
    /// Queues the running ULT, which yields, and makes the oldest of the ULTs
    /// that yielded before the running one: the caller must switch to it. If the
    /// running ULT is the only one on this worker, it is returned itself. `None`:
    /// the caller must leave to the hub, and nothing has changed.
    ///
    /// At regular intervals it returns `None`, so that a yield loop enters the hub.
    // Not inlined: it saves no registers, and so a ULT's code has only one copy
    // of it.
    #[inline(never)]
    pub(crate) fn let_run(&self, slot: TaskSlot) -> Option<TaskSlot> {
        self.look_first(slot, "yield");
        // SAFETY: the running ULT.
        let (worker_slot, task) = (self.worker_slot(), unsafe { slot.as_ref() });
        let spent = worker_slot.place.parks.inside().get();
        if self.free_head(spent, task).is_some()
            // SAFETY: we are the worker slot's owner.
            && unsafe { worker_slot.ready.youngest() }.is_none()
            // SAFETY: we are the worker slot's owner, and the only worker; a queued ULT
            // is alive and this worker's.
            && let Some(next) = unsafe {
                worker_slot.yielded.rotate(
                    slot.as_ptr(),
                    |oldest| (*oldest).is_usual(),
                    |soon| (*soon).saved().fetch(),
                )
            }
        {
            worker_slot.place.parks.inside().set(spent.yielded());
            // SAFETY: the pointer is an item of the queue.
            let next = unsafe { NonNull::new_unchecked(next) };
            worker_slot.place.current.store(next.as_ptr(), Ordering::Relaxed);
            return Some(next);
        }
        // A tail call: the rest of this function saves no registers.
        self.let_alone_run(slot)
    }

    /// Lets a ULT that yields go on, if there are no others on this worker.
    #[cold]
    #[inline(never)]
    fn let_alone_run(&self, slot: TaskSlot) -> Option<TaskSlot> {
        self.look_aside(slot, "yield");
        self.is_alone().then_some(slot)
    }

    /// Marks the running ULT as parked, and makes the youngest ULT that may run
    /// the running one: the caller must switch to it. If there is a token, that
    /// is taken, and the running ULT is returned itself. `None`: the caller must
    /// leave to the hub, and nothing has changed.
    // Inlined where it is optimised: a call and its return are two of the few
    // stores and branches that a park consists of.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn let_park(&self, slot: TaskSlot) -> Option<TaskSlot> {
        self.look_first(slot, "park");
        // SAFETY: the running ULT.
        let task = unsafe { slot.as_ref() };
        let worker_slot = self.worker_slot();
        let parks = &worker_slot.place.parks;
        let spent = parks.inside().get();
        let Some(head) = self.free_head(spent, task) else { return self.take_token(slot) };
        if !worker_slot.has_parks(spent) {
            return self.take_token(slot);
        }
        // SAFETY: we are the worker slot's owner, and the only worker; a queued ULT is
        // alive and this worker's.
        let next = unsafe { worker_slot.ready.pop_alone_if(|youngest| (*youngest).is_usual()) };
        let Some(next) = next.and_then(NonNull::new) else {
            cold_path();
            parks.inside().leave_with(spent);
            return self.take_token(slot);
        };
        if !task.park.begin_alone() {
            cold_path();
            parks.inside().leave_with(spent);
            // SAFETY: we are the worker slot's owner.
            unsafe { worker_slot.ready.push(next.as_ptr()) };
            return Some(slot);
        }
        // No other thread has read the park word, and none does until we leave
        // the bias.
        self.note_since(head);
        parks.inside().leave_with(spent.parked());
        worker_slot.place.current.store(next.as_ptr(), Ordering::Relaxed);
        Some(next)
    }

    /// Takes the token of a ULT that would park. `None` if there is none.
    #[cold]
    #[inline(never)]
    fn take_token(&self, slot: TaskSlot) -> Option<TaskSlot> {
        self.look_aside(slot, "park");
        // SAFETY: the running ULT.
        unsafe { slot.as_ref() }.park.take().then_some(slot)
    }

    /// Puts the running ULT to sleep, if `commit` agrees, and makes the youngest
    /// ULT that may run the running one.
    #[inline(never)]
    pub(crate) fn let_sleep(
        &self,
        slot: TaskSlot,
        commit: &mut dyn FnMut(Waker) -> bool,
    ) -> SleepOutcome {
        // SAFETY: the running ULT is on a stack, which stays.
        let (task, head) = unsafe { (slot.as_ref(), (*slot.as_ptr()).head().unwrap_unchecked()) };
        let (worker_slot, spent) = (self.worker_slot(), self.turn().get());
        self.look_first(slot, task.what());
        if self.free_head(spent, task).is_none() {
            return self.ask(slot);
        }
        self.turn().set(spent.parked());
        self.put_to_sleep(slot, head);
        // As in the hub: no ULT is current while `commit` runs, so what blocks in
        // there does not do so as this ULT.
        worker_slot.place.current.store(ptr::null_mut(), Ordering::Relaxed);
        let unwinding = AbortOnUnwind;
        // SAFETY: a waker that is used up makes the task ready, once, and the
        // task is kept until then.
        let asleep = commit(unsafe { Waker::new(slot.as_ptr().cast(), wake) });
        core::mem::forget(unwinding);
        if mutate!("let_sleep_refused": !asleep => false) {
            task.set_runnable();
            self.set_current(slot);
            return SleepOutcome::On;
        }
        // Meanwhile something may have come that must run before the queued ULTs.
        let is_free = self.switch_blockers.get() == 0 && !self.shared.is_wanted();
        let next = if is_free {
            // SAFETY: we are the worker slot's owner, and the only worker; a queued ULT
            // is alive and this worker's.
            unsafe { worker_slot.ready.pop_alone_if(|youngest| (*youngest).is_usual()) }
        } else {
            None
        };
        let next = next.and_then(NonNull::new);
        self.set_current(next.unwrap_or(slot));
        match next {
            // The running ULT was woken meanwhile.
            Some(next) if next == slot => SleepOutcome::On,
            Some(next) => SleepOutcome::Pass(next),
            None => SleepOutcome::Leave,
        }
    }

    /// Makes a ULT leave to the hub, which puts it to sleep.
    #[cold]
    #[inline(never)]
    fn ask(&self, slot: TaskSlot) -> SleepOutcome {
        // SAFETY: the running ULT.
        self.look_aside(slot, unsafe { slot.as_ref() }.what());
        SleepOutcome::Ask
    }

    /// Unparks a ULT, if this worker owns the bias of the park words. Returns
    /// whether it does.
    ///
    /// # Safety
    ///
    /// `slot` is a descriptor of this scheduler, which is `shared`, and this is
    /// the calling thread's worker.
    #[inline(always)]
    pub(in crate::sched) unsafe fn unpark_alone(
        &self,
        shared: &SchedulerShared,
        slot: TaskSlot,
    ) -> bool {
        // SAFETY: descriptors stay as long as the scheduler.
        let task = unsafe { slot.as_ref() };
        let worker_slot = self.worker_slot();
        let turn = worker_slot.place.parks.inside();
        let spent = turn.get();
        if !worker_slot.has_parks(spent) {
            return false;
        }
        let found = task.park.unpark_alone();
        if found != FoundSleeper::Parked {
            cold_path();
            turn.leave_with(spent);
            if found == FoundSleeper::Limited {
                end_limited_park(task);
            }
            return true;
        }
        turn.leave_with(spent.woke());
        // SAFETY: we ended the ULT's park, which is the same as using up a waker.
        // This worker is the only one, because it owns the bias.
        unsafe { self.ready_alone(shared, worker_slot, slot) };
        true
    }

    /// Returns the top of the running ULT's stack, if the ULT may switch directly
    /// to another. It may if this is the only worker, if nothing has to be done
    /// after it has left, if no joiner is below it, and if nothing comes before
    /// the own queues.
    #[inline(always)]
    fn free_head<'a>(&self, spent: Spent, task: &'a Task) -> Option<&'a StackHead> {
        if spent.leaves(SWITCH) && self.switch_blockers.get() == 0 && !self.shared.is_wanted() {
            return task.free_head();
        }
        None
    }

    /// Whether there is a reason against a direct switch besides other workers.
    #[inline(always)]
    pub(super) fn has_switch_blockers(&self) -> bool {
        self.switch_blockers.get() != usize::from(self.is_one_of_several)
    }

    /// Adds one reason against direct switches.
    #[inline(always)]
    pub(super) fn block_direct_switches(&self) {
        self.switch_blockers.set(self.switch_blockers.get() + 1);
    }

    /// Takes one reason away.
    #[inline(always)]
    pub(super) fn unblock_direct_switches(&self) {
        self.switch_blockers.set(self.switch_blockers.get() - 1);
    }

    /// Whether a ULT that would yield is the only one that this worker can run. At
    /// regular intervals it returns false, so that a yield loop enters the hub.
    // Out of line: it is used too seldom to take space in `let_run`.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_alone(&self) -> bool {
        let worker_slot = self.worker_slot();
        let spent = self.turn().get();
        let alone = worker_slot.yielded.is_empty()
            && worker_slot.ready.is_empty()
            && spent.leaves(SWITCH)
            && !worker_slot.public_slot.is_full()
            && self.own_count.get() == 0
            && worker_slot.pinned.is_empty()
            && self.shared.urgent.is_empty()
            && self.shared.inject.is_empty();
        if alone {
            self.turn().set(spent.less(SWITCH));
        }
        alone
    }
}

impl WorkerSlot {
    /// Enters the bias of the park words, if the worker of this slot owns it. `spent`
    /// is that worker's turn.
    #[inline(always)]
    pub(super) fn has_parks(&self, spent: Spent) -> bool {
        let parks = &self.place.parks;
        parks.inside().go_in_with(spent);
        // The address of the worker slot is the worker's name, if it has one.
        parks.may_stay(ptr::from_ref(self).addr())
    }
}
