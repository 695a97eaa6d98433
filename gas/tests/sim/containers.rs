//! Containers of several ranks, each used by several programs, on networks with all faults; and
//! with a rank that dies while it holds locks.

use super::desk::{Desk, NODES, PendingOp, View, run_jobs};
use super::rank::{Party, Room, Sizes};
use super::*;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sim::{Net, check};
use tsumugi_gas::container::{
    ContainerError, Data, Deque, Keyed, List, Map, Multiset, Reach, Set, Store, Vector,
};
use tsumugi_gas::lock::NodeSlot;

/// The containers of a run.
#[derive(Clone, Copy)]
struct All {
    vector: Vector,
    deque: Deque,
    lists: [List; 2],
    set: Set,
    counts: Multiset,
    map: Map,
    /// A container that only programs of living ranks use.
    apart: Vector,
}

fn make(view: &View, ranks: u32) -> All {
    // No container is on the last rank, which may die.
    let last = Rank((ranks - 1).saturating_sub(1));
    let homes: Vec<Rank> = (0..=last.0).map(Rank).collect();
    All {
        vector: Vector::create(view, 0, Rank(0)).unwrap(),
        deque: Deque::create(view, 0, last).unwrap(),
        lists: [Rank(0), last].map(|rank| List::create(view, rank).unwrap()),
        set: Set::create(view, &homes, 2, Rank(0)).unwrap(),
        counts: Multiset::create(view, &homes, 1, last).unwrap(),
        map: Map::create(view, &homes, 1, Rank(0)).unwrap(),
        apart: Vector::create(view, 0, Rank(0)).unwrap(),
    }
}

/// The calls of a client.
#[derive(Default)]
struct Tally {
    firsts: u64,
    counted: u64,
    pushed: u64,
    lost: u64,
}

/// Makes one random call and returns its outcome.
fn call(
    view: &View,
    all: &All,
    (client, step): (u64, u64),
    draw: &mut Seeded,
    tally: &mut Tally,
) -> Result<(), ContainerError> {
    let record = (client << 32 | step).to_le_bytes();
    let key = draw.below(4).to_le_bytes();
    match draw.below(8) {
        0 | 1 => {
            all.vector.push_back(view, Data::Here(&record))?;
            tally.pushed += 1;
        }
        2 => {
            all.deque.push_front(view, Data::Here(&record))?;
            all.deque.pop_back(view, 8)?;
        }
        3 => {
            all.lists[0].push_back(view, Data::Here(&record), Rank(0))?;
            tally.counted += 1;
        }
        4 => {
            let at = draw.below(2) as usize;
            all.lists[at].swap(view, all.lists[1 - at])?;
        }
        5 => tally.firsts += u64::from(all.set.insert(view, Data::Here(&key))?),
        6 => _ = all.counts.insert(view, Data::Here(&key))?,
        _ => {
            let value = [client as u8; 20];
            all.map.insert(view, Data::Here(&key), Data::Here(&value))?;
            let mut found = [0; 20];
            if all.map.get(view, Data::Here(&key), &mut found)?.is_some() {
                assert!(found.iter().all(|byte| *byte == found[0]), "a torn value: {found:?}");
            }
        }
    }
    Ok(())
}

fn run(seed: u64, mutant: Option<&'static str>, kill: bool) -> u64 {
    let mut draw = Seeded(seed);
    let ranks = 2 + draw.below(3) as u32;
    let (mut config, victim) = (config(ranks, seed), ranks - 1);
    if kill {
        config.detect_ns = [1_000, 1_000_000][draw.below(2) as usize];
    }
    let sizes = Sizes { keeps_order: !config.reorder, part_bytes_max: 4096, ..Sizes::new(ranks) };
    let net = Net::new(config);
    let mut rooms: Vec<Room> = (0..ranks).map(|_| Room::new(&sizes)).collect();
    let mut slots = vec![[NodeSlot::default(); NODES as usize]; ranks as usize];
    let mut desks: Vec<Desk<'_>> = rooms
        .iter_mut()
        .zip(&mut slots)
        .enumerate()
        .map(|(rank, (room, slots))| Desk::new(Party::new(&net, rank as u32, &sizes, room), slots))
        .collect();
    let live = Arc::new(AtomicI64::new(0));
    let made = Arc::new(Mutex::new(None));
    let told = made.clone();
    let first: PendingOp = Box::new(move |view| *told.lock().unwrap() = Some(make(view, ranks)));
    assert_eq!(run_jobs(&net, &mut desks, vec![(0, first)], None, None, &live), 0);
    let all: All = made.lock().unwrap().take().expect("the containers were made");

    let tallies: Arc<Mutex<Vec<Tally>>> = Arc::default();
    let jobs = (0..ranks * CLIENTS).map(|client| {
        let (rank, tallies) = (client % ranks, tallies.clone());
        let mut draw = Seeded(seed ^ u64::from(client + 1) << 40);
        let job: PendingOp = Box::new(move |view| {
            let mut tally = Tally::default();
            for step in 0..STEPS {
                let at = (u64::from(client), step);
                check_call(view, &all, at, &mut draw, &mut tally, kill.then_some(victim));
            }
            tallies.lock().unwrap().push(tally);
        });
        (rank, job)
    });
    let kill_at = kill.then(|| (draw.below(400_000), victim));
    let stuck = run_jobs(&net, &mut desks, jobs.collect(), mutant, kill_at, &live);
    assert_eq!(stuck, 0, "programs that have not ended");
    let lost = tallies.lock().unwrap().iter().map(|tally| tally.lost).sum();
    if !kill {
        let last: PendingOp = Box::new(move |view| check_end(view, &all, &tallies.lock().unwrap()));
        assert_eq!(run_jobs(&net, &mut desks, vec![(0, last)], None, None, &live), 0);
        assert_eq!(live.load(Ordering::Relaxed), 0, "blocks that are left");
    }
    lost
}

/// Checks a call; after a death the call may end with that error, and all later ones then do.
fn check_call(
    view: &View,
    all: &All,
    at: (u64, u64),
    draw: &mut Seeded,
    tally: &mut Tally,
    victim: Option<u32>,
) {
    let is_it = |error: ContainerError| {
        let lost = ContainerError::Access(AddrError::PeerLost { rank: Rank(victim.unwrap_or(99)) });
        assert_eq!(error, lost, "rank {}", view.rank());
    };
    if let Err(error) = call(view, all, at, draw, tally) {
        is_it(error);
        tally.lost += 1;
    }
    let Some(victim) = victim.filter(|victim| Rank(*victim) != view.rank()) else { return };
    // No part of `apart` is on the dead rank.
    all.apart.push_back(view, Data::Here(&[1])).unwrap();
    // A rank that knows that a lock is broken returns the error without a wait.
    if view.lost().is_some()
        && let Err(error) = all.vector.push_back(view, Data::Here(&[0; 8]))
    {
        is_it(error);
        let start = view.now();
        is_it(all.vector.push_back(view, Data::Here(&[0; 8])).map(drop).unwrap_err());
        let took = view.now() - start;
        assert!(took < SOON_NS, "rank {} waited {took} ns for {victim}", view.rank());
    }
}

/// Checks that the containers hold what all clients have done.
fn check_end(view: &View, all: &All, tallies: &[Tally]) {
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let size = all.vector.size(view).unwrap();
    assert_eq!(size, sum(|tally| tally.pushed) * 8);
    let mut bytes = vec![0; size as usize];
    all.vector.read(view, 0, &mut bytes).unwrap();
    let words = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    let mut last = [None; 64];
    for word in words {
        let (client, step) = ((word >> 32) as usize, word as u32);
        assert!(last[client] < Some(step), "client {client} pushed {step} before {last:?}");
        last[client] = Some(step);
    }
    let sizes = all.lists.map(|list| list.size(view).unwrap());
    assert_eq!(sizes[0] + sizes[1], sum(|tally| tally.counted));
    let size = all.set.size(view, Reach::All).unwrap();
    assert_eq!(size, sum(|tally| tally.firsts), "one insert of a key is the first");
    assert_eq!(all.deque.size(view).unwrap(), 0);
    all.lists.into_iter().for_each(|list| list.destroy(view).unwrap());
    all.vector.destroy(view).unwrap();
    all.apart.destroy(view).unwrap();
    all.deque.destroy(view).unwrap();
    all.set.destroy(view).unwrap();
    all.counts.destroy(view).unwrap();
    all.map.destroy(view).unwrap();
}

#[test]
fn many_programs_use_containers_at_once() {
    check(SEEDS, |seed| _ = run(seed, None, false));
}

#[test]
fn a_lock_of_a_dead_rank_names_it() {
    let mut lost = 0;
    let is_own = check(SEEDS.take(DEATHS), |seed| lost += run(seed, None, true));
    assert!(lost > 0 || !is_own, "no call ever met the death");
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_are_caught() {
    for (mutant, kill) in [
        ("container_always_shared", false),
        ("container_two_in_any_order", false),
        ("container_waits_for_the_dead", true),
        ("container_breaks_in_silence", true),
    ] {
        let seed = PLANTED
            .into_iter()
            .find(|&seed| std::panic::catch_unwind(|| run(seed, Some(mutant), kill)).is_err());
        let seed = seed.unwrap_or_else(|| panic!("the mutant {mutant} was not caught"));
        println!("{mutant}: seed {seed} catches it");
    }
}

const CLIENTS: u32 = 2;
const STEPS: u64 = 6;
/// The number of seeds with a death, which take long.
const DEATHS: u64 = 200;
/// Some trips of 0.2 ms each, which is the slowest.
const SOON_NS: u64 = 5_000_000;
