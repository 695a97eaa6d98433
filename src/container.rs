//! Containers of values, which all ranks use at once: maps, sets, vectors, deques, lists.
//!
//! ```
//! tsumugi::run_ranks(3, |rt| {
//!     let counts = rt.map::<str, u64>()?;
//!     for word in ["to", "be", "or", "not", "to", "be"] {
//!         counts.update(word, |count| Some(count.unwrap_or(0) + 1))?;
//!     }
//!     rt.barrier()?;
//!     // Three ranks have counted "be" twice each.
//!     assert_eq!(counts.get("be")?, Some(6));
//!     let own = counts.iter_local().map(|entry| entry.map(|(_, count)| count));
//!     let own = own.sum::<Result<u64, _>>()?;
//!     assert_eq!(rt.sum(own)?, 3 * 6);
//!     rt.barrier()
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! | | made by | elements | where they lie |
//! |---|---|---|---|
//! | [`GlobalMap<K, V>`] | [`Runtime::map`] | keys with one value each | by the key's hash, on all ranks |
//! | [`GlobalSet<K>`] | [`Runtime::set`] | keys | by the key's hash, on all ranks |
//! | [`GlobalMultiset<K>`] | [`Runtime::multiset`] | keys with a count each | by the key's hash, on all ranks |
//! | [`GlobalVec<T>`] | [`Runtime::vector`] | values in a row, which grows at its end | all on one rank |
//! | [`GlobalDeque<T>`] | [`Runtime::deque`] | values in a row, which grows at either end | all on one rank |
//! | [`GlobalList<T>`] | [`Runtime::list`] | values in a chain | each on the rank that inserts it |
//!
//! An array over all ranks, of a length that does not change, is a
//! [`GlobalArray`](crate::GlobalArray). [`crate::global::container`] has the containers of
//! bytes below these ones.
//!
//! # Types
//!
//! Keys, values and elements of maps, sets and lists are [`Stored`]: any
//! [`Plain`](trait@crate::Plain) type, `str` or `[u8]`. The elements of vectors and deques
//! are `Plain`. Two keys are equal if their bytes are, and the hash is one of the bytes: so
//! `0.0` and `-0.0` are two keys, and a NaN is one.
//!
//! # Making and freeing
//!
//! The calls of [`Runtime`] above are collective: every rank makes them, in the same order.
//! `GlobalMap::<K, V>::options()` and its like give a [`ContainerOptions`], which chooses
//! the ranks, the number of buckets, or the pool. A handle is cheap to clone and to send to
//! any thread of its rank. [`addr`](GlobalMap::addr) is the container's name, one word,
//! which can be stored and sent; another rank makes a handle of it by
//! [`open`](GlobalMap::open). `open` checks the kind, and the sizes of the types.
//!
//! A handle that is dropped frees nothing. [`free`](GlobalMap::free), which is collective,
//! frees the memory but for 64 bytes, if no rank has another handle of the container; what
//! was not freed is freed at the end of the job. So no memory is freed while a rank may
//! access it.
//!
//! The memory comes from a pool that each rank has once: `TSUMUGI_POOL_BYTES`, 256 MiB by
//! default. An element of a map, a set or a list takes its bytes and 24 or 32 more, rounded
//! up to 64; a bucket takes 96 bytes; a vector or a deque is one block. The largest block is
//! 16 MiB with the default, and 1 GiB with `TSUMUGI_POOL_BYTES=16G`.
//!
//! # Concurrency
//!
//! Any number of threads of all ranks call at once. Every call is atomic against all others,
//! except those that go from bucket to bucket or from part to part: `len`, `is_empty`,
//! `clear` and iterations of maps, sets and multisets, and iterations of vectors and deques.
//! A call takes effect while it holds its lock: that of the key's bucket, or that of the
//! whole vector, deque or list. Calls that only read share it.
//!
//! Progress: blocking. A thread that waits for a lock sleeps, and no claim starves. A
//! function that is given to a call (`update`) runs under the lock, and other ranks wait for
//! it: it must not use the same container, and if it uses another one, two such calls may
//! wait for each other for ever.
//!
//! An iterator reads several elements at a time and holds no lock between two calls of
//! `next`. Of a map, a set or a multiset it returns each key once at most, and each element
//! that is in the table all the time; of those that come or go meanwhile, it returns any.
//! Of a vector or a deque it returns the element that has the next index at the time of the
//! read. Of a list it returns the elements of the moment of the call. After an error an
//! iterator ends.
//!
//! # Errors
//!
//! - [`Error::OutOfMemory`], from a call that inserts: the pool of the rank of the element has
//!   no free block, and the error names the variable. The container is as before. In a pool
//!   that the program has made this is an [`Error::Container`].
//! - [`Error::Access`], from every call: [`AddrError::PeerLost`] names a rank that has died,
//!   with memory of the container, or in possession of its lock. All other calls go on.
//! - [`Error::Container`] with [`NoElement`](ContainerError::NoElement): a vector or deque
//!   has no element with this index.

mod stored;
mod header;
mod options;
mod handle;
mod table;
mod map;
mod set;
mod multiset;
mod row;
mod vector;
mod deque;
mod list;

pub use deque::GlobalDeque;
pub use handle::Container;
pub use list::GlobalList;
pub use map::GlobalMap;
pub use multiset::GlobalMultiset;
pub use options::ContainerOptions;
pub use row::{GlobalRow, Sequential};
pub use set::GlobalSet;
pub use stored::Stored;
pub use table::Hashed;
pub use tsumugi_gas::container::ContainerError;
pub use vector::GlobalVec;

#[cfg(doc)]
use crate::{AddrError, Error, Runtime};
