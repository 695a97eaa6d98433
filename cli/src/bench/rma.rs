//! `tsumugi bench rma`: one-sided operations on 8 bytes.
//!
//! [`TARGETS`] places are chosen at random, so that no address, rank or region
//! is known to the compiler; a batch visits each once. Even the cheapest batch
//! is then a hundred times longer than a step of the clock.

use super::target::{Extent, TARGETS, Target, targets};
use super::{Progress, Row, bare, budget, chosen, row, sample::sample};
use crate::args::Measure;
use crate::failure::Failure;
use std::hint::black_box;
use tsumugi_core::sync::AtomicU64;

/// Measures the rows that `measure` wants.
pub fn rows(measure: &Measure) -> Result<Vec<Row>, Failure> {
    let names = chosen(measure.only.as_deref(), CATALOGUE)?;
    let extent = Extent { ranks: 2, regions: 2, words: WORDS };
    let memory: Vec<AtomicU64> =
        (0..extent.ranks as u64 * extent.regions as u64 * WORDS).map(AtomicU64::new).collect();
    let words: Vec<&AtomicU64> =
        targets(extent, black_box(SEED)).into_iter().map(|t| &memory[place(extent, t)]).collect();
    let progress = Progress::new();
    let params = format!(
        "ranks={} regions={} region_bytes={} targets={TARGETS}",
        extent.ranks,
        extent.regions,
        WORDS * 8
    );
    let measured = names.iter().map(|name| {
        progress.stage(name, 1);
        let budget = budget(measure);
        let ops = words.len() as u64;
        row("rma", "bare", name, params.clone(), || match *name {
            "bare_get8" => sample(budget, ops, || {
                black_box(bare::get8(&words));
            }),
            "bare_put8" => sample(budget, ops, || bare::put8(&words, black_box(1))),
            _ => sample(budget, ops, || {
                black_box(bare::fadd8(&words, black_box(1)));
            }),
        })
    });
    Ok(measured.collect())
}

fn place(extent: Extent, target: Target) -> usize {
    let region = target.rank as u64 * extent.regions as u64 + target.region as u64;
    (region * extent.words + target.word) as usize
}

const CATALOGUE: &[(&str, &str)] =
    &[("direct", "bare_get8"), ("direct", "bare_put8"), ("direct", "bare_fadd8")];
/// 32 KiB a region: what is measured is the call, not the cache.
const WORDS: u64 = 4096;
const SEED: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_measured_once() {
        let measure = Measure { only: None, quick: true, json: None, ops: Some(1) };
        let rows = rows(&measure).unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["bare_get8", "bare_put8", "bare_fadd8"]);
        assert!(rows.iter().all(|row| row.summary.min > 0.0));
    }
}
