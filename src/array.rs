//! Global arrays: arrays over all ranks, with pages that move to the rank that uses
//! them.
//!
//! ```
//! use tsumugi::Error;
//!
//! tsumugi::run_ranks(2, |rt| {
//!     let array = rt.array::<u64>(1000)?;
//!     if rt.rank().0 == 0 {
//!         array.put_slice(0, &(0..1000).collect::<Vec<_>>())?;
//!     }
//!     rt.barrier()?;
//!     // Half of it comes to this rank, and stays until another rank owns it.
//!     let half = if rt.rank().0 == 0 { 500..1000 } else { 0..500 };
//!     array.own(half.clone())?;
//!     let mut values = vec![0; 500];
//!     array.get_slice(half.start, &mut values)?;
//!     assert_eq!(values[7], half.start as u64 + 7);
//!     rt.barrier()
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! | | | cost on a hit |
//! |---|---|---|
//! | [`GlobalArray::get`], [`GlobalArray::get_slice`] | reads | one read, of the owner's memory |
//! | [`GlobalArray::put`], [`GlobalArray::put_slice`] | writes | one write |
//! | [`GlobalArray::fetch_add`] and the other atomics | changes an element | one atomic |
//! | [`GlobalArray::gather`], [`GlobalArray::scatter`] | reads or writes the elements of a list | one access for each |
//! | [`GlobalArray::own`] | brings pages to this rank | |
//! | [`GlobalArray::relocate`] | brings a page to any rank | |
//! | [`GlobalArray::owner`], [`GlobalArray::entry`] | returns where a page is | one access to its home |
//! | [`GlobalArray::uses`], [`GlobalArray::return_home`] | moves pages to the ranks that use them, or back | |
//! | [`GlobalArray::checkout`] | lends a copy of elements as a slice | nothing |
//!
//! The array is cut into pages of a fixed number of elements. Each page has a home,
//! a rank that never changes and that stores where the page is. Each rank keeps a
//! location cache of the owners that it has learned, for up to [`ArrayOptions::known`]
//! pages. All accesses are remote reads, writes and atomics, so no rank's program
//! takes part in an access of another rank.
//!
//! All ranks make an array together ([`Runtime::array`]), or one rank makes it
//! alone and others open it by a handle, which is a word ([`Runtime::arrays`]).
//!
//! # Memory model
//!
//! Accesses to one element are linearizable: gets, puts and atomics of it take
//! effect one after the other, each between its call and its return, no matter
//! which rank owns the page at the time. So a ULT sees its own puts, before and
//! after an own by any rank. Accesses to several elements are not atomic: another
//! rank may see some elements of a put and not yet the rest. An element that is
//! larger than 8 bytes, or has a size that is no power of two, may be seen half
//! written. An own of a range is a sequence of owns, one for each page; it also
//! moves the neighbouring elements that share the first and the last page.
//!
//! # When a rank dies
//!
//! The pages that it owned are lost. For the pages of which it was the home, the
//! location is lost, too: calls that need it end with [`AddrError::PeerLost`]. A page
//! that it was moving is intact if the move had not taken effect, but accesses that
//! need the location of that page end with [`AddrError::PeerLost`] of the mover, until
//! the next own or relocate of the page takes the move over. All other pages stay
//! usable. With [`Directory::Messages`] each call that needs a message of the home, for
//! any page, ends with [`AddrError::PeerLost`] once a rank has died.
//!
//! Progress: a get is lock-free, and wait-free between ranks of a node while the
//! page stays where it is; all other calls are blocking.
//!
//! Paper: W. Endo and K. Taura, on a PGAS with relocation and a cache of metadata;
//! [`tsumugi_gas::page`] describes the protocol and the differences from the paper.
//!
//! [`Runtime::array`]: crate::Runtime::array
//! [`Runtime::arrays`]: crate::Runtime::arrays
//! [`AddrError::PeerLost`]: crate::AddrError::PeerLost

mod alone;
mod area;
mod atomic;
mod balance;
mod cache;
mod checkout;
mod options;
mod handle;
mod lease;
mod list;
mod place;
mod message_directory;
mod ranges;
mod room;
mod table;
mod page_engine;
mod ops;

pub use alone::Arrays;
pub use balance::{Use, Uses};
pub use checkout::{Checkout, Mode, Read, ReadWrite, Write};
pub use handle::GlobalArray;
pub use ops::{ArrayOps, AtomicAt, GetAt, PutAt};
pub use options::{ArrayOptions, Directory};
pub use table::ArrayHandle;
pub use tsumugi_gas::page::{DirectoryEntry, Distribution, PageId, ShapeError};
pub use tsumugi_runtime::ArrayError;
