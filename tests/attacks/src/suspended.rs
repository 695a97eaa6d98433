//! What must not live across a suspension, and does.

use crate::Attack;
use crate::ults::scheduler;
use std::cell::{Cell, RefCell};
use std::panic::catch_unwind;
use std::rc::Rc;
use std::time::Duration;
use tsumugi_ult::{callback, park, sleep, unparker, yield_now};

pub const ALL: &[Attack] = &[
    ("thread_locals_over_sleeps", thread_locals_over_sleeps),
    ("panics_that_sleep", panics_that_sleep),
];

std::thread_local! {
    static COUNT: Cell<u32> = const { Cell::new(0) };
    static SHARED: RefCell<Rc<u32>> = RefCell::new(Rc::new(7));
    static CALLS: std::sync::Mutex<u32> = const { std::sync::Mutex::new(0) };
}

/// What holds a `thread_local!`, or a guard, in a callback cannot be suspended: the
/// call that would is refused, and where the thread is lent others meanwhile, it
/// is still the same.
fn thread_locals_over_sleeps() {
    let scheduler = scheduler(2);
    let spawner = scheduler.spawner();
    let nap = || sleep(Duration::from_millis(1));
    let is_refused = |result: std::thread::Result<()>| {
        let panic = result.expect_err("it would sleep");
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
    all.into_iter().for_each(|one| one.join().expect("it ends"));
}

/// Others of its OS thread are taken to panic while it sleeps, as `spawn` says, and
/// nothing else: no ULT is lost, and no lock of ours.
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
            panic!("it sleeps while it unwinds");
        });
        // On the only worker each yield lets it go on until it sleeps.
        while is_there.get().is_none() || !std::thread::panicking() {
            yield_now();
        }
        *kept.lock() += 1;
        is_there.get().expect("it was told").unpark();
        assert!(panics.join().is_err());
        *kept.lock() += 1;
        std::thread::panicking()
    });
    assert!(!seen.join().expect("the innocent one ends"), "the count is down again");
    assert_eq!(*lock.lock(), 2);
}
