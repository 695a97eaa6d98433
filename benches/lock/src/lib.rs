//! The cost of locks on machines that are not here: the locks' own code runs on the
//! ranks of a simulated machine with given constants.

mod machine;

pub use machine::{ClaimEnd, Cost, Phase, World};
use tsumugi_core::mem::Rank;
pub use tsumugi_core::sim::CostModel;
pub use tsumugi_gas::lock::LockDesign;

/// The paper's machine. Each process goes through one engine, or through four. With
/// four, the processes share the bus, and are 40 % better, not four times.
pub fn paper(engines: u32) -> CostModel {
    let one = CostModel { node_ranks: 1, ..CostModel::FX100 };
    match engines {
        1 => one,
        _ => CostModel { engines, bus_ns: one.engine_ns * 6 / 10, ..one },
    }
}

/// The paper's measurements: the number of processes, and the microseconds for each
/// to lock and unlock all, with one lock for the window.
pub const MEASURED: [(u32, f64); 5] =
    [(4, 2.3), (128, 69.0), (256, 130.0), (1_024, 520.0), (4_096, 2_200.0)];

/// The times of one rank of the paper's machine.
#[derive(Clone, Copy, Debug)]
pub struct OfRank {
    /// Links between the rank's node and the lock's.
    pub hops: u32,
    /// When the rank had its lock.
    pub held_ns: u64,
    /// When the rank had done all its rounds.
    pub done_ns: u64,
}

/// The times of each rank of 128 nodes to lock and unlock all so often, with
/// `node_ranks` ranks on each node. The links of the machine are full, so that each
/// router on the way to the one lock lets its sides through in turn.
pub fn by_rank(node_ranks: u32, rounds: u32) -> Vec<OfRank> {
    let machine = CostModel {
        node_ranks,
        loopback: true,
        in_turn: true,
        torus: [4, 4, 8],
        hop_ns: 100,
        ..CostModel::FX100
    };
    ranks_of(machine, NODES * node_ranks, rounds)
}

/// The times of each of the 32 ranks of one node for an atomic on one word, all at
/// once, through one engine or through four of the node's.
pub fn on_one_node(engines: u32) -> Vec<OfRank> {
    let machine = CostModel { node_ranks: NODE_RANKS, loopback: true, ..paper(engines) };
    ranks_of(machine, NODE_RANKS, 1)
}

fn ranks_of(machine: CostModel, ranks: u32, rounds: u32) -> Vec<OfRank> {
    let mut world = World::new(LockDesign::Global, ranks, machine, false);
    world.run_rounds(rounds);
    let of_rank = |(rank, ClaimEnd { held_ns, done_ns })| {
        let hops = machine.hops(Rank(rank), Rank(0));
        OfRank { hops, held_ns, done_ns }
    };
    (0..).zip(world.ended()).map(of_rank).collect()
}

/// The paper's time of the slowest rank for 1,000 rounds on 128 nodes, by the ranks
/// on each node: nanoseconds.
pub const SLOWEST: [(u32, u64); 3] = [(32, 2_200_000_000), (8, 520_000_000), (1, 69_000_000)];

/// Nodes of the paper's machine.
const NODES: u32 = 128;
/// Ranks of one of these nodes.
const NODE_RANKS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(ours: f64, theirs: f64) -> bool {
        (ours / theirs - 1.0).abs() < 0.1
    }

    #[test]
    fn all_ranks_take_as_long_as_the_paper_says() {
        for (ranks, us) in MEASURED.into_iter().filter(|(ranks, _)| *ranks <= 1_024) {
            let mut world = World::new(LockDesign::Global, ranks, paper(1), false);
            let ours = world.run_rounds(4) as f64 / 4e3;
            assert!(is_near(ours, us), "{ranks} ranks: {ours} us, the paper: {us}");
        }
    }

    #[test]
    fn near_ranks_are_done_first_and_the_slowest_takes_the_time_of_the_paper() {
        let ranks = by_rank(1, 50);
        let done = |hops| {
            let of = ranks.iter().filter(|rank| rank.hops == hops).map(|rank| rank.done_ns);
            of.clone().sum::<u64>() / of.count() as u64
        };
        let all: Vec<u64> = (0..=8).map(done).collect();
        assert!(all.is_sorted(), "by hops: {all:?}");
        assert!(all[8] > 5 * all[0], "{all:?}");
        let slowest = ranks.iter().map(|rank| rank.done_ns).max().unwrap_or(0);
        assert!(is_near(slowest as f64 * 20.0, SLOWEST[2].1 as f64), "{slowest}");
    }

    #[test]
    fn four_engines_are_faster_but_not_four_times() {
        let slowest = |engines| {
            let ranks = on_one_node(engines);
            ranks.iter().map(|rank| rank.held_ns).max().unwrap_or(0) as f64
        };
        let ratio = slowest(4) / slowest(1);
        assert!((0.55..0.7).contains(&ratio), "{ratio}");
    }
}
