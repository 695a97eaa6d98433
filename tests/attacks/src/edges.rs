//! Calls at a moment or with a value for which they are not made: a poll that joins, a
//! fork on a ULT's stack, a ULT that joins itself, a job in a job.

use crate::Attack;
use crate::ults::scheduler;
use std::cell::{Cell, RefCell};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tsumugi::Error;
use tsumugi_ult::{
    Builder, Config, JoinHandle, Progress, Scheduler, SpawnError, StackArea, on_os_stack, park,
    sleep, ult_local, yield_now,
};

pub const ALL: &[Attack] = &[
    ("progress_that_joins", progress_that_joins),
    ("forks_on_any_stack", forks_on_any_stack),
    ("join_of_itself", join_of_itself),
    ("values_that_sleep_at_the_end", values_that_sleep_at_the_end),
    ("builders_of_any_size", builders_of_any_size),
    ("jobs_in_jobs", jobs_in_jobs),
];

/// `Progress::poll` runs on a worker's own stack, where a join panics. A panic there
/// ends the process.
fn progress_that_joins() {
    #[derive(Default)]
    struct Joins(Mutex<Option<JoinHandle<()>>>);
    impl Progress for Joins {
        fn poll(&self) -> bool {
            let child = self.0.lock().expect("no poison").take();
            child.is_some_and(|child| child.join().is_ok())
        }
        fn has_work(&self) -> bool {
            false
        }
    }
    let stacks = StackArea::map(64 << 20).expect("addresses");
    let joins = Arc::new(Joins::default());
    let config = Config::new(stacks).workers(1).main_stack_bytes(256 << 10);
    let config = config.progress(joins.clone());
    let mut scheduler = Scheduler::new(config).expect("a scheduler");
    scheduler.start().expect("a thread");
    let parks = scheduler.spawner().spawn(park);
    *joins.0.lock().expect("no poison") = Some(parks);
    // For each ULT that begins and ends, the worker polls.
    for _ in 0..10_000 {
        scheduler.spawner().spawn(yield_now).join().expect("the ULT ends");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A forked child does not inherit the stacks of ULTs. A child that is forked on such a
/// stack is killed by its first access to it, and the parent gets its status. A child
/// that is forked on the worker's own stack or on an OS thread lives.
fn forks_on_any_stack() {
    let own = std::fs::metadata("/proc/self").expect("Linux").uid();
    // `posix_spawn` cannot change the user, not even to the same one, so `Command` forks.
    let forks = move || {
        let mut child = Command::new("true");
        child.uid(own).status()
    };
    let jobs = tsumugi::run_ranks(1, move |rt| {
        let on_main = forks().map(|status| status.success());
        let on_ult = rt.spawn(move |_| forks().map(|status| status.success()));
        let on_ult = on_ult.join().expect("the parent lives");
        let on_os_stack = on_os_stack(forks);
        assert!(on_os_stack.expect("a child").success());
        // The child is dead before it executes its program, which `status` reports as the
        // end of the program.
        for died in [on_main, on_ult] {
            assert!(!died.unwrap_or(false), "the child has used its parent's stack");
        }
        rt.barrier()
    });
    jobs.map(drop).unwrap_or_else(|error: Error| panic!("{error}"));
    assert!(forks().expect("a child").success());
}

/// A ULT joins itself with a time limit, and gets its handle back.
fn join_of_itself() {
    let scheduler = scheduler(2);
    let place = Arc::new(Mutex::new(None::<JoinHandle<()>>));
    let its = place.clone();
    let joins = scheduler.spawner().spawn(move || {
        let own = loop {
            let found = its.lock().expect("no poison").take();
            match found {
                Some(own) => break own,
                None => yield_now(),
            }
        };
        let own = own.join_timeout(Duration::from_millis(10)).expect_err("the ULT runs");
        assert!(!own.is_finished());
    });
    let id = joins.id();
    *place.lock().expect("no poison") = Some(joins);
    let ended = || {
        let mut ended = true;
        scheduler.spawner().dump(&mut |ult| ended &= ult.id != id);
        ended
    };
    while !ended() {
        std::thread::yield_now();
    }
}

/// A ULT-local value that is initialized again during its initialization, and one whose
/// destructor sleeps and makes another value.
fn values_that_sleep_at_the_end() {
    struct Comes(u32);
    impl Drop for Comes {
        fn drop(&mut self) {
            sleep(Duration::from_millis(1));
            if self.0 < 3 {
                KEPT.with(|kept| *kept.borrow_mut() = Some(Comes(self.0 + 1)));
            }
            ENDED.with(|ended| ended.set(ended.get() + 1));
        }
    }
    ult_local! {
        static KEPT: RefCell<Option<Comes>> = RefCell::new(None);
        static ENDED: Cell<u32> = Cell::new(0);
        static TWICE: u32 = TWICE_MADE.with(|made| {
            made.set(made.get() + 1);
            if made.get() < 3 { TWICE.with(|inner| *inner) } else { made.get() }
        });
        static TWICE_MADE: Cell<u32> = Cell::new(0);
    }
    let scheduler = scheduler(2);
    let all: Vec<_> = (0..16)
        .map(|_| {
            scheduler.spawner().spawn(|| {
                KEPT.with(|kept| *kept.borrow_mut() = Some(Comes(0)));
                assert_eq!(TWICE.with(|twice| *twice), 3);
            })
        })
        .collect();
    all.into_iter().for_each(|one| one.join().expect("the ULT ends"));
}

/// A stack of an impossible size and a worker that does not exist are refused, with an
/// error that has the value.
fn builders_of_any_size() {
    let scheduler = scheduler(2);
    let spawner = scheduler.spawner();
    for bytes in [1 << 40, usize::MAX - 4095, usize::MAX] {
        let refused = Builder::new().stack_bytes(bytes).check(Some(&spawner));
        assert_eq!(refused, Err(SpawnError::Stack { bytes }));
    }
    for worker in [2, usize::MAX] {
        let refused = Builder::new().pin(worker).check(Some(&spawner));
        assert_eq!(refused, Err(SpawnError::Worker { worker, workers: 2 }));
    }
    for bytes in [0, 1] {
        let named = Builder::new().stack_bytes(bytes).name("n".repeat(1 << 20));
        let child = named.try_spawn_on(&spawner, || 7);
        let child = child.unwrap_or_else(|_| panic!("a stack of {bytes} bytes is refused"));
        assert_eq!(child.join().expect("the ULT ends"), 7);
    }
    for bytes in [1 << 47, usize::MAX - 4095, usize::MAX] {
        assert!(StackArea::map(bytes).is_err(), "{bytes:#x}");
    }
    for bytes in [0, 1] {
        let Ok(stacks) = StackArea::map(bytes) else { continue };
        assert!(Scheduler::new(Config::new(stacks)).is_err(), "{bytes:#x}");
    }
}

/// A rank that starts an inner job is all ranks of it, and goes on in the outer job.
fn jobs_in_jobs() {
    let ran = tsumugi::run_ranks(2, |rt| {
        let inner = tsumugi::run_ranks(2, |rt| {
            let number = rt.sum(1u64)?;
            rt.barrier().map(|()| number)
        });
        assert_eq!(inner?, [2, 2]);
        rt.barrier()
    });
    ran.map(drop).unwrap_or_else(|error: Error| panic!("{error}"));
}
