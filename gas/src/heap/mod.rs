//! Remote malloc and free: any rank takes and gives back memory of any other rank,
//! by atomics on words of that rank's heap. The processor of that rank takes no
//! part.
//!
//! A heap consists of granules of 64 bytes, of 4 KiB, of 256 KiB and of 16 MiB; it
//! has as many of these kinds as its size allows. 64 granules have a word in which a
//! bit is set if a granule is taken, and a word in which a bit is set if a block
//! ends there:
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
//!            and      used: from here on the block is free
//! ```
//!
//! A compare-and-swap that fails returns the word's value, which the next try uses.
//! If a word has no room, the next word is tried; if a kind has no room, the next
//! larger kind. A block lies in granules of one word. The smallest kind for which
//! the block fits in one word is tried first, so that less than one granule is
//! wasted per block.
//!
//! [`HeapMalloc`] and [`HeapFree`] do no IO: they return the next atomic and take its
//! result. If a rank dies between two of them, the block stays taken.
//!
//! Progress: lock-free: of all ranks that want granules of a word, one gets them.

use crate::address::{GlobalAddr, Split};
use crate::request::WordRequest;
use core::fmt;
use tsumugi_core::mem::AddrError;
use tsumugi_core::mutate;
use tsumugi_core::op::Kind as Atomic;

/// A heap in a region of some rank. The region must have been zero at the start.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    split: Split,
    base: GlobalAddr,
    /// The number of words of each kind.
    words: [u32; KINDS],
    /// The offsets of each kind's bits and granules, in bytes.
    bits_at: [u64; KINDS],
    granules_at: [u64; KINDS],
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapStep<T> {
    /// Carry out this atomic; its old value is the next answer.
    Do(WordRequest),
    /// The result.
    Done(T),
}

/// Why a block was not taken, or not given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapError {
    /// No run of free granules is long enough.
    NoMemory {
        /// The size of the request.
        bytes: u64,
    },
    /// This heap has no blocks of this size.
    TooLarge {
        /// The size of the request.
        bytes: u64,
        /// The size of the largest block of this heap.
        bytes_max: u64,
    },
    /// No block begins at this address.
    NoBlock {
        /// The address that was given back.
        addr: GlobalAddr,
    },
    /// An access to the heap failed.
    Access(AddrError<GlobalAddr>),
}

/// A block that is being taken.
#[derive(Clone, Copy, Debug)]
pub struct HeapMalloc {
    heap: Heap,
    bytes: u64,
    kind: usize,
    /// The number of words of this kind that were tried, and the word that is tried
    /// now.
    tried: u32,
    word: u32,
    /// The last known value of the word, and the value that it is to get.
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
pub struct HeapFree {
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
    /// The heap in the `bytes` zero bytes at `base`, aligned to 8. The value is a
    /// view, of which each rank makes its own. Each kind of granules gets an equal
    /// share.
    pub const fn new(split: Split, base: GlobalAddr, bytes: u64) -> Self {
        let mut kinds = 0;
        // A kind is used if four words of it fit in its share.
        while kinds < KINDS && bytes / (kinds as u64 + 1) >= 4 * word_bytes(kinds) {
            kinds += 1;
        }
        let kinds = if kinds == 0 { 1 } else { kinds };
        let (mut words, mut bits_at, mut granules_at) = ([0; KINDS], [0; KINDS], [0; KINDS]);
        let share = bytes / kinds as u64;
        let (mut kind, mut at) = (0, 0);
        while kind < kinds {
            // 16 bytes of bits for each word; a granule is reserved for the
            // alignment.
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

    /// Begins to take a block of `bytes` bytes. Callers with different `hint`s try
    /// different words first.
    pub const fn malloc(&self, bytes: u64, hint: u32) -> HeapMalloc {
        let (heap, kind) = (*self, self.kind_for(bytes));
        let phase = Taking::Begin;
        HeapMalloc { heap, bytes, kind, tried: 0, word: hint, known: 0, wanted: 0, phase }
    }

    /// Begins to give back the block at `addr`.
    pub const fn free(&self, addr: GlobalAddr) -> HeapFree {
        HeapFree { heap: *self, addr, phase: Giving::Begin, kind: 0, word: 0, run: 0 }
    }

    /// The size of the largest possible block.
    pub fn block_bytes_max(&self) -> u64 {
        (0..KINDS).rev().find(|&kind| self.words[kind] > 0).map_or(0, word_bytes)
    }

    /// The smallest kind for which `bytes` bytes fit in one word.
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
        // The region has these bytes, so an address has room for them; if it has
        // not, every access to null fails.
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

impl HeapMalloc {
    /// The next step; `answer` is the result of the atomic before, and `None` at
    /// first.
    pub fn step(
        &mut self,
        answer: Option<Result<u64, AddrError<GlobalAddr>>>,
    ) -> HeapStep<Result<GlobalAddr, HeapError>> {
        let old = match answer.transpose() {
            Ok(old) => old.unwrap_or(0),
            Err(error) => return HeapStep::Done(Err(HeapError::Access(error))),
        };
        match self.phase {
            Taking::Begin => {
                if self.kind == KINDS {
                    let bytes_max = self.heap.block_bytes_max();
                    return HeapStep::Done(Err(HeapError::TooLarge {
                        bytes: self.bytes,
                        bytes_max,
                    }));
                }
                self.word %= self.heap.words[self.kind];
                self.phase = Taking::Used;
                // The word is expected to be empty; if it is not, the answer has its
                // value.
                self.try_word(0)
            }
            Taking::Used if old == self.known => {
                self.phase = Taking::Ends;
                let run = self.wanted & !self.known;
                let last = 1u64 << (63 - run.leading_zeros());
                let ends = self.heap.ends(self.kind, self.word);
                HeapStep::Do(WordRequest::atomic(Atomic::FetchOr, ends, last))
            }
            Taking::Used => self.try_word(old),
            Taking::Ends => {
                let first = (self.wanted & !self.known).trailing_zeros();
                let granule = u64::from(self.word) * 64 + u64::from(first);
                let offset = self.heap.granules_at[self.kind] + granule * granule_bytes(self.kind);
                HeapStep::Done(Ok(self.heap.at(offset)))
            }
        }
    }

    /// Tries to take granules of a word with the value `known`, or of the next word.
    fn try_word(&mut self, known: u64) -> HeapStep<Result<GlobalAddr, HeapError>> {
        let granules = self.bytes.max(1).div_ceil(granule_bytes(self.kind)) as u32;
        if let Some(run) = free_run(known, granules) {
            (self.known, self.wanted) = (known, known | run);
            let used = self.heap.used(self.kind, self.word);
            return HeapStep::Do(WordRequest::compare_swap(used, known, self.wanted));
        }
        self.tried += 1;
        if self.tried == self.heap.words[self.kind] {
            self.tried = 0;
            self.kind += 1;
            while self.kind < KINDS && self.heap.words[self.kind] == 0 {
                self.kind += 1;
            }
            if self.kind == KINDS {
                return HeapStep::Done(Err(HeapError::NoMemory { bytes: self.bytes }));
            }
        }
        self.word = (self.word + 1) % self.heap.words[self.kind];
        // The word is expected to be empty, where a run fits.
        self.try_word(0)
    }
}

impl HeapFree {
    /// The next step, like [`HeapMalloc::step`].
    pub fn step(
        &mut self,
        answer: Option<Result<u64, AddrError<GlobalAddr>>>,
    ) -> HeapStep<Result<(), HeapError>> {
        let no_block = HeapStep::Done(Err(HeapError::NoBlock { addr: self.addr }));
        let old = match answer.transpose() {
            Ok(old) => old.unwrap_or(0),
            Err(error) => return HeapStep::Done(Err(HeapError::Access(error))),
        };
        let ends = || self.heap.ends(self.kind, self.word);
        let used = || self.heap.used(self.kind, self.word);
        let is_swapped = mutate!("gas_heap_used_first": false => true);
        match self.phase {
            Giving::Begin => {
                let Some((kind, word, bit)) = self.heap.locate(self.addr) else { return no_block };
                (self.kind, self.word, self.run) = (kind, word, 1 << bit);
                self.phase = Giving::Length;
                let ends = self.heap.ends(kind, word);
                HeapStep::Do(WordRequest::atomic(Atomic::GetWord, ends, 0u64))
            }
            Giving::Length => {
                let first = self.run.trailing_zeros();
                let Some(last) = lowest_from(old, first) else { return no_block };
                self.run = u64::MAX << first & u64::MAX >> (63 - last);
                let end = 1u64 << last;
                let word = if is_swapped {
                    WordRequest::atomic(Atomic::FetchAnd, used(), !self.run)
                } else {
                    WordRequest::atomic(Atomic::FetchAnd, ends(), !end)
                };
                self.phase = Giving::Ends;
                HeapStep::Do(word)
            }
            Giving::Ends => {
                let end = 1u64 << (63 - self.run.leading_zeros());
                if old & end == 0 {
                    // Another caller has given it back before.
                    return no_block;
                }
                let word = if is_swapped {
                    WordRequest::atomic(Atomic::FetchAnd, ends(), !end)
                } else {
                    WordRequest::atomic(Atomic::FetchAnd, used(), !self.run)
                };
                self.phase = Giving::Used;
                HeapStep::Do(word)
            }
            Giving::Used => HeapStep::Done(Ok(())),
        }
    }
}

/// The lowest run of `granules` zero bits, as a mask.
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

/// The bytes of the granules for which one word has bits.
const fn word_bytes(kind: usize) -> u64 {
    64 * granule_bytes(kind)
}

impl fmt::Display for HeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMemory { bytes } => {
                write!(f, "{bytes} bytes: the heap has no free block of this size")
            }
            Self::TooLarge { bytes, bytes_max } => {
                write!(f, "{bytes} bytes: the largest block of this heap has {bytes_max} bytes")
            }
            Self::NoBlock { addr } => write!(f, "{addr}: no block of the heap begins here"),
            Self::Access(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for HeapError {}

const KINDS: usize = 4;
const GRANULE: u64 = 64;

#[cfg(test)]
mod tests;
