//! What a scheduler is made of, and why it may not start.

use crate::area::{StackArea, StackError};
use crate::check::SuspensionCheck;
use crate::host::{self, ThreadError};
use crate::stack::Guards;
use alloc::sync::Arc;
use core::fmt;
use tsumugi_core::wait::Bells;

/// What a scheduler is made of.
#[derive(Debug)]
pub struct Config {
    /// OS threads that run ULTs; 1 to [`Bells::WORKERS_MAX`].
    pub workers: usize,
    /// Usable bytes of a ULT's stack: a multiple of the page. Printing a panic
    /// with a backtrace takes more than 16 KiB.
    pub stack_bytes: usize,
    /// Usable bytes of main's stack: a multiple of the page.
    pub main_stack_bytes: usize,
    /// Where all stacks lie. When it is full, new ULTs wait until one ends.
    pub stacks: StackArea,
    /// What an overflowed stack runs into.
    pub guards: Guards,
    /// What must be left of a joiner's stack for an unstarted child to run on
    /// it: every ULT finds so much. `usize::MAX`: each runs on its own.
    pub inline_bytes: usize,
    /// The workers' bells, if others than this process ring them.
    pub bells: Option<&'static Bells>,
    /// Who is polled while workers have nothing to run, and now and then.
    pub progress: Arc<dyn Progress>,
    /// Rounds that an idle worker searches before it lets go of its core. 0
    /// where cores are shared.
    pub spin: u32,
    /// What is done about a ULT that suspends where it must not.
    pub suspension_check: SuspensionCheck,
}

/// Work that is done by polling: communication, mostly. Its calls run on a
/// worker's own stack, where they must neither block nor panic: a panic there
/// ends the process.
pub trait Progress: Send + Sync {
    /// Does what can be done now; whether that was anything.
    fn poll(&self) -> bool;

    /// Whether a poll asks the system: an idle worker then does so again at
    /// once, where it would rest for a moment.
    fn is_long(&self) -> bool {
        false
    }

    /// Whether a worker must stay awake for it: something is there to be
    /// polled that nobody will ring a bell for.
    fn has_work(&self) -> bool;

    /// Worker `worker` begins, on its own thread.
    fn on_start(&self, worker: usize) {
        let _ = worker;
    }

    /// Worker `worker` has nothing to run: from here on it polls all the time,
    /// but while it sleeps.
    fn on_idle(&self, worker: usize) {
        let _ = worker;
    }

    /// Worker `worker` has found something to run, or stops.
    fn on_busy(&self, worker: usize) {
        let _ = worker;
    }

    /// Worker `worker` is about to sleep: ask for a bell. `has_work` is asked
    /// once more after this.
    fn on_sleep(&self, worker: usize) {
        let _ = worker;
    }

    /// From here on some ULT sleeps with a time limit, or from here on none
    /// does: as long as one does, the rank is not quiet. Called in order, under
    /// a lock: store it and return.
    fn on_timers(&self, pending: bool) {
        let _ = pending;
    }

    /// Worker `worker` is awake again, or did not sleep after all.
    fn on_wake(&self, worker: usize) {
        let _ = worker;
    }
}

/// Nothing to poll.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

/// Why a scheduler did not start.
#[derive(Debug)]
pub enum StartError {
    /// Not a number of workers that can be.
    Workers(usize),
    /// The stacks.
    Stacks(StackError),
    /// The system gave no thread for this worker.
    Thread(usize, ThreadError),
}

impl Config {
    /// As many workers as there are cores to run on (without std, one), stacks
    /// of 64 KiB, 8 MiB for main.
    pub fn new(stacks: StackArea) -> Self {
        Self {
            workers: host::cores(),
            stack_bytes: 64 << 10,
            main_stack_bytes: 8 << 20,
            stacks,
            guards: Guards::Pages(8192),
            inline_bytes: 32 << 10,
            bells: None,
            progress: Arc::new(NoProgress),
            spin: 100,
            suspension_check: SuspensionCheck::default(),
        }
    }
}

impl Progress for NoProgress {
    fn poll(&self) -> bool {
        false
    }

    fn has_work(&self) -> bool {
        false
    }
}

impl fmt::Debug for dyn Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers(workers) => {
                write!(f, "{workers} workers: there can be 1 to {}", Bells::WORKERS_MAX)
            }
            Self::Stacks(error) => error.fmt(f),
            Self::Thread(worker, error) => write!(f, "no thread for worker {worker}: {error}"),
        }
    }
}

impl core::error::Error for StartError {}
