//! `tsumugi bench lock`: locks, in three settings.
//!
//! | group | what is measured |
//! |---|---|
//! | `alone` | lock and unlock without contention, beside one blocking fetch-and-add |
//! | `processes` | all ranks of a job at once: all targets, each its neighbour, atomics on one word, the paper's two stencils |
//! | `simulated` | all ranks of a machine of up to 663,552 ranks lock all targets |
//!
//! The first two groups run in jobs of processes, which this command starts from its
//! own executable.

mod bars;
mod job;
mod rows;
mod simulated;
mod together;

use super::catalogue::{Group, chosen};
use super::drawing::draw;
use super::plot::{Axis, Plot, Point, Series};
use super::row::Row;
use super::row_writer::RowWriter;
use super::table;
use crate::args;
use crate::failure::Failure;
use crate::summary::Summary;

pub const CATALOGUE: &[Group] = &[
    Group { name: "alone", rows: &["fetch_add", "shared_uncontended", "exclusive_uncontended"] },
    Group { name: "processes", rows: &together::TOGETHER },
    Group {
        name: "simulated",
        rows: &[
            "lock_all_cold",
            "lock_all_warm",
            "exclusive_after_all",
            "exclusive_parallel",
            "paper",
            "paper_by_rank",
            "paper_by_hops",
            "paper_fetch_add",
        ],
    },
];

/// Measures; returns figures and comparisons, an empty text if this process is one of
/// the measured ranks.
pub fn measure(locks: &args::LockArgs) -> Result<String, Failure> {
    let (measure, names) = (&locks.measure, chosen(locks.measure.only.as_deref(), CATALOGUE)?);
    if let Some(file) = &locks.serve {
        job::serve(measure, &names, file)?;
        return Ok(String::new());
    }
    let rows = RowWriter::new(measure.json.as_deref(), measure.csv.as_deref())?;
    job::measure(locks, &names, &rows)?;
    simulated::measure(measure, &names, &rows)?;
    let rows = rows.end()?;
    let plots = FIGURES.iter().filter_map(|one| Some((one.name, one.plot(&rows)?)));
    draw(measure.svg.as_deref(), plots.clone())?;
    // A table with a line for each rank has thousands of lines.
    let shown = plots.filter(|(name, _)| *name != "by_rank");
    let figures: String = shown.map(|(name, plot)| table::figure(name, &plot)).collect();
    Ok(figures + &bars::bars(&rows))
}

/// One drawing.
struct LockFigure {
    name: &'static str,
    rows: &'static [&'static str],
    title: &'static str,
    /// The parameter along the x axis.
    x: &'static str,
    unit: &'static str,
    y: &'static str,
    /// How many of the row's units make one of `y`.
    scale: f64,
    is_log: bool,
}

impl LockFigure {
    fn has(&self, row: &Row) -> bool {
        self.rows.contains(&&*row.name) && row.unit == self.unit && row.number(self.x).is_some()
    }

    /// The figure, if there are rows for it.
    fn plot(&self, rows: &[Row]) -> Option<Plot> {
        let mut series: Vec<Series> = Vec::new();
        for row in rows.iter().filter(|row| self.has(row)) {
            let name = name(row);
            let Summary { median, min, p99, .. } = row.summary;
            let [y, low, high] = [median, min, p99].map(|value| value / self.scale);
            let point = Point { x: row.number(self.x)? as f64, y, low, high };
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                None => series.push(Series { name, points: vec![point] }),
            }
        }
        (!series.is_empty()).then(|| Plot {
            title: self.title.to_owned(),
            x: Axis { name: self.x.to_owned(), is_log: self.is_log },
            y: Axis { name: self.y.to_owned(), is_log: self.is_log },
            series,
        })
    }
}

/// The name of the line to which a point belongs.
fn name(row: &Row) -> String {
    let word = |name| row.word(name).unwrap_or_default();
    match &*row.name {
        "paper" => format!("{}, {} engines", row.system, word("engines")),
        "lock_all_warm" => format!("{}, warm, {} ns", word("algorithm"), word("local")),
        "lock_all_cold" => format!("{}, cold, {} ns", word("algorithm"), word("local")),
        "paper_fetch_add" => format!("{} engines, {}", word("engines"), word("part")),
        _ => format!("{} ranks a node", word("node_ranks")),
    }
}

/// All drawings.
const FIGURES: [LockFigure; 4] = [
    LockFigure {
        name: "lock_all",
        rows: &["lock_all_cold", "lock_all_warm", "paper"],
        title: "All ranks lock and unlock all targets, simulated",
        x: "ranks",
        unit: "ns",
        y: "microseconds",
        scale: 1e3,
        is_log: true,
    },
    LockFigure {
        name: "by_rank",
        rows: &["paper_by_rank"],
        title: "1,000 rounds of each rank of the paper's machine, simulated",
        x: "rank",
        unit: "s",
        y: "seconds",
        scale: 1.0,
        is_log: false,
    },
    LockFigure {
        name: "by_hops",
        rows: &["paper_by_hops"],
        title: "1,000 rounds, by the links between a rank and the lock, simulated",
        x: "hops",
        unit: "s",
        y: "seconds",
        scale: 1.0,
        is_log: false,
    },
    LockFigure {
        name: "fetch_add",
        rows: &["paper_fetch_add"],
        title: "One atomic of each rank of a node, all at once, simulated",
        x: "rank",
        unit: "ns",
        y: "microseconds",
        scale: 1e3,
        is_log: false,
    },
];
