//! Locks over remote atomics. A lock is a few words in some rank's memory, and a
//! claim works on them by remote atomics. The rank that has the words takes no part,
//! and a claim that has to wait sleeps until a word in its own rank's memory is
//! written. A claim is one request for a lock, as a state machine.
//!
//! | module | what it is |
//! |---|---|
//! | [`node`] | queue nodes: where a claim waits |
//! | [`claim`] | one claim to one lock: mutex, or shared and exclusive |
//! | [`drive`] | claims that block, on memory that can be loaded and stored |
//! | [`tree`] | the tree of a group lock |
//! | [`vertex`] | a vertex of that tree, run by one rank |
//! | [`entry`] | one rank that enters and leaves a group lock |
//! | [`access`] | the locks of a window, by any of three designs |
//!
//! ```text
//!  words of a lock             words of a queue node, at each claimant
//!    count   readers, flags      state   what it may do
//!    tail    last writer  ───►   next    the node behind it
//!    head    first writer
//!    readers, other readers: lists of readers that wait
//! ```
//!
//! The lock's [`Kind`] determines which claims wait for which. The protocols do no
//! IO: [`Claim::poll_op`] returns operations, and the driver hands in completions
//! and changes of the claim's own word. The driver must post the operations at the
//! agent that carries out the atomics on that word (one agent for all operations,
//! also for those to the own rank), with remote completion, and wait with
//! `core::signal`.
//!
//! Operations under a lock must have completed at the remote end before the lock is
//! given back, so the holder must flush first.
//!
//! # When a rank dies
//!
//! The dead rank may have held the lock, or may be in a queue. Every claim that
//! waits then ends with [`AddrError::PeerLost`], which names the dead rank; so do
//! operations on that rank's memory. Holders of the lock keep it and give it back.
//! The lock itself is of no use any more, until all live ranks have ended their
//! claims and agree on the next [epoch](Lock::epoch): other words, zero as at the
//! start, as if the lock had never been held. A rank that was
//! [given up](tsumugi_core::backend::Domain#a-rank-that-is-given-up) and lives may
//! still hold the lock in the epoch before: no other claim holds the lock of that
//! epoch with it.
//!
//! Progress: blocking. Without contention, a fixed number of operations; a claim
//! carries out operations for others at most as often as claims before it have given
//! up waiting.
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

/// A lock. All ranks have equal values of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    /// The words of the lock: [`LOCK_BYTES`], zero at first.
    pub home: RemoteAddr,
    /// The queue nodes in which claims wait.
    pub nodes: NodeTable,
    /// Which claims wait for which.
    pub kind: Kind,
}

/// Which claims wait for which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Each claim waits for all others, first come, first served.
    Mutex,
    /// Readers wait for a writer that holds the lock, writers for all readers.
    /// Writers may starve.
    Readers,
    /// Phases: a reader waits for one writer at most, a writer for the readers that
    /// came before it and for the writers before it.
    Neutral,
    /// A writer that waits behind another has the lock before any reader.
    /// Readers may starve.
    Writers,
}

/// The two sides of a group lock. Members of one side hold the lock together, and
/// never together with members of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Accesses that hold all targets, shared.
    All = 0,
    /// Accesses that hold some target exclusively.
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
    pub fn first_op(&self, mode: Mode) -> Option<Op> {
        self.first(mode, &Given)
    }

    /// Carries out [`first_op`](Self::first_op) by `by`; a separate copy of the code
    /// for each kind.
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

    /// Whether a caller that found `old` by [`first_op`](Self::first_op) has the
    /// lock. If not, the caller must begin a claim with [`Claim::begin_found`].
    #[inline]
    pub const fn has(&self, mode: Mode, old: u64) -> bool {
        match mode {
            Mode::Shared => !count::blocks(self.kind, old),
            Mode::Exclusive => old == 0,
        }
    }

    /// The operation that gives back a lock that was taken by
    /// [`first_op`](Self::first_op) alone.
    #[inline]
    pub fn last_op(&self, mode: Mode) -> Option<Op> {
        self.last(mode, &Given)
    }

    /// Carries out [`last_op`](Self::last_op) by `by`, as [`first`](Self::first)
    /// does.
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

    /// Whether the lock is given back after a caller found `old` by
    /// [`last_op`](Self::last_op). If not, other claims wait, and the caller must go
    /// on with [`Claim::release_found`].
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

/// Carries operations out, or returns them.
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
    /// The other side.
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

    /// This side, if it is in the set `wants`.
    fn of(self, wants: u8) -> Option<Self> {
        (wants & self.bit() != 0).then_some(self)
    }
}

/// Bytes of registered memory that a lock takes, for each epoch: one cache line.
pub const LOCK_BYTES: u64 = 64;
