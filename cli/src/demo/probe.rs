//! How long one blocking get takes, from batches of 64.

use super::spread::Spread;
use super::world::{Outcome, World};
use crate::shuffle::Shuffle;
use crate::summary::Summary;
use std::hint::black_box;
use std::time::Instant;

/// Nanoseconds of a blocking get of the level of a random vertex of any rank.
pub fn get_ns(world: &World, spread: &Spread) -> Outcome<Option<Summary>> {
    let mut shuffle = Shuffle::new(SEED);
    let mut samples = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let places: [_; BATCH_GETS] =
            std::array::from_fn(|_| spread.level(shuffle.below(spread.vertices().into()) as u32));
        let begin = Instant::now();
        for place in places {
            black_box(world.get(place)?);
        }
        samples.push(begin.elapsed().as_nanos() as f64 / BATCH_GETS as f64);
    }
    Ok(Summary::of(&mut samples))
}

const BATCHES: usize = 2000;
/// The clock has steps of 10 ns.
const BATCH_GETS: usize = 64;
const SEED: u64 = 64;
