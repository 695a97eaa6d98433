//! The whole scheduler: which worker runs a ULT, sleeps, and is woken.

use crate::{check, scheduler, with_inline};
use std::sync::Arc;
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_ult::sync::Latch;
use tsumugi_ult::{Builder, JoinHandle, Order, park, spawn, unparker, yield_now};

#[test]
fn join_across_workers() {
    check(
        "worker::join_across_workers",
        &["join_load_then_store", "join_no_second_look", "join_relaxed", "stop_relaxed"],
        || {
            let value = scheduler(2).run(|| spawn(|| 5).join().unwrap());
            assert_eq!(value, 5);
        },
    );
}

#[test]
fn park_and_unpark_across_workers() {
    check("worker::park_and_unpark_across_workers", &["park_no_second_look"], || {
        scheduler(2).run(|| {
            let main = unparker();
            drop(spawn(move || main.unpark()));
            park();
        });
    });
}

#[test]
fn outsider_wakes_a_sleeping_worker() {
    check(
        "worker::outsider_wakes_a_sleeping_worker",
        &["notify_no_fence", "sleep_no_last_look"],
        || {
            let mut scheduler = scheduler(1);
            scheduler.start().unwrap();
            let handle = scheduler.spawner().spawn(|| 3);
            assert_eq!(handle.join().unwrap(), 3);
        },
    );
}

/// The ULT may run on that worker only, which may be about to sleep.
#[test]
fn outsider_wakes_the_worker_of_a_pinned_ult() {
    let mutants = ["sleep_no_last_look"];
    check("worker::outsider_wakes_the_worker_of_a_pinned_ult", &mutants, || {
        let mut scheduler = scheduler(1);
        scheduler.start().unwrap();
        let pinned = Builder::new().pin(0).try_spawn_on(&scheduler.spawner(), || 3);
        assert_eq!(pinned.unwrap_or_else(|_| unreachable!()).join().unwrap(), 3);
    });
}

/// A lone worker owns the park words, and another thread unparks.
#[test]
fn a_thread_unparks_a_lone_workers_ult() {
    let mutants = ["bias_no_light", "bias_no_heavy", "bias_no_wait", "park_no_second_look"];
    check("worker::a_thread_unparks_a_lone_workers_ult", &mutants, || {
        scheduler(1).run(|| {
            let main = unparker();
            let other = loom::thread::spawn(move || main.unpark());
            park();
            other.join().unwrap();
        });
    });
}

/// A child that yields while it runs on its joiner's stack, so that the other worker may continue
/// with both.
#[test]
fn a_child_suspends_on_its_joiners_stack() {
    check("worker::a_child_suspends_on_its_joiners_stack", &[], || {
        assert_eq!(with_inline(2, 0).run(child_that_yields), 5);
    });
}

/// The same on a stack of its own.
#[test]
fn a_child_suspends_in_its_joiners_place() {
    check("worker::a_child_suspends_in_its_joiners_place", &["join_relaxed"], || {
        assert_eq!(with_inline(2, usize::MAX).run(child_that_yields), 5);
    });
}

fn child_that_yields() -> u32 {
    let child = spawn(|| {
        yield_now();
        5
    });
    child.join().unwrap()
}

/// A worker that is busy for ever has pushed; the other one must wake.
#[test]
fn a_push_wakes_a_sleeping_worker() {
    check("worker::a_push_wakes_a_sleeping_worker", &["notify_no_light"], || {
        scheduler(2).run(|| {
            let ran = Arc::new(AtomicUsize::new(0));
            let seen = ran.clone();
            drop(spawn(move || seen.store(1, Ordering::Release)));
            compute_until(&ran, 1);
        });
    });
}

#[test]
fn yielding_ults_migrate_whole() {
    check("worker::yielding_ults_migrate_whole", &[], || {
        let steps = Arc::new(AtomicUsize::new(0));
        scheduler(2).run(|| {
            let counted = steps.clone();
            let other = spawn(move || counted.fetch_add(1, Ordering::Relaxed));
            yield_now();
            other.join().unwrap();
        });
        assert_eq!(steps.load(Ordering::Relaxed), 1);
    });
}

/// Two words: a queue, and a flag that it is not empty.
#[test]
fn an_urgent_ult_comes_from_outside() {
    check("worker::an_urgent_ult_comes_from_outside", &["urgent_said_early"], || {
        let mut scheduler = scheduler(1);
        scheduler.start().unwrap();
        let spawner = scheduler.spawner();
        let urgent = Builder::new().urgent(true).try_spawn_on(&spawner, || 3);
        let handle = urgent.unwrap_or_else(|_| unreachable!("the scheduler runs"));
        assert_eq!(handle.join().unwrap(), 3);
    });
}

/// Two ULTs that wait for the same event are queued as one chain.
#[test]
fn a_thread_wakes_two_at_once() {
    let mutants = ["batch_told_early", "inject_push_relaxed", "notify_no_fence"];
    check("worker::a_thread_wakes_two_at_once", &mutants, || {
        scheduler(1).run(|| {
            let (latch, seen) = (Arc::new(Latch::new(1)), Arc::new(AtomicUsize::new(0)));
            let other = {
                let (latch, seen) = (latch.clone(), seen.clone());
                spawn(move || {
                    latch.wait();
                    seen.fetch_add(1, Ordering::Relaxed);
                })
            };
            let opener = {
                let latch = latch.clone();
                loom::thread::spawn(move || latch.count_down(1))
            };
            latch.wait();
            other.join().unwrap();
            opener.join().unwrap();
            assert_eq!(seen.load(Ordering::Relaxed), 1);
        });
    });
}

/// A ULT that parks switches directly to the next one, and another thread unparks it.
#[test]
fn a_thread_unparks_a_ult_during_a_direct_switch() {
    let mutants = ["bias_no_light", "bias_no_heavy", "bias_no_wait"];
    check("worker::a_thread_unparks_a_ult_during_a_direct_switch", &mutants, || {
        scheduler(1).run(|| {
            let main = unparker();
            let other = spawn(move || {
                let myself = unparker();
                let thread = loom::thread::spawn(move || myself.unpark());
                main.unpark();
                park();
                thread
            });
            park();
            other.join().unwrap().join().unwrap();
        });
    });
}

/// Fair turns come in between, and each has a ULT to prefer. A child that spawns has the hub begin
/// its own child where the turn is over.
#[test]
fn a_child_runs_before_its_parent() {
    let mutants = ["child_first_after_others", "next_not_shown"];
    check("worker::a_child_runs_before_its_parent", &mutants, || {
        scheduler(1).run(|| {
            let ran = Arc::new(AtomicUsize::new(0));
            let seen = ran.clone();
            let beside = spawn(move || {
                while seen.load(Ordering::Relaxed) < 32 {
                    yield_now();
                }
            });
            for round in 1..=16 {
                let seen = ran.clone();
                let child = child_first(move || {
                    assert_eq!(seen.fetch_add(1, Ordering::Relaxed), 2 * round - 2);
                    let inner = seen.clone();
                    let grandchild = child_first(move || {
                        inner.fetch_add(1, Ordering::Relaxed);
                        (0..round % 4).for_each(|_| yield_now());
                    });
                    assert_eq!(seen.load(Ordering::Relaxed), 2 * round);
                    grandchild.join().unwrap();
                });
                assert_eq!(ran.load(Ordering::Relaxed), 2 * round);
                child.join().unwrap();
            }
            beside.join().unwrap();
        });
    });
}

fn child_first<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().order(Order::ChildFirst).spawn(f)
}

/// Parent and child compute until the other has run: whichever worker runs one of them, the other
/// worker runs the other.
#[test]
fn a_parent_continues_beside_its_child() {
    let mutants = ["notify_no_light", "parent_not_shown"];
    check("worker::a_parent_continues_beside_its_child", &mutants, || {
        scheduler(2).run(|| {
            let done = Arc::new(AtomicUsize::new(0));
            let seen = done.clone();
            drop(Builder::new().order(Order::ChildFirst).spawn(move || compute_until(&seen, 1)));
            done.store(1, Ordering::Release);
        });
    });
}

/// The same for a ULT that yields to the other.
#[test]
fn a_ult_that_yields_to_another_continues_beside_it() {
    check("worker::a_ult_that_yields_to_another_continues_beside_it", &["notify_no_light"], || {
        scheduler(2).run(|| {
            let done = Arc::new(AtomicUsize::new(0));
            let seen = done.clone();
            drop(spawn(move || compute_until(&seen, 1)));
            yield_now();
            done.store(1, Ordering::Release);
        });
    });
}

fn compute_until(count: &AtomicUsize, reached: usize) {
    while count.load(Ordering::Acquire) < reached {
        loom::thread::yield_now();
    }
}
