//! The summary of many samples: their number, minimum, median and tail.
//!
//! There is no mean: on a shared machine one sample in a thousand is a hundred times
//! as long as the others, and such samples dominate a mean.

use serde::{Deserialize, Serialize};

/// Minimum, median with its confidence interval, and 99th percentile of samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of samples.
    pub n: u64,
    /// The minimum.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The lower end of the interval in which the true median lies with a confidence
    /// of 95 %.
    pub low: f64,
    /// The upper end of this interval.
    pub high: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Summary {
    /// The summary of `samples`, which this function sorts; `None` if there are
    /// none.
    pub fn of(samples: &mut [f64]) -> Option<Self> {
        samples.sort_unstable_by(f64::total_cmp);
        let min = *samples.first()?;
        let (low, high) = interval(samples);
        Some(Self {
            n: samples.len() as u64,
            min,
            median: quantile(samples, 50),
            low,
            high,
            p99: quantile(samples, 99),
        })
    }
}

/// The smallest sample that at least `percent` percent of the `sorted` samples do
/// not exceed.
pub fn quantile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

/// The 95 % confidence interval of the median of the population from which the
/// `sorted` samples come. It uses only the order of the samples, so it assumes
/// nothing about their distribution.
fn interval(sorted: &[f64]) -> (f64, f64) {
    let (n, half) = (sorted.len() as f64, 0.98 * (sorted.len() as f64).sqrt());
    let low = (n / 2.0 - half).floor().max(1.0) as usize;
    let high = (n / 2.0 + half).ceil().min(n) as usize;
    (sorted[low - 1], sorted[high - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_samples_have_no_summary() {
        assert_eq!(Summary::of(&mut []), None);
    }

    #[test]
    fn one_sample_is_minimum_median_and_percentile() {
        let summary = Summary::of(&mut [7.0]).unwrap();
        assert_eq!((summary.min, summary.median, summary.p99, summary.n), (7.0, 7.0, 7.0, 1));
    }

    #[test]
    fn quantiles_are_samples_by_nearest_rank() {
        let mut samples: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let summary = Summary::of(&mut samples).unwrap();
        assert_eq!((summary.min, summary.median, summary.p99), (1.0, 100.0, 198.0));
    }

    #[test]
    fn the_interval_is_around_the_median() {
        let mut samples: Vec<f64> = (1..=100).map(f64::from).collect();
        let summary = Summary::of(&mut samples).unwrap();
        assert_eq!((summary.low, summary.high), (40.0, 60.0));
        let few = Summary::of(&mut [1.0, 2.0]).unwrap();
        assert_eq!((few.low, few.high), (1.0, 2.0));
    }

    #[test]
    fn one_outlier_moves_only_the_tail() {
        let mut samples = [5.0, 5.0, 5.0, 5e6];
        let summary = Summary::of(&mut samples).unwrap();
        assert_eq!((summary.median, summary.p99), (5.0, 5e6));
    }
}
