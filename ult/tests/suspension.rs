//! Reports of suspensions under a `NoSuspend`. ULTs that unwind and the text on standard error are
//! tested as attacks (`tests/attacks`).

mod common;

use common::config;
use std::cell::Cell;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_ult::sync::Mutex;
use tsumugi_ult::{
    Builder, NoSuspend, Order, Scheduler, Spawner, SuspensionCheck, UltState, callback,
    on_os_stack, park, park_timeout, sleep, spawn, unparker, with_thread_local, yield_now,
    yield_to,
};

/// Runs `main` on one worker and on two, under a check.
fn checked(check: SuspensionCheck, main: impl Fn(&Spawner) + Send + Sync) {
    for workers in [1, 2] {
        let config = config(workers, 32).suspension_check(check);
        let scheduler = Scheduler::new(config).unwrap();
        let spawner = scheduler.spawner();
        scheduler.run(|| main(&spawner));
    }
}

/// The message of the panic by which the guard over `f` reports, if it does.
fn told(f: impl FnOnce() + Send + 'static) -> Option<String> {
    let panic = spawn(move || under(f)).join().err()?;
    Some(panic.message().expect("a sentence").to_owned())
}

#[track_caller]
fn under(f: impl FnOnce()) {
    let _here = NoSuspend::new();
    f();
}

#[test]
fn each_kind_of_suspension_is_reported() {
    checked(SuspensionCheck::Panic, |spawner| {
        let is_told = |what: &str, f: Box<dyn FnOnce() + Send>| {
            let told = told(f).unwrap_or_else(|| panic!("{what}: no report"));
            assert!(told.contains(&format!("suspended ({what}) under")), "{what}: {told}");
            assert!(told.contains(file!()), "{told}");
        };
        is_told("yield", Box::new(yield_now));
        is_told("yield", Box::new(|| _ = yield_to(&spawn(|| ()))));
        is_told("sleep", Box::new(|| sleep(Duration::from_millis(1))));
        is_told("park", Box::new(|| _ = park_timeout(Duration::from_millis(1))));
        let parks = || {
            unparker().unpark();
            park();
        };
        is_told("park", Box::new(parks));
        is_told("join", Box::new(|| spawn(|| ()).join().unwrap()));
        let first = || _ = Builder::new().order(Order::ChildFirst).spawn(|| ());
        is_told("spawn", Box::new(first));
        let lock = Arc::new(Mutex::new(0));
        let (held, its) = (lock.lock(), lock.clone());
        let waits = spawn(move || under(move || drop(its.lock())));
        let sleeps = || {
            let mut sleeps = false;
            let id = waits.id();
            spawner.dump(&mut |ult| sleeps |= ult.id == id && ult.state == UltState::Sleeping);
            sleeps
        };
        while !sleeps() {
            yield_now();
        }
        drop(held);
        assert!(waits.join().is_err(), "the lock waits");
    });
}

#[test]
fn calls_that_do_not_suspend_are_not_reported() {
    checked(SuspensionCheck::Panic, |spawner| {
        let (lock, its) = (Arc::new(Mutex::new(0)), spawner.clone());
        let ended = spawn(|| 3);
        while !ended.is_finished() {
            yield_now();
        }
        let told = told(move || {
            *lock.lock() += 1;
            assert_eq!(ended.join().unwrap(), 3);
            drop(its.spawn(|| ()));
            drop(spawn(|| ()));
            on_os_stack(std::thread::yield_now);
            callback(yield_now);
        });
        assert_eq!(told, None);
    });
}

#[test]
fn a_guard_counts_as_long_as_it_lives() {
    checked(SuspensionCheck::Panic, |_| {
        drop(NoSuspend::new());
        yield_now();
        // A guard of another ULT, whether that runs on a stack of its own or not.
        let other = spawn(|| {
            let here = NoSuspend::new();
            let innocent = spawn(|| {
                yield_now();
                drop(NoSuspend::new());
                sleep(Duration::from_millis(1));
            });
            (innocent, catch_unwind(move || drop(here)).is_ok())
        });
        let (innocent, is_well) = other.join().unwrap();
        assert!(is_well && innocent.join().is_ok());
        // Guards may end in any order, each reports suspensions during its life.
        let (first, second) = (NoSuspend::new(), NoSuspend::new());
        drop(first);
        yield_now();
        let third = NoSuspend::new();
        assert!(catch_unwind(move || drop(second)).is_err());
        assert!(catch_unwind(move || drop(third)).is_ok());
        // In a callback the guard has no effect: there a suspension is refused.
        callback(|| drop(NoSuspend::new()));
        // A guard that is forgotten reports nothing later.
        std::mem::forget(NoSuspend::new());
        yield_now();
    });
}

#[test]
fn a_thread_locals_value_is_for_one_turn() {
    std::thread_local! {
        static COUNT: Cell<u32> = const { Cell::new(0) };
    }
    checked(SuspensionCheck::Panic, |_| {
        let before = with_thread_local(&COUNT, |count| count.replace(count.get() + 1));
        assert_eq!(with_thread_local(&COUNT, Cell::get), before + 1);
        let line = line!() + 1;
        let held = spawn(|| with_thread_local(&COUNT, |_| yield_now()));
        let panic = held.join().unwrap_err();
        let told = panic.message().expect("a sentence");
        let place = format!("(yield) under the NoSuspend made at ult/tests/suspension.rs:{line}:");
        assert!(told.contains(&place), "{told}");
    });
    // Outside of a ULT the value belongs to this thread, however long it waits.
    with_thread_local(&COUNT, |_| sleep(Duration::from_millis(1)));
}

#[test]
fn without_a_check_nothing_panics() {
    for check in [SuspensionCheck::Off, SuspensionCheck::Report] {
        checked(check, |_| assert_eq!(told(|| sleep(Duration::from_millis(1))), None));
    }
    // Outside of a ULT.
    let _here = NoSuspend::new();
    sleep(Duration::from_millis(1));
}

#[test]
fn builds_differ_in_their_default() {
    let is_on = SuspensionCheck::default() == SuspensionCheck::Panic;
    assert_eq!(is_on, cfg!(debug_assertions));
}
