//! Regions that come and go while all ranks use them.
//!
//! Each region has a serial number in its first word and a count in its second. An access to an
//! address, however old, finds the serial of the region that the address belongs to, or is refused
//! as stale; it never finds another region, never reaches a device with a key that the device has
//! dropped (the driver checks that), and never touches memory that was given back, which is filled
//! with a pattern until it is registered again.

use super::rank::{Party, Room, Sizes, peek, poke};
use super::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;
use tsumugi_core::backend::Domain;
use tsumugi_core::mem::{Access, AddrError, Rank, Region};
use tsumugi_core::op::Kind;
use tsumugi_core::sim::{Actor, Net, NetPartition, SimEvent as Told, SimNode, check};
use tsumugi_core::time::Instant;
use tsumugi_gas::address::{GlobalAddr, Split};
use tsumugi_gas::machine::MachineOutput;
use tsumugi_gas::order::{After, Handle};
use tsumugi_gas::request::{Copy, WordRequest};
use tsumugi_gas::table::Agent;

const CHUNKS: usize = 3;
const BYTES: u64 = 64;
const POISON: u64 = 0xdead_beef_dead_beef;

#[derive(Clone, Copy, Default)]
struct Plan {
    kill: bool,
    /// The network is cut, ranks give each other up, and the cut heals.
    parts: bool,
    /// Names have no lives: an address may later name the next region.
    no_lives: bool,
    operations: u64,
}

impl Plan {
    /// Whether operations may end with a loss.
    const fn loses(self) -> bool {
        self.kill || self.parts
    }
}

/// The addresses that all ranks know, however they learned them.
#[derive(Default)]
struct Board {
    /// Every address that was ever given, and the serial of its region.
    addrs: Vec<(GlobalAddr, u64)>,
    /// All serials that an address has had.
    serials: HashMap<GlobalAddr, Vec<u64>>,
    next_serial: u64,
    /// Adds that succeeded, by serial.
    added: HashMap<u64, u64>,
    /// The second word of each region when it was retired.
    counted: HashMap<u64, u64>,
    /// Regions that are registered.
    open: HashMap<GlobalAddr, u64>,
    refused: u64,
    found: u64,
}

#[derive(Clone, Copy)]
enum Chunk {
    Idle(Region),
    Open(Region, GlobalAddr, u64),
    Closing(Region, GlobalAddr, u64),
}

#[derive(Clone, Copy)]
enum What {
    Read(GlobalAddr),
    Add(GlobalAddr),
    Copy,
}

struct Program<'n, 'w> {
    party: Party<'n>,
    board: &'w RefCell<Board>,
    draw: Seeded,
    left: u64,
    chunks: [Chunk; CHUNKS],
    live: HashMap<Handle, What>,
    plan: Plan,
}

impl Program<'_, '_> {
    fn act(&mut self) {
        while self.left > 0 && self.live.len() < 6 {
            self.left -= 1;
            match self.draw.below(8) {
                0 | 1 => self.turn_over(),
                kind => self.access(kind),
            }
            self.party.pump();
            self.take_outs();
        }
    }

    /// Opens or closes a chunk.
    fn turn_over(&mut self) {
        let at = self.draw.below(CHUNKS as u64) as usize;
        let node = self.party.node;
        self.chunks[at] = match self.chunks[at] {
            Chunk::Idle(region) => {
                for word in 0..BYTES / 8 {
                    let found = peek(region, word);
                    assert_eq!(found, POISON, "{}: memory that was given back", node.rank());
                }
                let mut board = self.board.borrow_mut();
                let serial = board.next_serial;
                board.next_serial += 1;
                poke(region, 0, serial);
                poke(region, 1, 0);
                // SAFETY: the network's memory.
                let region =
                    unsafe { node.register(region.base, BYTES, Access::ReadWrite) }.unwrap();
                let addr = self.party.machine.register(0, &region, Agent::Cpu).unwrap();
                board.addrs.push((addr, serial));
                board.serials.entry(addr).or_default().push(serial);
                board.open.insert(addr, serial);
                Chunk::Open(region, addr, serial)
            }
            Chunk::Open(region, addr, serial) => {
                self.party.machine.unregister(addr).unwrap();
                self.board.borrow_mut().open.remove(&addr);
                assert_eq!(
                    self.party.machine.unregister(addr),
                    Err(AddrError::StaleKey { addr }),
                    "twice"
                );
                Chunk::Closing(region, addr, serial)
            }
            closing => closing,
        };
    }

    fn access(&mut self, kind: u64) {
        let board = self.board.borrow();
        if board.addrs.is_empty() {
            return;
        }
        // Some of the newest addresses, or any.
        let count = board.addrs.len() as u64;
        let mut pick = || {
            let span = if self.draw.below(3) == 0 { count } else { count.min(8) };
            board.addrs[(count - 1 - self.draw.below(span)) as usize].0
        };
        let (one, other) = (pick(), pick());
        drop(board);
        let shift = |addr: GlobalAddr, bytes: u64| GlobalAddr::from_bits(addr.to_bits() + bytes);
        let (request, what) = match kind {
            2..5 => (WordRequest::atomic(Kind::GetWord, one, 0u64).into(), What::Read(one)),
            5 | 6 => {
                (WordRequest::atomic(Kind::FetchAdd, shift(one, 8), 1u64).into(), What::Add(one))
            }
            _ => (Copy::new(shift(one, 32), shift(other, 16), 16).into(), What::Copy),
        };
        if let Ok(handle) = self.party.machine.try_issue(request, After::Nothing) {
            self.live.insert(handle, what);
        }
    }

    fn take_outs(&mut self) {
        while let Some(out) = self.party.outs.pop_front() {
            match out {
                MachineOutput::Ended { handle, result } => self.ended(handle, result),
                MachineOutput::Retired(retired) => {
                    let is_it = |chunk: &Chunk| matches!(chunk, Chunk::Closing(_, addr, _) if *addr == retired.addr);
                    let at = self.chunks.iter().position(is_it).expect("the region was closing");
                    let Chunk::Closing(region, _, serial) = self.chunks[at] else { unreachable!() };
                    assert_eq!(region.key, retired.key);
                    assert_eq!(peek(region, 0), serial);
                    self.board.borrow_mut().counted.insert(serial, peek(region, 1));
                    (0..BYTES / 8).for_each(|word| poke(region, word, POISON));
                    self.chunks[at] = Chunk::Idle(region);
                }
                MachineOutput::Table { .. } => {}
            }
        }
    }

    fn ended(&mut self, handle: Handle, result: Result<u64, AddrError<GlobalAddr>>) {
        let mut board = self.board.borrow_mut();
        let what = self.live.remove(&handle).expect("once");
        match (what, result) {
            (What::Read(addr), Ok(value)) => {
                let serials = &board.serials[&addr];
                let is_its = serials.contains(&value);
                assert!(is_its, "{addr} has had {serials:?}, and {value:#x} was found");
                if !self.plan.no_lives {
                    assert_eq!(serials.len(), 1, "{addr}");
                }
                board.found += 1;
            }
            (What::Add(addr), Ok(_)) => {
                let serial = *board.serials[&addr].last().unwrap();
                *board.added.entry(serial).or_default() += 1;
                board.found += 1;
            }
            (What::Copy, Ok(_)) => {}
            (What::Read(addr) | What::Add(addr), Err(AddrError::StaleKey { .. })) => {
                // Addresses are known only after they were registered.
                assert!(!board.open.contains_key(&addr), "{addr} is registered");
                board.refused += 1;
            }
            (What::Copy, Err(AddrError::StaleKey { .. })) => {}
            (_, Err(AddrError::PeerLost { .. })) if self.plan.loses() => {}
            (_, Err(error)) => panic!("{}: {error}", self.party.node.rank()),
        }
    }
}

impl Actor for Program<'_, '_> {
    fn on_event(&mut self, _: &SimNode<'_>, event: Told) {
        self.party.on_event(event);
        self.take_outs();
        self.act();
    }
}

fn run(seed: u64, plan: Plan) -> (u64, u64) {
    let mut draw = Seeded(seed);
    let ranks = 2 + draw.below(4) as u32;
    let mut config = config(ranks, seed);
    if plan.kill {
        config.detect_ns = [1_000, 1_000_000][draw.below(2) as usize];
    }
    let keeps_order = !config.reorder;
    let net = Net::new(config);
    let mut sizes = Sizes { keeps_order, ..Sizes::new(ranks) };
    match draw.below(3) {
        0 if !keeps_order => sizes.joined_bytes_max = 128,
        1 => sizes.carried_bytes_max = BYTES,
        _ => {}
    }
    sizes.shape.copies = 4 << draw.below(2);
    sizes.shape.flat_words = draw.below(2) as u32;
    sizes.shape.flights = 1 + draw.below(16) as u32;
    sizes.shape.fetches = 1 + draw.below(3) as u32;
    if plan.no_lives {
        sizes.split = Split::DEFAULT;
    }
    let mut rooms: Vec<Room> = (0..ranks).map(|_| Room::new(&sizes)).collect();
    let board = RefCell::new(Board { next_serial: 1, ..Board::default() });
    let mut programs: Vec<Program<'_, '_>> = rooms
        .iter_mut()
        .enumerate()
        .map(|(rank, room)| {
            let party = Party::new(&net, rank as u32, &sizes, room);
            let chunks = [(); CHUNKS].map(|()| {
                let region = party.node.allocate(BYTES, Access::ReadWrite).unwrap();
                (0..BYTES / 8).for_each(|word| poke(region, word, POISON));
                assert!(party.node.unregister(region.key));
                Chunk::Idle(region)
            });
            let draw = Seeded(seed ^ (rank as u64) << 40);
            let live = HashMap::new();
            Program { party, board: &board, draw, left: plan.operations, chunks, live, plan }
        })
        .collect();
    net.start(&mut programs);
    programs.iter_mut().for_each(Program::act);
    if plan.kill {
        net.run_until(Instant::from_ns(draw.below(150_000)), &mut programs);
        net.kill(Rank(draw.below(u64::from(ranks)) as u32));
    }
    if plan.parts {
        let stays = Rank(draw.below(u64::from(ranks)) as u32);
        NetPartition::drawn(ranks, seed, 150_000, stays).run(&net, &mut programs, |_, _| {});
    }
    let left = |program: &Program<'_, '_>| 16 * program.left + program.live.len() as u64;
    net.settle(PATIENCE, &mut programs, |all| all.iter().map(left).sum());
    for program in &mut programs {
        let rank = program.party.node.rank();
        if net.is_dead(rank) {
            continue;
        }
        program.take_outs();
        assert_eq!(
            (program.left, program.live.len()),
            (0, 0),
            "{rank}: {:?}",
            program.party.machine
        );
        let open = program.chunks.iter().filter(|chunk| matches!(chunk, Chunk::Open(..))).count();
        let names = program.party.machine.names();
        assert_eq!(names, open, "{rank}: unregistered names are free at the end");
    }
    let board = board.into_inner();
    if !plan.loses() && !plan.no_lives {
        for (serial, counted) in &board.counted {
            let added = board.added.get(serial).copied().unwrap_or(0);
            assert_eq!(*counted, added, "adds to region {serial}");
        }
    }
    (board.found, board.refused)
}

const PLAIN: Plan = Plan { kill: false, parts: false, no_lives: false, operations: 60 };
const NO_LIVES: Plan = Plan { no_lives: true, ..PLAIN };
const KILL: Plan = Plan { kill: true, ..PLAIN };
const PARTED: Plan = Plan { parts: true, ..PLAIN };
/// Seeds by which a copy never ended whose destination was to report the end, and which its caller
/// had given up.
const RELAYED: &[u64] = &[0x6470, 0xa3d4];

#[test]
fn an_address_finds_its_own_region_or_none() {
    let (mut found, mut refused) = (0, 0);
    let is_own = check(SEEDS, |seed| {
        let counts = run(seed, PLAIN);
        (found, refused) = (found + counts.0, refused + counts.1);
    });
    let are_many = found > 1000 && refused > 1000;
    assert!(are_many || !is_own, "{found} found, {refused} refused");
}

#[test]
fn names_without_lives_are_reused_when_no_rank_holds_the_old_table() {
    check(SEEDS, |seed| {
        run(seed, NO_LIVES);
    });
}

#[test]
fn a_dead_rank_keeps_no_name() {
    check(SEEDS, |seed| {
        run(seed, KILL);
    });
}

#[test]
fn a_live_rank_that_is_given_up_keeps_no_name() {
    check(SEEDS.and(RELAYED), |seed| {
        run(seed, PARTED);
    });
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_are_caught() {
    assert_caught(
        &[
            "gas_interest_after_read",
            "gas_holders_cleared_late",
            "gas_wait_for_newcomers",
            "gas_retire_at_once",
            "gas_install_after_drop",
            "gas_ack_before_drained",
            "gas_never_refresh",
            "gas_carried_unpinned",
        ],
        |seed| {
            run(seed, PLAIN);
        },
    );
}

/// A defect that only about one of ten thousand seeds finds.
#[test]
#[cfg(debug_assertions)]
fn an_end_that_is_reported_to_no_rank_is_caught() {
    for &seed in RELAYED {
        let fails = || std::panic::catch_unwind(|| run(seed, PARTED)).is_err();
        let caught = tsumugi_core::sync::with_mutant("gas_relay_of_the_lost", fails);
        assert!(caught, "seed {seed:#x} was good");
    }
}

/// Two ranks whose tables fall into one set do not evict each other (hazard A5): each table is read
/// once, however often both are used.
fn alternate() -> (u64, u64) {
    let ranks = 64;
    let net = Net::new(SimConfig::calm(ranks, 0));
    let sizes = Sizes::new(ranks);
    let mut rooms: Vec<Room> = (0..ranks).map(|_| Room::new(&sizes)).collect();
    let mut parties: Vec<Party<'_>> = rooms
        .iter_mut()
        .enumerate()
        .map(|(rank, room)| Party::new(&net, rank as u32, &sizes, room))
        .collect();
    let words: Vec<GlobalAddr> = parties.iter_mut().map(|party| party.open(8).1).collect();
    // Three ranks of each set, so that some three share one set.
    for round in 0..30 {
        for rank in [1, 2, 3] {
            let word = WordRequest::atomic(Kind::FetchAdd, words[rank], 1u64);
            parties[0].machine.try_issue(word.into(), After::Nothing).unwrap();
            parties[0].pump();
            while let Some((rank, event)) = net.step() {
                parties[rank.0 as usize].on_event(event);
            }
            let ended = parties[0].outs.drain(..).find_map(|out| match out {
                MachineOutput::Ended { result, .. } => Some(result),
                _ => None,
            });
            assert_eq!(ended, Some(Ok(round)));
        }
    }
    parties[0].machine.table_counts()
}

#[test]
fn a_table_is_read_once_and_serves_all_accesses() {
    assert_eq!(alternate(), (0, 3), "evicted, read");
}

#[test]
#[cfg(debug_assertions)]
fn a_direct_mapped_cache_is_caught() {
    let (evicted, reads) = tsumugi_core::sync::with_mutant("gas_direct_mapped", alternate);
    assert!(evicted > 10 && reads > 10, "{evicted} evicted, {reads} reads");
}

/// Longer than the slowest network takes for an operation.
const PATIENCE: Duration = Duration::from_millis(100);
