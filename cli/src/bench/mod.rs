//! `tsumugi bench`: measured numbers, with the data that is needed to judge them.
//!
//! ```text
//!  line trip ─► batches, contenders by turns ─► line trip ─► rows ─► table, JSON
//! ```
//!
//! Each figure has a catalogue of rows and defines the work of its ranks; rank 0
//! measures.

mod bar;
mod bare;
mod far;
mod gas;
mod line;
mod lock;
mod message;
mod pinned;
mod plot;
mod program;
mod rma;
mod row;
mod sample;
mod table;
mod target;
mod ult;

use self::plot::Plot;
use self::row::Row;
use self::sample::{Budget, Contender, sample};
use crate::args::{self, Compare, Compared, Figure};
use crate::failure::Failure;
use crate::job;
use crate::progress::Progress;
use crate::summary::{self, Summary};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tsumugi::Config;
use tsumugi::config::Bind;
use tsumugi::pvas::launch::Guardian;
use tsumugi_bench_ult::System;

pub use self::line::trip_ns;

/// Rows that are measured together or not at all.
#[derive(Debug)]
struct Group {
    name: &'static str,
    rows: &'static [&'static str],
}

/// Rows of contenders that were measured by turns.
#[derive(Clone, Debug)]
struct Measured {
    rows: Vec<Row>,
    /// The time by which the first takes longer than the second.
    over: Option<Over>,
}

/// Differences of two batches of the same round: the median, and the 1st and 99th
/// percentiles.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Over {
    p1: f64,
    median: f64,
    p99: f64,
}

/// Runs the benchmark, and returns the tables if this process has them.
pub fn bench(bench: &args::Bench) -> Result<String, Failure> {
    match &bench.figure {
        Figure::Rma(measure) => one_sided(measure),
        Figure::Far(measure) => between_nodes(measure),
        Figure::Ult(ults) => ult::measure(ults, &[]),
        Figure::Lock(locks) => {
            let Some(rows) = lock::measure(locks)? else { return Ok(String::new()) };
            let figures = lock::FIGURES.iter();
            let plots = figures.filter_map(|one| Some((one.name, one.plot(&rows)?)));
            keep_all(&locks.measure, &rows, plots)?;
            Ok(lock::text(&rows))
        }
        Figure::Message(messages) => {
            let Some(outcome) = message::message(messages)? else { return Ok(String::new()) };
            let figures = message::FIGURES.iter();
            let plots = figures.filter_map(|one| Some((one.name, one.plot(&outcome.rows)?)));
            keep_all(&messages.measure, &outcome.rows, plots)?;
            Ok(outcome.text)
        }
        Figure::Gas(measure) => pages(measure),
        Figure::Program(measure) => programs(measure),
    }
}

/// Like [`bench`], beside the systems `peers`.
pub fn compare(compare: &Compare, peers: &[System]) -> Result<String, Failure> {
    let Compared::Ult(ults) = &compare.figure;
    ult::measure(ults, peers)
}

fn one_sided(measure: &args::Measure) -> Result<String, Failure> {
    let names = chosen(measure.only.as_deref(), rma::CATALOGUE)?;
    if !job::is_rank() {
        return job::run_self(rma::RANKS);
    }
    // One worker, and unbound: the measured threads bind themselves to the CPUs that
    // they need.
    let config = Config { bind: Some(Bind::None), ..job::config(Some(1))? };
    let measured = config.run(|rt| rma::rank(rt, &names, measure))?;
    let rows: Vec<Row> = measured.iter().flat_map(|measured| measured.rows.clone()).collect();
    if rows.is_empty() {
        return Ok(String::new());
    }
    let plots = rma::FIGURES.iter().filter_map(|one| Some((one.name, one.plot(&rows)?)));
    keep_all(measure, &rows, plots)?;
    // Rows with hundreds of points are shown as tables of their own.
    let (plotted, listed): (Vec<Row>, Vec<Row>) = rows.iter().cloned().partition(rma::is_plotted);
    let plots = rma::FIGURES.iter().filter_map(|figure| Some((figure, figure.plot(&plotted)?)));
    let figures: String = plots.map(|(figure, plot)| table::figure(figure.name, &plot)).collect();
    let overheads = table::overheads(&measured);
    Ok(table::table(&listed) + &overheads + &figures + &rma::numbers(&rows) + &rma::bars(&rows))
}

fn between_nodes(measure: &args::Measure) -> Result<String, Failure> {
    let names = chosen(measure.only.as_deref(), far::CATALOGUE)?;
    if !job::is_rank() {
        return Err(Failure::Usage(far::USAGE.to_owned()));
    }
    let config = Config { bind: Some(Bind::None), ..job::config(Some(1))? };
    let measured = config.run(|rt| far::rank(rt, &names, measure))?;
    let rows: Vec<Row> = measured.into_iter().flat_map(|measured| measured.rows).collect();
    if rows.is_empty() {
        return Ok(String::new());
    }
    keep_all(measure, &rows, std::iter::empty())?;
    Ok(table::table(&rows))
}

fn pages(measure: &args::Measure) -> Result<String, Failure> {
    let names = chosen(measure.only.as_deref(), gas::CATALOGUE)?;
    if !job::is_rank() {
        return job::run_self(gas::ranks(&names));
    }
    let config = Config { bind: Some(Bind::None), ..job::config(Some(1))? };
    let rows = config.run(|rt| gas::rank(rt, &names, measure))?;
    if rows.is_empty() {
        return Ok(String::new());
    }
    let plot = gas::plot(&rows);
    keep_all(measure, &rows, plot.iter().map(|(name, plot)| (name.as_str(), plot.clone())))?;
    Ok(table::table(&rows) + &gas::paper(&rows) + &gas::trips(&rows) + &gas::bars(&rows))
}

fn programs(measure: &args::Measure) -> Result<String, Failure> {
    let names = chosen(measure.only.as_deref(), program::CATALOGUE)?;
    if !job::is_rank() {
        return job::run_self(program::RANKS);
    }
    let rows = job::config(None)?.run(|rt| program::rank(rt, &names, measure))?;
    if rows.is_empty() {
        return Ok(String::new());
    }
    keep_all(measure, &rows, std::iter::empty())?;
    Ok(table::table(&rows) + &program::bars(&rows))
}

/// A guardian, which ends the processes and removes the folder of a benchmark when
/// this process dies.
fn guardian(name: &str) -> Result<Guardian, Failure> {
    let guardian = Guardian::start(Some(name));
    guardian.map_err(|error| Failure::Failed(error.to_string()))
}

/// Writes the rows and figures to the files that the arguments name.
fn keep_all<'a>(
    measure: &args::Measure,
    rows: &[Row],
    plots: impl Iterator<Item = (&'a str, Plot)>,
) -> Result<(), Failure> {
    keep(rows, measure.json.as_deref(), measure.csv.as_deref())?;
    match &measure.svg {
        Some(folder) => draw(folder, plots),
        None => Ok(()),
    }
}

/// Writes the rows for other programs.
fn keep(rows: &[Row], json: Option<&Path>, csv: Option<&Path>) -> Result<(), Failure> {
    if let Some(path) = json {
        write(path, &row::json(rows))?;
    }
    if let Some(path) = csv {
        write(path, &row::csv(rows))?;
    }
    Ok(())
}

/// Draws the figures.
fn draw<'a>(folder: &Path, plots: impl Iterator<Item = (&'a str, Plot)>) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::write(folder, &error))?;
    for (name, plot) in plots {
        let path = folder.join(name).with_extension("svg");
        let svg =
            plot.svg().map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
        write(&path, &svg)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::write(path, &error))
}

/// The rows that the arguments select.
fn chosen(only: Option<&str>, catalogue: &[Group]) -> Result<Vec<&'static str>, Failure> {
    let every = catalogue.iter().flat_map(|group| group.rows.iter().map(|row| (group.name, *row)));
    let Some(only) = only else { return Ok(every.map(|(_, row)| row).collect()) };
    let wanted = every.clone().filter(|(group, row)| only == *group || only == *row);
    let wanted: Vec<&str> = wanted.map(|(_, row)| row).collect();
    if wanted.is_empty() {
        let mut known: Vec<&str> = every.flat_map(|(group, row)| [group, row]).collect();
        known.sort_unstable();
        known.dedup();
        let known = known.join(", ");
        return Err(Failure::Usage(format!("--only '{only}': no such row; rows: {known}")));
    }
    Ok(wanted)
}

/// The time or number of operations for each row.
fn budget(measure: &args::Measure) -> Budget {
    match (measure.ops, measure.quick) {
        (Some(ops), _) => Budget::Operations(ops),
        (None, false) => Budget::Time(Duration::from_millis(1000)),
        (None, true) => Budget::Time(Duration::from_millis(100)),
    }
}

/// Measures `contenders`, each with batches of `ops` operations, between two
/// measurements of the cache-line trip.
fn measure(
    figure: &str,
    params: &str,
    budget: Budget,
    ops: u64,
    contenders: &mut [Contender<'_>],
) -> Result<Measured, Failure> {
    let line_ns_before = trip_ns();
    let mut samples = sample(budget, ops, contenders)?;
    let line_ns_after = trip_ns();
    let over = match &samples[..] {
        [first, second] => Some(over(first, second)),
        _ => None,
    };
    let rows = contenders.iter().zip(&mut samples).map(|(contender, samples)| Row {
        figure: figure.to_owned(),
        system: contender.system.to_owned(),
        name: contender.name.to_owned(),
        params: params.to_owned(),
        unit: "ns".to_owned(),
        summary: Summary::of(samples).expect("at least one batch ran"),
        line_ns_before,
        line_ns_after,
    });
    Ok(Measured { rows: rows.collect(), over })
}

/// The differences between `first` and `second`, round by round.
fn over(first: &[f64], second: &[f64]) -> Over {
    let mut more: Vec<f64> =
        first.iter().zip(second).map(|(first, second)| first - second).collect();
    more.sort_unstable_by(f64::total_cmp);
    let quantile = |percent| summary::quantile(&more, percent);
    Over { p1: quantile(1), median: quantile(50), p99: quantile(99) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOGUE: &[Group] = &[
        Group { name: "direct", rows: &["get8", "put8"] },
        Group { name: "ring", rows: &["push"] },
    ];

    #[test]
    fn a_row_or_a_group_may_be_chosen() {
        assert_eq!(chosen(None, CATALOGUE).unwrap(), ["get8", "put8", "push"]);
        assert_eq!(chosen(Some("direct"), CATALOGUE).unwrap(), ["get8", "put8"]);
        assert_eq!(chosen(Some("push"), CATALOGUE).unwrap(), ["push"]);
    }

    #[test]
    fn an_unknown_row_is_refused_with_the_known_ones() {
        let failure = chosen(Some("get9"), CATALOGUE).unwrap_err();
        assert_eq!(failure.exit_code(), 2);
        let said = failure.to_string();
        assert!(said.contains("'get9'") && said.contains("direct, get8, push, put8, ring"));
    }

    #[test]
    fn the_overhead_is_the_difference_within_a_round() {
        // A drift of the machine that affects both does not appear.
        let first: Vec<f64> = (0..1000).map(|round| f64::from(round) + 2.5).collect();
        let second: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(over(&first, &second), Over { p1: 2.5, median: 2.5, p99: 2.5 });
    }

    #[test]
    fn contenders_have_a_row_each() {
        let contender = |system, name| Contender { system, name, batch: Box::new(|| Ok(1)) };
        let mut contenders = [contender("tsumugi", "get8"), contender("bare", "bare_get8")];
        let measured = measure("rma", "", Budget::Operations(2), 1, &mut contenders).unwrap();
        let names: Vec<&str> = measured.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!((names, measured.over.is_some()), (vec!["get8", "bare_get8"], true));
        let measured = measure("rma", "", Budget::Operations(2), 1, &mut contenders[..1]).unwrap();
        assert_eq!((measured.rows.len(), measured.over), (1, None));
    }
}
