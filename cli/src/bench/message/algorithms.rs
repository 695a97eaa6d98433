//! Collectives by each of their algorithms, which are forced: the thresholds of
//! [`CollThresholds`](tsumugi_core::coll::schedule::CollThresholds) follow from the tables.
//!
//! Peers that are given, such as our own ranks on several nodes, are measured in place of the
//! ranks of this node.

use super::bench::MessageBench;
use super::case::{Case, YIELDING};
use super::collective::rounds_of;
use crate::bench::row::Row;
use crate::failure::Failure;
use crate::text;
use tsumugi_core::coll::row::CellRow;
use tsumugi_core::coll::schedule::CollKind;

/// The rows, each named by its collective.
pub const ROWS: &[&str] = &[
    "forced_barrier",
    "forced_broadcast",
    "forced_allreduce",
    "forced_gather",
    "forced_allgather",
    "forced_alltoall",
    "forced_reduce_scatter",
];

/// Measures the rows that are selected.
pub fn measure(bench: &mut MessageBench<'_>) -> Result<(), Failure> {
    let sizes = if bench.is_quick { QUICK_SIZES } else { SIZES };
    for (name, kind) in ROWS.iter().zip(KINDS) {
        for ranks in RANKS.into_iter().chain(CROWDS) {
            let mut systems = bench.one_of_ours(YIELDING)?;
            let is_near = systems.len() == 1;
            if !is_near {
                systems.remove(0);
            }
            let is_crowd = CROWDS.contains(&ranks);
            if is_crowd && !(is_near && kind.words().contains(&"rooted_rows")) {
                continue;
            }
            let sizes = match kind {
                CollKind::Barrier => &[0],
                _ if is_crowd => &sizes[..1],
                _ => sizes,
            };
            let cases = cases(name, kind, (ranks, is_near), sizes, bench.rounds());
            bench.measure(&cases, (&systems, ranks), None)?;
        }
    }
    Ok(())
}

fn cases(
    name: &'static str,
    kind: CollKind,
    (ranks, is_near): (u32, bool),
    sizes: &[usize],
    rounds: Option<u64>,
) -> Vec<Case> {
    let words = kind.words().iter().copied().chain([CHOSEN]);
    let case = |bytes: usize, (number, word): (usize, &str)| {
        let rounds = rounds_of(rounds, bytes, ranks);
        let command = format!("{} bytes={bytes} forced={number} rounds={rounds}", kind.name());
        let params = format!("ranks={ranks} bytes={bytes} algorithm={word}");
        let case = Case::new(name, params, command + " repeat=3", false);
        Case { passes: PASSES, ..case }
    };
    let serves = |bytes: usize, word: &str| match word {
        "rows" | "rooted_rows" => is_near && bytes * blocks(kind, ranks) <= CellRow::VALUE_BYTES,
        "nodes" | "direct" => !is_near && ranks > 2,
        "halving" | "ring" if kind == CollKind::Allreduce => bytes / 8 >= ranks as usize,
        _ => true,
    };
    let of_size = |bytes: &usize| {
        let bytes = *bytes;
        let words = words.clone().enumerate().filter(move |(_, word)| serves(bytes, word));
        words.map(move |word| case(bytes, word))
    };
    sizes.iter().flat_map(of_size).collect()
}

/// How many blocks a member publishes at once.
const fn blocks(kind: CollKind, ranks: u32) -> usize {
    match kind {
        CollKind::Alltoall | CollKind::ReduceScatter => ranks as usize,
        _ => 1,
    }
}

/// A table for each collective and number of ranks: the medians by length and algorithm.
pub fn tables(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut rest: Vec<&Row> = rows.iter().filter(|row| ROWS.contains(&&*row.name)).collect();
    while let Some(first) = rest.first().copied() {
        let is_of = |row: &&Row| {
            let same = (&row.system, &row.name) == (&first.system, &first.name);
            same && row.number("ranks") == first.number("ranks")
        };
        let (own, others) = rest.into_iter().partition::<Vec<_>, _>(is_of);
        text += &table(&own);
        rest = others;
    }
    text
}

fn table(rows: &[&Row]) -> String {
    let words = |name: &str| {
        let mut words: Vec<&str> = Vec::new();
        for word in rows.iter().filter_map(|row| row.word(name)) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words
    };
    let (sizes, algorithms) = (words("bytes"), words("algorithm"));
    let ns = |bytes: &str, algorithm: &str| {
        let is_it = |row: &&&Row| {
            (row.word("bytes"), row.word("algorithm")) == (Some(bytes), Some(algorithm))
        };
        rows.iter().find(is_it).map(|row| row.summary.median)
    };
    let line = |bytes: &&str| {
        let all: Vec<Option<f64>> = algorithms.iter().map(|word| ns(bytes, word)).collect();
        let forced = algorithms.iter().zip(&all).filter(|(word, _)| **word != CHOSEN);
        let least = forced.filter_map(|(_, ns)| *ns).fold(f64::INFINITY, f64::min);
        let mark = |ns: f64| if ns == least { "*" } else { "" };
        let cell = |ns: &Option<f64>| {
            ns.map_or_else(String::new, |ns| format!("{:.1}{}", ns / 1e3, mark(ns)))
        };
        [(*bytes).to_owned()].into_iter().chain(all.iter().map(cell)).collect::<Vec<_>>()
    };
    let header: Vec<&str> = ["bytes"].into_iter().chain(algorithms.iter().copied()).collect();
    let of = |name| rows[0].word(name).unwrap_or_default();
    let title = format!("{} of {}, {} ranks", rows[0].name, rows[0].system, of("ranks"));
    let table = text::table(&header, sizes.iter().map(line));
    format!("\n{title}: median in us, * the fastest\n{table}")
}

const KINDS: [CollKind; 7] = [
    CollKind::Barrier,
    CollKind::Broadcast,
    CollKind::Allreduce,
    CollKind::Rooted,
    CollKind::Allgather,
    CollKind::Alltoall,
    CollKind::ReduceScatter,
];
/// What the lengths choose.
const CHOSEN: &str = "chosen";
const SIZES: &[usize] = &[
    8,
    64,
    256,
    1 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
];
const QUICK_SIZES: &[usize] = &[8, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const PASSES: u32 = 3;
const RANKS: [u32; 3] = [2, 4, 8];
/// More ranks of a node, for short values.
const CROWDS: [u32; 3] = [16, 32, 64];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::tests::row;

    #[test]
    fn each_row_forces_the_words_of_its_collective() {
        assert_eq!(ROWS.len(), KINDS.len());
        for (name, kind) in ROWS.iter().zip(KINDS) {
            assert_eq!(name.strip_prefix("forced_"), Some(kind.name()));
        }
        let cases = cases(ROWS[1], CollKind::Broadcast, (4, true), &[8, 1024], None);
        let words: Vec<_> = cases.iter().map(|case| case.params.as_str()).collect();
        let line = |bytes, word| format!("ranks=4 bytes={bytes} algorithm={word}");
        let of = |bytes, all: &[&'static str]| -> Vec<String> {
            all.iter().map(|word| line(bytes, *word)).collect()
        };
        let short = of(8, &["rows", "tree", "flat", "chain", "spread", CHOSEN]);
        assert_eq!(words, [short, of(1024, &["tree", "flat", "chain", "spread", CHOSEN])].concat());
    }

    #[test]
    fn a_table_marks_the_fastest() {
        let of = |algorithm: &str, ns| Row {
            params: format!("ranks=4 bytes=8 algorithm={algorithm}"),
            ..row("tsumugi", ROWS[1], ns)
        };
        let text = tables(&[of("tree", 2000.0), of("chain", 1000.0), of(CHOSEN, 900.0)]);
        assert!(text.contains("forced_broadcast of tsumugi, 4 ranks"), "{text}");
        assert!(text.contains("2.0 ") && text.contains("1.0*") && !text.contains("0.9*"), "{text}");
    }
}
