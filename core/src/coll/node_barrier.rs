//! The barrier of ranks that share memory, that is, of one node.
//!
//! It is a combining tree of counters, each on a cache line of its own. The last
//! rank to arrive at a counter arrives at the next counter up; the last rank at
//! the topmost counter releases all others, down the same way. Each other rank
//! spins for a while on the counter at which it arrived, and then sleeps: so a
//! rank sleeps once at most, and no rank is woken before all have arrived.
//!
//! ```text
//!                  top                  a counter:
//!             ┌─────┴─────┐               63 .. 16  arrivals, ever
//!          0 .. 15     16 .. 31           15 .. 0   sleepers, a bit a slot
//! ```
//!
//! A counter that is not the topmost gets one arrival more in each round, from
//! above, and only then may the ranks that wait there go on. A counter is never
//! reset: a round is over when its count is reached, and counts wrap.
//!
//! A sleeper's bit and the arrivals are in one word. So either the last rank to
//! arrive sees the bit, or the sleeper, which looks once more after it has set
//! the bit, sees the last arrival; and only ranks that sleep are notified. Only
//! the owner of a bit clears it, before it arrives again, because the rank that
//! woke the owner may be a round behind by then.
//!
//! Of two ranks, the rank that arrives last in a round goes on at once and
//! arrives first in the next round: so a round takes one trip of a line between
//! the two.
//!
//! Progress: blocking; one atomic operation for each rank and round, and two more
//! for a rank that sleeps.

use crate::mem::{AddrError, Rank};
use crate::mutate;
use crate::sync::{AtomicU64, Ordering};

/// The ranks of a node, as seen by one of them.
#[derive(Clone, Copy, Debug)]
pub struct NodeBarrier {
    place: u32,
    size: u32,
}

/// What a barrier needs from the node: the memory of the counters, and the sleep.
pub trait BarrierMemory {
    /// Returns one of the [`WORDS`](NodeBarrier::WORDS) words that the rank at `place`
    /// provides; zero at first.
    fn word(&self, place: u32, word: usize) -> &AtomicU64;

    /// Spins on a word, for a while, until it has reached `until` as a count that
    /// wraps. Returns whether it has, by a load with Acquire.
    fn look(&self, word: &AtomicU64, until: u64) -> bool;

    /// Sleeps until the word has reached `until`.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: a rank has died.
    fn sleep(&self, word: &AtomicU64, until: u64) -> Result<(), AddrError>;

    /// Wakes the rank at `place`, if it sleeps for a count that the word has
    /// reached by a sequentially consistent operation.
    fn wake(&self, place: u32, word: &AtomicU64);

    /// Returns a rank that has died, if there is one.
    fn lost(&self) -> Option<Rank>;
}

/// A counter in one round, as seen by a rank that arrives there.
#[derive(Clone, Copy)]
struct Counter {
    /// The rank that provides the counter's words, and the first of them.
    home: u32,
    word: usize,
    slot: u32,
    /// The count when all ranks from below have arrived.
    full: u64,
    /// The count at which the ranks that wait here go on.
    whole: u64,
}

impl NodeBarrier {
    /// Words that every rank of the node provides. Each level's counter is on a
    /// line of its own if the first word begins a line.
    pub const WORDS: usize = LEVEL * LEVELS;

    /// Makes the barrier of `size` ranks, for the rank at `place`.
    pub const fn new(place: u32, size: u32) -> Self {
        Self { place, size }
    }

    /// Waits until all ranks have arrived in this round; rounds count from 1.
    /// After an error there is no further round.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: a rank has died.
    #[inline]
    pub fn meet(&self, round: u64, memory: &impl BarrierMemory) -> Result<(), AddrError> {
        if let Some(rank) = memory.lost() {
            return Err(AddrError::PeerLost { rank });
        }
        let mut level = 0;
        loop {
            let counter = self.counter(level, round);
            let count = counter.arrive(memory);
            if count == counter.whole {
                break;
            }
            if count != counter.full {
                self.wait(&counter, memory)?;
                break;
            }
            level += 1;
        }
        while level > 0 {
            level -= 1;
            self.counter(level, round).arrive(memory);
        }
        Ok(())
    }

    /// Waits until the round is over for the ranks that have arrived at
    /// `counter`.
    fn wait(&self, counter: &Counter, memory: &impl BarrierMemory) -> Result<(), AddrError> {
        let count = memory.word(counter.home, counter.word);
        let until = mutate!("circle_group_is_all": counter.whole => counter.full);
        if memory.look(count, until) {
            return Ok(());
        }
        let place = memory.word(counter.home, counter.word + LINE + counter.slot as usize);
        let bit = 1 << counter.slot;
        // Relaxed: the `fetch_or` of the bit below publishes the place.
        let leave = || place.store(u64::from(self.place), Ordering::Relaxed);
        mutate!("circle_place_late": leave() => ());
        // SeqCst: before the last look, which `sleep` takes. Release for the
        // place: pairs with `arrive`.
        count.fetch_or(bit, Ordering::SeqCst);
        mutate!("circle_place_late": {} => leave());
        let slept = memory.sleep(count, until);
        // Relaxed: the next arrival, on the same word, orders it.
        count.fetch_and(!bit, Ordering::Relaxed);
        slept
    }

    /// Returns the counter at `level` at which this rank, or the rank that has
    /// come up from this rank's part of the tree, arrives.
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
            slot: arrives - first,
            full: whole.wrapping_sub(above * ARRIVAL),
            whole,
        }
    }
}

impl Counter {
    /// Adds one arrival and returns the count that it made. If the ranks that
    /// wait may go on with this count, wakes the sleepers.
    #[inline(always)]
    fn arrive(&self, memory: &impl BarrierMemory) -> u64 {
        let word = memory.word(self.home, self.word);
        // SeqCst: after all that the rank has done, and before it reads the
        // sleepers' bits; a bit publishes the place of its sleeper. A rank that
        // sees the count in `BarrierMemory::look`, or arrives later, sees what was done
        // before the arrival.
        let order = mutate!("circle_unordered": Ordering::SeqCst => Ordering::Relaxed);
        let was = word.fetch_add(ARRIVAL, order);
        let count = (was & !SLEEPERS).wrapping_add(ARRIVAL);
        if count == self.whole && was & SLEEPERS != 0 {
            self.wake(was & SLEEPERS, memory);
        }
        count
    }

    #[cold]
    fn wake(&self, asleep: u64, memory: &impl BarrierMemory) {
        let word = memory.word(self.home, self.word);
        let mut rest = asleep;
        while rest != 0 {
            let slot = rest.trailing_zeros() as usize;
            // Relaxed: the bit has published the place, and the sleeper does not
            // write it again before it has gone on.
            let place = memory.word(self.home, self.word + LINE + slot).load(Ordering::Relaxed);
            memory.wake(place as u32, word);
            rest &= rest - 1;
        }
        mutate!("circle_clears_bits": {} => _ = word.fetch_and(!asleep, Ordering::SeqCst));
    }
}

/// Ranks, or counters, that arrive at one counter.
const FAN: u32 = if cfg!(tsumugi_loom) { 2 } else { 16 };
/// Levels for as many ranks as a `u32` can number.
const LEVELS: usize = 8;
/// Words of a line, or of two that the prefetcher fetches together.
const LINE: usize = 16;
/// Words of a counter: its count, and the places of the sleepers.
const LEVEL: usize = 2 * LINE;
const SLEEPERS: u64 = ARRIVAL - 1;
const ARRIVAL: u64 = 1 << 16;

const _: () = assert!(FAN as usize <= LINE && 1 << FAN <= ARRIVAL);
