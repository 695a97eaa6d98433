//! The memory of each rank that all ranks reach.
//!
//! ```text
//!  over, value            │ places: a value, a state each
//!  └ set by rank 0 for a run └ of tasks that were forked here
//! ```

use super::PLACES;
use std::slice;
use tsumugi::{AddrError, Error, Rank, Remote, Runtime, Shared, Signal, Until};
use tsumugi_core::sync::{AtomicU64, Ordering};

pub(super) struct Memory {
    words: Shared<u64>,
    /// This rank's words; valid as long as `words`.
    own: &'static [AtomicU64],
}

/// The end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Value(u64),
    /// The task failed at this rank, which has the error.
    Failed(Rank),
}

impl Memory {
    /// Allocates the memory. Collective.
    pub(super) fn new(rt: &Runtime) -> Result<Self, Error> {
        let words = rt.share::<u64>(PLACES_AT + 2 * PLACES)?;
        let first = rt.pointer(words.own().at(0))?.cast::<AtomicU64>();
        // SAFETY: the pointer was resolved for, and is aligned for, the first of as
        // many words in one piece. They are accessed only as atomics and as plain
        // bytes. They stay as long as `words`, and no method gives them out for
        // longer.
        let own = unsafe { slice::from_raw_parts(first.as_ptr(), words.len()) };
        Ok(Self { words, own })
    }

    /// The word of a task's state, which becomes nonzero when the task is over.
    pub(super) fn state(&self, rank: Rank, place: u32) -> Remote<u64> {
        self.words.at(rank, PLACES_AT + 2 * place as usize + 1)
    }

    /// The outcome of a task that this rank forked, if it is over.
    pub(super) fn outcome(&self, place: u32) -> Option<Outcome> {
        let [value, state] = self.place(place);
        // Acquire: pairs with the signal, which was set after the value.
        match state.load(Ordering::Acquire) {
            0 => None,
            DONE => Some(Outcome::Value(value.load(Ordering::Relaxed))),
            _ => Some(Outcome::Failed(Rank(value.load(Ordering::Relaxed) as u32))),
        }
    }

    /// Frees a place for another task.
    pub(super) fn clear(&self, place: u32) {
        // Relaxed: the lock round the places orders this before the next use.
        self.place(place)[1].store(0, Ordering::Relaxed);
    }

    /// Sends the outcome of a task to the rank that forked it.
    pub(super) fn settle(
        &self,
        rt: &Runtime,
        home: Rank,
        place: u32,
        outcome: Outcome,
    ) -> Result<(), AddrError> {
        let (value, state) = match outcome {
            Outcome::Value(value) => (value, DONE),
            Outcome::Failed(rank) => (rank.0.into(), FAILED),
        };
        let to = self.words.at(home, PLACES_AT + 2 * place as usize);
        rt.put_signal(to, &[value], self.state(home, place), Signal::Set(state))
    }

    /// Ends a run on all ranks, with its result.
    pub(super) fn tell_all(
        &self,
        rt: &Runtime,
        run: u64,
        value: Option<u64>,
    ) -> Result<(), AddrError> {
        let over = 2 * run + u64::from(value.is_none());
        for rank in rt.ranks().filter(|rank| *rank != rt.rank()) {
            let (to, word) = (self.words.at(rank, VALUE_AT), self.words.at(rank, OVER_AT));
            rt.put_signal(to, &[value.unwrap_or(0)], word, Signal::Set(over))?;
        }
        Ok(())
    }

    /// Waits until rank 0 has ended the run; returns its result.
    pub(super) fn wait_for_end(&self, rt: &Runtime, run: u64) -> Result<u64, Error> {
        match rt.wait_until(self.words.own().at(OVER_AT), Until::AtLeast(2 * run))? {
            over if over % 2 == 0 => Ok(self.own[VALUE_AT].load(Ordering::Relaxed)),
            _ => Err(Error::program("the root of the tasks failed at rank 0")),
        }
    }

    fn place(&self, place: u32) -> &[AtomicU64; 2] {
        let (places, _) = self.own[PLACES_AT..].as_chunks();
        &places[place as usize]
    }
}

const DONE: u64 = 1;
const FAILED: u64 = 2;
const OVER_AT: usize = 0;
const VALUE_AT: usize = 1;
/// On another pair of lines.
const PLACES_AT: usize = 16;
