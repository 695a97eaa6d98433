//! What the ULTs of a rank share that run tasks, and what they do.

use super::memory::{Memory, Outcome};
use super::thief::Thief;
use super::{Args, Function, Task, Tasks};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tsumugi::ult::sync::Semaphore;
use tsumugi::ult::yield_now;
use tsumugi::{Error, Runtime, Until};
use tsumugi_core::sync::{AtomicBool, AtomicU64, Ordering};

/// A rank's part of all tasks.
pub(super) struct Crew<C> {
    pub(super) rt: Runtime,
    pub(super) context: C,
    pub(super) functions: Vec<Function<C>>,
    pub(super) memory: Memory,
    pub(super) own: Mutex<Own>,
    /// A permit for each reason to look for work.
    pub(super) idle: Semaphore,
    /// ULTs that have a task or look for one; those that sleep in a join not
    /// counted.
    pub(super) running: AtomicU64,
    /// ULTs that look for tasks, until they have ended.
    pub(super) loops: AtomicU64,
    /// A permit for each that has.
    pub(super) gone: Semaphore,
    pub(super) is_over: AtomicBool,
    pub(super) runs: AtomicU64,
    pub(super) forked: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) ran: AtomicU64,
    pub(super) stolen: AtomicU64,
}

/// What this rank's ULTs take turns at. Held for a few instructions, and never
/// by a ULT that suspends.
pub(super) struct Own {
    /// Tasks that are for this rank alone.
    pub(super) inbox: VecDeque<Task>,
    /// Places that are free.
    pub(super) places: Vec<u32>,
    /// The first error that a task of this rank met.
    pub(super) failure: Option<Error>,
}

impl<C: Send + Sync + 'static> Crew<C> {
    /// One more ULT that looks for tasks.
    pub(super) fn start_loop(self: &Arc<Self>) {
        self.loops.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        let tasks = Tasks(self.clone());
        drop(self.rt.spawn(move |_| {
            if let Err(failure) = tasks.0.look_for_tasks(&tasks) {
                tasks.0.failed(failure);
            }
            // Release: pairs with the load of who waits for all to have gone.
            tasks.0.loops.fetch_sub(1, Ordering::Release);
            tasks.0.gone.release(1);
        }));
    }

    /// Until the run is over, or there are more of these than workers.
    fn look_for_tasks(&self, tasks: &Tasks<C>) -> Result<(), Error> {
        let mut thief = Thief::new(&self.rt);
        let mut misses = 0;
        // Relaxed: a hint; who sets it lets all idle ones look, too.
        while !self.is_over.load(Ordering::Relaxed) {
            if self.is_one_too_many() {
                return Ok(());
            }
            let task = match self.take() {
                Some(task) => Some(task),
                None => thief.steal(&self.rt, &self.memory)?.inspect(|_| {
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

    /// A task in the deque, if there is room for it; its place.
    pub(super) fn push(&self, function: u32, args: Args) -> Option<u32> {
        let mut own = self.own();
        let place = own.places.pop()?;
        let task = Task { function, home: self.rt.rank(), place, args };
        if !self.memory.deque().push(&task.to_words()) {
            own.places.push(place);
            return None;
        }
        self.forked.fetch_add(1, Ordering::Relaxed);
        Some(place)
    }

    /// What is for this rank alone, else the newest of its deque.
    pub(super) fn take(&self) -> Option<Task> {
        let mut own = self.own();
        let newest = || self.memory.deque().pop_if(|_| true);
        own.inbox.pop_front().or_else(|| newest().map(|words| Task::from_words(&words)))
    }

    /// Runs a task and sends its result to where it is waited for.
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

    /// Sleeps until the result is there; another ULT looks for tasks then.
    pub(super) fn sleep_for(self: &Arc<Self>, place: u32) -> Result<Outcome, Error> {
        let workers = self.rt.workers().max(1) as u64;
        if self.running.fetch_sub(1, Ordering::Relaxed) <= workers {
            self.start_loop();
        }
        let word = self.memory.state(self.rt.rank(), place);
        let slept = self.rt.wait_until(word, Until::AtLeast(1));
        self.running.fetch_add(1, Ordering::Relaxed);
        slept?;
        Ok(self.memory.outcome(place).expect("it was waited for"))
    }

    /// Whether others are enough. Who is told so is not counted any more.
    fn is_one_too_many(&self) -> bool {
        let workers = self.rt.workers().max(1) as u64;
        let less = |running: u64| (running > workers).then(|| running - 1);
        self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Lets others get on, ever longer; until something comes for this rank.
    fn rest(&self, misses: u32) {
        match misses.checked_sub(YIELDS) {
            None => yield_now(),
            Some(times) => {
                let nap = (NAP_MIN * (1 << times.min(8))).min(NAP_MAX);
                self.idle.acquire_for(1, nap);
            }
        }
    }

    /// Waits until nobody looks for tasks any more.
    pub(super) fn end_loops(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Acquire: pairs with the subtraction of each.
        while self.loops.load(Ordering::Acquire) > 0 {
            self.idle.release(1);
            self.gone.acquire_for(1, NAP_MAX);
        }
        while self.idle.try_acquire(1) {}
        while self.gone.try_acquire(1) {}
    }

    /// A task from another rank, on whatever thread polls.
    pub(super) fn receive(&self, bytes: &[u8]) {
        match Task::from_bytes(bytes) {
            Some(task) => self.own().inbox.push_back(task),
            None => {
                let what = format!("a message of {} bytes is no task", bytes.len());
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

/// How often others are let in before an idle ULT sleeps.
const YIELDS: u32 = 8;
const NAP_MIN: Duration = Duration::from_micros(10);
const NAP_MAX: Duration = Duration::from_micros(500);
