//! Ranks that die: every survivor ends, with the result or with the number of a dead
//! rank.

use super::case::{Case, Kind, Outcome};
use super::conformance::{NODE_KINDS, kinds};
use super::network::{Network, Weather};
use tsumugi_conformance::Seeded;
use tsumugi_core::coll::schedule::{AllreduceDesign, BroadcastDesign};
use tsumugi_core::sim::{Seeds, check};

/// Fewer in a debug build, which takes ten times as long; `ci/seeds.sh` runs a release build.
const THOUSAND: u32 = if cfg!(debug_assertions) { 100 } else { 1000 };
const HUNDRED_THOUSAND: u32 = if cfg!(debug_assertions) { 5000 } else { 100_000 };

/// Runs a case, and checks each survivor; returns how many had the result.
fn survives(case: &Case, weather: Weather) -> usize {
    let ended = Network::new(case, weather).run();
    let mut done = 0;
    for (me, (is_dead, outcome)) in (0..).zip(&ended) {
        match outcome {
            _ if *is_dead => {}
            Some(Outcome::Done(output, _)) => {
                assert_eq!(*output, case.expected(me), "rank {me} of {case:?}");
                done += 1;
            }
            Some(Outcome::Lost(dead)) => {
                assert!(ended[dead.0 as usize].0, "{dead} is alive, says rank {me} of {case:?}");
            }
            None => panic!("rank {me} of {case:?} waits for ever"),
        }
    }
    done
}

fn drawn(seed: u64, draws: &mut Seeded, deaths: u32) -> Weather {
    let eager_max = [0, 8, 1000][draws.below(3) as usize];
    let begin_within = [1, 100, 1000][draws.below(3) as usize];
    Weather { seed, deaths, eager_max, begin_within, delay_max: 20 }
}

fn one(seed: u64, size: u32, kind: (Kind, bool), count: usize) -> usize {
    let mut draws = Seeded(seed);
    let root = draws.below(size.into()) as u32;
    let deaths = draws.below(4) as u32;
    let case = Case::new(kind.0, size, root, count, kind.1);
    survives(&case, drawn(seed, &mut draws, deaths))
}

#[test]
fn every_survivor_ends() {
    check(Seeds::new(if cfg!(debug_assertions) { 30 } else { 300 }), |seed| {
        let mut draws = Seeded(seed);
        let size = 1 + draws.below(40) as u32;
        for kind in kinds(size) {
            one(seed, size, kind, [1, 40][draws.below(2) as usize]);
        }
    });
}

#[test]
fn every_survivor_on_several_nodes_ends() {
    check(Seeds::new(if cfg!(debug_assertions) { 30 } else { 300 }), |seed| {
        let mut draws = Seeded(seed);
        let size = 4 + draws.below(40) as u32;
        for kind in NODE_KINDS {
            let (root, nodes) = (draws.below(size.into()) as u32, 2 + draws.below(3) as u32);
            let (count, commutes) = ([1, 40][draws.below(2) as usize], draws.below(2) == 0);
            let case = Case::with(kind, size, root, count, commutes, false, nodes);
            let deaths = draws.below(4) as u32;
            survives(&case, drawn(seed, &mut draws, deaths));
        }
    });
}

/// Each algorithm with a thousand ranks, some of which die.
#[test]
fn a_thousand_ranks_end() {
    check(Seeds::new(1), |seed| {
        for kind in kinds(THOUSAND) {
            one(seed, THOUSAND, kind, 2);
        }
    });
}

/// By nodes, in order.
#[test]
fn a_thousand_ranks_on_several_nodes_end() {
    check(Seeds::new(1), |seed| {
        for kind in NODE_KINDS {
            let mut draws = Seeded(seed);
            let (root, nodes) = (draws.below(THOUSAND.into()) as u32, 2 + draws.below(60) as u32);
            let case = Case::with(kind, THOUSAND, root, 2, false, false, nodes);
            let deaths = draws.below(4) as u32;
            survives(&case, drawn(seed, &mut draws, deaths));
        }
    });
}

/// The algorithms in which the work of a rank is at most log P.
#[test]
fn a_hundred_thousand_ranks_end() {
    check(Seeds::new(1), |seed| {
        for kind in [
            (Kind::Barrier, true),
            (Kind::Broadcast(BroadcastDesign::Tree), true),
            (Kind::Reduce, false),
            (Kind::Allreduce(AllreduceDesign::Doubling), false),
            (Kind::Scan { exclusive: false }, false),
        ] {
            one(seed, HUNDRED_THOUSAND, kind, 1);
        }
    });
}

#[cfg(debug_assertions)]
mod planted {
    use super::*;
    use std::panic::catch_unwind;
    use tsumugi_core::sync::with_mutant;

    #[test]
    fn a_machine_that_ignores_deaths_is_noticed() {
        let kind = (Kind::Allreduce(AllreduceDesign::Doubling), true);
        let all = || (0..50).for_each(|seed| _ = one(seed, 13, kind, 40));
        assert!(catch_unwind(|| with_mutant("coll_death_ignored", all)).is_err());
    }
}
