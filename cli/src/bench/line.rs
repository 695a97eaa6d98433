//! How long a cache line travels from one core to another, one way.
//!
//! On a virtual machine the cores are moved about, and this time changes by a
//! factor of five within seconds. Numbers that cross cores are only to be
//! compared when it was the same, so each row carries it.
//!
//! ```text
//!  first core     ping ──────────► second core      a round trip is two
//!                 ◄────────── pong                  trips of one line each
//! ```

use crate::summary::Summary;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;
use tsumugi::affinity;
use tsumugi_core::sync::{AtomicU64, CachePadded, Ordering, spin_loop};

/// The median one-way trip between the first two CPUs of the cpuset in
/// nanoseconds; `None` where there is only one, or threads cannot be pinned.
pub fn trip_ns() -> Option<f64> {
    match affinity::allowed().ok()?.as_slice() {
        &[first, second, ..] => between(first, second),
        _ => None,
    }
}

fn between(first: usize, second: usize) -> Option<f64> {
    let (ping, pong) = (Line::default(), Line::default());
    let start = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let pinned = affinity::pin(second);
            start.wait();
            for round in 1..=(BATCHES * TRIPS_PER_BATCH) {
                wait_for(&ping, round);
                // Release: pairs with the Acquire in `wait_for`.
                pong.store(round, Ordering::Release);
            }
            pinned
        });
        let pinger = scope.spawn(|| {
            let pinned = affinity::pin(first);
            start.wait();
            let samples = rounds(&ping, &pong);
            pinned.ok().map(|()| samples)
        });
        let mut samples = pinger.join().expect("the pinging thread does not panic")?;
        // The first batches run before the caches and the clock have settled.
        Summary::of(samples.get_mut(BATCHES_DROPPED..)?).map(|summary| summary.median)
    })
}

/// One-way nanoseconds of each batch.
fn rounds(ping: &Line, pong: &Line) -> Vec<f64> {
    let mut samples = Vec::with_capacity(BATCHES as usize);
    let mut round = 0;
    for _ in 0..BATCHES {
        let begin = Instant::now();
        for _ in 0..TRIPS_PER_BATCH {
            round += 1;
            // Release: pairs with the Acquire in `wait_for`.
            ping.store(round, Ordering::Release);
            wait_for(pong, round);
        }
        samples.push(begin.elapsed().as_nanos() as f64 / (2 * TRIPS_PER_BATCH) as f64);
    }
    samples
}

fn wait_for(line: &Line, round: u64) {
    let mut turns = 0u32;
    // Acquire: pairs with the Release store of the other side.
    while line.load(Ordering::Acquire) != round {
        turns += 1;
        match turns.is_multiple_of(TURNS_BEFORE_YIELD) {
            // Somebody else may be in the way of the other thread.
            true => thread::yield_now(),
            false => spin_loop(),
        }
    }
}

type Line = CachePadded<AtomicU64>;

const BATCHES: u64 = 100;
const BATCHES_DROPPED: usize = 10;
/// The clock has steps of 10 ns: 64 round trips drown them.
const TRIPS_PER_BATCH: u64 = 64;
const TURNS_BEFORE_YIELD: u32 = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trip_is_measured_where_there_are_two_cores() {
        let cpus = affinity::allowed().unwrap().len();
        match trip_ns() {
            Some(ns) => assert!(cpus >= 2 && ns > 0.0 && ns.is_finite(), "{ns}"),
            None => assert_eq!(cpus, 1),
        }
    }

    #[test]
    fn the_caller_keeps_its_own_cpus() {
        let before = affinity::allowed().unwrap();
        let _trip = trip_ns();
        assert_eq!(affinity::allowed().unwrap(), before);
    }

    #[test]
    fn two_threads_on_one_cpu_still_come_to_an_end() {
        let only = affinity::allowed().unwrap()[0];
        assert!(between(only, only).is_some());
    }

    #[test]
    fn a_cpu_outside_the_cpuset_gives_none() {
        let only = affinity::allowed().unwrap()[0];
        assert_eq!(between(1 << 15, only), None);
    }
}
