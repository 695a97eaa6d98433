//! Ends of schedulers under their ULTs, refused joins, and other misuse of user-level
//! threads.

use crate::Attack;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tsumugi::{Error, Rank};
use tsumugi_ult::{
    Config, LocalKey, Scheduler, StackArea, StackError, StartError, callback, in_callback,
    on_os_stack, park, spawn, unparker, yield_now,
};

pub const ALL: &[Attack] = &[
    ("scope_under_an_ending_scheduler", scope_under_an_ending_scheduler),
    ("scheduler_dropped_in_a_scope_on_it", scheduler_dropped_in_a_scope_on_it),
    ("receive_of_a_scope_under_an_ending_scheduler", receive_of_a_scope),
    ("keys_that_are_constants", keys_that_are_constants),
    ("stacks_larger_than_memory", stacks_larger_than_memory),
    ("join_on_a_workers_own_stack", join_on_a_workers_own_stack),
    ("scoped_join_on_a_workers_own_stack", scoped_join_on_a_workers_own_stack),
    ("callback_that_yields", callback_that_yields),
    ("scheduler_dropped_on_its_own_ult", scheduler_dropped_on_its_own_ult),
    ("scheduler_dropped_while_its_ult_unwinds", scheduler_dropped_while_its_ult_unwinds),
];

/// A scheduler that runs in the background.
pub fn scheduler(workers: usize) -> Scheduler {
    let stacks = StackArea::map(64 << 20).expect("addresses");
    let config = Config::new(stacks).workers(workers).main_stack_bytes(256 << 10);
    let mut scheduler = Scheduler::new(config).expect("a scheduler");
    scheduler.start().expect("a thread");
    scheduler
}

/// A ULT of a scope lends memory that it has borrowed to an OS thread, and parks. The end
/// of its scheduler waits for the ULT, so that the thread does not write to memory that
/// the scope has given back.
fn scope_under_an_ending_scheduler() {
    let scheduler = scheduler(1);
    let spawner = scheduler.spawner();
    let (ended, lets_go) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut words = vec![0u64; 1024].into_boxed_slice();
    std::thread::scope(|threads| {
        let (send, receive) = std::sync::mpsc::channel();
        let (lent, ended, lets_go) = (&mut words[..], &ended, &lets_go);
        spawner.scope(|scope| {
            scope.spawn(move || {
                std::thread::scope(|inner| {
                    inner.spawn(move || {
                        while !lets_go.load(Ordering::Acquire) {
                            lent.fill(7);
                            std::thread::yield_now();
                        }
                        lent.fill(0);
                    });
                    send.send(unparker()).unwrap();
                    while !lets_go.load(Ordering::Acquire) {
                        park();
                    }
                });
            });
            let sleeper = receive.recv().unwrap();
            threads.spawn(move || {
                drop(scheduler);
                ended.store(true, Ordering::Release);
            });
            // The length of this sleep does not matter: the scheduler must not end before
            // the ULT has left its park.
            std::thread::sleep(Duration::from_millis(50));
            assert!(!ended.load(Ordering::Acquire), "the scheduler ended under a scope");
            lets_go.store(true, Ordering::Release);
            sleeper.unpark();
        });
    });
    assert!(words.iter().all(|word| *word == 0), "the scope ended under its ULT");
}

/// The end of the scheduler would wait for the scope, and the scope for the end.
fn scheduler_dropped_in_a_scope_on_it() {
    let scheduler = scheduler(1);
    let spawner = scheduler.spawner();
    let refused = spawner.scope(|_| catch_unwind(AssertUnwindSafe(|| drop(scheduler))));
    assert!(said(&refused).contains("inside a scope on it"), "{}", said(&refused));
}

/// A ULT of a scope receives into borrowed memory while its scheduler is dropped. The
/// message arrives after the drop has begun.
fn receive_of_a_scope() {
    let ends = tsumugi::run_ranks(2, |rt| {
        let comm = rt.comm();
        if rt.rank() == Rank(1) {
            comm.recv::<u8>(Rank(0), 1, &mut [0])?;
            comm.send(Rank(0), 7, &[7u64; 64])?;
            return Ok(true);
        }
        let scheduler = scheduler(1);
        let spawner = scheduler.spawner();
        let mut words = [0u64; 64];
        std::thread::scope(|threads| {
            spawner.scope(|scope| {
                let begun = Arc::new(AtomicBool::new(false));
                let begins = begun.clone();
                let (words, comm) = (&mut words, &comm);
                scope.spawn(move || {
                    begins.store(true, Ordering::Release);
                    comm.recv(Rank(1), 7, words).map(drop)
                });
                while !begun.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                threads.spawn(move || drop(scheduler));
                std::thread::sleep(Duration::from_millis(20));
                comm.send(Rank(1), 1, &[1u8])
            })
        })?;
        Ok::<_, Error>(words == [7; 64])
    });
    assert_eq!(ends.expect("both ranks end"), [true, true], "what the scope received");
}

/// The compiler may place both constants at one address; each key still has its own
/// values.
fn keys_that_are_constants() {
    const TEXT: LocalKey<Cell<Option<&'static String>>> = LocalKey::new(|| Cell::new(None));
    const WORDS: LocalKey<Cell<Option<&'static [usize; 3]>>> = LocalKey::new(|| Cell::new(None));
    let text: &'static LocalKey<_> = &TEXT;
    let words: &'static LocalKey<_> = &WORDS;
    text.with(|text| text.set(Some(Box::leak(Box::new(String::from("a text"))))));
    assert_eq!(words.with(Cell::get), None, "a String, read as words");
}

/// Sizes whose sum overflows.
fn stacks_larger_than_memory() {
    let largest = usize::MAX - 4095;
    for (stack_bytes, main_stack_bytes) in [(65536, largest), (largest, 65536), (largest, largest)]
    {
        let stacks = StackArea::map(1 << 20).expect("addresses");
        let config = Config::new(stacks)
            .workers(1)
            .stack_bytes(stack_bytes)
            .main_stack_bytes(main_stack_bytes);
        let refused = Scheduler::new(config).err();
        let Some(StartError::Stacks(StackError::Large { stack_bytes, .. })) = refused else {
            panic!("refused with {refused:?}");
        };
        assert_eq!(stack_bytes, largest);
    }
    let config = tsumugi::Config::default().main_stack_bytes(largest);
    let refused = config.run(|_| Ok::<_, Error>(())).unwrap_err().to_string();
    assert!(refused.contains(&largest.to_string()), "{refused}");
}

/// The worker would wait for a ULT that only this worker can run.
fn join_on_a_workers_own_stack() {
    for workers in [1, 2] {
        let scheduler = scheduler(workers);
        let joined = scheduler.spawner().spawn(|| {
            let begin = Arc::new(AtomicBool::new(false));
            let begun = begin.clone();
            let child = spawn(move || {
                while !begun.load(Ordering::Acquire) {
                    yield_now();
                }
            });
            let refused = catch_unwind(AssertUnwindSafe(|| on_os_stack(|| child.join())));
            begin.store(true, Ordering::Release);
            refused.map(drop)
        });
        let refused = joined.join().expect("the ULT ends");
        assert!(said(&refused).contains("on_os_stack"), "{}", said(&refused));
    }
}

/// A scope waits for a ULT of it whose join was refused.
fn scoped_join_on_a_workers_own_stack() {
    let scheduler = scheduler(1);
    let ended = scheduler.spawner().spawn(|| {
        let has_ended = AtomicBool::new(false);
        tsumugi_ult::scope(|scope| {
            let child = scope.spawn(|| {
                (0..100).for_each(|_| yield_now());
                has_ended.store(true, Ordering::Release);
            });
            let refused = catch_unwind(AssertUnwindSafe(|| on_os_stack(|| child.join())));
            assert!(refused.is_err());
        });
        has_ended.load(Ordering::Acquire)
    });
    assert!(ended.join().expect("the ULT ends"), "the scope ended before its ULT");
}

/// A callback that yields stays on its OS thread, and no other ULT counts as in a
/// callback meanwhile.
fn callback_that_yields() {
    let scheduler = scheduler(2);
    let spawner = scheduler.spawner();
    let all: Vec<_> = (0..64)
        .map(|_| {
            spawner.spawn(|| {
                for _ in 0..200 {
                    callback(|| {
                        yield_now();
                        assert!(in_callback());
                    });
                    assert!(!in_callback());
                    yield_now();
                }
            })
        })
        .collect();
    all.into_iter().for_each(|one| one.join().expect("each ULT sees its own callback only"));
    assert!(spawner.spawn(|| !in_callback()).join().expect("the ULT ends"));
}

fn scheduler_dropped_on_its_own_ult() {
    let scheduler = scheduler(2);
    let spawner = scheduler.spawner();
    let refused = spawner.spawn(move || drop(scheduler)).join();
    let refused = refused.map_err(tsumugi::JoinError::into_panic);
    assert!(said(&refused).contains("on a ULT of its own"), "{}", said(&refused));
}

/// The drop panics while the ULT unwinds from another panic, which aborts the process.
fn scheduler_dropped_while_its_ult_unwinds() {
    let scheduler = scheduler(1);
    let spawner = scheduler.spawner();
    let child = spawner.spawn(move || {
        let _scheduler = scheduler;
        panic!("the ULT unwinds");
    });
    let _ = child.join();
}

fn said<T>(outcome: &Result<T, Box<dyn std::any::Any + Send>>) -> String {
    let Err(panic) = outcome else { return "nothing".into() };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into())).unwrap_or_default()
}
