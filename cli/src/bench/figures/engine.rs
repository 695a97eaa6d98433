//! S0: latency, overhead and rate of reads by threads and by size, with a communication thread
//! and without.

use super::experiment::{Experiment, Missing, Number, median};
use super::lines::{Lines, Quantity};
use super::measurement::{Measurement, Peers};
use crate::bench::plot::Plot;
use crate::bench::row::Row;
use crate::paper::Paper;
use crate::text;

pub const MEASUREMENTS: &[Measurement] = &[Measurement {
    name: "engine",
    words: &["rma", "--only", "figures"],
    peers: Peers::None,
    seconds: [25, 120],
}];

pub const EXPERIMENTS: &[Experiment] = &[
    by_threads("Figure 2", "Latency of an 8-byte read", |rows| threads(rows, "latency"), latency),
    by_threads(
        "Figure 3",
        "Overhead of an 8-byte read",
        |rows| threads(rows, "overhead"),
        overhead,
    ),
    by_threads("Figure 4", "Rate of 8-byte reads", |rows| threads(rows, "rate"), rate),
    by_size("Figure 5a", "Latency by size, with a communication thread", |rows| {
        sizes(rows, "latency", true)
    }),
    by_size("Figure 5b", "Latency by size, without one", |rows| sizes(rows, "latency", false)),
    by_size("Figure 6a", "Overhead by size, with a communication thread", |rows| {
        sizes(rows, "overhead", true)
    }),
    by_size("Figure 6b", "Overhead by size, without one", |rows| sizes(rows, "overhead", false)),
    by_size("Figure 7a", "Message rate by size, with a communication thread", |rows| {
        sizes(rows, "rate", true)
    }),
    by_size("Figure 7b", "Message rate by size, without one", |rows| sizes(rows, "rate", false)),
];

pub const MISSING: &[Missing] = &[Missing {
    paper: Paper::S0,
    name: "Figures 2 to 4 on Tofu",
    why: "There is no back end for Tofu, and no such machine here.",
}];

const fn by_threads(
    name: &'static str,
    title: &'static str,
    plots: fn(&[Row]) -> Vec<Plot>,
    numbers: fn(&[Row]) -> Vec<Number>,
) -> Experiment {
    Experiment {
        paper: Paper::S0,
        name,
        title,
        from: Some("engine"),
        same: "Listings 6 and 7 of the paper: one-sided reads by 1 to 16 threads, which end with a \
               callback; latency, overhead (the time of the call) and rate.",
        differs: "The device is the memory of this node, which answers in nanoseconds, in the \
                  place of Tofu.",
        shows: "The cost of the engine itself, and how it grows with the threads that share it.",
        has_peers: false,
        plots,
        numbers,
    }
}

const fn by_size(
    name: &'static str,
    title: &'static str,
    plots: fn(&[Row]) -> Vec<Plot>,
) -> Experiment {
    Experiment {
        paper: Paper::S0,
        name,
        title,
        from: Some("engine"),
        same: "Reads of 1 B to 16 MiB by 1 to 16 threads, with the loops of the paper.",
        differs: "The device is the memory of this node in the place of InfiniBand; without a \
                  communication thread the operation ends within the call.",
        shows: "From which size on the copy takes longer than the engine.",
        has_peers: false,
        plots,
        numbers: super::experiment::no_numbers,
    }
}

fn threads(rows: &[Row], name: &str) -> Vec<Plot> {
    let rows: Vec<Row> = rows.iter().filter(|row| row.name == name).cloned().collect();
    Lines {
        title: "8-byte reads",
        x: ("threads", "threads"),
        y: quantity(name),
        line: |row| (row.number("bytes") == Some(8)).then(|| path(row)),
    }
    .plots(&rows)
}

fn sizes(rows: &[Row], name: &str, has_thread: bool) -> Vec<Plot> {
    let path = if has_thread { "offload" } else { "delegate" };
    let of = |row: &&Row| row.name == name && row.word("path") == Some(path);
    let rows: Vec<Row> = rows.iter().filter(of).cloned().collect();
    Lines {
        title: if has_thread { "With a communication thread" } else { "Without one" },
        x: ("bytes", "bytes"),
        y: quantity(name),
        line: |row| Some(format!("{} threads", row.number("threads")?)),
    }
    .plots(&rows)
}

fn quantity(name: &str) -> Quantity {
    if name == "rate" { Quantity::MillionsPerSecond } else { Quantity::Microseconds }
}

fn path(row: &Row) -> String {
    match row.word("path") {
        Some("offload") => "with a communication thread".to_owned(),
        _ => "without one".to_owned(),
    }
}

fn at(rows: &[Row], name: &str, threads: &str, path: &str) -> Option<f64> {
    median(rows, "tsumugi", name, &[("threads", threads), ("bytes", "8"), ("path", path)])
}

fn latency(rows: &[Row]) -> Vec<Number> {
    let [with, without] = ["offload", "delegate"].map(|path| at(rows, "latency", "1", path));
    vec![
        Number::new(
            "1 thread, with",
            "2.813 us (Tofu), 3.67 us (InfiniBand)",
            with.map(text::time),
        ),
        Number::new(
            "1 thread, without",
            "2.365 us (Tofu), 3.31 us (InfiniBand)",
            without.map(text::time),
        ),
        Number::new(
            "added by the communication thread",
            "448 ns (Tofu), 360 ns (InfiniBand)",
            with.zip(without).map(|(with, without)| text::time(with - without)),
        ),
    ]
}

fn overhead(rows: &[Row]) -> Vec<Number> {
    let most =
        ["1", "2", "4", "8", "16"].into_iter().filter_map(|n| at(rows, "overhead", n, "offload"));
    vec![
        Number::new(
            "1 thread, with",
            "117 ns (Tofu), 689 ns (InfiniBand)",
            at(rows, "overhead", "1", "offload").map(text::time),
        ),
        Number::new(
            "most of all numbers of threads",
            "196 ns, 2 threads (Tofu)",
            most.max_by(f64::total_cmp).map(text::time),
        ),
        Number::new(
            "1 thread, without",
            "486 ns (InfiniBand)",
            at(rows, "overhead", "1", "delegate").map(text::time),
        ),
    ]
}

fn rate(rows: &[Row]) -> Vec<Number> {
    let of = |threads| at(rows, "rate", threads, "offload").map(|ns| 1e9 / ns);
    let best = ["1", "2", "4", "8", "16"].into_iter().filter_map(of).max_by(f64::total_cmp);
    let shown = |rate: f64| format!("{} messages a second", text::rate(rate));
    vec![
        Number::new(
            "best",
            "3.00 M at 4 threads (Tofu), 11.8 M at 2 (InfiniBand)",
            best.map(shown),
        ),
        Number::new(
            "most threads, of the best",
            "88 % at 15 threads (Tofu)",
            of("16").zip(best).map(|(last, best)| format!("{:.0} % at 16", 100.0 * last / best)),
        ),
    ]
}
