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
use crate::stack::{Class, Head, Left, Stack};
use crate::task::{End, Follow, Request, Task};
use core::cell::{Cell, RefCell};
use core::ptr::{self, NonNull};
use search::{CALL, FAIR_TURN, SWITCH};
use std::collections::VecDeque;
use std::sync::Arc;
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::{Ordering, UnsafeCell};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::{Reason, Waker};

/// One worker, on its OS thread's stack.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    /// Its own, in `shared`.
    seat: NonNull<Seat>,
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
    /// Whether it is their turn, before those that let others run.
    own_turn: Cell<bool>,
    /// Until the next look at everything that could starve, see `search`.
    until_fair: Cell<u32>,
    fair_turns: Cell<u32>,
    /// The lone ULT that each queue of each other worker was seen to have.
    lonely: Box<[[Cell<Seen>; 2]]>,
    /// As of the last fair turn or sleep: reading the clock costs a switch.
    now: Cell<Instant>,
    random: Cell<u64>,
    stacks: UnsafeCell<Cache<Stack>>,
    slots: UnsafeCell<Cache<Free>>,
}

/// Where a lone ULT was seen, and its stamp.
type Seen = (usize, u32);

/// How a ULT that was claimed by its joiner is to be run.
pub(crate) enum Claim {
    /// As a call, on the stack of the joiner given.
    Call(Slot),
    /// On its own stack, in the place of the joiner given.
    Switch(Slot, NonNull<Head>),
}

/// What became of a ULT that asked for something.
enum Served<'a> {
    /// It has left.
    Gone,
    /// It goes on.
    Stays,
    /// It waits; the one that it ran has left its stack, with this.
    Followed(&'a Head, Left),
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, index: usize) -> Self {
        let now = shared.now();
        Self {
            seat: NonNull::from(&shared.seats[index]),
            lonely: shared.seats.iter().map(|_| Default::default()).collect(),
            shared,
            index,
            current: Cell::new(ptr::null_mut()),
            next: Cell::new(ptr::null_mut()),
            handing_over: Cell::new(false),
            own: RefCell::new(VecDeque::new()),
            own_count: Cell::new(0),
            own_turn: Cell::new(false),
            until_fair: Cell::new(FAIR_TURN),
            fair_turns: Cell::new(0),
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
        self.note_spawned(slot);
        self.push(slot);
    }

    /// Counts a ULT that was just filled.
    #[inline(always)]
    pub(crate) fn note_spawned(&self, slot: Slot) {
        self.count(Counter::Spawned);
        self.note(Kind::Spawn, slot);
    }

    /// Queues a ULT that was just filled and given traits.
    ///
    /// # Panics
    ///
    /// If it is to stay on a worker that there is not.
    pub(crate) fn spawned_with_traits(&self, slot: Slot) {
        self.note_spawned(slot);
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

    /// Queues a ULT that slept, or hands it to the worker that it slept on.
    ///
    /// # Safety
    ///
    /// The caller used up its waker; this is the calling thread's worker.
    #[inline]
    pub(crate) unsafe fn ready(&self, slot: Slot) {
        self.count(Counter::Wakes);
        self.note(Kind::Wake, slot);
        // SAFETY: it sleeps, so it is alive.
        let task = unsafe { slot.as_ref() };
        task.set_ready();
        if !task.is_plain() {
            return self.route(slot);
        }
        if self.handing_over.get() && self.next.get().is_null() {
            return self.next.set(slot.as_ptr());
        }
        let last = task.last.load(Ordering::Relaxed) as usize;
        if last != self.index && self.shared.seats[last].mail.try_send(slot) {
            return;
        }
        self.push(slot);
    }

    /// Takes an unstarted ULT, the youngest of the own queue, so that the
    /// running one can run it in its place. Now and then it does not, so that
    /// the hub has its turn.
    ///
    /// # Safety
    ///
    /// The caller has the handle of `child`, runs on this thread's worker, and
    /// suspends nothing in between.
    #[inline(always)]
    pub(crate) unsafe fn claim(&self, child: Slot) -> Option<Claim> {
        let joiner = self.current()?;
        // SAFETY: we are the seat's owner.
        if unsafe { self.seat().ready.youngest() } != Some(child.as_ptr()) {
            return None;
        }
        // SAFETY: we have its handle; the joiner runs.
        let (task, host) = unsafe { (child.as_ref(), joiner.as_ref()) };
        let until_fair = self.until_fair.get();
        if !task.is_new() || until_fair <= CALL || !self.may_claim(host, task) {
            return None;
        }
        self.until_fair.set(until_fair - CALL);
        // SAFETY: we are the seat's owner.
        unsafe { self.seat().ready.pop() }?;
        let here = 0u8;
        // SAFETY: the running ULT is on a stack.
        let head = unsafe { host.head().unwrap_unchecked() };
        let room = head.room_below((&raw const here).addr());
        // With the child all that is on the stack may go to another worker.
        if room >= self.shared.inline_bytes && task.is_ordinary() && host.worker().is_none() {
            return Some(Claim::Call(joiner));
        }
        // SAFETY: it was in a queue and now is ours.
        match unsafe { self.stack_of(task) } {
            Some(head) => Some(Claim::Switch(joiner, NonNull::from(head))),
            None => {
                self.starve(child);
                None
            }
        }
    }

    /// Whether nothing is against running `task` in the place of `host`: control
    /// words are changed by the worker only, which is also who writes down
    /// what runs, and urgent ULTs come first.
    #[inline(always)]
    fn may_claim(&self, host: &Task, task: &Task) -> bool {
        !host.keeps_fp()
            && !task.keeps_fp()
            && !self.shared.wanted.any()
            && self.shared.urgent.is_empty()
    }

    /// Runs a claimed ULT on its own stack until it leaves or ends. `None`: it
    /// has ended, its result is in its room.
    ///
    /// # Safety
    ///
    /// `child` was claimed for `joiner`, who calls, with this head.
    #[inline(always)]
    pub(crate) unsafe fn run_claimed(
        &self,
        joiner: Slot,
        child: Slot,
        head: NonNull<Head>,
    ) -> Option<Left> {
        // SAFETY: the caller's.
        let (joiner, task, head) = unsafe { (joiner.as_ref(), child.as_ref(), head.as_ref()) };
        joiner.begin_lending();
        task.set_running();
        self.current.set(child.as_ptr());
        // SAFETY: the task is new, and has this stack.
        let left = unsafe { head.resume(child.as_ptr().cast_const().cast()) };
        if !left.is_end() {
            return Some(left);
        }
        self.check_canary(child, head);
        // SAFETY: it ended on this stack.
        self.put_stack(unsafe { task.unbind() });
        joiner.end_lending();
        self.current.set(ptr::from_ref(joiner).cast_mut());
        None
    }

    /// Who runs from here on, on the stack that runs now.
    #[inline(always)]
    pub(crate) fn set_current(&self, slot: Slot) {
        self.current.set(slot.as_ptr());
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
        let seat = self.seat();
        seat.yielded.is_empty()
            && seat.ready.is_empty()
            && self.until_fair.get() > SWITCH
            && self.is_alone_after_all()
    }

    /// The rest of `is_alone`: out of line, so that a yield itself is inlined
    /// in the ULT's code. A processor predicts the returns of a switch only if
    /// there is no call between it and the loop that it is in.
    #[cold]
    #[inline(never)]
    fn is_alone_after_all(&self) -> bool {
        let alone = self.next.get().is_null()
            && self.own_count.get() == 0
            && self.seat().pinned.is_empty()
            && self.shared.urgent.is_empty()
            && self.shared.inject.is_empty();
        if alone {
            self.until_fair.set(self.until_fair.get() - SWITCH);
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

    #[inline(always)]
    fn seat(&self) -> &Seat {
        // SAFETY: `shared` has it, and we have `shared`.
        unsafe { self.seat.as_ref() }
    }

    #[inline]
    fn push(&self, slot: Slot) {
        // SAFETY: we are the seat's owner.
        unsafe { self.seat().ready.push(slot.as_ptr()) };
        self.notify();
    }

    /// Tells other workers of a push; there may be none.
    #[inline(always)]
    fn notify(&self) {
        if self.shared.seats.len() > 1 {
            self.shared.notify();
        }
    }

    /// Runs one ULT until it leaves, or another that it let run on its stack.
    #[inline]
    fn execute(&self, slot: Slot) {
        // SAFETY: it came from a queue, so it is alive and ours.
        let task = unsafe { slot.as_ref() };
        // SAFETY: as above.
        let Some(head) = (unsafe { self.stack_of(task) }) else { return self.starve(slot) };
        task.set_running();
        self.current.set(slot.as_ptr());
        let (mut slot, mut head) = (slot, head);
        loop {
            // SAFETY: a task that we have is suspended or new.
            let mut left = unsafe {
                if self.shared.wanted.any() | slot.as_ref().keeps_fp() {
                    self.resume_with_care(slot, head)
                } else {
                    head.resume(slot.as_ptr().cast_const().cast())
                }
            };
            // The innermost of those that run in each other's place.
            // SAFETY: a worker that resumed somebody has somebody.
            slot = unsafe { NonNull::new_unchecked(self.current.replace(ptr::null_mut())) };
            loop {
                self.check_canary(slot, head);
                if left.is_yield() {
                    return self.queue_yielded(slot);
                }
                if left.is_end() {
                    return self.finish(slot);
                }
                // SAFETY: the request is on the suspended ULT's stack.
                match unsafe { self.serve(slot, head, left.into_request()) } {
                    Served::Gone => return,
                    Served::Stays => break,
                    Served::Followed(child, inner) => (head, left) = (child, inner),
                }
            }
            self.current.set(slot.as_ptr());
        }
    }

    /// Resumes a ULT that has control words of its own, or is looked at.
    ///
    /// # Safety
    ///
    /// As for `Head::resume`.
    #[cold]
    #[inline(never)]
    unsafe fn resume_with_care(&self, slot: Slot, head: &Head) -> Left {
        // SAFETY: the caller's.
        let task = unsafe { slot.as_ref() };
        let looked_at = self.shared.wanted.any();
        if looked_at {
            self.seat().notes.set_running(slot.as_ptr());
            self.record(Kind::Run, task, "");
        }
        let before = task.keeps_fp().then(FpControl::read);
        if before.is_some() {
            // SAFETY: the task is ours.
            task.fp.with(|fp| unsafe { *fp }).write();
        }
        // SAFETY: the caller's.
        let left = unsafe { head.resume(slot.as_ptr().cast_const().cast()) };
        if let Some(before) = before {
            // SAFETY: as above: whoever keeps them lends its place to nobody.
            task.fp.with_mut(|fp| unsafe { *fp = FpControl::read() });
            before.write();
        }
        if looked_at {
            self.note_left(left);
        }
        left
    }

    /// Writes down how the ULT left that ran last.
    #[cold]
    fn note_left(&self, left: Left) {
        self.seat().notes.set_running(ptr::null_mut());
        let Some(slot) = self.current() else { return };
        // SAFETY: it has just left this worker, and is not queued yet.
        let task = unsafe { slot.as_ref() };
        if left.is_end() {
            return self.record(Kind::End, task, "");
        }
        let mut left = left;
        loop {
            if left.is_yield() {
                return self.record(Kind::Yield, task, "");
            }
            // SAFETY: the request is on a stack that is suspended.
            match unsafe { &*left.into_request::<Request>() } {
                Request::Sleep(_) => return self.record(Kind::Sleep, task, task.what()),
                Request::OnOsStack(_) => return self.record(Kind::Sleep, task, "on_os_stack"),
                Request::RunFirst(_) => return self.record(Kind::Yield, task, ""),
                // What the innermost left with.
                Request::Follow(follow) => left = follow.left,
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

    /// Does what a ULT asked for.
    ///
    /// # Safety
    ///
    /// The request is there as long as the ULT is suspended, which it is.
    #[inline(always)]
    unsafe fn serve<'a>(&self, slot: Slot, head: &'a Head, request: *mut Request) -> Served<'a> {
        // SAFETY: it is suspended on this worker.
        let task = unsafe { slot.as_ref() };
        // SAFETY: the caller's.
        match unsafe { &*request } {
            &Request::Sleep(commit) => {
                self.count(Counter::Parks);
                self.put_to_sleep(slot, head);
                // SAFETY: a waker that is used up makes the task ready, once,
                // and the task is kept until then.
                let waker = unsafe { Waker::new(slot.as_ptr().cast(), wake) };
                // SAFETY: the closure is on the suspended ULT's stack. On
                // true it may be gone: the task is not touched after.
                if unsafe { (*commit)(waker) } {
                    return Served::Gone;
                }
                task.set_running();
                Served::Stays
            }
            &Request::OnOsStack(f) => {
                // SAFETY: as above; the ULT stays suspended until it is done.
                unsafe { (*f)() };
                Served::Stays
            }
            &Request::RunFirst(child) => {
                task.set_ready();
                if let Some(before) = NonNull::new(self.next.replace(child.as_ptr())) {
                    self.push(before);
                }
                if task.is_plain() {
                    self.push(slot)
                } else {
                    self.route(slot)
                }
                Served::Gone
            }
            // SAFETY: the caller's.
            Request::Follow(follow) => unsafe { self.follow(follow, head) },
        }
    }

    /// A ULT waits for one that it ran in its place, and that has left.
    ///
    /// # Safety
    ///
    /// Both are suspended on this worker, and nobody knows yet.
    #[cold]
    unsafe fn follow<'a>(&self, follow: &Follow, head: &Head) -> Served<'a> {
        self.count(Counter::Parks);
        // SAFETY: the caller's.
        let child = unsafe { follow.child.as_ref() };
        head.set_reason(&Reason { what: "join", at: child.slot.into(), wanted: 0 });
        self.put_to_sleep(follow.joiner, head);
        // SAFETY: as in `serve`.
        let waker = unsafe { Waker::new(follow.joiner.as_ptr().cast(), wake) };
        let left = follow.left;
        // SAFETY: the node stays until the joiner is woken, by the child's
        // end: it is suspended, so it has not ended.
        let joined = unsafe { child.join(follow.node, waker) };
        debug_assert!(joined, "a suspended ULT has not ended");
        // SAFETY: it left its own stack.
        Served::Followed(unsafe { child.head().unwrap_unchecked() }, left)
    }

    #[inline(always)]
    fn put_to_sleep(&self, slot: Slot, head: &Head) {
        // SAFETY: it is suspended on this worker.
        let task = unsafe { slot.as_ref() };
        task.last.store(self.index as u32, Ordering::Relaxed);
        head.reason.since.store(self.now.get().as_ns(), Ordering::Relaxed);
        task.set_sleeping();
    }

    /// Takes a stack back, and queues a ULT that waited for one.
    #[inline(always)]
    fn put_stack(&self, stack: Stack) {
        // SAFETY: this thread's own; `put` does not come back here.
        self.stacks.with_mut(|cache| self.shared.stacks.put(stack, unsafe { &mut *cache }));
        if let Some(fed) = self.feed() {
            self.route(fed);
        }
    }

    /// The stack that a ULT is on, or one for it if it never ran. `None`: no
    /// stack is free.
    ///
    /// # Safety
    ///
    /// The task is ours.
    #[inline(always)]
    unsafe fn stack_of<'a>(&self, task: &'a Task) -> Option<&'a Head> {
        // SAFETY: the caller's.
        if let Some(head) = unsafe { task.head() } {
            return Some(head);
        }
        let class = task.class();
        let stack = self.stacks.with_mut(|cache| {
            // SAFETY: this thread's own; `take` does not come back here.
            self.shared.stacks.take(class, unsafe { &mut *cache })
        })?;
        // SAFETY: the task is ours and has none.
        Some(unsafe { task.bind(stack) })
    }

    #[inline]
    fn queue_yielded(&self, slot: Slot) {
        self.count(Counter::Yields);
        // SAFETY: it is ours until it is pushed.
        let task = unsafe { slot.as_ref() };
        task.set_ready();
        if !task.is_plain() && task.worker().is_some() {
            return self.keep(slot);
        }
        let seat = self.seat();
        // SAFETY: we are the seat's owner.
        unsafe { seat.yielded.push(slot.as_ptr()) };
        // No fence: a sleeper that is missed now is seen at the next yield,
        // and this worker runs both in any case.
        if self.shared.sleepers.load(Ordering::Relaxed) > 0 {
            self.offer_yielded();
        }
    }

    /// Somebody sleeps, and may be wanted if this worker has more than one.
    #[cold]
    fn offer_yielded(&self) {
        let seat = self.seat();
        if !seat.ready.is_empty() || seat.yielded.has_several() {
            self.shared.notify_sleepers();
        }
    }

    #[inline]
    fn finish(&self, slot: Slot) {
        // SAFETY: it ended on this worker.
        let task = unsafe { slot.as_ref() };
        // SAFETY: as above.
        self.put_stack(unsafe { task.unbind() });
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
    }

    /// No stack is free: the new ULT waits until one ends.
    #[cold]
    fn starve(&self, slot: Slot) {
        self.shared.hungry.push(slot);
        // Another worker may have stacks in its cache.
        self.shared.notify_sleepers();
    }

    /// A new ULT that waited for a stack, if there is one now.
    #[inline]
    fn feed(&self) -> Option<Slot> {
        if self.shared.hungry.is_empty() { None } else { self.feed_hungry() }
    }

    #[cold]
    fn feed_hungry(&self) -> Option<Slot> {
        let fed = self.shared.hungry.pop(|slot| {
            // SAFETY: nobody else takes it meanwhile.
            self.has_spare_stack(unsafe { slot.as_ref().class() })
        })?;
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

    fn has_spare_stack(&self, class: Class) -> bool {
        // SAFETY: this thread's own.
        self.stacks.with(|cache| self.shared.stacks.has_spare(class, unsafe { &*cache }))
    }

    #[inline(always)]
    fn check_canary(&self, slot: Slot, head: &Head) {
        if !head.is_intact() {
            // SAFETY: the task is this worker's.
            let task = unsafe { slot.as_ref() };
            // SAFETY: as above: it is not cleared.
            let name = unsafe { task.name() };
            Overflow { id: task.slot.into(), name, stack_bytes: head.bytes() }.abort()
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
    let head = unsafe { task.head() }?;
    head.is_guard(at).then(|| Overflow {
        id: task.slot.into(),
        // SAFETY: as above.
        name: unsafe { task.name() },
        stack_bytes: head.bytes(),
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
