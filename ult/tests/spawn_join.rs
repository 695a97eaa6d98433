//! Spawning, joining, panics, detaching, the end of a scheduler.

mod common;

use common::{config, scheduler};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use tsumugi_core::stats::Counter;
use tsumugi_core::wait::{Spawn, Wait};
use tsumugi_ult::{
    Builder, Here, NoProgress, Scheduler, StackError, StartError, UltState, id, park, sleep, spawn,
    unparker, yield_now,
};

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let left = spawn(move || fib(n - 1));
    let right = fib(n - 2);
    left.join().unwrap() + right
}

#[test]
fn a_tree_of_ults_adds_up() {
    for workers in [1, 2, 4] {
        assert_eq!(scheduler(workers, 1000).run(|| fib(16)), 987, "{workers} workers");
    }
}

#[test]
fn large_closures_and_results_come_through() {
    let big = [7u8; 500];
    let answer = scheduler(1, 4).run(move || {
        let handle = spawn(move || {
            let mut more = big;
            more[499] = 1;
            more
        });
        handle.join().unwrap()
    });
    assert_eq!((answer[0], answer[499]), (7, 1));
}

#[test]
fn main_borrows_from_its_caller() {
    let words = [String::from("silk"), String::from("thread")];
    let bytes: usize = scheduler(1, 4).run(|| words.iter().map(String::len).sum());
    assert_eq!(bytes, 10);
}

#[test]
fn a_panic_is_carried_to_the_joiner() {
    let payload = scheduler(2, 8).run(|| spawn(|| panic!("thread {}", fib(4))).join().unwrap_err());
    assert_eq!(payload.message(), Some("thread 3"));
}

#[test]
fn a_panic_of_main_continues_in_the_caller() {
    let caught = std::panic::catch_unwind(|| scheduler(1, 4).run(|| panic!("main")));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"main"));
}

#[test]
fn results_that_are_not_joined_are_dropped() {
    let alive = Arc::new(AtomicUsize::new(0));
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let make = |alive: &Arc<AtomicUsize>| {
        alive.fetch_add(1, Ordering::SeqCst);
        Counted(alive.clone())
    };
    scheduler(1, 8).run(|| {
        // Dropped before, while and after the ULT runs; and without any run of it.
        let early = make(&alive);
        drop(spawn(move || early));
        yield_now();
        let late = make(&alive);
        let handle = spawn(move || late);
        yield_now();
        assert!(handle.is_finished());
        drop(handle);
        let never = make(&alive);
        drop(spawn(move || never));
    });
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn threads_from_outside_spawn_and_join() {
    let mut scheduler = scheduler(2, 64);
    let spawner = scheduler.spawner();
    let before: Vec<_> = (0..50u32).map(|n| spawner.spawn(move || n * 2)).collect();
    scheduler.start().unwrap();
    let sum: u32 = before.into_iter().map(|handle| handle.join().unwrap()).sum();
    assert_eq!(sum, 2450);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let spawner = spawner.clone();
            std::thread::spawn(move || {
                (0..200u32).map(|n| spawner.spawn(move || n).join().unwrap()).sum::<u32>()
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 19900);
    }
}

#[test]
fn ults_cut_off_by_the_end_are_reported_as_cancelled() {
    let mut scheduler = scheduler(1, 8);
    let spawner = scheduler.spawner();
    let never = spawner.spawn(|| 1);
    drop(scheduler);
    assert!(never.join().unwrap_err().is_cancelled());
    assert!(spawner.try_spawn(|| 2).is_err(), "the scheduler has ended");

    scheduler = common::scheduler(1, 8);
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    let asleep = spawner.spawn(|| {
        loop {
            park();
        }
    });
    let late = spawner.spawn(unparker).join().unwrap();
    let joiner = std::thread::spawn(move || asleep.join().unwrap_err());
    drop(scheduler);
    assert!(joiner.join().unwrap().is_cancelled());
    late.unpark();
}

#[test]
fn a_ult_cut_off_while_it_yields_leaves_once() {
    static LEFT: AtomicU32 = AtomicU32::new(0);
    static YIELDED: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
    let mut scheduler = scheduler(1, 8);
    scheduler.start().unwrap();
    for yielded in &YIELDED {
        drop(scheduler.spawner().spawn(|| {
            loop {
                let mut leave = || {
                    LEFT.fetch_add(1, Ordering::SeqCst);
                };
                // SAFETY: leaving counts.
                unsafe { Here.yield_or_leave(&mut leave) };
                yielded.fetch_add(1, Ordering::SeqCst);
            }
        }));
    }
    // A ULT that never began has nothing to leave.
    while YIELDED.iter().any(|yielded| yielded.load(Ordering::SeqCst) < 50) {
        std::thread::yield_now();
    }
    assert_eq!(LEFT.load(Ordering::SeqCst), 0, "the ULTs continue");
    drop(scheduler);
    assert_eq!(LEFT.load(Ordering::SeqCst), 2);
}

#[test]
fn a_handle_outlives_its_scheduler() {
    let scheduler = scheduler(2, 8);
    let (done, running) = scheduler.run(|| {
        let done = spawn(|| String::from("kept"));
        while !done.is_finished() {
            yield_now();
        }
        (done, spawn(|| 3))
    });
    assert_eq!(done.join().unwrap(), "kept");
    match running.join() {
        Ok(three) => assert_eq!(three, 3),
        Err(cancelled) => assert!(cancelled.is_cancelled()),
    }
}

/// The result of a ULT that nobody joins is dropped where the ULT ends, or where its handle is
/// dropped if that comes later.
#[test]
fn the_result_of_a_detached_ult_is_dropped() {
    for workers in [1, 2] {
        for ends_first in [false, true] {
            let result = Arc::new(());
            let kept = Arc::downgrade(&result);
            scheduler(workers, 8).run(move || {
                let may_end = Arc::new(AtomicU32::new(u32::from(ends_first)));
                let waits_for = may_end.clone();
                let handle = spawn(move || {
                    while waits_for.load(Ordering::SeqCst) == 0 {
                        yield_now();
                    }
                    result
                });
                while ends_first && !handle.is_finished() {
                    yield_now();
                }
                drop(handle);
                may_end.store(1, Ordering::SeqCst);
                while kept.strong_count() > 0 {
                    yield_now();
                }
            });
        }
    }
}

#[test]
fn handlers_that_must_block_become_ults() {
    let mut scheduler = scheduler(1, 8);
    scheduler.start().unwrap();
    let (sent, got) = std::sync::mpsc::channel::<u32>();
    unsafe fn run(data: *mut ()) {
        // SAFETY: the test leaks the sender here.
        let sent = unsafe { Box::from_raw(data.cast::<std::sync::mpsc::Sender<u32>>()) };
        yield_now();
        sent.send(5).unwrap();
    }
    let data = Box::into_raw(Box::new(sent)).cast();
    // SAFETY: `run` takes the box, on any thread.
    assert!(unsafe { scheduler.spawner().spawn_detached(run, data) });
    assert_eq!(got.recv(), Ok(5));
}

#[test]
fn more_ults_than_stacks_take_turns() {
    for workers in [1, 2] {
        let sum = scheduler(workers, 5).run(|| {
            let handles: Vec<_> = (0..500u64)
                .map(|n| {
                    spawn(move || {
                        yield_now();
                        n
                    })
                })
                .collect();
            handles.into_iter().map(|handle| handle.join().unwrap()).sum::<u64>()
        });
        assert_eq!(sum, 499 * 500 / 2, "{workers} workers");
    }
}

#[test]
fn several_schedulers_run_side_by_side() {
    let schedulers: Vec<_> = (0..3)
        .map(|_| {
            // Room for a scheduler that runs inside a ULT.
            let mut config = config(1, 80);
            config.stack_bytes = 128 << 10;
            let mut scheduler = Scheduler::new(config).unwrap();
            scheduler.start().unwrap();
            scheduler
        })
        .collect();
    // A ULT of each scheduler joins a ULT of the next.
    let (a, b, c) = (schedulers[0].spawner(), schedulers[1].spawner(), schedulers[2].spawner());
    let answer = a.spawn(move || b.spawn(move || c.spawn(|| 42).join().unwrap()).join().unwrap());
    assert_eq!(answer.join().unwrap(), 42);
    // A scheduler runs inside another scheduler's ULT.
    let nested = schedulers[0].spawner().spawn(|| scheduler(1, 4).run(|| fib(5)));
    assert_eq!(nested.join().unwrap(), 5);
}

#[test]
fn a_dump_shows_the_reasons_of_sleepers() {
    let mut scheduler = scheduler(2, 16);
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    let sleeper = Builder::new()
        .name("sleeper")
        .try_spawn_on(&spawner, || {
            let mine = (id().unwrap(), unparker());
            (mine, park()).0
        })
        .unwrap_or_else(|_| unreachable!());
    let waiting = loop {
        let mut found = None;
        spawner.dump(&mut |ult| {
            if ult.state == UltState::Sleeping {
                found = Some(ult);
            }
        });
        match found {
            Some(ult) => break ult,
            None => std::thread::yield_now(),
        }
    };
    assert_eq!(waiting.id, sleeper.id());
    assert_eq!(waiting.name.as_deref(), Some("sleeper"));
    assert_eq!(waiting.reason.map(|reason| reason.what), Some("park"));
    assert!(waiting.since.unwrap() <= spawner.now());
}

/// Lets others run, of which there are some.
fn yielding() {
    let other = spawn(|| ());
    yield_now();
    other.join().unwrap();
}

#[test]
fn counters_count_spawns_and_yields() {
    let scheduler = scheduler(1, 16);
    let spawner = scheduler.spawner();
    scheduler.run(|| {
        for _ in 0..10 {
            spawn(yielding).join().unwrap();
        }
    });
    let counts = spawner.counts();
    // Main runs each child in its own place, so that it never sleeps.
    assert_eq!((counts[Counter::Spawned], counts[Counter::Yields]), (20, 10), "{counts:?}");
}

#[test]
fn waits_and_wakes_by_other_threads_are_counted() {
    let scheduler = scheduler(1, 16);
    let spawner = scheduler.spawner();
    scheduler.run(move || {
        let before = spawner.counts();
        // The thread may have unparked main before main sleeps.
        while spawner.counts()[Counter::WokenAfar] == before[Counter::WokenAfar] {
            let main = unparker();
            let thread = std::thread::spawn(move || main.unpark());
            park();
            thread.join().unwrap();
        }
        sleep(Duration::from_millis(1));
        while spawner.counts()[Counter::IdleNs] < before[Counter::IdleNs] + 1_000_000 {
            sleep(Duration::from_millis(1));
        }
        let idle = spawner.counts() - before;
        assert!(idle[Counter::Polls] > 0 && idle[Counter::Wakes] > 0, "{idle:?}");
    });
}

#[test]
fn counts_of_other_parts_are_added_to_the_worker() {
    let scheduler = scheduler(1, 16);
    let spawner = scheduler.spawner();
    Here.count(Counter::Busy);
    scheduler.run(move || {
        Here.count(Counter::Busy);
        assert_eq!(spawner.counts()[Counter::Busy], 1, "of a ULT, not of a thread");
    });
}

#[test]
fn a_scheduler_is_freed_unless_it_abandons_sleepers() {
    let freed = |sleeper: bool| {
        let progress = Arc::new(NoProgress);
        let mut config = config(2, 8);
        config.progress = progress.clone();
        let mut scheduler = Scheduler::new(config).unwrap();
        scheduler.start().unwrap();
        let spawner = scheduler.spawner();
        let (kept, other) = (spawner.spawn(|| 1), spawner.spawn(unparker).join().unwrap());
        drop(spawner.spawn(|| ()));
        if sleeper {
            drop(spawner.spawn(park));
            while spawner.counts()[Counter::Parks] == 0 {
                std::thread::yield_now();
            }
        }
        drop((scheduler, spawner));
        assert_eq!(Arc::strong_count(&progress), 2, "a handle and an unparker keep it");
        drop((kept, other));
        Arc::strong_count(&progress) == 1
    };
    assert!(freed(false));
    assert!(!freed(true), "other threads may point into the sleeper's stack");
}

#[test]
fn bad_configurations_are_refused() {
    for workers in [0, 100_000] {
        let refused = Scheduler::new(config(workers, 4)).unwrap_err();
        assert!(matches!(refused, StartError::Workers(n) if n == workers), "{refused}");
    }
    let mut bad = config(1, 4);
    bad.stack_bytes = 5000;
    let refused = Scheduler::new(bad).unwrap_err();
    assert!(matches!(refused, StartError::Stacks(StackError::Size { stack_bytes: 5000 })));
}
