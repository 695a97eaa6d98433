//! The requests to the global memory: copies, atomics, fences.
//!
//! ```text
//!  Copy    dst ◄── src    one block, or `count` blocks at two strides
//!  List    dst ◄── src    as many blocks as a list in global memory has
//!  WordRequest    4 or 8 bytes   an atomic; its old value is the result
//!  Fence   nothing        ends when its condition holds
//! ```
//!
//! A copy can change a word when it has landed: that is a put with notification,
//! which wakes the threads that wait for the word at the word's rank.

use crate::address::{GlobalAddr, Split};
use tsumugi_core::mem::{Rank, RemoteAddr, Width, Word as Integer};
use tsumugi_core::op::{Kind, Op};

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GlobalRequest {
    /// Copies blocks.
    Copy(Copy),
    /// Copies the blocks of a list.
    List(ListCopy),
    /// Changes or reads a word.
    Word(WordRequest),
    /// Does nothing, and ends when its condition holds.
    Fence,
}

/// A copy of blocks between any two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    pub(crate) dst: GlobalAddr,
    pub(crate) src: GlobalAddr,
    pub(crate) bytes: u64,
    pub(crate) count: u32,
    pub(crate) dst_stride: i64,
    pub(crate) src_stride: i64,
    pub(crate) flag: GlobalAddr,
    pub(crate) add: u64,
}

/// A copy of the blocks of a list, all of them from one rank to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCopy {
    /// The address of the entries: [`ENTRY_BYTES`] bytes each, destination, source
    /// and length as words.
    pub entries: GlobalAddr,
    /// The number of entries.
    pub count: u32,
    /// The rank that has all sources in its memory.
    pub from: Rank,
    /// The rank that has all destinations in its memory.
    pub to: Rank,
}

/// An operation on one word of any rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordRequest {
    pub(crate) target: GlobalAddr,
    pub(crate) kind: Kind,
    pub(crate) is_wide: bool,
    pub(crate) operand: u64,
    pub(crate) compare: u64,
    pub(crate) notify: bool,
}

/// Bytes of an entry of a list.
pub const ENTRY_BYTES: u64 = 24;

impl GlobalRequest {
    /// Whether the request reads or changes memory of `rank`.
    pub(crate) fn touches(&self, split: Split, rank: Rank) -> bool {
        let is_its = |addr| split.rank(addr) == Some(rank);
        match self {
            Self::Copy(copy) => is_its(copy.src) || is_its(copy.dst) || is_its(copy.flag),
            Self::List(list) => list.from == rank || list.to == rank || is_its(list.entries),
            Self::Word(word) => is_its(word.target),
            Self::Fence => false,
        }
    }
}

impl Copy {
    /// A copy of `bytes` bytes from `src` to `dst`.
    pub const fn new(dst: GlobalAddr, src: GlobalAddr, bytes: u64) -> Self {
        let (flag, add) = (GlobalAddr::NULL, 0);
        Self { dst, src, bytes, count: 1, dst_stride: 0, src_stride: 0, flag, add }
    }

    /// A copy of `count` such blocks; each begins that many bytes after the one
    /// before.
    #[must_use]
    pub const fn strided(self, count: u32, dst_stride: i64, src_stride: i64) -> Self {
        Self { count, dst_stride, src_stride, ..self }
    }

    /// When all of the copy has landed, adds to the word of 8 bytes at `flag` and
    /// wakes the threads that wait for the word.
    #[must_use]
    pub const fn then_add(self, flag: GlobalAddr, add: u64) -> Self {
        Self { flag, add, ..self }
    }

    /// Destination, source and bytes of a copy of one block that nothing follows.
    pub const fn plain(&self) -> Option<(GlobalAddr, GlobalAddr, u64)> {
        match self.is_one_block() && self.flag.is_null() {
            true => Some((self.dst, self.src, self.bytes)),
            false => None,
        }
    }

    pub(crate) const fn is_one_block(&self) -> bool {
        self.count == 1
    }
}

impl WordRequest {
    /// An atomic of `kind` on the `T` at `target`.
    pub fn atomic<T: Integer>(kind: Kind, target: GlobalAddr, operand: T) -> Self {
        Self {
            target,
            kind,
            is_wide: T::WIDTH as u64 == 8,
            operand: operand.to_bits(),
            compare: 0,
            notify: false,
        }
    }

    /// Stores `new` in the `T` at `target` if it is `expected`.
    pub fn compare_swap<T: Integer>(target: GlobalAddr, expected: T, new: T) -> Self {
        let word = Self::atomic(Kind::CompareSwap, target, new);
        Self { compare: expected.to_bits(), ..word }
    }

    /// The same operation, which also wakes the threads that wait for the word.
    #[must_use]
    pub const fn notifying(self) -> Self {
        Self { notify: true, ..self }
    }

    /// The address of the word.
    pub const fn target(&self) -> GlobalAddr {
        self.target
    }

    /// Whether the operation may change the word.
    pub const fn writes(&self) -> bool {
        !matches!(self.kind, Kind::GetWord)
    }

    /// The operation on the place that the address stands for.
    pub fn at(&self, remote: RemoteAddr) -> Op {
        let op = match self.kind {
            Kind::CompareSwap if self.is_wide => {
                Op::compare_swap(remote, self.compare, self.operand)
            }
            Kind::CompareSwap => Op::compare_swap(remote, self.compare as u32, self.operand as u32),
            Kind::GetWord => Op::get_word(remote, self.width()),
            Kind::PutWord => Op::put_word(remote, self.width(), self.operand),
            kind if self.is_wide => Op::atomic(kind, remote, self.operand),
            kind => Op::atomic(kind, remote, self.operand as u32),
        };
        if self.notify { op.notifying() } else { op }
    }

    /// The request for an operation on a word. `None`: the operation moves bytes.
    pub(crate) fn of(op: &Op, target: GlobalAddr) -> Option<Self> {
        let is_wide = op.width()? == Width::W8;
        let (operand, compare) = (op.operand(), op.compare());
        Some(Self { target, kind: op.kind, is_wide, operand, compare, notify: op.notify })
    }

    /// The width of the word.
    pub const fn width(&self) -> Width {
        if self.is_wide { Width::W8 } else { Width::W4 }
    }
}

impl From<Copy> for GlobalRequest {
    fn from(copy: Copy) -> Self {
        Self::Copy(copy)
    }
}

impl From<ListCopy> for GlobalRequest {
    fn from(list: ListCopy) -> Self {
        Self::List(list)
    }
}

impl From<WordRequest> for GlobalRequest {
    fn from(word: WordRequest) -> Self {
        Self::Word(word)
    }
}
