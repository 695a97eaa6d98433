//! Tests of workers that run on no thread of their own: a test runs each of their steps.

mod asks;
mod hub;
mod idle;
mod pass;
mod queue;
mod search;
mod steal;

use super::follow::Served;
use super::thread::Worker;
use super::*;
use crate::area::StackArea;
use crate::check::SuspensionCheck;
use crate::handoff::HandoffBatch;
use crate::inject::Linked;
use crate::pool::WorkerCache;
use crate::sched::Progress;
use crate::sched::current;
use crate::sched::doorbells::Doorbells;
use crate::sched::shared::SchedulerShared;
use crate::sched::turn::SWITCH;
use crate::sched::waker::wake;
use crate::slab::TaskSlot;
use crate::stack::{Guards, StackHead, Stacks};
use crate::task::{SuspendRequest, Task, Traits};
use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::Waker;

/// A scheduler and its workers.
pub(in crate::sched) struct Bench {
    pub(in crate::sched) shared: Arc<SchedulerShared>,
    pub(in crate::sched) workers: Vec<Worker>,
    pub(in crate::sched) script: Arc<Script>,
}

/// The progress that the workers poll. It notes each call, and runs a step of the
/// test in it.
#[derive(Default)]
pub(in crate::sched) struct Script {
    calls: RefCell<Vec<&'static str>>,
    step: Cell<Option<NonNull<Step>>>,
    is_long: Cell<bool>,
    /// Whether a worker has called `on_sleep`, and the step in that call is over.
    has_slept: AtomicBool,
}

/// The step of a test in a call of that name. It returns the result of the call.
type Step = dyn FnMut(&'static str) -> bool;

// SAFETY: only the thread of a test calls the workers of its bench, and so only
// that thread uses the cells.
unsafe impl Send for Script {}
// SAFETY: as for `Send`.
unsafe impl Sync for Script {}

impl Script {
    fn call(&self, what: &'static str) -> bool {
        self.calls.borrow_mut().push(what);
        let Some(step) = self.step.take() else { return false };
        // SAFETY: the step is set as long as the closure is there, and it is
        // taken out during its call.
        let did = unsafe { (*step.as_ptr())(what) };
        self.step.set(Some(step));
        self.has_slept.fetch_or(what == "sleep", Ordering::Release);
        did
    }

    /// Returns the calls since the previous query.
    pub(in crate::sched) fn calls(&self) -> Vec<&'static str> {
        self.calls.take()
    }
}

impl Progress for Script {
    fn poll(&self) -> bool {
        self.call("poll")
    }

    fn is_long(&self) -> bool {
        self.is_long.get()
    }

    fn has_work(&self) -> bool {
        self.call("has_work")
    }

    fn on_start(&self, _: usize) {
        self.call("start");
    }

    fn on_idle(&self, _: usize) {
        self.call("idle");
    }

    fn on_busy(&self, _: usize) {
        self.call("busy");
    }

    fn on_sleep(&self, _: usize) {
        self.call("sleep");
    }

    fn on_wake(&self, _: usize) {
        self.call("wake");
    }

    fn on_timers(&self, pending: bool) {
        self.call(if pending { "timers" } else { "no timers" });
    }
}

impl Bench {
    /// Makes workers that search for `spin` rounds.
    pub(in crate::sched) fn new(workers: usize, spin: u32) -> Self {
        Self::of(workers, spin, 0, SuspensionCheck::Off)
    }

    /// Makes workers that leave `inline_bytes` of a stack for the children of its ULT.
    fn with_inline(workers: usize, inline_bytes: usize) -> Self {
        Self::of(workers, 0, inline_bytes, SuspensionCheck::Off)
    }

    /// Makes workers that check suspensions.
    fn checked(workers: usize, check: SuspensionCheck) -> Self {
        Self::of(workers, 0, 0, check)
    }

    fn of(workers: usize, spin: u32, inline_bytes: usize, check: SuspensionCheck) -> Self {
        let script = Arc::new(Script::default());
        let area = StackArea::map(StackArea::bytes_for(STACKS, STACK, STACK)).unwrap();
        let stacks = Stacks::new(area, STACK, STACK, Guards::Canaries, LIVES).unwrap();
        let mut shared = SchedulerShared::new(
            workers,
            stacks,
            Doorbells::own(),
            script.clone(),
            spin,
            inline_bytes,
        );
        shared.check_suspensions(check);
        let shared = Arc::new(shared);
        let workers = (0..workers).map(|index| Worker::new(shared.clone(), index)).collect();
        Self { shared, workers, script }
    }

    /// Makes a ULT that never ran.
    pub(in crate::sched) fn new_ult(&self, traits: Traits) -> TaskSlot {
        let slot = self.shared.slab.take_shared(self.shared.home());
        // SAFETY: the slot was free, and is the test's now.
        unsafe {
            slot.as_ref().fill(|| ());
            slot.as_ref().adorn(None, traits);
        }
        slot
    }

    /// Makes a ULT that yielded, or was woken.
    pub(in crate::sched) fn ready(&self) -> TaskSlot {
        let slot = self.new_ult(Traits::default());
        task(slot).set_runnable();
        slot
    }

    /// Makes several ULTs that yielded, or were woken.
    fn several(&self, count: usize) -> Vec<TaskSlot> {
        (0..count).map(|_| self.ready()).collect()
    }

    /// Makes a ULT that must stay on a worker.
    pub(in crate::sched) fn pinned(&self, worker: usize) -> TaskSlot {
        let slot = self.new_ult(Traits { worker: Some(worker), ..Traits::default() });
        task(slot).set_runnable();
        slot
    }

    /// Makes a ULT that comes before all others.
    pub(in crate::sched) fn urgent(&self) -> TaskSlot {
        let slot = self.new_ult(Traits { urgent: true, ..Traits::default() });
        task(slot).set_runnable();
        slot
    }

    /// Makes a ULT that sleeps, and ran last on that worker.
    pub(in crate::sched) fn sleeping(&self, worker: usize) -> TaskSlot {
        let slot = self.new_ult(Traits::default());
        task(slot).set_last(worker);
        task(slot).set_sleeping();
        slot
    }

    /// Counts this worker as asleep from here on.
    pub(in crate::sched) fn lull(&self, worker: usize) {
        self.shared.bells.prepare(worker);
        self.shared.idle.sleepers.store(1, Ordering::Relaxed);
    }

    /// Whether a bell was rung since `lull`.
    pub(in crate::sched) fn was_rung(&self) -> bool {
        self.shared.bells.asleep() == 0
    }

    /// Runs `f`; each call of the progress runs `step`.
    fn with_steps<R>(
        &self,
        mut step: impl FnMut(&'static str) -> bool,
        f: impl FnOnce() -> R,
    ) -> R {
        let step: &mut dyn FnMut(&'static str) -> bool = &mut step;
        // SAFETY: this only makes the lifetime longer, and no code calls the step
        // after this function.
        let step = unsafe {
            core::mem::transmute::<
                NonNull<dyn FnMut(&'static str) -> bool>,
                NonNull<dyn FnMut(&'static str) -> bool + 'static>,
            >(NonNull::from(step))
        };
        self.script.step.set(Some(step));
        let result = f();
        self.script.step.set(None);
        result
    }

    /// Returns what a worker finds if it polls with this step.
    pub(in crate::sched) fn find_with(
        &self,
        worker: usize,
        step: impl FnMut(&'static str) -> bool,
    ) -> Option<TaskSlot> {
        self.with_steps(step, || self.workers[worker].find())
    }

    /// Returns what a worker finds; `None` if it has nothing to run after one look at all queues.
    /// That is its last look, because the workers are stopped then.
    pub(in crate::sched) fn find(&self, worker: usize) -> Option<TaskSlot> {
        let mut searches = false;
        let step = |call| {
            searches |= call == "idle";
            if searches && call == "poll" {
                self.shared.stop_workers();
            }
            false
        };
        self.find_with(worker, step)
    }

    /// Returns all that a worker finds.
    fn find_all(&self, worker: usize) -> Vec<TaskSlot> {
        core::iter::from_fn(|| self.find(worker)).collect()
    }

    /// Ends the worker's turn, so that its next step is a fair turn.
    fn spend_turn(&self, worker: usize) {
        let turn = self.workers[worker].turn();
        while turn.get().leaves(SWITCH) {
            turn.set(turn.get().less(SWITCH));
        }
    }

    fn counted(&self, worker: usize, counter: Counter) -> u64 {
        self.workers[worker].tell();
        self.shared.worker_slots[worker].counters.snapshot()[counter]
    }
}

/// Returns the ULT that has this descriptor.
pub(in crate::sched) fn task<'a>(slot: TaskSlot) -> &'a Task {
    // SAFETY: descriptors stay as long as the bench.
    unsafe { slot.as_ref() }
}

/// Links each ULT to the one before it.
fn chain(slots: &[TaskSlot]) -> HandoffBatch<Task> {
    let nexts = slots[1..].iter().map(|slot| slot.as_ptr()).chain([ptr::null_mut()]);
    for (slot, next) in slots.iter().zip(nexts) {
        task(*slot).link().store(next, Ordering::Relaxed);
    }
    HandoffBatch { first: slots[0], more: slots.len() > 1 }
}

const STACKS: usize = 8;
const STACK: usize = 64 << 10;
