//! Starting ULTs, here or from outside, with particulars if wanted.
//!
//! Progress: `spawn` is lock-free but for growth of a queue or of the
//! descriptors (a short lock).

use crate::future::block_on;
use crate::join::JoinHandle;
use crate::sched::Spawner;
use crate::sched::current;
use crate::sched::shared::Shared;
use crate::sched::worker::Worker;
use crate::slab::Slot;
use crate::task::{Request, Traits};
use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::ptr::{self, NonNull};
use tsumugi_core::wait::Spawn;

/// Particulars of a ULT.
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// # let config = Config { main_stack_bytes: 256 << 10, ..Config::new(StackArea::map(1 << 20)?) };
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

/// Who goes on after a spawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The caller; the child is the youngest of its worker's queue.
    #[default]
    HelpFirst,
    /// The child; the caller is the youngest of its worker's queue, and goes
    /// on there when the child ends or sleeps, or on another worker before.
    ChildFirst,
}

/// What a scheduler has not got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnError {
    /// The caller is no ULT, and named no scheduler.
    NoScheduler,
    /// A worker to be pinned to.
    Worker {
        /// The one asked for.
        worker: usize,
        /// How many there are.
        workers: usize,
    },
    /// A stack of so many bytes.
    Stack {
        /// What was asked for.
        bytes: usize,
    },
}

impl Builder {
    /// No particulars.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the ULT, for whoever looks at [`Spawner::dump`] or reads that it
    /// overflowed its stack.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Asks for a stack of at least so many bytes; rounded up to the
    /// scheduler's ordinary size times or divided by a power of two.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = Some(bytes);
        self
    }

    /// Says who goes on: the caller, unless told otherwise. Of no consequence
    /// for a spawn from outside, and for a ULT that is pinned or urgent.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Runs the ULT on this worker of its scheduler, from its first
    /// instruction to its last, counted from 0. The others never steal it.
    pub fn pin(mut self, worker: usize) -> Self {
        self.traits.worker = Some(worker);
        self
    }

    /// Runs the ULT before others that are ready whenever it becomes ready,
    /// but not when it yields. It does not interrupt anybody. A pinned ULT is
    /// not urgent.
    pub fn urgent(mut self, urgent: bool) -> Self {
        self.traits.urgent = urgent;
        self
    }

    /// Keeps the floating-point control words (rounding, traps) that the ULT
    /// sets its own: it finds them again after each sleep, and others do not
    /// see them. It starts with those of whoever spawns it. Costs about as much
    /// as a switch. On x86-64 and AArch64; nothing elsewhere.
    pub fn keep_fp_control(mut self, keep: bool) -> Self {
        self.traits.keeps_fp = keep;
        self
    }

    /// As [`spawn`]. What must not live across the ULT's suspensions is written
    /// [there](spawn#suspension).
    ///
    /// # Panics
    ///
    /// As [`spawn`]; if there is no stack of the size asked for, or if it is
    /// pinned to a worker that there is not.
    pub fn spawn<T, F>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: everything is 'static.
        unsafe { spawn_here(f, self) }
    }

    /// As [`Spawner::try_spawn`], also in what must not live across suspensions.
    ///
    /// # Errors
    ///
    /// As [`Spawner::try_spawn`].
    ///
    /// # Panics
    ///
    /// If it is pinned to a worker that there is not.
    pub fn try_spawn_on<T, F>(self, spawner: &Spawner, f: F) -> Result<JoinHandle<T>, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: everything is 'static.
        unsafe { self.inject(&spawner.shared, f) }
    }

    /// As [`spawn`](Self::spawn), on this scheduler, of which the caller may be a
    /// ULT.
    ///
    /// # Safety
    ///
    /// What `f` and its result borrow stays until the ULT has ended, and its
    /// result is taken or dropped.
    pub(crate) unsafe fn spawn_unbounded<T, F>(self, on: &Shared, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        // SAFETY: this thread's worker; nothing suspends below.
        let worker = current::worker().map(|worker| unsafe { worker.as_ref() });
        if worker.is_some_and(|worker| ptr::eq(&raw const **worker.shared(), on)) {
            // SAFETY: the caller's.
            return unsafe { spawn_here(f, self) };
        }
        // SAFETY: the caller's.
        match unsafe { self.inject(on, f) } {
            Ok(handle) => handle,
            Err(_) => panic!("the scheduler has ended"),
        }
    }

    /// # Safety
    ///
    /// As for `spawn_unbounded`.
    unsafe fn inject<T, F>(self, shared: &Shared, f: F) -> Result<JoinHandle<T>, F>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let Some(_visit) = shared.visit() else { return Err(f) };
        let traits = self.traits(shared);
        let slot = shared.slab.take_shared(shared.home());
        // SAFETY: the slot is free and ours; the caller's.
        unsafe {
            slot.as_ref().fill(f);
            slot.as_ref().adorn(self.name, traits);
            shared.inject(slot);
        }
        Ok(JoinHandle::new(slot))
    }

    /// Whether the scheduler, or the caller's, has what it asks for, so that a
    /// spawn does not panic.
    ///
    /// # Errors
    ///
    /// [`SpawnError`].
    pub fn check(&self, on: Option<&Spawner>) -> Result<(), SpawnError> {
        let shared = match (on, current::worker()) {
            (Some(spawner), _) => &*spawner.shared,
            // SAFETY: this thread's worker; nothing suspends below.
            (None, Some(worker)) => &**unsafe { worker.as_ref() }.shared(),
            (None, None) => return Err(SpawnError::NoScheduler),
        };
        self.try_traits(shared).map(|_| ())
    }

    /// What it asks for, of a scheduler that has it.
    fn traits(&self, shared: &Shared) -> Traits {
        self.try_traits(shared).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_traits(&self, shared: &Shared) -> Result<Traits, SpawnError> {
        let workers = shared.seats.len();
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
    /// Starts a ULT, from any thread. What must not live across its suspensions is
    /// written at [`spawn`](crate::spawn#suspension).
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
            Err(_) => panic!("the scheduler has ended"),
        }
    }

    /// Starts a ULT, from any thread. What must not live across its suspensions is
    /// written at [`spawn`](crate::spawn#suspension).
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
            Self::NoScheduler => f.write_str("this thread is no ULT; use a Spawner"),
            Self::Worker { worker, workers } => {
                write!(f, "a ULT pinned to worker {worker} of {workers}")
            }
            Self::Stack { bytes } => write!(f, "no stack has {bytes} bytes"),
        }
    }
}

impl core::error::Error for SpawnError {}

impl Spawn for Spawner {
    unsafe fn spawn_detached(&self, run: unsafe fn(*mut ()), data: *mut ()) -> bool {
        struct Call(unsafe fn(*mut ()), *mut ());
        // SAFETY: `spawn_detached` demands it.
        unsafe impl Send for Call {}
        let call = Call(run, data);
        self.try_spawn(move || {
            let call = call;
            // SAFETY: `spawn_detached` demands it.
            unsafe { (call.0)(call.1) }
        })
        .is_ok()
    }
}

/// Starts a ULT on the caller's scheduler. The caller goes on at once.
///
/// # Suspension
///
/// A ULT may go on on another OS thread after any call that suspends it, which
/// is any that may wait: join, lock, park, yield, sleep, receive, put, get. What
/// belongs to an OS thread must not live across one, and the compiler does not
/// check that: a reference into a `thread_local!` (`with`, `with_borrow`), a
/// value that lives in one and is not `Send` (an `Rc` that was cloned from it),
/// a guard of `std`'s locks, `StdoutLock`. That would be a data race. A
/// destructor that suspends while it unwinds makes `std::thread::panicking`
/// true for others on that OS thread, until it goes on; their guards of `std`
/// poison locks meanwhile.
///
/// [`callback`](crate::callback) checks it: code that holds such a thing
/// and runs inside one panics where it would sleep, in every build. What must
/// live across a suspension is `Send`, or lies in an [`ult_local!`](crate::ult_local).
///
/// Builds with debug assertions look at each suspension, and others do if
/// [`Config::suspension_check`](crate::Config) says so (in a job
/// `TSUMUGI_SUSPENSION`). They report one of a ULT that unwinds, the first of the
/// process, and each under a [`NoSuspend`](crate::NoSuspend), which is put beside a
/// guard of `std`'s; [`with_thread_local`](crate::with_thread_local) puts it round a
/// reference into a `thread_local!`. What has no `NoSuspend` beside it they do not
/// see: `std` tells of no guard and of no reference, and a search of the stack for
/// them would report words that are left from calls long past.
///
/// # Panics
///
/// On a thread that is no ULT: use [`Spawner::spawn`].
#[inline]
pub fn spawn<T, F>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: everything is 'static.
    let (worker, slot) = unsafe { fill_here(f) };
    // SAFETY: this thread's worker; nothing suspended since it was asked.
    unsafe { worker.as_ref() }.spawned(slot);
    JoinHandle::new(slot)
}

/// Runs a future as a ULT of its own: while it is pending the ULT sleeps. Any
/// future will do; whatever wakes it may be on any thread. A future that is `Send`
/// holds nothing across an `await` that belongs to an OS thread; what it calls may
/// suspend elsewhere, see [`spawn`](spawn#suspension).
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// # let config = Config { main_stack_bytes: 256 << 10, ..Config::new(StackArea::map(1 << 20)?) };
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
    // SAFETY: this thread's worker; nothing suspends below.
    let worker = unsafe { worker.as_ref() };
    let traits = builder.traits(worker.shared());
    // SAFETY: the caller's.
    let (_, slot) = unsafe { fill_here(f) };
    let handle = JoinHandle::new(slot);
    // SAFETY: filled just now, and in no queue.
    let task = unsafe { slot.as_ref() };
    // SAFETY: as above.
    unsafe { task.adorn(builder.name, traits) };
    match (builder.order, worker.current()) {
        (Order::ChildFirst, Some(parent)) if task.is_plain() => {
            worker.look_first(parent, "spawn");
            worker.look_aside(parent, "spawn");
            worker.note_spawned(slot);
            // SAFETY: we run as this ULT. The worker may be another one after.
            unsafe { parent.as_ref().ask(Request::RunFirst(slot)) }
        }
        _ => worker.spawned_with_traits(slot),
    }
    handle
}

/// A ULT that is in no queue yet, and the worker whose it will be.
///
/// # Safety
///
/// As for `Builder::spawn_unbounded`.
#[inline(always)]
unsafe fn fill_here<T, F>(f: F) -> (NonNull<Worker>, Slot)
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let Some(worker) = current::worker() else { no_ult() };
    // SAFETY: this thread's worker; nothing suspends below.
    let slot = unsafe { worker.as_ref() }.slot();
    // SAFETY: the slot is free and ours; the caller's.
    unsafe { slot.as_ref().fill(f) };
    (worker, slot)
}

#[cold]
fn no_ult() -> ! {
    panic!("spawn: this thread is no ULT; use a Spawner")
}
