//! Sleeping and waiting with a limit, without polling.

mod common;

use common::{config, everywhere, scheduler};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tsumugi_core::stats::Counter;
use tsumugi_core::wait::{Reason, WaitFor, Waker};
use tsumugi_ult::sync::Semaphore;
use tsumugi_ult::{
    Builder, Here, Interrupted, Limit, Progress, Scheduler, park_timeout, park_within, sleep,
    sleep_until, spawn, unparker, yield_now,
};

const SHORT: Duration = Duration::from_millis(3);
const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_sleep_is_no_shorter_than_asked() {
    everywhere(|_| {
        let start = Instant::now();
        sleep(SHORT);
        sleep_until(Instant::now() + SHORT);
        sleep_until(start);
        assert!(start.elapsed() >= SHORT * 2);
        assert!(start.elapsed() < LONG);
    });
}

#[test]
fn many_sleepers_all_wake_and_none_too_early() {
    for workers in [1, 2] {
        scheduler(workers, 64).run(|| {
            let start = Instant::now();
            // Started in another order than that of their deadlines.
            let all: Vec<_> = (0..50)
                .map(|n| {
                    let deadline = start + Duration::from_micros(n * 7 % 50 * 100);
                    spawn(move || {
                        sleep_until(deadline);
                        Instant::now() >= deadline
                    })
                })
                .collect();
            assert!(all.into_iter().all(|one| one.join().unwrap()));
        });
    }
}

#[test]
fn a_park_ends_by_its_token_or_its_limit() {
    everywhere(|party| {
        assert!(!park_timeout(SHORT));
        let me = unparker();
        me.unpark();
        assert!(park_timeout(LONG), "the token is kept");
        let other = party.spawn(move || me.unpark());
        assert_eq!(park_within(LONG), Ok(()));
        other.join();
        assert!(!park_timeout(SHORT), "there is one token");
    });
}

#[test]
fn a_join_with_a_limit_returns_the_handle() {
    scheduler(2, 8).run(|| {
        let room = Arc::new(Semaphore::new(0));
        let inside = room.clone();
        let child = spawn(move || {
            inside.acquire(1);
            5
        });
        let child = child.join_timeout(SHORT).expect_err("the child waits for this ULT");
        room.release(1);
        assert_eq!(child.join_timeout(LONG).unwrap().unwrap(), 5);
    });
}

#[test]
fn a_timed_sleep_publishes_and_withdraws_its_waker() {
    everywhere(|party| {
        // A lock that a commit may take, since no ULT sleeps while it holds the lock.
        let published: Arc<std::sync::Mutex<Option<Waker>>> = Arc::default();
        let wait = |limit| {
            let mut publish = |waker| {
                *published.lock().unwrap() = Some(waker);
                true
            };
            let mut withdraw = || published.lock().unwrap().take().is_some();
            // SAFETY: the waker is taken out once, to be used or dropped.
            unsafe { Here.sleep_for(Reason::new("test"), limit, &mut publish, &mut withdraw) }
        };
        assert_eq!(wait(SHORT), Err(Interrupted::TimedOut));
        assert!(published.lock().unwrap().is_none());
        let waking = {
            let published = published.clone();
            party.spawn(move || {
                loop {
                    let taken = published.lock().unwrap().take();
                    if let Some(waker) = taken {
                        return waker.wake();
                    }
                    yield_now();
                }
            })
        };
        assert_eq!(wait(LONG), Ok(()));
        waking.join();
    });
}

#[test]
fn a_ult_that_computes_delays_only_its_own_worker() {
    scheduler(2, 8).run(|| {
        // One worker is busy until the other has seen the time pass.
        let (done, slept) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let hog = {
            let slept = slept.clone();
            spawn(move || {
                let start = Instant::now();
                while slept.load(Ordering::Acquire) < 3 && start.elapsed() < LONG {
                    std::hint::spin_loop();
                }
                slept.load(Ordering::Acquire)
            })
        };
        let sleeper = {
            let (done, slept) = (done.clone(), slept.clone());
            spawn(move || {
                for _ in 0..3 {
                    sleep(SHORT);
                    slept.fetch_add(1, Ordering::AcqRel);
                }
                done.store(1, Ordering::Release);
            })
        };
        sleeper.join().unwrap();
        assert_eq!(hog.join().unwrap(), 3, "the sleeper ran beside the hog");
    });
}

/// One of two sleeping workers sleeps until the earliest deadline; if that one has to run a hog,
/// the other worker must learn of the deadline.
#[test]
fn a_deadline_is_met_when_its_keeper_is_busy() {
    let mut scheduler = scheduler(2, 8);
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    for worker in [0, 1].repeat(4) {
        let woken = Arc::new(AtomicUsize::new(0));
        let sleeper = {
            let woken = woken.clone();
            spawner.spawn(move || {
                sleep(SHORT * 20);
                woken.store(1, Ordering::Release);
            })
        };
        // Usually both workers fall asleep meanwhile.
        std::thread::sleep(SHORT * 5);
        let hog = Builder::new().pin(worker).try_spawn_on(&spawner, move || {
            let start = Instant::now();
            while woken.load(Ordering::Acquire) == 0 && start.elapsed() < LONG {
                std::hint::spin_loop();
            }
            woken.load(Ordering::Acquire)
        });
        let hog = hog.unwrap_or_else(|_| unreachable!());
        assert_eq!(hog.join().unwrap(), 1, "the sleeper ran beside the hog");
        sleeper.join().unwrap();
    }
}

struct Watch {
    pending: AtomicUsize,
    changes: AtomicUsize,
}

impl Progress for Watch {
    fn poll(&self) -> bool {
        false
    }

    fn has_work(&self) -> bool {
        false
    }

    fn on_timers(&self, pending: bool) {
        self.pending.store(pending.into(), Ordering::SeqCst);
        self.changes.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn pending_timers_are_seen_and_cost_no_wake_ups() {
    let watch = Arc::new(Watch { pending: AtomicUsize::new(0), changes: AtomicUsize::new(0) });
    let mut scheduler = Scheduler::new(config(2, 8).progress(watch.clone())).unwrap();
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    let hours = || Limit::after(Duration::from_secs(3600));
    let sleepers: Vec<_> = (0..2).map(|_| spawner.spawn(move || park_within(hours()))).collect();
    while spawner.timers() < 2 {
        std::thread::yield_now();
    }
    assert_eq!(watch.pending.load(Ordering::SeqCst), 1);
    // Once all have fallen asleep, no worker wakes before the deadline.
    let sleeps = || spawner.counts()[Counter::Sleeps];
    let is_calm = |_| {
        let before = sleeps();
        std::thread::sleep(Duration::from_millis(100));
        sleeps() == before
    };
    assert!((0..100).any(is_calm), "{} sleeps", sleeps());
    for sleeper in &sleepers {
        sleeper.cancel();
    }
    assert!(sleepers[0].join_is_pending(), "this park may not be cancelled");
    // One of the workers sleeps until the late deadline.
    for worker in 0..2 {
        let quick = Builder::new().pin(worker).try_spawn_on(&spawner, || sleep(SHORT));
        quick.unwrap_or_else(|_| unreachable!()).join().unwrap();
    }
    assert_eq!(watch.pending.load(Ordering::SeqCst), 1, "the long sleeps are still pending");
    assert_eq!(watch.changes.load(Ordering::SeqCst), 1);
}

trait Pending {
    fn join_is_pending(&self) -> bool;
}

impl<T> Pending for tsumugi_ult::JoinHandle<T> {
    fn join_is_pending(&self) -> bool {
        std::thread::sleep(Duration::from_millis(5));
        !self.is_finished()
    }
}
