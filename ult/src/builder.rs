//! Starting ULTs, from a ULT or from outside, with options.
//!
//! Progress: `spawn` is lock-free, but for growth of a queue or of the descriptors (a
//! short lock).

use crate::future::block_on;
use crate::join::JoinHandle;
use crate::sched::Spawner;
use crate::sched::current;
use crate::sched::shared::SchedulerShared;
use crate::sched::worker::Worker;
use crate::slab::TaskSlot;
use crate::task::Traits;
use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::ptr::{self, NonNull};
use tsumugi_core::wait::Spawn;

/// Options of a ULT.
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// # let config = Config::new(StackArea::map(1 << 20)?).main_stack_bytes(256 << 10);
/// # Scheduler::new(config)?.run(|| {
/// use tsumugi_ult::Builder;
///
/// let poller = Builder::new().name("poller").pin(0).urgent(true).spawn(|| 7);
/// assert_eq!(poller.join().unwrap(), 7);
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    name: Option<Box<str>>,
    stack_bytes: Option<usize>,
    traits: Traits,
    order: Order,
}

/// Which ULT runs after a spawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// The caller runs on (help-first); the child is the youngest of its worker's
    /// queue.
    #[default]
    HelpFirst,
    /// The child runs (child-first); the caller becomes the youngest of its worker's
    /// queue. It runs on when the child ends or sleeps, or on another worker before
    /// that.
    ChildFirst,
}

/// Why a ULT cannot be spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnError {
    /// The caller is no ULT, and gave no scheduler.
    NoScheduler,
    /// The scheduler has no worker of this number.
    Worker {
        /// The worker to which the ULT should be pinned.
        worker: usize,
        /// How many workers there are.
        workers: usize,
    },
    /// The scheduler has no stacks of this size: the largest has 2048 times its
    /// ordinary size.
    Stack {
        /// The bytes that were requested.
        bytes: usize,
    },
}

impl Builder {
    /// A builder without options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the ULT: [`Spawner::dump`] and the report of a stack overflow show the
    /// name.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Requests a stack of at least `bytes` bytes. The size is rounded up to the
    /// scheduler's ordinary size times or divided by a power of two.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = Some(bytes);
        self
    }

    /// Sets which ULT runs after the spawn; by default the caller. This has no effect
    /// for a spawn from outside, or for a ULT that is pinned or urgent.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Pins the ULT to a worker of its scheduler, counted from 0: the ULT runs there
    /// from its first instruction to its last, and other workers never steal it.
    pub fn pin(mut self, worker: usize) -> Self {
        self.traits.worker = Some(worker);
        self
    }

    /// Makes the ULT urgent: whenever it becomes ready, but not when it yields, it
    /// runs before the other ready ULTs. It does not interrupt a running ULT. A
    /// pinned ULT is not urgent.
    pub fn urgent(mut self, urgent: bool) -> Self {
        self.traits.urgent = urgent;
        self
    }

    /// Makes the floating-point control words (rounding, traps) private to the ULT:
    /// they are restored after each sleep, and other ULTs do not see its changes. The
    /// ULT starts with the words of its spawner. This costs about as much as a
    /// switch. On x86-64 and AArch64; no effect elsewhere.
    pub fn keep_fp_control(mut self, keep: bool) -> Self {
        self.traits.keeps_fp = keep;
        self
    }

    /// As [`spawn`], with these options. The rules for what must not live across the
    /// ULT's suspensions are [there](spawn#suspension).
    ///
    /// # Panics
    ///
    /// As [`spawn`]; if there is no stack of the requested size, or if the ULT is
    /// pinned to a worker that does not exist.
    pub fn spawn<T, F>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: `f` and its result are 'static, so they borrow nothing that could
        // end.
        unsafe { spawn_here(f, self) }
    }

    /// As [`Spawner::try_spawn`], with these options. The same rules hold for what
    /// must not live across suspensions.
    ///
    /// # Errors
    ///
    /// The closure, if the scheduler has ended.
    ///
    /// # Panics
    ///
    /// If there is no stack of the requested size, or if the ULT is pinned to a
    /// worker that does not exist.
    pub fn try_spawn_on<T, F>(self, spawner: &Spawner, f: F) -> Result<JoinHandle<T>, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: `f` and its result are 'static, so they borrow nothing that could
        // end.
        unsafe { self.inject(&spawner.shared, f) }
    }

    /// As [`spawn`](Self::spawn), on the given scheduler; the caller may be one of
    /// its ULTs.
    ///
    /// # Safety
    ///
    /// What `f` and its result borrow stays valid until the ULT has ended, and its
    /// result is taken or dropped.
    pub(crate) unsafe fn spawn_unbounded<T, F>(self, on: &SchedulerShared, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        // SAFETY: this thread's worker is valid until the caller suspends; nothing
        // suspends below.
        let worker = current::worker().map(|worker| unsafe { worker.as_ref() });
        if worker.is_some_and(|worker| ptr::eq(&raw const **worker.shared(), on)) {
            // SAFETY: the caller keeps what `f` borrows.
            return unsafe { spawn_here(f, self) };
        }
        // SAFETY: as above.
        match unsafe { self.inject(on, f) } {
            Ok(handle) => handle,
            Err(_) => panic!("spawn: the scheduler has ended"),
        }
    }

    /// Starts a ULT from outside of its scheduler. Returns the closure if the
    /// scheduler has ended.
    ///
    /// # Safety
    ///
    /// As for `spawn_unbounded`.
    unsafe fn inject<T, F>(self, shared: &SchedulerShared, f: F) -> Result<JoinHandle<T>, F>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let Some(_visit) = shared.visit() else { return Err(f) };
        let traits = self.traits(shared);
        let slot = shared.slab.take_shared(shared.home());
        // SAFETY: the slot is free and ours; the caller keeps what `f` borrows.
        unsafe {
            slot.as_ref().fill(f);
            slot.as_ref().adorn(self.name, traits);
            shared.inject(slot);
        }
        Ok(JoinHandle::new(slot))
    }

    /// Checks that the given scheduler, or else the caller's, has what the options
    /// request, so that a spawn does not panic.
    ///
    /// # Errors
    ///
    /// [`SpawnError::NoScheduler`] if no scheduler is given and the caller is no ULT;
    /// [`SpawnError::Worker`] or [`SpawnError::Stack`] if the scheduler has no such
    /// worker or no stacks of that size.
    pub fn check(&self, on: Option<&Spawner>) -> Result<(), SpawnError> {
        let shared = match (on, current::worker()) {
            (Some(spawner), _) => &*spawner.shared,
            // SAFETY: this thread's worker is valid until the caller suspends;
            // nothing suspends below.
            (None, Some(worker)) => &**unsafe { worker.as_ref() }.shared(),
            (None, None) => return Err(SpawnError::NoScheduler),
        };
        self.try_traits(shared).map(|_| ())
    }

    /// The traits that the options stand for; panics if the scheduler does not have
    /// them.
    fn traits(&self, shared: &SchedulerShared) -> Traits {
        self.try_traits(shared).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_traits(&self, shared: &SchedulerShared) -> Result<Traits, SpawnError> {
        let workers = shared.worker_slots.len();
        if let Some(worker) = self.traits.worker.filter(|worker| *worker >= workers) {
            return Err(SpawnError::Worker { worker, workers });
        }
        let class = match self.stack_bytes {
            Some(bytes) => shared.stacks.class(bytes).ok_or(SpawnError::Stack { bytes })?,
            None => Default::default(),
        };
        Ok(Traits { class, ..self.traits })
    }
}

impl Spawner {
    /// Starts a ULT, from any thread. The rules for what must not live across its
    /// suspensions are at [`spawn`](crate::spawn#suspension).
    ///
    /// # Panics
    ///
    /// If the scheduler has ended.
    pub fn spawn<T, F>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        match self.try_spawn(f) {
            Ok(handle) => handle,
            Err(_) => panic!("spawn: the scheduler has ended"),
        }
    }

    /// Starts a ULT, from any thread. The rules for what must not live across its
    /// suspensions are at [`spawn`](crate::spawn#suspension).
    ///
    /// # Errors
    ///
    /// The closure, if the scheduler has ended.
    pub fn try_spawn<T, F>(&self, f: F) -> Result<JoinHandle<T>, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Builder::new().try_spawn_on(self, f)
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScheduler => f.write_str("the calling thread is not a ULT: use a Spawner"),
            Self::Worker { worker, workers } => {
                write!(f, "worker {worker} does not exist: the scheduler has {workers} workers")
            }
            Self::Stack { bytes } => write!(
                f,
                "a stack of {bytes} bytes is too large: the limit is 2048 times the scheduler's \
                 stack size"
            ),
        }
    }
}

impl core::error::Error for SpawnError {}

impl Spawn for Spawner {
    unsafe fn spawn_detached(&self, run: unsafe fn(*mut ()), data: *mut ()) -> bool {
        struct DetachedCall(unsafe fn(*mut ()), *mut ());
        // SAFETY: the caller of `spawn_detached` promises that `run` may be called on
        // any thread.
        unsafe impl Send for DetachedCall {}
        let call = DetachedCall(run, data);
        self.try_spawn(move || {
            let call = call;
            // SAFETY: the caller of `spawn_detached` promises that `run(data)` may be
            // called once.
            unsafe { (call.0)(call.1) }
        })
        .is_ok()
    }
}

/// Starts a ULT on the caller's scheduler. The caller runs on at once.
///
/// # Suspension
///
/// A ULT may resume on another OS thread after any call that suspends it. Any call
/// that may wait can suspend: join, lock, park, yield, sleep, receive, put, get. A
/// value that belongs to an OS thread must not live across such a call, and the
/// compiler does not check that: a reference into a `thread_local!` (`with`,
/// `with_borrow`), a value that lives in one and is not `Send` (an `Rc` that was
/// cloned from it), a guard of `std`'s locks, `StdoutLock`. To break this rule is a
/// data race. A destructor that suspends while it unwinds makes
/// `std::thread::panicking` true for other ULTs on that OS thread, until it resumes;
/// their guards of `std` poison locks meanwhile.
///
/// [`callback`](crate::callback) checks the rule: code that holds such a value and
/// runs inside a `callback` panics where it would sleep, in every build. A value that
/// must live across a suspension is `Send`, or lies in an
/// [`ult_local!`](crate::ult_local).
///
/// Builds with debug assertions check each suspension, and other builds do if
/// [`Config::suspension_check`](crate::Config) requests it (in a job
/// `TSUMUGI_SUSPENSION`). They report a suspension of a ULT that unwinds, the first
/// of the process, and each suspension under a [`NoSuspend`](crate::NoSuspend). A
/// program puts a `NoSuspend` beside a guard of `std`'s;
/// [`with_thread_local`](crate::with_thread_local) puts one round a reference into a
/// `thread_local!`. A guard or a reference without a `NoSuspend` beside it is not
/// seen: `std` reports neither guards nor references, and a search of the stack for
/// them would report words that are left from calls long past.
///
/// # Panics
///
/// On a thread that is no ULT: there, use [`Spawner::spawn`].
#[inline]
pub fn spawn<T, F>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: `f` and its result are 'static, so they borrow nothing that could end.
    let (worker, slot) = unsafe { fill_here(f) };
    // SAFETY: this thread's worker; nothing has suspended since `fill_here` returned
    // it.
    unsafe { worker.as_ref() }.spawned(slot);
    JoinHandle::new(slot)
}

/// Runs a future as a ULT of its own; while the future is pending the ULT sleeps. The
/// future may be of any executor, and its wakes may come from any thread. A future
/// that is `Send` holds nothing across an `await` that belongs to an OS thread; the
/// functions that it calls may suspend elsewhere, see [`spawn`](spawn#suspension).
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// # let config = Config::new(StackArea::map(1 << 20)?).main_stack_bytes(256 << 10);
/// # Scheduler::new(config)?.run(|| {
/// let answer = tsumugi_ult::spawn_future(async { 42 });
/// assert_eq!(answer.join().unwrap(), 42);
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
///
/// As [`spawn`].
pub fn spawn_future<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    spawn(move || block_on(future))
}

/// Starts a ULT on the caller's scheduler, with options.
///
/// # Safety
///
/// As for `Builder::spawn_unbounded`.
#[inline]
unsafe fn spawn_here<T, F>(f: F, builder: Builder) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let Some(worker) = current::worker() else { no_ult() };
    // SAFETY: this thread's worker is valid until the caller suspends; nothing does
    // before `ask`.
    let worker = unsafe { worker.as_ref() };
    let traits = builder.traits(worker.shared());
    // SAFETY: the caller keeps what `f` borrows.
    let (_, slot) = unsafe { fill_here(f) };
    let handle = JoinHandle::new(slot);
    // SAFETY: the slot was filled just now, and the ULT is in no queue.
    let task = unsafe { slot.as_ref() };
    // SAFETY: as above: no other thread has the ULT yet.
    unsafe { task.adorn(builder.name, traits) };
    match (builder.order, worker.current()) {
        (Order::ChildFirst, Some(parent)) if task.is_plain() => {
            worker.look_first(parent, "spawn");
            worker.look_aside(parent, "spawn");
            worker.note_spawned(slot);
            // SAFETY: we run as this ULT. After the call the worker may be another
            // one.
            unsafe { worker.run_first(parent, slot) }
        }
        _ => worker.spawned_with_traits(slot),
    }
    handle
}

/// Fills a slot with `f`: a ULT that is in no queue yet, and the worker that will get
/// it.
///
/// # Safety
///
/// As for `Builder::spawn_unbounded`.
#[inline(always)]
unsafe fn fill_here<T, F>(f: F) -> (NonNull<Worker>, TaskSlot)
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let Some(worker) = current::worker() else { no_ult() };
    // SAFETY: this thread's worker is valid until the caller suspends; nothing
    // suspends below.
    let slot = unsafe { worker.as_ref() }.slot();
    // SAFETY: the slot is free and ours; the caller keeps what `f` borrows.
    unsafe { slot.as_ref().fill(f) };
    (worker, slot)
}

#[cold]
fn no_ult() -> ! {
    panic!("spawn: the calling thread is not a ULT: use a Spawner")
}
