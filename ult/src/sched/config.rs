//! The configuration of a scheduler, and the reasons why a scheduler does not start.

use crate::area::{StackArea, StackError};
use crate::check::SuspensionCheck;
use crate::host::{self, ThreadError};
use crate::overflow::Origin;
use crate::stack::Guards;
use alloc::sync::Arc;
use core::fmt;
use tsumugi_core::wait::DoorbellSet;

/// The configuration of a scheduler: [`new`](Self::new), changed by the functions of the names
/// of its fields.
#[derive(Debug)]
#[non_exhaustive]
pub struct Config {
    /// OS threads that run ULTs; 1 to [`DoorbellSet::WORKERS_MAX`].
    pub workers: usize,
    /// Usable bytes of a ULT's stack: a multiple of the page. Printing a panic
    /// with a backtrace takes more than 16 KiB.
    pub stack_bytes: usize,
    /// Usable bytes of main's stack: a multiple of the page.
    pub main_stack_bytes: usize,
    /// The memory in which all stacks lie. When it is full, new ULTs wait until
    /// one ends.
    pub stacks: StackArea,
    /// What an overflowing stack runs into.
    pub guards: Guards,
    /// The bytes that must be left of a joiner's stack, so that an unstarted
    /// child may run on it: every ULT has at least that many. `usize::MAX`: each
    /// ULT runs on its own stack.
    pub inline_bytes: usize,
    /// The workers' bells (doorbells), if other processes ring them, too.
    pub bells: Option<&'static DoorbellSet>,
    /// What workers poll while they have nothing to run, and now and then.
    pub progress: Arc<dyn Progress>,
    /// Rounds that an idle worker searches before it lets go of its core. Use 0
    /// where cores are shared.
    pub spin: u32,
    /// What happens when a ULT suspends where it must not.
    pub suspension_check: SuspensionCheck,
    /// The program to which the scheduler belongs, for its reports.
    pub origin: Origin,
}

/// Work that is done by polling, mostly communication. Workers call these
/// functions on their own stacks, where they must neither block nor panic: a
/// panic there ends the process.
pub trait Progress: Send + Sync {
    /// Does what can be done now. Returns whether that was anything.
    fn poll(&self) -> bool;

    /// Does what can be done now, for worker `worker`, which has nothing to run. One of
    /// several such workers may do the work for all. Returns whether the caller did any.
    fn poll_idle(&self, worker: usize) -> bool {
        let _ = worker;
        self.poll()
    }

    /// Whether a poll makes a system call. If so, an idle worker polls again at
    /// once, and does not pause between polls.
    fn is_long(&self) -> bool {
        false
    }

    /// Whether a worker must stay awake to poll: there is something to be polled
    /// for which no bell will ring.
    fn has_work(&self) -> bool;

    /// Worker `worker` starts. Called on its own thread.
    fn on_start(&self, worker: usize) {
        let _ = worker;
    }

    /// Worker `worker` has nothing to run: from here on it calls
    /// [`poll_idle`](Self::poll_idle) all the time, except while it sleeps.
    fn on_idle(&self, worker: usize) {
        let _ = worker;
    }

    /// Worker `worker` has found a ULT to run, or stops.
    fn on_busy(&self, worker: usize) {
        let _ = worker;
    }

    /// Worker `worker` is about to sleep: the implementation must arrange that a
    /// bell rings when there is something to poll. `has_work` is called once more
    /// after this.
    fn on_sleep(&self, worker: usize) {
        let _ = worker;
    }

    /// Reports whether any ULT sleeps with a time limit. Called when that changes;
    /// as long as a ULT does, the rank is not quiet. The calls come in order, under
    /// a lock, so the implementation must only store the value and return.
    fn on_timers(&self, pending: bool) {
        let _ = pending;
    }

    /// Worker `worker` is awake again, or did not sleep after all.
    fn on_wake(&self, worker: usize) {
        let _ = worker;
    }
}

/// A [`Progress`] with nothing to poll.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

/// Why a scheduler did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The number of workers is not in the range that [`Config::workers`] allows.
    Workers(usize),
    /// The stacks could not be prepared.
    Stacks(StackError),
    /// The operating system gave no thread for this worker.
    Thread(usize, ThreadError),
}

impl Config {
    /// As many workers as there are cores for this process (one without std),
    /// stacks of 64 KiB, and 8 MiB for main.
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
            origin: Origin::default(),
        }
    }
}

tsumugi_core::setters! { Config:
    workers: usize, "the number of OS threads that run ULTs";
    stack_bytes: usize, "the usable bytes of a ULT's stack";
    main_stack_bytes: usize, "the usable bytes of main's stack";
    guards: Guards, "what an overflowing stack runs into";
    inline_bytes: usize, "the bytes that a joiner's stack needs for an unstarted child";
    bells: &'static DoorbellSet, "the workers' bells";
    progress: Arc<dyn Progress>, "what workers poll";
    spin: u32, "how many rounds an idle worker searches before it sleeps";
    suspension_check: SuspensionCheck, "what happens when a ULT suspends where it must not";
    origin: Origin, "the program to which the scheduler belongs";
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
                write!(
                    f,
                    "a scheduler has 1 to {} workers, not {workers}",
                    DoorbellSet::WORKERS_MAX
                )
            }
            Self::Stacks(error) => error.fmt(f),
            Self::Thread(worker, error) => {
                write!(f, "the thread of worker {worker} could not be started: {error}")
            }
        }
    }
}

impl core::error::Error for StartError {}
