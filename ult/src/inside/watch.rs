//! A watchdog that names a ULT which does not let go of its worker.

use crate::sched::record::WorkerRequests;
use crate::sched::{Spawner, UltId};
use alloc::sync::Arc;
use core::fmt;
use core::ptr::NonNull;
use core::time::Duration;
use std::time::Instant;
use tsumugi_core::sync::{AtomicBool, Ordering};

/// A ULT that has run for too long without letting other ULTs run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// The worker that it runs on.
    pub worker: usize,
    /// The ULT's number.
    pub id: UltId,
    /// The ULT's name, if it has one.
    pub name: Option<String>,
    /// How long it has run, at least.
    pub running: Duration,
}

/// The watchdog; it watches until it is dropped.
#[derive(Debug)]
pub struct Watchdog {
    spawner: Spawner,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Spawner {
    /// Reports every ULT that runs for `limit` or longer without yielding, sleeping
    /// or ending, once for each such run. An OS thread of the watchdog's own looks
    /// four times within `limit`. A ULT that runs already is watched from its next
    /// turn.
    ///
    /// ```
    /// # use tsumugi_ult::{Config, Scheduler, StackArea};
    /// # let config = Config::new(StackArea::map(1 << 20)?).main_stack_bytes(256 << 10);
    /// let scheduler = Scheduler::new(config)?;
    /// let limit = std::time::Duration::from_millis(100);
    /// let _watchdog = scheduler.spawner().watch(limit, |stuck| eprintln!("{stuck}"))?;
    /// scheduler.run(|| ());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](std::io::ErrorKind::AlreadyExists), if the scheduler has a watchdog
    /// already; or the system's error, if it gives no thread.
    pub fn watch(
        &self,
        limit: Duration,
        mut report: impl FnMut(Stuck) + Send + 'static,
    ) -> std::io::Result<Watchdog> {
        if !self.shared.wanted.set(WorkerRequests::WATCH) {
            let why = "the scheduler has a watchdog already: drop it first";
            return Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, why));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let mut watchdog = Watchdog { spawner: self.clone(), stop: stop.clone(), thread: None };
        let spawner = self.clone();
        let thread = crate::thread::start("ult-watchdog".into(), move || {
            let mut seen = vec![WatchedWorker::default(); spawner.shared.worker_slots.len()];
            // Acquire: pairs with the Release in the watchdog's `drop`.
            while !stop.load(Ordering::Acquire) {
                for (worker, seen) in seen.iter_mut().enumerate() {
                    spawner.look(worker, seen, limit).into_iter().for_each(&mut report);
                }
                std::thread::park_timeout(limit / 4);
            }
        });
        watchdog.thread = Some(thread?);
        Ok(watchdog)
    }

    fn look(&self, worker: usize, seen: &mut WatchedWorker, limit: Duration) -> Option<Stuck> {
        let (changes, task) = self.shared.worker_slots[worker].notes.running();
        if changes != seen.changes || seen.since.is_none() {
            *seen = WatchedWorker { changes, since: Some(Instant::now()), reported: false };
        }
        let running = seen.since.map_or(Duration::ZERO, |since| since.elapsed());
        let slot = NonNull::new(task).filter(|_| !seen.reported && running >= limit)?;
        seen.reported = true;
        let (id, name) = self.id_of(slot);
        Some(Stuck { worker, id, name, running })
    }
}

/// The watchdog's last view of one worker.
#[derive(Clone, Default)]
struct WatchedWorker {
    changes: u64,
    since: Option<Instant>,
    reported: bool,
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Release: pairs with the watchdog's Acquire load.
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic in `report` has been printed.
            let _ = thread.join();
        }
        self.spawner.shared.wanted.clear(WorkerRequests::WATCH);
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ULT {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " \"{name}\"")?;
        }
        let ms = self.running.as_millis();
        write!(f, " has run on worker {} for {ms} ms without yielding", self.worker)
    }
}
