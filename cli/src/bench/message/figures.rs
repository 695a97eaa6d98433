//! Figure 7 of the paper on messages, the same figure with the peers, and figures 4
//! and 5 of the paper on global memory.

use super::case::{LOCKED, OURS, PAPER_RULE, RENDEZVOUS, TWO_COPY};
use crate::bench::plot::{Axis, Plot, Point, Series};
use crate::bench::row::Row;
use crate::core_distance::CoreDistance;

/// A figure of our rows: latency by size, a line for each system.
#[derive(Debug)]
pub struct MessageFigure {
    /// The file's name, without its ending.
    pub name: &'static str,
    title: &'static str,
    row: &'static str,
    state: Option<CoreDistance>,
    /// Whether only our own designs are shown.
    ours: bool,
}

/// All figures.
pub const FIGURES: &[MessageFigure] = &[
    figure("fig7a_same_core", "Pre-posted, one core", "same_core_pre", None, true),
    figure(
        "fig7b_near",
        "Pre-posted, two cores, near",
        "latency_pre",
        Some(CoreDistance::Near),
        true,
    ),
    figure("fig7b_far", "Pre-posted, two cores, far", "latency_pre", Some(CoreDistance::Far), true),
    one_sided("fig4_put_near", "Put, near", "put", CoreDistance::Near),
    one_sided("fig4_put_far", "Put, far", "put", CoreDistance::Far),
    one_sided("fig5_get_near", "Get, near", "get", CoreDistance::Near),
    one_sided("fig5_get_far", "Get, far", "get", CoreDistance::Far),
    one_sided("third_near", "Copy between two other ranks, near", "third", CoreDistance::Near),
    one_sided("third_far", "Copy between two other ranks, far", "third", CoreDistance::Far),
    figure("same_core", "One core", "same_core", None, false),
    figure("same_core_pre", "Pre-posted, one core", "same_core_pre", None, false),
    figure("near", "Two cores, near", "latency", Some(CoreDistance::Near), false),
    figure(
        "near_pre",
        "Pre-posted, two cores, near",
        "latency_pre",
        Some(CoreDistance::Near),
        false,
    ),
    figure("far", "Two cores, far", "latency", Some(CoreDistance::Far), false),
    figure("far_pre", "Pre-posted, two cores, far", "latency_pre", Some(CoreDistance::Far), false),
];

const fn figure(
    name: &'static str,
    title: &'static str,
    row: &'static str,
    state: Option<CoreDistance>,
    ours: bool,
) -> MessageFigure {
    MessageFigure { name, title, row, state, ours }
}

/// A figure of our one-sided operations beside the peers' ping-pong.
const fn one_sided(
    name: &'static str,
    title: &'static str,
    row: &'static str,
    state: CoreDistance,
) -> MessageFigure {
    figure(name, title, row, Some(state), false)
}

impl MessageFigure {
    /// The figure of `rows`; `None` if none of them belongs to it.
    pub fn plot(&self, rows: &[Row]) -> Option<Plot> {
        let state = self.state.map(|state| state.to_string());
        let of = |row: &&Row| row.name == self.row && row.word("state") == state.as_deref();
        let rows: Vec<&Row> = rows.iter().filter(of).collect();
        let mut systems: Vec<&str> = Vec::new();
        for row in &rows {
            if !systems.contains(&&*row.system) && (!self.ours || label(&row.system).is_some()) {
                systems.push(&row.system);
            }
        }
        let series = systems.into_iter().map(|system| {
            let rows = rows.iter().filter(|row| row.system == system);
            let name = if self.ours { label(system).unwrap_or(system) } else { system };
            Series { name: name.to_owned(), points: rows.filter_map(|row| point(row)).collect() }
        });
        let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
        let trips = rows.iter().filter_map(|row| row.trip_ns());
        let trip = trips.min_by(f64::total_cmp).filter(|_| self.state.is_some());
        let trip = trip.map_or_else(String::new, |trip| format!(" (line trip from {trip:.0} ns)"));
        (!series.is_empty()).then(|| Plot {
            title: format!("{}{trip}", self.title),
            x: Axis { name: "bytes".to_owned(), is_log: true },
            y: Axis { name: self.unit().to_owned(), is_log: true },
            series,
        })
    }
}

impl MessageFigure {
    fn unit(&self) -> &'static str {
        match self.row {
            "put" | "get" => "operation of tsumugi, half round trip of peers, microseconds",
            "third" => "microseconds",
            _ => "half round trip, microseconds",
        }
    }
}

/// The paper's name of one of our designs.
fn label(system: &str) -> Option<&'static str> {
    match system {
        OURS => Some("single copy, mirror"),
        LOCKED => Some("single copy, locked queue"),
        PAPER_RULE => Some("single copy, the paper's rule"),
        TWO_COPY => Some("normal eager"),
        RENDEZVOUS => Some("rendezvous"),
        _ => None,
    }
}

fn point(row: &Row) -> Option<Point> {
    let us = |ns: f64| ns / 1e3;
    let summary = row.summary;
    let (y, low, high) = (us(summary.median), us(summary.low), us(summary.high));
    Some(Point { x: row.number("bytes")? as f64, y, low, high })
}

#[cfg(test)]
mod tests {
    use super::super::super::row::tests::row;
    use super::*;

    #[test]
    fn a_figure_has_a_line_for_each_system() {
        let one = |system: &str, bytes: u32, state: &str| Row {
            params: format!("bytes={bytes} state={state}"),
            ..row(system, "latency_pre", 90.0)
        };
        let rows = [one(OURS, 8, "near"), one(OURS, 64, "near"), one("ucx", 8, "near")];
        let lines = |name: &str| {
            let figure = FIGURES.iter().find(|figure| figure.name == name).unwrap();
            figure.plot(&rows).map(|plot| plot.series.len())
        };
        assert_eq!(
            [lines("fig7b_near"), lines("near_pre"), lines("far_pre")],
            [Some(1), Some(2), None]
        );
    }
}
