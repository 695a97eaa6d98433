//! All operations at once: puts, gets, copies between two other ranks and all atomics at random,
//! while their regions come and go, ranks die and the network has all faults. Each word has one of
//! two kinds of owner, so that its value is known:
//!
//! ```text
//!  word 0       the serial number of the region, written before it is named
//!  word 1..4    shared by all ranks: a sum, a parity, a count by compare and swap
//!  a line each  of one rank alone, four words, whose values it knows
//! ```
//!
//! Operations on one line are ordered by handles. An operation on a region that is gone ends with
//! an error and changes nothing, except copies in several parts, of which some may have arrived
//! before the region went. When a region is retired, and at the end, each word of it has the value
//! that the ranks expect.

mod program;

use super::rank::{Party, Room, Sizes, peek};
use super::*;
use program::{Chunk, Program};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tsumugi_core::backend::Domain;
use tsumugi_core::mem::{Access, Rank, Region};
use tsumugi_core::sim::{Net, NetPartition, check};
use tsumugi_core::time::Instant;
use tsumugi_gas::address::GlobalAddr;

/// The addresses that all ranks know, however they learned them.
#[derive(Default)]
struct Board {
    regions: Vec<Known>,
    /// The words of each region when it was retired, or at the end.
    held: HashMap<usize, Vec<u64>>,
    stale: u64,
}

/// One region: its serial number is its place in the list.
#[derive(Default)]
struct Known {
    addr: GlobalAddr,
    is_open: bool,
    shared: Shared,
    /// Operations that may or may not have been done: by a rank that died, or on one.
    unsure: u64,
}

/// The changes of the words that all ranks share.
#[derive(Clone, Copy, Default)]
struct Shared {
    sum: u64,
    parity: u64,
    count: u64,
}

/// The number of words of a region, in a job of `ranks` ranks.
fn words(ranks: u32) -> u64 {
    4 + LINE as u64 * u64::from(ranks)
}

fn content(region: Region, ranks: u32) -> Vec<u64> {
    (0..words(ranks)).map(|word| peek(region, word)).collect()
}

/// The fate of the ranks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    AllLive,
    OneDies,
    /// The network is cut, ranks give each other up, and the cut heals.
    Parted,
}

/// Runs the seed; returns the number of accesses that found their region gone.
fn run(seed: u64, fate: Fate) -> u64 {
    let mut draw = Seeded(seed);
    let ranks = 2 + draw.below(4) as u32;
    let mut config = config(ranks, seed);
    if fate == Fate::OneDies {
        config.detect_ns = [1_000, 1_000_000][draw.below(2) as usize];
    }
    let keeps_order = !config.reorder;
    let net = Net::new(config);
    let mut sizes = Sizes { keeps_order, ..Sizes::new(ranks) };
    match draw.below(3) {
        0 if !keeps_order => sizes.joined_bytes_max = 128,
        1 => sizes.carried_bytes_max = 128,
        _ => {}
    }
    sizes.shape.copies = 4 << draw.below(2);
    sizes.shape.flat_words = draw.below(2) as u32;
    sizes.shape.commands = 1 + draw.below(4) as u32;
    sizes.shape.notes = 1 << draw.below(4);
    sizes.shape.cells = [0, 1, 4][draw.below(3) as usize];
    sizes.shape.flights = 1 + draw.below(16) as u32;
    sizes.shape.fetches = 1 + draw.below(3) as u32;
    sizes.part_bytes_max = [16, 100][draw.below(2) as usize];
    let mut rooms: Vec<Room> = (0..ranks).map(|_| Room::new(&sizes)).collect();
    let board = RefCell::new(Board::default());
    let programs = rooms.iter_mut().zip(0..).map(|(room, rank)| {
        let mut party = Party::new(&net, rank, &sizes, room);
        let scratch = party.open(PLACES * LINE_BYTES);
        let chunks = [(); CHUNKS].map(|()| {
            let region = party.node.allocate(8 * words(ranks), Access::ReadWrite).unwrap();
            assert!(party.node.unregister(region.key));
            Chunk::Idle(region)
        });
        Program {
            party,
            board: &board,
            draw: Seeded(seed ^ u64::from(rank) << 40),
            ranks,
            left: 60,
            chunks,
            scratch,
            places: [true; PLACES as usize],
            lines: HashMap::new(),
            spoilt: HashSet::new(),
            live: Vec::new(),
            may_lose: fate != Fate::AllLive,
        }
    });
    let mut programs: Vec<Program<'_, '_>> = programs.collect();
    net.start(&mut programs);
    programs.iter_mut().for_each(Program::act);
    match fate {
        Fate::AllLive => {}
        Fate::OneDies => {
            net.run_until(Instant::from_ns(draw.below(150_000)), &mut programs);
            net.kill(Rank(draw.below(u64::from(ranks)) as u32));
        }
        Fate::Parted => {
            let stays = Rank(draw.below(u64::from(ranks)) as u32);
            NetPartition::drawn(ranks, seed, 150_000, stays).run(&net, &mut programs, |_, _| {});
        }
    }
    let left = |program: &Program<'_, '_>| 16 * program.left + program.live.len() as u64;
    net.settle(PATIENCE, &mut programs, |all| all.iter().map(left).sum());
    for program in &mut programs {
        if net.is_dead(program.party.node.rank()) {
            for live in &program.live {
                board.borrow_mut().regions[live.region].unsure += 1;
            }
            continue;
        }
        program.take_outs();
        let left = (program.left, program.live.len());
        assert_eq!(left, (0, 0), "rank {}: {:?}", program.own(), program.party.machine);
        for chunk in program.chunks {
            if let Chunk::Open(region, number) = chunk {
                board.borrow_mut().held.insert(number, content(region, ranks));
            }
        }
    }
    check_end(&net, &board.borrow(), &programs);
    board.borrow().stale
}

/// Checks the words of every region, when it was retired or at the end.
fn check_end(net: &Net, board: &Board, programs: &[Program<'_, '_>]) {
    for (&number, held) in &board.held {
        let Known { shared, unsure, .. } = board.regions[number];
        assert_eq!(held[0], number as u64, "the number of region {number}");
        if unsure == 0 {
            let Shared { sum, parity, count } = shared;
            assert_eq!(held[1..4], [sum, parity, count], "the words of all in region {number}");
        }
        let lives = |program: &&Program<'_, '_>| !net.is_dead(program.party.node.rank());
        for program in programs.iter().filter(lives) {
            let first = 4 + LINE * program.own() as usize;
            let known = program.lines.get(&number).copied().unwrap_or(Some([0; LINE]));
            if let Some(line) = known {
                let own = program.own();
                assert_eq!(held[first..first + LINE], line, "rank {own}'s line of region {number}");
            }
        }
    }
}

const CHUNKS: usize = 3;
/// The number of words of a line.
const LINE: usize = 4;
const LINE_BYTES: u64 = 8 * LINE as u64;
/// The number of places in the scratch memory.
const PLACES: u64 = 8;
const POISON: u64 = 0xdead_beef_dead_beef;
/// Longer than the slowest network takes for an operation.
const PATIENCE: Duration = Duration::from_millis(100);

#[test]
fn every_word_has_the_value_of_its_operations() {
    let mut stale = 0;
    let is_own = check(SEEDS, |seed| stale += run(seed, Fate::AllLive));
    assert!(stale > 1000 || !is_own, "{stale} accesses to what was gone");
}

#[test]
fn every_word_has_its_value_after_a_death() {
    check(SEEDS, |seed| {
        run(seed, Fate::OneDies);
    });
}

#[test]
fn every_word_has_its_value_with_live_ranks_given_up() {
    check(SEEDS, |seed| {
        run(seed, Fate::Parted);
    });
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_are_caught() {
    assert_caught(
        &[
            "gas_retire_at_once",
            "gas_local_completion",
            "gas_order_one_for_all",
            "gas_late_completions",
        ],
        |seed| {
            run(seed, Fate::AllLive);
        },
    );
    assert_caught(&["sim_given_up_let_in"], |seed| {
        run(seed, Fate::Parted);
    });
}
