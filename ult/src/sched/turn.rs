//! A worker's turn: what is left until its next fair turn, and what it counts at
//! every switch. Both are in one word, which only this worker writes.
//!
//! ```text
//!   63           23 22     16 15      9    8      7      0
//!  ┌───────────────┬─────────┬─────────┬────────┬────────┐
//!  │ wakes         │ parks   │ yields  │ inside │ left   │
//!  └───────────────┴─────────┴─────────┴────────┴────────┘
//! ```
//!
//! A ULT that switches directly to the next one, see `worker::pass`, takes a part
//! of what is left until the next fair turn, and is counted. A ULT that parks or
//! unparks another enters the park words' [`Bias`](crate::bias::Bias) and leaves
//! it. All of that takes two stores to this word, and one for a yield. That
//! matters because a processor's store buffer has few entries, and a switch
//! consists of little else than stores.
//!
//! The hub adds the counts to the worker's counters whenever it runs, and other
//! threads see them that late. The hub runs at least once a turn, so yields and
//! parks are small numbers here. Wakes need no switch, so their field has room
//! for hours of them.
//!
//! Progress: wait-free.

use crate::bias::InsideMark;
use tsumugi_core::stats::{Counter, Counters};
#[cfg(tsumugi_loom)]
use tsumugi_core::sync::AtomicBool;
use tsumugi_core::sync::Ordering;
use tsumugi_core::sync::shown::AtomicU64;

/// One worker's turn. Written by the worker.
pub(crate) struct WorkerTurn {
    word: AtomicU64,
    /// The bit of the word that other threads read. In the model it is a word of
    /// its own, so that the model explores no more than this.
    #[cfg(tsumugi_loom)]
    inside: AtomicBool,
}

/// What is left of a turn, and what was counted in it.
#[derive(Clone, Copy)]
pub(crate) struct Spent(u64);

impl WorkerTurn {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(FAIR_TURN),
            #[cfg(tsumugi_loom)]
            inside: AtomicBool::new(false),
        }
    }

    /// Returns the word. Called by the worker, outside of the bias.
    #[inline(always)]
    pub(crate) fn get(&self) -> Spent {
        Spent(self.word.load(Ordering::Relaxed))
    }

    /// Stores `spent` as the word.
    #[inline(always)]
    pub(crate) fn set(&self, spent: Spent) {
        self.word.store(spent.0, Ordering::Relaxed);
    }

    /// Enters the bias, in which the worker must not be. The word is `spent` with
    /// the `inside` bit meanwhile.
    #[inline(always)]
    pub(crate) fn go_in_with(&self, spent: Spent) {
        debug_assert!(spent.0 & INSIDE == 0, "gone in twice");
        // An addition takes one instruction less than an `or` into another register.
        self.word.store(spent.0 + INSIDE, Ordering::Relaxed);
        #[cfg(tsumugi_loom)]
        self.inside.store(true, Ordering::Relaxed);
    }

    /// Leaves the bias, and stores `spent` as the word.
    #[inline(always)]
    pub(crate) fn leave_with(&self, spent: Spent) {
        // Release: pairs with the Acquire in `has_owner`.
        self.word.store(spent.0, Ordering::Release);
        #[cfg(tsumugi_loom)]
        self.inside.store(false, Ordering::Release);
    }

    /// Adds what was counted to `counters`, where other threads see it. Called by
    /// the worker.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell(&self, counters: &Counters) {
        let spent = self.get();
        // In the model, where it would only cost time, nothing is added.
        if cfg!(not(tsumugi_loom)) {
            counters.add(Counter::Yields, (spent.0 / YIELD) & COUNT);
            counters.add(Counter::Parks, (spent.0 / PARK) & COUNT);
            counters.add(Counter::Wakes, spent.0 / WAKE);
        }
        self.set(Spent(spent.0 & (YIELD - 1)));
    }
}

impl InsideMark for WorkerTurn {
    #[inline(always)]
    fn go_in(&self) {
        self.go_in_with(self.get());
    }

    #[inline(always)]
    fn leave(&self) {
        self.leave_with(Spent(self.word.load(Ordering::Relaxed) & !INSIDE));
    }

    #[inline(always)]
    fn has_owner(&self) -> bool {
        // Acquire: pairs with the Release in `leave_with`.
        #[cfg(tsumugi_loom)]
        return self.inside.load(Ordering::Acquire);
        #[cfg(not(tsumugi_loom))]
        return self.word.load(Ordering::Acquire) & INSIDE != 0;
    }
}

impl Spent {
    /// Whether more than `cost` is left.
    #[inline(always)]
    pub(crate) fn leaves(self, cost: u64) -> bool {
        self.0 & LEFT > cost
    }

    /// Whether the word has counts that are not in the counters yet.
    #[inline(always)]
    pub(crate) fn has_counted(self) -> bool {
        self.0 >= YIELD
    }

    /// The word after `cost` was taken from the turn.
    #[inline(always)]
    pub(crate) fn less(self, cost: u64) -> Self {
        Self(self.0 - cost)
    }

    /// The word after a yield.
    #[inline(always)]
    pub(crate) fn yielded(self) -> Self {
        Self(self.0 + (YIELD - SWITCH))
    }

    /// The word after a park.
    #[inline(always)]
    pub(crate) fn parked(self) -> Self {
        Self(self.0 + (PARK - SWITCH))
    }

    /// The word after a wake.
    #[inline(always)]
    pub(crate) fn woke(self) -> Self {
        Self(self.0 + WAKE)
    }

    /// The word at the beginning of the next turn.
    #[inline(always)]
    pub(crate) fn anew(self) -> Self {
        Self(self.0 & !LEFT | FAIR_TURN)
    }
}

/// What a switch takes from a turn.
pub(crate) const SWITCH: u64 = 4;
/// What a ULT that runs in the place of its joiner takes from a turn.
pub(crate) const CALL: u64 = 1;
/// The length of a turn, that is the distance between two fair turns: 61
/// switches, or four times as many ULTs that ran in the place of their joiners.
/// In the model it is so short that each path has several fair turns.
const FAIR_TURN: u64 = if cfg!(tsumugi_loom) { 3 * SWITCH } else { 61 * SWITCH };
const LEFT: u64 = 0xff;
const INSIDE: u64 = 1 << 8;
const YIELD: u64 = 1 << 9;
const PARK: u64 = 1 << 16;
const WAKE: u64 = 1 << 23;
const COUNT: u64 = 0x7f;
const _: () = assert!(FAIR_TURN <= LEFT && FAIR_TURN / SWITCH <= COUNT);

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_event_of_a_turn_is_counted_separately() {
        let (turn, counters) = (WorkerTurn::new(), Counters::new());
        let mut spent = turn.get();
        let mut switches = 0;
        while spent.leaves(SWITCH) {
            spent = if switches % 2 == 0 { spent.yielded() } else { spent.parked() };
            switches += 1;
        }
        assert_eq!(switches, 60);
        turn.go_in();
        assert!(turn.has_owner());
        turn.leave_with(spent.woke().woke().anew());
        assert!(!turn.has_owner() && turn.get().leaves(FAIR_TURN - 1));
        turn.tell(&counters);
        let counts = counters.snapshot();
        assert_eq!(counts[Counter::Yields], 30);
        assert_eq!(counts[Counter::Parks], 30);
        assert_eq!(counts[Counter::Wakes], 2);
        assert!(!turn.get().has_counted());
    }

    #[test]
    fn many_wakes_are_added_to_the_counters() {
        let (turn, counters) = (WorkerTurn::new(), Counters::new());
        for _ in 0..100_000 {
            turn.set(turn.get().woke());
        }
        turn.tell(&counters);
        assert_eq!(counters.snapshot()[Counter::Wakes], 100_000);
        assert_eq!(counters.snapshot()[Counter::Yields], 0);
    }
}
