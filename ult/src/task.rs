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
//! `Ready` and `Running` are one value of the state: which of the two it is, the
//! workers say, and so a switch from one ULT to the next changes the state of
//! neither. Who parks on the only worker says so in the park word alone.
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
//! `join`, needs neither. Descriptors are slots of a `slab` and are never
//! unmapped while the scheduler lives, so a late wake hits a descriptor, if of
//! somebody else, never wild memory.
//!
//! A descriptor is two cache lines: the first is all that a yield looks at, where
//! the ULT left off included, and what queues, switches and wakes change; the
//! second what the ULT runs, and what a waker has to know, which stays as it is
//! while the ULT sleeps. So a yield among many touches a line of each ULT's
//! descriptor and one of its frames. What a ULT needs only once it has a stack
//! lies at the top of that, in its [`Head`]; what few have, and what all of a
//! chunk have in common ([`Origin`]), elsewhere.

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
    /// Where it left off.
    saved: Saved,
    /// The top of the stack it is on, null before it is on one, and what is to be
    /// looked at when it leaves or goes on: see the bits.
    head: AtomicPtr<Head>,
    /// What is asked of it: a worker to stay on, flags, a size of stack.
    traits: AtomicU32,
    pub(crate) park: ParkWord,
    link: AtomicPtr<Task>,
    /// `count << 3 | State`: the count makes a copy of the reason checkable.
    state: AtomicU32,
    pub(crate) generation: AtomicU32,
    join: AtomicUsize,
    /// Its ULT-local values; null if it has none. The running ULT's.
    pub(crate) locals: UnsafeCell<*mut Locals>,
    /// Its sleep, if that may be cancelled; under the alarms' lock.
    sleeper: UnsafeCell<*const Race>,

    particulars: AtomicPtr<Particulars>,
    /// The worker that it slept on last, and so whose caches know it.
    last: AtomicU32,
    /// How many others lie before it in its chunk.
    place: u32,
    body: UnsafeCell<Option<&'static Body>>,
    /// The closure until it runs, the result once it has.
    room: Room,
}

/// What all descriptors of a chunk have in common: it lies before the first.
#[repr(C, align(64))]
pub(crate) struct Origin {
    /// The scheduler's shared part; opaque here, which is a lower floor.
    pub(crate) home: *const (),
    /// The number of the first.
    pub(crate) first: u32,
}

/// What few ULTs have.
pub(crate) struct Particulars {
    pub(crate) name: Option<Box<str>>,
    /// Its floating-point control words, if it keeps them. The worker's that
    /// has it.
    fp: UnsafeCell<FpControl>,
}

// SAFETY: see "who may touch what" in the module's documentation.
unsafe impl Send for Task {}
// SAFETY: the same.
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

    /// Its number.
    pub(crate) fn slot(&self) -> u32 {
        self.origin().first + self.place
    }

    #[inline(always)]
    fn origin(&self) -> &Origin {
        let first = ptr::from_ref(self).addr() - self.place as usize * size_of::<Self>();
        // SAFETY: a chunk is whole, and stays; the slab has shown where it is.
        unsafe { &*ptr::with_exposed_provenance(first - size_of::<Origin>()) }
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
        self.park.reset();
        self.traits.store(0, Ordering::Relaxed);
        self.set_state(NEW);
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
        unsafe { self.head_at().as_ref() }
    }

    #[inline(always)]
    fn head_at(&self) -> *mut Head {
        self.head.load(Ordering::Relaxed).map_addr(|addr| addr & !BITS)
    }

    /// Where it left off.
    #[inline(always)]
    pub(crate) fn saved(&self) -> &Saved {
        &self.saved
    }

    /// The top of the running ULT's stack, if the worker has no part in its
    /// leaving: it is plain, keeps no control words, and the canary of its stack,
    /// if it has one, is alive.
    #[inline(always)]
    pub(crate) fn free_head(&self) -> Option<&Head> {
        let word = self.head.load(Ordering::Relaxed);
        let bits = word.addr() & BITS;
        if bits == 0 {
            // SAFETY: it runs, so it is on a stack, and there are no bits beside.
            return unsafe { word.as_ref() };
        }
        cold_path();
        // SAFETY: it runs.
        unsafe { self.head() }.filter(|head| bits == HAS_CANARY && head.is_intact())
    }

    /// Whether it is on a stack and keeps no control words: to be resumed, and
    /// nothing else. Of one that the caller does not have, a guess.
    #[inline(always)]
    pub(crate) fn is_usual(&self) -> bool {
        self.head.load(Ordering::Relaxed).addr() & UNUSUAL == 0
    }

    /// Whether one that is on a stack is for the queues that any worker takes
    /// from. One that ran in another's place is so if that one was.
    #[inline(always)]
    pub(crate) fn is_for_all(&self) -> bool {
        self.head.load(Ordering::Relaxed).addr() & PARTICULAR == 0
    }

    /// Puts it on a stack of its own.
    ///
    /// # Safety
    ///
    /// As for [`head`](Self::head), and it is on none.
    #[inline]
    pub(crate) unsafe fn bind(&self, stack: Stack) -> &Head {
        // SAFETY: heads stay as long as their stacks.
        let head = unsafe { stack.head().as_ref() };
        head.begin(&self.saved);
        let canary = if head.is_watched() { HAS_CANARY } else { 0 };
        let particular = if self.is_plain() { 0 } else { PARTICULAR };
        let unusual = if self.keeps_fp() { UNUSUAL } else { 0 };
        let word = stack.head().as_ptr().map_addr(|addr| addr | canary | particular | unusual);
        self.head.store(word, Ordering::Relaxed);
        head
    }

    /// Takes the stack of a ULT that ended on it.
    ///
    /// # Safety
    ///
    /// As for [`head`](Self::head).
    #[inline]
    pub(crate) unsafe fn unbind(&self) -> Stack {
        let head = NonNull::new(self.head_at());
        self.head.store(NO_STACK, Ordering::Relaxed);
        // SAFETY: the ULT had it alone.
        let stack = unsafe { Stack::from_head(head.expect("a ULT that ended has a stack")) };
        #[cfg(tsumugi_tsan)]
        // SAFETY: heads stay as long as their stacks.
        unsafe { stack.head().as_ref() }.end();
        stack
    }

    /// Runs this unstarted ULT as a call, on the stack of `joiner`, who waits
    /// for it meanwhile, and writes its outcome to `place`. It may be on
    /// another worker afterwards.
    ///
    /// # Safety
    ///
    /// Both tasks are the caller's, who runs on `joiner`'s stack as this ULT;
    /// the place is the outcome's type.
    #[inline(always)]
    pub(crate) unsafe fn run_on(&self, joiner: &Self, place: *mut ()) {
        self.head.store(joiner.head.load(Ordering::Relaxed), Ordering::Relaxed);
        joiner.step(RUNNABLE, LENDING);
        self.step(NEW, RUNNABLE);
        // SAFETY: a task that is new was filled.
        let body = self.body.with(|body| unsafe { (*body).unwrap_unchecked() });
        // SAFETY: the room holds the closure that `body` was made for.
        unsafe { (body.call)(&self.room, place) };
        self.end_locals();
        self.head.store(NO_STACK, Ordering::Relaxed);
        joiner.step(LENDING, RUNNABLE);
    }

    /// Leaves for the ULT given, which may be this one: then it goes on. `None`:
    /// leaves the worker. Returns when it is resumed.
    ///
    /// # Safety
    ///
    /// The caller runs as this ULT, and has the other one, which is on a stack.
    // Inlined, as all that suspends: a processor predicts where a function
    // returns to by who called it, and after a switch that is somebody else.
    #[inline(always)]
    pub(crate) unsafe fn leave(&self, next: Option<NonNull<Self>>, left: Left) {
        // SAFETY: the caller's.
        let Some(next) = next.map(|next| unsafe { next.as_ref() }) else {
            cold_path();
            // SAFETY: the caller's.
            return unsafe { self.suspend(left) };
        };
        // SAFETY: the caller's.
        let head = |task: &Self| unsafe { &*task.head_at() };
        // SAFETY: the caller's.
        unsafe { Head::pass(&self.saved, &next.saved, || [head(self), head(next)]) };
    }

    /// Leaves the worker; returns when it is resumed, perhaps by another one.
    ///
    /// # Safety
    ///
    /// The caller runs as this ULT.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, left: Left) {
        // SAFETY: the caller's.
        unsafe { self.head().unwrap_unchecked().suspend(&self.saved, left) }
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

    /// Empties the slot. True: it must also forget its particulars, under the
    /// lock of those who read names.
    #[inline]
    pub(crate) fn clear(&self) -> bool {
        self.generation.store(self.generation.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.set_state(FREE);
        !self.particulars.load(Ordering::Relaxed).is_null()
    }

    /// Takes the particulars out, to be dropped.
    pub(crate) fn take_particulars(&self) -> Option<Box<Particulars>> {
        let have = self.particulars.swap(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: they come from `Box::into_raw` in `adorn`.
        (!have.is_null()).then(|| unsafe { Box::from_raw(have) })
    }

    /// Its name.
    ///
    /// # Safety
    ///
    /// It is not cleared meanwhile: it runs, or the caller has the names' lock.
    pub(crate) unsafe fn name(&self) -> Option<&str> {
        // Acquire: pairs with the Release in `adorn`.
        // SAFETY: particulars that are there are valid until cleared.
        unsafe { self.particulars.load(Ordering::Acquire).as_ref() }?.name.as_deref()
    }
}

// SAFETY: a task is in one queue at a time and `link` is used by queues only.
unsafe impl Linked for Task {
    #[inline(always)]
    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

// Beside a head's address, which is a multiple of 16.
/// The stack has a canary.
const HAS_CANARY: usize = 1;
/// To resume it takes more than a switch: it keeps control words, or is on no
/// stack.
const UNUSUAL: usize = 2;
/// It is urgent, or stays on a worker.
const PARTICULAR: usize = 4;
const BITS: usize = HAS_CANARY | UNUSUAL | PARTICULAR;
const NO_STACK: *mut Head = ptr::without_provenance_mut(UNUSUAL);

#[cfg(not(tsumugi_loom))]
const _: () = assert!(size_of::<Task>() == 128, "two cache lines");
