//! Many short batches, for a given time or a given number of operations.
//!
//! A batch is long enough for the clock and short enough that most of them
//! are not disturbed. What is kept of the samples is in [`Summary`].

use crate::summary::Summary;
use std::time::{Duration, Instant};

/// How long to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Until so much time has passed.
    Time(Duration),
    /// Until at least so many operations were done.
    Operations(u64),
}

/// Runs `batch`, which does `ops` operations a call, until `budget` is used
/// up, and summarises nanoseconds per operation. Nothing is allocated between
/// the first batch and the last.
pub fn sample(budget: Budget, ops: u64, mut batch: impl FnMut()) -> Summary {
    let mut samples = Vec::with_capacity(SAMPLES_MAX);
    for _ in 0..WARM_UP_BATCHES {
        batch();
    }
    let begin = Instant::now();
    let mut batches = 0u64;
    let enough = |batches: u64| match budget {
        Budget::Time(time) => batches > 0 && begin.elapsed() >= time,
        Budget::Operations(total) => batches > 0 && batches.saturating_mul(ops) >= total,
    };
    while !enough(batches) {
        let start = Instant::now();
        batch();
        let ns = start.elapsed().as_nanos() as f64 / ops as f64;
        if samples.len() < SAMPLES_MAX {
            samples.push(ns);
        } else {
            // The newest replaces the oldest.
            samples[batches as usize % SAMPLES_MAX] = ns;
        }
        batches += 1;
    }
    Summary::of(&mut samples).expect("at least one batch ran")
}

const WARM_UP_BATCHES: u32 = 3;
const SAMPLES_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_up_to_the_budget() {
        let mut calls = 0;
        let summary = sample(Budget::Operations(1000), 64, || calls += 1);
        assert_eq!((summary.n, calls), (16, 16 + WARM_UP_BATCHES));
        assert_eq!(sample(Budget::Operations(1), 64, || ()).n, 1);
    }

    #[test]
    fn time_ends_it_and_one_batch_runs_at_least() {
        assert_eq!(sample(Budget::Time(Duration::ZERO), 1, || ()).n, 1);
        assert!(sample(Budget::Time(Duration::from_millis(2)), 1, || ()).n > 1);
    }

    #[test]
    fn samples_beyond_the_room_replace_the_oldest() {
        let summary = sample(Budget::Operations(SAMPLES_MAX as u64 + 10), 1, || ());
        assert_eq!(summary.n, SAMPLES_MAX as u64);
    }
}
