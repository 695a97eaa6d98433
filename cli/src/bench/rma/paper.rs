//! The measurements of the paper that the engine follows, and its figures.
//!
//! The paper's machines are Fujitsu FX10 with Tofu (2.8 us a round trip), and Xeon
//! with InfiniBand FDR (3.7 us). The device here is the memory of the node, which
//! answers in nanoseconds: the remaining time is the cost of the engine.

use super::super::plot::{Axis, Plot, Point, Series};
use super::figures::THREADS;
use crate::bench::row::Row;
use crate::text;

/// A figure of the paper, drawn from our rows.
#[derive(Debug)]
pub struct PaperFigure {
    /// The file's name, without its ending.
    pub name: &'static str,
    title: &'static str,
    /// The rows that it shows.
    row: &'static str,
    by: PaperAxis,
}

#[derive(Debug)]
enum PaperAxis {
    /// At 8 bytes, a line for each path.
    Threads,
    /// A line for each number of threads.
    Bytes { path: &'static str },
}

/// All figures.
pub const FIGURES: &[PaperFigure] = &[
    by_threads("fig2_latency", "Latency of an 8-byte read", "latency"),
    by_threads("fig3_overhead", "Overhead of an 8-byte read", "overhead"),
    by_threads("fig4_rate", "Rate of 8-byte reads", "rate"),
    by_bytes("fig5a_latency", "Latency, with a communication thread", "latency", "offload"),
    by_bytes("fig5b_latency", "Latency, without one", "latency", "delegate"),
    by_bytes("fig6a_overhead", "Overhead, with a communication thread", "overhead", "offload"),
    by_bytes("fig6b_overhead", "Overhead, without one", "overhead", "delegate"),
    by_bytes("fig7a_rate", "Message rate, with a communication thread", "rate", "offload"),
    by_bytes("fig7b_rate", "Message rate, without one", "rate", "delegate"),
];

const fn by_threads(name: &'static str, title: &'static str, row: &'static str) -> PaperFigure {
    PaperFigure { name, title, row, by: PaperAxis::Threads }
}

const fn by_bytes(
    name: &'static str,
    title: &'static str,
    row: &'static str,
    path: &'static str,
) -> PaperFigure {
    PaperFigure { name, title, row, by: PaperAxis::Bytes { path } }
}

impl PaperFigure {
    /// The figure of `rows`; `None` if none of them belongs to it.
    pub fn plot(&self, rows: &[Row]) -> Option<Plot> {
        let of = |row: &&Row, path: &str| row.name == self.row && row.word("path") == Some(path);
        let trips = rows.iter().filter(|row| row.name == self.row).filter_map(Row::trip_ns);
        let trips = trips.fold(None, |range: Option<(f64, f64)>, trip| {
            let (low, high) = range.unwrap_or((trip, trip));
            Some((low.min(trip), high.max(trip)))
        });
        let title = match trips {
            Some((low, high)) => format!("{} (line trip {low:.0} to {high:.0} ns)", self.title),
            None => self.title.to_owned(),
        };
        let (x, series) = match self.by {
            PaperAxis::Threads => {
                let line = |path: &str| {
                    let rows = rows.iter().filter(|row| of(row, path));
                    let rows = rows.filter(|row| row.number("bytes") == Some(8));
                    let points = rows.filter_map(|row| self.point(row, "threads")).collect();
                    Series { name: path.to_owned(), points }
                };
                ("threads", ["offload", "delegate"].map(line).to_vec())
            }
            PaperAxis::Bytes { path } => {
                let line = |threads: usize| {
                    let rows = rows.iter().filter(|row| of(row, path));
                    let rows = rows.filter(|row| row.number("threads") == Some(threads as u64));
                    let points = rows.filter_map(|row| self.point(row, "bytes")).collect();
                    let plural = if threads == 1 { "" } else { "s" };
                    Series { name: format!("{threads} thread{plural}"), points }
                };
                ("bytes", THREADS.map(line).to_vec())
            }
        };
        let series: Vec<Series> =
            series.into_iter().filter(|series| !series.points.is_empty()).collect();
        let is_log = matches!(self.by, PaperAxis::Bytes { .. });
        let y = if self.is_rate() { "million messages a second" } else { "microseconds" };
        (!series.is_empty()).then(|| Plot {
            title,
            x: Axis { name: x.to_owned(), is_log: true },
            y: Axis { name: y.to_owned(), is_log },
            series,
        })
    }

    fn is_rate(&self) -> bool {
        self.row == "rate"
    }

    /// The point of a row; `None` if the distance of the cores changed during it.
    fn point(&self, row: &Row, x: &str) -> Option<Point> {
        if !row.is_steady() {
            return None;
        }
        let scaled = |ns: f64| if self.is_rate() { 1e3 / ns } else { ns / 1e3 };
        let ends = [scaled(row.summary.low), scaled(row.summary.high)];
        Some(Point {
            x: row.number(x)? as f64,
            y: scaled(row.summary.median),
            low: ends[0].min(ends[1]),
            high: ends[0].max(ends[1]),
        })
    }
}

/// The paper's numbers beside ours; empty if there are none of ours.
pub fn numbers(rows: &[Row]) -> String {
    let median = |name: &str, threads: u64, path: &str| {
        let of = |row: &&Row| {
            row.name == name
                && row.is_steady()
                && row.word("path") == Some(path)
                && row.number("bytes") == Some(8)
                && row.number("threads") == Some(threads)
        };
        rows.iter().find(of).map(|row| row.summary.median)
    };
    let Some(latency) = median("latency", 1, "offload") else { return String::new() };
    let shown = |value: Option<f64>, unit: &str| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1} {unit}"))
    };
    let overhead = median("overhead", 1, "offload");
    let rates = THREADS.map(|threads| median("rate", threads as u64, "offload"));
    let best = rates.iter().flatten().copied().min_by(f64::total_cmp);
    let last = rates.last().copied().flatten();
    let kept = last.zip(best).map(|(last, best)| 100.0 * best / last);
    let without = median("latency", 1, "delegate");
    let lines = [
        ("overhead, 1 thread", "117 ns (Tofu), 689 ns (InfiniBand)", shown(overhead, "ns")),
        (
            "of the latency, 1 thread",
            "4.2 % (Tofu)",
            shown(overhead.map(|overhead| 100.0 * overhead / latency), "%"),
        ),
        ("latency, 1 thread", "2,813 ns (Tofu), 3,670 ns (InfiniBand)", shown(Some(latency), "ns")),
        (
            "latency added by the other thread",
            "448 ns, +19 % (Tofu); 360 ns (InfiniBand)",
            shown(without.map(|without| latency - without), "ns"),
        ),
        ("rate kept by many threads", "88 % at 15 of that at 4 (Tofu)", shown(kept, "% at 16")),
    ];
    let lines = lines.into_iter().map(|(what, paper, ours)| vec![what.into(), paper.into(), ours]);
    let table = text::table(&["8-byte reads", "the paper", "here"], lines);
    format!(
        "\n{table}  In the paper a device answers in microseconds; here memory answers, so only\n\
         \x20 the engine takes time.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::row::tests::row;
    use super::*;

    fn rows() -> Vec<Row> {
        let one = |name: &str, threads: u64, path: &str, median| Row {
            params: format!("threads={threads} bytes=8 path={path}"),
            ..row("tsumugi", name, median)
        };
        vec![
            one("latency", 1, "offload", 150.0),
            one("latency", 1, "delegate", 50.0),
            one("overhead", 1, "offload", 60.0),
            one("rate", 1, "offload", 40.0),
            one("rate", 16, "offload", 50.0),
        ]
    }

    #[test]
    fn a_figure_has_its_rows_and_no_others() {
        let plots: Vec<Option<Plot>> = FIGURES.iter().map(|figure| figure.plot(&rows())).collect();
        let lines = |plot: &Option<Plot>| plot.as_ref().map(|plot| plot.series.len());
        let lines: Vec<Option<usize>> = plots.iter().map(lines).collect();
        let expected = [Some(2), Some(1), Some(1), Some(1), Some(1), Some(1), None, Some(2), None];
        assert_eq!(lines, expected);
        let rate = &plots[2].as_ref().unwrap().series[0].points;
        assert_eq!((rate[0].x, rate[0].y, rate[1].y), (1.0, 25.0, 20.0));
    }

    #[test]
    fn the_numbers_of_the_paper_stand_beside_ours() {
        let shown = numbers(&rows());
        for word in ["117 ns", "4.2 %", "+19 %", "88 %", "60.0 ns", "40.0 %", "100.0 ns", "80.0 %"]
        {
            assert!(shown.contains(word), "{word} in {shown}");
        }
        assert_eq!(numbers(&[]), "");
    }
}
