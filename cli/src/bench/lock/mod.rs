//! `tsumugi bench lock`: locks, in three places.
//!
//! | group | what is measured |
//! |---|---|
//! | `alone` | lock and unlock that nobody else wants, beside one blocking fetch-and-add |
//! | `processes` | all ranks of a job at once: all targets, and each its neighbour |
//! | `simulated` | everybody locks all targets of a machine of up to 663,552 ranks |
//!
//! The first two are of jobs of processes that this command starts of itself.

mod bars;
mod job;
mod simulated;

use super::plot::{Axis, Plot, Point, Series};
use super::row::Row;
use super::{Group, chosen, table};
use crate::args;
use crate::failure::Failure;

const CATALOGUE: &[Group] = &[
    Group { name: "alone", rows: &["fetch_add", "shared_uncontended", "exclusive_uncontended"] },
    Group { name: "processes", rows: &["lock_all", "exclusive"] },
    Group {
        name: "simulated",
        rows: &[
            "lock_all_cold",
            "lock_all_warm",
            "exclusive_after_all",
            "exclusive_parallel",
            "paper",
            "paper_by_rank",
        ],
    },
];

/// Measures; nothing where this process is one of those that are measured.
pub fn measure(locks: &args::Locks) -> Result<Option<Vec<Row>>, Failure> {
    let names = chosen(locks.measure.only.as_deref(), CATALOGUE)?;
    if let Some(file) = &locks.serve {
        job::serve(&locks.measure, &names, file)?;
        return Ok(None);
    }
    let mut rows = job::measure(locks, &names)?;
    rows.extend(simulated::measure(&locks.measure, &names));
    Ok(Some(rows))
}

/// The tables.
pub fn text(rows: &[Row]) -> String {
    let figures: String =
        plots(rows).iter().map(|(name, plot)| table::figure(name, plot)).collect();
    // Many points are a table of their own.
    let is_listed = |row: &&Row| !PLOTTED.contains(&&*row.name);
    let listed: Vec<Row> = rows.iter().filter(is_listed).cloned().collect();
    table::table(&listed) + &figures + &bars::bars(rows)
}

/// The figures that there are rows for.
pub fn plots(rows: &[Row]) -> Vec<(&'static str, Plot)> {
    let plots = [("lock_all", by_size(rows)), ("lock_by_rank", by_hops(rows))];
    plots.into_iter().filter_map(|(name, plot)| Some((name, plot?))).collect()
}

/// A thousand times on the paper's machine, by the way to the lock.
fn by_hops(rows: &[Row]) -> Option<Plot> {
    let mut series: Vec<Series> = Vec::new();
    for row in rows.iter().filter(|row| row.name == "paper_by_rank") {
        let Some(hops) = row.number("hops") else { continue };
        let name = format!("{} processes a node", row.number("per_node")?);
        let [low, y, high] = [row.summary.min, row.summary.median, row.summary.p99];
        let point = Point { x: hops as f64, y: y / 1e9, low: low / 1e9, high: high / 1e9 };
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name, points: vec![point] }),
        }
    }
    (!series.is_empty()).then(|| Plot {
        title: "Locked and unlocked a thousand times, by rank, simulated".to_owned(),
        x: Axis { name: "hops".to_owned(), is_log: false },
        y: Axis { name: "seconds".to_owned(), is_log: true },
        series,
    })
}

/// Everybody locks all, by the number of ranks.
fn by_size(rows: &[Row]) -> Option<Plot> {
    let of = |row: &&Row| PLOTTED.contains(&&*row.name) && row.unit == "ns";
    let name = |row: &Row| {
        let word = |name| row.word(name).unwrap_or_default();
        match &*row.name {
            "paper" => format!("{}, {} engines", row.system, word("engines")),
            "lock_all_warm" => format!("{}, warm, {} ns", word("algorithm"), word("local")),
            _ => format!("{}, cold, {} ns", word("algorithm"), word("local")),
        }
    };
    let mut series: Vec<Series> = Vec::new();
    for row in rows.iter().filter(of) {
        let name = name(row);
        let us = row.summary.median / 1e3;
        let point = Point { x: row.number("ranks")? as f64, y: us, low: us, high: us };
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name, points: vec![point] }),
        }
    }
    (!series.is_empty()).then(|| Plot {
        title: "Everybody locks and unlocks all targets, simulated".to_owned(),
        x: Axis { name: "ranks".to_owned(), is_log: true },
        y: Axis { name: "microseconds".to_owned(), is_log: true },
        series,
    })
}

const PLOTTED: [&str; 3] = ["lock_all_cold", "lock_all_warm", "paper"];
