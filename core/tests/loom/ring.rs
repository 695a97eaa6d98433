//! Rings: nothing is lost, doubled, reordered or read half-written.

use crate::{check, retry};
use loom::thread;
use std::sync::Arc;
use tsumugi_core::ring::{Mpsc, Spsc};

#[test]
fn two_producers_meet_one_consumer() {
    check(&["mpsc_publish_relaxed", "mpsc_claim_load_store"], || {
        let ring = Arc::new(Mpsc::<u64, 2>::new());
        let producers = [1, 2].map(|value| {
            let ring = ring.clone();
            // Never full: there is room for both, however stale a tail is.
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
        assert!(pushed >= 2, "the first two never meet a full ring");
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
        assert_eq!(consumer.try_pop(), Some(1), "what was there is not lost");
        let pushed = producers.map(|producer| producer.join().unwrap());
        let mut got = Vec::new();
        consumer.drain(4, |value| got.push(value));
        assert_eq!(got.remove(0), 2);
        assert_eq!(got.len(), pushed.iter().filter(|&&pushed| pushed).count());
        assert!(got.len() <= 1, "one slot was free");
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
        assert!(pushed >= 2, "the first two never meet a full ring");
        assert!(got.iter().copied().eq(1..=pushed), "{got:?} of {pushed}");
    });
}
