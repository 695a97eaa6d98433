//! What a worker counts at every switch, in one word that it alone writes.
//!
//! ```text
//!   63           23 22     16 15      9    8      7      0
//!  ┌───────────────┬─────────┬─────────┬────────┬────────┐
//!  │ wakes         │ parks   │ yields  │ inside │ left   │
//!  └───────────────┴─────────┴─────────┴────────┴────────┘
//! ```
//!
//! A ULT that passes its place on, see `worker::pass`, spends a part of what is
//! left until the next fair turn, and is counted; one that parks or unparks goes
//! into the park words' [`Bias`](crate::bias::Bias) and out again. All of that
//! takes two stores here, and one for a yield: a processor has a place for so
//! many at a time, and a switch is made of little else.
//!
//! The counts go to the worker's counters whenever the hub comes by, and those
//! who look from elsewhere see them that late. It comes once a turn, so yields and
//! parks are small numbers here; wakes come without switches too, and have room
//! for hours of them.
//!
//! Progress: wait-free.

use crate::bias::Inside;
use tsumugi_core::stats::{Counter, Counters};
#[cfg(tsumugi_loom)]
use tsumugi_core::sync::AtomicBool;
use tsumugi_core::sync::Ordering;
use tsumugi_core::sync::shown::AtomicU64;

/// One worker's turn. Written by the worker.
pub(crate) struct Turn {
    word: AtomicU64,
    /// The part of the word that others go by: the model looks at no more.
    #[cfg(tsumugi_loom)]
    inside: AtomicBool,
}

/// What is left of a turn, and what was counted in it.
#[derive(Clone, Copy)]
pub(crate) struct Spent(u64);

impl Turn {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(FAIR_TURN),
            #[cfg(tsumugi_loom)]
            inside: AtomicBool::new(false),
        }
    }

    /// As it stands. By the worker, which is outside.
    #[inline(always)]
    pub(crate) fn get(&self) -> Spent {
        Spent(self.word.load(Ordering::Relaxed))
    }

    /// As it stands from now on.
    #[inline(always)]
    pub(crate) fn set(&self, spent: Spent) {
        self.word.store(spent.0, Ordering::Relaxed);
    }

    /// Goes inside, where it is not, and is as given meanwhile.
    #[inline(always)]
    pub(crate) fn go_in_with(&self, spent: Spent) {
        debug_assert!(spent.0 & INSIDE == 0, "gone in twice");
        // An addition takes an instruction less than an `or` to another place.
        self.word.store(spent.0 + INSIDE, Ordering::Relaxed);
        #[cfg(tsumugi_loom)]
        self.inside.store(true, Ordering::Relaxed);
    }

    /// Goes outside, and is as given from now on.
    #[inline(always)]
    pub(crate) fn leave_with(&self, spent: Spent) {
        // Release: pairs with the Acquire in `has_owner`.
        self.word.store(spent.0, Ordering::Release);
        #[cfg(tsumugi_loom)]
        self.inside.store(false, Ordering::Release);
    }

    /// Has what was counted told to those who look. By the worker.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell(&self, counters: &Counters) {
        let spent = self.get();
        // In the model, where it would only cost time, nothing is told.
        if cfg!(not(tsumugi_loom)) {
            counters.add(Counter::Yields, (spent.0 / YIELD) & COUNT);
            counters.add(Counter::Parks, (spent.0 / PARK) & COUNT);
            counters.add(Counter::Wakes, spent.0 / WAKE);
        }
        self.set(Spent(spent.0 & (YIELD - 1)));
    }
}

impl Inside for Turn {
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
    /// Whether there is more left than this.
    #[inline(always)]
    pub(crate) fn leaves(self, cost: u64) -> bool {
        self.0 & LEFT > cost
    }

    /// Whether there is anything to tell.
    #[inline(always)]
    pub(crate) fn has_counted(self) -> bool {
        self.0 >= YIELD
    }

    /// After so much.
    #[inline(always)]
    pub(crate) fn less(self, cost: u64) -> Self {
        Self(self.0 - cost)
    }

    /// After a yield.
    #[inline(always)]
    pub(crate) fn yielded(self) -> Self {
        Self(self.0 + (YIELD - SWITCH))
    }

    /// After a park.
    #[inline(always)]
    pub(crate) fn parked(self) -> Self {
        Self(self.0 + (PARK - SWITCH))
    }

    /// After a wake.
    #[inline(always)]
    pub(crate) fn woke(self) -> Self {
        Self(self.0 + WAKE)
    }

    /// At the beginning of the next turn.
    #[inline(always)]
    pub(crate) fn anew(self) -> Self {
        Self(self.0 & !LEFT | FAIR_TURN)
    }
}

/// What a switch takes of a turn.
pub(crate) const SWITCH: u64 = 4;
/// What a ULT takes that runs in the place of its joiner.
pub(crate) const CALL: u64 = 1;
/// Between two looks at everything that could starve: 61 switches, or four
/// times as many ULTs that ran in the place of their joiners. In the model so few
/// that each path comes to several.
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
    fn each_is_counted_by_itself() {
        let (turn, counters) = (Turn::new(), Counters::new());
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
    fn many_wakes_are_told() {
        let (turn, counters) = (Turn::new(), Counters::new());
        for _ in 0..100_000 {
            turn.set(turn.get().woke());
        }
        turn.tell(&counters);
        assert_eq!(counters.snapshot()[Counter::Wakes], 100_000);
        assert_eq!(counters.snapshot()[Counter::Yields], 0);
    }
}
