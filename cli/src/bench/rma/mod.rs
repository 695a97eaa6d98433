//! `tsumugi bench rma`: one-sided operations, directly and through an engine.
//!
//! | group | what is measured |
//! |---|---|
//! | `direct` | blocking calls beside bare loops on the same memory |
//! | `global` | the same words by global addresses, copies between other ranks |
//! | `delegate` | the same words under a try-lock, alone and contended |
//! | `offload` | a communication thread: cost of a submit, latency |
//! | `requesters` | operations a second through the thread, by number of requesters |
//! | `variants` | the paper's other designs: which side takes tags, how the executor waits |
//! | `figures` | the paper's latency, overhead and rate by threads and sizes |
//!
//! Requesters run on the first CPU of the cpuset and the communication thread on the
//! second, so that all their communication crosses cores. Every number is measured
//! between two measurements of the cache-line trip, during which nothing else of
//! this program runs.

mod bars;
mod bed;
mod bench;
mod crew;
mod delegate;
mod direct;
mod figures;
mod global;
mod listing;
mod offload;
mod paper;
mod requesters;
mod variants;
mod wake;

pub use bars::bars;
pub use paper::{FIGURES, numbers};

use self::bed::TestBed;
use self::bench::{BYTES_MAX, REGIONS, RmaBench, SEED, WORDS};
use super::catalogue::Group;
use super::row::Row;
use super::row_writer::RowWriter;
use super::target::{Extent, TARGETS, WordTarget, targets};
use crate::args::MeasureArgs;
use crate::failure::Failure;
use std::hint::black_box;
use tsumugi::affinity;
use tsumugi::{Error, Rank, Remote, Runtime, Shared};

/// Ranks of the job: one measures, the others sleep.
pub const RANKS: u32 = 3;

/// The rows of this figure.
pub const CATALOGUE: &[Group] = &[
    direct::GROUP,
    global::GROUP,
    delegate::GROUP,
    offload::GROUP,
    wake::GROUP,
    requesters::GROUP,
    variants::GROUP,
    figures::GROUP,
];

/// The work of each rank; rank 0 measures the rows `names`, and returns them.
pub fn rank(
    rt: &Runtime,
    names: &[&'static str],
    measure: &MeasureArgs,
) -> Result<Vec<Row>, Failure> {
    if rt.size() < 2 {
        return Err(Failure::Usage("bench rma needs 2 ranks or more".to_owned()));
    }
    let regions = (0..REGIONS).map(|_| rt.share::<u64>(WORDS as usize));
    let regions: Vec<Shared<u64>> = regions.collect::<Result<_, Error>>()?;
    let wants_long = figures::GROUP.rows.iter().any(|row| names.contains(row));
    let long = wants_long.then(|| rt.share::<u8>(BYTES_MAX)).transpose()?;
    let wants_global = global::GROUP.rows.iter().any(|row| names.contains(row));
    let arrays = wants_global.then(|| global::Arrays::new(rt)).transpose()?;
    rt.barrier()?;
    let rows = match rt.rank() {
        Rank(0) => measure_all(rt, &regions, (long.as_ref(), arrays.as_ref()), names, measure)?,
        _ => Vec::new(),
    };
    rt.barrier()?;
    Ok(rows)
}

fn measure_all(
    rt: &Runtime,
    regions: &[Shared<u64>],
    (long, arrays): (Option<&Shared<u8>>, Option<&global::Arrays>),
    names: &[&'static str],
    measure: &MeasureArgs,
) -> Result<Vec<Row>, Failure> {
    let extent = Extent { ranks: rt.size() - 1, regions: REGIONS, words: WORDS };
    let place = |WordTarget { rank, region, word }: WordTarget| {
        regions[region as usize].at(Rank(rank + 1), word as usize)
    };
    let places: Vec<Remote<u64>> =
        targets(extent, black_box(SEED)).into_iter().map(place).collect();
    let params = format!(
        "peers={} regions={REGIONS} region_bytes={} targets={TARGETS}",
        extent.ranks,
        WORDS * 8
    );
    let allowed = affinity::allowed()
        .map_err(|error| Failure::Failed(format!("the cpuset cannot be read: {error}")))?;
    let cpus = [allowed[0], *allowed.get(1).unwrap_or(&allowed[0])];
    let rows = RowWriter::new(measure.json.as_deref(), measure.csv.as_deref())?;
    let bench = RmaBench { rt, places: &places, params, long, names, measure, rows, cpus };
    direct::measure(&bench)?;
    if let Some(arrays) = arrays {
        global::measure(&bench, arrays)?;
    }
    // SAFETY: the operations that it carries out are on words, or have as their
    // local end memory that `Local` has registered.
    let mut bed = TestBed::new(unsafe { rt.load_store() });
    for group in [
        delegate::measure,
        offload::measure,
        wake::measure,
        requesters::measure,
        variants::measure,
        figures::measure,
    ] {
        group(&bench, &mut bed)?;
    }
    bench.rows.end()
}

#[cfg(test)]
mod tests;
