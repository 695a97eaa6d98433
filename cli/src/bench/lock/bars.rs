//! What the locks are to reach, and whether they do.

use crate::bench::bar::{self, Bar, Met};
use crate::bench::row::Row;
use tsumugi::window::EACH_MAX;

/// A line a bar; nothing where no row has one.
pub fn bars(rows: &[Row]) -> String {
    let mut lines = Vec::new();
    lines.extend(ratio(rows, "window", "shared_uncontended", ("tsumugi", "fetch_add"), 2.5));
    let alone = "exclusive_uncontended";
    for system in ["window", "lock"] {
        lines.extend(ratio(rows, system, alone, ("openmpi", alone), 1.2));
    }
    lines.extend(ahead(rows));
    for (name, unit, limit) in LIMITS {
        lines.extend(worst(rows, name, unit, limit));
    }
    bar::table(lines)
}

/// One row over another.
fn ratio(
    rows: &[Row],
    system: &str,
    name: &str,
    (other, other_name): (&str, &str),
    limit: f64,
) -> Option<Bar> {
    let find =
        |system: &str, name: &str| rows.iter().find(|row| row.system == system && row.name == name);
    let (ours, theirs) = (find(system, name)?, find(other, other_name)?);
    let median = ours.summary.median / theirs.summary.median;
    let min = ours.summary.min / theirs.summary.min;
    Some(Bar {
        what: format!("{system} {name}, of {other} {other_name}"),
        limit: format!("<= {limit}"),
        median: format!("{median:.2}"),
        min: format!("{min:.2}"),
        trip: ours.trip_ns(),
        met: Met::of(median <= limit, min <= limit),
    })
}

/// All ranks at once: the design that a window of so many takes if nothing is
/// said, beside the better of the peers.
fn ahead(rows: &[Row]) -> Vec<Bar> {
    let ours = |row: &&Row| {
        let is_few = row.number("ranks").is_some_and(|ranks| ranks <= u64::from(EACH_MAX));
        row.system == "tsumugi"
            && row.word("algorithm") == Some(if is_few { "each" } else { "tree" })
            && ["lock_all", "exclusive"].contains(&&*row.name)
    };
    let bar = |ours: &Row| {
        let theirs = rows.iter().filter(|row| {
            row.word("algorithm") == Some("theirs")
                && row.name == ours.name
                && row.number("ranks") == ours.number("ranks")
        });
        let best = theirs.min_by(|a, b| a.summary.median.total_cmp(&b.summary.median))?;
        let median = ours.summary.median / best.summary.median;
        let min = ours.summary.min / best.summary.min;
        Some(Bar {
            what: format!("{} of {} ranks, of {}", ours.name, ours.number("ranks")?, best.system),
            limit: "< 1".to_owned(),
            median: format!("{median:.3}"),
            min: format!("{min:.3}"),
            trip: ours.trip_ns(),
            met: Met::of(median < 1.0, min < 1.0),
        })
    };
    rows.iter().filter(ours).filter_map(bar).collect()
}

/// The worst that the tree does on the largest simulated machine.
fn worst(rows: &[Row], name: &str, unit: &str, limit: f64) -> Option<Bar> {
    let of =
        |row: &&Row| row.name == name && row.unit == unit && row.word("algorithm") == Some("tree");
    let row = rows.iter().filter(of).filter(|row| row.word("local") == Some("30"));
    let row = row.max_by_key(|row| row.number("ranks"))?;
    let value = row.summary.median;
    Some(Bar {
        what: format!("{name}, {} ranks, {unit}", row.number("ranks")?),
        limit: format!("<= {limit}"),
        median: format!("{value:.2}"),
        min: format!("{value:.2}"),
        trip: None,
        met: Met::of(value <= limit, value <= limit),
    })
}

const LIMITS: [(&str, &str, f64); 6] = [
    ("lock_all_cold", "ns", 25_000.0),
    ("lock_all_warm", "ns", 1_000.0),
    ("exclusive_after_all", "ns", 100_000.0),
    ("lock_all_cold", "operations on a word", 16.0),
    ("lock_all_cold", "remote operations a rank", 0.27),
    ("lock_all_warm", "remote operations a rank", 0.0),
];
