//! The barrier of ranks that share memory: of one node.
//!
//! A tree of counters, each on a line of its own. Whoever arrives last at one
//! arrives at the next; whoever arrives last at the topmost has everybody go
//! on, down the same way. All else look at the counter at which they arrived,
//! for a while, and then sleep: so each rank sleeps once at most, and nobody is
//! woken before all have come.
//!
//! ```text
//!                  top                  a counter:
//!             ┌─────┴─────┐               63 .. 16  arrivals, ever
//!          0 .. 15     16 .. 31           15 .. 0   who sleeps, a bit a seat
//! ```
//!
//! A counter that is not the topmost gets one arrival more in each round, from
//! above, and only then do those who wait there go on. It is never reset: a
//! round is over when its count is reached, and counts wrap.
//!
//! A sleeper's bit and the arrivals are one word. So the last to arrive sees
//! the bit, or the sleeper, which looks once more after it has set it, sees the
//! last arrival; and only those who sleep are told. The bit is taken back by
//! its owner alone, before it arrives again: whoever has told it to go on may
//! be a round behind by then.
//!
//! Of two ranks the later one of a round goes on at once and comes first in the
//! next: a round takes one trip of a line between the two.
//!
//! Progress: blocking; one atomic operation a round each, and two more of who
//! sleeps.

use crate::mem::{AddrError, Rank};
use crate::sync::{AtomicU64, Ordering, mutant};

/// The ranks of a node, as one of them sees them.
#[derive(Clone, Copy, Debug)]
pub struct Circle {
    place: u32,
    size: u32,
}

/// What a circle needs of the node whose ranks it joins.
pub trait Hall {
    /// One of the [`WORDS`](Circle::WORDS) words that the rank of this place
    /// gives; zero at first.
    fn word(&self, place: u32, word: usize) -> &AtomicU64;

    /// Looks at a word, for a while, until it has reached `until` as a count
    /// that wraps. Whether it has, by a load of Acquire.
    fn look(&self, word: &AtomicU64, until: u64) -> bool;

    /// Sleeps until it has.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: a rank has died.
    fn sleep(&self, word: &AtomicU64, until: u64) -> Result<(), AddrError>;

    /// Wakes the rank of this place, if it sleeps for a count that the word has
    /// reached by a sequentially consistent operation.
    fn wake(&self, place: u32, word: &AtomicU64);

    /// A rank that has died, if one has.
    fn lost(&self) -> Option<Rank>;
}

/// A counter in one round, for one who arrives there.
#[derive(Clone, Copy)]
struct Counter {
    /// Who gives its words, and the first of them.
    home: u32,
    word: usize,
    seat: u32,
    /// The count when all from below have come.
    full: u64,
    /// And when those who wait here go on.
    whole: u64,
}

impl Circle {
    /// Words that every rank of the node gives, each level's counter on a line
    /// of its own if the first is.
    pub const WORDS: usize = LEVEL * LEVELS;

    /// The rank of this place, of so many.
    pub const fn new(place: u32, size: u32) -> Self {
        Self { place, size }
    }

    /// Waits until all have come to this round, which count from 1. After an
    /// error there is no further round.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: a rank has died.
    #[inline]
    pub fn meet(&self, round: u64, hall: &impl Hall) -> Result<(), AddrError> {
        if let Some(rank) = hall.lost() {
            return Err(AddrError::PeerLost { rank });
        }
        let mut level = 0;
        loop {
            let counter = self.counter(level, round);
            let count = counter.arrive(hall);
            if count == counter.whole {
                break;
            }
            if count != counter.full {
                self.wait(&counter, hall)?;
                break;
            }
            level += 1;
        }
        while level > 0 {
            level -= 1;
            self.counter(level, round).arrive(hall);
        }
        Ok(())
    }

    /// Waits until the round is over for those who have arrived here.
    fn wait(&self, counter: &Counter, hall: &impl Hall) -> Result<(), AddrError> {
        let count = hall.word(counter.home, counter.word);
        let until = if mutant("circle_group_is_all") { counter.full } else { counter.whole };
        if hall.look(count, until) {
            return Ok(());
        }
        let place = hall.word(counter.home, counter.word + LINE + counter.seat as usize);
        let bit = 1 << counter.seat;
        // Relaxed: the bit publishes it.
        let leave = || place.store(u64::from(self.place), Ordering::Relaxed);
        let is_late = mutant("circle_place_late");
        if !is_late {
            leave();
        }
        // SeqCst: before the look before the sleep; Release for the place, which
        // pairs with `arrive`.
        count.fetch_or(bit, Ordering::SeqCst);
        if is_late {
            leave();
        }
        let slept = hall.sleep(count, until);
        // Relaxed: it is told apart by the next arrival, of the same word.
        count.fetch_and(!bit, Ordering::Relaxed);
        slept
    }

    /// The counter at which whoever comes from this rank's part of the tree
    /// arrives, so many levels up.
    #[inline(always)]
    fn counter(&self, level: usize, round: u64) -> Counter {
        let (mut arrives, mut all, mut home) = (self.place, self.size, 1);
        for _ in 0..level {
            (arrives, all, home) = (arrives / FAN, all.div_ceil(FAN), home * FAN);
        }
        let first = arrives - arrives % FAN;
        let below = (all - first).min(FAN);
        let above = u64::from(all > FAN);
        let whole = round.wrapping_mul((u64::from(below) + above) * ARRIVAL);
        Counter {
            home: first * home,
            word: level * LEVEL,
            seat: arrives - first,
            full: whole.wrapping_sub(above * ARRIVAL),
            whole,
        }
    }
}

impl Counter {
    /// One arrival more; the count that it made. If those who wait may go on
    /// by it, wakes who sleeps.
    #[inline(always)]
    fn arrive(&self, hall: &impl Hall) -> u64 {
        let word = hall.word(self.home, self.word);
        // SeqCst: after all that the rank has done, and before the look at who
        // sleeps, whose place comes with its bit. Whoever sees the count in
        // `Hall::look`, or arrives later, sees what was done before.
        let order = if mutant("circle_unordered") { Ordering::Relaxed } else { Ordering::SeqCst };
        let was = word.fetch_add(ARRIVAL, order);
        let count = (was & !SEATS).wrapping_add(ARRIVAL);
        if count == self.whole && was & SEATS != 0 {
            self.wake(was & SEATS, hall);
        }
        count
    }

    #[cold]
    fn wake(&self, asleep: u64, hall: &impl Hall) {
        let word = hall.word(self.home, self.word);
        let mut rest = asleep;
        while rest != 0 {
            let seat = rest.trailing_zeros() as usize;
            // Relaxed: published by the bit, and left as it is until the
            // sleeper has gone on.
            let place = hall.word(self.home, self.word + LINE + seat).load(Ordering::Relaxed);
            hall.wake(place as u32, word);
            rest &= rest - 1;
        }
        if mutant("circle_clears_bits") {
            word.fetch_and(!asleep, Ordering::SeqCst);
        }
    }
}

/// Ranks, or counters, that arrive at one counter.
const FAN: u32 = if cfg!(tsumugi_loom) { 2 } else { 16 };
/// Of all that a `u32` can number.
const LEVELS: usize = 8;
/// Words of a line, or of two that come together.
const LINE: usize = 16;
/// Words of a counter: its count, and who sleeps.
const LEVEL: usize = 2 * LINE;
const SEATS: u64 = ARRIVAL - 1;
const ARRIVAL: u64 = 1 << 16;

const _: () = assert!(FAN as usize <= LINE && 1 << FAN <= ARRIVAL);
