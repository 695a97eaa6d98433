//! The words by which a rank's accesses and those who move pages meet.
//!
//! ```text
//!  gate   page 40 │ state 3 │ count 21       one a slot, at each rank
//!
//!  Empty ──► Pending ──► Valid(count) ──► Stopped(count) ──► (as Empty, when
//!    ▲          │ stop        │ evicted, if nobody        stop   nobody is in)
//!    │          ▼             ▼ is in
//!    └────── Revoked        Empty
//!
//!  crowd  phase 1 │ count 31 │ count 31      one a rank
//! ```
//!
//! Whoever writes to a page is counted in its gate from before it knows where
//! the page is until the write has landed; a mover stops the gate and waits
//! until nobody is in. Validity and count are one word, so nobody comes in
//! after the stop (hazard O1).
//!
//! Whoever only reads is counted in the crowd, under the phase of the moment,
//! but for a [hit](super::Own), which looks at the header twice instead. Who
//! wants to know that all who are counted now have ended turns the phase and
//! waits for the count of the one before.

use super::PageId;

/// What a gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gate {
    pub page: PageId,
    pub state: GateState,
    pub count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum GateState {
    /// Anybody's.
    Empty = 0,
    /// Somebody asks where the page is.
    Pending = 1,
    /// The same, and the answer is of no use any more.
    Revoked = 2,
    /// It is known; so many are in.
    Valid = 3,
    /// So many are in still, nobody else comes in.
    Stopped = 4,
}

impl Gate {
    pub const fn new(page: PageId, state: GateState, count: u32) -> Self {
        Self { page, state, count }
    }

    pub const fn to_bits(self) -> u64 {
        self.page.0 << PAGE_SHIFT | (self.state as u64) << STATE_SHIFT | self.count as u64
    }

    /// From a word of a gate. One that is none is taken as stopped.
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

    /// Whether anybody may take the slot for another page.
    pub const fn is_free(self) -> bool {
        match self.state {
            GateState::Empty => true,
            GateState::Valid | GateState::Stopped => self.count == 0,
            GateState::Pending | GateState::Revoked => false,
        }
    }
}

/// What a rank's crowd says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crowd(pub u64);

impl Crowd {
    /// The phase in which those who come now are counted.
    pub const fn phase(self) -> u8 {
        (self.0 >> 63) as u8
    }

    pub const fn count(self, phase: u8) -> u64 {
        self.0 >> (phase as u32 * CROWD_BITS) & CROWD
    }

    /// With one more.
    pub const fn come(self) -> Self {
        Self(self.0 + Self::one(self.phase()))
    }

    /// What one that came in `phase` adds.
    pub const fn one(phase: u8) -> u64 {
        1 << (phase as u32 * CROWD_BITS)
    }

    /// In the other phase.
    pub const fn turned(self) -> Self {
        Self(self.0 ^ 1 << 63)
    }
}

const STATE_SHIFT: u32 = 21;
const PAGE_SHIFT: u32 = 24;
const COUNT: u64 = (1 << STATE_SHIFT) - 1;
const CROWD_BITS: u32 = 31;
const CROWD: u64 = (1 << CROWD_BITS) - 1;
