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
    let figure = plot(rows).map(|plot| table::figure("lock_all", &plot));
    // Many points are a table of their own.
    let is_listed = |row: &&Row| !PLOTTED.contains(&&*row.name);
    let listed: Vec<Row> = rows.iter().filter(is_listed).cloned().collect();
    table::table(&listed) + &figure.unwrap_or_default() + &bars::bars(rows)
}

/// Everybody locks all, by the number of ranks.
pub fn plot(rows: &[Row]) -> Option<Plot> {
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
