//! Nodes that are given up although they live: their operations are refused, and every operation
//! ends once, also when the cut has healed.

use super::*;
use std::time::Duration;
use tsumugi_conformance::Seeded;
use tsumugi_core::mem::{AddrError, LocalAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sim::{Actor, NetPartition, SimConfig, check};
use tsumugi_core::tag::Tag;
use tsumugi_core::time::{Clock, Instant};

const US: u64 = 1_000;

fn add(rank: u32, region: &Region, tag: u64) -> Op {
    Op::atomic(Kind::FetchAdd, at(rank, region, 0), 1_u64).tagged(Tag::from_bits(tag))
}

/// Two nodes with a word each, posted operations of each to the other under way, and a cut
/// between them.
fn parted() -> (Net, Vec<Region>) {
    let net = Net::new(SimConfig { retry_ns: 10 * US, ..SimConfig::calm(2, 0) });
    let regions: Vec<Region> = (0..2).map(|rank| open(&net, rank, 64)).collect();
    net.cut(|rank| rank.0 == 1);
    net.node(Rank(0)).post(&add(1, &regions[1], 1));
    net.node(Rank(1)).post(&add(0, &regions[0], 2));
    (net, regions)
}

fn word(net: &Net, rank: u32, region: &Region) -> u64 {
    net.node(Rank(rank)).load(region.key, 0).unwrap()
}

fn advance(net: &Net, us: u64) -> Vec<(u64, u32, SimEvent)> {
    let told = RefCell::new(Vec::new());
    let note = |node: &SimNode<'_>, event| {
        told.borrow_mut().push((node.now().as_ns(), node.rank().0, event));
    };
    net.run_until(net.now() + Duration::from_micros(us), &mut [note; 2]);
    told.into_inner()
}

#[test]
fn operations_of_a_node_that_was_given_up_are_refused() {
    let (net, regions) = parted();
    advance(&net, 5);
    net.give_up(Rank(0), Rank(1));
    assert!(net.is_lost(Rank(0), Rank(1)) && !net.is_lost(Rank(1), Rank(0)));
    let told = advance(&net, 5);
    assert!(
        told.iter().any(|(_, rank, event)| (*rank, *event) == (0, SimEvent::PeerLost(Rank(1))))
    );
    let lost = |rank| Err(AddrError::PeerLost { rank: Rank(rank) });
    assert_eq!(completions(&told), [Completion { tag: Tag::from_bits(1), result: lost(1) }]);
    net.heal();
    assert_eq!(completions(&advance(&net, 50)), [], "the other node gets no answer");
    net.node(Rank(1)).post(&add(0, &regions[0], 3));
    net.node(Rank(0)).post(&add(1, &regions[1], 4));
    let told = completions(&advance(&net, 50));
    assert_eq!(told, [Completion { tag: Tag::from_bits(4), result: lost(1) }]);
    assert_eq!(
        word(&net, 0, &regions[0]),
        0,
        "the put was sent before the loss and arrives after it"
    );
    assert_eq!(word(&net, 1, &regions[1]), 1, "the put that had left before lands there");
    net.give_up(Rank(1), Rank(0));
    let told = completions(&advance(&net, 50));
    assert_eq!(told.iter().map(|done| done.result).collect::<Vec<_>>(), [lost(0), lost(0)]);
    assert_eq!((net.in_flight(), word(&net, 0, &regions[0])), (0, 0));
}

#[test]
fn a_node_that_was_given_up_is_not_reported_dead_again() {
    let (net, _) = parted();
    net.give_up(Rank(0), Rank(1));
    net.heal();
    advance(&net, 50);
    net.kill(Rank(1));
    let told = drain(&net);
    assert!(told.iter().all(|(_, _, event)| !matches!(event, SimEvent::PeerLost(_))), "{told:?}");
    assert_eq!(net.in_flight(), 0);
}

#[test]
fn a_buffer_is_not_written_after_its_get_has_ended() {
    let net = Net::new(SimConfig::calm(2, 0));
    let (own, other) = (open(&net, 0, 64), open(&net, 1, 64));
    net.node(Rank(1)).store(other.key, 0, 7).unwrap();
    let local = LocalAddr { key: own.key, offset: 0 };
    net.node(Rank(0)).post(&Op::get(at(1, &other, 0), local, 8));
    net.run_until(Instant::from_ns(1_500), &mut [|_: &SimNode<'_>, _| {}]);
    net.give_up(Rank(0), Rank(1));
    assert_eq!(completions(&drain(&net)).len(), 1);
    assert_eq!(word(&net, 0, &own), 0);
}

/// Posts to all other ranks without end, and records the events that it got.
struct Poster<'r> {
    regions: &'r [Region],
    scratch: Region,
    draw: Seeded,
    left: u64,
    number: u64,
    open: Vec<u64>,
    /// The value of each word of its own memory when the word's only writer was given up.
    was: Vec<Option<u64>>,
}

impl Poster<'_> {
    fn post(&mut self, node: &SimNode<'_>) {
        while self.left > 0 && self.open.len() < 6 {
            self.left -= 1;
            let count = self.regions.len() as u64;
            let own = u64::from(node.rank().0);
            let to = (own + 1 + self.draw.below(count - 1)) % count;
            let remote = at(to as u32, &self.regions[to as usize], own * LINE);
            let (local, number) =
                (LocalAddr { key: self.scratch.key, offset: 0 }, self.number << 8 | to);
            let op = match self.draw.below(4) {
                0 => Op::atomic(Kind::FetchAdd, remote, 1_u64),
                1 => Op::put(local, remote, LINE),
                2 => Op::get(remote, local, LINE),
                _ => Op::put_word(remote, Width::W8, self.number),
            };
            node.store(self.scratch.key, 0, self.number).unwrap();
            if !node.try_post(&op.tagged(Tag::from_bits(number))) {
                return;
            }
            self.number += 1;
            self.open.push(number);
        }
    }
}

impl Actor for Poster<'_> {
    fn on_event(&mut self, node: &SimNode<'_>, event: SimEvent) {
        match event {
            SimEvent::Completed(done) => {
                let number = done.tag.to_bits();
                let Some(at) = self.open.iter().position(|open| *open == number) else {
                    let is_repeat = number >> 8 < self.number && node.net().config().duplicate > 0;
                    assert!(is_repeat, "{}: {done:?} belongs to no operation", node.rank());
                    return;
                };
                self.open.swap_remove(at);
                if let Err(error) = done.result {
                    let to = Rank((number & 0xff) as u32);
                    assert_eq!(error, AddrError::PeerLost { rank: to });
                    assert!(node.net().is_lost(node.rank(), to), "{to} is not lost");
                }
            }
            SimEvent::PeerLost(rank) => {
                let key = self.regions[node.rank().0 as usize].key;
                let word = node.load(key, u64::from(rank.0) * LINE).unwrap();
                self.was[rank.0 as usize] = Some(word);
            }
            _ => {}
        }
        self.post(node);
    }
}

fn all_end_and_none_is_let_in(seed: u64) {
    let mut draw = Seeded(seed);
    let nodes = 2 + draw.below(5) as u32;
    let mut config =
        SimConfig { early: [0, 400][draw.below(2) as usize], ..SimConfig::drawn(nodes, seed) };
    if config.early > 0 {
        config.reorder = false;
    }
    let net = Net::new(config);
    let regions: Vec<Region> =
        (0..nodes).map(|rank| open(&net, rank, u64::from(nodes) * LINE)).collect();
    let mut posters: Vec<Poster<'_>> = (0..nodes)
        .map(|rank| Poster {
            regions: &regions,
            scratch: open(&net, rank, LINE),
            draw: Seeded(seed ^ u64::from(rank) << 32),
            left: 60,
            number: 0,
            open: Vec::new(),
            was: vec![None; nodes as usize],
        })
        .collect();
    let parting = NetPartition::drawn(nodes, seed, 100_000, Rank(draw.below(nodes.into()) as u32));
    net.start(&mut posters);
    parting.run(&net, &mut posters, |_, _| {});
    net.run_until(Instant::from_ns(u64::MAX), &mut posters);
    assert_eq!(net.in_flight(), 0);
    let mut posters = (0..nodes).map(Rank).zip(&posters);
    for (rank, poster) in posters.by_ref().filter(|(rank, _)| !parting.has_ended(*rank)) {
        assert_eq!((poster.left, poster.open.len()), (0, 0), "{rank}");
        for other in (0..nodes).map(Rank).filter(|other| parting.is_lost(rank, *other)) {
            let was = poster.was[other.0 as usize].expect("the value was recorded");
            let word = net.node(rank).load(regions[rank.0 as usize].key, u64::from(other.0) * LINE);
            assert_eq!(word, Ok(was), "{rank} was written by {other}, which it had given up");
        }
    }
}

#[test]
fn every_operation_ends_once_and_given_up_nodes_are_refused() {
    check(SEEDS, all_end_and_none_is_let_in);
}

#[test]
#[cfg(debug_assertions)]
fn a_network_that_accepts_given_up_nodes_is_caught() {
    use std::panic::catch_unwind;
    let found = tsumugi_core::sync::with_mutant("sim_given_up_let_in", || {
        PLANTED
            .take(200)
            .filter(|&seed| catch_unwind(|| all_end_and_none_is_let_in(seed)).is_err())
            .count()
    });
    assert!(found > 0, "the mutant was not caught");
}

/// The range of one node in the memory of another.
const LINE: u64 = 64;
