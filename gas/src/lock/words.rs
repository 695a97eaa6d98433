//! A lock: where its words are, and the operations on them that are enough when no
//! other claim is in the way.

use super::count;
use super::kind::{LockKind, LockMode};
use super::node::NodeTable;
use tsumugi_core::mem::RemoteAddr;
use tsumugi_core::op::{Kind as OpKind, Op};

/// A lock. All ranks have equal values of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    /// The words of the lock: [`LOCK_BYTES`], zero at first.
    pub home: RemoteAddr,
    /// The queue nodes in which claims wait.
    pub nodes: NodeTable,
    /// Which claims wait for which.
    pub kind: LockKind,
}

#[derive(Clone, Copy)]
pub(super) enum LockWord {
    Count = 0,
    Tail = 1,
    Head = 2,
    Readers = 3,
    OtherReaders = 4,
}

impl Lock {
    /// The same lock after `epoch` deaths. Its words lie at another place of its
    /// home, which has [`LOCK_BYTES`] for each epoch.
    #[must_use]
    pub const fn epoch(self, epoch: u64) -> Self {
        let offset = self.home.offset + epoch * LOCK_BYTES;
        Self { home: RemoteAddr { offset, ..self.home }, ..self }
    }

    /// The operation by which a claim has the lock if no other claim has it, if one
    /// operation is enough for this kind and mode. A caller that carries it out
    /// itself needs a claim and a node only if [`has`](Self::has) then returns
    /// false.
    #[inline]
    pub fn first_op(&self, mode: LockMode) -> Option<Op> {
        self.first(mode, &OpOnly)
    }

    /// Carries out [`first_op`](Self::first_op) by `by`; a separate copy of the code
    /// for each kind.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn first<C: WordOps>(&self, mode: LockMode, by: &C) -> Option<C::Ended> {
        let count = self.word(LockWord::Count);
        match (self.kind, mode) {
            (LockKind::Mutex, _) => None,
            (kind, LockMode::Shared) => Some(by.adds(count, count::arrive(kind))),
            (LockKind::Readers, _) => Some(by.swaps(count, 0, count::INSIDE)),
            _ => None,
        }
    }

    /// Whether a caller that found `old` by [`first_op`](Self::first_op) has the
    /// lock. If not, the caller must begin a claim with
    /// [`begin_found`](super::LockClaim::begin_found).
    #[inline]
    pub const fn has(&self, mode: LockMode, old: u64) -> bool {
        match mode {
            LockMode::Shared => !count::blocks(self.kind, old),
            LockMode::Exclusive => old == 0,
        }
    }

    /// The operation that gives back a lock that was taken by
    /// [`first_op`](Self::first_op) alone.
    #[inline]
    pub fn last_op(&self, mode: LockMode) -> Option<Op> {
        self.last(mode, &OpOnly)
    }

    /// Carries out [`last_op`](Self::last_op) by `by`, as [`first`](Self::first)
    /// does.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn last<C: WordOps>(&self, mode: LockMode, by: &C) -> Option<C::Ended> {
        let count = self.word(LockWord::Count);
        match (self.kind, mode) {
            (LockKind::Mutex, _) => None,
            (kind, LockMode::Shared) => Some(by.adds(count, count::depart(kind))),
            (LockKind::Readers, _) => Some(by.swaps(count, count::INSIDE, 0)),
            _ => None,
        }
    }

    /// Whether the lock is given back after a caller found `old` by
    /// [`last_op`](Self::last_op). If not, other claims wait, and the caller must go
    /// on with [`release_found`](super::LockClaim::release_found).
    #[inline]
    pub const fn is_given_back(&self, mode: LockMode, old: u64) -> bool {
        match mode {
            LockMode::Shared => !count::was_last(self.kind, old),
            LockMode::Exclusive => old == count::INSIDE,
        }
    }

    pub(super) const fn word(&self, word: LockWord) -> RemoteAddr {
        RemoteAddr { offset: self.home.offset + word as u64 * 8, ..self.home }
    }
}

/// Carries operations out, or returns them.
pub(super) trait WordOps {
    type Ended;

    fn adds(&self, at: RemoteAddr, delta: u64) -> Self::Ended;

    fn swaps(&self, at: RemoteAddr, expected: u64, new: u64) -> Self::Ended;
}

struct OpOnly;

impl WordOps for OpOnly {
    type Ended = Op;

    fn adds(&self, at: RemoteAddr, delta: u64) -> Op {
        Op::atomic(OpKind::FetchAdd, at, delta)
    }

    fn swaps(&self, at: RemoteAddr, expected: u64, new: u64) -> Op {
        Op::compare_swap(at, expected, new)
    }
}

/// Bytes of registered memory that a lock takes, for each epoch: one cache line.
pub const LOCK_BYTES: u64 = 64;
