//! Random programs on a network with all faults: gets, puts, atomics on elements and owns, by
//! several ULTs of each rank, and a rank that dies.

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
use tsumugi_core::sim::{Net, NetPartition, Seeds, SimConfig, check};
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;
use tsumugi_core::time::Instant;
use tsumugi_gas::page::{Distribution, Homes, PageId, PageLayout, PageShape, PageState};

/// The plan of a program, drawn from its seed.
fn plan(draw: &mut Seeded) -> Plan {
    match draw.below(4) {
        // All ULTs want the same pages.
        0 => Plan::Mix { gets: 20, puts: 10, adds: 10 },
        // A storm of puts.
        1 => Plan::Mix { gets: 10, puts: 60, adds: 20 },
        2 => Plan::Mix { gets: 75, puts: 10, adds: 5 },
        _ => Plan::Mix { gets: 30, puts: 25, adds: 20 },
    }
}

/// The kinds of directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Atomics,
    /// The directory of atomics, whose words lie in a device's region.
    Device,
    Messages,
}

/// The kinds of deaths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    None,
    Any,
    /// The operations of the dead rank arrive long after its death is known.
    OfTheSlow,
    /// No rank dies: the network is cut, ranks give each other up, and the cut heals.
    Parted,
}

fn run(seed: u64, by: By, death: Death) -> Log {
    let kill = matches!(death, Death::Any | Death::OfTheSlow);
    let mut draw = Seeded(seed);
    let ranks = 2 + u64::from(kill) + draw.below(3);
    let pages = 1 + draw.below(6);
    let dealt = match draw.below(3) {
        0 => Distribution::Block,
        1 => Distribution::Cyclic,
        _ => Distribution::By(|page| Rank((page.0 & 1) as u32)),
    };
    let homes = Homes::new(ranks as u32, pages, dealt);
    // Few frames and slots, so that they are reused.
    let (slots, frames) = (1 + draw.below(3) as u32, (pages + draw.below(3)) as u32);
    let shape = PageShape { homes, page_bytes: 8 * ELEMENTS, slots, frames };
    let layout = match by {
        By::Device => PageLayout::apart(shape, DIRECTORY, PAGES).unwrap(),
        By::Atomics | By::Messages => PageLayout::new(shape, PAGES, 0).unwrap(),
    };
    let mut config = SimConfig::drawn(ranks as u32, seed);
    if kill {
        // Sooner or later than the last operations of the dead rank arrive.
        config.detect_ns = [1_000, 1_000_000][draw.below(2) as usize];
    }
    if death == Death::OfTheSlow {
        config.detect_ns = 100;
        (config.slow, config.slow_ns_max) = (100, 3_000_000);
    }
    let net = Net::new(config);
    let log = Rc::new(RefCell::new(Log::new(pages * ELEMENTS)));
    let mut desks: Vec<_> =
        (0..ranks as u32).map(|rank| Desk::new(&net, Rank(rank), layout, &log)).collect();
    Desk::deal(&net, &layout, dealt);
    if by == By::Messages {
        let mail = Mail::new(seed);
        for (rank, desk) in desks.iter_mut().enumerate() {
            desk.mail = Some(Post::new(Rank(rank as u32), &layout, dealt, &mail));
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
    let stays = Rank(draw.below(ranks) as u32);
    if death == Death::Parted {
        let parting = NetPartition::drawn(ranks as u32, seed, 400_000, stays);
        log.borrow_mut().is_whole = false;
        parting.run(&net, &mut desks, |desks, rank| desks[rank.0 as usize].note_death());
    }
    net.run_until(Instant::from_ns(END_NS), &mut desks);
    for (rank, desk) in desks.iter().enumerate() {
        assert!(net.is_dead(Rank(rank as u32)) || desk.is_done(), "rank {rank} hangs");
    }
    // A living rank owns every page, and reads it.
    let lives = |rank: &Rank| match death {
        Death::Parted => *rank == stays,
        _ => Some(*rank) != dead,
    };
    let last = (0..ranks as u32).map(Rank).find(lives).expect("two ranks");
    let desk = &mut desks[last.0 as usize];
    desk.spawn(0, pages as u32, Plan::Collect);
    desk.spawn(0, pages as u32, Plan::Read);
    desks[last.0 as usize].go_on(&net.node(last));
    net.run_until(Instant::from_ns(2 * END_NS), &mut desks);
    assert!(desks[last.0 as usize].is_done(), "the last hangs");
    drop(desks);
    let log = Rc::into_inner(log).expect("the log has no other owner").into_inner();
    check_log(&log);
    if death == Death::None {
        assert_eq!(log.failed, 0, "failures, but no rank died");
        check_rest(&net, &layout, last, by);
    }
    log
}

/// Checks that the operations on each element have a sequential order.
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
        if element == 0 && log.is_whole {
            let adds = events.iter().filter(|event| matches!(event.what, What::Add(_))).count();
            let last = events.iter().rfind(|event| matches!(event.what, What::Read(_)));
            assert_eq!(last.expect("read at the end").what, What::Read(adds as u64));
        }
    }
}

/// Checks that every page is at one place, and that no frame is lost.
fn check_rest(net: &Net, layout: &PageLayout, last: Rank, by: By) {
    let shape = layout.shape();
    let mut taken = 0;
    for rank in (0..shape.homes.ranks()).map(Rank) {
        let bits = layout.bit(rank, 0).0;
        taken += net.node(rank).load(bits.key, bits.offset).unwrap().count_ones();
    }
    assert_eq!(u64::from(taken), shape.homes.pages(), "frames taken");
    for page in (0..shape.homes.pages()).map(PageId).filter(|_| by != By::Messages) {
        let at = layout.entry(page);
        let bits = net.node(at.rank).load(at.key, at.offset).unwrap();
        let PageState::At(entry) = PageState::from_bits(bits) else {
            panic!("{page:?} is left locked")
        };
        assert_eq!(entry.owner, last, "{page:?} was owned last by {last}");
    }
}

fn each_element_is_as_if_nothing_moved(by: By) {
    let mut moves = 0;
    let is_own = check(SEEDS, |seed| moves += run(seed, by, Death::None).moves);
    println!("by {by:?}: {moves} pages moved");
    assert!(moves > 0 || !is_own);
}

#[test]
fn moving_pages_keep_their_elements_by_atomics() {
    each_element_is_as_if_nothing_moved(By::Atomics);
}

#[test]
fn moving_pages_keep_their_elements_by_a_device() {
    each_element_is_as_if_nothing_moved(By::Device);
}

#[test]
fn moving_pages_keep_their_elements_by_messages() {
    each_element_is_as_if_nothing_moved(By::Messages);
}

fn a_death_is_named(by: By, death: Death, seeds: Seeds) {
    let (mut failed, mut moves) = (0, 0);
    let is_own = check(seeds, |seed| {
        let log = run(seed, by, death);
        (failed, moves) = (failed + log.failed, moves + log.moves);
    });
    println!("by {by:?}: {failed} calls ended with a death, {moves} pages moved");
    assert!(failed > 0 || !is_own);
}

#[test]
fn a_death_is_named_and_no_call_hangs_by_atomics() {
    a_death_is_named(By::Atomics, Death::Any, SEEDS.and(ERASED));
}

#[test]
fn a_death_is_named_and_no_call_hangs_by_a_device() {
    a_death_is_named(By::Device, Death::Any, SEEDS);
}

#[test]
fn a_death_is_named_and_no_call_hangs_by_messages() {
    a_death_is_named(By::Messages, Death::Any, SEEDS.and(ROLLED_BACK));
}

#[test]
fn accesses_are_waited_for_after_the_page_has_stayed() {
    for &seed in REPLACED.iter().chain(ENDED) {
        run(seed, By::Messages, Death::Any);
    }
}

#[test]
fn late_operations_of_a_dead_rank_do_no_harm_by_atomics() {
    a_death_is_named(By::Atomics, Death::OfTheSlow, SEEDS.and(TORN));
}

#[test]
fn late_operations_of_a_dead_rank_do_no_harm_by_messages() {
    a_death_is_named(By::Messages, Death::OfTheSlow, SEEDS);
}

#[test]
fn a_live_rank_that_is_given_up_loses_no_data_of_others_by_atomics() {
    a_death_is_named(By::Atomics, Death::Parted, SEEDS);
}

#[test]
fn a_live_rank_that_is_given_up_loses_no_data_of_others_by_a_device() {
    a_death_is_named(By::Device, Death::Parted, SEEDS);
}

#[test]
fn a_live_rank_that_is_given_up_loses_no_data_of_others_by_messages() {
    a_death_is_named(By::Messages, Death::Parted, SEEDS);
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_are_caught_on_a_network_too() {
    for (mutant, by, death) in MUTANTS {
        let caught = |seed: &u64| catch_unwind(|| run(*seed, by, death)).is_err();
        let found = with_mutant(mutant, || (0..DEFECT_SEEDS).find(caught));
        let seed = found.unwrap_or_else(|| panic!("{mutant} was not caught"));
        println!("seed {seed} catches {mutant}");
        // The defect is what the seed has found.
        run(seed, by, death);
    }
}

#[cfg(debug_assertions)]
fn is_caught(mutant: &'static str, seeds: &[u64], by: By, death: Death) {
    for &seed in seeds {
        let fails = || catch_unwind(|| run(seed, by, death)).is_err();
        assert!(with_mutant(mutant, fails), "{mutant} was not caught");
    }
}

/// Defects that only about one of ten thousand seeds finds.
#[test]
#[cfg(debug_assertions)]
fn rare_defects_are_caught_by_their_seeds() {
    is_caught("page_list_believed_again", ERASED, By::Atomics, Death::Any);
    is_caught("page_seen_unchecked", TORN, By::Atomics, Death::OfTheSlow);
    is_caught("page_entry_replaced", REPLACED, By::Messages, Death::Any);
    is_caught("page_end_of_another_epoch", ENDED, By::Messages, Death::Any);
}

/// The directory and the death with which each mutant is found.
#[cfg(debug_assertions)]
const MUTANTS: [(&str, By, Death); 19] = [
    ("page_count_apart", By::Atomics, Death::None),
    ("page_install_blind", By::Atomics, Death::None),
    ("page_listed_late", By::Atomics, Death::None),
    ("page_drain_skipped", By::Atomics, Death::None),
    ("page_left_unmarked", By::Atomics, Death::None),
    ("page_marked_late", By::Atomics, Death::None),
    ("page_header_unread", By::Atomics, Death::None),
    ("page_epoch_unread", By::Atomics, Death::None),
    ("page_takeover_believes_list", By::Atomics, Death::Any),
    ("page_write_uncounted", By::Messages, Death::None),
    ("page_stop_forgotten", By::Messages, Death::None),
    ("page_stopped_early", By::Messages, Death::None),
    ("page_freed_early", By::Messages, Death::None),
    ("page_told_unlisted", By::Messages, Death::None),
    ("page_readers_unlisted", By::Messages, Death::None),
    ("page_told_while_moving", By::Messages, Death::None),
    ("page_late_stop_believed", By::Messages, Death::Any),
    ("page_used_unheard", By::Messages, Death::Any),
    ("page_sweep_ends_at_the_dead", By::Atomics, Death::Any),
];
/// The seeds that every commit tries anew.
const SEEDS: Seeds = Seeds::new(1_000);
/// Seeds by which a completed update was rolled back: its mover had sent the home the message of
/// the page's arrival, used the page at once, and died before the message arrived.
const ROLLED_BACK: &[u64] = &[
    0x192e, 0xf44e4, 0xf54e2, 0xf696c, 0xf6ec9, 0xf7591, 0xf7617, 0xf761d, 0xf770a, 0xf7df1,
    0xf84af,
];
/// Seeds by which a list of holders was emptied by a mover that had died, when others had been
/// entered in it since.
const ERASED: &[u64] = &[0x4ea6aa6d0c229];
/// Seeds by which a rank's cached entry was replaced by a later one of the same place, because the
/// page had stayed there when its mover died, and accesses by the first entry never ended.
const REPLACED: &[u64] = &[0x12450, 0x16734, 0x8094bf0b150e2];
/// Seeds by which a frame was freed under a read, because the end of reads that a dead mover had
/// stopped was taken for the end of reads that the next mover had stopped.
const ENDED: &[u64] = &[0x3d6a];
/// Seeds by which a page was read at the place of a torn cached entry of two pages, and came to
/// that place meanwhile.
const TORN: &[u64] = &[0x4ea6aa6d08feb];
/// A rare defect takes some thousands of seeds.
#[cfg(debug_assertions)]
const DEFECT_SEEDS: u64 = 20_000;
const STEPS: u32 = 12;
/// A ULT that has not ended by then never does.
const END_NS: u64 = 1_000_000_000;
