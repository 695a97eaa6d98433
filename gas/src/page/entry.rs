//! The directory entry of a page: one word that says where the page is, and that a
//! compare-and-swap can exchange. Also the header of a frame: the word before the
//! bytes, which names the page that the bytes belong to.
//!
//! ```text
//!  entry   63  ┌ at rest ┬ owner 21 ┬ frame 21 ┬ epoch 21 ┐  0   at its home
//!              └ moving  ┴ owner 21 ┴ frame 21 ┴ mover 21 ┘
//!  header  63  ┌ page 5 × 7 ┬ epoch 3 × 7 ┐                 0   before the bytes
//!             └─ in each byte: 7 bits, live 1 ─┘
//! ```
//!
//! A network that tears words may read each byte of a header at another moment, so
//! each byte has a live bit of its own. The reader is counted
//! meanwhile, and a frame that a page leaves is not given to another page before
//! that reader has gone: all live bytes that one read can find are of one header.
//!
//! The epoch counts the moves of the page, modulo 2^21. A header that was read under
//! one entry is therefore not of another life of the page in the same place, as long
//! as no reader is suspended for two million moves within one read.

use tsumugi_core::mem::Rank;

/// A page of a [`PageLayout`](super::PageLayout).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u64);

/// Where a page is while it does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DirectoryEntry {
    /// The rank that has the page in its memory.
    pub owner: Rank,
    /// The frame of the owner in which the page is.
    pub frame: u32,
    /// The number of moves of the page so far, modulo 2^21.
    pub epoch: u32,
}

/// The state of a page, as the word at the home has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageState {
    /// The page is at this place.
    At(DirectoryEntry),
    /// The page is on its way from this place. Only the mover has its epoch.
    Moving {
        /// The rank that the page leaves.
        owner: Rank,
        /// The frame of the owner that the page leaves.
        frame: u32,
        /// The rank that moves the page.
        by: Rank,
    },
}

impl DirectoryEntry {
    /// The entry of the page after a move to a frame of `owner`.
    #[must_use]
    pub const fn moved(self, owner: Rank, frame: u32) -> Self {
        Self { owner, frame, epoch: (self.epoch + 1) & FIELD as u32 }
    }

    /// The entry as a word.
    pub const fn to_bits(self) -> u64 {
        pack(self.owner, self.frame, self.epoch)
    }

    /// The entry that the word contains. `None`: the word says that the page moves.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match PageState::from_bits(bits) {
            PageState::At(entry) => Some(entry),
            PageState::Moving { .. } => None,
        }
    }

    /// The word that is stored beside this entry in the location cache: the page,
    /// and a check of this entry's bits.
    pub(super) const fn seen_of(self, page: PageId) -> u64 {
        let check = self.to_bits().wrapping_mul(ODD) >> (64 - CHECK_BITS);
        (page.0 + 1) << CHECK_BITS | check
    }

    /// The header of the page's bytes while this is its entry.
    pub const fn header(self, page: PageId) -> u64 {
        spread(page.0 << FIELD_BITS | self.epoch as u64) | LIVE
    }
}

impl PageState {
    /// The state as a word.
    pub const fn to_bits(self) -> u64 {
        match self {
            Self::At(entry) => entry.to_bits(),
            Self::Moving { owner, frame, by } => MOVING | pack(owner, frame, by.0),
        }
    }

    /// The state that the word contains.
    pub const fn from_bits(bits: u64) -> Self {
        let owner = Rank((bits >> OWNER_SHIFT & FIELD) as u32);
        let (frame, last) = ((bits >> FRAME_SHIFT & FIELD) as u32, (bits & FIELD) as u32);
        match bits & MOVING {
            0 => Self::At(DirectoryEntry { owner, frame, epoch: last }),
            _ => Self::Moving { owner, frame, by: Rank(last) },
        }
    }
}

/// The header without its live bits: the bytes are no longer the page's.
pub(super) const fn gone(header: u64) -> u64 {
    header & !LIVE
}

/// Whether the word beside a cached entry names this page.
#[inline]
pub(super) const fn names(seen: u64, page: PageId) -> bool {
    seen >> CHECK_BITS == page.0 + 1
}

/// The epoch in a header.
pub(super) const fn epoch_of(header: u64) -> u32 {
    let [first, second, third, ..] = header.to_le_bytes();
    (first as u32 >> 1) | (second as u32 >> 1) << 7 | (third as u32 >> 1) << 14
}

/// Whether an epoch is `last` or an earlier one. Epochs are counted modulo 2^21: of two epochs,
/// the later one is less than 2^20 moves ahead.
pub(super) const fn is_up_to(epoch: u32, last: u32) -> bool {
    (last.wrapping_sub(epoch) & FIELD as u32) < FIELD_MAX / 2
}

/// Whether a header names this page, live or gone.
pub(super) const fn is_of(header: u64, page: PageId) -> bool {
    gone(header) >> PAGE_SHIFT == spread(page.0 << FIELD_BITS) >> PAGE_SHIFT
}

/// Spreads 56 bits: 7 to each byte, above the byte's lowest bit.
#[inline]
const fn spread(bits: u64) -> u64 {
    let bits = bits & 0x0fff_ffff | (bits & 0x00ff_ffff_f000_0000) << 4;
    let bits = bits & 0x0000_3fff_0000_3fff | (bits & 0x0fff_c000_0fff_c000) << 2;
    let bits = bits & 0x007f_007f_007f_007f | (bits & 0x3f80_3f80_3f80_3f80) << 1;
    bits << 1
}

const fn pack(owner: Rank, frame: u32, last: u32) -> u64 {
    (owner.0 as u64) << OWNER_SHIFT | (frame as u64) << FRAME_SHIFT | last as u64
}

/// The number of ranks, and of frames of a rank, that an entry can name.
pub const FIELD_MAX: u32 = 1 << FIELD_BITS;
/// The number of pages that a header can name.
pub const PAGES_MAX: u64 = 1 << 35;

const FIELD_BITS: u32 = 21;
const FIELD: u64 = (1 << FIELD_BITS) - 1;
const FRAME_SHIFT: u32 = FIELD_BITS;
const OWNER_SHIFT: u32 = 2 * FIELD_BITS;
const MOVING: u64 = 1 << 63;
const PAGE_SHIFT: u32 = 24;
/// The width of the check below the page in the word beside a cached entry.
const CHECK_BITS: u32 = 28;
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
/// The live bit of each byte.
pub(super) const LIVE: u64 = 0x0101_0101_0101_0101;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_after_the_largest_one_is_later() {
        let last = DirectoryEntry { owner: Rank(0), frame: 0, epoch: FIELD_MAX - 1 };
        let next = last.moved(Rank(1), 0);
        assert!(next.epoch == 0 && is_up_to(last.epoch, next.epoch));
        for entry in [last, next, DirectoryEntry { epoch: 7, ..last }] {
            let later = entry.moved(Rank(1), 0).epoch;
            assert!(is_up_to(entry.epoch, entry.epoch) && is_up_to(entry.epoch, later));
            assert!(!is_up_to(later, entry.epoch));
        }
    }

    #[test]
    fn words_are_read_as_they_were_written() {
        let (owner, frame) = (Rank(FIELD_MAX - 1), 77);
        let at = PageState::At(DirectoryEntry { owner, frame, epoch: FIELD_MAX - 1 });
        let moving = PageState::Moving { owner, frame, by: Rank(5) };
        for state in [at, moving] {
            assert_eq!(PageState::from_bits(state.to_bits()), state);
        }
        let entry = DirectoryEntry { owner, frame, epoch: FIELD_MAX - 1 };
        assert_eq!(entry.moved(Rank(1), 2).epoch, 0, "the epoch wraps in its field");
    }

    #[test]
    fn a_header_belongs_to_one_page_and_one_epoch() {
        let page = PageId(PAGES_MAX - 1);
        let entry = DirectoryEntry { owner: Rank(3), frame: 4, epoch: 9 };
        let header = entry.header(page);
        assert!(is_of(header, page) && is_of(gone(header), page));
        assert_eq!(epoch_of(gone(header)), 9);
        let last = DirectoryEntry { epoch: FIELD_MAX - 1, ..entry };
        assert_eq!(epoch_of(last.header(page)), FIELD_MAX - 1);
        assert!(
            !is_of(last.header(PageId(0)), PageId(1)),
            "the epoch is not a part of the page number"
        );
        assert_ne!(gone(header), header);
        assert_ne!(entry.moved(Rank(3), 4).header(page), header);
    }

    #[test]
    fn each_byte_of_a_header_shows_whether_it_is_live() {
        for (page, epoch) in [(0, 0), (PAGES_MAX - 1, FIELD_MAX - 1), (1 << 34 | 77, 1 << 20)] {
            let header = DirectoryEntry { owner: Rank(0), frame: 0, epoch }.header(PageId(page));
            let pairs = header.to_le_bytes().into_iter().zip(gone(header).to_le_bytes());
            assert!(pairs.into_iter().all(|(live, gone)| live == gone | 1 && live != gone));
            let sevens = header.to_le_bytes().map(|byte| u64::from(byte >> 1));
            let bits = sevens.iter().rev().fold(0, |bits, seven| bits << 7 | seven);
            assert_eq!(bits, page << FIELD_BITS | u64::from(epoch));
        }
    }
}
