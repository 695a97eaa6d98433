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
//!
//!  Running ──join of an unstarted child──► Lending ──the child's end──► Running
//! ```
//!
//! Who may touch what: a `Running` task's fields are its worker's; those of a
//! `New` or `Ready` one belong to whoever takes it from a queue; those of a
//! `Sleeping` one to nobody, until somebody uses up its waker; those of a
//! `Lending` one to the child that runs in its place. The result is
//! written by the ULT, and read by whoever the join word says:
//!
//! ```text
//!   join word   ALONE ──join──► a Joiner ──end──► FINISHED: wake the joiner
//!                 │ ──end───► FINISHED            the handle takes the result
//!                 └ ──detach► DETACHED ──end────► FINISHED: nobody takes it
//! ```
//!
//! One swap on each side decides. A child that runs in its joiner's place, see
//! `join`, needs neither. Descriptors are slots of a `slab` and are never unmapped
//! while the scheduler lives, so a late wake hits a descriptor, if of somebody
//! else, never wild memory.
//!
//! A descriptor is three cache lines: the first is what queues, switches and
//! wakes touch, the second what the ULT runs, the third what few ULTs use. What
//! a ULT needs only once it has a stack lies at the top of that, in its
//! [`Head`].

use crate::body::{Body, Outcome, Room};
use crate::fp::FpControl;
use crate::inject::Linked;
use crate::local::Locals;
use crate::stack::{Class, Head, Left, Stack};
use core::ptr::{self, NonNull};
use core::slice;
use tsumugi_core::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, UnsafeCell, fence, mutant};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::{Race, Reason, Waker};

/// What a ULT asks of its worker when it leaves it. The worker does it after
/// the switch, when the ULT is no longer running.
pub(crate) enum Request {
    Sleep(*mut (dyn FnMut(Waker) -> bool + 'static)),
    OnOsStack(*mut (dyn FnMut() + 'static)),
    /// Run this new ULT now, and me when somebody comes to it.
    RunFirst(NonNull<Task>),
    /// I wait for one that I ran, and that has left in its turn.
    Follow(Follow),
}

/// Who waits for whom, where a ULT that its joiner ran has left.
pub(crate) struct Follow {
    pub(crate) joiner: NonNull<Task>,
    pub(crate) child: NonNull<Task>,
    /// On the joiner's stack.
    pub(crate) node: *const Joiner,
    /// What the child left with.
    pub(crate) left: Left,
}

/// One ULT.
#[repr(C, align(64))]
pub(crate) struct Task {
    link: AtomicPtr<Task>,
    /// `count << 3 | State`: the count makes a copy of the reason checkable.
    state: AtomicU32,
    pub(crate) generation: AtomicU32,
    /// The top of the stack it is on; null before it is on one.
    head: AtomicPtr<Head>,
    join: AtomicUsize,
    /// The scheduler's shared part; opaque here, which is a lower floor.
    pub(crate) home: *const (),
    pub(crate) park: AtomicU32,
    pub(crate) slot: u32,
    name: AtomicPtr<Box<str>>,
    /// The worker that it ran on last, and so whose caches know it.
    pub(crate) last: AtomicU32,
    /// What is asked of it: a worker to stay on, flags, a size of stack.
    traits: AtomicU32,

    body: UnsafeCell<Option<&'static Body>>,
    /// The closure until it runs, the result once it has.
    room: Room,
    /// Its ULT-local values; null if it has none. The running ULT's.
    pub(crate) locals: UnsafeCell<*mut Locals>,

    /// Its floating-point control words, if it keeps them. The worker's that
    /// has it.
    pub(crate) fp: UnsafeCell<FpControl>,
    /// Its sleep, if that may be cancelled; under the alarms' lock.
    sleeper: UnsafeCell<*const Race>,
    /// The waker of a park with a limit, while the park word says so.
    pub(crate) park_waker: UnsafeCell<Option<Waker>>,
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
    /// Joins a ULT that runs in its place meanwhile.
    Lending,
    /// Ended, not joined yet.
    Done,
}

/// What a builder asks of a ULT besides a name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    pub(crate) worker: Option<usize>,
    pub(crate) urgent: bool,
    pub(crate) keeps_fp: bool,
    pub(crate) class: Class,
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

impl Task {
    pub(crate) fn new(slot: u32, home: *const ()) -> Self {
        Self {
            link: AtomicPtr::new(ptr::null_mut()),
            state: AtomicU32::new(FREE),
            generation: AtomicU32::new(0),
            head: AtomicPtr::new(ptr::null_mut()),
            join: AtomicUsize::new(ALONE),
            body: UnsafeCell::new(None),
            home,
            park: AtomicU32::new(0),
            slot,
            name: AtomicPtr::new(ptr::null_mut()),
            room: Room::new(),
            last: AtomicU32::new(0),
            traits: AtomicU32::new(0),
            locals: UnsafeCell::new(ptr::null_mut()),
            fp: UnsafeCell::new(FpControl::default()),
            sleeper: UnsafeCell::new(ptr::null()),
            park_waker: UnsafeCell::new(None),
        }
    }

    /// Makes a ULT of a free slot.
    ///
    /// # Safety
    ///
    /// The slot is free and the caller's. `f` and its result may be used from
    /// here until the ULT has ended, whatever their lifetimes say.
    #[inline]
    pub(crate) unsafe fn fill<T, F: FnOnce() -> T>(&self, f: F) {
        // SAFETY: the room of a free slot is empty and ours.
        unsafe { self.room.put(f) };
        // SAFETY: as above.
        self.body.with_mut(|body| unsafe { *body = Some(Body::of::<T, F>()) });
        self.join.store(ALONE, Ordering::Relaxed);
        self.park.store(0, Ordering::Relaxed);
        self.traits.store(0, Ordering::Relaxed);
        self.set_state(NEW);
    }

    /// Gives it what its builder asks for.
    ///
    /// # Safety
    ///
    /// It is filled, and in no queue yet.
    pub(crate) unsafe fn adorn(&self, name: Option<Box<str>>, traits: Traits) {
        if let Some(name) = name {
            self.name.store(Box::into_raw(Box::new(name)), Ordering::Relaxed);
        }
        let worker = traits.worker.map_or(0, |worker| worker as u32 + 1);
        let urgent = if traits.urgent { URGENT } else { 0 };
        let keeps_fp = if traits.keeps_fp { KEEPS_FP } else { 0 };
        let class = u32::from(traits.class.index()) << CLASS_SHIFT;
        if traits.keeps_fp {
            // SAFETY: the caller's.
            self.fp.with_mut(|fp| unsafe { *fp = FpControl::read() });
        }
        self.traits.store(worker | urgent | keeps_fp | class, Ordering::Relaxed);
    }

    /// The size of stack that it needs.
    #[inline]
    pub(crate) fn class(&self) -> Class {
        Class::from_index((self.traits.load(Ordering::Relaxed) >> CLASS_SHIFT) as u8)
    }

    /// The top of the stack it is on.
    ///
    /// # Safety
    ///
    /// The caller has the task, see the module's documentation, or it is this
    /// thread's ULT.
    #[inline(always)]
    pub(crate) unsafe fn head(&self) -> Option<&Head> {
        // SAFETY: the stack stays while the task is on it.
        unsafe { self.head.load(Ordering::Relaxed).as_ref() }
    }

    /// Puts it on a stack of its own.
    ///
    /// # Safety
    ///
    /// As for [`head`](Self::head), and it is on none.
    #[inline]
    pub(crate) unsafe fn bind(&self, stack: Stack) -> &Head {
        let head = stack.head();
        self.head.store(head.as_ptr(), Ordering::Relaxed);
        // SAFETY: heads stay as long as their stacks.
        unsafe { head.as_ref() }
    }

    /// Takes the stack of a ULT that ended on it.
    ///
    /// # Safety
    ///
    /// As for [`head`](Self::head).
    #[inline]
    pub(crate) unsafe fn unbind(&self) -> Stack {
        let head = NonNull::new(self.head.load(Ordering::Relaxed));
        self.head.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the ULT had it alone.
        unsafe { Stack::from_head(head.expect("a ULT that ended has a stack")) }
    }

    /// Runs this unstarted ULT as a call, on the stack of `joiner`, who waits
    /// for it meanwhile, and writes its outcome to `place`. It may be on
    /// another worker afterwards.
    ///
    /// # Safety
    ///
    /// Both tasks are the caller's, who runs on `joiner`'s stack as this ULT;
    /// the place is the outcome's type.
    #[inline]
    pub(crate) unsafe fn run_on(&self, joiner: &Self, place: *mut ()) {
        self.head.store(joiner.head.load(Ordering::Relaxed), Ordering::Relaxed);
        joiner.step(RUNNING, LENDING);
        self.step(NEW, RUNNING);
        // SAFETY: a task that is new was filled.
        let body = self.body.with(|body| unsafe { (*body).unwrap_unchecked() });
        // SAFETY: the room holds the closure that `body` was made for.
        unsafe { (body.call)(&self.room, place) };
        self.end_locals();
        self.head.store(ptr::null_mut(), Ordering::Relaxed);
        joiner.step(LENDING, RUNNING);
    }

    /// Leaves the worker; returns when it is resumed, perhaps by another one.
    ///
    /// # Safety
    ///
    /// The caller runs as this ULT.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, left: Left) {
        // SAFETY: the caller's.
        unsafe { self.head().unwrap_unchecked().suspend(left) }
    }

    /// Leaves the worker with a request.
    ///
    /// # Safety
    ///
    /// As for [`suspend`](Self::suspend).
    #[inline(always)]
    pub(crate) unsafe fn ask(&self, mut request: Request) {
        // SAFETY: the caller's; the request stays until we are resumed.
        unsafe { self.suspend(Left::request(&raw mut request)) }
    }

    /// One life on a stack: runs the closure and keeps the result.
    ///
    /// # Safety
    ///
    /// `this` is a task that was filled, runs for the first time, and has
    /// this stack.
    pub(crate) unsafe fn live(this: *const ()) {
        // SAFETY: the caller's; descriptors outlive their ULTs.
        let this = unsafe { &*this.cast::<Self>() };
        // SAFETY: the caller's.
        let body = this.body.with(|body| unsafe { (*body).unwrap_unchecked() });
        // SAFETY: the room holds the closure that `body` was made for.
        unsafe { (body.run)(&this.room) };
        this.end_locals();
        // The common detached ULT drops its result here, where it may block.
        if this.join.load(Ordering::Acquire) == DETACHED {
            this.drop_result();
        }
    }

    /// Drops the values that it had for itself. By the running ULT.
    #[inline(always)]
    fn end_locals(&self) {
        // SAFETY: the running ULT's.
        let locals = self.locals.with(|locals| unsafe { *locals });
        if !locals.is_null() {
            // SAFETY: its own, and not dropped yet.
            unsafe { Locals::end(&self.locals) };
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
    /// [`Cancelled`](crate::Cancelled). The closure, if it did not run, is
    /// dropped.
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
    #[inline]
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
    #[inline]
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
        // SAFETY: names come from `Box::into_raw` in `adorn`.
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

    /// Whether it never ran. By whoever spawned it, who still has its handle.
    #[inline(always)]
    pub(crate) fn is_new(&self) -> bool {
        self.state.load(Ordering::Relaxed) & STATE_MASK == NEW
    }

    /// Whether a stack of the ordinary size will do.
    #[inline(always)]
    pub(crate) fn is_ordinary(&self) -> bool {
        self.traits.load(Ordering::Relaxed) >> CLASS_SHIFT == 0
    }

    /// Changes with every change of its state.
    pub(crate) fn stamp(&self) -> u32 {
        self.state.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set_running(&self) {
        self.set_state(RUNNING);
    }

    /// It waits for a child that runs in its place.
    #[inline(always)]
    pub(crate) fn begin_lending(&self) {
        self.step(RUNNING, LENDING);
    }

    /// The child has ended.
    #[inline(always)]
    pub(crate) fn end_lending(&self) {
        self.step(LENDING, RUNNING);
    }

    #[inline(always)]
    pub(crate) fn set_ready(&self) {
        self.set_state(READY);
    }

    /// It sleeps from now on, for the reason that was set.
    #[inline(always)]
    pub(crate) fn set_sleeping(&self) {
        self.set_state(SLEEPING);
    }

    /// What the sleep that it has just asked for is for. By its worker.
    pub(crate) fn what(&self) -> &'static str {
        // SAFETY: it has just left its stack.
        let Some(head) = (unsafe { self.head() }) else { return "" };
        let what = head.reason.what.load(Ordering::Relaxed);
        let what_bytes = head.reason.what_bytes.load(Ordering::Relaxed);
        // SAFETY: set by the ULT before it left, of one `&'static str`.
        unsafe { core::str::from_utf8_unchecked(slice::from_raw_parts(what, what_bytes)) }
    }

    /// State, and what a sleeper waits for and since when, as of one moment.
    ///
    /// # Safety
    ///
    /// The stacks are there until this has returned.
    pub(crate) unsafe fn look(&self) -> Option<(State, Option<(Reason, Instant)>)> {
        // Acquire: pairs with `set_state`.
        let before = self.state.load(Ordering::Acquire);
        let state = state_of(before)?;
        // SAFETY: the caller's: whichever stack it was, its head is there.
        let head = unsafe { self.head.load(Ordering::Relaxed).as_ref() };
        let (State::Sleeping, Some(head)) = (state, head) else { return Some((state, None)) };
        let cells = &head.reason;
        let what = cells.what.load(Ordering::Relaxed);
        let what_bytes = cells.what_bytes.load(Ordering::Relaxed);
        let at = cells.at.load(Ordering::Relaxed);
        let wanted = cells.wanted.load(Ordering::Relaxed);
        let since = Instant::from_ns(cells.since.load(Ordering::Relaxed));
        // Acquire: pairs with the Release fence in `Head::set_reason`.
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

    /// From one known state to the next.
    #[inline(always)]
    fn step(&self, from: u32, to: u32) {
        let before = self.state.load(Ordering::Relaxed);
        debug_assert_eq!(before & STATE_MASK, from);
        // As in `set_state`; written so that it is one instruction.
        self.state.store(before.wrapping_add(STATE_MASK + 1 + to - from), Ordering::Release);
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
        LENDING => Some(State::Lending),
        _ => None,
    }
}

const FREE: u32 = 0;
const NEW: u32 = 1;
const READY: u32 = 2;
const RUNNING: u32 = 3;
const SLEEPING: u32 = 4;
const DONE: u32 = 5;
const LENDING: u32 = 6;
const STATE_MASK: u32 = 7;

// Traits: the worker, plus one, and flags.
const WORKER: u32 = 0xffff;
const URGENT: u32 = 1 << 16;
const KEEPS_FP: u32 = 1 << 17;
const CANCELLED: u32 = 1 << 18;
const CLASS_SHIFT: u32 = 24;

// Words that are no pointers to a `Joiner`, which is aligned.
const ALONE: usize = 0;
const FINISHED: usize = 1;
const DETACHED: usize = 2;

#[cfg(not(tsumugi_loom))]
const _: () = assert!(size_of::<Task>() == 192, "three cache lines");
