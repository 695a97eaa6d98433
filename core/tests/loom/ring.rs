//! Rings: nothing is lost, doubled, reordered or read half-written.

use crate::{check, retry};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc;
use tsumugi_core::ring::{Marked, Mpsc, Pushed, Spsc};

#[test]
fn two_producers_meet_one_consumer() {
    check(&["mpsc_publish_relaxed", "mpsc_claim_load_store", "mpsc_old_tail_is_full"], || {
        let ring = Arc::new(Mpsc::<u64, 2>::new());
        let producers = [1, 2].map(|value| {
            let ring = ring.clone();
            // Never full: the ring has room for both values, however stale a tail is.
            thread::spawn(move || ring.try_push(value).expect("there is room"))
        });
        // SAFETY: the only consumer.
        let mut consumer = unsafe { ring.view().consumer() };
        let first = retry(2, || consumer.try_pop());
        for producer in producers {
            producer.join().unwrap();
        }
        let mut got: Vec<u64> = first.into_iter().collect();
        consumer.drain(3, |value| got.push(value));
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
    });
}

#[test]
fn a_slot_is_used_again_after_it_was_read() {
    check(&["mpsc_publish_relaxed", "mpsc_recycle_relaxed"], || {
        let ring = Arc::new(Mpsc::<u64, 2>::new());
        let pushing = ring.clone();
        let producer = thread::spawn(move || {
            (1..=3).take_while(|&n| retry(2, || pushing.try_push(n).ok()).is_some()).count()
        });
        // SAFETY: the only consumer.
        let mut consumer = unsafe { ring.view().consumer() };
        let mut got = Vec::new();
        got.extend(retry(2, || consumer.try_pop()));
        got.extend(retry(1, || consumer.try_pop()));
        let pushed = producer.join().unwrap() as u64;
        consumer.drain(3, |value| got.push(value));
        assert!(pushed >= 2, "the first two pushes never meet a full ring");
        assert!(got.iter().copied().eq(1..=pushed), "{got:?} of {pushed}");
    });
}

#[test]
fn two_producers_fill_a_ring_that_is_being_emptied() {
    check(&["mpsc_recycle_relaxed"], || {
        let ring = Arc::new(Mpsc::<u64, 2>::new());
        ring.try_push(1).unwrap();
        ring.try_push(2).unwrap();
        let producers = [3, 4].map(|value| {
            let ring = ring.clone();
            thread::spawn(move || ring.try_push(value).is_ok())
        });
        // SAFETY: the only consumer.
        let mut consumer = unsafe { ring.view().consumer() };
        assert_eq!(consumer.try_pop(), Some(1), "the element that was in the ring is not lost");
        let pushed = producers.map(|producer| producer.join().unwrap());
        let mut got = Vec::new();
        consumer.drain(4, |value| got.push(value));
        assert_eq!(got.remove(0), 2);
        assert_eq!(got.len(), pushed.iter().filter(|&&pushed| pushed).count());
        assert!(got.len() <= 1, "one slot was free");
    });
}

#[test]
fn a_consumer_that_has_marked_is_woken() {
    check(&["mpsc_mark_load_store"], || {
        let ring = Arc::new(Mpsc::<u64, 2>::new());
        let told = [1, 2].map(|value| {
            let ring = ring.clone();
            thread::spawn(move || ring.view().try_push_told(value).expect("there is room"))
        });
        // SAFETY: the only consumer.
        let mut consumer = unsafe { ring.view().consumer() };
        let asleep = consumer.try_mark();
        let told = told.map(|producer| producer.join().unwrap());
        let wakes = told.iter().filter(|&&pushed| pushed == Pushed::Asleep).count();
        assert_eq!(wakes, usize::from(asleep), "{told:?}");
        assert_eq!(consumer.drain(3, drop), 2);
        assert!(consumer.try_mark(), "the ring is empty again");
    });
}

#[test]
fn both_ends_of_an_spsc() {
    check(&["spsc_publish_relaxed", "spsc_recycle_relaxed"], || {
        let ring = Arc::new(Spsc::<u64, 2>::new());
        let pushing = ring.clone();
        let producer = thread::spawn(move || {
            // SAFETY: the only producer.
            let mut end = unsafe { pushing.view().producer() };
            (1..=3).take_while(|&n| retry(2, || end.try_push(n).ok()).is_some()).count()
        });
        // SAFETY: the only consumer.
        let mut consumer = unsafe { ring.view().consumer() };
        let mut got = Vec::new();
        got.extend(retry(2, || consumer.try_pop()));
        got.extend(retry(1, || consumer.try_pop()));
        let pushed = producer.join().unwrap() as u64;
        consumer.drain(3, |value| got.push(value));
        assert!(pushed >= 2, "the first two pushes never meet a full ring");
        assert!(got.iter().copied().eq(1..=pushed), "{got:?} of {pushed}");
    });
}

/// A head beyond a stale tail must not look like a full ring.
#[test]
fn a_marked_ring_with_room_takes_every_value() {
    check(&["marked_old_tail_is_full"], || {
        let ring = Arc::new(Marked::<u64, 2>::new());
        let producers = [1, 2].map(|value| {
            let ring = ring.clone();
            thread::spawn(move || ring.try_push(value).map(drop).expect("there is room"))
        });
        // SAFETY: the only consumer.
        let first = retry(2, || unsafe { ring.try_pop() });
        for producer in producers {
            producer.join().unwrap();
        }
        // SAFETY: the same.
        let rest = std::iter::from_fn(|| unsafe { ring.try_pop() });
        let mut got: Vec<u64> = first.into_iter().chain(rest).collect();
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
    });
}

#[test]
fn a_marked_ring_loses_nothing() {
    check(&["marked_publish_relaxed", "marked_recycle_relaxed"], || {
        let ring = Arc::new(Marked::<u64, 2>::new());
        let pushing = ring.clone();
        let producer = thread::spawn(move || {
            (1..=3).take_while(|&n| retry(2, || pushing.try_push(n).ok()).is_some()).count()
        });
        // SAFETY: the only consumer.
        let mut pop = || unsafe { ring.try_pop() };
        let mut got = Vec::new();
        got.extend(retry(2, &mut pop));
        got.extend(retry(1, &mut pop));
        let pushed = producer.join().unwrap() as u64;
        got.extend(std::iter::from_fn(pop));
        assert!(pushed >= 2, "the first two pushes never meet a full ring");
        assert!(got.iter().copied().eq(1..=pushed), "{got:?} of {pushed}");
    });
}

#[test]
fn a_marked_consumer_is_woken() {
    check(&["marked_load_then_store"], || {
        let ring = Arc::new(Marked::<u64, 2>::new());
        let bell = Arc::new((Mutex::new(()), Condvar::new()));
        let producer = thread::spawn({
            let (ring, bell) = (ring.clone(), bell.clone());
            move || {
                if ring.try_push(7).unwrap() == Pushed::Asleep {
                    let _lock = bell.0.lock().unwrap();
                    bell.1.notify_one();
                }
            }
        });
        // The lock is held from before the mark to the wait.
        let lock = bell.0.lock().unwrap();
        // SAFETY: the only consumer.
        if unsafe { ring.try_mark() } {
            let mut lock = lock;
            while ring.is_marked() {
                lock = bell.1.wait(lock).unwrap();
            }
        } else {
            drop(lock);
        }
        producer.join().unwrap();
        // SAFETY: the only consumer.
        assert_eq!(unsafe { ring.try_pop() }, Some(7));
    });
}
