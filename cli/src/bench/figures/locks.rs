//! S3: locks of windows by real processes, and on a simulated machine.

use super::experiment::{Experiment, Missing, Number, no_numbers};
use super::lines::{Lines, Quantity};
use super::measurement::{Measurement, Peers};
use crate::bench::plot::Plot;
use crate::bench::row::Row;
use crate::paper::Paper;
use crate::text;

pub const MEASUREMENTS: &[Measurement] = &[
    Measurement {
        name: "locks",
        words: &["lock", "--only", "processes"],
        peers: Peers::Lock,
        seconds: [60, 300],
    },
    Measurement {
        name: "locks_simulated",
        words: &["lock", "--only", "simulated"],
        peers: Peers::None,
        seconds: [40, 120],
    },
];

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        paper: Paper::S3,
        name: "Figure 8, by processes",
        title: "All ranks lock and unlock all targets; the slowest rank counts",
        from: Some("locks"),
        same: "Each rank runs rounds of lock_all and unlock_all; the time of the slowest one.",
        differs: "2 to 16 processes that share the cores of this machine, in the place of 4 to \
                  4,096 on 128 nodes.",
        shows: "One lock for all targets, two levels, and a tree of locks, by real processes.",
        has_peers: false,
        plots: |rows| by_ranks(rows, "lock_all"),
        numbers: slowest,
    },
    Experiment {
        paper: Paper::S3,
        name: "Figure 9",
        title: "All ranks lock one target each, exclusively",
        from: Some("locks"),
        same: "The exclusive lock of one target, beside the MPI libraries of this machine.",
        differs: "2 to 16 processes of one machine; the paper's MPI ran on FX10.",
        shows: "With one lock for all targets, writers of different targets wait for each other.",
        has_peers: true,
        plots: |rows| by_ranks(rows, "exclusive"),
        numbers: no_numbers,
    },
    Experiment {
        paper: Paper::S3,
        name: "Figures 4 and 5",
        title: "A stencil by fences, and by lock_all with flush",
        from: Some("locks"),
        same: "The two programs of the paper without their computation.",
        differs: "Processes of one machine.",
        shows: "What the synchronization of a step takes.",
        has_peers: false,
        plots: |rows| {
            let mut plots = by_ranks(rows, "stencil_fence");
            plots.extend(by_ranks(rows, "stencil_lock_all"));
            plots
        },
        numbers: no_numbers,
    },
    Experiment {
        paper: Paper::S3,
        name: "Figure 8, simulated",
        title: "The same on a simulated machine of up to 663,552 ranks",
        from: Some("locks_simulated"),
        same: "Ranks and axes; the code of the locks is that of the library.",
        differs: "Fitted to the paper's points: in the simulator an atomic at the busiest engine \
                  takes 254 ns, and a message 350 ns. So the line of one engine is no \
                  evidence; what the designs add to it is.",
        shows: "A tree of locks keeps the time of a million ranks in microseconds, where one lock \
                takes a second.",
        has_peers: false,
        plots: |rows| {
            simulated(rows, &["lock_all_cold", "lock_all_warm", "paper"], ("ranks", "ranks"))
        },
        numbers: no_numbers,
    },
    Experiment {
        paper: Paper::S3,
        name: "Figure 10",
        title: "Time of 1,000 rounds, by the distance of a rank from the lock",
        from: Some("locks_simulated"),
        same: "1, 8 and 32 ranks a node on a torus.",
        differs: "Simulated; fitted to the paper's points.",
        shows: "Near ranks are served first.",
        has_peers: false,
        plots: |rows| {
            let scaled: Vec<Row> =
                rows.iter().filter(|row| row.name == "paper_by_hops").map(in_ns).collect();
            Lines {
                title: "By links between a rank and the lock, 1,000 rounds",
                x: ("hops", "links"),
                y: Quantity::Microseconds,
                line: |row| Some(format!("{} ranks a node", row.word("node_ranks")?)),
            }
            .plots(&scaled)
        },
        numbers: |rows| {
            let slowest = rows
                .iter()
                .filter(|row| row.name == "paper_by_hops" && row.params.ends_with("slowest"));
            let ours: Vec<&Row> = slowest.clone().filter(|row| row.system == "simulator").collect();
            let theirs = slowest.filter(|row| row.system != "simulator");
            let number = |row: &Row| {
                let here = ours.iter().find(|own| own.params == row.params);
                let node_ranks = row.word("node_ranks").unwrap_or_default();
                Number::new(
                    format!("slowest rank, {node_ranks} ranks a node"),
                    format!("{:.3} s", row.summary.median),
                    here.map(|own| format!("{:.3} s", own.summary.median)),
                )
            };
            theirs.map(number).collect()
        },
    },
    Experiment {
        paper: Paper::S3,
        name: "Figures 11 and 12",
        title: "One atomic of each rank of a node at once, with 1 and with 4 receive engines",
        from: Some("locks_simulated"),
        same: "All ranks of a node at once; the time, and the part in which the processor waits.",
        differs: "Simulated; that four engines gain 40 % is put in from the paper.",
        shows: "How the wait grows with the number of ranks before it in the queue.",
        has_peers: false,
        plots: |rows| simulated(rows, &["paper_fetch_add"], ("rank", "rank")),
        numbers: no_numbers,
    },
];

pub const MISSING: &[Missing] = &[Missing {
    paper: Paper::S3,
    name: "128 nodes of FX100 with Tofu2",
    why: "There is no such machine here, and no back end for Tofu.",
}];

fn by_ranks(rows: &[Row], name: &str) -> Vec<Plot> {
    let rows: Vec<Row> = rows.iter().filter(|row| row.name == name).cloned().collect();
    let title = match name {
        "stencil_fence" => "Stencil by fences",
        "stencil_lock_all" => "Stencil by lock_all",
        _ => "A round of the slowest rank",
    };
    let line = |row: &Row| match row.word("algorithm") {
        Some(algorithm) if row.system == "tsumugi" => Some(format!("tsumugi, {algorithm}")),
        _ => Some(row.system.clone()),
    };
    Lines { title, x: ("ranks", "ranks"), y: Quantity::Microseconds, line }.plots(&rows)
}

fn simulated(rows: &[Row], names: &[&str], x: (&'static str, &'static str)) -> Vec<Plot> {
    let of = |row: &&Row| names.contains(&&*row.name);
    let rows: Vec<Row> = rows.iter().filter(of).cloned().collect();
    let line = |row: &Row| {
        let word = |name| row.word(name).unwrap_or_default();
        Some(match &*row.name {
            "paper" => format!("{}, {} engines", row.system, word("engines")),
            "lock_all_warm" => format!("{}, warm, {} ns", word("algorithm"), word("local")),
            "lock_all_cold" => format!("{}, cold, {} ns", word("algorithm"), word("local")),
            _ => format!("{} engines, {}", word("engines"), word("part")),
        })
    };
    Lines { title: "Simulated", x, y: Quantity::Microseconds, line }.plots(&rows)
}

/// A row of seconds as one of ns.
fn in_ns(row: &Row) -> Row {
    let mut row = row.clone();
    let summary = &mut row.summary;
    for value in [
        &mut summary.min,
        &mut summary.median,
        &mut summary.low,
        &mut summary.high,
        &mut summary.p99,
    ] {
        *value *= 1e9;
    }
    row.unit = "ns".to_owned();
    row
}

/// The slowest rank beside the paper's smallest and largest job.
fn slowest(rows: &[Row]) -> Vec<Number> {
    let of = |row: &&Row| row.name == "lock_all" && row.system == "tsumugi";
    let number = |row: &Row| {
        let (ranks, algorithm) = (row.number("ranks")?, row.word("algorithm")?);
        let paper = if ranks == 4 && algorithm == "global" { "2.3 us" } else { "" };
        let what = format!("{ranks} ranks, {algorithm}");
        Some(Number::new(what, paper, Some(text::time(row.summary.median))))
    };
    rows.iter().filter(of).filter_map(number).collect()
}
