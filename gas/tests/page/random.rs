//! Random programs on a network that does its worst: gets, puts, atomics on
//! elements and owns, by several ULTs of each rank, and a rank that dies.

use crate::desk::{DIRECTORY, Desk, Log, PAGES};
use crate::post::{Mail, Post};
use crate::ult::{ELEMENTS, Plan, first};
use std::cell::RefCell;
#[cfg(debug_assertions)]
use std::panic::catch_unwind;
use std::rc::Rc;
use tsumugi_conformance::Seeded;
use tsumugi_conformance::history::{What, check_counter, check_register};
use tsumugi_core::mem::Rank;
use tsumugi_core::sim::{Config, Net, check};
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;
use tsumugi_core::time::Instant;
use tsumugi_gas::page::{Book, Distribution, Homes, PageId, Shape, State};

/// How a program is drawn from its seed.
fn plan(draw: &mut Seeded) -> Plan {
    match draw.below(4) {
        // All want the same pages.
        0 => Plan::Mix { gets: 20, puts: 10, adds: 10 },
        // A storm of puts.
        1 => Plan::Mix { gets: 10, puts: 60, adds: 20 },
        2 => Plan::Mix { gets: 75, puts: 10, adds: 5 },
        _ => Plan::Mix { gets: 30, puts: 25, adds: 20 },
    }
}

/// Which directory there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Atomics,
    /// The same, whose words lie apart: a device's.
    Device,
    Messages,
}

fn run(seed: u64, by: By, kill: bool) -> Log {
    let mut draw = Seeded(seed);
    let ranks = 2 + u64::from(kill) + draw.below(3);
    let pages = 1 + draw.below(6);
    let dealt = match draw.below(3) {
        0 => Distribution::Block,
        1 => Distribution::Cyclic,
        _ => Distribution::By(|page| Rank((page.0 & 1) as u32)),
    };
    let homes = Homes::new(ranks as u32, pages, dealt);
    // Few frames and slots, so that they are used again.
    let (slots, frames) = (1 + draw.below(3) as u32, (pages + draw.below(3)) as u32);
    let shape = Shape { homes, page_bytes: 8 * ELEMENTS, slots, frames };
    let book = match by {
        By::Device => Book::apart(shape, DIRECTORY, PAGES).unwrap(),
        By::Atomics | By::Messages => Book::new(shape, PAGES, 0).unwrap(),
    };
    let mut config = Config::drawn(ranks as u32, seed);
    if kill {
        // Sooner or later than what the dead had begun arrives.
        config.detect_ns = [1_000, 1_000_000][draw.below(2) as usize];
    }
    let net = Net::new(config);
    let log = Rc::new(RefCell::new(Log::new(pages * ELEMENTS)));
    let mut desks: Vec<_> =
        (0..ranks as u32).map(|rank| Desk::new(&net, Rank(rank), book, &log)).collect();
    Desk::deal(&net, &book, dealt);
    if by == By::Messages {
        let mail = Mail::new(seed);
        for (rank, desk) in desks.iter_mut().enumerate() {
            desk.mail = Some(Post::new(Rank(rank as u32), &book, dealt, &mail));
        }
    }
    let plan = plan(&mut draw);
    for desk in &mut desks {
        for _ in 0..1 + draw.below(3) {
            desk.spawn(draw.next(), STEPS, plan);
        }
    }
    let dead = kill.then(|| Rank(draw.below(ranks) as u32));
    net.start(&mut desks);
    if let Some(rank) = dead {
        net.run_until(Instant::from_ns(draw.below(400_000)), &mut desks);
        net.kill(rank);
        desks[rank.0 as usize].note_death();
    }
    net.run_until(Instant::from_ns(END_NS), &mut desks);
    for (rank, desk) in desks.iter().enumerate() {
        assert!(dead == Some(Rank(rank as u32)) || desk.is_done(), "rank {rank} hangs");
    }
    // Whoever lives brings every page to itself, and reads it.
    let last = (0..ranks as u32).map(Rank).find(|rank| Some(*rank) != dead).expect("two ranks");
    let desk = &mut desks[last.0 as usize];
    desk.spawn(0, pages as u32, Plan::Collect);
    desk.spawn(0, pages as u32, Plan::Read);
    desks[last.0 as usize].go_on(&net.node(last));
    net.run_until(Instant::from_ns(2 * END_NS), &mut desks);
    assert!(desks[last.0 as usize].is_done(), "the last hangs");
    drop(desks);
    let log = Rc::into_inner(log).expect("nobody else has it").into_inner();
    check_log(&log);
    if dead.is_none() {
        assert_eq!(log.failed, 0, "failures, and nobody died");
        check_rest(&net, &book, last, by);
    }
    log
}

/// Each element, as if one had come after the other.
fn check_log(log: &Log) {
    for (index, events) in log.elements.iter().enumerate() {
        let (page, element) = (PageId(index as u64 / ELEMENTS), index as u64 % ELEMENTS);
        let result = match element {
            0 => check_counter(events),
            _ => check_register(first(page, element), events),
        };
        if let Err(what) = result {
            panic!("{page:?}, element {element}: {what}");
        }
        if element == 0 && log.dead.is_none() {
            let adds = events.iter().filter(|event| matches!(event.what, What::Add(_))).count();
            let last = events.iter().rfind(|event| matches!(event.what, What::Read(_)));
            assert_eq!(last.expect("read at the end").what, What::Read(adds as u64));
        }
    }
}

/// Every page is at one place, and no frame is lost.
fn check_rest(net: &Net, book: &Book, last: Rank, by: By) {
    let shape = book.shape();
    let mut taken = 0;
    for rank in (0..shape.homes.ranks()).map(Rank) {
        let bits = book.bit(rank, 0).0;
        taken += net.node(rank).load(bits.key, bits.offset).unwrap().count_ones();
    }
    assert_eq!(u64::from(taken), shape.homes.pages(), "frames taken");
    for page in (0..shape.homes.pages()).map(PageId).filter(|_| by != By::Messages) {
        let at = book.entry(page);
        let bits = net.node(at.rank).load(at.key, at.offset).unwrap();
        let State::At(entry) = State::from_bits(bits) else { panic!("{page:?} is left locked") };
        assert_eq!(entry.owner, last, "{page:?} was owned last by {last}");
    }
}

#[test]
fn whatever_moves_each_element_is_as_if_nothing_did() {
    for by in [By::Atomics, By::Device, By::Messages] {
        let mut moves = 0;
        check(SEEDS, |seed| moves += run(seed, by, false).moves);
        println!("by {by:?}: {moves} pages moved");
        assert!(moves > 0);
    }
}

#[test]
fn a_death_is_named_and_nobody_hangs() {
    for by in [By::Atomics, By::Device, By::Messages] {
        let (mut failed, mut moves) = (0, 0);
        check(SEEDS, |seed| {
            let log = run(seed, by, true);
            (failed, moves) = (failed + log.failed, moves + log.moves);
        });
        println!("by {by:?}: {failed} calls ended with a death, {moves} pages moved");
        assert!(failed > 0 || std::env::var_os("TSUMUGI_SEED").is_some());
    }
}

#[test]
#[cfg(debug_assertions)]
fn on_a_network_too_planted_defects_are_caught() {
    for (mutant, by, kill) in MUTANTS {
        let caught = |seed: &u64| catch_unwind(|| run(*seed, by, kill)).is_err();
        let found = with_mutant(mutant, || (0..DEFECT_SEEDS).find(caught));
        let seed = found.unwrap_or_else(|| panic!("{mutant} was not caught"));
        println!("seed {seed} catches {mutant}");
    }
}

/// By which directory, and whether a rank dies.
#[cfg(debug_assertions)]
const MUTANTS: [(&str, By, bool); 17] = [
    ("page_count_apart", By::Atomics, false),
    ("page_install_blind", By::Atomics, false),
    ("page_listed_late", By::Atomics, false),
    ("page_drain_skipped", By::Atomics, false),
    ("page_left_unmarked", By::Atomics, false),
    ("page_marked_late", By::Atomics, false),
    ("page_header_unread", By::Atomics, false),
    ("page_epoch_unread", By::Atomics, false),
    ("page_heir_believes_list", By::Atomics, true),
    ("page_write_uncounted", By::Messages, false),
    ("page_stop_forgotten", By::Messages, false),
    ("page_stopped_early", By::Messages, false),
    ("page_freed_early", By::Messages, false),
    ("page_told_unlisted", By::Messages, false),
    ("page_readers_unlisted", By::Messages, false),
    ("page_told_while_moving", By::Messages, false),
    ("page_late_stop_believed", By::Messages, true),
];
const SEEDS: std::ops::Range<u64> = 0..1_000;
/// A rare one takes some thousands.
#[cfg(debug_assertions)]
const DEFECT_SEEDS: u64 = 20_000;
const STEPS: u32 = 12;
/// Who has not ended by then never does.
const END_NS: u64 = 1_000_000_000;
