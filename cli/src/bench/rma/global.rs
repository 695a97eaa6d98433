//! The same words by their global addresses, and copies between two other ranks.
//!
//! The cost of a global address is the difference from the call that names rank and
//! region, in turns with it: a lookup in the table of the rank, which is local. A
//! copy between two other ranks of the node takes turns with a put of the same
//! number of bytes to the same place.

use super::super::sample::{Batch, Contender};
use super::bench::{REGIONS, RmaBench, SEED, WORDS};
use crate::bench::catalogue::Group;
use crate::bench::measured::{self, budget};
use crate::bench::target::{Extent, WordTarget, targets};
use crate::failure::Failure;
use std::hint::black_box;
use tsumugi::global::GlobalBlock;
use tsumugi::{AddrError, Error, Global, GlobalAddr, GlobalPtr, Remote, Runtime};

pub const GROUP: Group = Group {
    name: "global",
    rows: &[
        "global_get8",
        "raw_get8",
        "global_put8",
        "raw_put8",
        "global_fadd8",
        "raw_fadd8",
        "third_8b",
        "put_8b",
        "third_8k",
        "put_8k",
        "third_1m",
        "put_1m",
    ],
};

/// The arrays of each rank.
pub struct Arrays {
    global: Global,
    /// By array and rank; the last array is the longest.
    all: Vec<Vec<GlobalPtr<u64>>>,
    _own: Vec<GlobalBlock<u64>>,
}

impl Arrays {
    /// Collective.
    pub fn new(rt: &Runtime) -> Result<Self, Error> {
        let global = rt.global()?;
        let words = (0..REGIONS).map(|_| WORDS as usize).chain([LONG]);
        let own = words.map(|words| global.expose(words)).collect::<Result<Vec<_>, _>>()?;
        let tell = |array: &GlobalBlock<u64>| {
            let bits = rt.allgather(array.at(0).addr().to_bits())?.into_iter();
            Ok(bits.map(|bits| GlobalPtr::new(GlobalAddr::from_bits(bits))).collect())
        };
        let all = own.iter().map(tell).collect::<Result<_, Error>>()?;
        Ok(Self { global, all, _own: own })
    }
}

pub fn measure(bench: &RmaBench<'_>, arrays: &Arrays) -> Result<(), Failure> {
    let Arrays { global, all, .. } = arrays;
    let (rt, raw) = (bench.rt, bench.places);
    let extent = Extent { ranks: rt.size() - 1, regions: REGIONS, words: WORDS };
    let place = |WordTarget { rank, region, word }: WordTarget| {
        global.index(all[region as usize][rank as usize + 1], word as i64)
    };
    let places = targets(extent, black_box(SEED)).into_iter().map(place);
    let places =
        &places.collect::<Result<Vec<_>, AddrError<GlobalAddr>>>().map_err(Error::from)?[..];
    let ops = raw.len() as u64;
    let pair = |names: [&'static str; 2], ops: u64, batches: [Batch<'_>; 2]| {
        let systems = ["tsumugi", "bare"];
        let both = names.into_iter().zip(systems).zip(batches);
        let mut wanted: Vec<_> = both
            .filter(|((name, _), _)| bench.wants(name))
            .map(|((name, system), batch)| Contender { system, name, batch })
            .collect();
        if let Some(first) = wanted.first() {
            bench.rows.progress.stage(first.name, 1);
            let budget = budget(bench.measure);
            let measured = measured::measure("rma", &bench.params, budget, ops, &mut wanted)?;
            bench.rows.write_measured(measured)?;
        }
        Ok::<_, Failure>(())
    };
    pair(
        ["global_get8", "raw_get8"],
        ops,
        [Box::new(|| tell(get8(global, places))), Box::new(|| Ok(raw_get8(rt, raw)?))],
    )?;
    pair(
        ["global_put8", "raw_put8"],
        ops,
        [
            Box::new(|| tell(put8(global, places, black_box(1)))),
            Box::new(|| Ok(raw_put8(rt, raw, black_box(1))?)),
        ],
    )?;
    pair(
        ["global_fadd8", "raw_fadd8"],
        ops,
        [
            Box::new(|| tell(fadd8(global, places, black_box(1)))),
            Box::new(|| Ok(raw_fadd8(rt, raw, black_box(1))?)),
        ],
    )?;
    if rt.size() < 3 {
        return Ok(());
    }
    let [src, dst] = [1, 2].map(|rank| all[REGIONS as usize][rank]);
    let values = vec![7; LONG];
    for (names, words, ops) in [
        (["third_8b", "put_8b"], 1, 1000),
        (["third_8k", "put_8k"], 1024, 100),
        (["third_1m", "put_1m"], LONG, 2),
    ] {
        let third = || tell((0..ops).try_for_each(|_| global.copy(dst, src, words)).map(|()| 1));
        let put =
            || tell((0..ops).try_for_each(|_| global.put_slice(dst, &values[..words])).map(|()| 1));
        pair(names, ops, [Box::new(third), Box::new(put)])?;
    }
    Ok(())
}

fn tell(result: Result<u64, AddrError<GlobalAddr>>) -> Result<u64, Failure> {
    Ok(result.map_err(Error::from)?)
}

#[inline(never)]
fn get8(global: &Global, places: &[GlobalPtr<u64>]) -> Result<u64, AddrError<GlobalAddr>> {
    places.iter().try_fold(0, |sum: u64, place| Ok(sum.wrapping_add(global.get(*place)?)))
}

#[inline(never)]
fn raw_get8(rt: &Runtime, places: &[Remote<u64>]) -> Result<u64, AddrError> {
    places.iter().try_fold(0, |sum: u64, place| Ok(sum.wrapping_add(rt.get(*place)?)))
}

#[inline(never)]
fn put8(
    global: &Global,
    places: &[GlobalPtr<u64>],
    value: u64,
) -> Result<u64, AddrError<GlobalAddr>> {
    places.iter().try_for_each(|place| global.put(*place, value))?;
    Ok(places.len() as u64)
}

#[inline(never)]
fn raw_put8(rt: &Runtime, places: &[Remote<u64>], value: u64) -> Result<u64, AddrError> {
    places.iter().try_for_each(|place| rt.put(*place, value))?;
    Ok(places.len() as u64)
}

#[inline(never)]
fn fadd8(
    global: &Global,
    places: &[GlobalPtr<u64>],
    value: u64,
) -> Result<u64, AddrError<GlobalAddr>> {
    let mut sum = 0u64;
    for place in places {
        sum = sum.wrapping_add(global.fetch_add(*place, value)?);
    }
    Ok(sum)
}

#[inline(never)]
fn raw_fadd8(rt: &Runtime, places: &[Remote<u64>], value: u64) -> Result<u64, AddrError> {
    let mut sum = 0u64;
    for place in places {
        sum = sum.wrapping_add(rt.fetch_add(*place, value)?);
    }
    Ok(sum)
}

/// 1 MiB.
const LONG: usize = 1 << 17;
