//! The barrier of the ranks of one node, which share memory.

use crate::node::{BARRIER_WORDS_FROM, RankNode};
use std::thread;
use tsumugi_core::coll::{BarrierMemory, NodeBarrier};
use tsumugi_core::mem::Rank;
use tsumugi_core::mem::{AddrError, LocalRank};
use tsumugi_core::signal::Until;
use tsumugi_core::sync::{AtomicU64, Ordering, spin_loop};
use tsumugi_core::wait::Wait;
use tsumugi_pvas::partition::{COLLECTIVE_WORDS, ControlBlock};
use tsumugi_ult::{Here, SystemFutex, is_alone};

impl RankNode {
    fn control_at(&self, place: u32) -> &ControlBlock {
        self.member().space().control(LocalRank(place))
    }
}

impl BarrierMemory for RankNode {
    #[inline(always)]
    fn word(&self, place: u32, word: usize) -> &AtomicU64 {
        &self.control_at(place).collective()[WORDS_FROM + word]
    }

    #[inline]
    fn look(&self, word: &AtomicU64, until: u64) -> bool {
        // Acquire: pairs with the arrival that makes the count.
        let is_over = || Until::AtLeast(until).holds(word.load(Ordering::Acquire));
        for _ in 0..self.looks() {
            for _ in 0..LOOKS {
                if is_over() {
                    return true;
                }
                spin_loop();
            }
            Here.yield_now();
        }
        if self.looks() == 0 {
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

    fn sleep(&self, word: &AtomicU64, until: u64) -> Result<(), AddrError> {
        self.waiters().wait(self.parking_lot(), word, Until::AtLeast(until), &Here).map(drop)
    }

    fn wake(&self, place: u32, word: &AtomicU64) {
        let control = self.control_at(place);
        if control.parking_lot().announce(&raw const *word as u64) {
            control.bells().ring(&SystemFutex);
        }
    }

    fn lost(&self) -> Option<Rank> {
        self.parking_lot().lost()
    }
}

/// Looks at a word before other ULTs may run.
const LOOKS: u32 = 8;
/// How often other ranks may run on this core, if it has several, before this rank
/// sleeps: of 16 ranks on two cores each has arrived after two or three turns, and
/// sleeping and waking would cost all of them twice as much.
const TURNS: u32 = 64;
const WORDS_FROM: usize = BARRIER_WORDS_FROM;

const _: () = assert!(
    tsumugi_core::coll::WORDS <= WORDS_FROM && WORDS_FROM + NodeBarrier::WORDS <= COLLECTIVE_WORDS
);
