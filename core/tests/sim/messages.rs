//! Active messages on a network with all faults: the promises hold with a thousand seeds, and
//! planted defects are found.
//!
//! Where a completed put has landed, or the network keeps the order of a
//! Where a completed put has landed, or the network keeps the order of a queue, a bell arrives
//! after its cell, and no rank looks without a bell. On other networks a cell may land after its
//! bell; then, and only then, a rank looks again by a timer.

pub(super) mod rank;
mod story;

use super::*;
use rank::{Actors, Rooms, Sizes};
use tsumugi_conformance::Seeded;
use tsumugi_core::am::DoorbellOrder;
use tsumugi_core::backend::Domain;
use tsumugi_core::sim::{NetPartition, SimConfig, check};
use tsumugi_core::time::Instant;

/// The faults of a run beside those of the network.
#[derive(Clone, Copy, Default)]
struct Plan {
    time_limits: bool,
    /// One rank dies somewhere in the middle.
    kill: bool,
    /// The network is cut, ranks give each other up, and the cut heals.
    parts: bool,
    /// Whether a layer between the network and the machine delays completions.
    layered: bool,
    /// Every put lands in part for a while, and many messages go through few cells.
    torn: bool,
}

fn run(seed: u64, plan: Plan) {
    let mut seeded = Seeded(seed);
    let mut draw = |bound: u64| seeded.below(bound);
    let ranks = 2 + if plan.torn { 0 } else { draw(7) as u32 };
    let mut config =
        SimConfig { early: [0, 400][draw(2) as usize], ..SimConfig::drawn(ranks, seed) };
    if plan.torn {
        let (latency_ns_min, latency_ns_max, byte_ps) = (100, 1_000, 0);
        let (slow, slow_ns_max, torn, reorder, drop) = (200, 100_000, 1000, true, 0);
        let held = SimConfig { slow, slow_ns_max, torn, reorder, drop, byte_ps, ..config };
        config = SimConfig { latency_ns_min, latency_ns_max, ..held };
    }
    let net = Net::new(config);
    let bell = bell(&net, draw(2) == 0);
    let sizes = Sizes {
        ranks,
        apart: Seeded(!seed).below(u64::from(ranks)) as u32,
        cells: if plan.torn { 1 } else { 1 << draw(4) },
        calls: 1 + draw(12) as usize,
        staging: 2 + draw(8) as usize,
        landings: 1 + draw(3) as usize,
        fan: [1, 2, ranks][draw(3) as usize],
        messages: if plan.torn { 60 } else { 14 },
        time_limits: plan.time_limits,
        // Where a bell precedes its cell, or overtakes it after a refusal.
        looks_again: bell == DoorbellOrder::WithCell && (config.reorder || plan.layered),
        bell,
        layered: plan.layered,
    };
    let mut rooms = Rooms::new(sizes, ranks);
    let mut actors = Actors::new(&net, sizes, &mut rooms, seed);
    net.start(&mut actors.ranks);
    if plan.kill {
        net.run_until(Instant::from_ns(draw(100_000)), &mut actors.ranks);
        net.kill(Rank(draw(u64::from(ranks)) as u32));
    }
    if plan.parts {
        let stays = Rank(draw(u64::from(ranks)) as u32);
        let parting = NetPartition::drawn(ranks, seed, 100_000, stays);
        parting.run(&net, &mut actors.ranks, |_, _| {});
    }
    net.run_until(END, &mut actors.ranks);
    actors.check_end(&net);
}

/// A kind of bell that the network's promises allow.
fn bell(net: &Net, wants_after: bool) -> DoorbellOrder {
    let has_landed = net.node(Rank(0)).capabilities().remote_completion;
    let is_ordered = !net.config().reorder;
    if wants_after && (has_landed || is_ordered) {
        DoorbellOrder::AfterCell
    } else {
        DoorbellOrder::WithCell
    }
}

#[test]
fn nothing_is_lost_doubled_or_reordered() {
    check(SEEDS, |seed| run(seed, Plan::default()));
}

#[test]
fn time_limits_end_calls_once() {
    check(SEEDS.take(400), |seed| run(seed, Plan { time_limits: true, ..Plan::default() }));
}

#[test]
fn a_death_ends_the_calls_to_its_rank_and_no_others() {
    check(SEEDS.take(600), |seed| {
        run(seed, Plan { time_limits: seed % 2 == 0, kill: true, ..Plan::default() })
    });
}

#[test]
fn a_live_rank_that_is_given_up_does_not_disturb_others() {
    check(SEEDS, |seed| {
        let (time_limits, layered) = (seed % 2 == 0, seed % 3 == 0);
        run(seed, Plan { time_limits, layered, parts: true, ..Plan::default() })
    });
}

#[test]
fn late_completions_change_nothing() {
    check(SEEDS.take(600), |seed| {
        let (time_limits, kill) = (seed % 2 == 0, seed % 3 == 0);
        run(seed, Plan { time_limits, kill, layered: true, ..Plan::default() })
    });
}

#[test]
fn a_partly_written_cell_is_not_read() {
    check(SEEDS.take(100), |seed| run(seed, Plan { torn: true, ..Plan::default() }));
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_are_caught() {
    use std::panic::catch_unwind;
    let plain = Plan::default();
    let limits = Plan { time_limits: true, ..plain };
    let torn = Plan { torn: true, ..plain };
    let layered = Plan { layered: true, ..plain };
    let parted = Plan { parts: true, ..plain };
    for (mutant, plan) in [
        ("am_no_reply_reservation", plain),
        ("am_unmet_forgotten", plain),
        ("am_lap_ignored", plain),
        ("am_torn_forgotten", plain),
        ("am_words_unmasked", torn),
        ("am_early_credit", plain),
        ("am_generation_ignored", limits),
        ("am_timeout_frees_reply_cell", limits),
        ("am_late_completion_believed", layered),
        ("sim_given_up_let_in", parted),
    ] {
        let caught = tsumugi_core::sync::with_mutant(mutant, || {
            PLANTED.into_iter().find(|&seed| catch_unwind(|| run(seed, plan)).is_err())
        });
        let seed = caught.unwrap_or_else(|| panic!("the mutant {mutant} was not caught"));
        println!("{mutant}: seed {seed} catches it");
    }
}

/// The end of a run, which stops a rank that polls for ever for a cell that never lands.
const END: Instant = Instant::from_ns(50_000_000);
