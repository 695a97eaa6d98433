//! Random copies and atomics between all ranks, beside a model that knows what
//! each byte must be.
//!
//! Every rank has some slices in every rank's memory, between which it alone moves bytes;
//! operations that touch the same slice are ordered by handles. Therefore the copies of a rank
//! have the effect of copies one after the other, and at the end its slices are compared with
//! that, wherever they are.

use super::rank::{Party, Room, Sizes};
use super::*;
use std::collections::HashMap;
use std::time::Duration;
use tsumugi_core::mem::{AddrError, Rank, Region};
use tsumugi_core::op::Kind;
use tsumugi_core::sim::{Actor, Net, NetPartition, SimEvent as Told, SimNode, check};
use tsumugi_core::time::{Clock, Instant};
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::machine::MachineOutput;
use tsumugi_gas::order::{After, Handle};
use tsumugi_gas::request::{Copy, ENTRY_BYTES, GlobalRequest, ListCopy, WordRequest};

const SLICES: u64 = 6;
const SLICE: u64 = 256;

#[derive(Clone, Copy)]
struct Plan {
    kill: bool,
    /// The network is cut, ranks give each other up, and the cut heals.
    parts: bool,
    operations: u64,
    /// Few places for remote callers and commands, and only copies between other ranks.
    crowded: bool,
    /// Each rank reaches the memory of all ranks.
    near: bool,
    /// Each put lands in two parts.
    torn: bool,
    /// The caller of a short copy between two other ranks carries it.
    carried: bool,
}

/// The addresses that every rank knows of every other.
struct World {
    ranks: u32,
    main: Vec<(Region, GlobalAddr)>,
}

/// A slice of this rank, of its list area, or of its counters.
type Place = (u32, u64);

/// An operation under way: the places that it reads and writes, and its addition to a counter.
type Live = (Handle, Vec<Place>, Vec<Place>, Option<u64>);

struct Program<'n, 'w> {
    party: Party<'n>,
    world: &'w World,
    plan: Plan,
    draw: Seeded,
    left: u64,
    model: HashMap<Place, Vec<u8>>,
    /// The operations under way.
    live: Vec<Live>,
    counter: u64,
    errors: Vec<AddrError<GlobalAddr>>,
    ended: u64,
    issued: u64,
}

fn bytes_of_region(ranks: u32) -> u64 {
    // Slices, then a list area and a counter word for each rank.
    u64::from(ranks) * (SLICES * SLICE + 512)
}

fn slice_at(world: &World, own: u32, (rank, slice): Place) -> GlobalAddr {
    at(world, rank, (u64::from(own) * SLICES + slice) * SLICE)
}

fn list_at(world: &World, own: u32, rank: u32) -> GlobalAddr {
    let first = u64::from(world.ranks) * SLICES * SLICE;
    at(world, rank, first + u64::from(own) * 512)
}

fn at(world: &World, rank: u32, offset: u64) -> GlobalAddr {
    // Every offset fits its field, so that an address is a sum.
    GlobalAddr::from_bits(world.main[rank as usize].1.to_bits() + offset)
}

impl Program<'_, '_> {
    fn own(&self) -> u32 {
        self.party.node.rank().0
    }

    fn issue_some(&mut self) {
        while self.left > 0 && self.live.len() < 12 {
            if !self.issue() {
                break;
            }
            self.left -= 1;
        }
        self.party.pump();
    }

    /// Issues one random operation; returns false if there was no room.
    fn issue(&mut self) -> bool {
        let own = self.own();
        let before = self.draw.0;
        let mut place = || {
            let rank = self.draw.below(u64::from(self.world.ranks)) as u32;
            (rank, self.draw.below(SLICES))
        };
        let (dst, src) = (place(), place());
        let kind = self.draw.below(if self.plan.crowded { 1 } else { 10 });
        let (request, reads, writes, apply, added) = match kind {
            0..4 => self.block(dst, src),
            4..6 => self.strided(dst, src),
            6 => self.list(dst, src),
            7..9 => {
                // The counter that all ranks share, in the last words of the list areas.
                let target = at(self.world, dst.0, bytes_of_region(self.world.ranks) - 8);
                let add = 1 + self.draw.below(9);
                let word = WordRequest::atomic(Kind::FetchAdd, target, add);
                (GlobalRequest::from(word), vec![], vec![], None, Some(add))
            }
            _ => {
                let target = slice_at(self.world, own, dst);
                let value = self.draw.below(u64::MAX);
                let word = WordRequest::atomic(Kind::Swap, target, value);
                let apply = (dst, 0, value.to_le_bytes().to_vec());
                (GlobalRequest::from(word), vec![], vec![dst], Some(vec![apply]), None)
            }
        };
        let conflicts: Vec<Handle> = self
            .live
            .iter()
            .filter(|(_, live_reads, live_writes, _)| {
                writes.iter().any(|w| live_reads.contains(w) || live_writes.contains(w))
                    || reads.iter().any(|r| live_writes.contains(r))
            })
            .map(|(handle, ..)| *handle)
            .collect();
        let after = match (conflicts.len(), self.draw.below(4)) {
            (0, 0) => After::All,
            (0, _) => After::Nothing,
            (1, 0..2) => After::One(conflicts[0]),
            (_, 2) => After::UpTo(*conflicts.iter().max().unwrap()),
            _ => After::Each(&conflicts),
        };
        let Ok(handle) = self.party.machine.try_issue(request, after) else {
            self.draw.0 = before;
            return false;
        };
        self.issued += 1;
        for (place, at, bytes) in apply.into_iter().flatten() {
            let slice = self.model.get_mut(&place).unwrap();
            slice[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        self.live.push((handle, reads, writes, added));
        true
    }

    fn block(&mut self, dst: Place, src: Place) -> Issue {
        let own = self.own();
        // Overlapping bytes are an error of the caller.
        let dst = if dst == src { (dst.0, (dst.1 + 1) % SLICES) } else { dst };
        let bytes = self.draw.below(SLICE + 1);
        let (to, from) = (self.draw.below(SLICE - bytes + 1), self.draw.below(SLICE - bytes + 1));
        let copy = Copy::new(
            self.shift(slice_at(self.world, own, dst), to),
            self.shift(slice_at(self.world, own, src), from),
            bytes,
        );
        let moved = self.model[&src][from as usize..(from + bytes) as usize].to_vec();
        (copy.into(), vec![src], vec![dst], Some(vec![(dst, to as usize, moved)]), None)
    }

    fn strided(&mut self, dst: Place, src: Place) -> Issue {
        let own = self.own();
        let dst = if dst == src { (dst.0, (dst.1 + 1) % SLICES) } else { dst };
        let (count, bytes) = (1 + self.draw.below(4), 1 + self.draw.below(24));
        let copy = Copy::new(slice_at(self.world, own, dst), slice_at(self.world, own, src), bytes);
        let copy = copy.strided(count as u32, 32, 64);
        let copied = (0..count as usize).map(|block| {
            (dst, block * 32, self.model[&src][block * 64..block * 64 + bytes as usize].to_vec())
        });
        let copied = copied.collect();
        (copy.into(), vec![src], vec![dst], Some(copied), None)
    }

    /// Blocks of one slice, scattered over another, named by a list in this rank's memory.
    fn list(&mut self, dst: Place, src: Place) -> Issue {
        let own = self.own();
        let dst = if dst == src { (dst.0, (dst.1 + 1) % SLICES) } else { dst };
        let count = self.draw.below(20);
        let list = list_at(self.world, own, own);
        // The list area is one more place, which is written now: no operation may be reading it.
        let area = (own, SLICES);
        if self.live.iter().any(|(_, reads, ..)| reads.contains(&area)) {
            return self.block(dst, src);
        }
        let region = self.world.main[own as usize].0;
        let mut copied = Vec::new();
        for index in 0..count {
            let (to, from) = (index * 12, (19 - index) * 12);
            let bytes = self.draw.below(13);
            let entry = [
                self.shift(slice_at(self.world, own, dst), to).to_bits(),
                self.shift(slice_at(self.world, own, src), from).to_bits(),
                bytes,
            ];
            let first = self.party.machine.cache().split().place(list).unwrap().offset;
            for (word, value) in entry.into_iter().enumerate() {
                let offset = first + index * ENTRY_BYTES + word as u64 * 8;
                self.party.node.store(region.key, offset, value).unwrap();
            }
            let moved = self.model[&src][from as usize..(from + bytes) as usize].to_vec();
            copied.push((dst, to as usize, moved));
        }
        let list =
            ListCopy { entries: list, count: count as u32, from: Rank(src.0), to: Rank(dst.0) };
        (list.into(), vec![src, area], vec![dst], Some(copied), None)
    }

    fn shift(&self, addr: GlobalAddr, bytes: u64) -> GlobalAddr {
        self.party.machine.cache().split().add(addr, bytes as i64).unwrap()
    }

    fn take_outs(&mut self) {
        while let Some(out) = self.party.outs.pop_front() {
            let MachineOutput::Ended { handle, result } = out else { continue };
            let at = self.live.iter().position(|(live, ..)| *live == handle).expect("once");
            let (.., added) = self.live.swap_remove(at);
            self.ended += 1;
            match result {
                Ok(_) => self.counter += added.unwrap_or(0),
                Err(error) => self.errors.push(error),
            }
        }
    }
}

/// A request, the places that it reads and writes, its effect on the model, and its addition to a
/// counter.
type Issue =
    (GlobalRequest, Vec<Place>, Vec<Place>, Option<Vec<(Place, usize, Vec<u8>)>>, Option<u64>);

impl Actor for Program<'_, '_> {
    fn on_event(&mut self, _: &SimNode<'_>, event: Told) {
        self.party.on_event(event);
        self.take_outs();
        self.issue_some();
        self.take_outs();
    }
}

fn run(seed: u64, plan: Plan) {
    let mut draw = Seeded(seed);
    let ranks = 1 + draw.below(6) as u32;
    let ranks = match plan {
        Plan { kill: true, .. } | Plan { crowded: true, .. } => ranks.max(3),
        Plan { parts: true, .. } => ranks.max(2),
        _ => ranks,
    };
    let mut config = config(ranks, seed);
    if plan.kill {
        config.detect_ns = [1_000, 1_000_000][draw.below(2) as usize];
    }
    if plan.kill && plan.crowded {
        // Operations of the dead rank arrive when its places are in use again.
        config.detect_ns = 100;
        (config.slow, config.slow_ns_max) = (300, 100_000);
    }
    if plan.torn {
        (config.torn, config.reorder, config.early) = (1000, true, 0);
        (config.slow, config.slow_ns_max) = (300, 20_000);
    }
    let reorders = config.reorder;
    let net = Net::new(config);
    let mut sizes = Sizes::new(ranks);
    sizes.shape.copies = 4 << draw.below(2);
    sizes.shape.commands = 1 + if plan.kill { 0 } else { draw.below(4) as u32 };
    sizes.shape.notes = 1 << draw.below(4);
    sizes.shape.cells = [0, 1, 4][draw.below(3) as usize];
    sizes.shape.remote_jobs = 1 + draw.below(3) as u32;
    sizes.shape.flights = 1 + draw.below(16) as u32;
    sizes.shape.fetches = 1 + draw.below(3) as u32;
    sizes.part_bytes_max = 1 + draw.below(300);
    sizes.near = plan.near;
    sizes.keeps_order = !reorders;
    sizes.joined_bytes_max = if reorders { draw.below(2) * 128 } else { 0 };
    sizes.carried_bytes_max = if plan.carried { 1 + draw.below(SLICE) } else { 0 };
    let mut rooms: Vec<Room> = (0..ranks).map(|_| Room::new(&sizes)).collect();
    let mut parties: Vec<Party<'_>> = rooms
        .iter_mut()
        .enumerate()
        .map(|(rank, room)| Party::new(&net, rank as u32, &sizes, room))
        .collect();
    let main = parties.iter_mut().map(|party| party.open(bytes_of_region(ranks))).collect();
    let world = World { ranks, main };
    let mut programs: Vec<Program<'_, '_>> = parties
        .into_iter()
        .map(|party| {
            let own = party.node.rank().0;
            let mut model = HashMap::new();
            for rank in 0..ranks {
                for slice in 0..SLICES {
                    let content: Vec<u8> = (0..SLICE)
                        .map(|byte| {
                            (own as u64 * 7 + u64::from(rank) * 31 + slice * 57 + byte) as u8
                        })
                        .collect();
                    fill(&net, &world, own, (rank, slice), &content);
                    model.insert((rank, slice), content);
                }
            }
            Program {
                party,
                world: &world,
                plan,
                draw: Seeded(seed ^ u64::from(own) << 40),
                left: plan.operations,
                model,
                live: Vec::new(),
                counter: 0,
                errors: Vec::new(),
                ended: 0,
                issued: 0,
            }
        })
        .collect();
    net.start(&mut programs);
    programs.iter_mut().for_each(Program::issue_some);
    if plan.kill {
        net.run_until(Instant::from_ns(draw.below(150_000)), &mut programs);
        net.kill(Rank(draw.below(u64::from(ranks)) as u32));
    }
    let parting = plan.parts.then(|| {
        let stays = Rank(draw.below(u64::from(ranks)) as u32);
        NetPartition::drawn(ranks, seed, 150_000, stays)
    });
    if let Some(parting) = &parting {
        parting.run(&net, &mut programs, |_, _| {});
    }
    net.settle(PATIENCE, &mut programs, |all| all.iter().map(|program| program.ended).sum());
    check_end(&net, &world, &programs);
}

fn check_end(net: &Net, world: &World, programs: &[Program<'_, '_>]) {
    let ranks = || (0..world.ranks).map(Rank);
    let all_know_all = ranks().all(|by| ranks().all(|whom| !net.is_lost(by, whom)));
    // A source that got a command names the rank that it has itself given up.
    let is_lost_to_one = |whom| ranks().any(|by| net.is_lost(by, whom));
    let mut sum = 0;
    for program in programs.iter().filter(|program| !net.is_dead(program.party.node.rank())) {
        let lives = |rank: u32| !net.is_lost(program.party.node.rank(), Rank(rank));
        let own = program.own();
        assert_eq!(program.left, 0, "rank {own}: {:?}", program.live);
        assert!(
            program.live.is_empty(),
            "rank {own}: {:?} {:?}",
            program.live,
            program.party.machine
        );
        assert_eq!(program.ended, program.issued);
        for error in &program.errors {
            let named = matches!(error, AddrError::PeerLost { rank } if is_lost_to_one(*rank));
            assert!(named, "rank {own}: {error}");
        }
        sum += program.counter;
        if !program.errors.is_empty() {
            continue;
        }
        for (&(rank, slice), content) in program.model.iter().filter(|((rank, _), _)| lives(*rank))
        {
            let found = content_of(net, world, own, (rank, slice));
            assert_eq!(found, *content, "rank {own}'s slice {slice} at rank {rank}");
        }
    }
    if all_know_all {
        let last = bytes_of_region(world.ranks) - 8;
        let found: u64 = (0..world.ranks)
            .map(|rank| net.node(Rank(rank)).load(world.main[rank as usize].0.key, last).unwrap())
            .sum();
        assert_eq!(found, sum, "the sum of all counters");
    }
}

fn fill(net: &Net, world: &World, own: u32, place: Place, content: &[u8]) {
    let first = (u64::from(own) * SLICES + place.1) * SLICE;
    for (index, word) in content.chunks(8).enumerate() {
        let value = u64::from_le_bytes(word.try_into().unwrap());
        let key = world.main[place.0 as usize].0.key;
        net.node(Rank(place.0)).store(key, first + index as u64 * 8, value).unwrap();
    }
}

fn content_of(net: &Net, world: &World, own: u32, place: Place) -> Vec<u8> {
    let first = (u64::from(own) * SLICES + place.1) * SLICE;
    let key = world.main[place.0 as usize].0.key;
    (0..SLICE / 8)
        .flat_map(|word| net.node(Rank(place.0)).load(key, first + word * 8).unwrap().to_le_bytes())
        .collect()
}

const PLAIN: Plan = Plan {
    kill: false,
    parts: false,
    operations: 25,
    crowded: false,
    near: false,
    torn: false,
    carried: false,
};
const PARTED: Plan = Plan { parts: true, ..PLAIN };
const KILL: Plan = Plan { kill: true, ..PLAIN };
const LATE: Plan = Plan { crowded: true, ..KILL };
const NEAR: Plan = Plan { near: true, ..PLAIN };
const CROWDED: Plan = Plan { crowded: true, ..PLAIN };
const CARRIED: Plan = Plan { carried: true, ..PLAIN };
const TORN: Plan = Plan { torn: true, ..CROWDED };

#[test]
fn every_byte_follows_the_order_of_the_copies() {
    check(SEEDS, |seed| run(seed, PLAIN));
}

#[test]
fn a_rank_that_reaches_both_copies_itself() {
    check(SEEDS.take(300), |seed| run(seed, NEAR));
}

#[test]
fn the_caller_carries_a_short_copy() {
    check(SEEDS, |seed| run(seed, CARRIED));
    check(SEEDS, |seed| run(seed, Plan { kill: true, ..CARRIED }));
}

#[test]
fn few_places_delay_copies_but_stop_none() {
    check(SEEDS.take(300), |seed| run(seed, CROWDED));
}

#[test]
fn a_death_ends_only_the_copies_of_its_rank() {
    check(SEEDS, |seed| run(seed, KILL));
    check(SEEDS.and(SLOW), |seed| run(seed, LATE));
}

#[test]
fn a_live_rank_that_is_given_up_writes_nothing() {
    check(SEEDS, |seed| {
        run(seed, Plan { carried: seed % 3 == 0, crowded: seed % 4 == 0, ..PARTED });
    });
}

/// The number of times that a message crosses the network, one after the other, until rank 0
/// learns that its operation has ended.
pub fn trips(party: &mut [Party<'_>], net: &Net, copy: Copy) -> u64 {
    let start = net.now().as_ns();
    party[0].machine.try_issue(copy.into(), After::Nothing).unwrap();
    party[0].pump();
    while party[0].outs.iter().all(|out| !matches!(out, MachineOutput::Ended { .. })) {
        let (rank, event) = net.step().expect("the operation is under way");
        party[rank.0 as usize].on_event(event);
    }
    party[0].outs.clear();
    (net.now().as_ns() - start) / 1_000
}

/// The table of the destination is fetched once: one atomic, one read. A copy by a command then
/// takes one trip for the command, two for the put and one for the end; where order is kept, as
/// many as a put and a message.
#[test]
fn a_copy_takes_its_minimum_of_trips() {
    count_trips(false, 0, 4);
    count_trips(true, 0, 3);
}

/// A carried copy is a get and a put, in which no other processor takes part.
#[test]
fn a_carried_copy_needs_no_other_processor() {
    count_trips(false, 1 << 16, 4);
}

fn count_trips(keeps_order: bool, carried_bytes_max: u64, of_third: u64) {
    let net = Net::new(SimConfig::calm(3, 0));
    let sizes = Sizes { part_bytes_max: 1 << 20, keeps_order, ..Sizes::new(3) };
    let sizes = Sizes { carried_bytes_max, ..sizes };
    let mut rooms: Vec<Room> = (0..3).map(|_| Room::new(&sizes)).collect();
    let mut parties: Vec<Party<'_>> = rooms
        .iter_mut()
        .enumerate()
        .map(|(rank, room)| Party::new(&net, rank as u32, &sizes, room))
        .collect();
    let at: Vec<GlobalAddr> = parties.iter_mut().map(|party| party.open(1 << 16).1).collect();
    for bytes in [8, 8192, 65_536] {
        let first = if bytes == 8 { 4 } else { 0 };
        let put = trips(&mut parties, &net, Copy::new(at[1], at[0], bytes));
        let get = trips(&mut parties, &net, Copy::new(at[0], at[1], bytes));
        let third = trips(&mut parties, &net, Copy::new(at[2], at[1], bytes));
        assert_eq!((put, get, third), (2 + first, 2, of_third + first), "{bytes} bytes");
    }
    let asked = if carried_bytes_max > 0 { 0 } else { 3 };
    assert_eq!(parties[1].machine.hints(), asked, "commands that came with their notes");
    assert_eq!(parties[0].machine.relayed(), if keeps_order { 3 } else { 0 });
}

/// The second of two blocks is outside of its region, and puts complete before they land: when the
/// error is known, the first block has landed.
#[test]
fn the_finished_blocks_of_a_failed_copy_have_landed() {
    fail_behind_a_put();
}

fn fail_behind_a_put() {
    let net = Net::new(SimConfig { early: 1000, ..SimConfig::calm(2, 0) });
    let sizes = Sizes::new(2);
    let mut rooms = [Room::new(&sizes), Room::new(&sizes)];
    let [own, theirs] = &mut rooms;
    let mut party = [Party::new(&net, 0, &sizes, own), Party::new(&net, 1, &sizes, theirs)];
    let [(own, src), (theirs, dst)] = [party[0].open(64), party[1].open(64)];
    party[0].node.store(own.key, 0, 77).unwrap();
    let last = party[0].machine.cache().split().add(dst, 56).unwrap();
    let copy = Copy::new(last, src, 8).strided(2, 64, 0);
    party[0].machine.try_issue(copy.into(), After::Nothing).unwrap();
    party[0].pump();
    let result = loop {
        let ended = party[0].outs.iter().find_map(|out| match out {
            MachineOutput::Ended { result, .. } => Some(*result),
            _ => None,
        });
        if let Some(result) = ended {
            break result;
        }
        let (rank, event) = net.step().expect("the operation is under way");
        party[rank.0 as usize].on_event(event);
    };
    assert!(matches!(result, Err(AddrError::OutOfRange { .. })), "{result:?}");
    assert_eq!(party[1].node.load(theirs.key, 56), Ok(77));
}

/// Hazard A6: a command that arrives after its note is half written, and the other half is of the
/// command before.
#[test]
#[cfg(debug_assertions)]
fn a_torn_command_is_caught() {
    check(SEEDS.take(300), |seed| run(seed, TORN));
    assert_caught(&["gas_command_unchecked"], |seed| run(seed, TORN));
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_are_caught() {
    assert_caught(
        &[
            "gas_local_completion",
            "gas_late_completions",
            "gas_order_one_for_all",
            "gas_relay_overtakes",
        ],
        |seed| run(seed, PLAIN),
    );
    assert_caught(&["gas_guests_wait_for_hosts"], |seed| run(seed, CROWDED));
    assert_caught(&["gas_relay_dies"], |seed| run(seed, KILL));
    assert_caught(&["gas_failed_unconfirmed"], |_| fail_behind_a_put());
}

/// With parts of one byte, on the slowest networks, an operation takes a
/// quarter of that.
const PATIENCE: Duration = Duration::from_secs(1);
/// Seeds that showed that a limit of 0.1 s for all takes slow operations for hangs.
const SLOW: &[u64] = &[0xf4529, 0xf496a, 0xf5c23];
