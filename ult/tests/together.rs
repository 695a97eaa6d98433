//! Waking many sleepers at once: none is forgotten, of any kind and by any waker.

mod common;

use common::scheduler;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tsumugi_ult::sync::{Barrier, Condvar, Latch, Mutex, Semaphore};
use tsumugi_ult::{Builder, JoinHandle, Spawner, yield_now};

const LONG: Duration = Duration::from_secs(60);
const ROUNDS: usize = 20;

/// More sleepers than are taken out of a queue at a time, of all kinds: ULTs of two schedulers,
/// pinned, urgent, with a limit, and OS threads.
fn wait_and_be_woken(
    wait: impl Fn(bool) + Clone + Send + 'static,
    asleep: impl Fn() -> usize,
    wake: impl Fn(),
    spawners: &[Spawner],
) {
    let woken = Arc::new(AtomicUsize::new(0));
    let body = |limited: bool| {
        let (wait, woken) = (wait.clone(), woken.clone());
        move || {
            wait(limited);
            woken.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut ults: Vec<JoinHandle<()>> = Vec::new();
    for (n, spawner) in (0..28).zip(spawners.iter().cycle()) {
        let builder = match n % 7 {
            5 => Builder::new().pin(0),
            6 => Builder::new().urgent(true),
            _ => Builder::new(),
        };
        let ult = builder.try_spawn_on(spawner, body(n % 7 == 4));
        ults.push(ult.map_err(|_| "ended").unwrap());
    }
    let thread = std::thread::spawn(body(false));
    while asleep() < 29 {
        yield_now();
    }
    wake();
    ults.into_iter().for_each(|ult| ult.join().unwrap());
    thread.join().unwrap();
    assert_eq!(woken.load(Ordering::Relaxed), 29);
}

/// Wakes sleepers of all kinds, as the calling thread or ULT.
fn each_kind(spawners: &[Spawner]) {
    for _ in 0..ROUNDS {
        // A sleeper announces itself under the lock that its waker takes.
        let shared = Arc::new((Mutex::new((0, false)), Condvar::new()));
        let (theirs, mine) = (shared.clone(), shared.clone());
        let wait = move |limited| {
            let (lock, changed) = &*theirs;
            let mut state = lock.lock();
            state.0 += 1;
            while !state.1 {
                if limited {
                    assert!(changed.wait_timeout(&mut state, LONG));
                } else {
                    changed.wait(&mut state);
                }
            }
        };
        let wake = || {
            mine.0.lock().1 = true;
            assert_eq!(mine.1.notify_all(), 29);
        };
        wait_and_be_woken(wait, || shared.0.lock().0, wake, spawners);

        let (latch, room) = (Arc::new(Latch::new(1)), Arc::new(Semaphore::new(0)));
        let arrived = Arc::new(AtomicUsize::new(0));
        let (theirs, came) = ((latch.clone(), room.clone()), arrived.clone());
        let wait = move |limited| {
            came.fetch_add(1, Ordering::Relaxed);
            if limited {
                assert!(theirs.0.wait_timeout(LONG) && theirs.1.acquire_timeout(1, LONG));
            } else {
                theirs.0.wait();
                theirs.1.acquire(1);
            }
        };
        let wake = || {
            latch.count_down(1);
            room.release(29);
        };
        wait_and_be_woken(wait, || arrived.load(Ordering::Relaxed), wake, spawners);

        let barrier = Arc::new(Barrier::new(30));
        let theirs = barrier.clone();
        let wait = move |_| {
            theirs.wait();
        };
        let last = || {
            barrier.wait();
        };
        wait_and_be_woken(wait, || barrier.arrived(), last, spawners);
    }
}

#[test]
fn all_sleepers_are_woken() {
    for workers in [1, 2] {
        let mut schedulers = [scheduler(workers, 64), scheduler(workers, 64)];
        schedulers.iter_mut().for_each(|scheduler| scheduler.start().unwrap());
        let spawners: Vec<_> = schedulers.iter().map(|scheduler| scheduler.spawner()).collect();
        // From an OS thread, and from a ULT of one of the two schedulers.
        each_kind(&spawners);
        let theirs = spawners.clone();
        spawners[0].spawn(move || each_kind(&theirs)).join().unwrap();
    }
}
