//! Starting ULTs and waiting for their end.
//!
//! A ULT's value, or the panic that ended it, waits in its descriptor until
//! [`JoinHandle::join`] takes it. Dropping the handle lets the ULT go on by
//! itself. Small closures and results (up to 112 bytes) lie in the descriptor,
//! so that neither spawn nor join allocates.
//!
//! Progress: `spawn` is lock-free but for growth of a queue or of the
//! descriptors (a short lock); `join` blocks.

use crate::body::Outcome;
use crate::future::block_on;
use crate::limit::Limit;
use crate::park::{Here, ult};
use crate::sched::current;
use crate::sched::shared::Shared;
use crate::sched::{Spawner, UltId};
use crate::slab::Slot;
use crate::task::{Joiner, Traits};
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem;
use core::time::Duration;
use tsumugi_core::wait::{Interrupted, Reason, Spawn, Wait};

/// Owns a ULT's result to be.
pub struct JoinHandle<T> {
    slot: Slot,
    result: PhantomData<T>,
}

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
    traits: Option<Traits>,
}

// SAFETY: a handle is the right to take one `T`, or to drop it.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared handle only tells whether the ULT has ended.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

/// Starts a ULT on the caller's scheduler. The caller goes on at once.
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
    unsafe { spawn_here(f, Builder::new()) }
}

/// Lets other ULTs, or threads, run.
#[inline]
pub fn yield_now() {
    Here.yield_now();
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

    /// Runs the ULT on this worker of its scheduler, from its first
    /// instruction to its last, counted from 0. The others never steal it.
    pub fn pin(mut self, worker: usize) -> Self {
        self.traits.get_or_insert_default().worker = Some(worker);
        self
    }

    /// Runs the ULT before others that are ready whenever it becomes ready,
    /// but not when it yields. It does not interrupt anybody. A pinned ULT is
    /// not urgent.
    pub fn urgent(mut self, urgent: bool) -> Self {
        self.traits.get_or_insert_default().urgent = urgent;
        self
    }

    /// Keeps the floating-point control words (rounding, traps) that the ULT
    /// sets its own: it finds them again after each sleep, and others do not
    /// see them. It starts with those of whoever spawns it. Costs about as much as a switch.
    /// On x86-64 and AArch64; nothing elsewhere.
    pub fn keep_fp_control(mut self, keep: bool) -> Self {
        self.traits.get_or_insert_default().keeps_fp = keep;
        self
    }

    /// As [`spawn`].
    ///
    /// # Panics
    ///
    /// As [`spawn`], and if it is pinned to a worker that there is not.
    pub fn spawn<T, F>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: everything is 'static.
        unsafe { spawn_here(f, self) }
    }

    /// As [`Spawner::try_spawn`].
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
        unsafe { self.inject(spawner, f) }
    }

    /// As [`spawn`](Self::spawn), on this scheduler or the caller's.
    ///
    /// # Safety
    ///
    /// What `f` and its result borrow stays until the ULT has ended, and its
    /// result is taken or dropped.
    pub(crate) unsafe fn spawn_unbounded<T, F>(self, on: Option<&Spawner>, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let Some(spawner) = on else {
            // SAFETY: the caller's.
            return unsafe { spawn_here(f, self) };
        };
        // SAFETY: the caller's.
        match unsafe { self.inject(spawner, f) } {
            Ok(handle) => handle,
            Err(_) => panic!("the scheduler has ended"),
        }
    }

    /// # Safety
    ///
    /// As for `spawn_unbounded`.
    unsafe fn inject<T, F>(self, spawner: &Spawner, f: F) -> Result<JoinHandle<T>, F>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let shared = &*spawner.shared;
        let Some(_visit) = shared.visit() else { return Err(f) };
        self.check(shared);
        let slot = shared.slab.take_shared(shared.home());
        // SAFETY: the slot is free and ours; the caller's.
        unsafe {
            slot.as_ref().fill(f, self.name);
            if let Some(traits) = self.traits {
                slot.as_ref().set_traits(traits);
            }
            shared.inject(slot);
        }
        Ok(JoinHandle { slot, result: PhantomData })
    }

    fn check(&self, shared: &Shared) {
        if let Some(worker) = self.traits.and_then(|traits| traits.worker) {
            let workers = shared.seats.len();
            assert!(worker < workers, "a ULT pinned to worker {worker} of {workers}");
        }
    }
}

impl Spawner {
    /// Starts a ULT, from any thread.
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

    /// Starts a ULT, from any thread.
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

impl<T> JoinHandle<T> {
    /// Waits for the ULT's end. From a ULT, this one sleeps meanwhile; from
    /// any other thread, that thread does.
    ///
    /// # Errors
    ///
    /// The ULT's panic, or [`Cancelled`](crate::Cancelled).
    pub fn join(self) -> Outcome<T> {
        // SAFETY: a handle keeps its task. Without a limit nothing interrupts.
        let _ = unsafe { wait_end(self.slot, Limit::NONE) };
        self.take()
    }

    /// As [`join`](Self::join), within a limit.
    ///
    /// # Errors
    ///
    /// The handle, if the ULT did not end in time, and why the wait ended.
    pub fn join_within(self, limit: impl Into<Limit>) -> Result<Outcome<T>, (Self, Interrupted)> {
        // SAFETY: a handle keeps its task.
        match unsafe { wait_end(self.slot, limit.into()) } {
            Ok(()) => Ok(self.take()),
            Err(why) => Err((self, why)),
        }
    }

    /// As [`join`](Self::join), for `limit` at most.
    ///
    /// # Errors
    ///
    /// The handle, if the ULT did not end in time.
    pub fn join_timeout(self, limit: Duration) -> Result<Outcome<T>, Self> {
        self.join_within(limit).map_err(|(this, _)| this)
    }

    /// Asks the ULT to give up. It goes on until it looks: its
    /// [`is_cancelled`] is true from now on, and a wait of it that is
    /// [`CANCELLABLE`](Limit::CANCELLABLE), present or to come, ends with
    /// [`Interrupted::Cancelled`]. Nothing else is interrupted.
    ///
    /// ```
    /// # use tsumugi_ult::{Config, Scheduler, StackArea};
    /// # let config = Config { main_stack_bytes: 256 << 10, ..Config::new(StackArea::map(1 << 20)?) };
    /// # Scheduler::new(config)?.run(|| {
    /// use tsumugi_ult::{Interrupted, Limit, sleep_within, spawn};
    ///
    /// let sleeper = spawn(|| sleep_within(Limit::CANCELLABLE));
    /// sleeper.cancel();
    /// assert_eq!(sleeper.join().unwrap(), Interrupted::Cancelled);
    /// # });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel(&self) {
        // SAFETY: a handle keeps its task, and that its home.
        let task = unsafe { self.slot.as_ref() };
        // SAFETY: as above.
        unsafe { &*task.home.cast::<Shared>() }.cancel(task);
    }

    /// The result of a ULT that has ended.
    fn take(self) -> Outcome<T> {
        // SAFETY: finished; the handle is used up; `T` is what it was made for.
        let outcome = unsafe { self.slot.as_ref().take_result() };
        // SAFETY: the ULT has ended and the handle goes.
        unsafe { Shared::release(self.slot) };
        mem::forget(self);
        outcome
    }

    /// Gives up the handle without letting the ULT go: whoever takes the slot
    /// must release it.
    pub(crate) fn into_slot(self) -> Slot {
        let slot = self.slot;
        mem::forget(self);
        slot
    }

    /// # Safety
    ///
    /// The slot comes from `into_slot` of a handle of the same type, and
    /// stands for that handle.
    pub(crate) unsafe fn from_slot(slot: Slot) -> Self {
        Self { slot, result: PhantomData }
    }

    /// Whether the ULT has ended, so that `join` would not wait.
    pub fn is_finished(&self) -> bool {
        // SAFETY: a handle keeps its task.
        unsafe { self.slot.as_ref() }.has_finished()
    }

    /// The ULT's number.
    pub fn id(&self) -> UltId {
        UltId::of(self.slot)
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        // SAFETY: a handle keeps its task.
        let task = unsafe { self.slot.as_ref() };
        if task.detach() {
            task.drop_result();
            // SAFETY: the ULT has ended and the handle goes.
            unsafe { Shared::release(self.slot) };
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinHandle({})", self.id())
    }
}

/// Whether somebody asked the calling ULT to give up; false on other threads.
///
/// See [`JoinHandle::cancel`].
pub fn is_cancelled() -> bool {
    // SAFETY: the running ULT.
    ult().is_some_and(|slot| unsafe { slot.as_ref() }.is_cancelled())
}

/// Lets others run, this ULT first, if it is ready and among the 64 youngest
/// of the caller's worker; else as [`yield_now`]. Whether it was.
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// # let config = Config { main_stack_bytes: 256 << 10, ..Config::new(StackArea::map(1 << 20)?) };
/// # Scheduler::new(Config { workers: 1, ..config })?.run(|| {
/// let child = tsumugi_ult::spawn(|| 1);
/// assert!(tsumugi_ult::yield_to(&child), "one worker, and nobody stole it");
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn yield_to<T>(handle: &JoinHandle<T>) -> bool {
    // SAFETY: this thread's worker, not kept across the suspension.
    let found = current::worker()
        .is_some_and(|worker| unsafe { worker.as_ref() }.bring_forward(handle.slot));
    Here.yield_now();
    found
}

/// Runs a future as a ULT of its own: while it is pending the ULT sleeps. Any
/// future will do; whatever wakes it may be on any thread.
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

/// Waits until the ULT has ended.
///
/// # Safety
///
/// The caller keeps the task, and nobody else waits for its end.
#[inline(always)]
pub(crate) unsafe fn wait_end(slot: Slot, limit: Limit) -> Result<(), Interrupted> {
    // SAFETY: the caller's.
    let task = unsafe { slot.as_ref() };
    if task.has_finished() {
        return Ok(());
    }
    let joiner = Joiner::new();
    let joiner = &raw const joiner;
    let reason = Reason { what: "join", at: task.slot.into(), wanted: 0 };
    Here.sleep_within(
        reason,
        limit,
        &mut |waker| {
            let (task, joiner) = (slot, joiner);
            // SAFETY: the joiner stays until we are woken, or have withdrawn
            // it. From here on nothing of the sleeper's is touched.
            unsafe { task.as_ref().join(joiner, waker) }
        },
        &mut || task.unjoin(joiner),
    )
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
    let Some(worker) = current::worker() else {
        panic!("spawn: this thread is no ULT; use a Spawner");
    };
    // SAFETY: this thread's worker; nothing suspends below.
    let worker = unsafe { worker.as_ref() };
    builder.check(worker.shared());
    let slot = worker.slot();
    // SAFETY: the slot is free and ours; the caller's.
    unsafe { slot.as_ref().fill(f, builder.name) };
    match builder.traits {
        None => worker.spawned(slot),
        Some(traits) => {
            // SAFETY: as above.
            unsafe { slot.as_ref() }.set_traits(traits);
            worker.spawned_with_traits(slot);
        }
    }
    JoinHandle { slot, result: PhantomData }
}
