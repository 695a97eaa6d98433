//! A worker: one OS thread that runs ULTs. The hub is its scheduler loop, on the
//! worker's own stack, to which the ULTs switch when they leave.
//!
//! ```text
//!        ┌──────────────────────── worker's own stack ───────────────────────┐
//!        │ find ─► resume ═══════► ULT's stack: user code                    │
//!        │   ▲               ◄════ suspend(action) or end                    │
//!        │   └── do the action: queue it · commit its sleep · end it         │
//!        └───────────────────────────────────────────────────────────────────┘
//! ```
//!
//! With several workers a ULT never publishes itself. It requests that from its
//! worker, which does it after the switch, so no other worker can resume a ULT
//! that is still running. With one worker no other thread resumes ULTs, and a ULT
//! switches directly to the next one: see `pass`.

mod claim;
mod note;
mod pass;
mod queue;
mod rules;
mod search;
mod steal;
mod supply;
mod yields;

pub(crate) use claim::Claim;
pub(crate) use pass::Way;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
pub(super) use supply::overflow_at;

use self::yields::Yields;
use super::current;
use super::shared::{Seat, Shared};
use super::turn::Turn;
use crate::fences::Fences;
use crate::host;
use crate::pool::Cache;
use crate::slab::{Free, Slot};
use crate::stack::{Head, Left, Link, Stack};
use crate::task::{End, Request, Task};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::cell::{Cell, RefCell};
use core::hint::cold_path;
use core::ptr::{self, NonNull};
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::{Ordering, UnsafeCell};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::Waker;

/// One worker. It lies on its OS thread's stack.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    /// The address of `shared`, to be compared with the home that ULTs store.
    home: *const Shared,
    /// This worker's seat, in `shared`.
    seat: NonNull<Seat>,
    index: usize,
    /// The worker's name as the owner of a `Bias`; 0 if fences cost as much as
    /// they save.
    name: usize,
    /// Where the hub continues when a ULT leaves.
    link: Link,
    /// The ULT to run next, before any queue; empty while a ULT runs, see `search`.
    next: Cell<*mut Task>,
    /// Whether a ULT that is woken now becomes `next`: it joined the ULT that just
    /// ended.
    handing_over: Cell<bool>,
    /// ULTs that stay on this worker, the oldest first.
    own: RefCell<VecDeque<Slot>>,
    /// How many ULTs `own` has: read at every switch.
    own_count: Cell<usize>,
    /// How many reasons there are against a direct switch of the running ULT to
    /// another: other workers, ULTs that stay on this worker, joiners below it on
    /// their stacks.
    ties: Cell<usize>,
    /// Whether this thread panicked when it was last given to a ULT.
    panics: Cell<bool>,
    /// Whether the ULT to be resumed has had this OS thread since it left.
    comes_back: Cell<bool>,
    /// Whether the ULTs in `own` are the next to have a turn, before those that
    /// yielded.
    own_turn: Cell<bool>,
    fair_turns: Cell<u32>,
    /// When the oldest of the own deque had its turn.
    aged: Cell<Instant>,
    /// For each queue of each other worker, the lone ULT that was last seen in it.
    lonely: Box<[[Cell<Seen>; 2]]>,
    /// The time of the last fair turn or sleep: reading the clock takes as long
    /// as a switch.
    now: Cell<Instant>,
    /// Rounds of the present search in which no other worker's queue was read.
    looks: Cell<u32>,
    yields: Yields,
    /// The worker with the offer that was taken last.
    asked: Cell<usize>,
    random: Cell<u64>,
    stacks: UnsafeCell<Cache<Stack>>,
    slots: UnsafeCell<Cache<Free>>,
}

/// The address of a lone ULT that was seen, and its stamp.
type Seen = (usize, u32);

/// What became of a ULT that made a request.
enum Served {
    /// The ULT has left.
    Gone,
    /// The ULT goes on.
    Stays,
    /// The ULT ran in the place of its joiner, which sleeps now. The ULT has left
    /// its own stack, with this request.
    Followed(Left),
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, index: usize) -> Self {
        let now = shared.now();
        Self {
            home: Arc::as_ptr(&shared),
            seat: NonNull::from(&shared.seats[index]),
            lonely: shared.seats.iter().map(|_| Default::default()).collect(),
            name: if shared.fences == Fences::LIGHTEST {
                (&raw const shared.seats[index]).addr()
            } else {
                0
            },
            index,
            link: Link::new(),
            next: Cell::new(ptr::null_mut()),
            handing_over: Cell::new(false),
            own: RefCell::new(VecDeque::new()),
            own_count: Cell::new(0),
            ties: Cell::new(usize::from(shared.seats.len() > 1)),
            panics: Cell::new(false),
            comes_back: Cell::new(false),
            own_turn: Cell::new(false),
            fair_turns: Cell::new(0),
            aged: Cell::new(now),
            now: Cell::new(now),
            looks: Cell::new(0),
            yields: Yields::new(yields::LONG),
            asked: Cell::new(usize::from(index == 0)),
            random: Cell::new(0x9e37_79b9_7f4a_7c15 ^ (index as u64 + 1)),
            stacks: UnsafeCell::new(Cache::new()),
            slots: UnsafeCell::new(Cache::new()),
            shared,
        }
    }

    /// Runs ULTs until the scheduler stops.
    pub(crate) fn run(&self) {
        #[cfg(all(feature = "std", not(tsumugi_loom)))]
        let _signals = crate::overflow::SignalStack::ensure();
        let _unwinding = AbortOnUnwind;
        let before = current::set_worker(self);
        let alone = self.shared.seats.len() == 1;
        self.shared.parks().claim(if alone { self.name } else { 0 });
        self.shared.progress.on_start(self.index);
        while let Some(slot) = self.find() {
            self.execute(slot);
        }
        current::set_worker(before);
        self.stacks.with_mut(|cache| {
            // SAFETY: the cache is this thread's own, and nothing below accesses it.
            self.shared.stacks.drain(unsafe { &mut *cache })
        });
        // SAFETY: as above.
        self.slots.with_mut(|cache| self.shared.slab.drain(unsafe { &mut *cache }));
        core::mem::forget(_unwinding);
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    #[inline(always)]
    pub(crate) fn home(&self) -> *const Shared {
        self.home
    }

    #[inline(always)]
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The worker's name as the owner of a `Bias`.
    #[inline(always)]
    pub(crate) fn name(&self) -> usize {
        self.name
    }

    /// The ULT that runs on this worker.
    #[inline(always)]
    pub(crate) fn current(&self) -> Option<Slot> {
        NonNull::new(self.seat().place.current.load(Ordering::Relaxed))
    }

    /// Sets the ULT that runs from here on, on the stack that runs now.
    #[inline(always)]
    pub(crate) fn set_current(&self, slot: Slot) {
        self.seat().place.current.store(slot.as_ptr(), Ordering::Relaxed);
    }

    /// Clears the current ULT: from here on no ULT runs on the present stack.
    /// Returns the ULT that did.
    pub(super) fn take_current(&self) -> Option<Slot> {
        let before = self.current();
        self.seat().place.current.store(ptr::null_mut(), Ordering::Relaxed);
        before
    }

    /// The worker's turn: what is left of it, and what was counted in it.
    #[inline(always)]
    fn turn(&self) -> &Turn {
        self.seat().place.parks.inside()
    }

    /// Adds what was counted to the counters that other threads read.
    pub(super) fn tell(&self) {
        self.turn().tell(&self.seat().counters);
    }

    #[inline(always)]
    fn seat(&self) -> &Seat {
        // SAFETY: `shared` has the seats, and this worker holds a count of `shared`.
        unsafe { self.seat.as_ref() }
    }

    /// Runs one ULT until it leaves, or until the ULT leaves that has its place
    /// by then.
    #[inline]
    fn execute(&self, mut slot: Slot) {
        // SAFETY: the ULT came from a queue, so it is alive and this worker's.
        let task = unsafe { slot.as_ref() };
        // SAFETY: as above.
        let Some(mut head) = (unsafe { self.stack_of(task) }) else { return self.starve(slot) };
        if task.is_new() {
            task.set_runnable();
        }
        assert!(
            !NEXT_CHECKED || self.next.get().is_null(),
            "`next` has a ULT, which thieves do not see"
        );
        loop {
            self.set_current(slot);
            // SAFETY: a task that this worker has is suspended or new.
            let mut left = unsafe { self.resume(slot, head) };
            // The ULT to which the resumed one has switched, or the innermost of
            // the ULTs that run in the place of their joiners.
            // SAFETY: a worker that has resumed a ULT has a current one, which is on
            // a stack.
            (slot, head) = unsafe {
                let slot = self.current().unwrap_unchecked();
                (slot, (*slot.as_ptr()).head().unwrap_unchecked())
            };
            self.seat().place.current.store(ptr::null_mut(), Ordering::Relaxed);
            self.check_canary(slot, head);
            loop {
                if left.is_yield() {
                    return self.queue_yielded(slot);
                }
                if left.is_park() {
                    if self.park(slot, head) {
                        return;
                    }
                    break;
                }
                if left.is_end() {
                    return self.finish(slot);
                }
                if left.is_asleep() {
                    return;
                }
                // SAFETY: the request is on the suspended ULT's stack.
                match unsafe { self.serve(slot, head, left.into_request()) } {
                    Served::Gone => return,
                    Served::Stays => break,
                    Served::Followed(inner) => left = inner,
                }
            }
        }
    }

    /// Resumes a ULT until it leaves.
    ///
    /// # Safety
    ///
    /// As for `Head::resume`.
    #[inline(always)]
    unsafe fn resume(&self, slot: Slot, head: &Head) -> Left {
        self.note_panics();
        // SAFETY: the caller's.
        unsafe {
            if self.shared.wanted.any() | slot.as_ref().keeps_fp() {
                self.resume_with_care(slot, head)
            } else {
                head.resume(slot.as_ref().saved(), &self.link, slot.as_ptr().cast_const().cast())
            }
        }
    }

    /// Does what a ULT requested.
    ///
    /// # Safety
    ///
    /// The request is there as long as the ULT is suspended, which it is.
    #[inline(always)]
    unsafe fn serve(&self, slot: Slot, head: &Head, request: *mut Request) -> Served {
        // SAFETY: the ULT is suspended on this worker.
        let task = unsafe { slot.as_ref() };
        // SAFETY: the caller's.
        match unsafe { &*request } {
            &Request::Sleep(commit) => {
                self.count(Counter::Parks);
                self.put_to_sleep(slot, head);
                // SAFETY: a waker that is used up makes the task ready, once,
                // and the task is kept until then.
                let waker = unsafe { Waker::new(slot.as_ptr().cast(), wake) };
                // SAFETY: the closure is on the suspended ULT's stack. If it returns
                // true, that ULT may be gone: the task is not accessed after.
                if unsafe { (*commit)(waker) } {
                    return Served::Gone;
                }
                task.set_runnable();
                Served::Stays
            }
            &Request::OnOsStack(f) => {
                // SAFETY: as above; the ULT stays suspended until it is done.
                unsafe { (*f)() };
                self.comes_back.set(true);
                Served::Stays
            }
            &Request::RunFirst(child) => {
                task.set_runnable();
                self.set_next(child);
                if task.is_plain() {
                    self.push(slot)
                } else {
                    self.route(slot)
                }
                Served::Gone
            }
            // SAFETY: the caller's.
            Request::Follow(follow) => unsafe { self.follow(follow) },
        }
    }

    /// Puts a ULT that parks to sleep. False: there was a token, and the ULT goes
    /// on.
    #[inline(always)]
    fn park(&self, slot: Slot, head: &Head) -> bool {
        // SAFETY: the ULT is suspended on this worker.
        let task = unsafe { slot.as_ref() };
        self.count(Counter::Parks);
        self.note_sleep(task, head);
        // If this returns true, the ULT may be awake and gone already.
        let asleep = self.shared.begin_park(task, self.name);
        if !asleep {
            task.set_runnable();
        }
        asleep
    }

    #[inline(always)]
    fn put_to_sleep(&self, slot: Slot, head: &Head) {
        // SAFETY: the ULT is suspended on this worker.
        let task = unsafe { slot.as_ref() };
        self.note_sleep(task, head);
        task.set_sleeping();
    }

    /// Notes where and when a ULT goes to sleep.
    #[inline(always)]
    fn note_sleep(&self, task: &Task, head: &Head) {
        task.set_last(self.index);
        self.note_since(head);
    }

    /// Notes when a ULT goes to sleep.
    #[inline(always)]
    fn note_since(&self, head: &Head) {
        let now = self.now.get().as_ns();
        // The time changes once a turn: a load is cheaper than a store.
        if head.since.load(Ordering::Relaxed) != now {
            cold_path();
            // Release: this store stays behind the state "runnable"; pairs with
            // the fence in `look`.
            head.since.store(now, Ordering::Release);
        }
    }

    #[inline]
    fn finish(&self, slot: Slot) {
        // SAFETY: the ULT ended on this worker.
        let task = unsafe { slot.as_ref() };
        // SAFETY: as above.
        self.put_stack(unsafe { task.unbind() });
        match task.end() {
            End::Alone => {}
            End::Detached => {
                task.drop_result();
                // SAFETY: neither a handle nor the ULT is left.
                unsafe { self.release(slot) };
            }
            End::Joined(waker) => {
                self.handing_over.set(true);
                waker.wake();
                self.handing_over.set(false);
            }
        }
    }
}

/// Returns the ULT that a waker is for; the waker itself, if it is for anything
/// else.
#[inline]
pub(super) fn sleeper_of(waker: Waker) -> Result<Slot, Waker> {
    let (data, call) = waker.into_raw();
    // The compiler may make two copies of `wake`. A waker with the other copy
    // counts as one for something else, which works as well.
    if ptr::fn_addr_eq(call, wake as unsafe fn(*const ()))
        && let Some(slot) = NonNull::new(data.cast_mut().cast())
    {
        return Ok(slot);
    }
    // SAFETY: the two parts are those of the waker that was taken apart.
    Err(unsafe { Waker::new(data, call) })
}

/// The function of a sleeping ULT's waker.
pub(super) unsafe fn wake(task: *const ()) {
    let slot = NonNull::new(task.cast_mut().cast()).expect("a waker has a task");
    // SAFETY: by the contract of `Waker` this runs once, while the task sleeps.
    unsafe { Shared::ready(slot) }
}

/// Whether each resume checks that `next` is empty: a ULT there is invisible to
/// thieves.
const NEXT_CHECKED: bool = cfg!(any(debug_assertions, tsumugi_loom));

/// Aborts when a worker's own loop unwinds: no ULT could be given that panic.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        host::say(b"tsumugi: a worker panicked outside of any ULT: the process is aborted\n");
        host::abort();
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
pub(super) mod tests;
