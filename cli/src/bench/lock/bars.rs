//! The bars of the locks.

use super::together::TOGETHER;
use crate::bench::bar::{self, Bar, Met};
use crate::bench::row::Row;
use tsumugi::window::EACH_MAX;

/// A line for each bar; empty if no row has one.
pub fn bars(rows: &[Row]) -> String {
    let mut lines = Vec::new();
    let alone = "exclusive_uncontended";
    for system in ["window", "lock"] {
        lines.extend(ratio(rows, system, "shared_uncontended", ("tsumugi", "fetch_add"), 2.5));
        lines.extend(ratio(rows, system, alone, ("openmpi", alone), 1.2));
    }
    lines.extend(ahead(rows));
    lines.extend(points(rows));
    for (name, unit, limit) in LIMITS {
        lines.extend(worst(rows, name, unit, limit));
    }
    bar::table(lines)
}

/// The bar of one row over another.
fn ratio(
    rows: &[Row],
    system: &str,
    name: &str,
    (other, other_name): (&str, &str),
    limit: f64,
) -> Option<Bar> {
    let best = |system: &str, name: &str| {
        let of = rows.iter().filter(|row| row.system == system && row.name == name);
        of.min_by(|a, b| a.summary.median.total_cmp(&b.summary.median))
    };
    let (ours, theirs) = (best(system, name)?, best(other, other_name)?);
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

/// The rows of all ranks at once: the design that a window of this many ranks takes
/// by default, against the best row of any peer, however the peer's window is made.
fn ahead(rows: &[Row]) -> Vec<Bar> {
    let ours = |row: &&Row| {
        let is_few = row.number("ranks").is_some_and(|ranks| ranks <= u64::from(EACH_MAX));
        let chosen = if is_few { "each" } else { "tree" };
        row.system == "tsumugi"
            && match &*row.name {
                "lock_all" | "exclusive" => row.word("algorithm") == Some(chosen),
                name => TOGETHER.contains(&name),
            }
    };
    let bar = |ours: &Row| {
        let theirs = rows.iter().filter(|row| {
            row.system != ours.system
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

/// The simulator against each point of the paper.
fn points(rows: &[Row]) -> Vec<Bar> {
    let of = |row: &Row, other: &Row, what: String, [least, most]: [f64; 2]| {
        let value = row.summary.median / other.summary.median;
        Bar {
            what,
            limit: format!("{least} to {most}"),
            median: format!("{value:.2}"),
            min: format!("{value:.2}"),
            trip: None,
            met: Met::of((least..=most).contains(&value), false),
        }
    };
    let ours = rows.iter().filter(|row| row.system == "simulator");
    let bars = rows.iter().filter(|row| row.system == "the paper").flat_map(|theirs| {
        let same = |row: &&Row| (&row.name, &row.params) == (&theirs.name, &theirs.params);
        let at = format!("{} {}", theirs.name, theirs.params);
        let one = ours.clone().find(same);
        let point = one.map(|one| of(one, theirs, format!("{at}, of the paper's"), [0.9, 1.1]));
        let fours = theirs.params.replace("engines=1", "engines=4");
        let four = ours.clone().find(|row| row.name == "paper" && row.params == fours);
        // With so few ranks the engine is not the bottleneck.
        let four = four.filter(|row| row.number("ranks") >= Some(128));
        let four = four.zip(one).map(|(four, one)| {
            of(four, one, format!("{} {fours}, of one engine", theirs.name), [0.55, 0.65])
        });
        point.into_iter().chain(four)
    });
    bars.collect()
}

/// The worst case of the tree on the largest simulated machine.
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
