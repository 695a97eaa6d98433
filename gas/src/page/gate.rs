//! The words in which a rank's accesses to pages and the movers of pages are
//! synchronized: a gate (pin count and state of a page at one rank), and the reader counts
//! (readers of a rank, counted by phase as in SRCU).
//!
//! ```text
//!  gate   page 40 │ state 3 │ count 21       one a slot, at each rank
//!
//!  Empty ──► Pending ──► Valid(count) ──► Stopped(count) ──► (as Empty, when
//!    ▲          │ stop        │ evicted, if count         stop   count is 0)
//!    │          ▼             ▼ is 0
//!    └────── Revoked        Empty
//!
//!  reader counts  phase 1 │ count 31 │ count 31      one a rank
//! ```
//!
//! A write to a page is counted in the rank's gate of the page from before the rank
//! reads where the page is until the write has landed. A mover stops the gate and
//! waits until its count is 0. State and count are one word, so no write comes in
//! after the stop (hazard O1).
//!
//! An access that only reads is counted under the current phase; a
//! [hit](super::ReadFast) is not counted, and looks at the header twice instead. A grace period
//! that waits for the end of all reads that are counted now turns the phase and
//! waits for the count of the phase before.

use super::PageId;

/// The contents of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gate {
    pub page: PageId,
    pub state: GateState,
    pub count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum GateState {
    /// The slot is free for any page.
    Empty = 0,
    /// A pin of this rank reads where the page is.
    Pending = 1,
    /// As pending, but the place that is being read is of no use any more.
    Revoked = 2,
    /// The place of the page is known; `count` pins are in.
    Valid = 3,
    /// `count` pins are still in, and no other pin comes in.
    Stopped = 4,
}

impl Gate {
    pub const fn new(page: PageId, state: GateState, count: u32) -> Self {
        Self { page, state, count }
    }

    pub const fn to_bits(self) -> u64 {
        self.page.0 << PAGE_SHIFT | (self.state as u64) << STATE_SHIFT | self.count as u64
    }

    /// The gate in a word. A word with an unknown state is taken as stopped.
    pub const fn from_bits(bits: u64) -> Self {
        let state = match bits >> STATE_SHIFT & 7 {
            0 => GateState::Empty,
            1 => GateState::Pending,
            2 => GateState::Revoked,
            3 => GateState::Valid,
            _ => GateState::Stopped,
        };
        let count = (bits & COUNT) as u32;
        Self { page: PageId(bits >> PAGE_SHIFT), state, count }
    }

    /// Whether a pin may take the slot for another page.
    pub const fn is_free(self) -> bool {
        match self.state {
            GateState::Empty => true,
            GateState::Valid | GateState::Stopped => self.count == 0,
            GateState::Pending | GateState::Revoked => false,
        }
    }
}

/// The contents of a rank's reader counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReaderEpochs(pub u64);

impl ReaderEpochs {
    /// The phase in which reads that begin now are counted.
    pub const fn phase(self) -> u8 {
        (self.0 >> 63) as u8
    }

    pub const fn count(self, phase: u8) -> u64 {
        self.0 >> (phase as u32 * EPOCH_BITS) & EPOCH_COUNT
    }

    /// The reader counts with one more reader in the current phase.
    pub const fn come(self) -> Self {
        Self(self.0 + Self::one(self.phase()))
    }

    /// The value that one reader of `phase` adds to the word.
    pub const fn one(phase: u8) -> u64 {
        1 << (phase as u32 * EPOCH_BITS)
    }

    /// The reader counts in the other phase.
    pub const fn turned(self) -> Self {
        Self(self.0 ^ 1 << 63)
    }
}

const STATE_SHIFT: u32 = 21;
const PAGE_SHIFT: u32 = 24;
const COUNT: u64 = (1 << STATE_SHIFT) - 1;
const EPOCH_BITS: u32 = 31;
const EPOCH_COUNT: u64 = (1 << EPOCH_BITS) - 1;
