//! Random schedules of mixes that are too large for loom, on the whole scheduler with its real
//! switches: three workers, several ULTs, several steps each.
//!
//! Every schedule is sequentially consistent: loom checks the orderings, and this test the order of
//! steps. Each mix must pass, and fail with each of its planted defects.
//!
//! Built only with `--cfg tsumugi_loom --cfg tsumugi_shuttle`: see
//! `ci/shuttle.sh`.
#![cfg(tsumugi_shuttle)]

mod model;

use std::sync::Arc;
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_ult::sync::{Condvar, Mutex, channel};
use tsumugi_ult::{Scheduler, park, spawn, unparker, yield_now};

/// Schedules of a mix; `TSUMUGI_TEST_SCHEDULES` overrides the number.
const SCHEDULES: usize = 2_000;
/// The default of the configuration.
const INLINE_BYTES: usize = 32 << 10;

/// Runs `mix`, the mix of test `test`, on many schedules, unchanged and then with each mutant until
/// it fails.
fn check(test: &str, mutants: &[&'static str], mix: fn()) {
    let schedules = std::env::var("TSUMUGI_TEST_SCHEDULES").ok().and_then(|n| n.parse().ok());
    let schedules = schedules.unwrap_or(SCHEDULES);
    model::check(test, mutants, move || {
        shuttle::check_random(mix, schedules / 2);
        shuttle::check_pct(mix, schedules / 2, 3);
    });
}

fn scheduler(workers: usize) -> Scheduler {
    model::scheduler(workers, 12, INLINE_BYTES)
}

#[test]
fn trees_of_children_are_joined() {
    check("trees_of_children_are_joined", &["join_no_second_look"], || {
        fn leaves(depth: u32) -> u32 {
            if depth == 0 {
                yield_now();
                return 1;
            }
            let child = spawn(move || leaves(depth - 1));
            let own = leaves(depth - 1);
            own + child.join().unwrap()
        }
        assert_eq!(scheduler(3).run(|| leaves(3)), 8);
    });
}

#[test]
fn tokens_are_passed_in_a_circle() {
    check("tokens_are_passed_in_a_circle", &["park_no_second_look"], || {
        scheduler(3).run(|| {
            let count = Arc::new(AtomicUsize::new(0));
            let main = unparker();
            let ults: Vec<_> = (0..3)
                .map(|_| {
                    let (count, main) = (count.clone(), main.clone());
                    spawn(move || {
                        count.fetch_add(1, Ordering::SeqCst);
                        main.unpark();
                    })
                })
                .collect();
            while count.load(Ordering::SeqCst) < 3 {
                park();
            }
            ults.into_iter().for_each(|ult| ult.join().unwrap());
        });
    });
}

#[test]
fn a_queue_of_a_mutex_and_a_condvar_loses_nothing() {
    check(
        "a_queue_of_a_mutex_and_a_condvar_loses_nothing",
        &["mutex_no_second_look", "sleep_no_last_look"],
        || {
            scheduler(3).run(|| {
                let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
                let takers: Vec<_> = (0..2)
                    .map(|_| {
                        let shared = shared.clone();
                        spawn(move || {
                            let mut values = shared.0.lock();
                            while values.is_empty() {
                                shared.1.wait(&mut values);
                            }
                            values.pop().unwrap()
                        })
                    })
                    .collect();
                for value in [1, 2] {
                    let shared = shared.clone();
                    drop(spawn(move || {
                        shared.0.lock().push(value);
                        shared.1.notify_one();
                    }));
                }
                let sum: i32 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
                assert_eq!(sum, 3);
            });
        },
    );
}

#[test]
fn channels_deliver_every_value() {
    check("channels_deliver_every_value", &["channel_no_second_look"], || {
        scheduler(2).run(|| {
            let (sender, receiver) = channel::bounded(1);
            let senders: Vec<_> = (0..2)
                .map(|_| {
                    let sender = sender.clone();
                    spawn(move || (0..2).for_each(|value| sender.send(value).unwrap()))
                })
                .collect();
            drop(sender);
            let mut sum = 0;
            while let Ok(value) = receiver.recv() {
                sum += value;
            }
            senders.into_iter().for_each(|ult| ult.join().unwrap());
            assert_eq!(sum, 2);
        });
    });
}
