//! `tsumugi bench`: measured numbers, with the data that is needed to judge them.
//!
//! ```text
//!  line trip ─► batches, contenders by turns ─► line trip ─► rows: lines, JSON, CSV
//! ```
//!
//! Each figure has a catalogue of rows and defines the work of its ranks; rank 0
//! measures. Rows are shown as they are measured, figures and comparisons at the end.

mod bar;
mod bare;
mod catalogue;
mod drawing;
mod far;
mod figures;
mod gas;
mod line;
mod lock;
mod measured;
mod message;
mod pinned;
mod plot;
mod program;
mod rma;
mod row;
mod row_writer;
mod sample;
mod table;
mod target;
mod ult;

use self::catalogue::chosen;
use crate::args::{self, BenchFigure, CompareArgs, Compared};
use crate::failure::Failure;
use crate::job;
use tsumugi::config::Bind;
use tsumugi_bench_ult::System;

pub use self::drawing::draw;
use self::line::trip_ns;
pub use self::plot::{Axis, Plot, Point, Series};

/// Runs the benchmark; returns the figures and comparisons, if this process has them.
pub fn bench(bench: &args::BenchArgs) -> Result<String, Failure> {
    let Some(figure) = &bench.figure else { return Ok(list()) };
    match figure {
        BenchFigure::Rma(measure) => one_sided(measure),
        BenchFigure::Far(measure) => between_nodes(measure),
        BenchFigure::Ult(ults) => ult::measure(ults, &[]),
        BenchFigure::Lock(locks) => lock::measure(locks),
        BenchFigure::Message(messages) => message::message(messages),
        BenchFigure::Gas(measure) => pages(measure),
        BenchFigure::Program(measure) => programs(measure),
        BenchFigure::Figures(report) => figures::figures(report),
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
    let config = job::config(Some(1))?.bind(Bind::None);
    let rows = config.run(|rt| rma::rank(rt, &names, measure))?;
    if rows.is_empty() {
        return Ok(String::new());
    }
    let plots = rma::FIGURES.iter().filter_map(|one| Some((one.name, one.plot(&rows)?)));
    draw(measure.svg.as_deref(), plots.clone())?;
    let figures: String = plots.map(|(name, plot)| table::figure(name, &plot)).collect();
    Ok(figures + &rma::numbers(&rows) + &rma::bars(&rows))
}

fn between_nodes(measure: &args::MeasureArgs) -> Result<String, Failure> {
    let names = chosen(measure.only.as_deref(), far::CATALOGUE)?;
    if !job::is_rank() {
        return Err(Failure::Usage(far::USAGE.to_owned()));
    }
    let config = job::config(Some(1))?.bind(Bind::None);
    config.run(|rt| far::rank(rt, &names, measure))?;
    Ok(String::new())
}

fn pages(measure: &args::MeasureArgs) -> Result<String, Failure> {
    let names = chosen(measure.only.as_deref(), gas::CATALOGUE)?;
    if !job::is_rank() {
        return job::run_self(gas::ranks(&names));
    }
    let config = job::config(Some(1))?.bind(Bind::None);
    let rows = config.run(|rt| gas::rank(rt, &names, measure))?;
    if rows.is_empty() {
        return Ok(String::new());
    }
    let plot = gas::plot(&rows);
    let plots = plot.iter().map(|(name, plot)| (name.as_str(), plot.clone()));
    draw(measure.svg.as_deref(), plots)?;
    Ok(gas::paper(&rows) + &gas::trips(&rows) + &gas::bars(&rows))
}

fn programs(measure: &args::MeasureArgs) -> Result<String, Failure> {
    let names = chosen(measure.only.as_deref(), program::CATALOGUE)?;
    if !job::is_rank() {
        return job::run_self(program::RANKS);
    }
    let rows = job::config(None)?.run(|rt| program::rank(rt, &names, measure))?;
    Ok(program::bars(&rows))
}
