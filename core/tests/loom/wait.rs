//! Event words and bells: a sleeper never misses the work that it waits for.
//!
//! The futex is a model: a lock and a condition variable.

use crate::{Kernel, check};
use loom::thread;
use std::sync::Arc;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_core::wait::{DoorbellSet, EventWord, Futex};

#[test]
fn a_sleeper_is_woken_or_sees_the_work() {
    check(&["event_prepare_unordered", "event_notify_unordered"], || {
        let shared = Arc::new((EventWord::new(), AtomicU32::new(0), Kernel::new()));
        let notifier = shared.clone();
        let notifier = thread::spawn(move || {
            let (event, work, kernel) = &*notifier;
            work.store(1, Ordering::SeqCst);
            if event.notify() {
                kernel.wake(event.word(), 1);
            }
        });
        let (event, work, kernel) = &*shared;
        let ticket = event.prepare();
        if work.load(Ordering::SeqCst) == 0 {
            // Never returns if no thread wakes it: loom reports that.
            kernel.wait(event.word(), ticket.expected(), None);
            assert_eq!(work.load(Ordering::SeqCst), 1, "woken without work");
        }
        event.cancel();
        notifier.join().unwrap();
    });
}

#[test]
fn a_sleeper_that_cancelled_sleeps_again() {
    check(&["event_notify_unordered"], || {
        let shared = Arc::new((EventWord::new(), AtomicU32::new(0), Kernel::new()));
        let notifier = shared.clone();
        let notifier = thread::spawn(move || {
            let (event, work, kernel) = &*notifier;
            for _ in 0..2 {
                work.fetch_add(1, Ordering::SeqCst);
                if event.notify() {
                    kernel.wake(event.word(), 1);
                }
            }
        });
        let (event, work, kernel) = &*shared;
        let mut seen = 0;
        while seen < 2 {
            let ticket = event.prepare();
            let now = work.load(Ordering::SeqCst);
            if now == seen {
                kernel.wait(event.word(), ticket.expected(), None);
            }
            event.cancel();
            seen = now;
        }
        notifier.join().unwrap();
    });
}

#[test]
fn a_ring_wakes_a_worker_that_looked_before_the_work_arrived() {
    check(&["bells_no_fence", "bells_prepare_unordered"], || {
        let shared = Arc::new((DoorbellSet::new(), AtomicU32::new(0), Kernel::new()));
        let ringer = shared.clone();
        let ringer = thread::spawn(move || {
            let (bells, work, kernel) = &*ringer;
            work.store(1, Ordering::Release);
            bells.ring(kernel);
        });
        let (bells, work, kernel) = &*shared;
        let ticket = bells.prepare(0);
        if work.load(Ordering::SeqCst) == 0 {
            bells.sleep(0, ticket, kernel, None);
        } else {
            bells.stay(0);
        }
        ringer.join().unwrap();
        assert_eq!(bells.asleep(), 0);
    });
}

#[test]
fn two_rings_wake_two_workers() {
    check(&[], || {
        let shared = Arc::new((DoorbellSet::new(), Kernel::new()));
        let tickets = [0, 1].map(|worker| shared.0.prepare(worker));
        let ringer = shared.clone();
        let ringer = thread::spawn(move || ringer.0.ring(&ringer.1));
        assert!(shared.0.ring(&shared.1), "each bit is cleared by one ring");
        assert!(ringer.join().unwrap());
        for (worker, ticket) in tickets.into_iter().enumerate() {
            shared.0.sleep(worker, ticket, &shared.1, None);
        }
        assert_eq!(shared.0.asleep(), 0);
    });
}
