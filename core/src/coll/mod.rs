//! Barrier and sum over all ranks, on signals.
//!
//! The ranks form a tree of arity 8. Values go up with the arrivals and the
//! result comes down with the releases. Each step is one put and one notified
//! atomic into the words of a neighbour in the tree, and a rank that waits
//! sleeps:
//!
//! ```text
//!            0                 words of each rank, 8 bytes each
//!       ┌────┼────┐              0      arrivals of children, ever
//!       1    2 .. 8              1      releases by the parent, ever
//!     ┌─┴─┐                      2      the result, from the parent
//!     9 .. 16                    3      what this rank publishes
//!                                8..16  the children's values
//! ```
//!
//! A value slot is written again only after the release of the collective
//! that read it, so one set of slots is enough. Children are added in their
//! order: a sum of floats is the same in every run.
//!
//! [`Team`] blocks, on memory that it can load and store. [`TreeCollective`] is the
//! protocol itself, for a driver that works a device or a simulator instead.
//!
//! Progress: blocking; 2 (P - 1) notifications, depth log8 P.
//!
//! If all ranks are on one node, they use a barrier with counters: [`NodeBarrier`].
//!
//! Collectives of any group, on any bytes, are schedules of messages: [`schedule`]. Short
//! values among ranks that share memory go through rows of cells: [`row`].

mod node_barrier;
pub mod row;
pub mod schedule;
mod tree;

pub use node_barrier::{BarrierMemory, NodeBarrier};
pub use tree::{StepId, Tree, TreeCollective, WORDS};

use crate::backend::{LoadStore, execute};
use crate::mem::{AddrError, LocalAddr, Rank, RegionKey, RemoteAddr, Width};
use crate::op::Op;
use crate::signal::{ParkingLot, Until, Waiters};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::wait::Wait;
use core::fmt;

/// All ranks of the job, as seen by one of them.
#[derive(Debug)]
pub struct Team {
    tree: Tree,
    /// Collectives by the tree so far.
    epoch: AtomicU64,
    /// Barriers by the counters of a node so far.
    round: AtomicU64,
    busy: AtomicBool,
}

/// What a collective needs from the rank that takes part in it.
pub struct CollContext<'a, L: LoadStore + ?Sized> {
    /// This rank's memory.
    pub memory: &'a L,
    /// Carries out an operation on a word of any rank; blocks if the rank is on
    /// another node.
    pub execute: &'a ExecuteFn<'a>,
    /// Wakes this rank's sleepers.
    pub parking_lot: &'a ParkingLot,
    /// The table in which this rank waits for a word.
    pub waiters: &'a Waiters,
    /// How the calling thread sleeps.
    pub wait: &'a dyn Wait,
}

/// A function that carries out an operation on any rank.
pub type ExecuteFn<'a> = dyn Fn(&Op) -> Result<u64, AddrError> + 'a;

impl<L: LoadStore + ?Sized> CollContext<'_, L> {
    /// Carries out an operation on a word of any rank, and blocks if the rank is on
    /// another node.
    ///
    /// # Errors
    ///
    /// [`AddrError`]: the word is not accessible, or its rank has died.
    #[inline]
    pub fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        (self.execute)(op)
    }
}

/// Why a collective failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollError {
    /// Another thread of this rank is in a collective: a rank runs one at a time.
    Busy,
    /// A rank died, or the words of the tree are no longer accessible.
    Addr(AddrError),
    /// A member has called the collective with another length, or another collective.
    /// This rank has taken part to the end, so that no member waits for it.
    LengthsDiffer {
        /// The member.
        rank: Rank,
        /// Bytes that it has sent.
        bytes: usize,
        /// Bytes that this rank has expected.
        expected: usize,
    },
    /// The group has no member with the number of the root.
    NoSuchRoot {
        /// The number.
        root: u32,
        /// The number of members.
        size: u32,
    },
    /// A buffer or a table of the call does not have as many elements as the group and
    /// the other arguments demand.
    WrongLength {
        /// Elements of the argument.
        len: usize,
        /// Elements that it must have.
        needed: usize,
    },
    /// A job can have 65,534 groups and communicators at a time, and has them.
    NoContext,
    /// The process was forked from a rank, and is none.
    Forked {
        /// The process of the rank.
        rank_process: u32,
    },
}

impl Team {
    /// Makes a team of `size` ranks, each with [`WORDS`] zero words registered
    /// under `key`.
    pub fn new(rank: Rank, size: u32, key: RegionKey) -> Self {
        let (epoch, round) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { tree: Tree { rank, size, key }, epoch, round, busy: AtomicBool::new(false) }
    }

    /// The number of the barrier by counters in which a thread of this rank waits, or of
    /// the next one; they count from 1.
    pub fn barrier_number(&self) -> u64 {
        // Relaxed: for a report, which may be one barrier late.
        self.round.load(Ordering::Relaxed) + 1
    }

    /// The same of the collectives by the tree.
    pub fn collective_number(&self) -> u64 {
        // Relaxed: as above.
        self.epoch.load(Ordering::Relaxed) + 1
    }

    /// Waits until every rank has called `meet`, if all of them are in `barrier`.
    ///
    /// # Errors
    ///
    /// [`CollError::Busy`] if another thread of this rank is in a collective;
    /// [`CollError::Addr`] with [`AddrError::PeerLost`] if a rank has died.
    #[inline]
    pub fn meet(&self, barrier: NodeBarrier, memory: &impl BarrierMemory) -> Result<(), CollError> {
        self.alone(|| {
            // Relaxed: only the holder of `busy` accesses the round.
            let round = self.round.load(Ordering::Relaxed) + 1;
            barrier.meet(round, memory)?;
            self.round.store(round, Ordering::Relaxed);
            Ok(())
        })
    }

    /// Waits until every rank has called `barrier`.
    ///
    /// # Errors
    ///
    /// Those of [`reduce`](Self::reduce).
    pub fn barrier<L: LoadStore + ?Sized>(
        &self,
        part: &CollContext<'_, L>,
    ) -> Result<(), CollError> {
        self.reduce(part, 0, |_, _| 0).map(|_| ())
    }

    /// Combines the `value` of every rank, in an order that is the same each
    /// time, and returns the result to every rank.
    ///
    /// # Errors
    ///
    /// - [`CollError::Busy`]: another thread of this rank is in a collective.
    /// - [`CollError::Addr`]: with [`AddrError::PeerLost`] if a rank has died, otherwise
    ///   with the error of [`CollContext::carry`] for the words of this rank, its parent or its
    ///   children in the tree.
    pub fn reduce<L: LoadStore + ?Sized>(
        &self,
        part: &CollContext<'_, L>,
        value: u64,
        combine: impl Fn(u64, u64) -> u64,
    ) -> Result<u64, CollError> {
        self.alone(|| self.climb(part, value, combine))
    }

    /// Takes part in one collective, if no other thread of this rank is in one.
    #[inline]
    fn alone<T>(&self, take_part: impl FnOnce() -> Result<T, AddrError>) -> Result<T, CollError> {
        // Acquire and Release: the epochs that one thread's call has stored are
        // visible to the next thread's call.
        if self.busy.swap(true, Ordering::Acquire) {
            return Err(CollError::Busy);
        }
        let result = take_part();
        self.busy.store(false, Ordering::Release);
        result.map_err(CollError::Addr)
    }

    /// Returns the address of the word that `rank` publishes.
    pub fn published(&self, rank: Rank) -> RemoteAddr {
        self.tree.word_of(rank, PUBLISHED)
    }

    fn climb<L: LoadStore + ?Sized>(
        &self,
        part: &CollContext<'_, L>,
        value: u64,
        combine: impl Fn(u64, u64) -> u64,
    ) -> Result<u64, AddrError> {
        // Relaxed: only the holder of `busy` accesses the epoch.
        let epoch = self.epoch.load(Ordering::Relaxed) + 1;
        let mut climb = TreeCollective::new(self.tree, epoch, value);
        loop {
            climb.handle_words(|word| self.load_own(part, word), &combine)?;
            while let Some((step, op)) = climb.poll_op() {
                climb.handle_completed(step, part.carry(&op));
            }
            if let Some(result) = climb.poll_done() {
                if result.is_ok() {
                    self.epoch.store(epoch, Ordering::Relaxed);
                }
                return result;
            }
            if let Some((word, count)) = climb.waits_for() {
                self.wait_own(part, word, count)?;
            }
        }
    }

    fn load_own<L: LoadStore + ?Sized>(
        &self,
        part: &CollContext<'_, L>,
        word: usize,
    ) -> Result<u64, AddrError> {
        execute(part.memory, &Op::get_word(self.tree.word_of(self.tree.rank, word), Width::W8))
    }

    fn wait_own<L: LoadStore + ?Sized>(
        &self,
        part: &CollContext<'_, L>,
        word: usize,
        count: u64,
    ) -> Result<u64, AddrError> {
        let at = part.memory.local(LocalAddr { key: self.tree.key, offset: word as u64 * 8 }, 8)?;
        // SAFETY: `local` returned an address with 8 accessible bytes, registered
        // words are aligned, and all accesses to them are atomic.
        let word = unsafe { at.cast::<AtomicU64>().as_ref() };
        part.waiters.wait(part.parking_lot, word, Until::AtLeast(count), part.wait)
    }
}

/// A number that can be summed over ranks.
pub trait Addend: Copy {
    /// Encodes the number as the word that is sent.
    fn to_word(self) -> u64;
    /// Decodes the number from a received word.
    fn from_word(word: u64) -> Self;
    /// Returns the sum; integers wrap.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

macro_rules! addend {
    ($($int:ty),*) => {$(
        impl Addend for $int {
            fn to_word(self) -> u64 { self as u64 }
            fn from_word(word: u64) -> Self { word as $int }
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
        }
    )*};
}

addend!(u32, i32, u64, i64, usize, isize);

impl Addend for f64 {
    fn to_word(self) -> u64 {
        self.to_bits()
    }
    fn from_word(word: u64) -> Self {
        Self::from_bits(word)
    }
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl fmt::Display for CollError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str(
                "another thread of this rank is in a collective: a rank runs one at a time",
            ),
            Self::Addr(error) => error.fmt(f),
            Self::LengthsDiffer { rank, bytes, expected } => write!(
                f,
                "{rank} has sent {bytes} bytes where this rank expects {expected}: all members \
                 of a group must call the same collective with lengths that fit"
            ),
            Self::NoSuchRoot { root, size } => {
                write!(f, "the root {root} does not exist: the group has {size} members")
            }
            Self::WrongLength { len, needed } => {
                write!(f, "an argument has {len} elements and needs {needed}")
            }
            Self::NoContext => {
                f.write_str("the job has all of its 65,534 groups and communicators")
            }
            Self::Forked { rank_process } => {
                write!(f, "this process is a fork of the rank, which is process {rank_process}")
            }
        }
    }
}

impl core::error::Error for CollError {}

impl<L: LoadStore + ?Sized> fmt::Debug for CollContext<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CollContext")
    }
}

const PUBLISHED: usize = 3;
