//! The table of the arrays that ranks have made alone.

use super::Distribution;
use tsumugi_gas::page::{Homes, PageShape};

/// The handle by which other ranks open an array: a word, which may be stored and
/// sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayHandle(pub(super) u64);

/// A local copy of the table, while the lock is held.
pub(super) struct ArrayTable {
    /// The handle that was assigned last.
    pub(super) last: u64,
    /// The offset from which on the memory was never used.
    pub(super) fresh_from: u64,
    pub(super) records: Vec<ArrayRecord>,
}

/// An entry of the table: one array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ArrayRecord {
    pub(super) handle: u64,
    pub(super) start: u64,
    /// The number of ranks that have the array.
    pub(super) users: u64,
    pub(super) len: u64,
    pub(super) page_len: u64,
    pub(super) element_bytes: u64,
    pub(super) slots: u64,
    pub(super) frames: u64,
    pub(super) is_cyclic: u64,
}

impl ArrayHandle {
    /// The handle as a word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The handle from a word. A word that stands for no array is refused by
    /// [`Arrays::open`](super::Arrays::open).
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl ArrayTable {
    pub(super) fn of_words(words: &[u64; TABLE_WORDS]) -> Self {
        let (records, _) = words[TABLE_HEAD..].as_chunks::<RECORD_WORDS>();
        let records = records.iter().map(ArrayRecord::of_words);
        let records = records.take_while(|record| record.handle != 0).collect();
        Self { last: words[0], fresh_from: words[1], records }
    }

    pub(super) fn to_words(&self) -> [u64; TABLE_WORDS] {
        let mut words = [0; TABLE_WORDS];
        words[..TABLE_HEAD].copy_from_slice(&[self.last, self.fresh_from]);
        let (places, _) = words[TABLE_HEAD..].as_chunks_mut::<RECORD_WORDS>();
        for (place, record) in places.iter_mut().zip(&self.records) {
            *place = record.to_words();
        }
        words
    }

    pub(super) fn find(&mut self, handle: ArrayHandle) -> Option<&mut ArrayRecord> {
        let mut records = self.records.iter_mut();
        records.find(|record| record.handle == handle.0)
    }
}

impl ArrayRecord {
    pub(super) fn shape(&self, ranks: u32) -> PageShape {
        let first = if self.is_cyclic == 0 { Distribution::Block } else { Distribution::Cyclic };
        PageShape {
            homes: Homes::new(ranks, self.len.div_ceil(self.page_len), first),
            page_bytes: self.page_len * self.element_bytes,
            slots: self.slots as u32,
            frames: self.frames as u32,
        }
    }

    pub(super) fn bytes(&self, ranks: u32) -> u64 {
        self.shape(ranks).bytes().next_multiple_of(LINE)
    }

    pub(super) const fn of_words(words: &[u64; RECORD_WORDS]) -> Self {
        let [handle, start, users, len, page_len, element_bytes, slots, frames, is_cyclic] = *words;
        Self { handle, start, users, len, page_len, element_bytes, slots, frames, is_cyclic }
    }

    pub(super) const fn to_words(self) -> [u64; RECORD_WORDS] {
        let Self { handle, start, users, len, page_len, .. } = self;
        let Self { element_bytes, slots, frames, is_cyclic, .. } = self;
        [handle, start, users, len, page_len, element_bytes, slots, frames, is_cyclic]
    }
}

/// The maximum number of arrays at a time.
pub(super) const RECORDS: usize = 100;
pub(super) const RECORD_WORDS: usize = 9;
/// The words before the records: the last handle, and the start of the fresh
/// memory.
pub(super) const TABLE_HEAD: usize = 2;
pub(super) const TABLE_WORDS: usize = TABLE_HEAD + RECORDS * RECORD_WORDS;
pub(super) const TABLE_BYTES: u64 = (TABLE_WORDS as u64 * 8).next_multiple_of(LINE);
pub(super) const LINE: u64 = 64;
