//! Barriers and sums over all ranks, on a network with all faults.

use super::*;
use std::cell::Cell;
use std::collections::VecDeque;
use tsumugi_conformance::Seeded;
use tsumugi_core::coll::{StepId, Tree, TreeCollective, WORDS};
use tsumugi_core::mem::AddrError;
use tsumugi_core::op::Op;
use tsumugi_core::sim::{Actor, NetPartition, SimConfig, check};
use tsumugi_core::tag::Tag;
use tsumugi_core::time::{Clock, Instant};

const ROUNDS: u64 = 4;

/// A rank that takes part in one collective after the other: a sum, a barrier,
/// a sum.
pub(super) struct Member<'c> {
    tree: Tree,
    climb: TreeCollective,
    epoch: u64,
    /// The number of collectives that each rank has begun, summed over all ranks.
    begun: &'c Cell<u64>,
    refused: VecDeque<Op>,
    ended: Result<(), AddrError>,
}

impl<'c> Member<'c> {
    fn new(tree: Tree, begun: &'c Cell<u64>) -> Self {
        let climb = TreeCollective::new(tree, 1, brought(tree.rank, 1));
        begun.set(begun.get() + 1);
        Self { tree, climb, epoch: 1, begun, refused: VecDeque::new(), ended: Ok(()) }
    }

    pub(super) fn is_done(&self) -> bool {
        self.ended.is_ok() && self.epoch == ROUNDS + 1
    }

    fn drive(&mut self, node: &SimNode<'_>) {
        while self.epoch <= ROUNDS && self.ended.is_ok() {
            let load = |word| node.load(self.tree.key, word as u64 * 8);
            let combine = if is_barrier(self.epoch) { |_, _| 0 } else { u64::wrapping_add };
            self.climb.handle_words(load, combine).unwrap();
            while let Some((step, op)) = self.climb.poll_op() {
                let bits = self.epoch << 8 | u64::from(step.to_bits());
                self.refused.push_back(op.tagged(Tag::from_bits(bits)));
            }
            while self.refused.front().is_some_and(|op| node.try_post(op)) {
                self.refused.pop_front();
            }
            match self.climb.poll_done() {
                None => return,
                Some(Err(error)) => self.ended = Err(error),
                Some(Ok(sum)) => {
                    let size = u64::from(self.tree.size);
                    let want = size * (size + 1) / 2 * brought(Rank(0), self.epoch);
                    assert_eq!(sum, want, "{} in round {}", self.tree.rank, self.epoch);
                    let all = self.begun.get() >= size * self.epoch;
                    assert!(all, "{} left round {} too early", self.tree.rank, self.epoch);
                    self.epoch += 1;
                    self.begun.set(self.begun.get() + 1);
                    let value = brought(self.tree.rank, self.epoch);
                    self.climb = TreeCollective::new(self.tree, self.epoch, value);
                }
            }
        }
    }
}

impl Actor for Member<'_> {
    fn on_event(&mut self, node: &SimNode<'_>, event: SimEvent) {
        match event {
            SimEvent::Completed(done) if done.tag.to_bits() >> 8 == self.epoch => {
                let step = StepId::from_bits(done.tag.to_bits() as u8);
                self.climb.handle_completed(step, done.result);
            }
            SimEvent::PeerLost(rank) => self.climb.handle_lost(rank),
            _ => {}
        }
        self.drive(node);
    }
}

/// The value that a rank contributes: rank `n` contributes `n + 1` times that of rank 0.
fn brought(rank: Rank, epoch: u64) -> u64 {
    if is_barrier(epoch) { 0 } else { (u64::from(rank.0) + 1) * epoch * epoch }
}

const fn is_barrier(epoch: u64) -> bool {
    epoch.is_multiple_of(2)
}

pub(super) fn members<'c>(net: &Net, begun: &'c Cell<u64>) -> Vec<Member<'c>> {
    let nodes = net.config().nodes;
    let keys: Vec<_> = (0..nodes).map(|rank| open(net, rank, WORDS as u64 * 8).key).collect();
    assert!(keys.iter().all(|key| *key == keys[0]));
    let tree = |rank| Tree { rank: Rank(rank), size: nodes, key: keys[0] };
    (0..nodes).map(|rank| Member::new(tree(rank), begun)).collect()
}

fn sums_are_right(seed: u64) {
    let nodes = 1 + Seeded(seed).below(30) as u32;
    let mut config = SimConfig::drawn(nodes, seed);
    // Either completions are remote, or the network keeps the order.
    if !config.reorder {
        config.early = 400;
    }
    let net = Net::new(config);
    let begun = Cell::new(0);
    let mut members = members(&net, &begun);
    net.run(&mut members);
    assert!(members.iter().all(Member::is_done), "{nodes} ranks ended every round");
}

#[test]
fn every_rank_gets_the_sum_of_all() {
    check(SEEDS, sums_are_right);
}

#[test]
#[cfg(debug_assertions)]
fn a_count_raised_before_its_value_is_caught() {
    use std::panic::catch_unwind;
    let found = tsumugi_core::sync::with_mutant("coll_raise_at_once", || {
        PLANTED.filter(|&seed| catch_unwind(|| sums_are_right(seed)).is_err()).count()
    });
    assert!(found > 0, "the mutant was not caught");
    println!("{found} of {} seeds catch it", PLANTED.end);
}

#[test]
fn a_death_ends_the_wait_of_all_others() {
    check(SEEDS, |seed| {
        let mut seeded = Seeded(seed);
        let nodes = 2 + seeded.below(20) as u32;
        let net = Net::new(SimConfig::drawn(nodes, seed));
        let begun = Cell::new(0);
        let mut members = members(&net, &begun);
        let dead = Rank(seeded.below(u64::from(nodes)) as u32);
        net.start(&mut members);
        net.run_until(Instant::from_ns(seeded.below(30_000)), &mut members);
        net.kill(dead);
        net.run_until(Instant::from_ns(u64::MAX), &mut members);
        for member in members.iter().filter(|member| member.tree.rank != dead) {
            let lost = member.ended == Err(AddrError::PeerLost { rank: dead });
            assert!(
                lost || member.is_done(),
                "{} hangs at {} ns",
                member.tree.rank,
                net.now().as_ns()
            );
        }
    });
}

#[test]
fn a_live_rank_that_is_given_up_ends_the_wait_of_all_others() {
    check(SEEDS, |seed| {
        let mut seeded = Seeded(seed);
        let nodes = 2 + seeded.below(20) as u32;
        let net = Net::new(SimConfig::drawn(nodes, seed));
        let begun = Cell::new(0);
        let mut members = members(&net, &begun);
        let stays = Rank(seeded.below(u64::from(nodes)) as u32);
        let parting = NetPartition::drawn(nodes, seed, 30_000, stays);
        net.start(&mut members);
        parting.run(&net, &mut members, |_, _| {});
        net.run_until(Instant::from_ns(u64::MAX), &mut members);
        for member in members.iter().filter(|member| !parting.has_ended(member.tree.rank)) {
            let rank = member.tree.rank;
            let lost = matches!(member.ended, Err(AddrError::PeerLost { rank: lost })
                if parting.is_lost(rank, lost));
            assert!(lost || member.is_done(), "{rank} hangs at {} ns", net.now().as_ns());
        }
    });
}
