//! More tables are needed than there is room for.

use super::rank::{Party, Room, Sizes};
use super::*;
use tsumugi_core::mem::Need;
use tsumugi_core::op::Kind;
use tsumugi_core::sim::Net;
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::machine::MachineOutput;
use tsumugi_gas::order::After;
use tsumugi_gas::request::{Copy, GlobalRequest, WordRequest};

const RANKS: u32 = 8;
const STEPS: u32 = 20_000;

/// One set of four slots, `held` of which are held by accesses that end only after all others, and
/// `requests` on words of the other ranks.
fn few_slots_for_all(
    held: usize,
    near: bool,
    requests: impl Fn(&[GlobalAddr]) -> Vec<GlobalRequest>,
) {
    let net = Net::new(SimConfig::calm(RANKS, 0));
    let mut sizes = Sizes { near, ..Sizes::new(RANKS) };
    sizes.shape.copies = 4;
    let mut rooms: Vec<Room> = (0..RANKS).map(|_| Room::new(&sizes)).collect();
    let mut parties: Vec<Party<'_>> = rooms
        .iter_mut()
        .enumerate()
        .map(|(rank, room)| Party::new(&net, rank as u32, &sizes, room))
        .collect();
    let words: Vec<GlobalAddr> = parties.iter_mut().map(|party| party.open(8).1).collect();
    let mut steps = 0;
    let mut settle = |parties: &mut [Party<'_>]| {
        while let Some((rank, event)) = net.step() {
            parties[rank.0 as usize].on_event(event);
            steps += 1;
            assert!(steps < STEPS, "no end: {:?}", parties[0].machine);
        }
    };
    let cache = parties[0].machine.cache();
    for (rank, &word) in words.iter().enumerate().take(1 + held).skip(1) {
        assert!(parties[0].machine.want(word).is_ok());
        parties[0].pump();
        settle(&mut parties);
        // A worker holds one slot, operations in flight the others.
        match rank {
            1 => assert!(cache.hold::<0>(0, word, 8, Need::Read).is_ok()),
            _ => assert!(cache.pin(word, 8, Need::Read).is_ok()),
        }
    }
    let requests = requests(&words[1 + held..]);
    for request in &requests {
        parties[0].machine.try_issue(*request, After::Nothing).unwrap();
    }
    parties[0].pump();
    settle(&mut parties);
    let ends = parties[0].outs.iter().filter_map(|out| match out {
        MachineOutput::Ended { result, .. } => Some(result.is_ok()),
        _ => None,
    });
    assert_eq!(ends.filter(|is_well| *is_well).count(), requests.len());
}

/// Requests on a word of each rank, three times each, with one slot.
fn one_slot_for_all() {
    few_slots_for_all(3, false, |words| {
        let add = |word: &GlobalAddr| WordRequest::atomic(Kind::FetchAdd, *word, 1u64).into();
        words.repeat(3).iter().map(add).collect()
    });
}

/// Copies that need two tables each, with two slots.
#[test]
fn the_tables_of_one_copy_do_not_evict_each_other() {
    few_slots_for_all(2, true, |words| {
        let pairs = words.iter().zip(words.iter().cycle().skip(1));
        let copies = pairs.map(|(&dst, &src)| GlobalRequest::from(Copy::new(dst, src, 8)));
        copies.collect::<Vec<_>>().repeat(3)
    });
}

#[test]
fn tables_that_share_a_slot_are_used_in_turn() {
    one_slot_for_all();
}

#[test]
#[cfg(debug_assertions)]
fn tables_that_evict_each_other_for_ever_are_caught() {
    let run = || std::panic::catch_unwind(one_slot_for_all);
    let caught = tsumugi_core::sync::with_mutant("gas_tables_chase_each_other", run);
    assert!(caught.is_err(), "the mutant was not caught");
}
