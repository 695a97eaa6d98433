//! Locks over remote atomics: a lock is words in some rank's memory, and
//! whoever wants it asks them. The rank that they are in takes no part, and a
//! claim that has to wait sleeps until a word of its own memory is written.
//!
//! | module | what it is |
//! |---|---|
//! | [`node`] | queue nodes: where a claim waits |
//! | [`claim`] | one claim to one lock: mutex, or shared and exclusive |
//! | [`drive`] | claims that block, on memory that can be loaded and stored |
//! | [`tree`] | the tree of a group lock |
//! | [`vertex`] | a vertex of it, run by one rank |
//! | [`entry`] | one rank that goes in and out |
//! | [`access`] | what a window asks for, by any of three designs |
//!
//! ```text
//!  words of a lock             words of a queue node, at each claimant
//!    count   readers, flags      state   what it may do
//!    tail    last writer  ───►   next    who is behind it
//!    head    first writer
//!    readers, other readers: lists of those that wait
//! ```
//!
//! Which claims wait for which is the lock's [`Kind`]. The protocols do no IO:
//! [`Claim::poll_op`] gives operations, completions and changes of the own
//! word go in. Whoever drives them posts the operations where that word's
//! atomics are carried out (all of them, and those to the own rank too, by
//! one agent), with remote completion, and waits with `core::signal`.
//!
//! What is done under a lock must have completed at the remote end before the
//! lock is given back: flush first.
//!
//! # When a rank dies
//!
//! It may have held the lock, or be in a queue. Every claim that waits then
//! ends with [`AddrError::PeerLost`], which names it; so do operations on its
//! memory. Those who hold the lock keep it and give it back. The lock itself
//! is of no use any more, until all who live have ended their claims and agree
//! on the next [epoch](Lock::epoch): other words, zero as at the start, as if
//! nobody had ever held it. A rank that was
//! [given up](tsumugi_core::backend::Domain#a-rank-that-is-given-up) and lives may
//! still be inside, in the epoch before: nobody is inside of that one with it.
//!
//! Progress: blocking. Not contended, a fixed number of operations; the number
//! that a claim carries out for others is bounded by the number of those that
//! have given up waiting before it.
//!
//! # References
//!
//! J. M. Mellor-Crummey and M. L. Scott: Scalable reader-writer synchronization
//! for shared-memory multiprocessors. PPoPP 1991. B. B. Brandenburg and J. H.
//! Anderson: Spin-based reader-writer synchronization for multiprocessor
//! real-time systems. Real-Time Systems 46 (2010): phases. M. Hatanaka, A. Hori
//! and Y. Ishikawa, on locks over the atomics of FX100.

pub mod access;
mod backoff;
pub mod claim;
mod count;
pub mod drive;
pub mod entry;
pub mod node;
pub mod tree;
pub mod vertex;

pub use access::{Access, Design, Door, Plan, Refused, Waiting, Want};
pub use claim::{Claim, Ended, Mode, Standing, StepId};
pub use entry::{Entry, Place};
pub use node::{NODE_BYTES, NodeId, NodePool, NodeSlot, NodeTable};

pub use tree::{FAN_MAX, Tree, TreeError, VertexId};
pub use vertex::{Vertex, VertexStep};

#[cfg(doc)]
use tsumugi_core::mem::AddrError;
use tsumugi_core::mem::RemoteAddr;
use tsumugi_core::op::{Kind as OpKind, Op};

/// A lock, as everybody sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    /// Its words: [`LOCK_BYTES`], zero at first.
    pub home: RemoteAddr,
    /// Where claims wait.
    pub nodes: NodeTable,
    /// Who waits for whom.
    pub kind: Kind,
}

/// Who waits for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Everybody for everybody, first come, first served.
    Mutex,
    /// Readers for writers that are inside; writers for all readers. Writers
    /// may starve.
    Readers,
    /// Phases: a reader waits for one writer at most, a writer for the readers
    /// that were there before it and for the writers before it.
    Neutral,
    /// A writer that waits behind another has the lock before any reader.
    /// Readers may starve.
    Writers,
}

/// The two sides of a group lock. Those on one side are inside together, and
/// never with one of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Those that hold all targets, shared.
    All = 0,
    /// Those that hold some target exclusively.
    Exclusive = 1,
}

#[derive(Clone, Copy)]
enum Word {
    Count = 0,
    Tail = 1,
    Head = 2,
    Readers = 3,
    OtherReaders = 4,
}

impl Lock {
    /// The same lock after `epoch` deaths: it lives in other words of its
    /// home, of which there are [`LOCK_BYTES`] for each epoch.
    #[must_use]
    pub const fn epoch(self, epoch: u64) -> Self {
        let offset = self.home.offset + epoch * LOCK_BYTES;
        Self { home: RemoteAddr { offset, ..self.home }, ..self }
    }

    /// The operation by which a claim alone has the lock, where one is enough:
    /// for whoever would spare itself the claim and its node until
    /// [`has`](Self::has) says that it is not alone.
    #[inline]
    pub fn first_op(&self, mode: Mode) -> Option<Op> {
        self.first(mode, &Given)
    }

    /// What becomes of that operation, in code of its own for each kind.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn first<C: Carries>(&self, mode: Mode, by: &C) -> Option<C::Ended> {
        let count = self.word(Word::Count);
        match (self.kind, mode) {
            (Kind::Mutex, _) => None,
            (kind, Mode::Shared) => Some(by.adds(count, count::arrive(kind))),
            (Kind::Readers, _) => Some(by.swaps(count, 0, count::INSIDE)),
            _ => None,
        }
    }

    /// Whether whoever found `old` by [`first_op`](Self::first_op) has the
    /// lock. Otherwise it begins a claim with
    /// [`Claim::begin_found`].
    #[inline]
    pub const fn has(&self, mode: Mode, old: u64) -> bool {
        match mode {
            Mode::Shared => !count::blocks(self.kind, old),
            Mode::Exclusive => old == 0,
        }
    }

    /// The operation that gives back what was had by
    /// [`first_op`](Self::first_op).
    #[inline]
    pub fn last_op(&self, mode: Mode) -> Option<Op> {
        self.last(mode, &Given)
    }

    /// What becomes of it, as of [`first`](Self::first).
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn last<C: Carries>(&self, mode: Mode, by: &C) -> Option<C::Ended> {
        let count = self.word(Word::Count);
        match (self.kind, mode) {
            (Kind::Mutex, _) => None,
            (kind, Mode::Shared) => Some(by.adds(count, count::depart(kind))),
            (Kind::Readers, _) => Some(by.swaps(count, count::INSIDE, 0)),
            _ => None,
        }
    }

    /// Whether whoever found `old` by [`last_op`](Self::last_op) is done.
    /// Otherwise others wait for what a claim does with
    /// [`Claim::release_found`].
    #[inline]
    pub const fn is_given_back(&self, mode: Mode, old: u64) -> bool {
        match mode {
            Mode::Shared => !count::was_last(self.kind, old),
            Mode::Exclusive => old == count::INSIDE,
        }
    }

    const fn word(&self, word: Word) -> RemoteAddr {
        RemoteAddr { offset: self.home.offset + word as u64 * 8, ..self.home }
    }
}

/// Carries operations out, or gives them back.
trait Carries {
    type Ended;

    fn adds(&self, at: RemoteAddr, delta: u64) -> Self::Ended;

    fn swaps(&self, at: RemoteAddr, expected: u64, new: u64) -> Self::Ended;
}

struct Given;

impl Carries for Given {
    type Ended = Op;

    fn adds(&self, at: RemoteAddr, delta: u64) -> Op {
        Op::atomic(OpKind::FetchAdd, at, delta)
    }

    fn swaps(&self, at: RemoteAddr, expected: u64, new: u64) -> Op {
        Op::compare_swap(at, expected, new)
    }
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::All => Self::Exclusive,
            Self::Exclusive => Self::All,
        }
    }

    const fn from_bit(word: u64) -> Self {
        if word & 1 == 0 { Self::All } else { Self::Exclusive }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// This side, if it is among them.
    fn of(self, wants: u8) -> Option<Self> {
        (wants & self.bit() != 0).then_some(self)
    }
}

/// Bytes of registered memory that a lock takes, for each epoch: a line.
pub const LOCK_BYTES: u64 = 64;
