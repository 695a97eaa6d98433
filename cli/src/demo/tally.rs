//! What the threads of one rank count, and how it comes together at rank 0.

use super::histogram::{BUCKETS, Histogram, bucket};
use super::report::{Operations, Waits};
use super::world::{Outcome, Place, Shared, World};
use tsumugi_core::mem::Word;
use tsumugi_core::sync::{AtomicU64, Ordering};

/// What one thread counts for itself until it adds it to its rank's [`Tally`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    gets: u64,
    puts: u64,
    atomics: u64,
    remote: u64,
    bytes: u64,
    yields: u64,
}

impl Count {
    /// A get of `len` elements.
    pub fn get<T: Word>(&mut self, world: &World, from: &Place<'_, T>, len: usize) {
        self.gets += 1;
        self.moved::<T>(world, from, len);
    }

    /// A put of `len` elements.
    pub fn put<T: Word>(&mut self, world: &World, to: &Place<'_, T>, len: usize) {
        self.puts += 1;
        self.moved::<T>(world, to, len);
    }

    /// An atomic.
    pub fn atomic<T: Word>(&mut self, world: &World, at: &Place<'_, T>) {
        self.atomics += 1;
        self.moved::<T>(world, at, 1);
    }

    /// Other threads were let run.
    pub fn yielded(&mut self) {
        self.yields += 1;
    }

    fn moved<T: Word>(&mut self, world: &World, place: &Place<'_, T>, len: usize) {
        self.remote += u64::from(place.rank != world.rank());
        self.bytes += len as u64 * size_of::<T>() as u64;
    }

    fn fields(self) -> [u64; FIELDS] {
        [self.gets, self.puts, self.atomics, self.remote, self.bytes, self.yields]
    }
}

/// What the threads of one rank counted together.
#[derive(Debug)]
pub struct Tally {
    fields: [AtomicU64; FIELDS],
    parked: [AtomicU64; BUCKETS],
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self { fields: [(); FIELDS].map(|()| zero()), parked: [(); BUCKETS].map(|()| zero()) }
    }

    /// Adds what one thread counted.
    pub fn add(&self, count: Count) {
        for (field, value) in self.fields.iter().zip(count.fields()) {
            field.fetch_add(value, Ordering::Relaxed);
        }
    }

    /// A wait slept for `ns` nanoseconds.
    pub fn parked(&self, ns: u64) {
        self.parked[bucket(ns)].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds up all ranks; what rank 0 returns is the whole. Collective.
    pub fn gather(&self, world: &World) -> Outcome<Totals> {
        let totals: Shared<u64> = world.share((FIELDS + BUCKETS) as u64)?;
        for (index, counter) in self.fields.iter().chain(&self.parked).enumerate() {
            world.fetch_add(totals.at(0, index as u64), counter.load(Ordering::Relaxed))?;
        }
        world.barrier()?;
        let mut sums = [0; FIELDS + BUCKETS];
        world.get_slice(totals.at(0, 0), &mut sums)?;
        let [gets, puts, atomics, remote, bytes, yields] =
            *sums.first_chunk().expect("the fields come first");
        let parked = Histogram { counts: sums[FIELDS..].to_vec() };
        Ok(Totals {
            operations: Operations { gets, puts, atomics, remote, bytes },
            waits: Waits { busy: 0, yields, parks: parked.total() },
            parked,
        })
    }
}

/// What all ranks counted.
#[derive(Clone, Debug)]
pub struct Totals {
    /// One-sided operations.
    pub operations: Operations,
    /// Waits.
    pub waits: Waits,
    /// How long those took that slept.
    pub parked: Histogram,
}

const FIELDS: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_ranks_come_together() {
        let totals = World::run(3, |world| {
            let shared: Shared<u32> = world.share(8).unwrap();
            let tally = Tally::new();
            let mut count = Count::default();
            count.get(&world, &shared.at(0, 0), 8);
            count.atomic(&world, &shared.at(world.rank(), 1));
            tally.add(count);
            tally.parked(5);
            tally.gather(&world).unwrap()
        });
        let Operations { gets, puts, atomics, remote, bytes } = totals[0].operations;
        assert_eq!((gets, puts, atomics), (3, 0, 3));
        assert_eq!((remote, bytes), (2, 3 * (8 + 1) * 4));
        assert_eq!((totals[0].waits.parks, totals[0].parked.counts[2]), (3, 3));
    }
}
