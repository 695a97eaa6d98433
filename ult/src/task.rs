//! The descriptor of a ULT: its closure and result, its state, and its joiner.
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
//! `Ready` and `Running` are one value of the state, and the workers' data tell which
//! of the two it is. So a switch from one ULT to the next changes the state of
//! neither. A ULT that parks on the only worker shows that in its park word alone.
//!
//! The right to access a task's fields depends on its state. The fields of a
//! `Running` task belong to its worker; those of a `New` or `Ready` task to the
//! thread that takes it from a queue; those of a `Sleeping` task to no thread until
//! its waker is used, and then to the thread that uses it; those of a `Lending` task
//! to the child that runs in its place. The ULT writes the result, and the join word
//! determines which side reads it:
//!
//! ```text
//!   join word   ALONE ──join──► a Joiner ──end──► FINISHED: wake the joiner
//!                 │ ──end───► FINISHED            the handle takes the result
//!                 └ ──detach► DETACHED ──end────► FINISHED: the end drops the result
//! ```
//!
//! One swap on each side decides. A child that runs in its joiner's place, see
//! `join`, needs neither. Descriptors are slots of a `slab` and are never unmapped
//! while the scheduler lives, so a late wake hits a descriptor, perhaps of another
//! ULT, but never freed memory.
//!
//! A descriptor is two cache lines. The first has all that a yield looks at,
//! including the place where the ULT left off, and the fields that queues, switches
//! and wakes change. The second has the closure, and the fields that a waker reads,
//! which do not change while the ULT sleeps. So a yield among many ULTs touches one
//! line of each ULT's descriptor and one of its frames. Data that a ULT needs only
//! once it has a stack lie at the top of the stack, in its [`Head`]. Data that few
//! ULTs have, and data that all descriptors of a chunk share ([`Origin`]), lie
//! elsewhere.

mod end;
mod state;
mod traits;

pub(crate) use end::{End, Joiner};
pub use state::State;
pub(crate) use traits::Traits;

use crate::body::{Body, Room};
use crate::fp::FpControl;
use crate::inject::Linked;
use crate::local::Locals;
use crate::stack::{Head, Left, Saved, Stack};
use crate::token::ParkWord;
use alloc::boxed::Box;
use core::hint::cold_path;
use core::ptr::{self, NonNull};
use end::{ALONE, DETACHED};
use state::{FREE, LENDING, NEW, RUNNABLE};
use tsumugi_core::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, UnsafeCell};
use tsumugi_core::wait::Race;
use tsumugi_core::wait::Waker;

/// The request of a ULT to its worker when it leaves. The worker carries it out after
/// the switch, when the ULT is no longer running.
pub(crate) enum Request {
    Sleep(*mut (dyn FnMut(Waker) -> bool + 'static)),
    OnOsStack(*mut (dyn FnMut() + 'static)),
    /// Run this new ULT now; the requester is continued or stolen later.
    RunFirst(NonNull<Task>),
    /// The requester waits for a child that it ran, and that has left before its end.
    Follow(Follow),
}

/// A joiner and the child that it ran, after the child has left the worker.
pub(crate) struct Follow {
    pub(crate) joiner: NonNull<Task>,
    pub(crate) child: NonNull<Task>,
    /// The joiner's node for the join word, on the joiner's stack.
    pub(crate) node: *const Joiner,
    /// The message with which the child left.
    pub(crate) left: Left,
}

/// One ULT.
#[repr(C, align(64))]
pub(crate) struct Task {
    /// The place where the ULT left off.
    saved: Saved,
    /// The top of the stack that the ULT is on, or null before it has one. Low bits
    /// show what is to be checked when the ULT leaves or resumes, see the constants.
    head: AtomicPtr<Head>,
    /// The options of the ULT: a worker to stay on, flags, a size of stack.
    traits: AtomicU32,
    pub(crate) park: ParkWord,
    link: AtomicPtr<Task>,
    /// `count << 3 | State`. The count shows whether a copy of the reason is
    /// consistent.
    state: AtomicU32,
    pub(crate) generation: AtomicU32,
    join: AtomicUsize,
    /// The ULT-local values, or null if there are none. Used by the running ULT only.
    pub(crate) locals: UnsafeCell<*mut Locals>,
    /// The ULT's sleep, if it may be cancelled; under the alarms' lock.
    sleeper: UnsafeCell<*const Race>,

    particulars: AtomicPtr<Particulars>,
    /// The worker on which the ULT slept last, and whose caches may still have its
    /// data.
    last: AtomicU32,
    /// How many other descriptors lie before this one in its chunk.
    place: u32,
    body: UnsafeCell<Option<&'static Body>>,
    /// The closure until it runs, then the result.
    room: Room,
}

/// The data that all descriptors of a chunk share; they lie before the first
/// descriptor.
#[repr(C, align(64))]
pub(crate) struct Origin {
    /// The scheduler's shared part, as an opaque pointer, because this module must
    /// not depend on `sched`.
    pub(crate) home: *const (),
    /// The number of the chunk's first descriptor.
    pub(crate) first: u32,
}

/// Data that few ULTs have.
pub(crate) struct Particulars {
    pub(crate) name: Option<Box<str>>,
    /// The ULT's floating-point control words, if it keeps them. Used by the worker
    /// that has the ULT.
    fp: UnsafeCell<FpControl>,
}

// SAFETY: the state determines which thread may access the fields, see the module's
// documentation.
unsafe impl Send for Task {}
// SAFETY: as for `Send`.
unsafe impl Sync for Task {}

impl Task {
    pub(crate) fn new(place: u32) -> Self {
        Self {
            saved: Saved::new(),
            link: AtomicPtr::new(ptr::null_mut()),
            state: AtomicU32::new(FREE),
            generation: AtomicU32::new(0),
            head: AtomicPtr::new(NO_STACK),
            join: AtomicUsize::new(ALONE),
            park: ParkWord::new(),
            locals: UnsafeCell::new(ptr::null_mut()),
            sleeper: UnsafeCell::new(ptr::null()),
            particulars: AtomicPtr::new(ptr::null_mut()),
            last: AtomicU32::new(0),
            place,
            traits: AtomicU32::new(0),
            body: UnsafeCell::new(None),
            room: Room::new(),
        }
    }

    /// The scheduler's shared part.
    #[inline(always)]
    pub(crate) fn home(&self) -> *const () {
        self.origin().home
    }

    /// The ULT's number.
    pub(crate) fn slot(&self) -> u32 {
        self.origin().first + self.place
    }

    #[inline(always)]
    fn origin(&self) -> &Origin {
        let first = ptr::from_ref(self).addr() - self.place as usize * size_of::<Self>();
        // SAFETY: a chunk is one allocation that stays, its origin lies before the
        // descriptors, and the slab has exposed its provenance.
        unsafe { &*ptr::with_exposed_provenance(first - size_of::<Origin>()) }
    }

    /// Makes a ULT of a free slot.
    ///
    /// # Safety
    ///
    /// The slot is free and belongs to the caller. What `f` and its result borrow
    /// stays valid until the ULT has ended, whatever their lifetimes say.
    #[inline]
    pub(crate) unsafe fn fill<T, F: FnOnce() -> T>(&self, f: F) {
        // SAFETY: the room of a free slot is empty, and the slot belongs to the
        // caller.
        unsafe { self.room.put(f) };
        // SAFETY: as above.
        self.body.with_mut(|body| unsafe { *body = Some(Body::of::<T, F>()) });
        self.join.store(ALONE, Ordering::Relaxed);
        self.park.reset();
        self.traits.store(0, Ordering::Relaxed);
        self.set_state(NEW);
    }

    /// The top of the stack that the ULT is on.
    ///
    /// # Safety
    ///
    /// The caller has the right to the task's fields, see the module's documentation,
    /// or the task is this thread's running ULT.
    #[inline(always)]
    pub(crate) unsafe fn head(&self) -> Option<&Head> {
        // SAFETY: the stack stays while the task is on it.
        unsafe { self.head_at().as_ref() }
    }

    #[inline(always)]
    fn head_at(&self) -> *mut Head {
        self.head.load(Ordering::Relaxed).map_addr(|addr| addr & !BITS)
    }

    /// The place where the ULT left off.
    #[inline(always)]
    pub(crate) fn saved(&self) -> &Saved {
        &self.saved
    }

    /// The top of the running ULT's stack, if the ULT may leave without a check by
    /// the worker: it is plain, keeps no control words, and the canary of its stack,
    /// if it has one, is unchanged.
    #[inline(always)]
    pub(crate) fn free_head(&self) -> Option<&Head> {
        let word = self.head.load(Ordering::Relaxed);
        let bits = word.addr() & BITS;
        if bits == 0 {
            // SAFETY: the ULT runs, so it is on a stack, and no bits are set beside
            // the address.
            return unsafe { word.as_ref() };
        }
        cold_path();
        // SAFETY: the ULT runs, so it is on a stack.
        unsafe { self.head() }.filter(|head| bits == HAS_CANARY && head.is_intact())
    }

    /// Whether the ULT is on a stack and keeps no control words, so that a switch is
    /// enough to resume it. A guess, if the caller does not have the ULT.
    #[inline(always)]
    pub(crate) fn is_usual(&self) -> bool {
        self.head.load(Ordering::Relaxed).addr() & UNUSUAL == 0
    }

    /// Whether a ULT on a stack may go to the queues that any worker takes from. A
    /// ULT that ran in its joiner's place may if the joiner may.
    #[inline(always)]
    pub(crate) fn is_for_all(&self) -> bool {
        self.head.load(Ordering::Relaxed).addr() & PARTICULAR == 0
    }

    /// Puts the ULT on a stack of its own.
    ///
    /// # Safety
    ///
    /// As for [`head`](Self::head), and the ULT is on no stack.
    #[inline]
    pub(crate) unsafe fn bind(&self, stack: Stack) -> &Head {
        // SAFETY: a head stays as long as its stack.
        let head = unsafe { stack.head().as_ref() };
        head.begin(&self.saved);
        let canary = if head.is_watched() { HAS_CANARY } else { 0 };
        let particular = if self.is_plain() { 0 } else { PARTICULAR };
        let unusual = if self.keeps_fp() { UNUSUAL } else { 0 };
        let word = stack.head().as_ptr().map_addr(|addr| addr | canary | particular | unusual);
        self.head.store(word, Ordering::Relaxed);
        head
    }

    /// Takes the stack of a ULT that has ended on it.
    ///
    /// # Safety
    ///
    /// As for [`head`](Self::head).
    #[inline]
    pub(crate) unsafe fn unbind(&self) -> Stack {
        let head = NonNull::new(self.head_at());
        self.head.store(NO_STACK, Ordering::Relaxed);
        // SAFETY: the ULT had the stack alone, and has ended.
        let stack = unsafe { Stack::from_head(head.expect("a ULT that ended has a stack")) };
        #[cfg(tsumugi_tsan)]
        // SAFETY: a head stays as long as its stack.
        unsafe { stack.head().as_ref() }.end();
        stack
    }

    /// Runs this unstarted ULT as a call on the stack of `joiner`, which waits for it
    /// meanwhile, and writes its outcome to `place`. Afterwards the joiner may be on
    /// another worker.
    ///
    /// # Safety
    ///
    /// Both tasks belong to the caller, which runs on `joiner`'s stack as this ULT;
    /// `place` has the outcome's type.
    #[inline(always)]
    pub(crate) unsafe fn run_on(&self, joiner: &Self, place: *mut ()) {
        self.head.store(joiner.head.load(Ordering::Relaxed), Ordering::Relaxed);
        joiner.step(RUNNABLE, LENDING);
        self.step(NEW, RUNNABLE);
        // SAFETY: a task that is new was filled.
        let body = self.body.with(|body| unsafe { (*body).unwrap_unchecked() });
        // SAFETY: the room holds the closure that `body` was made for, and `place`
        // has the type of its outcome.
        unsafe { (body.call)(&self.room, place) };
        self.end_locals();
        self.head.store(NO_STACK, Ordering::Relaxed);
        joiner.step(LENDING, RUNNABLE);
    }

    /// Switches to the ULT `next`, which may be this one: then this returns at once.
    /// `None`: leaves the worker. Returns when this ULT is resumed.
    ///
    /// # Safety
    ///
    /// The caller runs as this ULT, and has the right to the next one, which is on a
    /// stack.
    // Inlined, as all functions that suspend: a processor predicts the target of a
    // return by the last call, and after a switch that call was made by another ULT.
    #[inline(always)]
    pub(crate) unsafe fn leave(&self, next: Option<NonNull<Self>>, left: Left) {
        // SAFETY: the caller has the right to the next ULT.
        let Some(next) = next.map(|next| unsafe { next.as_ref() }) else {
            cold_path();
            // SAFETY: the caller runs as this ULT.
            return unsafe { self.suspend(left) };
        };
        // SAFETY: both ULTs are on stacks.
        let head = |task: &Self| unsafe { &*task.head_at() };
        // SAFETY: the caller runs as this ULT, and has the next one.
        unsafe { Head::pass(&self.saved, &next.saved, || [head(self), head(next)]) };
    }

    /// Leaves the worker; returns when the ULT is resumed, perhaps by another worker.
    ///
    /// # Safety
    ///
    /// The caller runs as this ULT.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, left: Left) {
        // SAFETY: the caller runs as this ULT, so it is on a stack.
        unsafe { self.head().unwrap_unchecked().suspend(&self.saved, left) }
    }

    /// Leaves the worker with a request.
    ///
    /// # Safety
    ///
    /// As for [`suspend`](Self::suspend).
    #[inline(always)]
    pub(crate) unsafe fn ask(&self, mut request: Request) {
        // SAFETY: the caller runs as this ULT; the request stays until the ULT is
        // resumed.
        unsafe { self.suspend(Left::request(&raw mut request)) }
    }

    /// Runs one life on a stack: runs the closure and keeps the result.
    ///
    /// # Safety
    ///
    /// `this` is a task that was filled, runs for the first time, and is on this
    /// stack.
    pub(crate) unsafe fn live(this: *const ()) {
        // SAFETY: the caller's `this` is a task; descriptors outlive their ULTs.
        let this = unsafe { &*this.cast::<Self>() };
        // SAFETY: the caller promises that the task was filled.
        let body = this.body.with(|body| unsafe { (*body).unwrap_unchecked() });
        // SAFETY: the room holds the closure that `body` was made for.
        unsafe { (body.run)(&this.room) };
        this.end_locals();
        // A detached ULT usually drops its result here, where the destructor may
        // block.
        if this.join.load(Ordering::Acquire) == DETACHED {
            this.drop_result();
        }
    }

    /// Drops the ULT-local values. Called by the running ULT.
    #[inline(always)]
    fn end_locals(&self) {
        // SAFETY: the values belong to the running ULT.
        let locals = self.locals.with(|locals| unsafe { *locals });
        if !locals.is_null() {
            // SAFETY: the values belong to this ULT, and are not dropped yet.
            unsafe { Locals::end(&self.locals) };
        }
    }

    /// Sets the race of a sleep that may be cancelled.
    ///
    /// # Safety
    ///
    /// The caller holds the alarms' lock.
    pub(crate) unsafe fn set_sleeper(&self, race: *const Race) {
        // SAFETY: the caller holds the alarms' lock.
        self.sleeper.with_mut(|sleeper| unsafe { *sleeper = race });
    }

    /// The race of a sleep that may be cancelled, or null.
    ///
    /// # Safety
    ///
    /// The caller holds the alarms' lock.
    pub(crate) unsafe fn sleeper(&self) -> *const Race {
        // SAFETY: the caller holds the alarms' lock.
        self.sleeper.with(|sleeper| unsafe { *sleeper })
    }

    /// Ends a ULT that the end of its scheduler cut off. Its result is
    /// [`Cancelled`](crate::Cancelled); its closure, if it did not run, is dropped.
    ///
    /// # Safety
    ///
    /// The ULT did not end, runs nowhere, and never will again.
    pub(crate) unsafe fn cancel(&self) {
        let started = self.state() != Some(State::New);
        // SAFETY: the ULT did not end, so its task was filled, and no other thread
        // uses it.
        let body = self.body.with(|body| unsafe { (*body).expect("a ULT has a body") });
        // SAFETY: the closure is in the room exactly if the ULT never ran.
        unsafe { (body.cancel)(&self.room, started) };
    }

    /// Empties the slot. If true, the caller must also take the particulars out,
    /// under the lock of the names.
    #[inline]
    pub(crate) fn clear(&self) -> bool {
        self.generation.store(self.generation.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.set_state(FREE);
        !self.particulars.load(Ordering::Relaxed).is_null()
    }

    /// Takes the particulars out; the caller drops them.
    pub(crate) fn take_particulars(&self) -> Option<Box<Particulars>> {
        let have = self.particulars.swap(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the pointer comes from `Box::into_raw` in `adorn`.
        (!have.is_null()).then(|| unsafe { Box::from_raw(have) })
    }

    /// The ULT's name.
    ///
    /// # Safety
    ///
    /// The task is not cleared meanwhile: the ULT runs, or the caller has the names'
    /// lock.
    pub(crate) unsafe fn name(&self) -> Option<&str> {
        // Acquire: pairs with the Release in `adorn`. SAFETY: particulars are valid
        // until the task is cleared.
        unsafe { self.particulars.load(Ordering::Acquire).as_ref() }?.name.as_deref()
    }
}

// SAFETY: a task is in one queue at a time, and only queues use `link`.
unsafe impl Linked for Task {
    #[inline(always)]
    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

// The bits beside a head's address, which is a multiple of 16.
/// The stack has a canary.
const HAS_CANARY: usize = 1;
/// A switch is not enough to resume the ULT: it keeps control words, or is on no
/// stack.
const UNUSUAL: usize = 2;
/// The ULT is urgent, or pinned to a worker.
const PARTICULAR: usize = 4;
const BITS: usize = HAS_CANARY | UNUSUAL | PARTICULAR;
const NO_STACK: *mut Head = ptr::without_provenance_mut(UNUSUAL);

#[cfg(not(tsumugi_loom))]
const _: () = assert!(size_of::<Task>() == 128, "two cache lines");
