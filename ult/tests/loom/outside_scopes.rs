//! Scopes that threads have on a scheduler, and its end.

use crate::{check, scheduler};
use loom::thread;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use tsumugi_core::sync::{AtomicU32, Ordering};

/// A scheduler whose main has ended runs on for its outside scope.
#[test]
fn an_outside_scope_is_waited_for() {
    let mutants =
        ["guests_end_under", "guests_stop_nobody", "lock_acquire_relaxed", "lock_release_relaxed"];
    check("outside_scopes::an_outside_scope_is_waited_for", &mutants, || {
        let scheduler = scheduler(1);
        let spawner = scheduler.spawner();
        let inside = Arc::new(AtomicU32::new(0));
        let outside = {
            let inside = inside.clone();
            thread::spawn(move || {
                spawner.scope(|scope| {
                    inside.store(1, Ordering::Release);
                    assert_eq!(scope.spawn(|| 3).join().unwrap(), 3);
                });
            })
        };
        scheduler.run(|| {
            while inside.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
        });
        outside.join().unwrap();
    });
}

/// An outside scope that comes when the scheduler ends is waited for or gets an error.
#[test]
fn an_outside_scope_enters_at_the_end() {
    expect_late_scopes();
    check("outside_scopes::an_outside_scope_enters_at_the_end", &["guests_enter_late"], || {
        let scheduler = scheduler(1);
        let spawner = scheduler.spawner();
        let outside = thread::spawn(move || {
            spawner.scope(|scope| {
                let spawned = panic::catch_unwind(AssertUnwindSafe(|| scope.spawn(|| 3)));
                spawned.is_ok_and(|ult| ult.join().unwrap() == 3)
            })
        });
        scheduler.run(|| ());
        outside.join().unwrap();
    });
}

/// Two outside scopes, of which one then waits until no other is left.
#[test]
fn outside_scopes_leave_one_by_one() {
    let mutants = ["guests_leave_first", "guests_tell_nobody", "guests_wait_for_nobody"];
    check("outside_scopes::outside_scopes_leave_one_by_one", &mutants, || {
        let scheduler = scheduler(1);
        let spawner = scheduler.spawner();
        let steps = Arc::new(AtomicU32::new(0));
        let other = {
            let (spawner, steps) = (spawner.clone(), steps.clone());
            thread::spawn(move || {
                spawner.scope(|_| {
                    steps.store(1, Ordering::Relaxed);
                    steps.store(2, Ordering::Relaxed);
                });
            })
        };
        spawner.scope(|_| {
            while steps.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
        });
        spawner.wait_for_scopes();
        assert_eq!(steps.load(Ordering::Relaxed), 2, "the other scope is still inside");
        drop(scheduler);
        other.join().unwrap();
    });
}

/// Suppresses the message of the panic by which a late outside scope learns that the
/// scheduler has ended.
fn expect_late_scopes() {
    let say = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some("spawn: the scheduler has ended") {
            say(info);
        }
    }));
}
