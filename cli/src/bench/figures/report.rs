//! The report: what was measured for each figure, for a browser and for other programs.

use super::experiment::{Experiment, Missing, Number, is_peer};
use super::measurement::line;
use crate::args::{FiguresArgs, InfoArgs};
use crate::bench::plot::{Plot, Series};
use crate::bench::row::Row;
use crate::failure::Failure;
use crate::{info, text};
use serde_json::{Value as Json, json};
use std::ffi::OsString;

/// A report.
pub struct Report {
    pub machine: Json,
    pub figures: Vec<Shown>,
    pub missing: Vec<&'static Missing>,
    pub is_quick: bool,
}

/// A figure with what was measured for it.
pub struct Shown {
    pub experiment: &'static Experiment,
    /// The command that has measured it, if it needs one.
    pub command: Option<String>,
    pub plots: Vec<Plot>,
    pub numbers: Vec<Number>,
    /// What a reader has to know about the rows.
    pub notes: Vec<String>,
}

impl Report {
    /// `measured` has the rows of a measurement, its command, and why it has failed.
    pub fn new(
        args: &FiguresArgs,
        experiments: impl Iterator<Item = &'static Experiment>,
        missing: impl Iterator<Item = &'static Missing>,
        measured: impl Fn(&str) -> Option<(Vec<Row>, Vec<OsString>, Option<String>)>,
    ) -> Result<Self, Failure> {
        let shown = |experiment: &'static Experiment| {
            let found = experiment.from.and_then(&measured);
            let (rows, command, failure) = match found {
                Some((rows, command, failure)) => (rows, Some(line(&command)), failure),
                None => (Vec::new(), None, None),
            };
            let (plots, numbers) = ((experiment.plots)(&rows), (experiment.numbers)(&rows));
            let notes = notes(experiment, &rows, failure);
            Shown { experiment, command, plots, numbers, notes }
        };
        let machine = info::machine_json(&InfoArgs::default());
        let (figures, missing) = (experiments.map(shown).collect(), missing.collect());
        Ok(Self { machine, figures, missing, is_quick: args.quick || args.ops.is_some() })
    }

    /// The numbers of the papers and those that were measured here, for a terminal.
    pub fn text(&self) -> String {
        let mut all = String::new();
        for shown in self.figures.iter().filter(|shown| !shown.numbers.is_empty()) {
            let Experiment { paper, name, title, .. } = shown.experiment;
            let lines = shown
                .numbers
                .iter()
                .map(|number| vec![number.what.clone(), number.paper.clone(), number.here.clone()]);
            let table = text::table(&["", "the paper", "here"], lines);
            all += &format!("\n{}, {name}: {title}\n{table}", paper.name());
        }
        all + "\n"
    }

    /// The report for other programs.
    pub fn json(&self) -> Json {
        let series = |series: &Series| {
            let points = series.points.iter().map(|at| json!([at.x, at.y, at.low, at.high]));
            json!({ "name": series.name, "points": points.collect::<Vec<_>>() })
        };
        let plot = |plot: &Plot| {
            json!({
                "title": plot.title,
                "x": plot.x.name,
                "y": plot.y.name,
                "series": plot.series.iter().map(series).collect::<Vec<_>>(),
            })
        };
        let number = |number: &Number| json!({ "what": number.what, "paper": number.paper, "here": number.here });
        let figure = |shown: &Shown| {
            let one = shown.experiment;
            json!({
                "paper": one.paper.name(),
                "name": one.name,
                "title": one.title,
                "same": one.same,
                "differs": one.differs,
                "shows": one.shows,
                "command": shown.command,
                "notes": shown.notes,
                "numbers": shown.numbers.iter().map(number).collect::<Vec<_>>(),
                "plots": shown.plots.iter().map(plot).collect::<Vec<_>>(),
            })
        };
        let missing =
            |one: &&Missing| json!({ "paper": one.paper.name(), "name": one.name, "why": one.why });
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "quick": self.is_quick,
            "machine": self.machine,
            "points": "x, median, and the 95 % interval of the median",
            "figures": self.figures.iter().map(figure).collect::<Vec<_>>(),
            "missing": self.missing.iter().map(missing).collect::<Vec<_>>(),
        })
    }
}

fn notes(experiment: &Experiment, rows: &[Row], failure: Option<String>) -> Vec<String> {
    let mut notes: Vec<String> = failure.into_iter().map(|why| format!("Failed: {why}")).collect();
    if experiment.from.is_none() {
        return notes;
    }
    if rows.is_empty() {
        notes.push("Not measured yet.".to_owned());
        return notes;
    }
    let unsteady = rows.iter().filter(|row| !row.is_steady()).count();
    if unsteady > 0 {
        notes.push(format!(
            "The distance of the cores changed during {unsteady} of {} rows.",
            rows.len()
        ));
    }
    let is_crowded = |row: &Row| row.number("threads").is_some_and(|threads| threads >= cpus());
    if rows.iter().any(is_crowded) {
        notes.push(format!(
            "From {} threads on there are fewer cores than threads: {}.",
            cpus(),
            cpus()
        ));
    }
    if experiment.has_peers && !rows.iter().any(is_peer) {
        notes.push("No peer here (ci/peers.sh installs them).".to_owned());
    }
    notes
}

/// The number of CPUs that this command may use.
fn cpus() -> u64 {
    tsumugi::affinity::allowed().map_or(1, |cpus| cpus.len() as u64)
}
