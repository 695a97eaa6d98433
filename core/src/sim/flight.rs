//! The operations under way, and the times at which something happens.

use crate::backend::Draw;
use crate::mem::AddrError;
use crate::op::Op;
use crate::time::Instant;
use alloc::collections::{BTreeSet, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Ordering;

/// One operation under way.
pub(super) struct Flight {
    pub(super) op: Op,
    pub(super) queue: u32,
    /// Messages of it that were lost.
    pub(super) lost: u32,
    /// Whether it has completed, or is about to, before it lands.
    pub(super) early: bool,
    /// Whether its completion has been told.
    pub(super) has_ended: bool,
    /// Where order is kept: its place in it, until it has taken effect.
    pub(super) turn: Option<u64>,
    /// Landed in part: where the rest begins, and whether the rest is the
    /// front.
    pub(super) torn: Option<(u64, bool)>,
    pub(super) result: Result<u64, AddrError>,
    /// What a get brings, or what a put that completed early still has to.
    pub(super) payload: Vec<u8>,
    /// What becomes of it: of its own, so that what strikes one changes
    /// nothing for the others but the time.
    pub(super) draw: Draw,
    /// How many were posted before it.
    pub(super) number: u64,
    /// How many faults have struck it, or would have.
    pub(super) struck: u64,
}

/// Flights by number. A slot keeps its payload's memory for the next.
#[derive(Default)]
pub(super) struct Flights {
    slots: Vec<Flight>,
    free: Vec<u32>,
    posted: u64,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A flight completes although it has not landed.
    Local,
    /// A flight reaches its target.
    Arrive,
    /// It has waited there for its turn.
    Serve,
    /// What is left of a torn one does.
    Rest,
    /// The answer reaches the node that posted it.
    Return,
    /// The transport gives a flight up.
    Fail,
    /// A completion comes a second time.
    Repeat,
    /// A node asked to be woken.
    Timer,
    /// A node learns of a death, or has given another node up.
    Death,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) at: u64,
    /// Of two entries of the same time, the one made first is first.
    sequence: u64,
    /// A flight's number, a timer's token or a rank.
    pub(super) data: u64,
    /// Timers and deaths: whose.
    pub(super) node: u32,
    pub(super) due: Due,
}

/// What is due, by time and then by the order in which it was decided.
pub(super) struct Calendar {
    heap: BinaryHeap<Entry>,
    sequence: u64,
    now: u64,
}

impl Flights {
    pub(super) fn add(&mut self, op: Op, queue: u32, draw: Draw) -> u64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Flight {
                op,
                queue,
                lost: 0,
                early: false,
                has_ended: false,
                turn: None,
                torn: None,
                result: Ok(0),
                payload: Vec::new(),
                draw: Draw::new(0),
                number: 0,
                struck: 0,
            });
            self.slots.len() as u32 - 1
        });
        let flight = &mut self.slots[slot as usize];
        (flight.op, flight.queue, flight.lost) = (op, queue, 0);
        (flight.early, flight.turn, flight.torn, flight.result) = (false, None, None, Ok(0));
        flight.has_ended = false;
        (flight.draw, flight.number, flight.struck) = (draw, self.posted, 0);
        self.posted += 1;
        u64::from(slot)
    }

    pub(super) fn remove(&mut self, slot: u64) {
        self.free.push(slot as u32);
    }

    pub(super) fn get(&mut self, slot: u64) -> &mut Flight {
        &mut self.slots[slot as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Those under way. O(n log n) of all that ever were at a time.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        (0..self.slots.len() as u32).filter(move |slot| !free.contains(slot)).map(u64::from)
    }
}

impl Calendar {
    pub(super) const fn new() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0, now: 0 }
    }

    pub(super) const fn now(&self) -> Instant {
        Instant::from_ns(self.now)
    }

    pub(super) const fn now_ns(&self) -> u64 {
        self.now
    }

    pub(super) fn add(&mut self, at: u64, due: Due, node: u32, data: u64) {
        self.heap.push(Entry { at: at.max(self.now), sequence: self.sequence, data, node, due });
        self.sequence += 1;
    }

    /// Moves time to the next entry and takes it.
    pub(super) fn next(&mut self) -> Option<Entry> {
        let entry = self.heap.pop()?;
        self.now = entry.at;
        Some(entry)
    }

    /// When the next entry is due.
    pub(super) fn peek(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| Instant::from_ns(entry.at))
    }

    /// Moves time on; not past the next entry.
    pub(super) fn advance(&mut self, to: Instant) {
        let limit = self.heap.peek().map_or(u64::MAX, |entry| entry.at);
        self.now = self.now.max(to.as_ns().min(limit));
    }
}

impl Ord for Entry {
    /// The earliest is the greatest: the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

const _: () = assert!(size_of::<Entry>() == 32);
