//! Values that live across a suspension although they must not: guards, borrows of
//! thread-local values, and panics.

use crate::Attack;
use crate::ults::scheduler;
use std::cell::{Cell, RefCell};
use std::panic::catch_unwind;
use std::rc::Rc;
use std::time::Duration;
use tsumugi_ult::{
    Builder, Config, JoinHandle, NoSuspend, Scheduler, Spawner, StackArea, SuspensionCheck,
    callback, park, sleep, unparker, with_thread_local, yield_now,
};

pub const ALL: &[Attack] = &[
    ("thread_locals_over_sleeps", thread_locals_over_sleeps),
    ("panics_that_sleep", panics_that_sleep),
    ("panics_that_sleep_are_reported", panics_that_sleep_are_reported),
    ("panics_that_sleep_are_fatal", panics_that_sleep_are_fatal),
    ("panics_that_run_a_scheduler", panics_that_run_a_scheduler),
    ("guards_over_sleeps", guards_over_sleeps),
    ("guards_over_sleeps_are_fatal", guards_over_sleeps_are_fatal),
    ("guards_over_sleeps_in_a_job", guards_over_sleeps_in_a_job),
];

std::thread_local! {
    static COUNT: Cell<u32> = const { Cell::new(0) };
    static SHARED: RefCell<Rc<u32>> = RefCell::new(Rc::new(7));
    static CALLS: std::sync::Mutex<u32> = const { std::sync::Mutex::new(0) };
}

/// A callback that holds a reference to a `thread_local!` or a guard is never suspended:
/// a call that would suspend it panics, and a yield returns on the same OS thread.
fn thread_locals_over_sleeps() {
    let scheduler = scheduler(2);
    let spawner = scheduler.spawner();
    let nap = || sleep(Duration::from_millis(1));
    let is_refused = |result: std::thread::Result<()>| {
        let panic = result.expect_err("a call in a callback would sleep");
        let said = panic.downcast_ref::<String>().expect("a sentence");
        assert!(said.contains("must not block"), "{said}");
    };
    let all: Vec<_> = (0..16)
        .map(|_| {
            spawner.spawn(move || {
                callback(|| {
                    let held = catch_unwind(|| COUNT.with(|_| nap()));
                    is_refused(held);
                    let borrowed = catch_unwind(|| SHARED.with_borrow(|_| park()));
                    is_refused(borrowed);
                    let guarded = catch_unwind(|| CALLS.with(|calls| drop((calls.lock(), nap()))));
                    is_refused(guarded);
                    COUNT.with(|count| {
                        let before = count.get();
                        yield_now();
                        assert!(COUNT.with(|now| std::ptr::eq(now, count)), "another thread");
                        count.set(before + 1);
                    });
                });
                nap();
                yield_now();
            })
        })
        .collect();
    all.into_iter().for_each(|one| one.join().expect("the ULT ends"));
}

/// While a ULT sleeps that unwinds, `std::thread::panicking` is true for the other ULTs
/// of its OS thread, as the documentation of `spawn` says. There is no other effect: no
/// ULT is lost, and no lock of `tsumugi_ult` is poisoned.
fn panics_that_sleep() {
    struct Sleeps;
    impl Drop for Sleeps {
        fn drop(&mut self) {
            park();
        }
    }
    let scheduler = scheduler(1);
    let lock = std::sync::Arc::new(tsumugi_ult::sync::Mutex::new(0));
    let spawner = scheduler.spawner();
    let (its, kept) = (spawner.clone(), lock.clone());
    let seen = spawner.spawn(move || {
        let is_there = std::sync::Arc::new(std::sync::OnceLock::new());
        let tell = is_there.clone();
        let panics = its.spawn(move || {
            assert!(tell.set(unparker()).is_ok(), "once");
            let _sleeps = Sleeps;
            panic!("a ULT sleeps while it unwinds");
        });
        // There is one worker, so each yield lets the other ULT run until it sleeps.
        while is_there.get().is_none() || !std::thread::panicking() {
            yield_now();
        }
        *kept.lock() += 1;
        is_there.get().expect("the unparker is set").unpark();
        assert!(panics.join().is_err());
        *kept.lock() += 1;
        std::thread::panicking()
    });
    assert!(!seen.join().expect("the innocent ULT ends"), "no panic is counted any more");
    assert_eq!(*lock.lock(), 2);
}

/// A scheduler that checks the suspensions of its ULTs.
fn checked(workers: usize, check: SuspensionCheck) -> Scheduler {
    let stacks = StackArea::map(64 << 20).expect("addresses");
    let main_stack_bytes = 256 << 10;
    let config = Config::new(stacks).workers(workers).main_stack_bytes(main_stack_bytes);
    let mut scheduler = Scheduler::new(config.suspension_check(check)).expect("a scheduler");
    scheduler.start().expect("a thread");
    scheduler
}

fn named<T: Send + 'static>(
    spawner: &Spawner,
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let spawned = Builder::new().name(name).try_spawn_on(spawner, body);
    spawned.unwrap_or_else(|_| panic!("the scheduler has ended"))
}

/// A value whose destructor yields so many times.
struct Yields(u32);

impl Drop for Yields {
    fn drop(&mut self) {
        (0..self.0).for_each(|_| yield_now());
    }
}

/// Each ULT that suspends while it unwinds is reported, once. No other ULT is reported:
/// neither one that runs on a thread that counts as panicking, nor one that panics
/// itself and does not suspend in that.
fn panics_that_sleep_are_reported() {
    for workers in [1, 2] {
        let scheduler = checked(workers, SuspensionCheck::Report);
        let spawner = scheduler.spawner();
        let mut all = Vec::new();
        for _ in 0..20 {
            let unwinds = || {
                let caught = catch_unwind(|| {
                    let _yields = Yields(20);
                    panic!("a ULT sleeps while it unwinds");
                });
                assert!(caught.is_err());
                // The panic count of this OS thread may be wrong now.
                (0..20).for_each(|_| yield_now());
                sleep(Duration::from_millis(1));
            };
            all.push(named(&spawner, "unwinds", unwinds));
            let innocent = || {
                for round in 0..50 {
                    yield_now();
                    if round % 10 == 0 {
                        sleep(Duration::from_millis(1));
                        assert!(catch_unwind(|| panic!("nothing sleeps")).is_err());
                    }
                    tsumugi_ult::spawn(yield_now).join().expect("the ULT ends");
                }
            };
            all.push(named(&spawner, "innocent", innocent));
        }
        all.into_iter().for_each(|one| one.join().expect("the ULT ends"));
    }
}

fn panics_that_sleep_are_fatal() {
    let scheduler = checked(1, SuspensionCheck::Abort);
    let unwinds = || {
        let _yields = Yields(1);
        panic!("a ULT sleeps while it unwinds");
    };
    let _ = named(&scheduler.spawner(), "unwinds", unwinds).join();
}

/// A destructor runs a scheduler while its ULT unwinds. The unwinding ULT does not
/// suspend, and the ULTs of the inner scheduler that suspend do not unwind, although
/// their OS thread counts as panicking: no ULT is reported.
fn panics_that_run_a_scheduler() {
    struct Runs;
    impl Drop for Runs {
        fn drop(&mut self) {
            let stacks = StackArea::map(64 << 20).expect("addresses");
            let (suspension_check, main_stack_bytes) = (SuspensionCheck::Report, 256 << 10);
            let config = Config::new(stacks)
                .suspension_check(suspension_check)
                .main_stack_bytes(main_stack_bytes);
            Scheduler::new(config.workers(1)).expect("a scheduler").run(|| {
                assert!(std::thread::panicking());
                yield_now();
                tsumugi_ult::spawn(|| sleep(Duration::from_millis(1))).join().expect("a nap ends");
            });
        }
    }
    let scheduler = checked(1, SuspensionCheck::Report);
    let unwinds = || {
        let _runs = Runs;
        panic!("a ULT runs a scheduler while it unwinds");
    };
    assert!(named(&scheduler.spawner(), "unwinds", unwinds).join().is_err());
}

/// A guard of `std` with a `NoSuspend` beside it: each suspension is reported with both
/// places, whatever call suspends, and for no other ULT.
fn guards_over_sleeps() {
    for workers in [1, 2] {
        let scheduler = checked(workers, SuspensionCheck::Report);
        let spawner = scheduler.spawner();
        let holds = || {
            static LOCK: std::sync::Mutex<u32> = std::sync::Mutex::new(0);
            let (held, here) = (LOCK.lock().expect("no poison"), NoSuspend::new());
            sleep(Duration::from_millis(1));
            drop((held, here));
            with_thread_local(&COUNT, |_| yield_now());
            // No guard is held any more.
            yield_now();
            park_for_a_moment();
        };
        let innocent = || (0..50).for_each(|_| yield_now());
        let others: Vec<_> = (0..8).map(|_| named(&spawner, "innocent", innocent)).collect();
        named(&spawner, "holds", holds).join().expect("a line, and nothing else");
        others.into_iter().for_each(|one| one.join().expect("the ULT ends"));
    }
}

fn park_for_a_moment() {
    unparker().unpark();
    park();
}

fn guards_over_sleeps_are_fatal() {
    let scheduler = checked(2, SuspensionCheck::Abort);
    let holds = || {
        let _here = NoSuspend::new();
        park();
    };
    let _ = named(&scheduler.spawner(), "holds", holds).join();
}

/// The same check in a job, where the configuration switches it on.
fn guards_over_sleeps_in_a_job() {
    let mut config = tsumugi::Config::from_env().expect("an environment without errors");
    config.suspension = Some(SuspensionCheck::Report);
    let ran = config.run_ranks(2, |rt| {
        let _here = NoSuspend::new();
        yield_now();
        rt.barrier()
    });
    ran.map(drop).unwrap_or_else(|error: tsumugi::Error| panic!("{error}"));
}
