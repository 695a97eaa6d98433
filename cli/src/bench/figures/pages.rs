//! S4: arrays whose pages move.

use super::experiment::{Experiment, Missing, Number, median, no_numbers, no_plots};
use super::lines::{Lines, Quantity};
use super::measurement::{Measurement, Peers};
use crate::bench::row::Row;
use crate::paper::Paper;
use crate::text;

pub const MEASUREMENTS: &[Measurement] = &[
    Measurement { name: "pages", words: &["gas"], peers: Peers::None, seconds: [30, 150] },
    Measurement { name: "programs", words: &["program"], peers: Peers::None, seconds: [60, 300] },
];

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        paper: Paper::S4,
        name: "Figure of gets",
        title: "A get by page size, with and without the cache of places",
        from: Some("pages"),
        same: "Home, owner and requester are three ranks; without the cache each get first asks \
               the home where the page is: by messages as in the paper, and by remote reads.",
        differs: "Three processes of this node in the place of three nodes of FX10; raw reads of as \
                  many bytes beside.",
        shows: "What the cache saves: all but the get itself.",
        has_peers: false,
        plots: |rows| {
            Lines {
                title: "A get",
                x: ("page_bytes", "bytes of a page"),
                y: Quantity::Microseconds,
                line: |row| {
                    let name = match &*row.name {
                        "raw_read" => "raw read",
                        "get_cached" => "with the cache",
                        "get_uncached" => "without, by remote reads",
                        "get_uncached_messages" => "without, by messages",
                        "get_uncached_device" => "without, by the device",
                        _ => return None,
                    };
                    Some(name.to_owned())
                },
            }
            .plots(rows)
        },
        numbers: gets,
    },
    Experiment {
        paper: Paper::S4,
        name: "Own",
        title: "A page that moves to the caller, by page size",
        from: Some("pages"),
        same: "The ten steps of own, by the paper's directory of messages.",
        differs: "The paper has no measurement of it; directories by atomics beside.",
        shows: "What it takes to move a page, with and without a rank that reads it.",
        has_peers: false,
        plots: |rows| {
            Lines {
                title: "Own",
                x: ("page_bytes", "bytes of a page"),
                y: Quantity::Microseconds,
                line: |row| {
                    let readers = row.word("readers")?;
                    let directory = row.word("directory")?;
                    (row.name == "own").then(|| format!("by {directory}, {readers} readers"))
                },
            }
            .plots(rows)
        },
        numbers: no_numbers,
    },
    Experiment {
        paper: Paper::S4,
        name: "Programs",
        title: "Whole programs, with and without pages that move",
        from: Some("programs"),
        same: "The motivation of the talk: a mesh that is refined, and work that is distributed anew.",
        differs: "The talk has no such measurement.",
        shows: "The time of a program when its pages follow its work.",
        has_peers: false,
        plots: no_plots,
        numbers: programs,
    },
];

pub const MISSING: &[Missing] = &[Missing {
    paper: Paper::S4,
    name: "Three nodes",
    why: "One node is measured here; `ci/netns.sh pages` has the gets over tcp between three \
          network namespaces, `ci/verbs.sh pages` over Soft-RoCE.",
}];

fn gets(rows: &[Row]) -> Vec<Number> {
    let mut sizes: Vec<u64> = rows.iter().filter_map(|row| row.number("page_bytes")).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let number = |bytes: u64| {
        let word = bytes.to_string();
        let at = |name| median(rows, "tsumugi", name, &[("page_bytes", &word)]);
        let ratio = at("get_uncached_messages")
            .zip(at("get_cached"))
            .map(|(without, with)| format!("{:.1}", without / with));
        let paper = if bytes == 8 { "more than 10 times" } else { "" };
        Number::new(format!("without the cache, of with it: {}", text::bytes(bytes)), paper, ratio)
    };
    sizes.into_iter().map(number).collect()
}

fn programs(rows: &[Row]) -> Vec<Number> {
    let number = |row: &Row| {
        let here = format!("{:.3} {}", row.summary.median, row.unit);
        Number::new(row.name.replace('_', " "), "", Some(here))
    };
    rows.iter().map(number).collect()
}
