//! Event words and bells: a sleeper never misses the work that it waits for.
//!
//! The futex is a model: a lock and a condition variable.

use crate::{Kernel, check};
use loom::thread;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_core::wait::{Attendance, DoorbellSet, EventWord, Futex};

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

#[test]
fn a_worker_sees_a_death_when_the_dead_thread_had_taken_its_bit() {
    check(&["bells_death_trusts_bits"], || death_of_a_ringer(|bells| bells.ring_cut_off(0)));
}

#[test]
fn a_worker_sees_a_death_when_the_dead_thread_had_changed_its_word() {
    struct Killed;
    impl Futex for Killed {
        fn wait(&self, _: &AtomicU32, _: u32, _: Option<Duration>) {}
        fn wake(&self, _: &AtomicU32, _: u32) {}
    }
    check(&["bells_death_trusts_words"], || {
        death_of_a_ringer(|bells| {
            bells.ring_one(0, &Killed);
        });
    });
}

/// A worker goes to sleep while a thread is killed in the middle of a ring, after `rings`, and
/// the death is declared.
fn death_of_a_ringer(rings: fn(&DoorbellSet)) {
    let shared = Arc::new((DoorbellSet::new(), AtomicU32::new(0), Kernel::new()));
    let declarer = shared.clone();
    let declarer = thread::spawn(move || {
        let (bells, death, kernel) = &*declarer;
        rings(bells);
        death.store(1, Ordering::SeqCst);
        bells.ring_after_death(kernel);
    });
    let (bells, death, kernel) = &*shared;
    while death.load(Ordering::SeqCst) == 0 {
        let ticket = bells.prepare(0);
        if death.load(Ordering::SeqCst) == 0 {
            bells.sleep(0, ticket, kernel, None);
        } else {
            bells.stay(0);
        }
    }
    declarer.join().unwrap();
}

#[test]
fn one_of_two_workers_is_the_attendant() {
    check(&["attendance_take_unchecked"], || {
        let attendance = Arc::new(Attendance::new());
        let other = attendance.clone();
        let other = thread::spawn(move || other.take(1));
        let is_attendant = attendance.take(0);
        assert!(is_attendant != other.join().unwrap(), "one of them, and not both");
        assert!(attendance.has_attendant());
    });
}

#[test]
fn an_attendant_that_leaves_sees_the_message_or_a_sleeper_is_woken() {
    check(&["attendance_leave_unordered", "bells_unattended_no_fence"], || {
        message_beside_sleeper(
            |attendance| assert!(attendance.take(0)),
            |attendance| assert!(attendance.leave(0)),
        );
    });
}

#[test]
fn a_watcher_that_ends_sees_the_message_or_a_sleeper_is_woken() {
    check(&["attendance_unwatch_unordered", "bells_unattended_no_fence"], || {
        message_beside_sleeper(Attendance::watch, Attendance::unwatch);
    });
}

/// A thread attends and then computes, while a message comes and worker 1 goes to sleep.
/// The thread handles a message that it sees when it `leaves`; otherwise worker 1 must.
fn message_beside_sleeper(attends: fn(&Attendance), leaves: fn(&Attendance)) {
    let shared = Arc::new((DoorbellSet::new(), AtomicU32::new(0), Kernel::new()));
    attends(shared.0.attendance());
    let sender = shared.clone();
    let sender = thread::spawn(move || {
        let (bells, message, kernel) = &*sender;
        message.store(1, Ordering::Release);
        bells.ring_unattended(kernel);
    });
    let sleeper = shared.clone();
    let sleeper = thread::spawn(move || {
        let (bells, message, kernel) = &*sleeper;
        let ticket = bells.prepare(1);
        if message.load(Ordering::Acquire) == 0 {
            // Never returns if no thread wakes it: loom reports that.
            bells.sleep(1, ticket, kernel, None);
        } else {
            bells.stay(1);
        }
    });
    let (bells, message, kernel) = &*shared;
    leaves(bells.attendance());
    if bells.asleep() > 0 && message.load(Ordering::Acquire) == 1 {
        // The message is handled, and the worker may sleep: the model ends its sleep.
        bells.ring_one(1, kernel);
    }
    sender.join().unwrap();
    sleeper.join().unwrap();
}
