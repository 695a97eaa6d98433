//! Containers in the memory of many ranks, made of one-sided operations: no
//! rank's program takes part in what another does with them.
//!
//! A container is named by the address of its header, a word that can be stored and
//! sent like any other; any rank and any thread that has the address can use the
//! container. Elements are bytes, of any number: those of a slice, or those that lie
//! anywhere in the global memory.
//!
//! | | where it lies | what its lock covers |
//! |---|---|---|
//! | [`Vector`], [`Deque`] | all on one rank | the whole container |
//! | [`List`] | each element on the rank that its insertion names | the whole container |
//! | [`Set`], [`Multiset`], [`Map`] | by the key's hash, on the ranks given | a slot, which is a chain of elements |
//!
//! | module | what it is |
//! |---|---|
//! | [`store`] | the operations on global memory that the containers are made of |
//! | [`data`] | bytes to insert, and bytes of elements |
//! | `hash` | the hash of a key |
//! | `guard` | locks of containers; a claim that waits sleeps |
//! | [`sequence`] | bytes in a row: the common part of vector and deque |
//! | [`vector`], [`deque`], [`list`] | |
//! | [`table`] | chains by hash: the common part of set, multiset and map |
//! | [`keyed`] | creation of these, and merging |
//! | [`set`], [`multiset`], [`map`] | |
//!
//! A call that changes a container holds its lock exclusively; a call that reads
//! several words shares the lock. So each call is atomic against all others, except
//! where its documentation says that it goes from slot to slot. The locks are those
//! of [`crate::lock`], with phases: no claim starves, no claim polls another rank's
//! memory, and two locks are always taken in the order of their addresses.
//!
//! Programs that were written for ACP 3 find the same layout in memory: the words of
//! the headers of vectors and deques, and of lists, directories, slots and elements.
//! Locks lie beside these words.
//!
//! An address or an iterator that a container has returned is valid until its
//! element is moved or removed. A container must be destroyed only when no thread
//! uses it any more. When a rank dies, operations that need its memory end with
//! [`AddrError::PeerLost`], and so do, a tenth of a second later, all calls for
//! locks that the rank held or waited for: the error names the rank. All other calls
//! go on.
//!
//! Progress: blocking, all calls; without contention, the number of operations of a
//! call is bounded by the number of elements that it visits, as its documentation
//! says.

pub mod data;
pub mod deque;
mod error;
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
pub use error::ContainerError;
pub use guard::nodes_bytes;
pub use keyed::Keyed;
pub use list::{Cursor, List, ListEnd};
pub use map::Map;
pub use multiset::Multiset;
pub use sequence::Sequence;
pub use sequence::held::HeldSequence;
pub use set::Set;
pub use store::{Store, free, malloc};
pub use table::held::HeldKey;
pub use table::{HashTable, Reach, TableCursor, TableKind};
pub use vector::Vector;

#[cfg(doc)]
use tsumugi_core::mem::AddrError;
