//! Containers in the memory of many ranks, made of one-sided operations: no
//! rank's program takes part in what another does with them.
//!
//! A container is named by the address of its header, a word that goes
//! wherever words go; whoever has it uses it, from any number of threads. What
//! goes in are bytes, of any number: those of a slice, or those that lie
//! anywhere in the global memory.
//!
//! | | where it lies | what its lock is for |
//! |---|---|---|
//! | [`Vector`], [`Deque`] | all on one rank | all of it |
//! | [`List`] | each element on the rank that its insertion names | all of it |
//! | [`Set`], [`Multiset`], [`Map`] | by the key's hash, on the ranks given | a slot, which is a chain of elements |
//!
//! | module | what it is |
//! |---|---|
//! | [`store`] | the operations that all of it is made of |
//! | [`data`] | bytes that go in, and bytes that are in |
//! | `hash` | where a key belongs |
//! | `guard` | locks that claims sleep for |
//! | [`sequence`] | bytes in a row: what vector and deque have in common |
//! | [`vector`], [`deque`], [`list`] | |
//! | [`table`] | chains by hash: what set, multiset and map have in common |
//! | [`keyed`] | how these are made, and take in each other |
//! | [`set`], [`multiset`], [`map`] | |
//!
//! A call that changes something has its lock alone, one that looks at several
//! words shares it: so each is atomic against all others, but where it says
//! that it goes from slot to slot. Locks are those of [`crate::lock`], by
//! phases: nobody starves, nobody polls another rank's memory, and two locks
//! are always taken in the order of their addresses.
//!
//! What programs that were written for ACP 3 read in memory is as there: the
//! words of the headers of vectors and deques, lists, directories, slots and
//! elements. Locks lie beside these.
//!
//! An address or an iterator that a container gave out is good until somebody
//! moves or removes what it is of. A container is destroyed when nobody uses it
//! any more. When a rank dies, what needs its memory ends with
//! [`AccessError::PeerLost`], and so do, a tenth of a second later, all calls on what it had
//! locked, or waited for: they name it. All else goes on as if nothing had
//! happened.
//!
//! Progress: blocking, all of it; not contended, a call takes a number of
//! operations that is bounded by what it says it looks at.

pub mod data;
pub mod deque;
mod guard;
mod hash;
pub mod keyed;
pub mod list;
pub mod map;
pub mod multiset;
pub mod sequence;
pub mod set;
pub mod store;
pub mod table;
pub mod vector;

pub use data::{Data, Element};
pub use deque::Deque;
pub use guard::nodes_bytes;
pub use keyed::Keyed;
pub use list::{Cursor, List};
pub use map::Map;
pub use multiset::Multiset;
pub use sequence::Sequence;
pub use set::Set;
pub use store::{Store, free, malloc};
pub use table::{Entry, Kind, Reach, Table};
pub use vector::Vector;

use crate::error::AccessError;
use crate::heap::HeapError;
use crate::lock::Mode;
use core::fmt;

/// Why a container could not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerError {
    /// There is no memory for it, or what was to be freed is none.
    Heap(HeapError),
    /// Some of it is out of reach.
    Access(AccessError),
    /// A place that the container does not have.
    OutOfRange {
        /// The first byte asked for.
        at: u64,
        /// And how many.
        bytes: u64,
        /// How many there are.
        size: u64,
    },
    /// A table of no rank, or of no slot.
    NoSlots,
}

impl From<AccessError> for ContainerError {
    fn from(error: AccessError) -> Self {
        Self::Access(error)
    }
}

impl From<HeapError> for ContainerError {
    fn from(error: HeapError) -> Self {
        match error {
            HeapError::Access(error) => Self::Access(error),
            error => Self::Heap(error),
        }
    }
}

impl fmt::Display for ContainerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heap(error) => error.fmt(f),
            Self::Access(error) => error.fmt(f),
            Self::OutOfRange { at, bytes, size } => {
                write!(f, "{bytes} bytes at {at} of a container of {size}")
            }
            Self::NoSlots => f.write_str("a table has ranks, and slots on each"),
        }
    }
}

impl core::error::Error for ContainerError {}
