//! Schedulers for tests.

#![allow(dead_code, reason = "each test binary uses some of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tsumugi_ult::{Config, JoinHandle, Scheduler, Spawner, StackArea};

/// A scheduler of `workers` with room for `stacks` stacks of 64 KiB: less is too little to print a
/// backtrace in a debug build.
pub fn scheduler(workers: usize, stacks: usize) -> Scheduler {
    Scheduler::new(config(workers, stacks)).unwrap()
}

/// The configuration of that scheduler.
pub fn config(workers: usize, stacks: usize) -> Config {
    let (stack_bytes, main_stack_bytes) = (64 << 10, 256 << 10);
    let bytes = StackArea::bytes_for(stacks, stack_bytes, main_stack_bytes);
    let area = StackArea::map(bytes).unwrap();
    Config::new(area).workers(workers).stack_bytes(stack_bytes).main_stack_bytes(main_stack_bytes)
}

/// Threads or ULTs of one kind, for a test that must hold for each.
#[derive(Clone)]
pub enum Party {
    Ults,
    Threads,
    /// The first member is a ULT, the next a thread, and so on.
    Mixed(Spawner, Arc<AtomicUsize>),
}

/// One member of a party; a join of it panics if the member panicked.
pub enum Member {
    Ult(JoinHandle<()>),
    Thread(std::thread::JoinHandle<()>),
}

impl Party {
    pub fn spawn(&self, body: impl FnOnce() + Send + 'static) -> Member {
        match self {
            Self::Ults => Member::Ult(tsumugi_ult::spawn(body)),
            Self::Threads => Member::Thread(std::thread::spawn(body)),
            Self::Mixed(spawner, count) => {
                if count.fetch_add(1, Ordering::Relaxed) % 2 == 0 {
                    Member::Ult(spawner.spawn(body))
                } else {
                    Member::Thread(std::thread::spawn(body))
                }
            }
        }
    }

    /// Starts a member for each number below the party's size, and joins them.
    pub fn each<F: FnOnce() + Send + 'static>(&self, mut body: impl FnMut(usize) -> F) {
        let all: Vec<_> = (0..4).map(|n| self.spawn(body(n))).collect();
        all.into_iter().for_each(Member::join);
    }
}

impl Member {
    pub fn join(self) {
        let outcome = match self {
            Self::Ult(ult) => ult.join().map_err(tsumugi_ult::JoinError::into_panic),
            Self::Thread(thread) => thread.join(),
        };
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Runs `test` on ULTs of one and of two workers, on OS threads, and on a
/// thread whose party is of both kinds.
pub fn everywhere(test: impl Fn(&Party) + Send + Sync) {
    for workers in [1, 2] {
        scheduler(workers, 32).run(|| test(&Party::Ults));
    }
    test(&Party::Threads);
    let mut mixed = scheduler(1, 32);
    mixed.start().unwrap();
    test(&Party::Mixed(mixed.spawner(), Arc::default()));
}
