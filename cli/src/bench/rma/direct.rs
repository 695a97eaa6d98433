//! Blocking calls on 8 bytes beside bare loops.
//!
//! A batch visits each of [`TARGETS`](crate::bench::target::TARGETS) places in the
//! memory of the other ranks, which sleep. The places are random, so that the
//! compiler knows no address, rank or region. Even the cheapest batch is then a
//! hundred times longer than a step of the clock.
//!
//! The bare loops access the same words by pointers that were resolved once, and
//! take turns with our calls.

use super::super::sample::{Batch, Contender};
use super::bench::RmaBench;
use crate::bench::bare;
use crate::bench::catalogue::Group;
use crate::bench::measured::{self, budget};
use crate::failure::Failure;
use std::hint::black_box;
use tsumugi::{AddrError, Remote, Runtime};
use tsumugi_core::sync::AtomicU64;

pub const GROUP: Group = Group {
    name: "direct",
    rows: &["get8", "bare_get8", "put8", "bare_put8", "fadd8", "bare_fadd8"],
};

pub fn measure(bench: &RmaBench<'_>) -> Result<(), Failure> {
    let (rt, places) = (bench.rt, bench.places);
    let words = places.iter().map(|place| {
        let word = rt.pointer(*place)?;
        // SAFETY: the word is registered until all ranks have passed the barrier
        // after the measurement, it is aligned, and it is only accessed as an
        // atomic.
        Ok(unsafe { AtomicU64::from_ptr(word.as_ptr()) })
    });
    let words: Vec<&AtomicU64> = words.collect::<Result<_, AddrError>>()?;
    let ours = |name, batch| Contender { system: "tsumugi", name, batch };
    let bare = |name, batch| Contender { system: "bare", name, batch };
    let words = &words[..];
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
    for pair in pairs {
        let mut wanted: Vec<_> =
            pair.into_iter().filter(|contender| bench.wants(contender.name)).collect();
        let Some(first) = wanted.first() else { continue };
        bench.rows.progress.stage(first.name, 1);
        let ops = places.len() as u64;
        let (params, budget) = (&bench.params, budget(bench.measure));
        bench.rows.write_measured(measured::measure("rma", params, budget, ops, &mut wanted)?)?;
    }
    Ok(())
}

/// Gets every word; returns their sum.
#[inline(never)]
fn get8(rt: &Runtime, places: &[Remote<u64>]) -> Result<u64, AddrError> {
    places.iter().try_fold(0, |sum: u64, place| Ok(sum.wrapping_add(rt.get(*place)?)))
}

/// Puts to every word; returns their number.
#[inline(never)]
fn put8(rt: &Runtime, places: &[Remote<u64>], value: u64) -> Result<u64, AddrError> {
    places.iter().try_for_each(|place| rt.put(*place, value))?;
    Ok(places.len() as u64)
}

/// Adds to every word; returns the sum of the old values.
#[inline(never)]
fn fadd8(rt: &Runtime, places: &[Remote<u64>], value: u64) -> Result<u64, AddrError> {
    places.iter().try_fold(0, |sum: u64, place| Ok(sum.wrapping_add(rt.fetch_add(*place, value)?)))
}
