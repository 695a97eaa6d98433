//! How a rank waits for a word that another rank of its node changes: it looks for a
//! while, lets others run, and then sleeps.

use std::fmt;
use std::thread;
use tsumugi_core::mem::{AddrError, LocalRank};
use tsumugi_core::signal::{Until, Waiters};
use tsumugi_core::sync::{AtomicU64, Ordering, spin_loop};
use tsumugi_core::wait::Wait;
use tsumugi_pvas::Member;
use tsumugi_ult::{Here, SystemFutex, is_alone};

/// The waits of one rank for words that only grow.
pub(crate) struct WordWait {
    member: Member,
    waiters: Waiters,
    /// How often a waiter looks and lets others run, before it sleeps.
    looks: u32,
}

impl WordWait {
    pub(crate) fn new(member: &Member, looks: u32) -> Self {
        Self { member: member.clone(), waiters: Waiters::new(), looks }
    }

    /// All waiters on words of this rank.
    pub(crate) fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// Looks for a while whether the word has reached `until` as a count that wraps, and
    /// returns whether it has.
    #[inline]
    pub(crate) fn look(&self, word: &AtomicU64, until: u64) -> bool {
        // Acquire: pairs with the change that makes the count.
        let is_over = || Until::AtLeast(until).holds(word.load(Ordering::Acquire));
        for round in 0..self.looks {
            for _ in 0..if round == 0 { LOOKS_FIRST } else { LOOKS } {
                if is_over() {
                    return true;
                }
                spin_loop();
            }
            Here.yield_now();
        }
        if self.looks == 0 {
            // The ranks that have not arrived may need this core.
            for _ in 0..TURNS {
                if is_over() {
                    return true;
                }
                if is_alone() { thread::yield_now() } else { Here.yield_now() }
            }
        }
        is_over()
    }

    /// Sleeps until the word has reached `until`.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: a rank has died.
    pub(crate) fn sleep(&self, word: &AtomicU64, until: u64) -> Result<(), AddrError> {
        let parking_lot = self.member.control().parking_lot();
        self.waiters.wait(parking_lot, word, Until::AtLeast(until), &Here).map(drop)
    }

    /// Wakes the rank at `place`, if it sleeps for a count that the word has reached by a
    /// sequentially consistent operation.
    pub(crate) fn wake(&self, place: LocalRank, word: &AtomicU64) {
        let control = self.member.space().control(place);
        if control.parking_lot().announce(&raw const *word as u64) {
            control.bells().ring(&SystemFutex);
        }
    }
}

impl fmt::Debug for WordWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WordWait({})", self.member.rank())
    }
}

/// Looks at a word before other ULTs may run for the first time: some hundred nanoseconds,
/// in which the value of a rank that is as far has come.
const LOOKS_FIRST: u32 = 64;
/// Looks at a word before other ULTs may run.
const LOOKS: u32 = 8;
/// How often other ranks may run on this core, if it has several, before this rank
/// sleeps: of 16 ranks on two cores each has arrived after two or three turns, and
/// sleeping and waking would cost all of them twice as much.
const TURNS: u32 = 64;
