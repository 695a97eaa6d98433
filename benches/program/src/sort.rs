//! Sample sort: the keys of all ranks, in order over all ranks at the end.
//!
//! ```text
//!  keys     ▒▒▒▒▒▒▒▒ each rank sorts its block, and publishes samples of its keys
//!  samples  ░░░░     all ranks choose the same keys as borders between ranks
//!  counts   how many keys of each rank go to each rank: all ranks get the places
//!  sorted   ▒▒▒▒▒▒▒▒ every piece is put to its place; then each rank owns its
//!                    range, so its pages come here, and merges the pieces
//! ```

use crate::{Words, main};
use std::time::{Duration, Instant};
use tsumugi::{Error, GlobalArray, Rank, Runtime};
use tsumugi_core::random;

/// The size of the problem.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many keys each rank has at first.
    pub keys: usize,
}

/// The measurements of a run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The time of the sort, without the check.
    pub time: Duration,
    /// Pages that moved to the rank of their keys, all ranks together.
    pub moved: u64,
    /// The most keys that a rank has at the end.
    pub keys_max: u64,
}

/// `sort [KEYS]`
pub fn command() -> Result<(), Error> {
    main(
        |words: &mut Words| Ok(Plan { keys: words.number("KEYS", 1..=1 << 28, 1 << 20)? }),
        |rt, plan| {
            let Outcome { time, moved, keys_max } = play(rt, plan)?;
            if rt.rank() == Rank(0) {
                let keys = plan.keys as u64 * u64::from(rt.size());
                let million = keys as f64 / time.as_micros() as f64;
                println!(
                    "{keys} keys in order: {million:.2} million a second; {moved} pages came to \
                     whose keys they have, a rank has {keys_max} keys at most"
                );
            }
            rt.barrier()
        },
    )
}

/// Sorts the keys, and checks the result. Collective.
///
/// # Errors
///
/// An [`Error`] if a rank dies, if the arrays cannot be made, or if the keys are not in
/// order, or are not the given keys.
pub fn play(rt: &Runtime, plan: Plan) -> Result<Outcome, Error> {
    let (size, rank) = (rt.size() as usize, rt.rank().0 as usize);
    let keys = rt.array::<u64>(plan.keys * size)?;
    let sorted = rt.array::<u64>(plan.keys * size)?;
    let first = rank * plan.keys;
    let given: Vec<u64> = (first as u64..).take(plan.keys).map(random::first).collect();
    keys.put_slice(first, &given)?;
    rt.barrier()?;
    let start = Instant::now();
    let mut own = vec![0; plan.keys];
    keys.get_slice(first, &mut own)?;
    own.sort_unstable();
    let ends = ends(rt, &own)?;
    let places = places(rt, &ends)?;
    for (to, place) in places.iter().enumerate() {
        let from = if to == 0 { 0 } else { ends[to - 1] };
        sorted.put_slice(place.piece, &own[from..ends[to]])?;
    }
    rt.barrier()?;
    let range = places[rank].first..places[rank].end;
    let moved = sorted.own(range.clone())? as u64;
    own.resize(range.len(), 0);
    sorted.get_slice(range.start, &mut own)?;
    // The stable sort is fast on pieces that are in order: each is one run.
    own.sort();
    sorted.put_slice(range.start, &own)?;
    rt.barrier()?;
    let time = start.elapsed();
    check(rt, &given, &sorted, range.clone())?;
    let counts = rt.allgather(range.len() as u64)?;
    let keys_max = counts.into_iter().max().unwrap_or(0);
    Ok(Outcome { time, moved: rt.sum(moved)?, keys_max })
}

/// The end of each rank's keys within this rank's sorted keys. All ranks use the same
/// borders.
fn ends(rt: &Runtime, own: &[u64]) -> Result<Vec<usize>, Error> {
    let (size, rank) = (rt.size() as usize, rt.rank().0 as usize);
    let samples = rt.array::<u64>(SAMPLES * size)?;
    let some = (0..SAMPLES).map(|sample| own[(2 * sample + 1) * own.len() / (2 * SAMPLES)]);
    samples.put_slice(rank * SAMPLES, &some.collect::<Vec<_>>())?;
    rt.barrier()?;
    let mut all = vec![0; SAMPLES * size];
    samples.get_slice(0, &mut all)?;
    all.sort_unstable();
    let between = (1..size).map(|rank| all[rank * SAMPLES]);
    let mut ends: Vec<usize> = between.map(|key| own.partition_point(|own| *own < key)).collect();
    ends.push(own.len());
    Ok(ends)
}

/// The place of a rank's keys at the end, and the place of this rank's piece of them.
struct Place {
    first: usize,
    end: usize,
    piece: usize,
}

/// The place of each rank, computed from the counts of all ranks.
fn places(rt: &Runtime, ends: &[usize]) -> Result<Vec<Place>, Error> {
    let (size, rank) = (rt.size() as usize, rt.rank().0 as usize);
    let counts = rt.array::<u64>(size * size)?;
    let starts = std::iter::once(&0).chain(ends);
    let own: Vec<u64> = starts.zip(ends).map(|(start, end)| (end - start) as u64).collect();
    counts.put_slice(rank * size, &own)?;
    rt.barrier()?;
    let mut all = vec![0; size * size];
    counts.get_slice(0, &mut all)?;
    let mut at = 0;
    let of = |to: usize| {
        let pieces = (0..size).map(|from| all[from * size + to] as usize);
        let (first, before) = (at, pieces.clone().take(rank).sum::<usize>());
        at += pieces.sum::<usize>();
        Place { first, end: at, piece: first + before }
    };
    Ok((0..size).map(of).collect())
}

/// Checks that the keys are in order, also from rank to rank, and are the given keys.
fn check(
    rt: &Runtime,
    given: &[u64],
    sorted: &GlobalArray<u64>,
    range: std::ops::Range<usize>,
) -> Result<(), Error> {
    // The range, and the first key of the next rank.
    let mut found = vec![0; (range.end + 1).min(sorted.len()) - range.start];
    sorted.get_slice(range.start, &mut found)?;
    if let Some(at) = found.windows(2).position(|pair| pair[0] > pair[1]) {
        let (index, key, next) = (range.start + at, found[at], found[at + 1]);
        return Err(Error::program(format!("key {index} is {key}, larger than the next, {next}")));
    }
    let print =
        |keys: &[u64]| keys.iter().fold(0u64, |sum, key| sum.wrapping_add(random::first(*key)));
    found.truncate(range.len());
    let (before, after) = (rt.sum(print(given))?, rt.sum(print(&found))?);
    if before != after {
        return Err(Error::program("the sorted keys are not the keys that were given"));
    }
    Ok(())
}

/// How many keys each rank publishes.
const SAMPLES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_on_any_number_of_ranks() {
        for (ranks, keys) in [(1, 1), (1, 1000), (2, 3), (3, 5000), (4, 1)] {
            tsumugi::run_ranks(ranks, |rt| play(rt, Plan { keys })).unwrap();
        }
    }
}
