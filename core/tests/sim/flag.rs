//! A put, then a flag at a third rank: the smallest protocol that an early completion breaks.
//!
//! ```text
//!   0 writer ── put the block ──► 1 memory
//!   0 writer ── put the flag ───► 2 reader ── get the block ─► 1 memory
//!   0 writer ◄── acknowledge ──── 2 reader
//! ```
//!
//! Where a completion only means that the source is free, the writer reads the block's last word
//! back, in the order of the queue, before it sets the flag.

use super::*;
use tsumugi_core::backend::Domain;
use tsumugi_core::mem::{LocalAddr, Width};
use tsumugi_core::op::Op;
use tsumugi_core::sim::{Actor, SimConfig, check};
use tsumugi_core::sync::mutant;
use tsumugi_core::tag::Tag;

const ROUNDS: u64 = 8;
const BLOCK: u64 = 64;

/// The data that all ranks know.
#[derive(Clone, Copy)]
struct World {
    source: Region,
    block: Region,
    flag: Region,
    seen: Region,
    acknowledged: Region,
}

enum Role {
    Writer { round: u64, step: Step },
    Memory,
    Reader { round: u64, gets: u64 },
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Putting,
    Flushing,
    Telling,
}

struct Party<'w> {
    world: &'w World,
    role: Role,
}

/// The tag of a step, so that a duplicate completion belongs to an earlier step.
fn tag_of(round: u64, step: Step) -> Tag {
    Tag::from_bits(round * 4 + step as u64)
}

impl Party<'_> {
    fn put(&self, node: &SimNode<'_>, round: u64) {
        let World { source, block, .. } = self.world;
        for offset in (0..BLOCK).step_by(8) {
            node.store(source.key, offset, round).unwrap();
        }
        let local = LocalAddr { key: source.key, offset: 0 };
        let put = Op::put(local, at(1, block, 0), BLOCK);
        node.post(&put.tagged(tag_of(round, Step::Putting)));
    }

    fn write(&mut self, node: &SimNode<'_>, event: SimEvent) {
        let Role::Writer { round, step } = self.role else { return };
        let World { block, flag, acknowledged, .. } = self.world;
        let next = match event {
            SimEvent::Start => {
                self.put(node, round);
                return;
            }
            SimEvent::Completed(completion) if completion.tag == tag_of(round, step) => {
                completion.result.expect("no rank dies");
                let has_landed = node.capabilities().remote_completion
                    || mutant("flag_early_is_remote")
                    || step == Step::Flushing;
                if has_landed { Step::Telling } else { Step::Flushing }
            }
            SimEvent::Bell(_) if node.load(acknowledged.key, 0) == Ok(round) => {
                let round = round + 1;
                self.role = Role::Writer { round, step: Step::Putting };
                if round <= ROUNDS {
                    self.put(node, round);
                }
                return;
            }
            _ => return,
        };
        if step == Step::Telling {
            return;
        }
        self.role = Role::Writer { round, step: next };
        let op = match next {
            Step::Flushing => Op::get_word(at(1, block, BLOCK - 8), Width::W8),
            _ => Op::put_word(at(2, flag, 0), Width::W8, round).notifying(),
        };
        node.post(&op.tagged(tag_of(round, next)));
    }

    fn read(&mut self, node: &SimNode<'_>, event: SimEvent) {
        let Role::Reader { round, gets } = &mut self.role else { return };
        let World { block, flag, seen, acknowledged, .. } = self.world;
        match event {
            SimEvent::Bell(_) => {
                *round = node.load(flag.key, 0).unwrap();
                *gets += 1;
                let local = LocalAddr { key: seen.key, offset: 0 };
                let get = Op::get(at(1, block, 0), local, BLOCK);
                node.post(&get.tagged(Tag::from_bits(*gets)));
            }
            SimEvent::Completed(done) if done.tag == Tag::from_bits(*gets) => {
                for offset in (0..BLOCK).step_by(8) {
                    assert_eq!(node.load(seen.key, offset), Ok(*round), "byte {offset}");
                }
                let flag = Op::put_word(at(0, acknowledged, 0), Width::W8, *round).notifying();
                node.post(&flag.tagged(Tag::NONE));
                // A duplicate gets no second answer.
                *gets += 1;
            }
            _ => {}
        }
    }
}

impl Actor for Party<'_> {
    fn on_event(&mut self, node: &SimNode<'_>, event: SimEvent) {
        match self.role {
            Role::Writer { .. } => self.write(node, event),
            Role::Memory => {}
            Role::Reader { .. } => self.read(node, event),
        }
    }
}

/// Runs the seed on a network with local completions that keeps order, or on one with remote
/// completions that does not.
fn run(seed: u64) {
    let mut config = SimConfig::drawn(3, seed);
    config.reorder = seed.is_multiple_of(2);
    config.early = if config.reorder { 0 } else { 500 };
    let net = Net::new(config);
    let world = World {
        source: open(&net, 0, BLOCK),
        block: open(&net, 1, BLOCK),
        flag: open(&net, 2, 8),
        seen: open(&net, 2, BLOCK),
        acknowledged: open(&net, 0, 8),
    };
    let roles = [
        Role::Writer { round: 1, step: Step::Putting },
        Role::Memory,
        Role::Reader { round: 0, gets: 0 },
    ];
    let mut parties = roles.map(|role| Party { world: &world, role });
    net.run(&mut parties);
    let last = match parties[0].role {
        Role::Writer { round, .. } => round,
        _ => unreachable!(),
    };
    assert_eq!(last, ROUNDS + 1, "every round was acknowledged");
}

#[test]
fn the_reader_sees_the_block_that_was_put_before_the_flag() {
    check(SEEDS, run);
}

#[test]
#[cfg(debug_assertions)]
fn an_early_completion_taken_for_a_remote_one_is_caught() {
    use std::panic::catch_unwind;
    let found = tsumugi_core::sync::with_mutant("flag_early_is_remote", || {
        PLANTED.filter(|&seed| catch_unwind(|| run(seed)).is_err()).count()
    });
    assert!(found > 0, "the mutant was not caught");
    println!("{found} of {} seeds catch it", PLANTED.end);
}
