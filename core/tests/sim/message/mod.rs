//! Messages: the promises of MPI hold with a thousand seeds, however late lanes, return lines
//! and copies are, and planted defects are found.

mod job;
mod net;
mod post;

#[cfg(debug_assertions)]
use super::PLANTED;
use super::SEEDS;
use job::{Game, Plan, Room, Wall};
use post::{Bag, Post, ends_of, lanes_of};
use tsumugi_conformance::Seeded;
use tsumugi_core::msg::{MatchingDesign, MessageShape};
use tsumugi_core::sim::check;

const PLAIN: Plan = Plan {
    design: MatchingDesign::Mirror,
    deaths: false,
    parts: false,
    cancels: true,
    wildcards: true,
    far: false,
    fetches: false,
    tight: false,
};
const FAR: Plan = Plan { far: true, ..PLAIN };
const FETCHED: Plan = Plan { fetches: true, ..FAR };

fn run(seed: u64, plan: Plan) {
    let mut seeded = Seeded(seed);
    let mut draw = |of: &[u32]| of[seeded.below(of.len() as u64) as usize];
    let shape = MessageShape {
        peers: draw(&[2, 2, 3, 6]),
        lines: if plan.tight { draw(&[8, 16]) } else { draw(&[16, 64]) },
        slots: draw(if plan.far { &[1, 4, 8, 32] } else { &[1, 4, 8] }),
        slot_bytes: draw(&[64, 256]),
        quota: match (plan.tight, plan.far) {
            (true, false) => draw(&[1, 2, 4]),
            (true, true) => draw(&[1, 4, 8, 16]),
            _ => 64,
        },
        mirror: draw(&[1, 2, 8]),
    };
    let requests = if plan.tight { 40 } else { 64 };
    let mut rooms: Vec<Room> = (0..shape.peers).map(|_| Room::new(shape, requests)).collect();
    let mut further: Vec<_> = rooms.iter().map(|_| Room::further(shape, requests)).collect();
    let mut wall = Wall::new(shape, requests);
    let boards = wall.boards();
    let steps = if plan.tight { 800 } else { 500 };
    let mut bags: Vec<Bag> = if plan.far { Bag::of_all(&shape) } else { Vec::new() };
    let mut lanes = lanes_of(&mut bags, &shape);
    let mut ends = ends_of(&mut lanes, &shape);
    let post = Post::new(&mut ends, shape, plan, &mut seeded);
    Game::new(plan, shape, &mut rooms, &mut further, &boards, post, seeded).play(steps);
}

#[test]
fn messages_meet_their_receives() {
    check(SEEDS, |seed| run(seed, PLAIN));
}

#[test]
fn messages_without_wildcards_and_cancels() {
    check(SEEDS.take(300), |seed| run(seed, Plan { wildcards: false, cancels: false, ..PLAIN }));
}

#[test]
fn messages_with_two_copies() {
    check(SEEDS.take(300), |seed| run(seed, Plan { design: MatchingDesign::TwoCopy, ..PLAIN }));
}

#[test]
fn messages_with_a_board() {
    check(SEEDS.take(600), |seed| {
        let deaths = seed % 4 == 3;
        run(seed, Plan { design: MatchingDesign::Locked, deaths, tight: seed % 3 == 0, ..PLAIN });
    });
}

#[test]
fn messages_with_little_room() {
    check(SEEDS.take(600), |seed| {
        let design = if seed % 4 == 0 { MatchingDesign::TwoCopy } else { MatchingDesign::Mirror };
        run(seed, Plan { design, tight: true, ..PLAIN })
    });
}

#[test]
fn messages_after_a_death() {
    check(SEEDS.take(600), |seed| run(seed, Plan { deaths: true, tight: seed % 2 == 0, ..PLAIN }));
}

#[test]
fn messages_between_nodes() {
    check(SEEDS, |seed| run(seed, FAR));
}

#[test]
fn messages_between_nodes_with_long_ones_fetched() {
    check(SEEDS.take(600), |seed| {
        let design = [MatchingDesign::Mirror, MatchingDesign::TwoCopy, MatchingDesign::Locked]
            [seed as usize % 3];
        let (deaths, tight) = (seed % 4 == 0, seed % 2 == 0);
        run(seed, Plan { design, deaths, tight, ..FETCHED });
    });
}

#[test]
fn messages_between_nodes_with_little_room() {
    check(SEEDS.take(600), |seed| {
        let design = [MatchingDesign::Mirror, MatchingDesign::TwoCopy, MatchingDesign::Locked]
            [seed as usize % 3];
        run(seed, Plan { design, tight: true, ..FAR });
    });
}

#[test]
fn messages_between_nodes_with_other_designs() {
    check(SEEDS.take(300), |seed| {
        let design = if seed % 2 == 0 { MatchingDesign::TwoCopy } else { MatchingDesign::Locked };
        run(seed, Plan { design, ..FAR });
    });
}

#[test]
fn messages_between_nodes_after_a_death() {
    check(SEEDS.take(600), |seed| {
        let design = [MatchingDesign::Mirror, MatchingDesign::Mirror, MatchingDesign::Locked]
            [seed as usize % 3];
        run(seed, Plan { design, deaths: true, tight: seed % 2 == 0, ..FAR });
    });
}

#[test]
fn messages_between_nodes_that_give_each_other_up() {
    check(SEEDS, |seed| {
        let design = [MatchingDesign::Mirror, MatchingDesign::Mirror, MatchingDesign::Locked]
            [seed as usize % 3];
        let (tight, fetches) = (seed % 2 == 0, seed % 5 == 0);
        run(seed, Plan { design, parts: true, tight, fetches, ..FAR });
    });
}

/// All kinds of networks and ranks, as each seed draws them.
#[test]
fn messages_on_any_kind_of_network() {
    check(SEEDS.take(600), |seed| {
        let mut kind = Seeded(!seed);
        let mut is_one_in = |count| kind.below(count) == 0;
        let (is_two_copy, is_locked) = (is_one_in(8), is_one_in(4));
        let design = match (is_two_copy, is_locked) {
            (true, _) => MatchingDesign::TwoCopy,
            (_, true) => MatchingDesign::Locked,
            _ => MatchingDesign::Mirror,
        };
        let (deaths, cancels, wildcards) = (is_one_in(4), is_one_in(2), is_one_in(2));
        let (far, tight) = (is_one_in(2), is_one_in(2));
        let fetches = far && is_one_in(2);
        run(seed, Plan { design, deaths, cancels, wildcards, far, fetches, tight, ..PLAIN });
    });
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_are_caught() {
    let tight = Plan { tight: true, ..PLAIN };
    let board = Plan { design: MatchingDesign::Locked, ..PLAIN };
    all_are_caught(&[
        ("msg_k_ignored", PLAIN),
        ("msg_log_by_return_line", tight),
        ("msg_wildcard_passed", PLAIN),
        ("msg_exact_first", PLAIN),
        ("msg_direct_late", Plan { wildcards: false, ..PLAIN }),
        ("msg_done_early", Plan { wildcards: false, ..PLAIN }),
        ("msg_split_sender_ends", PLAIN),
        ("msg_split_receiver_ends", PLAIN),
        // Defects in copies by the kernel.
        ("msg_fetch_given_up", PLAIN),
        ("msg_fetch_ends_early", PLAIN),
        ("msg_part_is_all", Plan { wildcards: false, ..PLAIN }),
        ("msg_half_is_all", Plan { wildcards: false, ..PLAIN }),
        ("msg_half_untold", Plan { wildcards: false, ..PLAIN }),
        ("msg_slot_early", PLAIN),
        ("msg_cancel_unasked", PLAIN),
        ("msg_quota_ignored", tight),
        ("msg_quota_raced", tight),
        ("msg_answered_with_nothing", tight),
        ("board_expected_ignored", board),
        ("board_exact_first", board),
        ("board_withdraws_claimed", board),
        ("msg_nothing_granted", tight),
        ("msg_cramp_unnoticed", tight),
    ]);
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_between_nodes_are_caught() {
    let tight = Plan { tight: true, ..FAR };
    all_are_caught(&[
        ("msg_fetch_ends_early", FETCHED),
        ("msg_fetch_given_up", FETCHED),
        ("sim_given_up_let_in", Plan { parts: true, ..FAR }),
        ("mail_gap_ignored", FAR),
        ("mail_bytes_forgotten", FAR),
        ("mail_refused_forgotten", FAR),
        ("mail_window_ignored", tight),
        ("mail_ack_kept", tight),
        ("mail_ask_kept", tight),
    ]);
}

#[cfg(debug_assertions)]
fn all_are_caught(mutants: &[(&'static str, Plan)]) {
    use std::panic::catch_unwind;
    for &(mutant, plan) in mutants {
        let caught = tsumugi_core::sync::with_mutant(mutant, || {
            PLANTED.into_iter().find(|&seed| catch_unwind(|| run(seed, plan)).is_err())
        });
        let seed = caught.unwrap_or_else(|| panic!("the mutant {mutant} was not caught"));
        println!("{mutant}: seed {seed} catches it");
    }
}
