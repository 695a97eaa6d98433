//! The counts of the threads of one rank, and their sum at rank 0.

use super::histogram::{BUCKETS, Histogram, bucket};
use super::report::{Operations, Waits};
use tsumugi::{Error, Plain, Rank, Remote, Runtime};
use tsumugi_core::stats::{Counter, CounterValues};
use tsumugi_core::sync::{AtomicU64, Ordering};

/// The counts of one thread, until the thread adds them to its rank's [`Tally`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadTally {
    gets: u64,
    puts: u64,
    atomics: u64,
    remote: u64,
    bytes: u64,
}

impl ThreadTally {
    /// Counts a get of `len` elements.
    pub fn get<T: Plain>(&mut self, rt: &Runtime, from: Remote<T>, len: usize) {
        self.gets += 1;
        self.moved(rt, from, len);
    }

    /// Counts a put of `len` elements.
    pub fn put<T: Plain>(&mut self, rt: &Runtime, to: Remote<T>, len: usize) {
        self.puts += 1;
        self.moved(rt, to, len);
    }

    /// Counts an atomic.
    pub fn atomic<T: Plain>(&mut self, rt: &Runtime, at: Remote<T>) {
        self.atomics += 1;
        self.moved(rt, at, 1);
    }

    fn moved<T: Plain>(&mut self, rt: &Runtime, place: Remote<T>, len: usize) {
        self.remote += u64::from(place.addr().rank != rt.rank());
        self.bytes += len as u64 * size_of::<T>() as u64;
    }

    fn fields(self) -> [u64; FIELDS] {
        [self.gets, self.puts, self.atomics, self.remote, self.bytes]
    }
}

/// The sums over the threads of one rank.
#[derive(Debug)]
pub struct Tally {
    fields: [AtomicU64; FIELDS],
    slept: [AtomicU64; BUCKETS],
}

impl Tally {
    /// A tally of zeroes.
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self { fields: [(); FIELDS].map(|()| zero()), slept: [(); BUCKETS].map(|()| zero()) }
    }

    /// Adds the counts of one thread.
    pub fn add(&self, count: ThreadTally) {
        for (field, value) in self.fields.iter().zip(count.fields()) {
            field.fetch_add(value, Ordering::Relaxed);
        }
    }

    /// Counts a sleep of a thread at the level barrier, of `ns` nanoseconds.
    pub fn slept(&self, ns: u64) {
        self.slept[bucket(ns)].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds up the counts of all ranks and of their schedulers; only the result of
    /// rank 0 is complete. Collective.
    pub fn gather(&self, rt: &Runtime, scheduler: CounterValues) -> Result<Totals, Error> {
        let totals = rt.share::<u64>(FIELDS + BUCKETS + SCHEDULED)?;
        let counted = self.fields.iter().chain(&self.slept);
        let counted = counted.map(|counter| counter.load(Ordering::Relaxed));
        for (index, count) in counted.chain(scheduler.to_array()).enumerate() {
            rt.fetch_add(totals.at(Rank(0), index), count)?;
        }
        rt.barrier()?;
        let mut sums = [0; FIELDS + BUCKETS + SCHEDULED];
        rt.get_slice(totals.at(Rank(0), 0), &mut sums)?;
        let [gets, puts, atomics, remote, bytes] =
            *sums.first_chunk().expect("the fields come first");
        let scheduler =
            CounterValues::from_array(*sums.last_chunk().expect("the scheduler's come last"));
        let slept = Histogram { counts: sums[FIELDS..][..BUCKETS].to_vec() };
        Ok(Totals {
            operations: Operations { gets, puts, atomics, remote, bytes },
            waits: Waits {
                busy: scheduler[Counter::Busy],
                yields: scheduler[Counter::Yields],
                parks: scheduler[Counter::Parks],
                steals: scheduler[Counter::Steals],
                sleeps: scheduler[Counter::Sleeps],
            },
            slept,
        })
    }
}

/// The counts of all ranks.
#[derive(Clone, Debug)]
pub struct Totals {
    /// One-sided operations.
    pub operations: Operations,
    /// Waits.
    pub waits: Waits,
    /// How long threads slept at the level barrier.
    pub slept: Histogram,
}

const FIELDS: usize = 5;
const SCHEDULED: usize = Counter::ALL.len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_ranks_are_added_up() {
        let totals = tsumugi::run_ranks(3, |rt: &Runtime| {
            let shared = rt.share::<u32>(8)?;
            let tally = Tally::new();
            let mut count = ThreadTally::default();
            count.get(rt, shared.at(Rank(0), 0), 8);
            count.atomic(rt, shared.at(rt.rank(), 1));
            tally.add(count);
            tally.slept(5);
            let mut counts = [0; SCHEDULED];
            counts[Counter::Parks as usize] = 2;
            counts[Counter::Yields as usize] = 1;
            tally.gather(rt, CounterValues::from_array(counts))
        });
        let totals: Vec<Totals> = totals.unwrap_or_else(|error: Error| panic!("{error}"));
        let Operations { gets, puts, atomics, remote, bytes } = totals[0].operations;
        assert_eq!((gets, puts, atomics), (3, 0, 3));
        assert_eq!((remote, bytes), (2, 3 * (8 + 1) * 4));
        let expected = Waits { busy: 0, yields: 3, parks: 6, steals: 0, sleeps: 0 };
        assert_eq!((totals[0].waits, totals[0].slept.counts[2]), (expected, 3));
    }
}
