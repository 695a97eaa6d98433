//! S2: puts and gets by global addresses, copies between two other ranks, and memory.

use super::experiment::{Experiment, Missing, Number, no_numbers, no_plots};
use super::lines::{Lines, Quantity};
use super::measurement::{Measurement, Peers};
use crate::bench::message::OURS;
use crate::bench::plot::Plot;
use crate::bench::row::Row;
use crate::info;
use crate::paper::Paper;
use crate::text;

pub const MEASUREMENTS: &[Measurement] = &[Measurement {
    name: "one_sided",
    words: &["message", "--only", "one_sided"],
    peers: Peers::Message,
    seconds: [60, 900],
}];

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        paper: Paper::S2,
        name: "Figure 4",
        title: "Bandwidth of put and get, by size",
        from: Some("one_sided"),
        same: "Effective bandwidth: the bytes of one operation divided by its time, beside the \
               ping-pong of MPI libraries (bytes divided by half a round trip).",
        differs: "Two processes of this node in the place of two nodes with InfiniBand QDR (4 GB/s).",
        shows: "From which size on the copy itself is what takes the time.",
        has_peers: true,
        plots: |rows| by_state(rows, &["put", "get"], Quantity::MegabytesPerSecond("bytes")),
        numbers: no_numbers,
    },
    Experiment {
        paper: Paper::S2,
        name: "Figure 5",
        title: "Latency of put and get, by size",
        from: Some("one_sided"),
        same: "Time of one put or get until it has ended, beside half a round trip of MPI libraries.",
        differs: "Two processes of this node in the place of InfiniBand; the ping-pong is ours, not \
                  that of the Intel MPI Benchmarks.",
        shows: "The paper's operations took 50 % longer than Open MPI's up to 64 B; here an \
                operation needs no message.",
        has_peers: true,
        plots: |rows| by_state(rows, &["put", "get"], Quantity::Microseconds),
        numbers: no_numbers,
    },
    Experiment {
        paper: Paper::S2,
        name: "Copies between two others",
        title: "A copy that neither its source nor its destination has asked for, by size",
        from: Some("one_sided"),
        same: "The mechanism of figure 1.",
        differs: "The paper leaves its measurement to later work.",
        shows: "What a rank pays for a copy between two other ranks.",
        has_peers: false,
        plots: |rows| by_state(rows, &["third"], Quantity::Microseconds),
        numbers: no_numbers,
    },
    Experiment {
        paper: Paper::S2,
        name: "Table 3",
        title: "Memory of a rank in a job of a million ranks",
        from: None,
        same: "The parts of the table, at 1,000,000 ranks.",
        differs: "Counted from the sizes of the tables, as in the paper; queue pairs are made on \
                  first use, in place of one for each rank at the start (160 B each in the \
                  paper), and are memory of the network's library, which is not measured.",
        shows: "What a rank needs before it has communicated.",
        has_peers: false,
        plots: no_plots,
        numbers: |_| memory(),
    },
];

pub const MISSING: &[Missing] = &[Missing {
    paper: Paper::S2,
    name: "16 nodes with InfiniBand QDR",
    why: "There is no such machine here; `ci/verbs.sh figures` has figures 4 and 5 over Soft-RoCE \
          in an emulated guest, `ci/netns.sh figures` over tcp.",
}];

/// A plot of each operation at each distance: ours, and the peers' ping-pong.
fn by_state(rows: &[Row], names: &[&str], y: Quantity) -> Vec<Plot> {
    let titles = [("put", "Put"), ("get", "Get"), ("third", "Copy between two others")];
    let mut plots = Vec::new();
    for (name, title) in titles.into_iter().filter(|(name, _)| names.contains(name)) {
        for state in ["near", "far"] {
            let of = |row: &&Row| row.name == name && row.word("state") == Some(state);
            let rows: Vec<Row> = rows.iter().filter(of).cloned().collect();
            let line = |row: &Row| match &*row.system {
                OURS => Some(format!("{} of tsumugi", row.name)),
                peer => Some(format!("ping-pong of {peer}")),
            };
            let of_state = Lines { title, x: ("bytes", "bytes"), y, line }.plots(&rows);
            plots.extend(
                of_state
                    .into_iter()
                    .map(|plot| Plot { title: format!("{}, {state}", plot.title), ..plot }),
            );
        }
    }
    plots
}

fn memory() -> Vec<Number> {
    let Ok(lines) = info::beside_paper(MANY) else { return Vec::new() };
    let is_of_library = |line: &tsumugi::Beside| OF_THE_LIBRARY.contains(&line.name);
    let of_library = lines.iter().filter(|line| is_of_library(line));
    let not_counted: u64 = of_library.filter_map(|line| line.paper_bytes).sum();
    let shown = |line: &tsumugi::Beside| {
        let paper = |bytes| text::bytes(bytes);
        let missing = || "not counted".to_owned();
        if is_of_library(line) {
            let here = "not measured: memory of the network's library, for peers in use";
            let paper = line.paper_bytes.map_or_else(missing, paper);
            return Number::new(line.name, paper, Some(here.to_owned()));
        }
        if line.name == "total" {
            let rest = line.paper_bytes.map_or_else(missing, |all| paper(all - not_counted));
            let what = "total, without the network's library";
            return Number::new(what, rest, Some(text::bytes(line.bytes)));
        }
        let paper = line.paper_bytes.map_or_else(missing, paper);
        Number::new(line.name, paper, Some(text::bytes(line.bytes)))
    };
    lines.iter().map(shown).collect()
}

const MANY: u64 = 1_000_000;

/// The parts of the table that are memory of the network's library here, which nothing counts.
const OF_THE_LIBRARY: [&str; 2] =
    ["queue pairs (here in the network's library)", "completion queue, memory regions"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_nothing_counts_is_not_zero() {
        let numbers = memory();
        let of = |what: &str| numbers.iter().find(|number| number.what == what).unwrap();
        for part in OF_THE_LIBRARY {
            assert!(of(part).here.starts_with("not measured"), "{:?}", of(part));
        }
        // 178 MiB with its queue pairs, of which there are 160 B for each of a million ranks.
        assert_eq!(of("total, without the network's library").paper, "25.7 MiB");
    }
}
