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
mod catalogue;
mod far;
mod gas;
mod line;
mod lock;
mod measured;
mod message;
mod output;
mod pinned;
mod plot;
mod program;
mod rma;
mod row;
mod sample;
mod table;
mod target;
mod ult;

use self::catalogue::chosen;
use self::output::keep_all;
use self::row::Row;
use crate::args::{self, BenchFigure, CompareArgs, Compared};
use crate::failure::Failure;
use crate::job;
use tsumugi::Config;
use tsumugi::config::Bind;
use tsumugi_bench_ult::System;

pub use self::line::trip_ns;

/// Runs the benchmark, and returns the tables if this process has them.
pub fn bench(bench: &args::BenchArgs) -> Result<String, Failure> {
    let Some(figure) = &bench.figure else { return Ok(list()) };
    match figure {
        BenchFigure::Rma(measure) => one_sided(measure),
        BenchFigure::Far(measure) => between_nodes(measure),
        BenchFigure::Ult(ults) => ult::measure(ults, &[]),
        BenchFigure::Lock(locks) => {
            let Some(rows) = lock::measure(locks)? else { return Ok(String::new()) };
            let figures = lock::FIGURES.iter();
            let plots = figures.filter_map(|one| Some((one.name, one.plot(&rows)?)));
            keep_all(&locks.measure, &rows, plots)?;
            Ok(lock::text(&rows))
        }
        BenchFigure::Message(messages) => {
            let Some(outcome) = message::message(messages)? else { return Ok(String::new()) };
            let figures = message::FIGURES.iter();
            let plots = figures.filter_map(|one| Some((one.name, one.plot(&outcome.rows)?)));
            keep_all(&messages.measure, &outcome.rows, plots)?;
            Ok(outcome.text)
        }
        BenchFigure::Gas(measure) => pages(measure),
        BenchFigure::Program(measure) => programs(measure),
    }
}

/// The rows of all figures, by groups.
fn list() -> String {
    let figures = [
        ("rma", rma::CATALOGUE),
        ("far", far::CATALOGUE),
        ("ult", ult::CATALOGUE),
        ("message", message::CATALOGUE),
        ("lock", lock::CATALOGUE),
        ("gas", gas::CATALOGUE),
        ("program", program::CATALOGUE),
    ];
    let mut text = String::new();
    for (figure, groups) in figures {
        for group in groups {
            text += &format!("{figure} {}: {}\n", group.name, group.rows.join(" "));
        }
    }
    text
}

/// Like [`bench`], beside the systems `peers`.
pub fn compare(compare: &CompareArgs, peers: &[System]) -> Result<String, Failure> {
    let Compared::Ult(ults) = &compare.figure;
    ult::measure(ults, peers)
}

fn one_sided(measure: &args::MeasureArgs) -> Result<String, Failure> {
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

fn between_nodes(measure: &args::MeasureArgs) -> Result<String, Failure> {
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

fn pages(measure: &args::MeasureArgs) -> Result<String, Failure> {
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

fn programs(measure: &args::MeasureArgs) -> Result<String, Failure> {
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
