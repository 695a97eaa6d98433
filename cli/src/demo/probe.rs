//! The time of one blocking get, from batches of 64 by one thread.

use super::spread::Spread;
use crate::summary::Summary;
use std::hint::black_box;
use std::time::{Duration, Instant};
use tsumugi::{AddrError, Rank, Runtime};
use tsumugi_core::random::SplitMix64;

/// Nanoseconds of a blocking get of the level of a random vertex: of another rank,
/// or of this rank if the job has no other.
pub fn get_ns(rt: &Runtime, spread: &Spread) -> Result<Option<Summary>, AddrError> {
    let mut random = SplitMix64::new(SEED);
    let mut samples = Vec::with_capacity(BATCHES);
    let is_remote = |rank: Rank| rank != rt.rank() || rt.size() == 1;
    let mut place = || loop {
        let place = spread.level(random.below(spread.vertices().into()) as u32);
        // If the graph has fewer vertices than the job has ranks, all of them may
        // lie at this rank.
        if is_remote(place.addr().rank) || spread.vertices() < rt.size() {
            return place;
        }
    };
    let start = Instant::now();
    while samples.is_empty() || (samples.len() < BATCHES && start.elapsed() < LIMIT) {
        let places: [_; BATCH_GETS] = std::array::from_fn(|_| place());
        let begin = Instant::now();
        for place in places {
            black_box(rt.get(place)?);
        }
        samples.push(begin.elapsed().as_nanos() as f64 / BATCH_GETS as f64);
    }
    Ok(Summary::of(&mut samples))
}

const BATCHES: usize = 2000;
/// On a slow network fewer batches run.
const LIMIT: Duration = Duration::from_secs(2);
/// The clock has steps of 10 ns.
const BATCH_GETS: usize = 64;
const SEED: u64 = 64;
