//! One OS thread's part in running ULTs: the hub that they leave to.
//!
//! ```text
//!        ┌──────────────────────── worker's own stack ───────────────────────┐
//!        │ find ─► resume ═══════► ULT's stack: user code                    │
//!        │   ▲               ◄════ suspend(action) or end                    │
//!        │   └── do the action: queue it · commit its sleep · end it         │
//!        └───────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A ULT never publishes itself: it asks the worker to, which does so after
//! the switch. So nobody can resume a ULT that is still running.

mod search;

use super::current;
use super::record::{Event, Kind, Wanted};
use super::shared::{Seat, Shared};
use crate::fp::FpControl;
use crate::overflow::Overflow;
use crate::pool::Cache;
use crate::slab::{Free, Slot};
use crate::stack::Stack;
use crate::task::{Action, End, Switch, Task};
use core::cell::{Cell, RefCell};
use core::ptr::{self, NonNull};
use corosensei::CoroutineResult;
use search::FAIR_TURN;
use std::collections::VecDeque;
use std::sync::Arc;
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::{Ordering, UnsafeCell};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::Waker;

/// One worker, on its OS thread's stack.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    index: usize,
    /// The ULT that runs; null while the worker itself does.
    current: Cell<*mut Task>,
    /// The ULT to run next, before any queue.
    next: Cell<*mut Task>,
    handing_over: Cell<bool>,
    /// ULTs that stay on this worker, the oldest first.
    own: RefCell<VecDeque<Slot>>,
    /// How many they are: asked for at every switch.
    own_count: Cell<usize>,
    turn: Cell<u32>,
    /// As of the last fair turn or sleep: reading the clock costs a switch.
    now: Cell<Instant>,
    random: Cell<u64>,
    stacks: UnsafeCell<Cache<Stack>>,
    slots: UnsafeCell<Cache<Free>>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, index: usize) -> Self {
        let now = shared.now();
        Self {
            shared,
            index,
            current: Cell::new(ptr::null_mut()),
            next: Cell::new(ptr::null_mut()),
            handing_over: Cell::new(false),
            own: RefCell::new(VecDeque::new()),
            own_count: Cell::new(0),
            turn: Cell::new(0),
            now: Cell::new(now),
            random: Cell::new(0x9e37_79b9_7f4a_7c15 ^ (index as u64 + 1)),
            stacks: UnsafeCell::new(Cache::new()),
            slots: UnsafeCell::new(Cache::new()),
        }
    }

    /// Runs ULTs until the scheduler stops.
    pub(crate) fn run(&self) {
        #[cfg(not(tsumugi_loom))]
        let _signals = crate::overflow::SignalStack::ensure();
        let _unwinding = AbortOnUnwind;
        let before = current::set_worker(self);
        self.shared.progress.on_start(self.index);
        while let Some(slot) = self.find() {
            self.execute(slot);
        }
        current::set_worker(before);
        self.stacks.with_mut(|cache| {
            // SAFETY: this thread's own; nothing below comes back here.
            self.shared.stacks.drain(unsafe { &mut *cache })
        });
        // SAFETY: as above.
        self.slots.with_mut(|cache| self.shared.slab.drain(unsafe { &mut *cache }));
        core::mem::forget(_unwinding);
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The ULT that runs on this worker.
    #[inline(always)]
    pub(crate) fn current(&self) -> Option<Slot> {
        NonNull::new(self.current.get())
    }

    /// A free descriptor.
    #[inline]
    pub(crate) fn slot(&self) -> Slot {
        self.slots.with_mut(|cache| {
            // SAFETY: this thread's own; `take` does not come back here.
            self.shared.slab.take(unsafe { &mut *cache }, self.shared.home())
        })
    }

    /// Queues a ULT that was just filled.
    #[inline]
    pub(crate) fn spawned(&self, slot: Slot) {
        self.count(Counter::Spawned);
        self.note(Kind::Spawn, slot);
        self.push(slot);
    }

    /// Queues a ULT that was just filled and given traits.
    ///
    /// # Panics
    ///
    /// If it is to stay on a worker that there is not.
    pub(crate) fn spawned_with_traits(&self, slot: Slot) {
        self.count(Counter::Spawned);
        self.note(Kind::Spawn, slot);
        self.route(slot);
    }

    /// Queues a ULT that was asked to stay on a worker, or is urgent.
    #[cold]
    fn route(&self, slot: Slot) {
        // SAFETY: it is ours until it is queued.
        let task = unsafe { slot.as_ref() };
        match task.worker() {
            Some(worker) if worker == self.index => self.keep(slot),
            // SAFETY: as above.
            Some(worker) => unsafe { self.shared.post(worker, slot) },
            None if task.is_plain() => self.push(slot),
            None => {
                // Before all others, on whichever worker looks first.
                // SAFETY: as above.
                unsafe { self.shared.urgent.push(slot.as_ptr()) };
                self.notify();
            }
        }
    }

    /// Queues a ULT that stays on this worker.
    #[cold]
    fn keep(&self, slot: Slot) {
        self.own.borrow_mut().push_back(slot);
        self.own_count.set(self.own_count.get() + 1);
    }

    /// Brings a ULT of the own queue to the front; false if it is not among
    /// the [`REACH`] youngest.
    pub(crate) fn bring_forward(&self, wanted: Slot) -> bool {
        let (mut others, mut found) = ([ptr::null_mut(); REACH], false);
        let mut count = 0;
        while count < REACH && !found {
            // SAFETY: we are the seat's owner.
            let Some(task) = (unsafe { self.seat().ready.pop() }) else { break };
            found = ptr::eq(task, wanted.as_ptr());
            if !found {
                others[count] = task;
                count += 1;
            }
        }
        for task in others[..count].iter().rev() {
            // SAFETY: as above.
            unsafe { self.seat().ready.push(*task) };
        }
        if found && let Some(before) = NonNull::new(self.next.replace(wanted.as_ptr())) {
            self.push(before);
        }
        found
    }

    /// Queues a ULT that slept.
    ///
    /// # Safety
    ///
    /// The caller used up its waker; this is the calling thread's worker.
    #[inline]
    pub(crate) unsafe fn ready(&self, slot: Slot) {
        self.count(Counter::Wakes);
        self.note(Kind::Wake, slot);
        // SAFETY: it sleeps, so it is alive.
        unsafe { slot.as_ref() }.set_ready();
        // SAFETY: as above.
        if !unsafe { slot.as_ref() }.is_plain() {
            return self.route(slot);
        }
        if self.handing_over.get() && self.next.get().is_null() {
            self.next.set(slot.as_ptr());
        } else {
            self.push(slot);
        }
    }

    /// Takes a descriptor back.
    ///
    /// # Safety
    ///
    /// As for `Slab::put`; this is the calling thread's worker.
    #[inline]
    pub(crate) unsafe fn release(&self, slot: Slot) {
        // SAFETY: this thread's own, and the caller's.
        self.slots.with_mut(|cache| unsafe { self.shared.slab.put(slot, &mut *cache) });
    }

    /// Whether a ULT that would yield is the only one this worker knows of.
    /// Every so often it says no, so that a yield loop comes to the hub.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        let turn = self.turn.get().wrapping_add(1);
        if turn.is_multiple_of(FAIR_TURN) {
            return false;
        }
        let seat = self.seat();
        seat.ready.is_empty() && seat.yielded.is_empty() && self.is_alone_after_all(turn)
    }

    /// The rest of `is_alone`: out of line, so that a yield itself is inlined
    /// in the ULT's code. A processor predicts the returns of a switch only if
    /// there is no call between it and the loop that it is in.
    #[cold]
    #[inline(never)]
    fn is_alone_after_all(&self, turn: u32) -> bool {
        let alone = self.next.get().is_null()
            && self.own_count.get() == 0
            && self.seat().mail.is_empty()
            && self.shared.urgent.is_empty()
            && self.shared.inject.is_empty();
        if alone {
            self.turn.set(turn);
        }
        alone
    }

    /// Whether this worker knows of other ULTs to run.
    pub(crate) fn is_busy(&self) -> bool {
        let seat = self.seat();
        !seat.ready.is_empty()
            || !seat.yielded.is_empty()
            || !self.next.get().is_null()
            || self.own_count.get() > 0
    }

    /// Counts one; in the model, where it would only cost time, nothing.
    #[inline(always)]
    fn count(&self, counter: Counter) {
        if cfg!(not(tsumugi_loom)) {
            self.seat().counters.bump(counter);
        }
    }

    fn seat(&self) -> &Seat {
        &self.shared.seats[self.index]
    }

    #[inline]
    fn push(&self, slot: Slot) {
        // SAFETY: we are the seat's owner.
        unsafe { self.seat().ready.push(slot.as_ptr()) };
        self.notify();
    }

    /// Tells other workers of a push; there may be none.
    #[inline]
    fn notify(&self) {
        if self.shared.seats.len() > 1 {
            self.shared.notify();
        }
    }

    /// Runs one ULT until it leaves.
    fn execute(&self, slot: Slot) {
        // SAFETY: it came from a queue, so it is alive and ours.
        let task = unsafe { slot.as_ref() };
        let Some(switch) = self.switch(task) else { return self.starve(slot) };
        loop {
            task.set_running();
            self.current.set(slot.as_ptr());
            let left = if self.shared.wanted.any() || task.keeps_fp() {
                self.resume_with_care(task, switch)
            } else {
                // SAFETY: a task that we have is suspended or new.
                unsafe { (*switch).resume(()) }
            };
            self.current.set(ptr::null_mut());
            self.check_canary(task);
            match left {
                CoroutineResult::Return(()) => return self.finish(slot),
                CoroutineResult::Yield(Action::Yield) => return self.queue_yielded(slot),
                CoroutineResult::Yield(Action::Sleep(commit)) => {
                    self.count(Counter::Parks);
                    task.set_sleeping(self.now.get());
                    // SAFETY: a waker that is used up makes the task ready,
                    // once, and the task is kept until then.
                    let waker = unsafe { Waker::new(slot.as_ptr().cast(), wake) };
                    // SAFETY: the closure is on the suspended ULT's stack. On
                    // true it may be gone: the task is not touched after.
                    if unsafe { (*commit)(waker) } {
                        return;
                    }
                }
                // SAFETY: as above; the ULT stays suspended until it is done.
                CoroutineResult::Yield(Action::OnOsStack(f)) => unsafe { (*f)() },
            }
        }
    }

    /// Resumes a ULT that has control words of its own, or is looked at.
    #[cold]
    #[inline(never)]
    fn resume_with_care(&self, task: &Task, switch: *mut Switch) -> CoroutineResult<Action, ()> {
        let looked_at = self.shared.wanted.any();
        if looked_at {
            self.seat().notes.set_running((&raw const *task).cast_mut());
            self.record(Kind::Run, task, "");
        }
        let before = task.keeps_fp().then(FpControl::read);
        if before.is_some() {
            // SAFETY: the task is ours.
            task.fp.with(|fp| unsafe { *fp }).write();
        }
        // SAFETY: a task that we have is suspended or new.
        let left = unsafe { (*switch).resume(()) };
        if let Some(before) = before {
            // SAFETY: as above.
            task.fp.with_mut(|fp| unsafe { *fp = FpControl::read() });
            before.write();
        }
        if looked_at {
            self.note_left(task, &left);
        }
        left
    }

    #[cold]
    fn note_left(&self, task: &Task, left: &CoroutineResult<Action, ()>) {
        self.seat().notes.set_running(ptr::null_mut());
        match left {
            CoroutineResult::Return(()) => self.record(Kind::End, task, ""),
            CoroutineResult::Yield(Action::Yield) => self.record(Kind::Yield, task, ""),
            CoroutineResult::Yield(Action::Sleep(_)) => self.record(Kind::Sleep, task, task.what()),
            CoroutineResult::Yield(Action::OnOsStack(_)) => {
                self.record(Kind::Sleep, task, "on_os_stack")
            }
        }
    }

    /// Writes down what happens to a ULT, if somebody looks.
    #[inline(always)]
    fn note(&self, kind: Kind, slot: Slot) {
        if self.shared.wanted.any() {
            // SAFETY: a ULT to which something happens is alive.
            self.record(kind, unsafe { slot.as_ref() }, "");
        }
    }

    #[cold]
    fn record(&self, kind: Kind, task: &Task, what: &'static str) {
        if self.shared.wanted.has(Wanted::TRACE) {
            let generation = task.generation.load(Ordering::Relaxed);
            let at = self.shared.now();
            self.seat().notes.record(Event { at, kind, slot: task.slot, generation, what });
        }
    }

    /// The task's switch, bound now if it never ran. `None`: no stack is free.
    #[inline]
    fn switch(&self, task: &Task) -> Option<*mut Switch> {
        // SAFETY: the task is ours.
        if let Some(switch) = unsafe { task.switch() } {
            return Some(switch);
        }
        let stack = self.stacks.with_mut(|cache| {
            // SAFETY: this thread's own; `take` does not come back here.
            self.shared.stacks.take(unsafe { &mut *cache })
        })?;
        // SAFETY: the task is ours and has none.
        Some(unsafe { task.bind(stack) })
    }

    fn queue_yielded(&self, slot: Slot) {
        self.count(Counter::Yields);
        // SAFETY: it is ours until it is pushed.
        let task = unsafe { slot.as_ref() };
        task.set_ready();
        if task.worker().is_some() {
            return self.keep(slot);
        }
        let seat = self.seat();
        let others = !seat.ready.is_empty() || !seat.yielded.is_empty();
        // SAFETY: we are the seat's owner.
        unsafe { seat.yielded.push(slot.as_ptr()) };
        // No fence: a sleeper that is missed now is seen at the next yield,
        // and this worker runs both in any case.
        if others && self.shared.seats.len() > 1 && self.shared.bells.asleep() > 0 {
            self.notify();
        }
    }

    fn finish(&self, slot: Slot) {
        // SAFETY: it ended on this worker.
        let task = unsafe { slot.as_ref() };
        // SAFETY: as above.
        let stack = unsafe { task.unbind() };
        // SAFETY: this thread's own; `put` does not come back here.
        self.stacks.with_mut(|cache| self.shared.stacks.put(stack, unsafe { &mut *cache }));
        match task.end() {
            End::Alone => {}
            End::Detached => {
                task.drop_result();
                // SAFETY: neither handle nor ULT is left.
                unsafe { self.release(slot) };
            }
            End::Joined(waker) => {
                self.handing_over.set(true);
                waker.wake();
                self.handing_over.set(false);
            }
        }
        if let Some(fed) = self.feed() {
            self.route(fed);
        }
    }

    /// No stack is free: the new ULT waits until one ends.
    #[cold]
    fn starve(&self, slot: Slot) {
        self.shared.hungry.push(slot);
        // Another worker may have stacks in its cache.
        self.shared.notify();
    }

    /// A new ULT that waited for a stack, if there is one now.
    #[inline]
    fn feed(&self) -> Option<Slot> {
        if self.shared.hungry.is_empty() || !self.has_spare_stack() {
            return None;
        }
        let fed = self.shared.hungry.pop()?;
        // SAFETY: it waited for a stack, and is in no queue.
        match unsafe { fed.as_ref() }.worker() {
            Some(worker) if worker != self.index => {
                // It cannot have a stack out of our cache.
                self.stacks.with_mut(|cache| {
                    // SAFETY: this thread's own; nothing comes back here.
                    self.shared.stacks.drain(unsafe { &mut *cache })
                });
                self.route(fed);
                None
            }
            _ => Some(fed),
        }
    }

    fn has_spare_stack(&self) -> bool {
        // SAFETY: this thread's own.
        self.stacks.with(|cache| self.shared.stacks.has_spare(unsafe { &*cache }))
    }

    #[inline(always)]
    fn check_canary(&self, task: &Task) {
        // SAFETY: the task is this worker's.
        if let Some(bounds) = unsafe { task.bounds() }
            && !bounds.is_intact()
        {
            // SAFETY: as above: it is not cleared.
            let name = unsafe { task.name() };
            Overflow { id: task.slot.into(), name, stack_bytes: bounds.bytes() }.abort()
        }
    }
}

/// What `overflow` asks in a signal handler: is `at` in the guard page of the
/// ULT that runs on this thread?
#[cfg(not(tsumugi_loom))]
pub(super) fn overflow_at(at: usize) -> Option<Overflow<'static>> {
    // SAFETY: this thread's worker, stopped in the middle of its ULT.
    let task = unsafe { current::worker()?.as_ref().current()?.as_ref() };
    // SAFETY: it runs.
    let bounds = unsafe { task.bounds() }?;
    bounds.is_guard(at).then(|| Overflow {
        id: task.slot.into(),
        // SAFETY: as above.
        name: unsafe { task.name() },
        stack_bytes: bounds.bytes(),
    })
}

/// The waker of a sleeping ULT.
unsafe fn wake(task: *const ()) {
    let slot = NonNull::new(task.cast_mut().cast()).expect("a waker has a task");
    // SAFETY: the contract of `Waker`: once, while the task sleeps.
    unsafe { Shared::ready(slot) }
}

/// How far `bring_forward` looks.
const REACH: usize = 64;

/// A panic in a worker's own loop cannot be given to anybody.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        eprintln!("tsumugi: a worker panicked outside of any ULT");
        std::process::abort();
    }
}
