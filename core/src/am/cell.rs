//! One cell of a lane: a header of four words and up to 224 bytes.
//!
//! ```text
//!  word 0   check: of the words below and of the cell's number in its lane
//!       1   kind (8) | status (8) | length (16) | handler (32)
//!       2   the caller's token: index (32) | generation (32)
//!       3   acknowledgement: requests of the other direction taken so far
//!    4-31   the payload, or the place of a long one: key, offset, bytes
//! ```
//!
//! A put need not land as a whole, nor in ascending order, nor before the bell
//! that follows it. So the check covers every word that is used, and it is mixed
//! with the cell's number: a cell with words of an earlier lap, or with half of
//! its new words, passes with a probability of 2^-64. (The usual flag at each end
//! of the cell would not detect old words in the middle.) Only used words are
//! put.
//!
//! There is a second hazard: a word of a cell that is still on its way may equal
//! the word that is there from the last lap. If the cell were taken now, the late
//! word would land in the next cell. So each word is stored under a mask that
//! differs for each number, and a cell that passes has landed to the last word.
//!
//! The content of a cell comes from another rank and is not trusted: it is copied
//! out first, then checked, and lengths are compared with the space before they
//! are used.

use crate::mutate;
use crate::sync::mapped::{AtomicU64, Ordering};
use core::fmt;
use core::ops::Deref;

/// Longest payload that is sent inside the message.
pub const INLINE_BYTES_MAX: usize = CELL_BYTES - 8 * HEADER_WORDS;

/// Bytes of one cell: four cache lines.
pub const CELL_BYTES: usize = 256;

pub(super) const CELL_WORDS: usize = CELL_BYTES / 8;
const HEADER_WORDS: usize = 4;

/// A payload of up to [`INLINE_BYTES_MAX`] bytes, by value.
#[derive(Clone, Copy)]
pub struct Inline {
    len: u16,
    bytes: [u8; INLINE_BYTES_MAX],
}

/// The kind of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CellKind {
    /// A request without a reply.
    Cast = 1,
    /// A request with a reply.
    Call = 2,
    /// A request with a reply, with its payload in the caller's memory.
    LongCall = 3,
    /// The reply to a call.
    Reply = 4,
}

/// All of a cell except its check.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneCell {
    pub(super) kind: u8,
    pub(super) status: u8,
    pub(super) handler: u32,
    pub(super) token: u64,
    pub(super) ack: u32,
    pub(super) body: Inline,
}

/// A defect that a test has planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defect {
    None,
    /// The check is not compared.
    Blind,
    /// Words are stored without masks.
    Unmasked,
}

impl Inline {
    /// No bytes.
    pub const EMPTY: Self = Self { len: 0, bytes: [0; INLINE_BYTES_MAX] };

    /// Copies `bytes`; `None` if there are too many.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut this = Self::EMPTY;
        this.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        this.len = bytes.len() as u16;
        Some(this)
    }
}

impl Deref for Inline {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl PartialEq for Inline {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Inline {}

impl fmt::Debug for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inline").field(&&**self).finish()
    }
}

impl LaneCell {
    pub(super) const fn new(kind: CellKind, body: Inline) -> Self {
        Self { kind: kind as u8, status: 0, handler: 0, token: 0, ack: 0, body }
    }

    pub(super) const fn handler(self, handler: u32) -> Self {
        Self { handler, ..self }
    }

    pub(super) const fn token(self, token: u64) -> Self {
        Self { token, ..self }
    }

    /// Writes the cell as number `number` of its lane. Returns how many bytes of
    /// it must be put.
    pub(super) fn write(&self, words: &[AtomicU64], number: u32, defect: Defect) -> u64 {
        let first = u64::from(self.kind)
            | u64::from(self.status) << 8
            | u64::from(self.body.len) << 16
            | u64::from(self.handler) << 32;
        let mut check = Check::new(number);
        let mut put = |index: usize, word: u64| {
            check.add(word);
            // Relaxed: the same thread makes the put that follows, or another
            // thread that got the put through a lock.
            words[index].store(word ^ defect.mask(number, index), Ordering::Relaxed);
        };
        put(1, first);
        put(2, self.token);
        put(3, u64::from(self.ack));
        for (index, bytes) in self.body.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            put(HEADER_WORDS + index, u64::from_le_bytes(word));
        }
        words[0].store(check.value(), Ordering::Relaxed);
        8 * (HEADER_WORDS + self.body.len().div_ceil(8)) as u64
    }

    /// Reads the cell in `words`, if it has the number `number` and is complete.
    pub(super) fn read(words: &[AtomicU64], number: u32, defect: Defect) -> Option<Self> {
        // Relaxed: the bell that announced the cell was taken with Acquire; the
        // check finds a word that has not landed all the same.
        let load = |index: usize| words[index].load(Ordering::Relaxed) ^ defect.mask(number, index);
        let wanted = words[0].load(Ordering::Relaxed);
        let [first, token, ack] = [load(1), load(2), load(3)];
        let len = usize::from((first >> 16) as u16);
        if len > INLINE_BYTES_MAX {
            return None;
        }
        let mut check = Check::new(number);
        [first, token, ack].into_iter().for_each(|word| check.add(word));
        let mut body = Inline::EMPTY;
        body.len = len as u16;
        for (index, bytes) in body.bytes[..len].chunks_mut(8).enumerate() {
            let word = load(HEADER_WORDS + index);
            check.add(word);
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        }
        (check.value() == wanted || defect == Defect::Blind).then_some(Self {
            kind: first as u8,
            status: (first >> 8) as u8,
            handler: (first >> 32) as u32,
            token,
            ack: ack as u32,
            body,
        })
    }
}

impl Defect {
    /// Returns the defect that a test has planted in all cells.
    pub(super) fn planted() -> Self {
        mutate!("am_words_unmasked": Self::None => Self::Unmasked)
    }

    /// Returns the mask under which word `index` of cell `number` is stored.
    fn mask(self, number: u32, index: usize) -> u64 {
        match self {
            Self::Unmasked => 0,
            _ => (u64::from(number) * CELL_WORDS as u64 + index as u64 + 1).wrapping_mul(ODD),
        }
    }
}

/// A checksum by multiply, add and rotate over the words; not safe against an
/// adversary.
struct Check(u64);

impl Check {
    fn new(number: u32) -> Self {
        Self((u64::from(number) + 1).wrapping_mul(ODD))
    }

    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(ODD).rotate_left(29);
    }

    fn value(&self) -> u64 {
        // Never equal to a word of fresh memory, which is 0.
        (self.0 ^ self.0 >> 32) | 1 << 63
    }
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    fn lane() -> [AtomicU64; CELL_WORDS] {
        core::array::from_fn(|_| AtomicU64::new(0))
    }

    #[test]
    fn a_cell_is_read_as_it_was_written() {
        for len in [0, 1, 7, 8, 9, INLINE_BYTES_MAX] {
            let bytes: [u8; INLINE_BYTES_MAX] = core::array::from_fn(|index| index as u8);
            let body = Inline::new(&bytes[..len]).unwrap();
            let cell = LaneCell { kind: 2, status: 1, handler: 77, token: u64::MAX, ack: 5, body };
            let words = lane();
            assert_eq!(cell.write(&words, 9, Defect::None), 32 + (len as u64).next_multiple_of(8));
            let read = LaneCell::read(&words, 9, Defect::None).unwrap();
            assert_eq!((read.handler, read.token, read.ack), (77, u64::MAX, 5));
            assert_eq!(*read.body, bytes[..len]);
            assert!(
                LaneCell::read(&words, 9 + 16, Defect::None).is_none(),
                "a cell of the next lap"
            );
        }
        assert!(Inline::new(&[0; INLINE_BYTES_MAX + 1]).is_none());
    }

    #[test]
    fn a_torn_cell_is_not_read() {
        let words = lane();
        let cell = |byte: u8| LaneCell {
            kind: 2,
            status: 0,
            handler: 1,
            token: u64::from(byte),
            ack: 0,
            body: Inline::new(&[byte; 64]).unwrap(),
        };
        for old in 0..12 {
            cell(7).write(&words, 0, Defect::None);
            let before = words[old].load(Ordering::Relaxed);
            cell(8).write(&words, 16, Defect::None);
            let after = words[old].swap(before, Ordering::Relaxed);
            assert_ne!(before, after, "word {old}");
            assert!(LaneCell::read(&words, 16, Defect::None).is_none(), "word {old}");
        }
    }
}
