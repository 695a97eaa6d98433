//! Layout of the memory that a rank's peers write to.
//!
//! ```text
//!  arrivals   a byte a peer: cells that have come since the last look
//!  notices    a bit a peer: the peer's word of credits has changed
//!  credits    a word a peer: how many requests of this rank it has taken, ever
//!  requests   cells a peer, 256 bytes each
//!  replies    the same
//! ```
//!
//! A peer has at most `2 * cells` cells here that were not taken, and a cell is
//! taken only after its arrival was counted: so with [`CELLS_MAX`] cells a byte
//! never overflows into its neighbour's. All ranks have the same layout.
//!
//! A machine may get more peers later: then it has another such memory for each
//! [`BLOCK_PEERS`] of them, and its driver sends each of them the address.

use super::cell::{CELL_BYTES, CELL_WORDS, Defect, LaneCell};
use crate::mem::PeerIndex;
use crate::sync::mapped::{AtomicU64, Ordering};
use core::fmt;

/// Cells that a lane can have.
pub const CELLS_MAX: u32 = 64;

/// The sizes of the lanes: the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmShape {
    /// Ranks, this rank included.
    pub peers: u32,
    /// Cells of each lane: a power of two.
    pub cells: u32,
    /// Cells of each lane to a peer that comes later: a power of two.
    pub later_cells: u32,
}

/// How many peers a machine gets lanes for at a time, of the peers that were not
/// in its shape.
pub const BLOCK_PEERS: u32 = 64;

/// The lanes of [`BLOCK_PEERS`] such peers, or none.
#[derive(Clone, Copy, Debug)]
pub struct LaneBlock<'m>(pub(super) Option<AmLanes<'m>>);

/// One of the two lanes of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AmLane {
    Request,
    Reply,
}

/// The memory of this rank's lanes, as its owner reads it.
#[derive(Clone, Copy)]
pub(super) struct AmLanes<'m> {
    words: &'m [AtomicU64],
    shape: AmShape,
}

impl AmShape {
    /// Cells of each lane by default.
    pub const CELLS: u32 = 16;

    /// Returns the shape of a [`LaneBlock`] of a machine of this shape.
    pub const fn block(self) -> Self {
        Self { peers: BLOCK_PEERS, cells: self.later_cells, ..self }
    }

    /// Returns the bytes of registered memory that a rank provides for its peers:
    /// 64 KiB for each eight of them at 16 cells, and a little more.
    pub const fn memory_size(self) -> usize {
        self.replies() + self.lane_bytes()
    }

    pub(super) const fn is_valid(self) -> bool {
        self.peers > 0
            && self.peers <= PEERS_MAX
            && self.cells.is_power_of_two()
            && self.cells <= CELLS_MAX
            && self.later_cells.is_power_of_two()
            && self.later_cells <= CELLS_MAX
    }

    /// Returns the offset of the word in which `from` counts its arrivals, and
    /// the number that `from` adds to it for one. `notice` returns the same for a
    /// notice, with the bit to set.
    pub(super) const fn arrival(self, from: PeerIndex) -> (usize, u64) {
        (from.0 as usize / 8 * 8, 1 << (from.0 % 8 * 8))
    }

    pub(super) const fn notice(self, from: PeerIndex) -> (usize, u64) {
        (self.notices() + from.0 as usize / 64 * 8, 1 << (from.0 % 64))
    }

    pub(super) const fn credit(self, from: PeerIndex) -> usize {
        self.notices() + self.notice_words() * 8 + from.0 as usize * 8
    }

    /// Returns the offset at which `from` writes cell `number` of a lane.
    pub(super) const fn cell(self, lane: AmLane, from: PeerIndex, number: u32) -> usize {
        let start = match lane {
            AmLane::Request => self.requests(),
            AmLane::Reply => self.replies(),
        };
        let index = from.0 as usize * self.cells as usize + (number & (self.cells - 1)) as usize;
        start + index * CELL_BYTES
    }

    /// Returns the number of words that senders ring: the words before the
    /// credits.
    pub(super) const fn bell_words(self) -> usize {
        self.arrival_words() + self.notice_words()
    }

    const fn arrival_words(self) -> usize {
        (self.peers as usize).div_ceil(8)
    }

    const fn notice_words(self) -> usize {
        (self.peers as usize).div_ceil(64)
    }

    const fn notices(self) -> usize {
        self.arrival_words() * 8
    }

    const fn requests(self) -> usize {
        self.credit(PeerIndex(self.peers)).next_multiple_of(CELL_BYTES)
    }

    const fn replies(self) -> usize {
        self.requests() + self.lane_bytes()
    }

    const fn lane_bytes(self) -> usize {
        self.peers as usize * self.cells as usize * CELL_BYTES
    }
}

impl<'m> AmLanes<'m> {
    /// Makes the view of `words`, of which there are as many as the shape needs.
    pub(super) fn new(words: &'m [AtomicU64], shape: AmShape) -> Self {
        Self { words, shape }
    }

    /// Takes the arrivals that were counted since the last look: calls
    /// `found(peer, cells)`.
    pub(super) fn take_arrivals(&self, mut found: impl FnMut(usize, u32)) {
        for word in 0..self.shape.arrival_words() {
            let counts = take(&self.words[word]);
            for (byte, count) in counts.to_le_bytes().into_iter().enumerate() {
                let peer = word * 8 + byte;
                if count > 0 && peer < self.shape.peers as usize {
                    found(peer, u32::from(count));
                }
            }
        }
    }

    /// Takes the notices that have come: calls `found(peer, requests taken)`.
    pub(super) fn take_notices(&self, mut found: impl FnMut(usize, u32)) {
        for word in 0..self.shape.notice_words() {
            let mut bits = take(&self.words[self.shape.arrival_words() + word]);
            while bits != 0 {
                let peer = word * 64 + bits.trailing_zeros() as usize;
                if peer < self.shape.peers as usize {
                    let credit = &self.words[self.shape.credit(PeerIndex(peer as u32)) / 8];
                    // Acquire: sees the credits that the peer wrote before its
                    // notice.
                    found(peer, credit.load(Ordering::Acquire) as u32);
                }
                bits &= bits - 1;
            }
        }
    }

    /// Returns cell `number` of the lane from `peer`, if all of it has landed.
    pub(super) fn read(
        &self,
        lane: AmLane,
        peer: usize,
        number: u32,
        defect: Defect,
    ) -> Option<LaneCell> {
        let start = self.shape.cell(lane, PeerIndex(peer as u32), number) / 8;
        LaneCell::read(&self.words[start..start + CELL_WORDS], number, defect)
    }
}

/// Returns whether a peer has rung, for a look without a lock. `words` is the
/// memory of [`AmShape::memory_size`]. Wait-free.
#[inline]
pub fn has_rung(words: &[AtomicU64], shape: AmShape) -> bool {
    // SeqCst: a sleeper looks here after it has announced that it will sleep.
    words[..shape.bell_words()].iter().any(|word| word.load(Ordering::SeqCst) != 0)
}

impl LaneBlock<'_> {
    /// No lanes.
    pub const EMPTY: Self = Self(None);
}

impl fmt::Debug for AmLanes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AmLanes({:?})", self.shape)
    }
}

fn take(word: &AtomicU64) -> u64 {
    if word.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    // Acquire: pairs with the peer's bell, so that the announced cell is seen.
    word.swap(0, Ordering::AcqRel)
}

/// An operation's tag has room for this many peers.
const PEERS_MAX: u32 = 1 << 22;
const _: () = assert!(CELLS_MAX * 2 <= u8::MAX as u32);
const _: () = assert!(crate::mem::Width::W8 as usize == 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_lanes_do_not_overlap() {
        for peers in [1, 2, 8, 9, 64, 65, 1000] {
            let shape = AmShape { peers, cells: 16, later_cells: 16 };
            let last = PeerIndex(peers - 1);
            assert!(shape.arrival(last).0 + 8 <= shape.notice(PeerIndex(0)).0);
            assert!(shape.notice(last).0 + 8 <= shape.credit(PeerIndex(0)));
            assert!(shape.credit(last) + 8 <= shape.cell(AmLane::Request, PeerIndex(0), 0));
            let end = shape.cell(AmLane::Request, last, 15) + CELL_BYTES;
            assert_eq!(end, shape.cell(AmLane::Reply, PeerIndex(0), 16));
            assert_eq!(shape.cell(AmLane::Reply, last, 31) + CELL_BYTES, shape.memory_size());
        }
    }
}
