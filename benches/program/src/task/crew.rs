//! The shared state of a rank's ULTs that run tasks, and the loop of these ULTs.

use super::memory::{Memory, Outcome};
use super::thief::Thief;
use super::{Args, Function, Task, TaskWords, Tasks};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tsumugi::ult::sync::Semaphore;
use tsumugi::ult::yield_now;
use tsumugi::{Error, RankDeque, Runtime, Stealer, Until};
use tsumugi_core::sync::{AtomicBool, AtomicU64, Ordering};

/// One rank's part of the tasks.
pub(super) struct Crew<C> {
    pub(super) rt: Runtime,
    pub(super) context: C,
    pub(super) functions: Vec<Function<C>>,
    pub(super) memory: Memory,
    pub(super) stealer: Stealer<TaskWords>,
    pub(super) own: Mutex<Own>,
    /// A permit for each event that is a reason to look for work.
    pub(super) idle: Semaphore,
    /// ULTs that have a task or look for one; ULTs that sleep in a join are not
    /// counted.
    pub(super) running: AtomicU64,
    /// ULTs in the loop that looks for tasks, until they have ended.
    pub(super) loops: AtomicU64,
    /// A permit for each ULT that has left the loop.
    pub(super) gone: Semaphore,
    pub(super) is_over: AtomicBool,
    pub(super) runs: AtomicU64,
    pub(super) forked: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) ran: AtomicU64,
    pub(super) stolen: AtomicU64,
}

/// State that this rank's ULTs use under a lock. A ULT holds the lock for a few
/// instructions, and never while it suspends.
pub(super) struct Own {
    /// Tasks that this rank has forked, and that any rank may take.
    pub(super) deque: RankDeque<TaskWords>,
    /// Tasks that only this rank runs.
    pub(super) inbox: VecDeque<Task>,
    /// Free places.
    pub(super) places: Vec<u32>,
    /// The first error of a task of this rank.
    pub(super) failure: Option<Error>,
}

impl<C: Send + Sync + 'static> Crew<C> {
    /// Starts one more ULT that looks for tasks.
    pub(super) fn start_loop(self: &Arc<Self>) {
        self.loops.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        let tasks = Tasks(self.clone());
        drop(self.rt.spawn(move |_| {
            if let Err(failure) = tasks.0.look_for_tasks(&tasks) {
                tasks.0.failed(failure);
            }
            // Release: pairs with the Acquire load in `end_loops`.
            tasks.0.loops.fetch_sub(1, Ordering::Release);
            tasks.0.gone.release(1);
        }));
    }

    /// Looks for tasks until the run is over, or more ULTs than workers do so.
    fn look_for_tasks(&self, tasks: &Tasks<C>) -> Result<(), Error> {
        let mut thief = Thief::new(&self.rt, self.stealer.clone());
        let mut misses = 0;
        // Relaxed: a hint; the thread that sets it also wakes all idle ULTs.
        while !self.is_over.load(Ordering::Relaxed) {
            if self.is_one_too_many() {
                return Ok(());
            }
            let task = match self.take() {
                Some(task) => Some(task),
                None => thief.steal()?.inspect(|_| {
                    self.stolen.fetch_add(1, Ordering::Relaxed);
                }),
            };
            match task {
                Some(task) => {
                    misses = 0;
                    self.serve(tasks, task)?;
                }
                None => {
                    misses += 1;
                    self.rest(misses);
                }
            }
        }
        self.running.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    /// Adds a task to the deque, if there is room for it; returns its place.
    pub(super) fn push(&self, function: u32, args: Args) -> Option<u32> {
        let mut own = self.own();
        let place = own.places.pop()?;
        let task = Task { function, home: self.rt.rank(), place, args };
        if own.deque.push(task.to_words()).is_err() {
            own.places.push(place);
            return None;
        }
        self.forked.fetch_add(1, Ordering::Relaxed);
        Some(place)
    }

    /// Takes a task that only this rank runs, or else the newest task of its deque.
    pub(super) fn take(&self) -> Option<Task> {
        let mut own = self.own();
        let Own { inbox, deque, .. } = &mut *own;
        inbox.pop_front().or_else(|| deque.pop().map(|words| Task::from_words(&words)))
    }

    /// Runs a task and sends its result to its home rank.
    pub(super) fn serve(&self, tasks: &Tasks<C>, task: Task) -> Result<(), Error> {
        let Task { function, args, home, place } = task;
        let result = catch_unwind(AssertUnwindSafe(|| tasks.call(function, args)));
        let result = result.unwrap_or_else(|_| Err(Error::program("a task panicked")));
        self.ran.fetch_add(1, Ordering::Relaxed);
        let outcome = match result {
            Ok(value) => Outcome::Value(value),
            Err(failure) => {
                self.failed(failure);
                Outcome::Failed(self.rt.rank())
            }
        };
        Ok(self.memory.settle(&self.rt, home, place, outcome)?)
    }

    /// Sleeps until the result is there; another ULT looks for tasks meanwhile.
    pub(super) fn sleep_for(self: &Arc<Self>, place: u32) -> Result<Outcome, Error> {
        let workers = self.rt.workers().max(1) as u64;
        if self.running.fetch_sub(1, Ordering::Relaxed) <= workers {
            self.start_loop();
        }
        let word = self.memory.state(self.rt.rank(), place);
        let slept = self.rt.wait_until(word, Until::AtLeast(1));
        self.running.fetch_add(1, Ordering::Relaxed);
        slept?;
        Ok(self.memory.outcome(place).expect("the result of the task is there"))
    }

    /// Whether the other ULTs are enough. After true, the caller is no longer
    /// counted.
    fn is_one_too_many(&self) -> bool {
        let workers = self.rt.workers().max(1) as u64;
        let less = |running: u64| (running > workers).then(|| running - 1);
        self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Lets other ULTs run, for ever longer times, or until an event for this rank.
    fn rest(&self, misses: u32) {
        match misses.checked_sub(YIELDS) {
            None => yield_now(),
            Some(times) => {
                let nap = (NAP_MIN * (1 << times.min(8))).min(NAP_MAX);
                self.idle.acquire_timeout(1, nap);
            }
        }
    }

    /// Waits until no ULT looks for tasks any more.
    pub(super) fn end_loops(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Acquire: pairs with the Release subtraction of each ULT.
        while self.loops.load(Ordering::Acquire) > 0 {
            self.idle.release(1);
            self.gone.acquire_timeout(1, NAP_MAX);
        }
        while self.idle.try_acquire(1) {}
        while self.gone.try_acquire(1) {}
    }

    /// Receives a task from another rank, on the thread that polls.
    pub(super) fn receive(&self, bytes: &[u8]) {
        match Task::from_bytes(bytes) {
            Some(task) => self.own().inbox.push_back(task),
            None => {
                let what = format!("a message of {} bytes: a task has 64", bytes.len());
                self.failed(Error::program(what));
            }
        }
        self.idle.release(1);
    }

    pub(super) fn failed(&self, failure: Error) {
        self.own().failure.get_or_insert(failure);
    }

    pub(super) fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many times an idle ULT yields before it sleeps.
const YIELDS: u32 = 8;
const NAP_MIN: Duration = Duration::from_micros(10);
const NAP_MAX: Duration = Duration::from_micros(500);
