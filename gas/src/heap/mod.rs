//! Memory of any rank, taken and given back by any other: remote malloc and
//! free, made of atomics on words of the rank's heap. Its processor takes no
//! part.
//!
//! A heap is cut into granules of 64 bytes, of 4 KiB, of 256 KiB and of
//! 16 MiB, as many kinds as its size is good for. 64 granules have a word in
//! which a bit says that one is taken, and a word in which a bit says that a
//! block ends there:
//!
//! ```text
//!   used   0 0 1 1 1 1 0 1 1 0      two blocks: of four granules, and of two
//!   ends   0 0 1 0 0 0 0 1 0 0      (from right to left)
//!
//!   heap:  used, ends of each kind │ granules of 64 B │ of 4 KiB │ ...
//!
//!   malloc   compare-swap used: the bits of a free run       one atomic, and
//!            or       ends: the last of them                 one more
//!   free     read     ends: how long the block is
//!            and      ends, then
//!            and      used: from here on somebody may have it
//! ```
//!
//! A compare-swap that fails brings the word as it is, and the next try goes by
//! that; a word without room is left for the next one, a kind without room for
//! the next larger. A block lies in the granules of one word: the smallest kind
//! that has room for it in a word is tried first, so that less than a granule
//! is lost at each block.
//!
//! [`Malloc`] and [`Free`] hold no socket: they say which atomic comes next and
//! are told what it brought. A rank that dies between two of them leaves the
//! block taken.
//!
//! Progress: lock-free: of those who want granules of a word one gets them.

use crate::address::{GlobalAddr, Split};
use crate::error::AccessError;
use crate::request::Word;
use core::fmt;
use tsumugi_core::op::Kind as Atomic;
use tsumugi_core::sync::mutant;

/// A heap in a region of some rank, which was zero at the start.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    split: Split,
    base: GlobalAddr,
    /// Words of each kind.
    words: [u32; KINDS],
    /// Where its bits and its granules begin, in bytes.
    bits_at: [u64; KINDS],
    granules_at: [u64; KINDS],
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// This atomic; its old value is the next answer.
    Do(Word),
    /// It is over.
    Done(T),
}

/// Why there is no block, or none to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapError {
    /// No run of free granules is long enough.
    NoMemory {
        /// What was asked for.
        bytes: u64,
    },
    /// No heap has blocks of this size.
    TooLarge {
        /// What was asked for.
        bytes: u64,
        /// The largest of this heap.
        bytes_max: u64,
    },
    /// No block begins at this address.
    NoBlock {
        /// What was given back.
        addr: GlobalAddr,
    },
    /// The heap itself was out of reach.
    Access(AccessError),
}

/// A block that is being taken.
#[derive(Clone, Copy, Debug)]
pub struct Malloc {
    heap: Heap,
    bytes: u64,
    kind: usize,
    /// Words of this kind that were tried, and the one tried now.
    tried: u32,
    word: u32,
    /// What the word was, and what it would become.
    known: u64,
    wanted: u64,
    phase: Taking,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    Begin,
    Used,
    Ends,
}

/// A block that is being given back.
#[derive(Clone, Copy, Debug)]
pub struct Free {
    heap: Heap,
    addr: GlobalAddr,
    phase: Giving,
    kind: usize,
    word: u32,
    run: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Giving {
    Begin,
    Length,
    Ends,
    Used,
}

impl Heap {
    /// The heap in the `bytes` zero bytes at `base`, aligned to 8: a view, of
    /// which each rank makes its own. Each kind of granule gets as much of it.
    pub const fn new(split: Split, base: GlobalAddr, bytes: u64) -> Self {
        let mut kinds = 0;
        // A kind is of use where some words of it fit.
        while kinds < KINDS && bytes / (kinds as u64 + 1) >= 4 * word_bytes(kinds) {
            kinds += 1;
        }
        let kinds = if kinds == 0 { 1 } else { kinds };
        let (mut words, mut bits_at, mut granules_at) = ([0; KINDS], [0; KINDS], [0; KINDS]);
        let share = bytes / kinds as u64;
        let (mut kind, mut at) = (0, 0);
        while kind < kinds {
            // 16 bytes of bits for each word, and what alignment takes.
            let count = share.saturating_sub(GRANULE) / (word_bytes(kind) + 16);
            words[kind] = count as u32;
            bits_at[kind] = at;
            at += count * 16;
            kind += 1;
        }
        at = at.next_multiple_of(GRANULE);
        kind = 0;
        while kind < kinds {
            granules_at[kind] = at;
            at += words[kind] as u64 * word_bytes(kind);
            kind += 1;
        }
        Self { split, base, words, bits_at, granules_at }
    }

    /// Begins to take a block of `bytes` bytes. Callers with different `hint`s
    /// look in different words first.
    pub const fn malloc(&self, bytes: u64, hint: u32) -> Malloc {
        let (heap, kind) = (*self, self.kind_for(bytes));
        let phase = Taking::Begin;
        Malloc { heap, bytes, kind, tried: 0, word: hint, known: 0, wanted: 0, phase }
    }

    /// Begins to give the block at `addr` back.
    pub const fn free(&self, addr: GlobalAddr) -> Free {
        Free { heap: *self, addr, phase: Giving::Begin, kind: 0, word: 0, run: 0 }
    }

    /// The largest block there can be.
    pub fn block_bytes_max(&self) -> u64 {
        (0..KINDS).rev().find(|&kind| self.words[kind] > 0).map_or(0, word_bytes)
    }

    /// The smallest kind in one word of which there is room for so much.
    const fn kind_for(&self, bytes: u64) -> usize {
        let mut kind = 0;
        while kind < KINDS && (self.words[kind] == 0 || word_bytes(kind) < bytes) {
            kind += 1;
        }
        kind
    }

    fn used(&self, kind: usize, word: u32) -> GlobalAddr {
        self.at(self.bits_at[kind] + u64::from(word) * 16)
    }

    fn ends(&self, kind: usize, word: u32) -> GlobalAddr {
        self.at(self.bits_at[kind] + u64::from(word) * 16 + 8)
    }

    fn at(&self, offset: u64) -> GlobalAddr {
        // The region has so many bytes, so an address has room for them; if it
        // has not, every access says so.
        self.split.add(self.base, offset as i64).unwrap_or(GlobalAddr::NULL)
    }

    /// The kind, the word and the bit of a block's first granule.
    fn locate(&self, addr: GlobalAddr) -> Option<(usize, u32, u32)> {
        let offset = u64::try_from(self.split.distance(self.base, addr)?).ok()?;
        let kind = (0..KINDS).find(|&kind| {
            let first = self.granules_at[kind];
            let bytes = u64::from(self.words[kind]) * word_bytes(kind);
            offset >= first && offset - first < bytes
        })?;
        let within = offset - self.granules_at[kind];
        let granule = within / granule_bytes(kind);
        let is_first = within.is_multiple_of(granule_bytes(kind));
        is_first.then_some((kind, (granule / 64) as u32, (granule % 64) as u32))
    }
}

impl Malloc {
    /// What comes next; `answer` is what the atomic before brought, and nothing
    /// at first.
    pub fn step(
        &mut self,
        answer: Option<Result<u64, AccessError>>,
    ) -> Step<Result<GlobalAddr, HeapError>> {
        let old = match answer.transpose() {
            Ok(old) => old.unwrap_or(0),
            Err(error) => return Step::Done(Err(HeapError::Access(error))),
        };
        match self.phase {
            Taking::Begin => {
                if self.kind == KINDS {
                    let bytes_max = self.heap.block_bytes_max();
                    return Step::Done(Err(HeapError::TooLarge { bytes: self.bytes, bytes_max }));
                }
                self.word %= self.heap.words[self.kind];
                self.phase = Taking::Used;
                // Taken for empty: if it is not, the answer tells.
                self.try_word(0)
            }
            Taking::Used if old == self.known => {
                self.phase = Taking::Ends;
                let run = self.wanted & !self.known;
                let last = 1u64 << (63 - run.leading_zeros());
                let ends = self.heap.ends(self.kind, self.word);
                Step::Do(Word::atomic(Atomic::FetchOr, ends, last))
            }
            Taking::Used => self.try_word(old),
            Taking::Ends => {
                let first = (self.wanted & !self.known).trailing_zeros();
                let granule = u64::from(self.word) * 64 + u64::from(first);
                let offset = self.heap.granules_at[self.kind] + granule * granule_bytes(self.kind);
                Step::Done(Ok(self.heap.at(offset)))
            }
        }
    }

    /// Tries for granules of a word that is `known`, or of the next.
    fn try_word(&mut self, known: u64) -> Step<Result<GlobalAddr, HeapError>> {
        let granules = self.bytes.max(1).div_ceil(granule_bytes(self.kind)) as u32;
        if let Some(run) = free_run(known, granules) {
            (self.known, self.wanted) = (known, known | run);
            let used = self.heap.used(self.kind, self.word);
            return Step::Do(Word::compare_swap(used, known, self.wanted));
        }
        self.tried += 1;
        if self.tried == self.heap.words[self.kind] {
            self.tried = 0;
            self.kind += 1;
            while self.kind < KINDS && self.heap.words[self.kind] == 0 {
                self.kind += 1;
            }
            if self.kind == KINDS {
                return Step::Done(Err(HeapError::NoMemory { bytes: self.bytes }));
            }
        }
        self.word = (self.word + 1) % self.heap.words[self.kind];
        // A run fits in an empty word.
        self.try_word(0)
    }
}

impl Free {
    /// As [`Malloc::step`].
    pub fn step(
        &mut self,
        answer: Option<Result<u64, AccessError>>,
    ) -> Step<Result<(), HeapError>> {
        let no_block = Step::Done(Err(HeapError::NoBlock { addr: self.addr }));
        let old = match answer.transpose() {
            Ok(old) => old.unwrap_or(0),
            Err(error) => return Step::Done(Err(HeapError::Access(error))),
        };
        let ends = || self.heap.ends(self.kind, self.word);
        let used = || self.heap.used(self.kind, self.word);
        let is_swapped = mutant("gas_heap_used_first");
        match self.phase {
            Giving::Begin => {
                let Some((kind, word, bit)) = self.heap.locate(self.addr) else { return no_block };
                (self.kind, self.word, self.run) = (kind, word, 1 << bit);
                self.phase = Giving::Length;
                let ends = self.heap.ends(kind, word);
                Step::Do(Word::atomic(Atomic::GetWord, ends, 0u64))
            }
            Giving::Length => {
                let first = self.run.trailing_zeros();
                let Some(last) = lowest_from(old, first) else { return no_block };
                self.run = u64::MAX << first & u64::MAX >> (63 - last);
                let end = 1u64 << last;
                let word = if is_swapped {
                    Word::atomic(Atomic::FetchAnd, used(), !self.run)
                } else {
                    Word::atomic(Atomic::FetchAnd, ends(), !end)
                };
                self.phase = Giving::Ends;
                Step::Do(word)
            }
            Giving::Ends => {
                let end = 1u64 << (63 - self.run.leading_zeros());
                if old & end == 0 {
                    // Somebody else has given it back.
                    return no_block;
                }
                let word = if is_swapped {
                    Word::atomic(Atomic::FetchAnd, ends(), !end)
                } else {
                    Word::atomic(Atomic::FetchAnd, used(), !self.run)
                };
                self.phase = Giving::Used;
                Step::Do(word)
            }
            Giving::Used => Step::Done(Ok(())),
        }
    }
}

/// The lowest run of so many zero bits, as a mask.
fn free_run(word: u64, granules: u32) -> Option<u64> {
    if granules > 64 {
        return None;
    }
    let mask = u64::MAX >> (64 - granules);
    (0..=64 - granules).map(|first| mask << first).find(|run| word & run == 0)
}

/// The lowest bit set from `first` on.
fn lowest_from(word: u64, first: u32) -> Option<u32> {
    let rest = word & u64::MAX << first;
    (rest != 0).then(|| rest.trailing_zeros())
}

const fn granule_bytes(kind: usize) -> u64 {
    GRANULE << (6 * kind)
}

/// Bytes of the granules that one word has bits for.
const fn word_bytes(kind: usize) -> u64 {
    64 * granule_bytes(kind)
}

impl fmt::Display for HeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMemory { bytes } => write!(f, "no {bytes} bytes in a row are free"),
            Self::TooLarge { bytes, bytes_max } => {
                write!(f, "{bytes} bytes: the heap has blocks of up to {bytes_max}")
            }
            Self::NoBlock { addr } => write!(f, "{addr}: no block begins there"),
            Self::Access(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for HeapError {}

const KINDS: usize = 4;
const GRANULE: u64 = 64;

#[cfg(test)]
mod tests;
