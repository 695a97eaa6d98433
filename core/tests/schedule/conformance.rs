//! Each algorithm against a serial reference, for many numbers of ranks and lengths.

use super::case::{Case, Kind, Outcome};
use super::network::{Network, Weather};
use tsumugi_core::coll::schedule::{
    AllgatherDesign, AllreduceDesign, BroadcastDesign, CollChoice, CollForced, CollKind,
};

/// Group sizes: all small ones, and those round powers of two.
fn sizes() -> impl Iterator<Item = u32> {
    (1..=17).chain([31, 32, 33, 64])
}

pub fn calm(seed: u64) -> Weather {
    let eager_max = [0, 64, usize::MAX][seed as usize % 3];
    Weather { seed, deaths: 0, eager_max, begin_within: 100, delay_max: 20 }
}

/// Those that go by nodes.
pub const NODE_KINDS: [Kind; 9] = [
    Kind::NodeBarrier,
    Kind::NodeBroadcast,
    Kind::NodeReduce,
    Kind::NodeAllreduce,
    Kind::NodeAllgather,
    Kind::NodeReduceScatter,
    Kind::NodeGather,
    Kind::NodeScatter,
    Kind::NodeAlltoall,
];

/// Runs a case in which no rank dies, and compares all results.
pub fn passes(case: &Case, seed: u64) {
    for (me, (_, outcome)) in (0..).zip(Network::new(case, calm(seed)).run()) {
        match outcome {
            Some(Outcome::Done(output, all)) => {
                assert_eq!(output, case.expected(me), "rank {me} of {case:?}");
                let waits = matches!(case.kind, Kind::Barrier | Kind::NodeBarrier);
                assert!(all || !waits, "rank {me} has left {case:?} before all had come");
            }
            other => panic!("rank {me} of {case:?}: {other:?}"),
        }
    }
}

/// The kinds that a group of this size can run, with the operations that each allows.
pub fn kinds(size: u32) -> Vec<(Kind, bool)> {
    let is_even = size.is_power_of_two();
    let mut kinds = vec![
        (Kind::Barrier, true),
        (Kind::Broadcast(BroadcastDesign::Tree), true),
        (Kind::Broadcast(BroadcastDesign::Flat), true),
        (Kind::Broadcast(BroadcastDesign::Chain(48)), true),
        (Kind::Broadcast(BroadcastDesign::Spread), true),
        (Kind::Reduce, true),
        (Kind::Reduce, false),
        (Kind::Allreduce(AllreduceDesign::Doubling), true),
        (Kind::Allreduce(AllreduceDesign::Doubling), false),
        (Kind::Allreduce(AllreduceDesign::Halving), true),
        (Kind::Allreduce(AllreduceDesign::Ring), true),
        (Kind::Scan { exclusive: false }, false),
        (Kind::Scan { exclusive: true }, false),
        (Kind::Gather { tree: true }, true),
        (Kind::Gather { tree: false }, true),
        (Kind::Scatter { tree: true }, true),
        (Kind::Scatter { tree: false }, true),
        (Kind::Allgather(AllgatherDesign::Bruck), true),
        (Kind::Allgather(AllgatherDesign::Ring), true),
        (Kind::Alltoall { short: true }, true),
        (Kind::Alltoall { short: false }, true),
        (Kind::ReduceScatter { halve: false }, true),
        (Kind::ReduceScatter { halve: false }, false),
    ];
    if is_even {
        kinds.push((Kind::Allgather(AllgatherDesign::Doubling), true));
        kinds.push((Kind::ReduceScatter { halve: true }, true));
    }
    kinds
}

#[test]
fn every_algorithm_gives_the_result_of_a_serial_one() {
    for size in sizes() {
        for (kind, commutes) in kinds(size) {
            for (seed, count) in (0..).zip([0, 1, 37]) {
                for root in [0, size / 2] {
                    passes(&Case::new(kind, size, root, count, commutes), seed);
                }
            }
        }
    }
}

/// Of the algorithms for short values: on its longest way a value takes at most two messages
/// more than the logarithm.
#[test]
fn short_values_go_by_few_messages_one_after_the_other() {
    let is_short = |kind: &Kind| {
        !matches!(
            kind,
            Kind::Broadcast(
                BroadcastDesign::Flat | BroadcastDesign::Chain(_) | BroadcastDesign::Spread
            ) | Kind::Allreduce(AllreduceDesign::Halving | AllreduceDesign::Ring)
                | Kind::Allgather(AllgatherDesign::Ring)
                | Kind::Alltoall { short: false }
                | Kind::ReduceScatter { halve: false }
        )
    };
    for size in sizes().chain([1000]) {
        let most = size.next_power_of_two().ilog2() + 2;
        for (kind, commutes) in kinds(size).into_iter().filter(|(kind, _)| is_short(kind)) {
            let case = Case::new(kind, size, size / 2, 1, commutes);
            let weather = Weather { eager_max: usize::MAX, ..calm(size.into()) };
            let (_, depth) = Network::new(&case, weather).run_counting();
            assert!(depth <= most, "{depth} messages one after the other in {case:?}");
        }
    }
}

#[test]
fn blocks_may_have_any_lengths() {
    for size in sizes() {
        for kind in [
            Kind::Gather { tree: false },
            Kind::Scatter { tree: false },
            Kind::Allgather(AllgatherDesign::Bruck),
            Kind::Allgather(AllgatherDesign::Ring),
            Kind::Alltoall { short: false },
            Kind::ReduceScatter { halve: false },
        ] {
            for (seed, count) in (0..).zip([1, 3, 20]) {
                passes(&Case::with(kind, size, size / 3, count, true, true, 1), seed);
                passes(&Case::with(kind, size, size / 3, count, false, true, 1), seed);
            }
        }
    }
}

#[test]
fn groups_on_several_nodes_take_stages() {
    for size in sizes() {
        for nodes in [2, 3, 7] {
            for kind in NODE_KINDS {
                for (seed, count) in (0..).zip(if size == 13 { &[1, 40_000][..] } else { &[1, 80] })
                {
                    let (root, nodes) = (size / 2, nodes.min(size));
                    // Of some each member has a block of so many elements.
                    let most = match kind {
                        Kind::NodeAllgather | Kind::NodeReduceScatter => 3000,
                        Kind::NodeGather | Kind::NodeScatter => 2500,
                        Kind::NodeAlltoall => 32,
                        _ => 40_000,
                    };
                    let count = count.min(&most);
                    for commutes in [true, false] {
                        let case = Case::with(kind, size, root, *count, commutes, false, nodes);
                        passes(&case, seed);
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_forced_gives_the_same_results() {
    let words = CollKind::ALL.into_iter().flat_map(CollKind::words);
    let all = words.map(|word| CollForced::parse(&format!("all={word}")).unwrap());
    for (forced, size) in all.flat_map(|forced| [5, 8].map(|size| (forced, size))) {
        let choice = CollChoice::DEFAULT.forcing(forced);
        for (kind, commutes) in
            NODE_KINDS.into_iter().flat_map(|kind| [(kind, true), (kind, false)])
        {
            for (seed, count) in (0..).zip([1, 300]) {
                let mut case = Case::with(kind, size, size / 2, count, commutes, false, 3);
                case.choice = choice.clone();
                passes(&case, seed);
            }
        }
    }
}

#[cfg(debug_assertions)]
mod planted {
    use super::*;
    use std::panic::catch_unwind;
    use tsumugi_core::sync::with_mutant;

    /// Each planted defect is noticed.
    #[test]
    fn planted_defects_are_noticed() {
        let tree = Kind::Broadcast(BroadcastDesign::Tree);
        for (name, kind, commutes) in [
            ("coll_barrier_short", Kind::Barrier, true),
            ("coll_flat_last", Kind::Broadcast(BroadcastDesign::Flat), true),
            ("coll_chain_ahead", Kind::Broadcast(BroadcastDesign::Chain(48)), true),
            ("coll_tree_order", Kind::Reduce, false),
            ("coll_doubling_order", Kind::Allreduce(AllreduceDesign::Doubling), false),
            ("coll_scan_order", Kind::Scan { exclusive: false }, false),
            ("coll_flat_block", Kind::Gather { tree: false }, true),
            ("coll_bruck_last", Kind::Allgather(AllgatherDesign::Bruck), true),
            ("coll_pair_block", Kind::Alltoall { short: false }, true),
            ("coll_no_wait", tree, true),
        ] {
            let all = || {
                (0..20).for_each(|seed| passes(&Case::new(kind, 13, 3, 37, commutes), seed));
            };
            assert!(catch_unwind(|| with_mutant(name, all)).is_err(), "{name} was not noticed");
        }
    }
}
