//! The locks' own code on a simulated machine with fixed constants: an atomic at the
//! hot engine takes 254 ns, latency 350 ns, overhead 150 ns, 8 ranks a node.

use crate::args;
use crate::bench::row::Row;
use crate::bench::row_writer::RowWriter;
use crate::failure::Failure;
use crate::summary::Summary;
use std::collections::BTreeMap;
use tsumugi_bench_lock::{
    Cost, CostModel, LockDesign, MEASURED, OfRank, Phase, SLOWEST, World, by_rank, on_one_node,
    paper,
};

/// Simulates all selected points.
pub fn measure(
    measure: &args::MeasureArgs,
    names: &[&'static str],
    rows: &RowWriter,
) -> Result<(), Failure> {
    let is_wanted = |row: &Row| names.contains(&&*row.name);
    if names.contains(&"paper") {
        rows.write(papers())?;
    }
    if names.iter().any(|name| name.starts_with("paper_by_")) {
        let (of_ranks, others): (Vec<Row>, Vec<Row>) = papers_by_rank(measure.quick)
            .into_iter()
            .filter(is_wanted)
            .partition(|row| row.name == "paper_by_rank");
        rows.write_unshown(of_ranks)?;
        rows.write(others)?;
    }
    if names.contains(&"paper_fetch_add") {
        rows.write(papers_fetch_adds())?;
    }
    if !PHASES.iter().any(|(name, _)| names.contains(name)) {
        return Ok(());
    }
    let sizes = if measure.quick { &SIZES[..4] } else { SIZES };
    rows.progress.stage("simulated", sizes.len() as u64);
    for (step, &ranks) in (1..).zip(sizes) {
        for local in LOCAL_NS {
            let machine = CostModel { local_ns: local, ..CostModel::FX100 };
            for (design, name, ranks_max) in DESIGNS {
                if ranks <= ranks_max {
                    let params = format!("ranks={ranks} algorithm={name} local={local}");
                    let points = point(design, ranks, machine, &params).into_iter();
                    rows.write(points.filter(is_wanted))?;
                }
            }
        }
        rows.progress.at(step);
    }
    Ok(())
}

/// The time and the cost of each phase of one point.
fn point(design: LockDesign, ranks: u32, machine: CostModel, params: &str) -> Vec<Row> {
    let mut world = World::new(design, ranks, machine, true);
    let mut rows = Vec::new();
    for (name, phase) in PHASES {
        let Cost { held_ns, done_ns, remote, on_a_word } = world.run(phase);
        // The time of an exclusive lock ends when the lock is held, that of lock and
        // unlock of all when the last rank has released.
        let is_all = matches!(phase, Phase::Cold | Phase::Warm);
        let ns = if is_all { done_ns } else { held_ns };
        rows.push(row("simulator", name, params, "ns", ns as f64));
        if is_all {
            let each = remote as f64 / f64::from(ranks);
            rows.push(row("simulator", name, params, "remote operations a rank", each));
            let most = f64::from(on_a_word);
            rows.push(row("simulator", name, params, "operations on a word", most));
        }
    }
    rows
}

/// The paper's measurements beside the simulator's results for the same points.
fn papers() -> Vec<Row> {
    let mut rows = Vec::new();
    for (ranks, us) in MEASURED {
        let params = |engines| format!("ranks={ranks} engines={engines}");
        rows.push(row("the paper", "paper", &params(1), "ns", us * 1e3));
        for engines in [1, 4] {
            let mut world = World::new(LockDesign::Global, ranks, paper(engines), false);
            let ns = world.run_rounds(ROUNDS) as f64 / f64::from(ROUNDS);
            rows.push(row("simulator", "paper", &params(engines), "ns", ns));
        }
    }
    rows
}

/// The time of each rank for 1,000 rounds, by the rank's number and by the number of
/// links between the rank and the lock, beside the time of the slowest rank.
fn papers_by_rank(is_quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (node_ranks, slowest_ns) in SLOWEST {
        let rounds = if is_quick { 50 } else { PAPER_ROUNDS };
        let ranks = by_rank(node_ranks, rounds);
        // Scaled up to the paper's number of rounds.
        let seconds =
            |rank: &OfRank| rank.done_ns as f64 / 1e9 * f64::from(PAPER_ROUNDS) / f64::from(rounds);
        let params = |what: &str, of: u32| format!("node_ranks={node_ranks} {what}={of}");
        for (rank, of) in (0..).zip(&ranks) {
            let params = params("rank", rank);
            rows.push(row("simulator", "paper_by_rank", &params, "s", seconds(of)));
        }
        let mut hops: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for of in &ranks {
            hops.entry(of.hops).or_default().push(seconds(of));
        }
        for (hops, mut of) in hops {
            let summary = Summary::of(&mut of).expect("ranks so far away");
            let row = row("simulator", "paper_by_hops", &params("hops", hops), "s", 0.0);
            rows.push(Row { summary, ..row });
        }
        let theirs = slowest_ns as f64 / 1e9;
        let params = format!("node_ranks={node_ranks} slowest");
        rows.push(row("the paper", "paper_by_hops", &params, "s", theirs));
        let ours = ranks.iter().map(seconds).fold(0.0, f64::max);
        rows.push(row("simulator", "paper_by_hops", &params, "s", ours));
    }
    rows
}

/// One atomic of each rank of a node, all at once: its time, and the share of it
/// during which the rank's processor waits.
fn papers_fetch_adds() -> Vec<Row> {
    let mut rows = Vec::new();
    for engines in [1, 4] {
        for (rank, of) in (0..).zip(on_one_node(engines)) {
            let wait_ns = of.held_ns - CostModel::FX100.overhead_ns;
            for (part, ns) in [("all", of.held_ns), ("sync_wait", wait_ns)] {
                let params = format!("engines={engines} part={part} rank={rank}");
                rows.push(row("simulator", "paper_fetch_add", &params, "ns", ns as f64));
            }
        }
    }
    rows
}

/// A row of a number that is the same in each run.
fn row(system: &str, name: &str, params: &str, unit: &str, value: f64) -> Row {
    Row {
        figure: "lock".to_owned(),
        system: system.to_owned(),
        name: name.to_owned(),
        params: params.to_owned(),
        unit: unit.to_owned(),
        summary: Summary::of(&mut [value]).expect("one sample"),
        line_ns_before: None,
        line_ns_after: None,
    }
}

/// The phases, in the order in which they run.
const PHASES: [(&str, Phase); 4] = [
    ("lock_all_cold", Phase::Cold),
    ("lock_all_warm", Phase::Warm),
    ("exclusive_after_all", Phase::Exclusive),
    ("exclusive_parallel", Phase::Parallel),
];
const DESIGNS: [(LockDesign, &str, u32); 3] = [
    (LockDesign::Tree, "tree", u32::MAX),
    (LockDesign::Global, "global", 65_536),
    (LockDesign::TwoLevel, "two_level", 65_536),
];
/// The last size is the whole K computer.
const SIZES: &[u32] = &[4, 64, 256, 4_096, 65_536, 663_552];
/// The time of an atomic on memory of the own node.
const LOCAL_NS: [u64; 2] = [30, 100];
const ROUNDS: u32 = 20;
/// Rounds of each rank, for the points for which the paper reports each rank.
const PAPER_ROUNDS: u32 = 1_000;
