//! The time that a cache line takes from one core to another, one way.
//!
//! On a virtual machine the hypervisor moves the cores, and this time changes by a
//! factor of five within seconds. Numbers that cross cores can be compared only if
//! this time was the same, so each row records it.
//!
//! ```text
//!  first core     ping ──────────► second core      a round trip is two
//!                 ◄────────── pong                  trips of one line each
//! ```

use crate::summary::Summary;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use tsumugi::affinity;
use tsumugi_core::sync::{AtomicU64, CachePadded, Ordering, spin_loop};

/// The median one-way trip between the first two CPUs of the cpuset, in nanoseconds.
/// `None` if there is only one CPU, if threads cannot be pinned, or if the CPUs
/// hardly ever run at the same time, as those of an emulated machine on a busy host:
/// there a trip takes as long as another process's time slice.
pub fn trip_ns() -> Option<f64> {
    match affinity::allowed().ok()?.as_slice() {
        &[first, second, ..] => between(first, second, TIME_MAX),
        _ => None,
    }
}

fn between(first: usize, second: usize, limit: Duration) -> Option<f64> {
    let (ping, pong) = (SharedLine::default(), SharedLine::default());
    let start = Barrier::new(2);
    thread::scope(|scope| {
        let answer = || {
            let pinned = affinity::pin(second);
            start.wait();
            let mut round = 0;
            while wait_for_more(&ping, round) != OVER {
                round += 1;
                // Release: pairs with the Acquire in `wait_for_more`.
                pong.store(round, Ordering::Release);
            }
            pinned
        };
        // Without room for two threads there is no trip.
        thread::Builder::new().spawn_scoped(scope, answer).ok()?;
        let pinger = thread::Builder::new().spawn_scoped(scope, || {
            let pinned = affinity::pin(first);
            start.wait();
            let samples = rounds(&ping, &pong, limit);
            pinned.ok().map(|()| samples)
        });
        let Ok(pinger) = pinger else {
            // The other thread waits for this one.
            start.wait();
            // Release: pairs with the Acquire in `wait_for_more`.
            ping.store(OVER, Ordering::Release);
            return None;
        };
        let mut samples = pinger.join().expect("the pinging thread does not panic")?;
        // The first batches run before the caches and the clock have settled.
        Summary::of(samples.get_mut(BATCHES_DROPPED..)?).map(|summary| summary.median)
    })
}

/// One-way nanoseconds of each batch, for as many batches as the time allows.
fn rounds(ping: &SharedLine, pong: &SharedLine, limit: Duration) -> Vec<f64> {
    let (mut samples, mut round, start) = (Vec::with_capacity(BATCHES), 0, Instant::now());
    while samples.len() < BATCHES && start.elapsed() < limit {
        let begin = Instant::now();
        for _ in 0..TRIPS_PER_BATCH {
            // Release: pairs with the Acquire in `wait_for_more`.
            ping.store(round + 1, Ordering::Release);
            round = wait_for_more(pong, round);
        }
        samples.push(begin.elapsed().as_nanos() as f64 / (2 * TRIPS_PER_BATCH) as f64);
    }
    // Release: pairs with the Acquire in `wait_for_more`.
    ping.store(OVER, Ordering::Release);
    samples
}

/// Waits until the line no longer holds `seen`; returns its value then.
fn wait_for_more(line: &SharedLine, seen: u64) -> u64 {
    let mut turns = 0u32;
    loop {
        // Acquire: pairs with the Release store of the other side.
        match line.load(Ordering::Acquire) {
            found if found != seen => return found,
            _ => turns += 1,
        }
        match turns.is_multiple_of(TURNS_BEFORE_YIELD) {
            // Another thread may occupy the CPU of the thread on the other side.
            true => thread::yield_now(),
            false => spin_loop(),
        }
    }
}

type SharedLine = CachePadded<AtomicU64>;

const BATCHES: usize = 100;
/// No batch begins later than this; if both CPUs run, all batches together take a
/// millisecond.
const TIME_MAX: Duration = Duration::from_millis(200);
/// A number that no round has.
const OVER: u64 = u64::MAX;
const BATCHES_DROPPED: usize = 10;
/// The clock has steps of 10 ns: 64 round trips make these negligible.
const TRIPS_PER_BATCH: u64 = 64;
const TURNS_BEFORE_YIELD: u32 = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trip_is_measured_where_there_are_two_cores() {
        let &[first, second, ..] = &*affinity::allowed().unwrap() else { return };
        let ns = between(first, second, Duration::MAX).unwrap();
        assert!(ns > 0.0 && ns.is_finite(), "{ns}");
    }

    #[test]
    fn without_time_there_is_no_trip() {
        let only = affinity::allowed().unwrap()[0];
        assert_eq!(between(only, only, Duration::ZERO), None);
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
        assert!(between(only, only, Duration::MAX).is_some());
    }

    #[test]
    fn a_cpu_outside_the_cpuset_gives_none() {
        let only = affinity::allowed().unwrap()[0];
        assert_eq!(between(1 << 15, only, Duration::MAX), None);
    }
}
