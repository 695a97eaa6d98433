//! One ULT's descriptor: what it runs, where it stands, who joins it.
//!
//! ```text
//!             first run            sleep: commit true
//!  Free ─► New ───────► Running ─────────────────────► Sleeping
//!   ▲       ▲              │ ▲ │ yield                    │ wake
//!   │       └── spawn      │ │ └──────► Ready ◄───────────┘
//!   │                      │ └────────────┘ next run
//!   │  handle and ULT      ▼ end
//!   └──────────────────── Done
//! ```
//!
//! Who may touch what: a `Running` task's fields are its worker's; those of a
//! `New` or `Ready` one belong to whoever takes it from a queue; those of a
//! `Sleeping` one to nobody, until somebody uses up its waker. The result is
//! written by the ULT, and read by whoever the join word says:
//!
//! ```text
//!   join word   ALONE ──join──► a Joiner ──end──► FINISHED: wake the joiner
//!                 │ ──end───► FINISHED            the handle takes the result
//!                 └ ──detach► DETACHED ──end────► FINISHED: nobody takes it
//! ```
//!
//! One swap on each side decides. Descriptors are slots of a
//! `slab` and are never unmapped while the scheduler lives, so
//! a late wake hits a descriptor, if of somebody else, never wild memory.

use crate::body::{Body, Outcome, Room};
use crate::fp::FpControl;
use crate::inject::Linked;
use crate::local::Locals;
use crate::stack::{Bounds, Stack};
use core::ptr;
use core::slice;
use corosensei::{Coroutine, Yielder};
use tsumugi_core::sync::{
    AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, UnsafeCell, fence, mutant,
};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::{Race, Reason, Waker};

/// What a ULT asks of its worker when it leaves it. The worker does it after
/// the switch, when the ULT is no longer running.
pub(crate) enum Action {
    Yield,
    Sleep(*mut (dyn FnMut(Waker) -> bool + 'static)),
    OnOsStack(*mut (dyn FnMut() + 'static)),
}

pub(crate) type Switch = Coroutine<(), Action, (), Stack>;

/// One ULT.
#[repr(C, align(64))]
pub(crate) struct Task {
    // Touched at every switch.
    link: AtomicPtr<Task>,
    /// `count << 3 | State`: the count makes a copy of the reason checkable.
    state: AtomicU32,
    pub(crate) generation: AtomicU32,
    yielder: UnsafeCell<*const Yielder<(), Action>>,
    switch: UnsafeCell<Option<Switch>>,
    bounds: UnsafeCell<Option<Bounds>>,

    // Touched at birth, sleep and end.
    join: AtomicUsize,
    pub(crate) park: AtomicU32,
    pub(crate) slot: u32,
    /// The scheduler's shared part; opaque here, which is a lower floor.
    pub(crate) home: *const (),
    body: UnsafeCell<Option<&'static Body>>,
    name: AtomicPtr<Box<str>>,
    /// What is asked of it: a worker to stay on, and flags.
    traits: AtomicU32,
    /// Its floating-point control words, if it keeps them. The worker's that
    /// has it.
    pub(crate) fp: UnsafeCell<FpControl>,
    /// Its ULT-local values; null if it has none. The running ULT's.
    pub(crate) locals: UnsafeCell<*mut Locals>,
    /// Its sleep, if that may be cancelled; under the alarms' lock.
    sleeper: UnsafeCell<*const Race>,
    /// The waker of a park with a limit, while the park word says so.
    pub(crate) park_waker: UnsafeCell<Option<Waker>>,
    reason: ReasonCells,
    /// The closure until it runs, the result once it has.
    room: Room,
}

// SAFETY: see "who may touch what" in the module's documentation.
unsafe impl Send for Task {}
// SAFETY: the same.
unsafe impl Sync for Task {}

/// Where a ULT stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Created, never run.
    New,
    /// In a queue, waiting for a worker.
    Ready,
    /// On a worker.
    Running,
    /// Waiting to be woken.
    Sleeping,
    /// Ended, not joined yet.
    Done,
}

/// What a builder asks of a ULT besides a name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    pub(crate) worker: Option<usize>,
    pub(crate) urgent: bool,
    pub(crate) keeps_fp: bool,
}

/// Whoever waits for a ULT's end, on its own stack.
pub(crate) struct Joiner(UnsafeCell<Option<Waker>>);

/// What the end of a ULT found in its join word.
pub(crate) enum End {
    /// The handle is alive and nobody waits.
    Alone,
    /// The handle is gone: the result, and the slot, are for the finisher.
    Detached,
    /// Somebody waits; wake them last, the slot is theirs.
    Joined(Waker),
}

#[derive(Default)]
struct ReasonCells {
    what: AtomicPtr<u8>,
    what_bytes: AtomicUsize,
    at: AtomicU64,
    wanted: AtomicU64,
    since: AtomicU64,
}

impl Task {
    pub(crate) fn new(slot: u32, home: *const ()) -> Self {
        Self {
            link: AtomicPtr::new(ptr::null_mut()),
            state: AtomicU32::new(FREE),
            generation: AtomicU32::new(0),
            yielder: UnsafeCell::new(ptr::null()),
            switch: UnsafeCell::new(None),
            bounds: UnsafeCell::new(None),
            join: AtomicUsize::new(ALONE),
            park: AtomicU32::new(0),
            slot,
            home,
            body: UnsafeCell::new(None),
            name: AtomicPtr::new(ptr::null_mut()),
            traits: AtomicU32::new(0),
            fp: UnsafeCell::new(FpControl::default()),
            locals: UnsafeCell::new(ptr::null_mut()),
            sleeper: UnsafeCell::new(ptr::null()),
            park_waker: UnsafeCell::new(None),
            reason: ReasonCells::default(),
            room: Room::new(),
        }
    }

    /// Makes a ULT of a free slot.
    ///
    /// # Safety
    ///
    /// The slot is free and the caller's. `f` and its result may be used from
    /// here until the ULT has ended, whatever their lifetimes say.
    #[inline]
    pub(crate) unsafe fn fill<T, F: FnOnce() -> T>(&self, f: F, name: Option<Box<str>>) {
        // SAFETY: the room of a free slot is empty and ours.
        unsafe { self.room.put(f) };
        // SAFETY: as above.
        self.body.with_mut(|body| unsafe { *body = Some(Body::of::<T, F>()) });
        self.join.store(ALONE, Ordering::Relaxed);
        self.park.store(0, Ordering::Relaxed);
        self.traits.store(0, Ordering::Relaxed);
        if let Some(name) = name {
            self.name.store(Box::into_raw(Box::new(name)), Ordering::Relaxed);
        }
        self.set_state(NEW);
    }

    /// Its switch, if it has a stack already.
    ///
    /// # Safety
    ///
    /// The caller has the task, see the module's documentation.
    #[inline]
    pub(crate) unsafe fn switch(&self) -> Option<*mut Switch> {
        // SAFETY: the caller's.
        self.switch.with_mut(|switch| unsafe { (*switch).as_mut() }.map(|switch| switch as *mut _))
    }

    /// The words that its switch is made of: addresses, all of them.
    ///
    /// # Safety
    ///
    /// As for [`switch`](Self::switch).
    #[cfg(all(target_arch = "x86_64", not(tsumugi_loom)))]
    pub(crate) unsafe fn switch_words(&self) -> Option<[usize; SWITCH_WORDS]> {
        // SAFETY: the caller's; a switch has no padding: the assertion below.
        unsafe { self.switch().map(|switch| switch.cast::<[usize; SWITCH_WORDS]>().read()) }
    }

    /// Binds it to a stack.
    ///
    /// # Safety
    ///
    /// As for [`switch`](Self::switch), and it has none.
    #[inline]
    pub(crate) unsafe fn bind(&self, stack: Stack) -> *mut Switch {
        let this = self as *const Self;
        // SAFETY: the caller's.
        self.bounds.with_mut(|bounds| unsafe { *bounds = Some(stack.bounds()) });
        let switch = Coroutine::with_stack(stack, move |yielder: &Yielder<(), Action>, ()| {
            // SAFETY: the descriptor outlives the ULT that runs here.
            let this = unsafe { &*this };
            // SAFETY: a running task's fields are its own.
            this.yielder.with_mut(|slot| unsafe { *slot = yielder });
            // SAFETY: the coroutine runs once.
            unsafe { this.run() }
        });
        // SAFETY: the caller's.
        self.switch.with_mut(|slot| unsafe { (*slot).insert(switch) as *mut _ })
    }

    /// Takes the stack of a ULT that ended.
    ///
    /// # Safety
    ///
    /// As for [`switch`](Self::switch).
    #[inline]
    pub(crate) unsafe fn unbind(&self) -> Stack {
        // SAFETY: the caller's.
        self.bounds.with_mut(|bounds| unsafe { *bounds = None });
        // SAFETY: the caller's.
        let switch = self.switch.with_mut(|switch| unsafe { (*switch).take() });
        switch.expect("a ULT that ended has a stack").into_stack()
    }

    /// The stack it is bound to.
    ///
    /// # Safety
    ///
    /// As for [`switch`](Self::switch), or it is this thread's ULT.
    #[inline]
    pub(crate) unsafe fn bounds(&self) -> Option<Bounds> {
        // SAFETY: the caller's.
        self.bounds.with(|bounds| unsafe { *bounds })
    }

    /// Leaves the worker; returns when it is resumed, perhaps by another one.
    ///
    /// # Safety
    ///
    /// The caller runs on this ULT's own stack.
    #[inline]
    pub(crate) unsafe fn suspend(&self, action: Action) {
        // SAFETY: set before the ULT's first instruction, valid while it lives.
        let yielder = self.yielder.with(|yielder| unsafe { *yielder });
        // SAFETY: as above.
        unsafe { (*yielder).suspend(action) }
    }

    /// Runs the closure and keeps the result. On the ULT's stack.
    ///
    /// # Safety
    ///
    /// Once per life, by the ULT.
    unsafe fn run(&self) {
        // SAFETY: a task that runs was filled.
        let body = self.body.with(|body| unsafe { (*body).expect("a ULT has a body") });
        // SAFETY: the room holds the closure that `body` was made for.
        unsafe { (body.run)(&self.room) };
        // SAFETY: the running ULT's.
        let locals = self.locals.with_mut(|locals| unsafe { *locals });
        if !locals.is_null() {
            // SAFETY: its own, and not dropped yet.
            unsafe { Locals::end(&self.locals) };
        }
        // The common detached ULT drops its result here, where it may block.
        if self.join.load(Ordering::Acquire) == DETACHED {
            self.drop_result();
        }
    }

    /// Whether somebody asked it to give up.
    pub(crate) fn is_cancelled(&self) -> bool {
        // Relaxed: a hint; where it must not be missed, the alarms' lock
        // orders it.
        self.traits.load(Ordering::Relaxed) & CANCELLED != 0
    }

    pub(crate) fn set_cancelled(&self) {
        self.traits.fetch_or(CANCELLED, Ordering::Relaxed);
    }

    /// Gives a ULT that was just filled what its builder asks for.
    pub(crate) fn set_traits(&self, traits: Traits) {
        let worker = traits.worker.map_or(0, |worker| worker as u32 + 1);
        let urgent = if traits.urgent { URGENT } else { 0 };
        let keeps_fp = if traits.keeps_fp { KEEPS_FP } else { 0 };
        if traits.keeps_fp {
            // SAFETY: it was just filled, so nobody else has it.
            self.fp.with_mut(|fp| unsafe { *fp = FpControl::read() });
        }
        self.traits.store(worker | urgent | keeps_fp, Ordering::Relaxed);
    }

    /// Whether it may go to any worker, when its turn comes.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.traits.load(Ordering::Relaxed) & (WORKER | URGENT) == 0
    }

    /// Whether it has floating-point control words of its own.
    #[inline(always)]
    pub(crate) fn keeps_fp(&self) -> bool {
        self.traits.load(Ordering::Relaxed) & KEEPS_FP != 0
    }

    /// The worker that it stays on.
    pub(crate) fn worker(&self) -> Option<usize> {
        (self.traits.load(Ordering::Relaxed) & WORKER).checked_sub(1).map(|worker| worker as usize)
    }

    /// # Safety
    ///
    /// Under the alarms' lock.
    pub(crate) unsafe fn set_sleeper(&self, race: *const Race) {
        // SAFETY: the caller's.
        self.sleeper.with_mut(|sleeper| unsafe { *sleeper = race });
    }

    /// # Safety
    ///
    /// Under the alarms' lock.
    pub(crate) unsafe fn sleeper(&self) -> *const Race {
        // SAFETY: the caller's.
        self.sleeper.with(|sleeper| unsafe { *sleeper })
    }

    /// Ends a ULT that the end of its scheduler cut off: its result is
    /// [`Cancelled`]. The closure, if it did not run, is dropped.
    ///
    /// # Safety
    ///
    /// It did not end, runs nowhere, and never will again.
    pub(crate) unsafe fn cancel(&self) {
        let started = self.state() != Some(State::New);
        // SAFETY: the caller's; a task that is alive was filled.
        let body = self.body.with(|body| unsafe { (*body).expect("a ULT has a body") });
        // SAFETY: the closure is in the room exactly when it never ran.
        unsafe { (body.cancel)(&self.room, started) };
    }

    /// Drops the result if it is still there.
    pub(crate) fn drop_result(&self) {
        // SAFETY: only called by whoever the result belongs to, see `End`.
        let body = self.body.with_mut(|body| unsafe { (*body).take() });
        if let Some(body) = body {
            // SAFETY: the room holds the result, once.
            unsafe { (body.drop_result)(&self.room) };
        }
    }

    /// Takes the result.
    ///
    /// # Safety
    ///
    /// Once, after the join word said `FINISHED` to the caller; `T` is the
    /// type that the task was filled with.
    pub(crate) unsafe fn take_result<T>(&self) -> Outcome<T> {
        // SAFETY: the caller's.
        unsafe { self.room.take() }
    }

    /// The ULT has ended, and left its stack; answers who is concerned.
    /// On `Alone` and `Joined` the slot is no longer the caller's.
    pub(crate) fn end(&self) -> End {
        self.set_state(DONE);
        // Release: the result is for the joiner. Acquire: the joiner is for us.
        let found = if mutant("join_load_then_store") {
            let found = self.join.load(Ordering::Acquire);
            self.join.store(FINISHED, Ordering::Release);
            found
        } else if mutant("join_relaxed") {
            self.join.swap(FINISHED, Ordering::Relaxed)
        } else {
            self.join.swap(FINISHED, Ordering::AcqRel)
        };
        match found {
            ALONE => End::Alone,
            DETACHED => End::Detached,
            joiner => {
                let joiner = ptr::with_exposed_provenance::<Joiner>(joiner);
                // SAFETY: a joiner waits on its stack until its waker is used.
                let waker = unsafe { (*joiner).0.with_mut(|waker| (*waker).take()) };
                End::Joined(waker.expect("a joiner has a waker"))
            }
        }
    }

    /// Whether the result is there.
    pub(crate) fn has_finished(&self) -> bool {
        // Acquire: pairs with `end`: the result is to be read.
        self.join.load(Ordering::Acquire) == FINISHED
    }

    /// Leaves a joiner in the join word. False: the ULT has ended already.
    ///
    /// # Safety
    ///
    /// If true, `joiner` stays until its waker is woken; it is not touched
    /// after this.
    pub(crate) unsafe fn join(&self, joiner: *const Joiner, waker: Waker) -> bool {
        // SAFETY: nobody else knows the joiner yet.
        unsafe { (*joiner).0.with_mut(|slot| *slot = Some(waker)) };
        let word = joiner.expose_provenance();
        if mutant("join_no_second_look") {
            self.join.store(word, Ordering::Release);
            return true;
        }
        // Release: the joiner is for `end`. Acquire: the result is for us.
        self.join.swap(word, Ordering::AcqRel) != FINISHED
    }

    /// Takes a joiner back. False: the ULT has ended and wakes it.
    pub(crate) fn unjoin(&self, joiner: *const Joiner) -> bool {
        let word = joiner.expose_provenance();
        // Acquire: pairs with `end`: the result is to be read.
        self.join.compare_exchange(word, ALONE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Gives the handle up. True: the ULT has ended, result and slot are the
    /// caller's.
    pub(crate) fn detach(&self) -> bool {
        // AcqRel: as in `join`.
        self.join.swap(DETACHED, Ordering::AcqRel) == FINISHED
    }

    /// Empties the slot. True: it must also forget its name, under the lock
    /// of those who read names.
    #[inline]
    pub(crate) fn clear(&self) -> bool {
        self.generation.store(self.generation.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.set_state(FREE);
        !self.name.load(Ordering::Relaxed).is_null()
    }

    pub(crate) fn take_name(&self) -> Option<Box<Box<str>>> {
        let name = self.name.swap(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: names come from `Box::into_raw` in `fill`.
        (!name.is_null()).then(|| unsafe { Box::from_raw(name) })
    }

    /// Its name.
    ///
    /// # Safety
    ///
    /// It is not cleared meanwhile: it runs, or the caller has the names' lock.
    pub(crate) unsafe fn name(&self) -> Option<&str> {
        // SAFETY: non-null names are valid until cleared.
        unsafe { self.name.load(Ordering::Acquire).as_ref() }.map(|name| &**name)
    }

    /// Where it stands; `None` for a free slot.
    pub(crate) fn state(&self) -> Option<State> {
        state_of(self.state.load(Ordering::Acquire))
    }

    #[inline(always)]
    pub(crate) fn set_running(&self) {
        self.set_state(RUNNING);
    }

    #[inline(always)]
    pub(crate) fn set_ready(&self) {
        self.set_state(READY);
    }

    /// It sleeps from now on, for this reason.
    #[inline]
    pub(crate) fn set_sleeping(&self, now: Instant) {
        self.reason.since.store(now.as_ns(), Ordering::Relaxed);
        self.set_state(SLEEPING);
    }

    /// Says what the sleep that follows is for. By the ULT itself.
    #[inline]
    pub(crate) fn set_reason(&self, reason: &Reason) {
        // The stores stay behind the state that says "running".
        fence(Ordering::Release);
        self.reason.what.store(reason.what.as_ptr().cast_mut(), Ordering::Relaxed);
        self.reason.what_bytes.store(reason.what.len(), Ordering::Relaxed);
        self.reason.at.store(reason.at, Ordering::Relaxed);
        self.reason.wanted.store(reason.wanted, Ordering::Relaxed);
    }

    /// What the sleep that it has just asked for is for. By its worker.
    pub(crate) fn what(&self) -> &'static str {
        let what = self.reason.what.load(Ordering::Relaxed);
        let what_bytes = self.reason.what_bytes.load(Ordering::Relaxed);
        // SAFETY: set by the ULT before it left, of one `&'static str`.
        unsafe { core::str::from_utf8_unchecked(slice::from_raw_parts(what, what_bytes)) }
    }

    /// State, and what a sleeper waits for and since when, as of one moment.
    pub(crate) fn look(&self) -> Option<(State, Option<(Reason, Instant)>)> {
        // Acquire: pairs with `set_state`.
        let before = self.state.load(Ordering::Acquire);
        let state = state_of(before)?;
        if state != State::Sleeping {
            return Some((state, None));
        }
        let what = self.reason.what.load(Ordering::Relaxed);
        let what_bytes = self.reason.what_bytes.load(Ordering::Relaxed);
        let at = self.reason.at.load(Ordering::Relaxed);
        let wanted = self.reason.wanted.load(Ordering::Relaxed);
        let since = Instant::from_ns(self.reason.since.load(Ordering::Relaxed));
        // Acquire: pairs with the Release fence in `set_reason`.
        fence(Ordering::Acquire);
        if self.state.load(Ordering::Relaxed) != before {
            return Some((State::Running, None));
        }
        // SAFETY: the state did not change, so the two are of one `Reason`,
        // and that is a `&'static str`.
        let what =
            unsafe { core::str::from_utf8_unchecked(slice::from_raw_parts(what, what_bytes)) };
        Some((state, Some((Reason { what, at, wanted }, since))))
    }

    #[inline(always)]
    fn set_state(&self, state: u32) {
        // One writer at a time, so no read-modify-write.
        let count = (self.state.load(Ordering::Relaxed) & !STATE_MASK).wrapping_add(STATE_MASK + 1);
        // Release: pairs with the Acquire in `look`.
        self.state.store(count | state, Ordering::Release);
    }
}

// SAFETY: a task is in one queue at a time and `link` is used by queues only.
unsafe impl Linked for Task {
    #[inline(always)]
    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

impl Joiner {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(None))
    }
}

fn state_of(word: u32) -> Option<State> {
    match word & STATE_MASK {
        NEW => Some(State::New),
        READY => Some(State::Ready),
        RUNNING => Some(State::Running),
        SLEEPING => Some(State::Sleeping),
        DONE => Some(State::Done),
        _ => None,
    }
}

const FREE: u32 = 0;
const NEW: u32 = 1;
const READY: u32 = 2;
const RUNNING: u32 = 3;
const SLEEPING: u32 = 4;
const DONE: u32 = 5;
const STATE_MASK: u32 = 7;

// Traits: the worker, plus one, and flags.
const WORKER: u32 = 0xffff;
const URGENT: u32 = 1 << 16;
const KEEPS_FP: u32 = 1 << 17;
const CANCELLED: u32 = 1 << 18;

// Words that are no pointers to a `Joiner`, which is aligned.
const ALONE: usize = 0;
const FINISHED: usize = 1;
const DETACHED: usize = 2;

#[cfg(all(target_arch = "x86_64", not(tsumugi_loom)))]
const SWITCH_WORDS: usize = core::mem::size_of::<Switch>() / core::mem::size_of::<usize>();
// Two of the stack's, two stack pointers, one function: no room for padding.
#[cfg(all(target_arch = "x86_64", not(tsumugi_loom)))]
const _: () = assert!(SWITCH_WORDS == 5, "a switch is not made of five words");

#[cfg(not(tsumugi_loom))]
const _: () = assert!(core::mem::size_of::<Task>() == 320, "five cache lines");
