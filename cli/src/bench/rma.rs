//! `tsumugi bench rma`: one-sided operations on 8 bytes.
//!
//! [`TARGETS`] places in the memory of the other ranks, which sleep, are
//! chosen at random, so that no address, rank or region is known to the
//! compiler; a batch visits each once. Even the cheapest batch is then a
//! hundred times longer than a step of the clock.
//!
//! The bare loops go to the very same words by pointers that were resolved
//! once, and take turns with ours.

use super::sample::{Batch, Contender};
use super::target::{Extent, TARGETS, Target, targets};
use super::{Group, Measured, Progress, bare, budget};
use crate::args::Measure;
use crate::failure::Failure;
use std::hint::black_box;
use tsumugi::{AddrError, Error, Rank, Remote, Runtime, Shared};
use tsumugi_core::sync::AtomicU64;

/// Ranks of the job: one measures, the others sleep.
pub const RANKS: u32 = 3;

/// What there is to measure.
pub const CATALOGUE: &[Group] = &[Group {
    name: "direct",
    rows: &["get8", "bare_get8", "put8", "bare_put8", "fadd8", "bare_fadd8"],
}];

/// What each rank does; rank 0 measures the rows `names`.
pub fn rank(rt: &Runtime, names: &[&str], measure: &Measure) -> Result<Vec<Measured>, Failure> {
    if rt.size() < 2 {
        return Err(Failure::Usage("bench rma needs 2 ranks or more".to_owned()));
    }
    let regions = (0..REGIONS).map(|_| rt.share::<u64>(WORDS as usize));
    let regions: Vec<Shared<u64>> = regions.collect::<Result<_, Error>>()?;
    rt.barrier()?;
    let measured = match rt.rank() {
        Rank(0) => direct(rt, &regions, names, measure)?,
        _ => Vec::new(),
    };
    rt.barrier()?;
    Ok(measured)
}

fn direct(
    rt: &Runtime,
    regions: &[Shared<u64>],
    names: &[&str],
    measure: &Measure,
) -> Result<Vec<Measured>, Failure> {
    let extent = Extent { ranks: rt.size() - 1, regions: REGIONS, words: WORDS };
    let place = |Target { rank, region, word }: Target| {
        regions[region as usize].at(Rank(rank + 1), word as usize)
    };
    let places: Vec<Remote<u64>> =
        targets(extent, black_box(SEED)).into_iter().map(place).collect();
    let words = places.iter().map(|place| {
        let word = rt.pointer(*place)?;
        // SAFETY: registered until all ranks have passed the barrier after
        // the measurement, aligned, and only ever accessed as atomics.
        Ok(unsafe { AtomicU64::from_ptr(word.as_ptr()) })
    });
    let words: Vec<&AtomicU64> = words.collect::<Result<_, AddrError>>()?;
    let params = format!(
        "peers={} regions={REGIONS} region_bytes={} targets={TARGETS}",
        extent.ranks,
        WORDS * 8
    );
    let ours = |name, batch| Contender { system: "tsumugi", name, batch };
    let bare = |name, batch| Contender { system: "bare", name, batch };
    let (places, words) = (&places[..], &words[..]);
    let pairs = [
        [
            ours("get8", Box::new(|| Ok(get8(rt, places)?)) as Batch<'_>),
            bare("bare_get8", Box::new(|| Ok(bare::get8(words)))),
        ],
        [
            ours("put8", Box::new(|| Ok(put8(rt, places, black_box(1))?))),
            bare("bare_put8", Box::new(|| Ok(bare::put8(words, black_box(1))))),
        ],
        [
            ours("fadd8", Box::new(|| Ok(fadd8(rt, places, black_box(1))?))),
            bare("bare_fadd8", Box::new(|| Ok(bare::fadd8(words, black_box(1))))),
        ],
    ];
    let progress = Progress::new();
    let mut measured = Vec::new();
    for pair in pairs {
        let mut wanted: Vec<_> =
            pair.into_iter().filter(|contender| names.contains(&contender.name)).collect();
        let Some(first) = wanted.first() else { continue };
        progress.stage(first.name, 1);
        let ops = places.len() as u64;
        measured.push(super::measure("rma", &params, budget(measure), ops, &mut wanted)?);
    }
    Ok(measured)
}

/// Gets every word; their sum.
#[inline(never)]
fn get8(rt: &Runtime, places: &[Remote<u64>]) -> Result<u64, AddrError> {
    places.iter().try_fold(0, |sum: u64, place| Ok(sum.wrapping_add(rt.get(*place)?)))
}

/// Puts to every word; how many there are.
#[inline(never)]
fn put8(rt: &Runtime, places: &[Remote<u64>], value: u64) -> Result<u64, AddrError> {
    places.iter().try_for_each(|place| rt.put(*place, value))?;
    Ok(places.len() as u64)
}

/// Adds to every word; the sum of the old values.
#[inline(never)]
fn fadd8(rt: &Runtime, places: &[Remote<u64>], value: u64) -> Result<u64, AddrError> {
    places.iter().try_fold(0, |sum: u64, place| Ok(sum.wrapping_add(rt.fetch_add(*place, value)?)))
}

const REGIONS: u32 = 4;
/// 32 KiB a region: what is measured is the call, not the memory.
const WORDS: u64 = 4096;
const SEED: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(names: &'static [&'static str]) -> Vec<Vec<String>> {
        let measure = Measure { only: None, quick: true, json: None, ops: Some(1) };
        let ranks = tsumugi::run_ranks(2, |rt| rank(rt, names, &measure)).unwrap();
        assert!(ranks[1].is_empty());
        let names = |measured: &Measured| {
            assert!(measured.rows.iter().all(|row| row.summary.min > 0.0));
            measured.rows.iter().map(|row| row.name.clone()).collect()
        };
        ranks[0].iter().map(names).collect()
    }

    #[test]
    fn each_row_is_measured_once_beside_its_bare_loop() {
        let expected = [["get8", "bare_get8"], ["put8", "bare_put8"], ["fadd8", "bare_fadd8"]];
        assert_eq!(measured(CATALOGUE[0].rows), expected);
        assert_eq!(measured(&["bare_put8"]), [["bare_put8"]]);
    }

    #[test]
    fn one_rank_alone_cannot_measure() {
        let measure = Measure { only: None, quick: true, json: None, ops: Some(1) };
        let failed = tsumugi::run_ranks(1, |rt| rank(rt, &[], &measure));
        assert!(failed.unwrap_err().to_string().contains("2 ranks"));
    }
}
