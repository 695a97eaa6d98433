//! Sampling: many short batches of several contenders by turns, for a given time or
//! a given number of operations.
//!
//! ```text
//!  bare  ours  bare  ours  bare  ours ...     a drift of the machine affects both
//! ```
//!
//! A batch is long enough for the clock, and short enough that most batches are not
//! disturbed. [`Summary`](crate::summary::Summary) holds what is kept of the
//! samples.

use crate::failure::Failure;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// One of the systems that take turns.
pub struct Contender<'a> {
    /// The system that does the work.
    pub system: &'static str,
    /// The name of the row.
    pub name: &'static str,
    /// Runs the work once for every target.
    pub batch: Batch<'a>,
}

/// A batch of many operations. The result depends on them, so that the compiler
/// cannot remove any.
pub type Batch<'a> = Box<dyn FnMut() -> Result<u64, Failure> + 'a>;

/// The length of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Each contender runs for this time.
    Time(Duration),
    /// Each contender does at least this number of operations.
    Operations(u64),
}

impl Budget {
    /// One of `parts` equal parts of the budget.
    pub fn part(self, parts: u32) -> Self {
        match self {
            Self::Time(time) => Self::Time(time / parts),
            Self::Operations(operations) => Self::Operations(operations / u64::from(parts)),
        }
    }
}

/// Runs batches of the contenders by turns until `budget` is used up; each call of a
/// batch does `ops` operations. Returns nanoseconds per operation, by contender and
/// round. Nothing is allocated between the first batch and the last.
///
/// # Errors
///
/// The error of the first batch that fails.
pub fn sample(
    budget: Budget,
    ops: u64,
    contenders: &mut [Contender<'_>],
) -> Result<Vec<Vec<f64>>, Failure> {
    let mut samples: Vec<_> = contenders.iter().map(|_| Vec::with_capacity(SAMPLES_MAX)).collect();
    for _ in 0..WARM_UP_ROUNDS {
        for contender in &mut *contenders {
            black_box((contender.batch)()?);
        }
    }
    let begin = Instant::now();
    let several = contenders.len() as u32;
    let mut rounds = 0u64;
    let enough = |rounds: u64| match budget {
        Budget::Time(time) => rounds > 0 && begin.elapsed() >= time * several,
        Budget::Operations(total) => rounds > 0 && rounds.saturating_mul(ops) >= total,
    };
    while !enough(rounds) {
        for (contender, samples) in contenders.iter_mut().zip(&mut samples) {
            let start = Instant::now();
            black_box((contender.batch)()?);
            let ns = start.elapsed().as_nanos() as f64 / ops as f64;
            if samples.len() < SAMPLES_MAX {
                samples.push(ns);
            } else {
                // The newest sample replaces the oldest.
                samples[rounds as usize % SAMPLES_MAX] = ns;
            }
        }
        rounds += 1;
    }
    Ok(samples)
}

const WARM_UP_ROUNDS: u32 = 3;
const SAMPLES_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn contender<'a>(mut work: impl FnMut() + 'a) -> Contender<'a> {
        let batch = Box::new(move || {
            work();
            Ok(0)
        });
        Contender { system: "tsumugi", name: "work", batch }
    }

    fn rounds(budget: Budget, ops: u64) -> usize {
        sample(budget, ops, &mut [contender(|| ())]).unwrap()[0].len()
    }

    #[test]
    fn operations_are_counted_up_to_the_budget() {
        let (mut first, mut second) = (0, 0);
        let mut contenders = [contender(|| first += 1), contender(|| second += 1)];
        let samples = sample(Budget::Operations(1000), 64, &mut contenders).unwrap();
        drop(contenders);
        assert_eq!((samples[0].len(), samples[1].len()), (16, 16));
        assert_eq!((first, second), (16 + WARM_UP_ROUNDS, 16 + WARM_UP_ROUNDS));
        assert_eq!(rounds(Budget::Operations(1), 64), 1);
    }

    #[test]
    fn the_time_budget_ends_a_sample_after_at_least_one_round() {
        assert_eq!(rounds(Budget::Time(Duration::ZERO), 1), 1);
        // One round may take longer if its thread is kept off its core.
        let times = [2, 20, 200, 2000].map(|millis| Budget::Time(Duration::from_millis(millis)));
        assert!(times.into_iter().any(|budget| rounds(budget, 1) > 1));
    }

    #[test]
    fn samples_beyond_the_room_replace_the_oldest() {
        assert_eq!(rounds(Budget::Operations(SAMPLES_MAX as u64 + 10), 1), SAMPLES_MAX);
    }

    #[test]
    fn a_batch_that_fails_ends_the_sample() {
        let failed = || Err(Failure::Failed("no".to_owned()));
        let failing = Contender { system: "tsumugi", name: "work", batch: Box::new(failed) };
        let ended = sample(Budget::Operations(1), 1, &mut [failing]);
        assert_eq!(ended, Err(Failure::Failed("no".to_owned())));
    }
}
