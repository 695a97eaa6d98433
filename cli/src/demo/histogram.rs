//! A histogram of waits, in powers of two of a nanosecond.
//!
//! ```text
//!  bucket   0     1     2     3   ..   47
//!  ns       0-1   2-3   4-7   8-15     the rest
//! ```

use serde::Serialize;

/// The number of buckets: the last begins at 39 hours.
pub const BUCKETS: usize = 48;

/// The bucket of a wait of `ns` nanoseconds.
pub fn bucket(ns: u64) -> usize {
    (ns.max(1).ilog2() as usize).min(BUCKETS - 1)
}

/// Counts by bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// The number of waits in each bucket.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// The number of all waits.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The buckets from the first to the last that is not empty, each with the
    /// nanoseconds at which it begins and its count.
    pub fn used(&self) -> impl Iterator<Item = (u64, u64)> {
        let is_used = |count: &u64| *count > 0;
        let first = self.counts.iter().position(is_used).unwrap_or(0);
        let end = self.counts.iter().rposition(is_used).map_or(0, |last| last + 1);
        (first..end).map(|bucket| (if bucket == 0 { 0 } else { 1 << bucket }, self.counts[bucket]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_falls_into_the_bucket_that_begins_below_it() {
        let buckets = [0, 1, 2, 3, 4, 1023, 1024, u64::MAX].map(bucket);
        assert_eq!(buckets, [0, 0, 1, 1, 2, 9, 10, BUCKETS - 1]);
    }

    #[test]
    fn only_the_used_range_is_shown() {
        let mut counts = vec![0; BUCKETS];
        counts[3] = 5;
        counts[5] = 1;
        let histogram = Histogram { counts };
        assert_eq!(histogram.used().collect::<Vec<_>>(), [(8, 5), (16, 0), (32, 1)]);
        assert_eq!(histogram.total(), 6);
    }

    #[test]
    fn an_empty_histogram_shows_nothing() {
        assert_eq!(Histogram { counts: vec![0; BUCKETS] }.used().count(), 0);
    }
}
