//! The barrier of ranks that share memory: no rank leaves before all have arrived, and no rank
//! misses its wake-up.

use crate::{Threads, check};
use loom::thread;
use std::sync::Arc;
use tsumugi_core::coll::{BarrierMemory, NodeBarrier};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::signal::{ParkingLot, Until, Waiters};
use tsumugi_core::sync::{AtomicU64, Ordering};

/// Ranks that share memory, each with a parking lot of its own.
struct Node {
    ranks: Vec<(ParkingLot, Waiters, Vec<AtomicU64>)>,
    /// The progress of each rank, by plain stores as far as order goes.
    done: Vec<AtomicU64>,
}

/// One of the ranks.
struct Place<'n> {
    node: &'n Node,
    place: u32,
}

impl Node {
    fn new(size: u32) -> Arc<Self> {
        let words = || (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let ranks = (0..size).map(|_| (ParkingLot::new(), Waiters::new(), words())).collect();
        Arc::new(Self { ranks, done: (0..size).map(|_| AtomicU64::new(0)).collect() })
    }

    /// Runs a rank: a step, a barrier, and so on.
    fn run(&self, place: u32, rounds: u64) {
        let barrier = NodeBarrier::new(place, self.ranks.len() as u32);
        for round in 1..=rounds {
            self.done[place as usize].store(round, Ordering::Relaxed);
            barrier.meet(round, &Place { node: self, place }).unwrap();
            let all = self.done.iter().all(|done| done.load(Ordering::Relaxed) >= round);
            assert!(all, "{place} left round {round} too early");
        }
    }
}

impl BarrierMemory for Place<'_> {
    fn word(&self, place: u32, word: usize) -> &AtomicU64 {
        &self.node.ranks[place as usize].2[slot(word)]
    }

    fn look(&self, word: &AtomicU64, until: u64) -> bool {
        Until::AtLeast(until).holds(word.load(Ordering::Acquire))
    }

    fn sleep(&self, word: &AtomicU64, until: u64) -> Result<(), AddrError> {
        let (parking_lot, waiters, _) = &self.node.ranks[self.place as usize];
        waiters.wait(parking_lot, word, Until::AtLeast(until), &Threads).map(drop)
    }

    fn wake(&self, place: u32, word: &AtomicU64) {
        let (parking_lot, waiters, _) = &self.node.ranks[place as usize];
        if parking_lot.announce(&raw const *word as u64) {
            waiters.drain(parking_lot);
        }
    }

    fn lost(&self) -> Option<Rank> {
        None
    }
}

/// The words that exist in a model: those of two levels, the counts, and the places of two.
fn slot(word: usize) -> usize {
    let (level, word) = (word / LEVEL, word % LEVEL);
    level * 3 + word.checked_sub(LEVEL / 2).map_or(0, |seat| seat + 1)
}

fn passes(size: u32, rounds: u64) {
    let node = Node::new(size);
    let others: Vec<_> = (1..size)
        .map(|place| {
            let node = node.clone();
            thread::spawn(move || node.run(place, rounds))
        })
        .collect();
    node.run(0, rounds);
    others.into_iter().for_each(|other| other.join().unwrap());
}

#[test]
fn two_ranks_meet_in_every_round() {
    check(&["circle_unordered", "circle_clears_bits"], || passes(2, 2));
}

#[test]
fn three_ranks_meet_on_two_levels() {
    check(&["circle_group_is_all", "circle_place_late"], || passes(3, 1));
}

const LEVEL: usize = 32;
const WORDS: usize = 6;
