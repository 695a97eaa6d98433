//! Counters of a worker, and histograms of latencies.
//!
//! [`Counters`] belong to one worker, and only this worker writes them: by a plain
//! load and a plain store, without a locked instruction, on cache lines of their
//! own. Any thread may read them at any time. A reader gets a recent value of each
//! counter, but not the values of all counters at one moment.
//!
//! A [`Histogram`] has one bucket for each power of two:
//!
//! ```text
//!  bucket   0    1    2     3      4   ...  64
//!  ns       0    1   2-3   4-7   8-15  ...  2^63 and more
//! ```
//!
//! Progress: everything here is wait-free.

use crate::sync::{AtomicU64, CachePadded, Ordering};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Index, Sub};

/// The events and times that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
#[non_exhaustive]
pub enum Counter {
    /// ULTs that this worker started.
    Spawned,
    /// Times that a ULT yielded.
    Yields,
    /// Times that a ULT went to sleep.
    Parks,
    /// ULTs woken by this worker.
    Wakes,
    /// ULTs of this worker that another worker woke, or a thread that is no worker.
    WokenAfar,
    /// ULTs stolen from another worker.
    Steals,
    /// Calls that returned `Busy`.
    Busy,
    /// Polls of a device or a parking lot, with or without a result.
    Polls,
    /// Times the worker itself went to sleep.
    Sleeps,
    /// Nanoseconds in which the worker had nothing to run, whether it slept or not;
    /// the count is too low by a few microseconds for each such time.
    IdleNs,
}

impl Counter {
    /// All counters, in the order of [`CounterValues::iter`].
    pub const ALL: [Self; COUNTERS] = [
        Self::Spawned,
        Self::Yields,
        Self::Parks,
        Self::Wakes,
        Self::WokenAfar,
        Self::Steals,
        Self::Busy,
        Self::Polls,
        Self::Sleeps,
        Self::IdleNs,
    ];

    /// The counter's name, as `--stats` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spawned => "spawned",
            Self::Yields => "yields",
            Self::Parks => "parks",
            Self::Wakes => "wakes",
            Self::WokenAfar => "woken_afar",
            Self::Steals => "steals",
            Self::Busy => "busy",
            Self::Polls => "polls",
            Self::Sleeps => "sleeps",
            Self::IdleNs => "idle_ns",
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The counters of one worker: one writer, any number of readers.
pub struct Counters(CachePadded<[AtomicU64; COUNTERS]>);

impl Counters {
    /// All counters at zero.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self(CachePadded::new([const { AtomicU64::new(0) }; COUNTERS]))
    }

    /// All counters at zero.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self(CachePadded::new(core::array::from_fn(|_| AtomicU64::new(0))))
    }

    /// Adds one. Only the worker that owns the counters may call this; the count of
    /// a second writer can get lost.
    #[inline(always)]
    pub fn bump(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Adds `by`, under the rule of [`bump`](Self::bump).
    #[inline(always)]
    pub fn add(&self, counter: Counter, by: u64) {
        let cell = &self.0[counter as usize];
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
    }

    /// The counts up to now.
    pub fn snapshot(&self) -> CounterValues {
        CounterValues(core::array::from_fn(|index| self.0[index].load(Ordering::Relaxed)))
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

/// A snapshot of [`Counters`]. Snapshots of several workers, or ranks, add up.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterValues([u64; COUNTERS]);

impl CounterValues {
    /// Each counter with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::ALL.into_iter().map(|counter| (counter, self[counter]))
    }

    /// The values in the order of [`Counter::ALL`], for a transfer to other ranks.
    pub const fn to_array(self) -> [u64; COUNTERS] {
        self.0
    }

    /// The counts of an array that [`to_array`](Self::to_array) returned.
    pub const fn from_array(values: [u64; COUNTERS]) -> Self {
        Self(values)
    }
}

impl Index<Counter> for CounterValues {
    type Output = u64;
    fn index(&self, counter: Counter) -> &u64 {
        &self.0[counter as usize]
    }
}

impl Add for CounterValues {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for CounterValues {
    fn add_assign(&mut self, other: Self) {
        for (mine, its) in self.0.iter_mut().zip(other.0) {
            *mine = mine.wrapping_add(its);
        }
    }
}

/// The counts between the snapshot `earlier` and this snapshot.
impl Sub for CounterValues {
    type Output = Self;
    fn sub(mut self, earlier: Self) -> Self {
        for (mine, its) in self.0.iter_mut().zip(earlier.0) {
            *mine = mine.wrapping_sub(its);
        }
        self
    }
}

impl Sum for CounterValues {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

impl fmt::Debug for CounterValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(counter, n)| (counter.name(), n))).finish()
    }
}

/// A histogram of times, in powers of two of nanoseconds. One writer.
///
/// ```
/// use tsumugi_core::stats::Histogram;
///
/// let mut waits = Histogram::new();
/// for ns in [90, 100, 110, 5_000] {
///     waits.record(ns);
/// }
/// assert_eq!(waits.percentile(50), 127);
/// assert_eq!(waits.percentile(100), 5_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: [u64; BUCKETS],
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Histogram {
    /// An empty histogram.
    pub const fn new() -> Self {
        Self { buckets: [0; BUCKETS], count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Records one time of `ns` nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.buckets[bucket_of(ns)] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds the records of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (mine, its) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += its;
        }
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The time that `percent` of the records did not exceed. The result is the
    /// upper edge of a bucket, so it is at most twice too long, and never beyond the
    /// longest record. It is 0 if the histogram is empty; a `percent` above 100 is
    /// taken as 100.
    pub fn percentile(&self, percent: u32) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let wanted = (u128::from(self.count) * u128::from(percent.min(100))).div_ceil(100);
        let mut seen = 0;
        for (index, &n) in self.buckets.iter().enumerate() {
            seen += u128::from(n);
            if n != 0 && seen >= wanted {
                return upper_edge(index).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// The number of records.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all records.
    pub const fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The shortest record; `None` if the histogram is empty.
    pub const fn min_ns(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.min_ns) }
    }

    /// The longest record; 0 if the histogram is empty.
    pub const fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The buckets that are not empty, each with its upper edge in nanoseconds and
    /// its number of records.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let full = self.buckets.iter().enumerate().filter(|(_, n)| **n != 0);
        full.map(|(index, &n)| (upper_edge(index), n))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

const fn bucket_of(ns: u64) -> usize {
    (u64::BITS - ns.leading_zeros()) as usize
}

const fn upper_edge(bucket: usize) -> u64 {
    match bucket {
        64 => u64::MAX,
        _ => (1 << bucket) - 1,
    }
}

const COUNTERS: usize = 10;
const BUCKETS: usize = 65;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    #[test]
    fn counters_are_indexed_by_their_names() {
        for (index, counter) in Counter::ALL.into_iter().enumerate() {
            assert_eq!(counter as usize, index, "{counter}");
        }
    }

    #[test]
    fn snapshots_add_up() {
        let (one, two) = (Counters::new(), Counters::new());
        one.bump(Counter::Parks);
        two.add(Counter::Parks, 2);
        two.bump(Counter::Sleeps);
        let all: CounterValues = [one.snapshot(), two.snapshot()].into_iter().sum();
        assert_eq!((all[Counter::Parks], all[Counter::Sleeps], all[Counter::Busy]), (3, 1, 0));
        assert_eq!(CounterValues::from_array(all.to_array()), all);
        assert_eq!(all - one.snapshot(), two.snapshot());
    }

    #[test]
    fn every_time_has_a_bucket() {
        let mut histogram = Histogram::new();
        for ns in [0, 1, 2, 3, 4, u64::MAX] {
            histogram.record(ns);
            assert!(upper_edge(bucket_of(ns)) >= ns, "{ns}");
        }
        let full: [(u64, u64); 5] = core::array::from_fn(|i| histogram.iter().nth(i).unwrap());
        assert_eq!(full, [(0, 1), (1, 1), (3, 2), (7, 1), (u64::MAX, 1)]);
    }

    #[test]
    fn percentiles_are_upper_edges() {
        let mut histogram = Histogram::new();
        assert_eq!((histogram.percentile(50), histogram.min_ns()), (0, None));
        (1..=100).for_each(|ns| histogram.record(ns));
        assert_eq!(histogram.percentile(0), 1);
        assert_eq!(histogram.percentile(1), 1);
        assert_eq!(histogram.percentile(50), 63);
        assert_eq!(histogram.percentile(100), 100);
        assert_eq!(histogram.percentile(1000), 100);
    }

    #[test]
    fn merging_equals_recording_in_one_histogram() {
        let (mut one, mut two, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for ns in [7, 900, 12] {
            one.record(ns);
            both.record(ns);
        }
        for ns in [3, 1 << 40] {
            two.record(ns);
            both.record(ns);
        }
        one.merge(&two);
        assert_eq!(one, both);
        one.merge(&Histogram::new());
        assert_eq!(one, both);
    }
}
