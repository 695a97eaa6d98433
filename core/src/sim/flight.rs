//! The operations in flight, and the calendar of events.

use crate::mem::AddrError;
use crate::op::Op;
use crate::random::SplitMix64;
use crate::time::Instant;
use alloc::collections::{BTreeSet, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Ordering;

/// One operation in flight.
pub(super) struct FlightState {
    pub(super) op: Op,
    pub(super) queue: u32,
    /// The number of its messages that were lost.
    pub(super) lost: u32,
    /// Whether the operation completes before it lands.
    pub(super) early: bool,
    /// Whether its completion has been delivered.
    pub(super) has_ended: bool,
    /// If links keep order: its place in the order, until it has taken effect.
    pub(super) turn: Option<u64>,
    /// If it has landed in part: the place where it was split, and whether the rest
    /// is the front.
    pub(super) torn: Option<(u64, bool)>,
    pub(super) result: Result<u64, AddrError>,
    /// The bytes that a get has read, or that a put which completed early must still
    /// write.
    pub(super) payload: Vec<u8>,
    /// The operation's own random numbers, so that a fault of one operation changes
    /// only the times of the others.
    pub(super) draw: SplitMix64,
    /// The number of operations that were posted before it.
    pub(super) number: u64,
    /// The number of faults that have struck it, or that would have if they had not
    /// been left out.
    pub(super) struck: u64,
}

/// Flights by number. A free slot keeps its payload's memory for the next flight.
#[derive(Default)]
pub(super) struct Flights {
    slots: Vec<FlightState>,
    free: Vec<u32>,
    posted: u64,
}

/// The kinds of entries in the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DueAction {
    /// A flight completes although it has not landed.
    Local,
    /// A flight reaches its target.
    Arrive,
    /// A flight that waited for an engine has its turn.
    Serve,
    /// The rest of a torn put reaches its target.
    Rest,
    /// The answer reaches the node that posted the flight.
    Return,
    /// The transport gives a flight up.
    Fail,
    /// A completion comes a second time.
    Repeat,
    /// A timer of a node.
    Timer,
    /// A node learns of a death, or has given another node up.
    Death,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct CalendarEntry {
    pub(super) at: u64,
    /// Of two entries for the same time, the one made first comes first.
    sequence: u64,
    /// A flight's number, a timer's token or a rank.
    pub(super) data: u64,
    /// The node to which a timer or a notice of a death belongs.
    pub(super) node: u32,
    pub(super) due: DueAction,
}

/// The entries that are due, by time and then by the order in which they were made.
pub(super) struct Calendar {
    heap: BinaryHeap<CalendarEntry>,
    sequence: u64,
    now: u64,
}

impl Flights {
    pub(super) fn add(&mut self, op: Op, queue: u32, draw: SplitMix64) -> u64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(FlightState {
                op,
                queue,
                lost: 0,
                early: false,
                has_ended: false,
                turn: None,
                torn: None,
                result: Ok(0),
                payload: Vec::new(),
                draw: SplitMix64::new(0),
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

    pub(super) fn get(&mut self, slot: u64) -> &mut FlightState {
        &mut self.slots[slot as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The numbers of the present flights. O(n log n) of the greatest number of
    /// flights that there ever were at a time.
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

    pub(super) fn add(&mut self, at: u64, due: DueAction, node: u32, data: u64) {
        self.heap.push(CalendarEntry {
            at: at.max(self.now),
            sequence: self.sequence,
            data,
            node,
            due,
        });
        self.sequence += 1;
    }

    /// Moves time to the next entry and takes it.
    pub(super) fn next(&mut self) -> Option<CalendarEntry> {
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

impl Ord for CalendarEntry {
    /// The earliest entry is the greatest, because the heap returns the greatest
    /// first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for CalendarEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

const _: () = assert!(size_of::<CalendarEntry>() == 32);
