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
//!
//! Where work is looked for, in this order: the hand-over slot (a joiner whose
//! ULT just ended), the own deque (youngest first), the yielded queue (oldest
//! first), the outsiders' queue, other workers. Every [`FAIR_TURN`] switches
//! the worker polls progress and takes the oldest of one of the three queues
//! in turn, so nothing starves however busy the youngest are.
//!
//! # Sleeping
//!
//! An idle worker searches, spins a bounded number of rounds, lets other OS
//! threads run a few times, and then sleeps until it is rung. Whoever pushes
//! rings unless somebody searches, who will see the push: a searcher counts
//! itself out *before* its last look, and both sides have a fence between. A
//! searcher that found something passes the search on if more is left.

use super::current;
use super::shared::{Seat, Shared};
use crate::counters::count;
use crate::deque::{Deque, Steal};
use crate::futex::{SystemFutex, os_yield};
use crate::overflow::Overflow;
use crate::pool::Cache;
use crate::slab::{Free, Slot};
use crate::stack::Stack;
use crate::task::{Action, End, Switch, Task};
use core::cell::Cell;
use core::ptr::{self, NonNull};
use corosensei::CoroutineResult;
use std::sync::Arc;
use tsumugi_core::sync::{Ordering, UnsafeCell, fence, mutant, spin_loop};
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
        count(&self.seat().counters.spawned);
        self.push(slot);
    }

    /// Queues a ULT that slept.
    ///
    /// # Safety
    ///
    /// The caller used up its waker; this is the calling thread's worker.
    #[inline]
    pub(crate) unsafe fn ready(&self, slot: Slot) {
        count(&self.seat().counters.wakes);
        // SAFETY: it sleeps, so it is alive.
        unsafe { slot.as_ref() }.set_ready();
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
        if turn % FAIR_TURN == 0 {
            return false;
        }
        let seat = self.seat();
        let alone = seat.ready.is_empty()
            && seat.yielded.is_empty()
            && self.next.get().is_null()
            && self.shared.inject.is_empty();
        if alone {
            self.turn.set(turn);
        }
        alone
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
            // SAFETY: a task that we have is suspended or new.
            let left = unsafe { (*switch).resume(()) };
            self.current.set(ptr::null_mut());
            self.check_canary(task);
            match left {
                CoroutineResult::Return(()) => return self.finish(slot),
                CoroutineResult::Yield(Action::Yield) => return self.queue_yielded(slot),
                CoroutineResult::Yield(Action::Sleep(commit)) => {
                    count(&self.seat().counters.parks);
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
        count(&self.seat().counters.yields);
        // SAFETY: it is ours until it is pushed.
        unsafe { slot.as_ref() }.set_ready();
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
        count(&self.seat().counters.finished);
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
            self.push(fed);
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
        self.shared.hungry.pop()
    }

    fn has_spare_stack(&self) -> bool {
        // SAFETY: this thread's own.
        self.stacks.with(|cache| self.shared.stacks.has_spare(unsafe { &*cache }))
    }

    /// The next ULT to run; waits for one. `None`: the scheduler stops.
    #[inline]
    fn find(&self) -> Option<Slot> {
        self.turn.set(self.turn.get().wrapping_add(1));
        if self.turn.get() % FAIR_TURN == 0 {
            if self.shared.is_stopped() {
                return None;
            }
            if let Some(slot) = self.fair_turn() {
                return Some(slot);
            }
        }
        if let Some(slot) = self.look_near() {
            return Some(slot);
        }
        self.idle()
    }

    #[inline]
    fn look_near(&self) -> Option<Slot> {
        if let Some(slot) = NonNull::new(self.next.replace(ptr::null_mut())) {
            return Some(slot);
        }
        let seat = self.seat();
        // SAFETY: we are the seat's owner.
        let near = unsafe { seat.ready.pop().or_else(|| seat.yielded.take_first()) };
        match near {
            Some(task) => NonNull::new(task),
            None if self.shared.inject.is_empty() => None,
            None => self.take_injected(),
        }
    }

    /// Takes all that came from outside, and runs the first.
    #[cold]
    fn take_injected(&self) -> Option<Slot> {
        let (mut first, mut more) = (ptr::null_mut::<Task>(), false);
        self.shared.inject.take_all(|task| {
            if first.is_null() {
                first = task;
            } else {
                // SAFETY: we are the seat's owner.
                unsafe { self.seat().yielded.push(task) };
                more = true;
            }
        });
        if more {
            self.notify();
        }
        NonNull::new(first)
    }

    /// The oldest of one queue, another one each time; polls on the way.
    #[cold]
    fn fair_turn(&self) -> Option<Slot> {
        self.now.set(self.shared.now());
        let moved = self.shared.progress.poll();
        let seat = self.seat();
        let start = self.turn.get() / FAIR_TURN;
        for queue in 0..3 {
            // SAFETY: we are the seat's owner.
            let oldest = unsafe {
                match (start + queue) % 3 {
                    0 => self.take_injected(),
                    1 => seat.yielded.take_first().and_then(NonNull::new),
                    _ => seat.ready.take_first().and_then(NonNull::new),
                }
            };
            if oldest.is_some() {
                // A lone ULT in a yield loop waits for somebody else; where
                // cores are shared, that somebody needs one.
                if !moved && self.shared.spin == 0 && !self.shared.has_ready() {
                    os_yield();
                }
                return oldest;
            }
        }
        None
    }

    #[cold]
    fn idle(&self) -> Option<Slot> {
        let shared = &*self.shared;
        shared.searching.fetch_add(1, Ordering::SeqCst);
        shared.progress.on_idle(self.index);
        let mut rounds = 0;
        loop {
            if shared.is_stopped() {
                shared.progress.on_busy(self.index);
                shared.searching.fetch_sub(1, Ordering::SeqCst);
                return None;
            }
            if let Some(slot) = self.look_near().or_else(|| self.feed()).or_else(|| self.steal()) {
                shared.progress.on_busy(self.index);
                self.pass_search_on();
                return Some(slot);
            }
            if shared.progress.poll() {
                rounds = 0;
                continue;
            }
            rounds += 1;
            if rounds <= shared.spin {
                spin_loop();
            } else if rounds <= shared.spin + OS_YIELDS {
                os_yield();
            } else {
                self.sleep();
                rounds = 0;
            }
        }
    }

    /// Sleeps until rung, unless a last look finds something. The caller is
    /// counted as searching, before and after.
    fn sleep(&self) {
        let shared = &*self.shared;
        let ticket = shared.bells.prepare(self.index);
        shared.searching.fetch_sub(1, Ordering::SeqCst);
        shared.progress.on_sleep(self.index);
        // SeqCst: pairs with the fences in `notify` and `Bells::ring`.
        fence(Ordering::SeqCst);
        let stay = !mutant("sleep_no_last_look")
            && (shared.has_ready()
                || shared.is_stopped()
                || shared.progress.has_work()
                || (!shared.hungry.is_empty() && self.has_spare_stack()));
        if stay {
            shared.bells.stay(self.index);
        } else {
            count(&self.seat().counters.sleeps);
            shared.bells.sleep(self.index, ticket, &SystemFutex, None);
        }
        shared.progress.on_wake(self.index);
        shared.searching.fetch_add(1, Ordering::SeqCst);
        self.now.set(shared.now());
    }

    /// The search is over; if nobody else searches and more is there, it was
    /// perhaps not rung for because of us.
    fn pass_search_on(&self) {
        if self.shared.searching.fetch_sub(1, Ordering::SeqCst) == 1 && self.shared.seats.len() > 1
        {
            fence(Ordering::SeqCst);
            if self.shared.has_ready() {
                self.shared.notify();
            }
        }
    }

    fn steal(&self) -> Option<Slot> {
        let seats = &self.shared.seats;
        let start = self.random() as usize;
        for offset in 0..seats.len() {
            let victim = start.wrapping_add(offset) % seats.len();
            if victim == self.index {
                continue;
            }
            let stolen =
                steal_from(&seats[victim].ready).or_else(|| steal_from(&seats[victim].yielded));
            if stolen.is_some() {
                count(&self.seat().counters.steals);
                return stolen;
            }
        }
        None
    }

    fn random(&self) -> u64 {
        // Xorshift: enough to spread thieves.
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x
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

fn steal_from(deque: &Deque<Task>) -> Option<Slot> {
    for _ in 0..STEAL_TRIES {
        match deque.steal() {
            Steal::Taken(task) => return NonNull::new(task),
            Steal::Empty => return None,
            Steal::Lost => spin_loop(),
        }
    }
    None
}

/// A panic in a worker's own loop cannot be given to anybody.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        eprintln!("tsumugi: a worker panicked outside of any ULT");
        std::process::abort();
    }
}

const FAIR_TURN: u32 = 61;
const OS_YIELDS: u32 = if cfg!(tsumugi_loom) { 0 } else { 4 };
const STEAL_TRIES: u32 = if cfg!(tsumugi_loom) { 1 } else { 4 };
