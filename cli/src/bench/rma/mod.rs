//! `tsumugi bench rma`: one-sided operations, directly and through an engine.
//!
//! | group | what is measured |
//! |---|---|
//! | `direct` | blocking calls beside bare loops on the same memory |
//! | `global` | the same words by global addresses, copies between others |
//! | `delegate` | the same words under a try-lock, alone and contended |
//! | `offload` | a communication thread: cost of a submit, latency |
//! | `requesters` | operations a second through it, by requesters |
//! | `variants` | the paper's other ways: who takes tags, how the executor waits |
//! | `figures` | the paper's latency, overhead and rate by threads and sizes |
//!
//! Requesters run on the first CPU of the cpuset, the communication thread on
//! the second, so that all that they say to each other crosses cores. Every
//! number is taken between two trips of a cache line, with nothing else of
//! ours running during those.

mod bars;
mod bed;
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
pub use paper::{FIGURES, is_plotted, numbers};

use self::bed::Bed;
use super::pinned::Pinned;
use super::row::Row;
use super::target::{Extent, TARGETS, Target, targets};
use super::{Group, Measured, Progress, trip_ns};
use crate::args::Measure;
use crate::failure::Failure;
use crate::summary::Summary;
use std::hint::black_box;
use tsumugi::affinity;
use tsumugi::{Error, Rank, Remote, Runtime, Shared};

/// Ranks of the job: one measures, the others sleep.
pub const RANKS: u32 = 3;

/// What there is to measure.
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

/// What the measuring rank has.
struct Bench<'a> {
    rt: &'a Runtime,
    /// The words that are read and written, one for each operation of a batch.
    places: &'a [Remote<u64>],
    /// What those are, for the rows.
    params: String,
    /// The first [`figures::BYTES_MAX`] bytes of them are the figures' messages.
    long: Option<&'a Shared<u8>>,
    names: &'a [&'static str],
    measure: &'a Measure,
    progress: Progress,
    /// The CPU of the requesters, and that of the communication thread.
    cpus: [usize; 2],
}

/// What each rank does; rank 0 measures the rows `names`.
pub fn rank(
    rt: &Runtime,
    names: &[&'static str],
    measure: &Measure,
) -> Result<Vec<Measured>, Failure> {
    if rt.size() < 2 {
        return Err(Failure::Usage("bench rma needs 2 ranks or more".to_owned()));
    }
    let regions = (0..REGIONS).map(|_| rt.share::<u64>(WORDS as usize));
    let regions: Vec<Shared<u64>> = regions.collect::<Result<_, Error>>()?;
    let wants_long = figures::GROUP.rows.iter().any(|row| names.contains(row));
    let long = wants_long.then(|| rt.share::<u8>(figures::BYTES_MAX)).transpose()?;
    let wants_global = global::GROUP.rows.iter().any(|row| names.contains(row));
    let arrays = wants_global.then(|| global::Arrays::new(rt)).transpose()?;
    rt.barrier()?;
    let measured = match rt.rank() {
        Rank(0) => measure_all(rt, &regions, (long.as_ref(), arrays.as_ref()), names, measure)?,
        _ => Vec::new(),
    };
    rt.barrier()?;
    Ok(measured)
}

fn measure_all(
    rt: &Runtime,
    regions: &[Shared<u64>],
    (long, arrays): (Option<&Shared<u8>>, Option<&global::Arrays>),
    names: &[&'static str],
    measure: &Measure,
) -> Result<Vec<Measured>, Failure> {
    let extent = Extent { ranks: rt.size() - 1, regions: REGIONS, words: WORDS };
    let place = |Target { rank, region, word }: Target| {
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
    let progress = Progress::new();
    let bench = Bench { rt, places: &places, params, long, names, measure, progress, cpus };
    let mut measured = direct::measure(&bench)?;
    if let Some(arrays) = arrays {
        measured.extend(global::measure(&bench, arrays)?);
    }
    // SAFETY: what is carried out by it is on words, or has memory that `Local`
    // has registered for it as its local end.
    let mut bed = Bed::new(unsafe { rt.load_store() });
    for group in [
        delegate::measure,
        offload::measure,
        wake::measure,
        requesters::measure,
        variants::measure,
        figures::measure,
    ] {
        measured.extend(group(&bench, &mut bed)?);
    }
    Ok(measured)
}

impl Bench<'_> {
    fn wants(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Runs `measure`, on the requesters' CPU, between two trips of a line.
    fn between_trips<T>(
        &self,
        measure: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<Timed<T>, Failure> {
        let before = trip_ns();
        let pinned = Pinned::to(self.cpus[0]);
        let value = measure()?;
        drop(pinned);
        Ok(Timed { value, before, after: trip_ns() })
    }
}

/// What was measured between two trips.
struct Timed<T> {
    value: T,
    before: Option<f64>,
    after: Option<f64>,
}

impl<T> Timed<T> {
    /// Samples of it as a row; `None` if there are none.
    fn row(&self, name: &str, params: &str, samples: &mut [f64]) -> Option<Row> {
        Some(Row {
            figure: "rma".to_owned(),
            system: "tsumugi".to_owned(),
            name: name.to_owned(),
            params: params.to_owned(),
            unit: "ns".to_owned(),
            summary: Summary::of(samples)?,
            line_ns_before: self.before,
            line_ns_after: self.after,
        })
    }
}

fn alone(row: Option<Row>) -> Option<Measured> {
    row.map(|row| Measured { rows: vec![row], over: None })
}

const REGIONS: u32 = 4;
/// 32 KiB a region: what is measured is the call, not the memory.
const WORDS: u64 = 4096;
const SEED: u64 = 20;

#[cfg(test)]
mod tests;
