//! Figures and tables of the papers: what is shown for each, and from which measurement.

use crate::bench::plot::Plot;
use crate::bench::row::Row;
use crate::paper::Paper;

/// A figure or a table.
#[derive(Debug)]
pub struct Experiment {
    pub paper: Paper,
    /// Its name in the paper.
    pub name: &'static str,
    pub title: &'static str,
    /// The measurement with its rows; `None`: it is computed.
    pub from: Option<&'static str>,
    /// What is the same as in the paper.
    pub same: &'static str,
    /// What differs.
    pub differs: &'static str,
    /// What it shows.
    pub shows: &'static str,
    /// Whether it has rows of peers, where they are installed.
    pub has_peers: bool,
    pub plots: fn(&[Row]) -> Vec<Plot>,
    pub numbers: fn(&[Row]) -> Vec<Number>,
}

/// A figure that has no command.
#[derive(Debug)]
pub struct Missing {
    pub paper: Paper,
    pub name: &'static str,
    /// Why.
    pub why: &'static str,
}

/// A number of the paper, and the one that was measured here.
#[derive(Clone, Debug)]
pub struct Number {
    pub what: String,
    pub paper: String,
    pub here: String,
}

impl Number {
    /// `here` is `None` if it was not measured.
    pub fn new(what: impl Into<String>, paper: impl Into<String>, here: Option<String>) -> Self {
        let here = here.unwrap_or_else(|| NOT_MEASURED.to_owned());
        Self { what: what.into(), paper: paper.into(), here }
    }

    pub fn is_measured(&self) -> bool {
        self.here != NOT_MEASURED
    }
}

const NOT_MEASURED: &str = "not measured";

impl Experiment {
    /// Whether these rows have a point or a number of this figure.
    pub fn is_in(&self, rows: &[Row]) -> bool {
        let has_points = |plot: &Plot| plot.series.iter().any(|series| !series.points.is_empty());
        (self.plots)(rows).iter().any(has_points)
            || (self.numbers)(rows).iter().any(Number::is_measured)
    }
}

/// The median of the row with this name and these parameters, in the row's unit.
pub fn median(rows: &[Row], system: &str, name: &str, params: &[(&str, &str)]) -> Option<f64> {
    let is_it = |row: &&Row| {
        let has = |(param, value): &(&str, &str)| row.word(param) == Some(*value);
        row.system == system && row.name == name && params.iter().all(has)
    };
    rows.iter().find(is_it).map(|row| row.summary.median)
}

/// Whether a row is one of a peer.
pub fn is_peer(row: &Row) -> bool {
    !OWN.contains(&&*row.system)
}

/// The systems that are not peers.
const OWN: [&str; 12] = [
    "tsumugi",
    "two_copy",
    "locked",
    "paper_rule",
    "rendezvous",
    "two_cores",
    "computing",
    "slots",
    "memory",
    "bare",
    "simulator",
    "the paper",
];

/// For an experiment that has only numbers.
pub fn no_plots(_: &[Row]) -> Vec<Plot> {
    Vec::new()
}

/// For an experiment without numbers in its paper.
pub fn no_numbers(_: &[Row]) -> Vec<Number> {
    Vec::new()
}
