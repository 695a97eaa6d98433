//! `tsumugi bench figures`: the figures and tables of the papers, measured on this machine, as
//! one report.
//!
//! ```text
//!  measurements (children) ─► rows ─► experiments: plots, numbers ─► report.html, report.json
//! ```
//!
//! The report is written after each measurement, so a run that is killed leaves what it had,
//! and goes on where it was. A figure of which no row was measured is a failure.
//!
//! | file | what it has |
//! |---|---|
//! | `measurement` | a benchmark that is run for its rows |
//! | `experiment` | what is shown for a figure |
//! | `engine`, `eager`, `acp`, `locks`, `pages` | the figures of a paper, S0 to S4 |
//! | `lines` | plots of rows |
//! | `report`, `html` | the report |

mod acp;
mod eager;
mod engine;
mod experiment;
mod html;
mod lines;
mod locks;
mod measurement;
mod pages;
mod report;

use self::experiment::{Experiment, Missing};
use self::measurement::Measurement;
use self::report::Report;
use crate::args::FiguresArgs;
use crate::failure::Failure;
use crate::paper::Paper;
use crate::progress::ProgressLine;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Measures what is not measured yet, and writes the report.
pub fn figures(args: &FiguresArgs) -> Result<String, Failure> {
    let rows_folder = args.folder.join("rows");
    fs::create_dir_all(&rows_folder).map_err(|error| Failure::write(&rows_folder, &error))?;
    let measurements: Vec<&Measurement> = of_papers(args, |one| one.measurements).collect();
    let (todo, done): (Vec<_>, Vec<_>) =
        measurements.into_iter().partition(|one| !one.is_done(args));
    let (progress, begin, mut failures) = (ProgressLine::new(), Instant::now(), BTreeMap::new());
    let planned: u64 = todo.iter().map(|one| one.planned(args)).sum();
    let mut left = planned;
    for (index, one) in todo.iter().enumerate() {
        let what = format!("{} of {}: {}", index + 1, todo.len(), one.name);
        let pace = pace(begin.elapsed().as_secs(), planned - left);
        let minutes = (left as f64 * pace / 60.0).ceil();
        progress.stage(&format!("{what}, about {minutes} min left"), one.planned(args));
        if let Err(failure) = measured(one, args, &progress) {
            let why = failure.to_string();
            progress.hidden(|| eprintln!("tsumugi: {why}"));
            failures.insert(one.name, why);
        }
        left -= one.planned(args);
        write(&report(args, &failures)?, &args.folder)?;
    }
    let report = report(args, &failures)?;
    write(&report, &args.folder)?;
    if let Some(why) = failures.values().next() {
        return Err(Failure::Failed(format!(
            "{} of {} measurements have failed: {why}",
            failures.len(),
            todo.len() + done.len()
        )));
    }
    Ok(format!("{}{}\n", report.text(), args.folder.join("report.html").display()))
}

/// Runs a measurement, which must have rows for each of its figures.
fn measured(one: &Measurement, args: &FiguresArgs, progress: &ProgressLine) -> Result<(), Failure> {
    one.run(args, progress)?;
    let rows = one.rows(args);
    let of_it = of_papers(args, |of| of.experiments).filter(|shown| shown.from == Some(one.name));
    let empty = of_it.filter(|shown| !shown.is_in(&rows));
    let empty: Vec<String> =
        empty.map(|shown| format!("{}, {}", shown.paper.name(), shown.name)).collect();
    if !empty.is_empty() {
        let command = measurement::line(&one.command(args));
        return Err(Failure::Failed(format!("{command}: no row of {}", empty.join("; "))));
    }
    one.keep(args)
}

/// How much longer the measurements take than planned, after some of them.
fn pace(took: u64, planned: u64) -> f64 {
    if planned == 0 { 1.0 } else { took as f64 / planned as f64 }
}

fn report(args: &FiguresArgs, failures: &BTreeMap<&str, String>) -> Result<Report, Failure> {
    Report::new(
        args,
        of_papers(args, |one| one.experiments),
        of_papers(args, |one| one.missing),
        |name| {
            let one = of_papers(args, |one| one.measurements).find(|one| one.name == name)?;
            Some((one.rows(args), one.command(args), failures.get(name).cloned()))
        },
    )
}

/// Writes both files.
fn write(report: &Report, folder: &Path) -> Result<(), Failure> {
    let html =
        html::page(report).map_err(|error| Failure::Failed(format!("the report: {error}")))?;
    for (name, text) in [("report.html", html), ("report.json", format!("{:#}\n", report.json()))] {
        let (path, new) = (folder.join(name), folder.join(format!("{name}.new")));
        fs::write(&new, text).map_err(|error| Failure::write(&new, &error))?;
        fs::rename(&new, &path).map_err(|error| Failure::write(&path, &error))?;
    }
    Ok(())
}

/// The parts of a report that belong to a paper.
struct OfPaper {
    measurements: &'static [Measurement],
    experiments: &'static [Experiment],
    missing: &'static [Missing],
}

fn of_papers<T: 'static>(
    args: &FiguresArgs,
    part: impl Fn(OfPaper) -> &'static [T],
) -> impl Iterator<Item = &'static T> {
    let papers =
        Paper::ALL.into_iter().filter(|paper| args.paper.is_none_or(|only| only == *paper));
    papers.flat_map(move |paper| part(of_paper(paper)))
}

fn of_paper(paper: Paper) -> OfPaper {
    let (measurements, experiments, missing) = match paper {
        Paper::S0 => (engine::MEASUREMENTS, engine::EXPERIMENTS, engine::MISSING),
        Paper::S1 => (eager::MEASUREMENTS, eager::EXPERIMENTS, eager::MISSING),
        Paper::S2 => (acp::MEASUREMENTS, acp::EXPERIMENTS, acp::MISSING),
        Paper::S3 => (locks::MEASUREMENTS, locks::EXPERIMENTS, locks::MISSING),
        Paper::S4 => (pages::MEASUREMENTS, pages::EXPERIMENTS, pages::MISSING),
    };
    OfPaper { measurements, experiments, missing }
}

#[cfg(test)]
mod tests;
