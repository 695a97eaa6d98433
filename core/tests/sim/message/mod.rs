//! Messages: what MPI promises holds with a thousand seeds, however late
//! lanes, return lines and copies are, and what was broken on purpose is
//! found.

mod job;
mod net;

use super::SEEDS;
use job::{Game, Plan, Room};
use tsumugi_conformance::Seeded;
use tsumugi_core::msg::{Design, Shape};
use tsumugi_core::sim::check;

const PLAIN: Plan =
    Plan { design: Design::Mirror, deaths: false, cancels: true, wildcards: true, tight: false };

fn run(seed: u64, plan: Plan) {
    let mut seeded = Seeded(seed);
    let mut draw = |of: &[u32]| of[seeded.below(of.len() as u64) as usize];
    let shape = Shape {
        peers: draw(&[2, 2, 3, 6]),
        lines: if plan.tight { draw(&[8, 16]) } else { draw(&[16, 64]) },
        slots: draw(&[1, 4, 8]),
        slot_bytes: draw(&[64, 256]),
        quota: if plan.tight { draw(&[1, 2, 4]) } else { 64 },
        mirror: draw(&[1, 2, 8]),
    };
    let requests = if plan.tight { 40 } else { 64 };
    let mut rooms: Vec<Room> = (0..shape.peers).map(|_| Room::new(shape, requests)).collect();
    let steps = if plan.tight { 700 } else { 300 };
    Game::new(plan, shape, &mut rooms, seeded).play(steps);
}

#[test]
fn messages_meet_their_receives() {
    check(SEEDS, |seed| run(seed, PLAIN));
}

#[test]
fn without_wildcards_and_cancels() {
    check(SEEDS.take(300), |seed| run(seed, Plan { wildcards: false, cancels: false, ..PLAIN }));
}

#[test]
fn with_two_copies() {
    check(SEEDS.take(300), |seed| run(seed, Plan { design: Design::TwoCopy, ..PLAIN }));
}

#[test]
fn with_room_for_little() {
    check(SEEDS.take(600), |seed| {
        let design = if seed % 4 == 0 { Design::TwoCopy } else { Design::Mirror };
        run(seed, Plan { design, tight: true, ..PLAIN })
    });
}

#[test]
fn after_a_death() {
    check(SEEDS.take(600), |seed| run(seed, Plan { deaths: true, tight: seed % 2 == 0, ..PLAIN }));
}
