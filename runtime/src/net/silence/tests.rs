//! Nodes that are stopped, cut off and late, and when they give each other up.

use super::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use tsumugi_core::random::SplitMix64;
use tsumugi_core::sim::check;

const LIMIT: u32 = 5000;
/// The period at which the simulated threads run.
const TICK: u32 = 10;

/// A packet from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Packet {
    Heartbeat,
    Told,
}

/// Holds all packets from one node to another during some time: they wait, and
/// arrive when the sender's TCP sends again.
struct Cut {
    from: u32,
    to: u32,
    when: Range<u32>,
    /// When the first packet that waits arrives.
    due: Option<u32>,
}

struct Node {
    silence: Silence,
    /// The time in which the node is stopped.
    paused: Range<u32>,
    /// For each node, when it was declared lost, if it was.
    lost: Vec<Option<u32>>,
    ended: Option<u32>,
}

/// The time of arrival, a number for the order, the target, the source, and the
/// packet.
type Travel = (u32, u64, u32, u32, Packet);

/// A job of some nodes in a network.
struct World {
    draw: SplitMix64,
    nodes: Vec<Node>,
    cuts: Vec<Cut>,
    wire: BinaryHeap<Reverse<Travel>>,
    sent: u64,
    now: u32,
}

impl World {
    fn new(seed: u64, nodes: u32) -> Self {
        let rule = Rule::new(Duration::from_millis(LIMIT.into()));
        let node = |own| Node {
            silence: Silence::new(own, nodes as usize, rule, 0),
            paused: 0..0,
            lost: vec![None; nodes as usize],
            ended: None,
        };
        let nodes = (0..nodes).map(node).collect();
        let (cuts, wire) = (Vec::new(), BinaryHeap::new());
        Self { draw: SplitMix64::new(seed), nodes, cuts, wire, sent: 0, now: 0 }
    }

    fn send(&mut self, from: u32, to: u32, packet: Packet) {
        let mut due = self.now + self.draw.between(1, 80) as u32;
        let (now, timeout) = (self.now, self.draw.between(200, 215) as u32);
        for cut in self.cuts.iter_mut().filter(|cut| (cut.from, cut.to) == (from, to)) {
            if cut.when.contains(&now) {
                // TCP sends again after a pause, and then after twice that.
                let mut again = (1..).map(|times: u32| now + timeout * ((1 << times) - 1));
                let mut first = || again.find(|at| *at >= cut.when.end).expect("TCP sends again");
                cut.due = cut.due.or_else(|| Some(first()));
            }
            // Packets arrive in order.
            due = due.max(cut.due.unwrap_or(0));
        }
        self.sent += 1;
        self.wire.push(Reverse((due, self.sent, to, from, packet)));
    }

    /// Takes the packets that have arrived.
    fn receive(&mut self, own: u32) {
        let mut later = Vec::new();
        while let Some(Reverse(next)) = self.wire.pop() {
            let (due, _, to, from, packet) = next;
            if due > self.now {
                self.wire.push(Reverse(next));
                break;
            }
            if to != own {
                later.push(Reverse(next));
                continue;
            }
            let now = self.now;
            let node = &mut self.nodes[own as usize];
            if node.ended.is_some() {
                continue;
            }
            match packet {
                Packet::Heartbeat => node.silence.hears_heartbeat(from, now),
                Packet::Told => node.silence.hears(from, now),
            }
            if packet == Packet::Told && node.silence.is_told_by(from) == SilenceVerdict::Ends {
                node.ended = Some(now);
            }
        }
        self.wire.extend(later);
    }

    fn run(&mut self, until: u32) {
        let count = self.nodes.len() as u32;
        while self.now < until {
            self.now += TICK;
            let now = self.now;
            for own in 0..count {
                let node = &self.nodes[own as usize];
                // On a crowded machine the thread does not run each time.
                if node.paused.contains(&now) || node.ended.is_some() || self.draw.chance(300) {
                    continue;
                }
                self.receive(own);
                let node = &mut self.nodes[own as usize];
                if node.ended.is_some() {
                    continue;
                }
                node.silence.looks(now);
                let round = node.silence.round(now);
                for lost in &round.given_up {
                    node.lost[*lost as usize] = Some(now);
                }
                let lost: Vec<bool> = node.lost.iter().map(Option::is_some).collect();
                for to in (0..count).filter(|to| *to != own) {
                    if round.is_heartbeat && !lost[to as usize] {
                        self.send(own, to, Packet::Heartbeat);
                    }
                    if round.told.contains(&to) {
                        self.send(own, to, Packet::Told);
                    }
                }
            }
        }
    }

    fn has_lost(&self, who: u32, whom: u32) -> bool {
        self.nodes[who as usize].lost[whom as usize].is_some()
    }

    fn ended(&self) -> Vec<u32> {
        let count = self.nodes.len() as u32;
        (0..count).filter(|own| self.nodes[*own as usize].ended.is_some()).collect()
    }

    fn cut(&mut self, from: u32, to: u32, when: Range<u32>) {
        self.cuts.push(Cut { from, to, when, due: None });
    }

    /// Cuts the path in both directions.
    fn part(&mut self, a: u32, b: u32, when: Range<u32>) {
        self.cut(a, b, when.clone());
        self.cut(b, a, when);
    }
}

/// The time at which all nodes have started.
const BEGUN: u32 = 12_000;

fn short_pauses(seed: u64) {
    let mut world = World::new(seed, 3);
    let (who, other) = (world.draw.below(3) as u32, world.draw.below(2) as u32);
    let other = (who + 1 + other) % 3;
    let begin = BEGUN + world.draw.below(2000) as u32;
    let end = begin + world.draw.between(100, u64::from(LIMIT)) as u32;
    match world.draw.below(3) {
        0 => world.nodes[who as usize].paused = begin..end,
        1 => world.part(who, other, begin..end),
        _ => world.cut(who, other, begin..end),
    }
    world.run(end + 4 * LIMIT);
    assert!(world.nodes.iter().all(|node| node.lost.iter().all(Option::is_none)));
    assert_eq!(world.ended(), []);
}

#[test]
fn a_pause_shorter_than_the_limit_has_no_effect() {
    check(0..400, short_pauses);
}

fn a_long_pause(seed: u64) {
    let mut world = World::new(seed, 3);
    let who = world.draw.below(3) as u32;
    let long = world.draw.between(2 * u64::from(LIMIT), 10 * u64::from(LIMIT)) as u32;
    world.nodes[who as usize].paused = BEGUN..BEGUN + long;
    world.run(BEGUN + long);
    for other in (0..3).filter(|other| *other != who) {
        assert!(world.has_lost(other, who), "node {other} has not given up {who}");
        assert!(!world.has_lost(other, 3 - who - other));
    }
    world.run(BEGUN + long + 4 * LIMIT);
    assert_eq!(world.ended(), [who], "only the lost node ends");
}

#[test]
fn a_node_that_was_stopped_too_long_is_given_up_and_notified() {
    check(0..200, a_long_pause);
}

fn a_long_cut(seed: u64) {
    let mut world = World::new(seed, 3);
    let (low, high) = [(0, 1), (0, 2), (1, 2)][world.draw.below(3) as usize];
    let long = world.draw.between(2 * u64::from(LIMIT), 8 * u64::from(LIMIT)) as u32;
    world.part(low, high, BEGUN..BEGUN + long);
    world.run(BEGUN + long);
    assert!(world.has_lost(low, high) && world.has_lost(high, low));
    let third = 3 - low - high;
    assert!(!world.has_lost(third, low) && !world.has_lost(third, high));
    // The last notice to it is at most a minute and a half old.
    world.run(BEGUN + long + 100_000);
    assert_eq!(world.ended(), [high]);
}

#[test]
fn one_of_two_nodes_that_a_cut_has_parted_ends() {
    check(0..200, a_long_cut);
}

/// A node dies just after its start, while others may not have started yet.
fn an_early_death(seed: u64) {
    let mut world = World::new(seed, 3);
    let (who, late) = (world.draw.below(3) as u32, world.draw.below(2) as u32);
    let late = (who + 1 + late) % 3;
    let rule = Rule::new(Duration::from_millis(LIMIT.into()));
    world.nodes[late as usize].paused = 0..world.draw.below(u64::from(rule.start - LIMIT)) as u32;
    let begin = 1000 + world.draw.below(1000) as u32;
    world.nodes[who as usize].paused = begin..u32::MAX;
    let other = 3 - who - late;
    world.run(begin + rule.given_up + 1000);
    assert!(world.has_lost(other, who), "{other} treats {who} as not started");
    assert!(!world.has_lost(other, late), "{late} is given up, and has only started late");
    world.run(BEGUN + 2 * LIMIT);
    assert!(!world.has_lost(other, late) && !world.has_lost(late, other));
}

#[test]
fn a_death_just_after_start_is_known_as_soon_as_a_later_one() {
    check(0..100, an_early_death);
}

#[cfg(debug_assertions)]
fn is_caught(mutant: &'static str, run: fn(u64)) {
    let fails = |seed: &u64| std::panic::catch_unwind(|| run(*seed)).is_err();
    let seed = tsumugi_core::sync::with_mutant(mutant, || (0..100).find(fails));
    let seed = seed.unwrap_or_else(|| panic!("the mutant {mutant} was not caught"));
    println!("{mutant}: seed {seed} catches it");
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_are_caught() {
    is_caught("silence_untold", a_long_pause);
    is_caught("silence_taken_back", a_long_cut);
    is_caught("silence_starts_late", an_early_death);
}

#[test]
fn a_node_that_hears_and_is_not_heard_ends_at_once() {
    check(0..200, |seed| {
        let mut world = World::new(seed, 2);
        let mute = world.draw.below(2) as u32;
        let when = BEGUN..BEGUN + 20 * LIMIT;
        world.cut(mute, 1 - mute, when);
        world.run(BEGUN + 4 * LIMIT);
        assert!(world.has_lost(1 - mute, mute) && !world.has_lost(mute, 1 - mute));
        assert_eq!(world.ended(), [mute]);
    });
}

#[test]
fn a_node_that_has_not_looked_gives_up_no_node() {
    let mut world = World::new(1, 2);
    let node = &mut world.nodes[0].silence;
    for now in (0..BEGUN + 4 * LIMIT).step_by(TICK as usize) {
        assert_eq!(node.round(now).given_up, [0; 0]);
    }
    let now = BEGUN + 4 * LIMIT;
    (0..LOOKS).for_each(|_| node.looks(now));
    assert_eq!(node.round(now).given_up, [1]);
}

#[test]
fn a_node_that_was_stopped_gives_others_more_time() {
    let mut world = World::new(1, 2);
    let node = &mut world.nodes[0].silence;
    let mut go = |from: u32, to: u32| {
        let mut lost = Vec::new();
        for now in (from..to).step_by(TICK as usize) {
            node.looks(now);
            lost.extend(node.round(now).given_up);
        }
        lost
    };
    let rule = Rule::new(Duration::from_millis(LIMIT.into()));
    assert_eq!(go(0, rule.start - 1000), [0; 0]);
    // The node was stopped for ten times the limit.
    assert_eq!(go(rule.start + 10 * LIMIT, rule.start + 10 * LIMIT + 800), [0; 0]);
    assert_eq!(go(rule.start + 10 * LIMIT + 800, rule.start + 11 * LIMIT), [1]);
}

#[test]
fn a_limit_makes_a_rule() {
    let rule = Rule::new(Duration::from_secs(5));
    assert_eq!(rule, Rule { interval: 250, late: 1000, given_up: 7500, start: 10_000 });
    let short = Rule::new(Duration::from_millis(400));
    assert_eq!(short, Rule { interval: 25, late: 100, given_up: 600, start: 10_000 });
}
