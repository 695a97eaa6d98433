//! Global memory: 64-bit addresses that name a byte of any rank, and copies that
//! any rank requests between any two ranks' memory.
//!
//! ```
//! use tsumugi::{Error, GlobalPtr, Rank};
//!
//! tsumugi::run_ranks(2, |rt| {
//!     let global = rt.global()?;
//!     let own = global.expose::<u64>(4)?;
//!     // An address is a word, so it can be stored and sent.
//!     let all = rt.allgather(own.at(0).addr().to_bits())?;
//!     let peer = global.pointer::<u64>(all[1 - rt.rank().0 as usize]);
//!     global.put(peer, 7)?;
//!     rt.barrier()?;
//!     assert_eq!(global.get(own.at(0))?, 7);
//!     rt.barrier()
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! | | |
//! |---|---|
//! | [`Runtime::global`] | opens it; collective |
//! | [`Global::expose`], [`MemoryOptions::expose_global`](crate::MemoryOptions::expose_global) | makes memory with a global address; chooses the agent of its atomics |
//! | [`Global::register`], [`Global::publish`] | gives memory that the program has a global address |
//! | [`Global::addr_of`], [`Global::local`], [`Global::rank_of`] | translates between memory, addresses and ranks |
//! | [`Global::get`], [`Global::put`] and the atomics | accesses that are complete when they return |
//! | [`Global::copy`] | copies between any two ranks |
//! | [`Global::signal`], [`Global::wait_until`] | words for which ULTs wait |
//! | [`Global::begin`], [`Operation`] | copies and atomics with an order |
//! | [`Global::ops`] | accesses and copies as [values](crate::deferred) |
//! | [`Global::workspace`] | bytes in parts on several ranks |
//! | [`Global::channel_to`], [`Global::channel_from`] | messages of any length, in order |
//! | [`SegmentSource`], [`SegmentSink`] | rings of segments from one rank to another |
//! | [`Global::pool`], [`container`] | remote malloc and free; containers of bytes, below [`crate::container`] |
//!
//! The first access to a rank reads the rank's table of regions; later accesses
//! find the table in this rank's cache, which has a bound that does not depend on
//! the job. An access by the address of freed memory returns
//! [`AddrError::StaleKey`], even when the memory belongs to another array by then.
//!
//! Progress: an access to a rank of the same node is wait-free once that rank's
//! table is in the cache; all other calls are blocking.
//!
//! [`Runtime::global`]: crate::Runtime::global

mod at_hand;
mod access;
mod bases;
mod block;
mod channel;
mod copy;
mod handle;
mod operation;
mod ops;
mod pool;
mod region;
mod retire;
mod segment;
mod signal;
mod word;
mod workspace;

#[cfg(doc)]
use crate::AddrError;
#[doc(hidden)]
pub use at_hand::{DoneWord, UNKNOWN};
#[doc(hidden)]
pub use bases::Bases;
pub use block::GlobalBlock;
pub use channel::{ChannelReceiver, ChannelSender};
pub use handle::Global;
pub use operation::Operation;
pub use ops::{GlobalOps, OfRequest, WordAt};
pub use pool::Pool;
pub use region::GlobalRegion;
pub use segment::{SegmentSink, SegmentSource};
pub use tsumugi_gas::address::{AddressParts, GlobalAddr, GlobalPtr, LeavesRegion, STARTER, Split};
pub use tsumugi_gas::channel::ReceivedPart;
pub use tsumugi_gas::container;
pub use tsumugi_gas::heap::HeapError;
pub use tsumugi_gas::order::{After, Full, Handle};
pub use tsumugi_gas::request::{Copy, ENTRY_BYTES, GlobalRequest, ListCopy, WordRequest as Change};
pub use tsumugi_gas::table::NameError;
pub use workspace::Workspace;
