//! Changes that one worker made without atomic instructions, when other threads come.
#![cfg(not(tsumugi_loom))]

mod common;

use common::scheduler;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tsumugi_ult::internals::{BiasedLock, STREAK};
use tsumugi_ult::sync::{Condvar, Mutex};
use tsumugi_ult::{park, spawn, unparker, yield_now};

/// Locks until the calling worker owns the bias of the mutex.
fn make_ones_own(mutex: &Mutex<u64>) -> u64 {
    (0..=STREAK).for_each(|_| *mutex.lock() += 1);
    u64::from(STREAK) + 1
}

#[test]
fn threads_come_while_a_worker_locks() {
    for workers in [1, 2] {
        scheduler(workers, 8).run(|| {
            for _ in 0..50 {
                let mutex = Arc::new(Mutex::new(0));
                let before = make_ones_own(&mutex);
                let threads = [(); 2].map(|()| {
                    let mutex = mutex.clone();
                    std::thread::spawn(move || (0..100).for_each(|_| *mutex.lock() += 1))
                });
                let mut own = 0;
                while threads.iter().any(|thread| !thread.is_finished()) {
                    *mutex.lock() += 1;
                    own += 1;
                }
                threads.into_iter().for_each(|thread| thread.join().unwrap());
                assert_eq!(*mutex.lock(), before + 200 + own);
            }
        });
    }
}

#[test]
fn a_ult_waits_for_another_of_the_same_worker() {
    scheduler(1, 8).run(|| {
        let mutex = Arc::new(Mutex::new(0));
        let before = make_ones_own(&mutex);
        let held = mutex.lock();
        let other = {
            let mutex = mutex.clone();
            spawn(move || *mutex.lock() += 1)
        };
        yield_now();
        assert!(!other.is_finished());
        drop(held);
        other.join().unwrap();
        assert_eq!(*mutex.lock(), before + 1);
    });
}

#[test]
fn a_guard_is_given_to_a_thread() {
    scheduler(1, 8).run(|| {
        let mutex = Mutex::new(0);
        make_ones_own(&mutex);
        let held = mutex.lock();
        std::thread::scope(|scope| {
            scope.spawn(move || drop(held));
        });
        assert!(mutex.try_lock().is_some());
    });
}

#[test]
fn a_locked_mutex_is_not_locked_again_by_its_owner() {
    scheduler(1, 8).run(|| {
        let lock = BiasedLock::new(0);
        (0..=STREAK).for_each(|_| *lock.lock() += 1);
        let held = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(held);
        assert!(lock.try_lock().is_some());
    });
}

#[test]
fn a_thread_tries_a_free_and_a_taken_lock() {
    scheduler(1, 8).run(|| {
        let tries = |mutex: &Mutex<u64>| {
            std::thread::scope(|scope| {
                scope.spawn(|| mutex.try_lock().is_some()).join().expect("the thread only tries")
            })
        };
        for held in [false, true] {
            let mutex = Mutex::new(0);
            make_ones_own(&mutex);
            let guard = held.then(|| mutex.lock());
            assert_eq!(tries(&mutex), !held);
            drop(guard);
            assert!(mutex.try_lock().is_some(), "held: {held}");
        }
    });
}

#[test]
fn a_thread_notifies_a_workers_own_condvar() {
    scheduler(1, 8).run(|| {
        let state = Arc::new((Mutex::new(0), Condvar::new()));
        make_ones_own(&state.0);
        (0..=STREAK).for_each(|_| assert!(!state.1.notify_one(), "no waiter"));
        let thread = {
            let state = state.clone();
            std::thread::spawn(move || {
                *state.0.lock() = 0;
                state.1.notify_all();
            })
        };
        let mut value = state.0.lock();
        state.1.wait_while(&mut value, |value| *value != 0);
        drop(value);
        thread.join().unwrap();
    });
}

#[test]
fn a_thread_unparks_while_the_worker_does() {
    for _ in 0..100 {
        scheduler(1, 8).run(|| {
            let (main, done) = (unparker(), Arc::new(AtomicBool::new(false)));
            let thread = {
                let (main, done) = (main.clone(), done.clone());
                std::thread::spawn(move || {
                    (0..20).for_each(|_| main.unpark());
                    done.store(true, Ordering::Release);
                    main.unpark();
                })
            };
            while !done.load(Ordering::Acquire) {
                let main = main.clone();
                let other = spawn(move || main.unpark());
                park();
                other.join().unwrap();
            }
            thread.join().unwrap();
        });
    }
}
