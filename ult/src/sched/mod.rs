//! The scheduler: a fixed number of workers that run any number of ULTs.
//!
//! ```no_run
//! use tsumugi_ult::{Config, Scheduler, StackArea, spawn};
//!
//! let stacks = StackArea::map(1 << 30)?;
//! let sum = Scheduler::new(Config::new(stacks))?.run(|| {
//!     let parts: Vec<_> = (0..1000u64).map(|n| spawn(move || n * n)).collect();
//!     parts.into_iter().map(|part| part.join().unwrap()).sum::<u64>()
//! });
//! # let _ = sum;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here is global: any number of schedulers live in one process, and each
//! owns its workers, descriptors, stacks and queues. The exception is the signal
//! handler that reports a stack overflow; it is reference-counted.

mod alarm;
mod alarms;
pub(crate) mod batch;
mod config;
pub(crate) mod current;
mod doorbells;
mod gate;
pub(crate) mod outside_scopes;
pub(crate) mod halt;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
mod overflow_at;
pub(crate) mod record;
pub(crate) mod shared;
mod stack_waiters;
mod stop;
mod turn;
mod wake;
mod waker;
pub(crate) mod worker;
pub(crate) mod worker_slot;

pub(crate) use alarms::Alarm;
pub use config::{Config, NoProgress, Progress, StartError};
pub use current::{assert_may_block, callback, in_callback};

use crate::host::resume;
use crate::slab::TaskSlot;
use crate::stack::Stacks;
use crate::task::{Joiner, Task, Traits, UltState};
use crate::thread;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use doorbells::Doorbells;
use gate::Visit;
use shared::SchedulerShared;
use tsumugi_core::mem::Rank;
use tsumugi_core::stats::CounterValues;
use tsumugi_core::time::Instant;
use tsumugi_core::wait::{DoorbellSet, Reason, Waker};
use worker::{LIVES, Worker};

/// A scheduler: workers and their ULTs.
///
/// # The end
///
/// A scheduler ends when the main function of [`run`](Self::run) has ended, or
/// when the scheduler is dropped: its workers stop at their next turn. ULTs that
/// have not ended by then are cut off, and a caller that joins one gets
/// [`Cancelled`](crate::Cancelled). The closures of ULTs that never ran are
/// dropped. ULTs that had begun are abandoned where they are: nothing on their
/// stacks is dropped, and their stacks and descriptors stay as long as the
/// process does, because other threads may have pointers into them. So an end
/// that cuts off ULTs keeps the addresses of the whole stack area, and the memory
/// of those stacks. Join what must be finished.
///
/// A ULT that was cut off is not handed what it was waiting for: a lock, a permit, a
/// value of a channel or a notice goes to the next waiter. So does one that the ULT
/// had been handed and had not taken yet. What the ULT holds stays held: a lock's
/// guard on its stack is not dropped. A future of such a ULT keeps its place in its
/// queue, too, because it is neither dropped nor polled: a lock, a permit or a value
/// that the future is handed is lost to the waiters behind it. So a ULT that may be
/// cut off must wait for such a thing by the call that blocks.
///
/// A [`Spawner::scope`] of a thread, or of another scheduler's ULT, is not cut
/// off: the end waits until the scope has ended, and meanwhile ULTs continue to
/// run. A scope of one of the scheduler's own ULTs is cut off with that ULT; the
/// ULT's frames, and what they lent, stay.
///
/// A scheduler cannot end on one of its own ULTs or workers, nor inside of a
/// [`Spawner::scope`] on it. If it is dropped there, the drop panics, and the
/// scheduler never ends. If that ULT or thread already unwinds, the panic is an
/// abort.
pub struct Scheduler {
    pub(crate) shared: Arc<SchedulerShared>,
    threads: Vec<thread::JoinHandle<()>>,
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    _handler: crate::overflow::OverflowHandler,
}

/// A handle that reaches a scheduler from any thread. It may outlive the scheduler.
#[derive(Clone)]
pub struct Spawner {
    pub(crate) shared: Arc<SchedulerShared>,
}

/// One ULT, as [`Spawner::dump`] shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UltInfo {
    /// The ULT's number: unique among the ULTs that are alive.
    pub id: UltId,
    /// The ULT's name, if it has one.
    pub name: Option<String>,
    /// The state of the ULT.
    pub state: UltState,
    /// What a sleeping ULT waits for.
    pub reason: Option<Reason>,
    /// When the ULT went to sleep, by the scheduler's own clock: up to a fair
    /// turn (61 switches) too early.
    pub since: Option<Instant>,
}

/// A ULT's number: a descriptor, and how often it was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UltId {
    /// The number of the descriptor.
    pub slot: u32,
    /// How many ULTs had the descriptor before.
    pub generation: u32,
}

impl Scheduler {
    /// Prepares a scheduler. All its workers except one start now and find
    /// nothing to do. The last worker is the thread that calls
    /// [`run`](Self::run), or a new thread that [`start`](Self::start) makes.
    ///
    /// # Errors
    ///
    /// [`StartError::Workers`] if `config.workers` is not in 1 to
    /// [`DoorbellSet::WORKERS_MAX`]; [`StartError::Stacks`] if a stack size is not
    /// allowed, or the area of stacks is too small; [`StartError::Thread`] if the
    /// operating system gives no thread for a worker.
    pub fn new(config: Config) -> Result<Self, StartError> {
        if !(1..=DoorbellSet::WORKERS_MAX).contains(&config.workers) {
            return Err(StartError::Workers(config.workers));
        }
        let stacks = Stacks::new(
            config.stacks,
            config.stack_bytes,
            config.main_stack_bytes,
            config.guards,
            LIVES,
        );
        let stacks = stacks.map_err(StartError::Stacks)?;
        let bells = config.bells.map_or_else(Doorbells::own, Doorbells::Given);
        let (workers, progress, spin) = (config.workers, config.progress, config.spin);
        let checks = config.suspension_check;
        let mut shared =
            SchedulerShared::new(workers, stacks, bells, progress, spin, config.inline_bytes);
        shared.check_suspensions(checks);
        shared.set_origin(config.origin);
        let mut this = Self {
            shared: Arc::new(shared),
            threads: Vec::new(),
            #[cfg(all(feature = "std", not(tsumugi_loom)))]
            _handler: crate::overflow::OverflowHandler::install(overflow_at::overflow_at),
        };
        for index in 1..config.workers {
            this.start_worker(index)?;
        }
        Ok(this)
    }

    /// Runs `main` as the first ULT, with the calling thread as a worker. Then
    /// the scheduler ends, and `run` returns what `main` returned. A panic of
    /// `main` continues in the caller, after the end.
    ///
    /// # Panics
    ///
    /// After [`start`](Self::start): all workers run already, and there is none
    /// left that the calling thread could be.
    pub fn run<T: Send, F: FnOnce() -> T + Send>(self, main: F) -> T {
        assert!(!self.is_started(), "run: the scheduler runs already: use spawn and join");
        let shared = &*self.shared;
        let slot = shared.slab.take_shared(shared.home());
        // SAFETY: the slot was just taken from the slab, so no other thread uses it.
        let task = unsafe { slot.as_ref() };
        let joiner = Joiner::new();
        // SAFETY: `F` and `T` live until the ULT has ended, because `run` does not
        // return before; so does the joiner, and `shared` is alive when main ends.
        unsafe {
            task.fill(main);
            task.adorn(Some("main".into()), Traits::default());
            let stack = shared.stacks.take_main().expect("run takes main's stack once");
            task.bind(stack);
            task.join(&joiner, Waker::new(shared.home(), stop));
            shared.inject.push(slot.as_ptr());
        }
        Worker::new(self.shared.clone(), 0).run();
        // SAFETY: the workers stop after the joiner was woken, so main has ended
        // and has left its result.
        let outcome = unsafe { task.take_result::<T>() };
        // SAFETY: main has ended, and this function has its only handle.
        unsafe { SchedulerShared::release(slot) };
        drop(self);
        outcome.unwrap_or_else(|error| resume(error.into_panic()))
    }

    /// Starts the last worker as a new thread: all ULTs run in the background
    /// until the scheduler is dropped.
    ///
    /// # Errors
    ///
    /// [`StartError::Thread`] if the operating system gives no thread.
    pub fn start(&mut self) -> Result<(), StartError> {
        if self.is_started() { Ok(()) } else { self.start_worker(0) }
    }

    /// Returns a handle for other threads.
    pub fn spawner(&self) -> Spawner {
        Spawner { shared: self.shared.clone() }
    }

    /// Whether all workers run in the background.
    pub fn is_started(&self) -> bool {
        self.threads.len() == self.shared.worker_slots.len()
    }

    fn start_worker(&mut self, index: usize) -> Result<(), StartError> {
        let shared = self.shared.clone();
        let run = move || Worker::new(shared, index).run();
        let thread = thread::start(format!("ult-worker-{index}"), run);
        self.threads.push(thread.map_err(|error| StartError::Thread(index, error))?);
        Ok(())
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        if let Some(worker) = current::worker() {
            // SAFETY: the pointer is this thread's own worker.
            let own = Arc::ptr_eq(unsafe { worker.as_ref() }.shared(), &self.shared);
            assert!(!own, "a scheduler cannot end on a ULT of its own: drop it on another thread");
        }
        let inside = self.shared.has_outside_scope();
        assert!(!inside, "a scheduler cannot end inside a scope on it: leave the scope first");
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A join cannot fail: a worker aborts and does not panic.
            let _ = thread.join();
        }
        // SAFETY: the workers are gone, and this line runs once only.
        unsafe { self.shared.close() };
    }
}

impl Spawner {
    /// Calls `show` for every ULT that is alive. The ULTs continue to run
    /// meanwhile, so each entry is true by itself, but the entries are not all of
    /// the same moment.
    pub fn dump(&self, show: &mut dyn FnMut(UltInfo)) {
        let visit = self.shared.visit();
        self.shared.slab.each(&mut |task| {
            self.info(task, visit.as_ref()).into_iter().for_each(&mut *show);
        });
    }

    /// Returns the state of one ULT. What it sleeps for is returned to a visitor
    /// only: during a visit the stacks stay, and after the end of the scheduler
    /// they may be gone.
    pub(crate) fn info(&self, task: &Task, visit: Option<&Visit<'_>>) -> Option<UltInfo> {
        let look = || match visit {
            // SAFETY: a visit keeps the scheduler from releasing its stacks.
            Some(_) => unsafe { task.look() },
            None => Some((task.state()?, None)),
        };
        let (mut state, mut sleep) = look()?;
        if state == UltState::Ready {
            if self.shared.runs(task) {
                state = UltState::Running;
            } else {
                // The task may have run when it was looked at, and it may sleep
                // by now.
                (state, sleep) = look()?;
            }
        }
        let id = UltId::of(TaskSlot::from(task));
        let name = self.shared.slab.name(task);
        let (reason, since) = sleep.unzip();
        Some(UltInfo { id, name, state, reason, since })
    }

    /// Returns what the workers have counted so far. The counts of another
    /// thread's worker are up to a fair turn old.
    pub fn counts(&self) -> CounterValues {
        self.shared.counts().sum()
    }

    /// Returns how many ULTs can have a stack at a time. More ULTs may be
    /// spawned: they wait until others end.
    pub fn stacks_max(&self) -> usize {
        self.shared.stacks.max()
    }

    /// Returns the time of the scheduler's clock, which is the clock of
    /// [`UltInfo::since`].
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Returns how many ULTs sleep with a time limit now.
    pub fn timers(&self) -> usize {
        self.shared.timers()
    }

    /// Returns which of this scheduler's workers the calling thread is; `None` if it
    /// is none. A ULT may be on another worker after each call that suspends it.
    #[inline]
    pub fn worker(&self) -> Option<usize> {
        // SAFETY: the pointer is this thread's own worker, and it is not kept.
        let worker = unsafe { current::worker()?.as_ref() };
        self.shared.has(worker).then(|| worker.index())
    }

    /// Returns how many workers the scheduler has.
    pub fn workers(&self) -> usize {
        self.shared.worker_slots.len()
    }

    /// Wakes a sleeping worker so that it polls progress.
    pub fn ring(&self) {
        self.shared.notify_sleepers();
    }
}

/// Returns this thread's name as the owner of a `Bias`; 0 if it cannot be an owner.
#[inline(always)]
pub(crate) fn bias_name() -> usize {
    // SAFETY: the pointer is this thread's own worker, and it is not kept.
    current::worker().map_or(0, |worker| unsafe { worker.as_ref() }.name())
}

/// Whether another worker of this thread's scheduler has ULTs out for a worker that has
/// none. False on a thread that is no worker.
pub fn has_offers() -> bool {
    // SAFETY: the pointer is this thread's own worker, and it is not kept.
    current::worker().is_some_and(|worker| unsafe { worker.as_ref() }.has_offers())
}

/// Returns the number of the calling thread's worker, from 0, whether it runs a ULT or
/// not; `None` on a thread that is no worker.
pub fn worker_of_thread() -> Option<usize> {
    // SAFETY: the pointer is this thread's own worker, and it is not kept.
    current::worker().map(|worker| unsafe { worker.as_ref() }.index())
}

/// Returns the number of the calling ULT's worker, from 0, and how many workers its
/// scheduler has; `None` on a thread that runs no ULT. The worker may be another one
/// after each call that suspends the ULT.
pub fn worker() -> Option<(usize, usize)> {
    // SAFETY: the pointer is this thread's own worker, and it is not kept.
    let worker = unsafe { current::worker()?.as_ref() };
    worker.current().map(|_| (worker.index(), worker.shared().worker_slots.len()))
}

/// Returns the calling ULT's number; `None` on a thread that runs no ULT.
pub fn id() -> Option<UltId> {
    // SAFETY: the pointer is this thread's own worker.
    let worker = unsafe { current::worker()?.as_ref() };
    worker.current().map(UltId::of)
}

/// Returns the rank to which this thread's scheduler belongs, if it has one;
/// `None` on a thread that is no worker.
pub fn rank() -> Option<Rank> {
    // SAFETY: the pointer is this thread's own worker.
    unsafe { current::worker()?.as_ref() }.origin().rank
}

/// Returns the name of the calling ULT; `None` if it has none, or the thread runs no
/// ULT. The program's first ULT has the name `main`.
pub fn name() -> Option<String> {
    // SAFETY: the pointer is this thread's own worker.
    let worker = unsafe { current::worker()?.as_ref() };
    let task = worker.current()?;
    // SAFETY: the task runs, so it is not cleared.
    unsafe { task.as_ref().name() }.map(Into::into)
}

impl UltId {
    pub(crate) fn of(slot: TaskSlot) -> Self {
        // SAFETY: descriptors stay as long as their scheduler, to which the
        // caller has a reference.
        let task = unsafe { slot.as_ref() };
        let generation = task.generation.load(tsumugi_core::sync::Ordering::Relaxed);
        Self { slot: task.slot(), generation }
    }
}

impl fmt::Display for UltId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.generation {
            0 => write!(f, "{}", self.slot),
            before => write!(f, "{}#{before}", self.slot),
        }
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scheduler({} workers)", self.shared.worker_slots.len())
    }
}

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spawner({} workers)", self.shared.worker_slots.len())
    }
}

/// Called when main ends: stops the scheduler.
unsafe fn stop(shared: *const ()) {
    // SAFETY: `run` holds the scheduler until it has seen the stop.
    unsafe { &*shared.cast::<SchedulerShared>() }.stop();
}
