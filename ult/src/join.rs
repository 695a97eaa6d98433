//! Starting ULTs and waiting for their end.
//!
//! A ULT's value, or the panic that ended it, waits in its descriptor until
//! [`JoinHandle::join`] takes it. Dropping the handle lets the ULT go on by
//! itself. Small closures and results (up to 48 bytes) lie in the descriptor,
//! so that neither spawn nor join allocates.
//!
//! # Joining a child that has not begun
//!
//! If the child is still the youngest of the worker's own queue, nobody has
//! anything better to do than the joiner: it takes the child back and runs it
//! in its own place, as a call on its own stack.
//!
//! ```text
//!   joiner's stack  │ main │ joiner │ join │ child │ grandchild │  ► free
//!   who runs         Lending  Lending         Lending  Running
//! ```
//!
//! - **Identity.** The child runs as itself: `id`, `unparker`, the park token,
//!   ULT-local values, cancellation and everything else that goes by the
//!   running ULT are the child's.
//! - **If it parks or yields**, the stack leaves the worker with all that is
//!   on it, and the innermost ULT is the one that sleeps, is woken and may go
//!   on on another worker. The others wait for it in any case: each has joined
//!   the next. They are [`State::Lending`](crate::State::Lending) meanwhile.
//! - **If it panics**, the panic is caught at the child's bottom, as always.
//! - **Stack.** A child runs there only if
//!   [`Config::inline_bytes`](crate::Config::inline_bytes) are left of the
//!   joiner's stack, and if it asked for no size of its own. So every ULT has
//!   at least so much.
//! - **A pinned joiner** lends nobody its stack, which has to stay.
//!
//! Where it may not run there, the joiner still runs it in its place, but on a
//! stack of the child's own, which it resumes itself: if the child ends, it
//! returns to the joiner, and no scheduler was asked. If the child leaves
//! before, it comes back to the joiner too, who then leaves in its turn, with
//! word of what the child left for ([`Follow`]); and so do all that run in
//! somebody's place, down to the worker, where everybody sleeps as if they had
//! never done so.
//!
//! Nothing of the kind is done where the worker itself has to see who runs:
//! for ULTs that keep their floating-point control words, and as long as
//! somebody watches or traces. Nor while an urgent ULT waits.
//!
//! Progress: `spawn` is lock-free but for growth of a queue or of the
//! descriptors (a short lock); `join` blocks.

use crate::body::Outcome;
use crate::future::block_on;
use crate::limit::Limit;
use crate::park::{Here, ult};
use crate::sched::current;
use crate::sched::shared::Shared;
use crate::sched::worker::{Claim, Worker};
use crate::sched::{Spawner, UltId};
use crate::slab::Slot;
use crate::stack::Head;
use crate::task::{Follow, Joiner, Request, Traits};
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::{self, MaybeUninit};
use core::ptr::NonNull;
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
    let (worker, slot) = unsafe { fill_here(f) };
    // SAFETY: this thread's worker; nothing suspended since it was asked.
    unsafe { worker.as_ref() }.spawned(slot);
    JoinHandle { slot, result: PhantomData }
}

/// Lets other ULTs, or threads, run.
#[inline(always)]
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
    /// see them. It starts with those of whoever spawns it. Costs about as much as a switch.
    /// On x86-64 and AArch64; nothing elsewhere.
    pub fn keep_fp_control(mut self, keep: bool) -> Self {
        self.traits.keeps_fp = keep;
        self
    }

    /// As [`spawn`].
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
        let traits = self.traits(shared);
        let slot = shared.slab.take_shared(shared.home());
        // SAFETY: the slot is free and ours; the caller's.
        unsafe {
            slot.as_ref().fill(f);
            slot.as_ref().adorn(self.name, traits);
            shared.inject(slot);
        }
        Ok(JoinHandle { slot, result: PhantomData })
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
    #[inline(always)]
    pub fn join(self) -> Outcome<T> {
        if let Some(worker) = current::worker() {
            // SAFETY: we have the handle, and nothing suspends before the
            // claim is used.
            match unsafe { worker.as_ref().claim(self.slot) } {
                // SAFETY: claimed; the joiner is this ULT.
                Some(Claim::Call(joiner)) => return unsafe { self.join_inline(worker, joiner) },
                // SAFETY: the same.
                Some(Claim::Switch(joiner, head)) => unsafe {
                    self.run_claimed(worker, joiner, head)
                },
                None => self.wait(),
            }
        } else {
            self.wait();
        }
        self.take()
    }

    /// Runs the ULT on its own stack, and if it leaves before its end, waits
    /// for it.
    ///
    /// # Safety
    ///
    /// It was claimed, for the ULT that runs, on this thread's worker.
    #[inline(always)]
    unsafe fn run_claimed(&self, worker: NonNull<Worker>, joiner: Slot, head: NonNull<Head>) {
        // SAFETY: the caller's.
        if let Some(left) = unsafe { worker.as_ref().run_claimed(joiner, self.slot, head) } {
            let node = Joiner::new();
            let follow = Follow { joiner, child: self.slot, node: &node, left };
            // SAFETY: we run as the joiner again, if only to say this.
            unsafe { joiner.as_ref().ask(Request::Follow(follow)) };
        }
    }

    /// Runs the ULT as a call.
    ///
    /// # Safety
    ///
    /// It was claimed, for the ULT that runs, on this thread's worker.
    #[inline]
    unsafe fn join_inline(self, worker: NonNull<Worker>, joiner: Slot) -> Outcome<T> {
        let slot = self.slot;
        mem::forget(self);
        let mut outcome = MaybeUninit::<Outcome<T>>::uninit();
        // SAFETY: the caller's.
        unsafe {
            worker.as_ref().set_current(slot);
            slot.as_ref().run_on(joiner.as_ref(), outcome.as_mut_ptr().cast());
        }
        // Perhaps another one.
        let worker = current::worker();
        // SAFETY: the joiner runs on it, the child has ended, its handle goes.
        unsafe {
            let worker = worker.unwrap_unchecked();
            worker.as_ref().set_current(joiner);
            worker.as_ref().release(slot);
            outcome.assume_init()
        }
    }

    /// Waits until the ULT has ended.
    #[inline(always)]
    fn wait(&self) {
        // SAFETY: a handle keeps its task. Without a limit nothing interrupts.
        let _ = unsafe { wait_end(self.slot, Limit::NONE) };
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
    #[inline(always)]
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

    /// The handle as one word, for whoever cannot keep the type.
    pub fn into_raw(self) -> NonNull<()> {
        self.into_slot().cast()
    }

    /// The handle that a word stands for.
    ///
    /// # Safety
    ///
    /// `raw` comes from `into_raw` of a handle of the same type, and this is
    /// the one handle made of it, or the only one that is not forgotten.
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        // SAFETY: the caller's.
        unsafe { Self::from_slot(raw.cast()) }
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
    let Some(worker) = current::worker() else { no_ult() };
    // SAFETY: this thread's worker; nothing suspends below.
    let worker = unsafe { worker.as_ref() };
    let traits = builder.traits(worker.shared());
    // SAFETY: the caller's.
    let (_, slot) = unsafe { fill_here(f) };
    let handle = JoinHandle { slot, result: PhantomData };
    // SAFETY: filled just now, and in no queue.
    let task = unsafe { slot.as_ref() };
    // SAFETY: as above.
    unsafe { task.adorn(builder.name, traits) };
    match (builder.order, worker.current()) {
        (Order::ChildFirst, Some(parent)) if task.is_plain() => {
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
#[inline]
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
