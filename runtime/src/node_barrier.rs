//! The barrier of the ranks of one node, which share memory.

use crate::node::{BARRIER_WORDS_FROM, RankNode};
use tsumugi_core::coll::{BarrierMemory, NodeBarrier};
use tsumugi_core::mem::Rank;
use tsumugi_core::mem::{AddrError, LocalRank};
use tsumugi_core::sync::AtomicU64;
use tsumugi_pvas::partition::COLLECTIVE_WORDS;

impl BarrierMemory for RankNode {
    #[inline(always)]
    fn word(&self, place: u32, word: usize) -> &AtomicU64 {
        let control = self.member().space().control(LocalRank(place));
        &control.collective()[WORDS_FROM + word]
    }

    #[inline]
    fn look(&self, word: &AtomicU64, until: u64) -> bool {
        self.word_wait().look(word, until)
    }

    fn sleep(&self, word: &AtomicU64, until: u64) -> Result<(), AddrError> {
        self.word_wait().sleep(word, until)
    }

    fn wake(&self, place: u32, word: &AtomicU64) {
        self.word_wait().wake(LocalRank(place), word);
    }

    fn lost(&self) -> Option<Rank> {
        self.parking_lot().lost()
    }
}

const WORDS_FROM: usize = BARRIER_WORDS_FROM;

const _: () = assert!(
    tsumugi_core::coll::WORDS <= WORDS_FROM && WORDS_FROM + NodeBarrier::WORDS <= COLLECTIVE_WORDS
);
