//! S1: messages with one copy.

use super::experiment::{Experiment, Missing, Number, is_peer, median, no_numbers, no_plots};
use super::lines::{Lines, Quantity};
use super::measurement::{Measurement, Peers};
use crate::bench::message::{LOCKED, OURS, PAPER_RULE, RENDEZVOUS, TWO_COPY};
use crate::bench::plot::Plot;
use crate::bench::row::Row;
use crate::paper::Paper;
use crate::text;

pub const MEASUREMENTS: &[Measurement] = &[
    Measurement {
        name: "one_core",
        words: &["message", "--only", "same_core_pre"],
        peers: Peers::Message,
        seconds: [20, 300],
    },
    Measurement {
        name: "two_cores",
        words: &["message", "--only", "latency_pre"],
        peers: Peers::Message,
        seconds: [30, 700],
    },
    Measurement {
        name: "eager_limits",
        words: &["message", "--only", "halo_limits"],
        peers: Peers::None,
        seconds: [20, 300],
    },
];

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        paper: Paper::S1,
        name: "Figure 7a",
        title: "Half a round trip, receives posted before, both ranks on one core",
        from: Some("one_core"),
        same: "Designs and axes: normal eager (two copies), one copy into the receive, rendezvous; \
               the next receive is posted before the send. The paper's rule copies all messages \
               once on one core.",
        differs: "An x86-64 core in the place of a Xeon Phi core; the loop is ours, not OSU's. Beside \
                  the rule, lines with sizes that the job has measured.",
        shows: "On one core one copy is faster at all sizes, as in the paper.",
        has_peers: false,
        plots: |rows| of_designs(rows, "same_core_pre"),
        numbers: no_numbers,
    },
    Experiment {
        paper: Paper::S1,
        name: "Figure 7b",
        title: "Half a round trip, receives posted before, ranks on two cores",
        from: Some("two_cores"),
        same: "Designs and axes, as in figure 7a. Between cores the paper's rule copies messages of \
               more than 256 B once.",
        differs: "Two x86-64 cores, near or far from each other as the machine has placed them, in \
                  the place of two cores of a Xeon Phi.",
        shows: "From which size on one copy is faster between cores (the paper: from 512 B on).",
        has_peers: false,
        plots: |rows| of_designs(rows, "latency_pre"),
        numbers: no_numbers,
    },
    Experiment {
        paper: Paper::S1,
        name: "Figure 7, beside MPI",
        title: "The same beside the MPI libraries of this machine",
        from: Some("two_cores"),
        same: "Half a round trip by size; receives posted before.",
        differs: "The paper has no other MPI than its own.",
        shows: "Where the design stands among today's MPI libraries.",
        has_peers: true,
        plots: |rows| of_peers(rows, "latency_pre"),
        numbers: peers,
    },
    Experiment {
        paper: Paper::S1,
        name: "Table 2",
        title: "An exchange with 26 neighbours, by the limit of eager messages",
        from: Some("eager_limits"),
        same: "The lengths of LULESH's messages on meshes of 10 and 20 elements a side, and eager \
               limits.",
        differs: "8 ranks on the cores of this machine in the place of 216 on 216 hardware \
                  threads; computation is a loop in registers. `compare exchange` has the \
                  exchange as an MPI program.",
        shows: "How much time of a cycle one copy saves.",
        has_peers: false,
        plots: no_plots,
        numbers: limits,
    },
];

pub const MISSING: &[Missing] = &[
    Missing {
        paper: Paper::S1,
        name: "Figure 6",
        why: "It is the listing of the loop of figure 7.",
    },
    Missing {
        paper: Paper::S1,
        name: "Figure 8",
        why: "Messages by size: `compare exchange --only limits --svg FOLDER` draws them; it needs \
              an MPI library.",
    },
];

/// A plot for each distance between the cores.
fn of_designs(rows: &[Row], name: &str) -> Vec<Plot> {
    by_state(rows, name, |row| {
        let design = match &*row.system {
            OURS => "one copy, receives announced",
            LOCKED => "one copy, the paper's search under a lock",
            PAPER_RULE => "one copy, the paper's search and rule",
            TWO_COPY => "normal eager",
            RENDEZVOUS => "rendezvous",
            _ => return None,
        };
        Some(design.to_owned())
    })
}

fn of_peers(rows: &[Row], name: &str) -> Vec<Plot> {
    by_state(rows, name, |row| (row.system == OURS || is_peer(row)).then(|| row.system.clone()))
}

fn by_state(rows: &[Row], name: &str, line: fn(&Row) -> Option<String>) -> Vec<Plot> {
    let states =
        [(None, "One core"), (Some("near"), "Two cores, near"), (Some("far"), "Two cores, far")];
    let plots = states.into_iter().flat_map(|(state, title)| {
        let of = |row: &&Row| row.name == name && row.word("state") == state;
        let rows: Vec<Row> = rows.iter().filter(of).cloned().collect();
        Lines { title, x: ("bytes", "bytes"), y: Quantity::Microseconds, line }.plots(&rows)
    });
    plots.collect()
}

/// Ours beside each peer, at 8 bytes.
fn peers(rows: &[Row]) -> Vec<Number> {
    let at = |system: &str, state| {
        median(rows, system, "latency_pre", &[("bytes", "8"), ("state", state)])
    };
    let mut systems: Vec<&str> = Vec::new();
    for row in rows {
        if !systems.contains(&&*row.system) && (row.system == OURS || is_peer(row)) {
            systems.push(&row.system);
        }
    }
    let shown = |system: &&str| {
        let of = |state| at(system, state).map(|ns| format!("{} {state}", text::time(ns)));
        let here: Vec<String> = ["near", "far"].into_iter().filter_map(of).collect();
        let here = (!here.is_empty()).then(|| here.join(", "));
        Number::new(format!("8 B, {system}"), "", here)
    };
    systems.iter().map(shown).collect()
}

/// How much faster the exchange is with one copy: for each limit, and at the best limit of each.
fn limits(rows: &[Row]) -> Vec<Number> {
    let of_mesh = |(mesh, paper): (&str, &str)| {
        let row_of = |system: &str, eager: u64| {
            let eager = eager.to_string();
            median(rows, system, "halo_limits", &[("mesh", mesh), ("eager", &eager)])
        };
        let is_it = |row: &&Row| row.system == OURS && row.word("mesh") == Some(mesh);
        let limits: Vec<u64> =
            rows.iter().filter(is_it).filter_map(|row| row.number("eager")).collect();
        let best = |system: &str| {
            let times = limits.iter().filter_map(|eager| Some((row_of(system, *eager)?, *eager)));
            times.min_by(|one, other| one.0.total_cmp(&other.0))
        };
        let better = |two: f64, one: f64| format!("{:+.1} %", 100.0 * (two / one - 1.0));
        let each = limits.iter().filter_map(|eager| {
            let (one, two) = (row_of(OURS, *eager)?, row_of(TWO_COPY, *eager)?);
            let what = format!("mesh {mesh}, eager up to {}", text::bytes(*eager));
            Some(Number::new(what, "", Some(better(two, one))))
        });
        let peaks = best(OURS).zip(best(TWO_COPY)).map(|(one, two)| {
            format!("{}, eager up to {}", better(two.0, one.0), text::bytes(one.1))
        });
        let peak = Number::new(format!("mesh {mesh}, the best limit of each design"), paper, peaks);
        each.chain([peak]).collect::<Vec<_>>()
    };
    let meshes = [("10", "+4.9 %, eager up to 8 KiB"), ("20", "+0.7 %, eager up to 16 KiB")];
    meshes.into_iter().flat_map(of_mesh).collect()
}
