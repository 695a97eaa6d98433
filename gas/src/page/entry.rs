//! Where a page is, in one word that a compare-and-swap can exchange; and the
//! word before a page's bytes that says whose they are.
//!
//! ```text
//!  entry   63  ┌ at rest ┬ owner 21 ┬ frame 21 ┬ epoch 21 ┐  0   at its home
//!              └ moving  ┴ owner 21 ┴ frame 21 ┴ mover 21 ┘
//!  header  63  ┌ page 5 × 7 ┬ epoch 3 × 7 ┐                 0   before the bytes
//!             └─ in each byte: 7 bits, live 1 ─┘
//! ```
//!
//! A header may be read by a network that tears words: each byte of it at a
//! moment of its own. So each byte says whether it is live. Whoever reads it is
//! counted meanwhile, and a frame whose page leaves then is nobody's before it
//! has gone: all live bytes that it can find are of one header.
//!
//! The epoch is how often the page has moved, modulo 2^21: a header that was
//! read under one entry is of no other life of the page in the same place, as
//! long as nobody sleeps through two million moves within one read.

use tsumugi_core::mem::Rank;

/// A page of a [`Book`](super::Book).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u64);

/// Where a page is while it does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// Whose memory.
    pub owner: Rank,
    /// Which of its frames.
    pub frame: u32,
    /// How often it has moved.
    pub epoch: u32,
}

/// What the word at the home says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It is there.
    At(Entry),
    /// It is on its way from there. The epoch is its mover's to know.
    Moving {
        /// Whose memory it leaves.
        owner: Rank,
        /// Which of its frames.
        frame: u32,
        /// Who moves it.
        by: Rank,
    },
}

impl Entry {
    /// The entry of a page that has moved on.
    #[must_use]
    pub const fn moved(self, owner: Rank, frame: u32) -> Self {
        Self { owner, frame, epoch: (self.epoch + 1) & FIELD as u32 }
    }

    /// As a word.
    pub const fn to_bits(self) -> u64 {
        pack(self.owner, self.frame, self.epoch)
    }

    /// From such a word. `None`: it is no entry's.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match State::from_bits(bits) {
            State::At(entry) => Some(entry),
            State::Moving { .. } => None,
        }
    }

    /// The word beside this one where it is remembered: of which page it is, and
    /// that it is this.
    pub(super) const fn seen_of(self, page: PageId) -> u64 {
        let check = self.to_bits().wrapping_mul(ODD) >> (64 - CHECK_BITS);
        (page.0 + 1) << CHECK_BITS | check
    }

    /// The header of the page's bytes while this is its entry.
    pub const fn header(self, page: PageId) -> u64 {
        spread(page.0 << FIELD_BITS | self.epoch as u64) | LIVE
    }
}

impl State {
    /// As a word.
    pub const fn to_bits(self) -> u64 {
        match self {
            Self::At(entry) => entry.to_bits(),
            Self::Moving { owner, frame, by } => MOVING | pack(owner, frame, by.0),
        }
    }

    /// From such a word.
    pub const fn from_bits(bits: u64) -> Self {
        let owner = Rank((bits >> OWNER_SHIFT & FIELD) as u32);
        let (frame, last) = ((bits >> FRAME_SHIFT & FIELD) as u32, (bits & FIELD) as u32);
        match bits & MOVING {
            0 => Self::At(Entry { owner, frame, epoch: last }),
            _ => Self::Moving { owner, frame, by: Rank(last) },
        }
    }
}

/// The header when its bytes are no longer the page's.
pub(super) const fn gone(header: u64) -> u64 {
    header & !LIVE
}

/// Whether a page is the one that the word beside a remembered entry names.
#[inline]
pub(super) const fn names(seen: u64, page: PageId) -> bool {
    seen >> CHECK_BITS == page.0 + 1
}

/// The epoch that a header names.
pub(super) const fn epoch_of(header: u64) -> u32 {
    let [first, second, third, ..] = header.to_le_bytes();
    (first as u32 >> 1) | (second as u32 >> 1) << 7 | (third as u32 >> 1) << 14
}

/// Whether a header names a page, live or gone.
pub(super) const fn is_of(header: u64, page: PageId) -> bool {
    gone(header) >> PAGE_SHIFT == spread(page.0 << FIELD_BITS) >> PAGE_SHIFT
}

/// 56 bits, 7 to each byte, above its lowest bit.
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

/// Ranks, and frames of a rank, that an entry can name.
pub const FIELD_MAX: u32 = 1 << FIELD_BITS;
/// Pages that a header can name.
pub const PAGES_MAX: u64 = 1 << 35;

const FIELD_BITS: u32 = 21;
const FIELD: u64 = (1 << FIELD_BITS) - 1;
const FRAME_SHIFT: u32 = FIELD_BITS;
const OWNER_SHIFT: u32 = 2 * FIELD_BITS;
const MOVING: u64 = 1 << 63;
const PAGE_SHIFT: u32 = 24;
/// Below the page in the word that says what is remembered.
const CHECK_BITS: u32 = 28;
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
/// In each byte.
pub(super) const LIVE: u64 = 0x0101_0101_0101_0101;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_was_put_into_them() {
        let (owner, frame) = (Rank(FIELD_MAX - 1), 77);
        let at = State::At(Entry { owner, frame, epoch: FIELD_MAX - 1 });
        let moving = State::Moving { owner, frame, by: Rank(5) };
        for state in [at, moving] {
            assert_eq!(State::from_bits(state.to_bits()), state);
        }
        let entry = Entry { owner, frame, epoch: FIELD_MAX - 1 };
        assert_eq!(entry.moved(Rank(1), 2).epoch, 0, "the epoch wraps in its field");
    }

    #[test]
    fn a_header_is_of_one_page_and_one_epoch() {
        let page = PageId(PAGES_MAX - 1);
        let entry = Entry { owner: Rank(3), frame: 4, epoch: 9 };
        let header = entry.header(page);
        assert!(is_of(header, page) && is_of(gone(header), page));
        assert_eq!(epoch_of(gone(header)), 9);
        let last = Entry { epoch: FIELD_MAX - 1, ..entry };
        assert_eq!(epoch_of(last.header(page)), FIELD_MAX - 1);
        assert!(!is_of(last.header(PageId(0)), PageId(1)), "the epoch is no part of the page");
        assert_ne!(gone(header), header);
        assert_ne!(entry.moved(Rank(3), 4).header(page), header);
    }

    #[test]
    fn each_byte_of_a_header_says_whether_it_is_live() {
        for (page, epoch) in [(0, 0), (PAGES_MAX - 1, FIELD_MAX - 1), (1 << 34 | 77, 1 << 20)] {
            let header = Entry { owner: Rank(0), frame: 0, epoch }.header(PageId(page));
            let pairs = header.to_le_bytes().into_iter().zip(gone(header).to_le_bytes());
            assert!(pairs.into_iter().all(|(live, gone)| live == gone | 1 && live != gone));
            let sevens = header.to_le_bytes().map(|byte| u64::from(byte >> 1));
            let bits = sevens.iter().rev().fold(0, |bits, seven| bits << 7 | seven);
            assert_eq!(bits, page << FIELD_BITS | u64::from(epoch));
        }
    }
}
