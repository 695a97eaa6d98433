//! No worker is idle while a ULT is ready and its holder computes: some worker runs each ready ULT,
//! although the others never switch.

mod common;

use common::{config, scheduler};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tsumugi_ult::{Builder, JoinHandle, Order, Scheduler, spawn, yield_now, yield_to};

/// Some dozens of fair turns of each kind.
const ROUNDS: usize = 4_000;

fn child_first<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().order(Order::ChildFirst).spawn(f)
}

/// Computes without a suspension until a count is reached.
fn compute_until(count: &AtomicUsize, reached: usize) {
    let started = Instant::now();
    while count.load(Ordering::Acquire) < reached {
        assert!(started.elapsed() < LIMIT, "a ready ULT that no worker runs, at {reached}");
        // Gives the processor, but not the worker, to others.
        std::thread::yield_now();
    }
}

/// Runs `f` on two workers that search for long when idle, and then on two that sleep at once.
fn on_two_workers(f: impl Fn() + Clone + Send) {
    scheduler(2, 8).run(f.clone());
    Scheduler::new(config(2, 8).spin(0)).unwrap().run(f);
}

/// A test that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn the_child_goes_before_its_parent_at_every_spawn() {
    scheduler(1, 8).run(|| {
        let ran = Arc::new(AtomicUsize::new(0));
        // Ready all the time, so that each fair turn has a ULT to prefer.
        let beside = spawn({
            let ran = ran.clone();
            move || {
                while ran.load(Ordering::Relaxed) < 1_000 {
                    yield_now()
                }
            }
        });
        for round in 1..=1_000 {
            let urgent = (round % 7 == 0).then(|| {
                let ran = ran.clone();
                let check = move || assert_eq!(ran.load(Ordering::Relaxed), round, "urgent first");
                Builder::new().urgent(true).spawn(check)
            });
            let seen = ran.clone();
            let child = child_first(move || seen.fetch_add(1, Ordering::Relaxed));
            assert_eq!(ran.load(Ordering::Relaxed), round, "the parent continued first");
            child.join().unwrap();
            if let Some(urgent) = urgent {
                urgent.join().unwrap();
            }
        }
        beside.join().unwrap();
    });
}

#[test]
fn a_parent_and_its_child_compute_until_the_other_did() {
    on_two_workers(|| {
        let (parent, child) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for round in 1..=20_000 {
            let own = (parent.clone(), child.clone());
            let handle = child_first(move || {
                own.1.store(round, Ordering::Release);
                compute_until(&own.0, round);
            });
            compute_until(&child, round);
            parent.store(round, Ordering::Release);
            handle.join().unwrap();
        }
    });
}

/// Each end of a child hands its worker over to the joiner, unless it is the turn of the ULT beside
/// it, which computes until the joiner has continued.
#[test]
fn a_joiner_continues_although_its_turn_is_taken() {
    on_two_workers(|| {
        let joins = Arc::new(AtomicUsize::new(0));
        let beside = spawn({
            let joins = joins.clone();
            move || loop {
                let seen = joins.load(Ordering::Acquire);
                if seen == ROUNDS {
                    return;
                }
                compute_until(&joins, seen + 1);
                yield_now();
            }
        });
        for round in 1..=ROUNDS {
            // The child has begun, so that it does not run in the joiner's place.
            child_first(yield_now).join().unwrap();
            joins.store(round, Ordering::Release);
        }
        beside.join().unwrap();
    });
}

/// A ULT yields to another one that computes until the first continues.
#[test]
fn a_ult_that_yields_to_another_continues_beside_it() {
    on_two_workers(|| {
        let turns = Arc::new(AtomicUsize::new(0));
        for round in 1..=ROUNDS {
            let seen = turns.clone();
            let other = spawn(move || compute_until(&seen, round));
            yield_to(&other);
            turns.store(round, Ordering::Release);
            other.join().unwrap();
        }
    });
}

/// The same with a pinned ULT, which is in another queue.
#[test]
fn a_ult_that_yields_to_a_pinned_one_continues_beside_it() {
    for worker in 0..2 {
        on_two_workers(move || {
            let turns = Arc::new(AtomicUsize::new(0));
            for round in 1..=ROUNDS {
                let seen = turns.clone();
                let other = Builder::new().pin(worker).spawn(move || compute_until(&seen, round));
                yield_now();
                turns.store(round, Ordering::Release);
                other.join().unwrap();
            }
        });
    }
}
