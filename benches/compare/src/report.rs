//! The table, and the rows that other programs read.

use crate::bars::{BARS, Bar, Of};
use serde::Serialize;
use tsumugi_bench_ult::Row;
use tsumugi_bench_ult::asleep::Asleep;

/// One system's samples of one row.
pub struct Measured {
    system: &'static str,
    pub samples: Vec<f64>,
}

impl Measured {
    pub fn new(system: &'static str) -> Self {
        Self { system, samples: Vec::new() }
    }
}

/// Everything measured so far.
#[derive(Default)]
pub struct Report {
    lines: Vec<Line>,
}

/// One measured number. The format of `tsumugi bench --json`.
#[derive(Serialize)]
struct Line {
    figure: &'static str,
    system: &'static str,
    name: &'static str,
    params: String,
    unit: &'static str,
    n: usize,
    min: f64,
    median: f64,
    p99: f64,
    line_ns_before: Option<f64>,
    line_ns_after: Option<f64>,
}

impl Report {
    pub fn add(&mut self, row: &Row, measured: Vec<Measured>, before: f64, after: f64) {
        for Measured { system, mut samples } in measured {
            samples.sort_by(f64::total_cmp);
            self.lines.push(Line {
                figure: "ult",
                system,
                name: row.name,
                params: format!("workers={}", row.workers),
                unit: "ns",
                n: samples.len(),
                min: samples[0],
                median: samples[samples.len() / 2],
                p99: samples[(samples.len() - 1) * 99 / 100],
                line_ns_before: Some(before),
                line_ns_after: Some(after),
            });
        }
    }

    pub fn add_asleep(&mut self, ults: usize, asleep: Asleep) {
        let once = |name, unit, value| Line {
            figure: "ult",
            system: "tsumugi",
            name,
            params: format!("workers=1 ults={ults}"),
            unit,
            n: 1,
            min: value,
            median: value,
            p99: value,
            line_ns_before: None,
            line_ns_after: None,
        };
        self.lines.push(once("bytes_per_ult", "bytes", asleep.bytes_each));
        self.lines.push(once("create_asleep", "ns", asleep.create_ns));
        self.lines.push(once("wake_all_join", "ns", asleep.wake_ns));
    }

    pub fn print(&self) {
        println!(
            "{:20} {:22} {:8} {:>10} {:>10}  {}",
            "row", "", "system", "min", "median", "bar"
        );
        for line in &self.lines {
            let verdict = self.verdict(line).unwrap_or_default();
            println!(
                "{:20} {:22} {:8} {:10.1} {:10.1}  {verdict}",
                line.name, line.params, line.system, line.min, line.median
            );
        }
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(&self.lines).expect("a row has string keys") + "\n"
    }

    /// How a line of ours stands to its bar, by the minima.
    fn verdict(&self, line: &Line) -> Option<String> {
        let is = |bar: &&Bar| bar.row == line.name && line.has_workers(bar.workers);
        let bar = BARS.iter().find(is).filter(|_| line.system == "tsumugi")?;
        let (what, reference) = match bar.of {
            Of::One => ("", 1.0),
            Of::Line => ("trips", line.line_ns_before?.min(line.line_ns_after?)),
            Of::System(system) => (system, self.min(system, line.name, bar.workers)?),
            Of::Alone(row) => ("one worker's", self.min("tsumugi", row, 1)?),
        };
        let ratio = line.min / reference;
        let word = if ratio <= bar.factor { "holds" } else { "FAILS" };
        Some(format!("{word}: {ratio:.2} of at most {:.2} {what}", bar.factor))
    }

    fn min(&self, system: &str, name: &str, workers: usize) -> Option<f64> {
        let is = |line: &&Line| {
            line.system == system && line.name == name && line.has_workers(workers)
        };
        self.lines.iter().find(is).map(|line| line.min)
    }
}

impl Line {
    fn has_workers(&self, workers: usize) -> bool {
        self.params.split(' ').next() == Some(&format!("workers={workers}"))
    }
}
