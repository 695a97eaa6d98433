//! Signals: a waiter for a word learns that the word has changed.

use crate::{Threads, check};
use loom::thread;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::signal::{DetachedWaiter, ParkingLot, Until, Waiters};
use tsumugi_core::sync::{AtomicU32, AtomicU64, Ordering};
use tsumugi_core::wait::Waker;

struct Shared {
    parking_lot: ParkingLot,
    waiters: Waiters,
    word: AtomicU64,
    /// Written before the word, by plain stores as far as order goes.
    payload: AtomicU64,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            parking_lot: ParkingLot::new(),
            waiters: Waiters::new(),
            word: AtomicU64::new(0),
            payload: AtomicU64::new(0),
        })
    }

    fn at(&self) -> u64 {
        &raw const self.word as u64
    }

    /// The steps of a notifying put and of the worker that it rings.
    fn signal(&self, value: u64) {
        self.word.swap(value, Ordering::SeqCst);
        if self.parking_lot.announce(self.at()) {
            self.waiters.drain(&self.parking_lot);
        }
    }

    fn wait(&self, until: Until) -> Result<u64, AddrError> {
        self.waiters.wait(&self.parking_lot, &self.word, until, &Threads)
    }
}

#[test]
fn a_waiter_is_woken_or_sees_the_word() {
    let mutants = ["signal_no_second_look", "signal_announce_unordered", "signal_park_unordered"];
    check(&mutants, || {
        let shared = Shared::new();
        let notifier = shared.clone();
        let notifier = thread::spawn(move || {
            notifier.payload.store(7, Ordering::Relaxed);
            notifier.signal(1);
        });
        assert_eq!(shared.wait(Until::Equal(1)), Ok(1));
        assert_eq!(shared.payload.load(Ordering::Relaxed), 7, "written before the word");
        notifier.join().unwrap();
    });
}

#[test]
fn a_waiter_that_was_put_back_is_woken_later() {
    check(&["signal_no_second_look"], || {
        let shared = Shared::new();
        let notifier = shared.clone();
        let notifier = thread::spawn(move || {
            notifier.signal(1);
            notifier.signal(2);
        });
        assert_eq!(shared.wait(Until::AtLeast(2)), Ok(2));
        notifier.join().unwrap();
    });
}

#[test]
fn a_drain_by_another_worker_loses_no_waiter() {
    check(&["signal_no_second_look"], || {
        let shared = Shared::new();
        let (notifier, worker) = (shared.clone(), shared.clone());
        // The notifier only announces; a worker of the owner drains at any time, and the notifier's
        // own bell comes last.
        let notifier = thread::spawn(move || {
            notifier.word.swap(1, Ordering::SeqCst);
            if notifier.parking_lot.announce(notifier.at()) {
                notifier.waiters.drain(&notifier.parking_lot);
            }
        });
        let worker = thread::spawn(move || worker.waiters.drain(&worker.parking_lot));
        assert_eq!(shared.wait(Until::NotEqual(0)), Ok(1));
        notifier.join().unwrap();
        worker.join().unwrap();
    });
}

#[test]
fn a_death_ends_the_wait() {
    check(&["signal_no_second_look"], || {
        let shared = Shared::new();
        let witness = shared.clone();
        let witness = thread::spawn(move || {
            witness.parking_lot.break_off(Rank(3));
            witness.waiters.drain(&witness.parking_lot);
        });
        assert_eq!(shared.wait(Until::Equal(1)), Err(AddrError::PeerLost { rank: Rank(3) }));
        witness.join().unwrap();
    });
}

#[test]
fn a_waiter_with_a_limit_gives_up_or_is_woken() {
    check(&["signal_quitter_unseen"], || {
        let shared = Shared::new();
        let worker = shared.clone();
        // The worker may hold the node when the limit passes.
        let worker = thread::spawn(move || {
            worker.word.swap(1, Ordering::SeqCst);
            if worker.parking_lot.announce(worker.at()) {
                worker.waiters.drain(&worker.parking_lot);
            }
        });
        let waited = shared.waiters.wait_timeout(
            &shared.parking_lot,
            &shared.word,
            Until::Equal(2),
            &Threads,
            Duration::ZERO,
        );
        assert_eq!(waited, Ok(None), "no thread stores 2");
        worker.join().unwrap();
        assert!(!shared.parking_lot.announce(shared.at()), "no waiter is left");
    });
}

#[test]
fn a_signal_within_the_limit_is_reported() {
    check(&[], || {
        let shared = Shared::new();
        let notifier = shared.clone();
        let notifier = thread::spawn(move || notifier.signal(1));
        let until = Until::Equal(1);
        let limit = Duration::from_secs(1);
        let waited =
            shared.waiters.wait_timeout(&shared.parking_lot, &shared.word, until, &Threads, limit);
        assert!(matches!(waited, Ok(Some(1) | None)), "{waited:?}");
        notifier.join().unwrap();
        assert_eq!(shared.wait(until), Ok(1));
    });
}

/// A waiter without a thread: counts its ends.
struct Detached {
    shared: Arc<Shared>,
    waiter: DetachedWaiter,
    ends: AtomicU32,
}

impl Detached {
    fn park(shared: &Arc<Shared>, until: Until) -> Arc<Self> {
        let waiter = DetachedWaiter::new(&shared.word, until);
        let this = Arc::new(Self { shared: shared.clone(), waiter, ends: AtomicU32::new(0) });
        // SAFETY: each model keeps the waiter to its end.
        unsafe { shared.waiters.park_detached(&shared.parking_lot, this.at(), this.waker()) };
        this
    }

    fn at(&self) -> NonNull<DetachedWaiter> {
        NonNull::from(&self.waiter)
    }

    fn waker(&self) -> Waker {
        unsafe fn wake(this: *const ()) {
            // SAFETY: each model keeps the waiter to its end.
            let this = unsafe { &*this.cast::<Detached>() };
            let Shared { waiters, parking_lot, .. } = &*this.shared;
            // SAFETY: called once for each use of the waker.
            if unsafe { waiters.resume(parking_lot, this.at(), this.waker()) }.is_some() {
                this.ends.fetch_add(1, Ordering::Relaxed);
            }
        }
        // SAFETY: as above.
        unsafe { Waker::new((&raw const *self).cast(), wake) }
    }
}

#[test]
fn a_detached_waiter_ends_once() {
    check(&["signal_no_second_look", "signal_announce_unordered", "signal_park_unordered"], || {
        let shared = Shared::new();
        let notifier = shared.clone();
        let notifier = thread::spawn(move || notifier.signal(1));
        let waiter = Detached::park(&shared, Until::Equal(1));
        notifier.join().unwrap();
        assert_eq!(waiter.ends.load(Ordering::Relaxed), 1);
    });
}

/// The condition holds for a moment while the owner leaves.
#[test]
fn a_detached_waiter_that_is_left_is_not_parked_for_good() {
    check(&["signal_left_unseen"], || {
        let shared = Shared::new();
        let waiter = Detached::park(&shared, Until::Equal(1));
        let (notifier, other) = (shared.clone(), shared.clone());
        let notifier = thread::spawn(move || notifier.signal(1));
        let other = thread::spawn(move || other.word.store(2, Ordering::SeqCst));
        shared.waiters.leave(&shared.parking_lot, &waiter.waiter);
        notifier.join().unwrap();
        other.join().unwrap();
        shared.waiters.drain(&shared.parking_lot);
        assert_eq!(waiter.ends.load(Ordering::Relaxed), 1);
    });
}
