//! The bars of the engine, in trips of a cache line measured for the same row.

use super::requesters::REQUESTERS;
use crate::bench::bar::{self, Bar, Met};
use crate::bench::row::Row;

/// A line for each bar; empty if no row has one.
pub fn bars(rows: &[Row]) -> String {
    let mut lines: Vec<Bar> = OVERS.iter().filter_map(|bar| bar.of(rows)).collect();
    lines.extend(THIRDS.iter().filter_map(|bar| bar.of(rows)));
    lines.extend(TRIPS.iter().filter_map(|bar| bar.of(rows)));
    lines.extend(delegate(rows));
    lines.extend(["thread", "ult"].iter().flat_map(|kind| requesters(rows, kind)));
    bar::table(lines)
}

/// At most this number of trips plus this number of nanoseconds.
struct Trips {
    row: &'static str,
    what: &'static str,
    trips: f64,
    ns: f64,
}

impl Trips {
    fn of(&self, rows: &[Row]) -> Option<Bar> {
        let row = rows.iter().find(|row| row.name == self.row)?;
        let trip = row.trip_ns();
        let limit = trip.map(|trip| self.trips * trip + self.ns);
        let (median, min) = (row.summary.median, row.summary.min);
        Some(Bar {
            what: self.what.to_owned(),
            limit: limit.map_or_else(|| "-".to_owned(), |limit| format!("<= {limit:.0} ns")),
            median: format!("{median:.1} ns"),
            min: format!("{min:.1} ns"),
            trip,
            met: limit.map_or(Met::Moved, |limit| Met::of(median <= limit, min <= limit)),
        })
    }
}

/// At most this number of nanoseconds more than another row of the same rounds.
struct Over {
    row: &'static str,
    bare: &'static str,
    what: &'static str,
    ns: f64,
}

impl Over {
    fn of(&self, rows: &[Row]) -> Option<Bar> {
        let find = |name: &str| rows.iter().find(|row| row.name == name);
        let (ours, bare) = (find(self.row)?, find(self.bare)?);
        let median = ours.summary.median - bare.summary.median;
        let min = ours.summary.min - bare.summary.min;
        Some(Bar {
            what: self.what.to_owned(),
            limit: format!("<= {} ns", self.ns),
            median: format!("{median:.1} ns"),
            min: format!("{min:.1} ns"),
            trip: ours.trip_ns(),
            met: Met::of(median <= self.ns, min <= self.ns),
        })
    }
}

/// A third-party copy on this node: at most [`THIRD`] times a put of the same size
/// plus one message, which takes at least a trip.
struct Third {
    row: &'static str,
    put: &'static str,
    what: &'static str,
}

impl Third {
    fn of(&self, rows: &[Row]) -> Option<Bar> {
        let find = |name: &str| rows.iter().find(|row| row.name == name);
        let (third, put) = (find(self.row)?, find(self.put)?);
        let trip = third.trip_ns();
        let limit = trip.map(|trip| THIRD * (put.summary.median + trip));
        let (median, min) = (third.summary.median, third.summary.min);
        Some(Bar {
            what: self.what.to_owned(),
            limit: limit.map_or_else(|| "-".to_owned(), |limit| format!("<= {limit:.0} ns")),
            median: format!("{median:.1} ns"),
            min: format!("{min:.1} ns"),
            trip,
            met: limit.map_or(Met::Moved, |limit| Met::of(median <= limit, min <= limit)),
        })
    }
}

/// The rate of two contending threads over that of one thread.
fn delegate(rows: &[Row]) -> Vec<Bar> {
    let find = |name: &str| rows.iter().find(|row| row.name == name);
    let mut bars = Vec::new();
    if let (Some(alone), Some(both)) = (find("delegate_alone"), find("delegate_contended")) {
        let median = alone.summary.median / both.summary.median;
        let min = alone.summary.min / both.summary.min;
        bars.push(share("delegate, 2 threads, of one's rate", CONTENDED, [median, min], both));
    }
    bars
}

/// The rate of each number of requesters over the best rate.
fn requesters(rows: &[Row], kind: &str) -> Vec<Bar> {
    let of = |row: &&Row| row.name == "offload_rate" && row.word("kind") == Some(kind);
    let rows: Vec<&Row> = rows.iter().filter(of).collect();
    let best = |of: fn(&Row) -> f64| rows.iter().map(|row| of(row)).min_by(f64::total_cmp);
    let Some((median, min)) = best(|row| row.summary.median).zip(best(|row| row.summary.min))
    else {
        return Vec::new();
    };
    let bar = |row: &&Row| {
        let count = row.number("requesters").unwrap_or_default();
        let shares = [median / row.summary.median, min / row.summary.min];
        share(&format!("rate of {count} {kind}s, of the best"), RATE_KEPT, shares, row)
    };
    debug_assert!(rows.len() <= REQUESTERS.len());
    rows.iter().map(bar).collect()
}

/// At least this share of another rate: by the medians, and by the minima.
fn share(what: &str, limit: f64, [median, min]: [f64; 2], row: &Row) -> Bar {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let is_steady = row.is_steady();
    Bar {
        what: what.to_owned(),
        limit: format!(">= {}", percent(limit)),
        median: percent(median),
        min: percent(min),
        trip: row.trip_ns(),
        met: if is_steady { Met::of(median >= limit, min >= limit) } else { Met::Moved },
    }
}

const TRIPS: &[Trips] = &[
    Trips { row: "offload_submit64", what: "submit, 64 outstanding", trips: 1.0, ns: 15.0 },
    Trips { row: "offload_submit1", what: "submit, 1 outstanding", trips: 1.2, ns: 15.0 },
    Trips { row: "offload_latency_poll", what: "latency, polled", trips: 3.6, ns: 0.0 },
    Trips { row: "offload_latency_ult", what: "latency, a ULT sleeps", trips: 5.0, ns: 20.0 },
];

const OVERS: &[Over] = &[
    Over { row: "global_get8", bare: "raw_get8", what: "global get, over the raw one", ns: GLOBAL },
    Over { row: "global_put8", bare: "raw_put8", what: "global put, over the raw one", ns: GLOBAL },
    Over {
        row: "global_fadd8",
        bare: "raw_fadd8",
        what: "global add, over the raw one",
        ns: GLOBAL,
    },
    Over {
        row: "first_after_sleep",
        bare: "futex_wake",
        what: "first after sleep, over a futex wake",
        ns: 5000.0,
    },
    Over {
        row: "delegate_get8",
        bare: "direct_get8",
        what: "delegate, uncontended, over direct",
        ns: 12.0,
    },
];

const THIRDS: &[Third] = &[
    Third { row: "third_8b", put: "put_8b", what: "copy between two other ranks, 8 B" },
    Third { row: "third_8k", put: "put_8k", what: "copy between two other ranks, 8 KiB" },
    Third { row: "third_1m", put: "put_1m", what: "copy between two other ranks, 1 MiB" },
];

const GLOBAL: f64 = 10.0;
const THIRD: f64 = 1.2;
const CONTENDED: f64 = 0.8;
const RATE_KEPT: f64 = 0.88;

#[cfg(test)]
mod tests {
    use super::super::super::row::tests::row;
    use super::*;

    fn line<'a>(shown: &'a str, what: &str) -> &'a str {
        shown.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {shown}"))
    }

    #[test]
    fn a_bar_moves_with_the_trip_of_its_row() {
        // The trip of these rows is 32 ns.
        let rows =
            [row("tsumugi", "offload_submit64", 47.0), row("tsumugi", "offload_submit1", 90.0)];
        let shown = bars(&rows);
        assert!(line(&shown, "64 outstanding").contains("<= 47 ns"), "{shown}");
        assert!(line(&shown, "64 outstanding").ends_with("yes"), "{shown}");
        assert!(line(&shown, "1 outstanding").ends_with("min"), "{shown}");
        let moved = Row { line_ns_after: Some(165.0), ..rows[0].clone() };
        assert!(line(&bars(&[moved]), "64 outstanding").ends_with("moved"));
    }

    #[test]
    fn rates_are_shares_of_the_best() {
        let one = |requesters: u32, kind: &str, median| Row {
            params: format!("requesters={requesters} kind={kind} window=64"),
            ..row("tsumugi", "offload_rate", median)
        };
        let shown = bars(&[one(1, "thread", 50.0), one(2, "thread", 40.0), one(1, "ult", 60.0)]);
        assert!(line(&shown, "rate of 1 threads").contains("80 %"), "{shown}");
        assert!(line(&shown, "rate of 1 threads").ends_with("no"), "{shown}");
        assert!(line(&shown, "rate of 2 threads").ends_with("yes"), "{shown}");
        assert!(line(&shown, "rate of 1 ults").contains("100 %"), "{shown}");
    }

    #[test]
    fn the_delegate_is_compared_with_direct_access() {
        let rows = [
            row("tsumugi", "delegate_get8", 14.0),
            row("tsumugi", "direct_get8", 1.5),
            row("tsumugi", "delegate_alone", 16.0),
            row("tsumugi", "delegate_contended", 20.0),
        ];
        let shown = bars(&rows);
        assert!(line(&shown, "over direct").contains("12.5 ns"), "{shown}");
        assert!(line(&shown, "over direct").ends_with("min"), "{shown}");
        assert!(line(&shown, "of one's rate").ends_with("yes"), "{shown}");
    }

    #[test]
    fn a_third_party_copy_is_compared_with_a_put_and_a_message() {
        let rows = [row("tsumugi", "third_8b", 70.0), row("bare", "put_8b", 28.0)];
        let shown = bars(&rows);
        assert!(line(&shown, "copy between two other ranks, 8 B").contains("<= 72 ns"), "{shown}");
        assert!(line(&shown, "copy between two other ranks, 8 B").ends_with("yes"), "{shown}");
    }

    #[test]
    fn without_rows_there_are_no_bars() {
        assert_eq!(bars(&[row("tsumugi", "get8", 3.0)]), "");
    }
}
