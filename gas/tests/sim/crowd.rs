//! More tables are wanted than there is room for.

use super::rank::{Party, Room, Sizes};
use super::*;
use tsumugi_core::mem::Need;
use tsumugi_core::op::Kind;
use tsumugi_core::sim::Net;
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::machine::Out;
use tsumugi_gas::order::After;
use tsumugi_gas::request::Word;

const RANKS: u32 = 8;
const STEPS: u32 = 20_000;

/// One set of four slots, three of which are held by accesses that go on only
/// when the rest has ended, and many words of the other ranks.
fn one_slot_for_all() {
    let net = Net::new(Config::calm(RANKS, 0));
    let mut sizes = Sizes::new(RANKS);
    sizes.shape.copies = 4;
    let mut rooms: Vec<Room> = (0..RANKS).map(|_| Room::new(&sizes)).collect();
    let mut parties: Vec<Party<'_>> = rooms
        .iter_mut()
        .enumerate()
        .map(|(rank, room)| Party::new(&net, rank as u32, &sizes, room))
        .collect();
    let words: Vec<GlobalAddr> = parties.iter_mut().map(|party| party.open(8).1).collect();
    let add = |rank: usize| Word::atomic(Kind::FetchAdd, words[rank], 1u64);
    let mut steps = 0;
    let mut settle = |parties: &mut [Party<'_>]| {
        while let Some((rank, event)) = net.step() {
            parties[rank.0 as usize].on_event(event);
            steps += 1;
            assert!(steps < STEPS, "no end: {:?}", parties[0].machine);
        }
    };
    let cache = parties[0].machine.cache();
    for (rank, &word) in words.iter().enumerate().take(4).skip(1) {
        assert!(parties[0].machine.want(word).is_ok());
        parties[0].pump();
        settle(&mut parties);
        // Two by operations in flight, one by a worker.
        match rank {
            3 => assert!(cache.hold(0, word, 8, Need::Read).is_ok()),
            _ => assert!(cache.pin(word, 8, Need::Read).is_ok()),
        }
    }
    for _ in 0..3 {
        for rank in 4..RANKS as usize {
            parties[0].machine.try_issue(add(rank).into(), After::Nothing).unwrap();
        }
    }
    parties[0].pump();
    settle(&mut parties);
    let ended = parties[0].outs.iter().filter(|out| matches!(out, Out::Ended { .. })).count();
    assert_eq!(ended, 3 * (RANKS as usize - 4));
}

#[test]
fn tables_that_share_a_slot_let_each_other_be_used() {
    one_slot_for_all();
}

#[test]
#[cfg(debug_assertions)]
fn tables_that_chase_each_other_are_caught() {
    let run = || std::panic::catch_unwind(one_slot_for_all);
    let caught = tsumugi_core::sync::with_mutant("gas_tables_chase_each_other", run);
    assert!(caught.is_err(), "the mutant was not caught");
}
