//! The primitives that ULTs wait for, with and without limits.

use crate::{check, check_within, scheduler};
use std::sync::Arc;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_ult::internals::{Bias, STREAK};
use tsumugi_ult::sync::word::WordTable;
use tsumugi_ult::sync::{Condvar, Latch, Mutex, RwLock, Semaphore, channel};
use tsumugi_ult::{Limit, park_within, spawn};

/// The name of a thread that owns a bias.
const ME: usize = 64;

#[test]
fn mutex_of_two_ults() {
    check("sync::mutex_of_two_ults", &["mutex_no_second_look"], || {
        scheduler(2).run(|| {
            let count = Arc::new(Mutex::new(0));
            let other = {
                let count = count.clone();
                spawn(move || *count.lock() += 1)
            };
            *count.lock() += 1;
            other.join().unwrap();
            assert_eq!(*count.lock(), 2);
        });
    });
}

/// The owner of a bias and a thread that ends it: plain stores are not lost.
#[test]
fn a_bias_ends() {
    check("sync::a_bias_ends", &["bias_no_light", "bias_no_heavy", "bias_no_wait"], || {
        let shared = Arc::new((Bias::new(), AtomicU32::new(0)));
        assert!(shared.0.claim(ME));
        let other = {
            let shared = shared.clone();
            loom::thread::spawn(move || {
                shared.0.end_and_wait();
                shared.1.fetch_add(1, Ordering::Relaxed);
            })
        };
        let (bias, count) = &*shared;
        if bias.enter(ME) {
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            bias.leave();
        } else {
            count.fetch_add(1, Ordering::Relaxed);
        }
        other.join().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 2);
    });
}

/// A lone worker owns the bias of a mutex, and another thread comes.
#[test]
fn a_biased_mutex_is_shared() {
    let mutants = ["bias_no_light", "bias_no_heavy", "mutex_owes_nothing", "bias_shared_early"];
    check_within(4, "sync::a_biased_mutex_is_shared", &mutants, || {
        scheduler(1).run(|| {
            let count = Arc::new(Mutex::new(0));
            for _ in 0..=STREAK {
                *count.lock() += 1;
            }
            let other = {
                let count = count.clone();
                loom::thread::spawn(move || *count.lock() += 1)
            };
            *count.lock() += 1;
            other.join().unwrap();
            assert_eq!(*count.lock(), STREAK + 3);
        });
    });
}

/// The same for a lock that is held for a few instructions.
#[test]
fn a_biased_lock_is_shared() {
    let mutants = ["bias_no_light", "bias_no_heavy", "bias_no_wait"];
    check("sync::a_biased_lock_is_shared", &mutants, || {
        scheduler(1).run(|| {
            let nobody = Arc::new(Condvar::new());
            for _ in 0..=STREAK {
                nobody.notify_one();
            }
            let other = {
                let nobody = nobody.clone();
                loom::thread::spawn(move || nobody.notify_one())
            };
            assert!(!nobody.notify_one() && !other.join().unwrap());
        });
    });
}

/// A limit that has already passed: the model chooses when it is noticed.
fn passed() -> Limit {
    Limit::until(std::time::Instant::now())
}

#[test]
fn limit_against_release() {
    check("sync::limit_against_release", &["queue_remove_blind", "race_no_second_look"], || {
        let room = Arc::new(Semaphore::new(0));
        let other = {
            let room = room.clone();
            loom::thread::spawn(move || room.release(1))
        };
        let got = scheduler(1).run(|| room.acquire_within(1, passed()).is_ok());
        other.join().unwrap();
        assert_eq!(room.available(), if got { 0 } else { 1 }, "got: {got}");
    });
}

#[test]
fn thread_with_a_limit_against_release() {
    check("sync::thread_with_a_limit_against_release", &["queue_remove_blind"], || {
        let room = Arc::new(Semaphore::new(0));
        let other = {
            let room = room.clone();
            loom::thread::spawn(move || room.release(1))
        };
        let got = room.acquire_within(1, passed()).is_ok();
        other.join().unwrap();
        assert_eq!(room.available(), if got { 0 } else { 1 }, "got: {got}");
    });
}

#[test]
fn cancel_against_unpark() {
    check("sync::cancel_against_unpark", &["cancel_no_mark"], || {
        scheduler(2).run(|| {
            let sleeper = spawn(|| park_within(Limit::CANCELLABLE).is_ok());
            sleeper.cancel();
            // No thread unparks it: it gives up, whenever it looks.
            assert!(!sleeper.join().unwrap());
        });
    });
}

#[test]
fn reader_against_writer() {
    check("sync::reader_against_writer", &["rwlock_no_second_look"], || {
        let lock = Arc::new(RwLock::new(0));
        let other = {
            let lock = lock.clone();
            loom::thread::spawn(move || *lock.write() += 1)
        };
        let seen = *lock.read();
        assert!(seen <= 1);
        other.join().unwrap();
        assert_eq!(*lock.read(), 1);
    });
}

#[test]
fn latch_opens_for_all() {
    check("sync::latch_opens_for_all", &["latch_no_second_look"], || {
        let latch = Arc::new(Latch::new(1));
        let other = {
            let latch = latch.clone();
            loom::thread::spawn(move || latch.count_down(1))
        };
        latch.wait();
        other.join().unwrap();
    });
}

/// A thread changes a word while a ULT waits for it.
#[test]
fn a_word_is_changed_while_a_ult_waits() {
    check("sync::a_word_is_changed_while_a_ult_waits", &["word_not_compared"], || {
        let shared = Arc::new((WordTable::new(), AtomicU32::new(0)));
        let changer = {
            let shared = shared.clone();
            loom::thread::spawn(move || {
                shared.1.store(1, Ordering::Release);
                shared.0.wake(&shared.1, 1);
            })
        };
        scheduler(1).run(|| {
            let (table, word) = &*shared;
            while word.load(Ordering::Acquire) == 0 {
                // SAFETY: the word stays.
                let _ = unsafe { table.wait(word, 0, Limit::NONE) };
            }
        });
        changer.join().unwrap();
    });
}

#[test]
fn channel_ends_meet() {
    check("sync::channel_ends_meet", &["channel_no_second_look"], || {
        let (sender, receiver) = channel::bounded(0);
        let other = loom::thread::spawn(move || sender.send(7).is_ok());
        assert_eq!(receiver.recv(), Ok(7));
        drop(receiver);
        assert!(other.join().unwrap());
    });
}
