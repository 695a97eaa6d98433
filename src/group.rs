//! Groups of ranks, and their collectives.
//!
//! | | |
//! |---|---|
//! | [`Runtime::world`](crate::Runtime::world), [`Group::split`] | a group: all ranks, or some of them |
//! | [`Group::barrier`] | waits for all members |
//! | [`Group::broadcast`] | one member's values to all |
//! | [`Group::reduce`], [`Group::allreduce`], [`Group::reduce_scatter`] | combine the values of all |
//! | [`Group::scan`], [`Group::exscan`] | combine the values of lower members |
//! | [`Group::gather`], [`Group::allgather`] | the values of all, one block each |
//! | [`Group::scatter`] | a block of one member's values to each |
//! | [`Group::alltoall`] | a block of each for each |
//! | [`Sum`], [`Min`], ..., [`Commuting`], `Fn(T, T) -> T` | [operations](Operation) |
//! | [`Group::duplicate_forcing`] | the same members with algorithms that the program chooses |
//! | [`Group::ops`] | all of them as values: waited for, awaited, tried, or given a function |
//!
//! All members of a group call the same collectives in the same order, with lengths that
//! fit, each from one thread at a time; several collectives of a group can be under way
//! if all but the last were begun as [values](GroupOps). If a length does not fit, the
//! member that notices it returns [`CollError::LengthsDiffer`](crate::CollError), and has
//! taken part to the end, so that the others do not wait for it. But a length also chooses
//! the algorithm: members whose lengths lie on two sides of such a size (256 bytes on one
//! node; others are in `core/src/coll/schedule/threshold.rs`) may wait for each other for
//! ever, and the report of a standstill names the collective. A member whose own arguments
//! are refused ([`CollError::WrongLength`](crate::CollError), a root that does not exist)
//! takes no part: the others wait for it, or meet its next collective.
//!
//! ```
//! use tsumugi::group::Sum;
//!
//! # fn main() -> Result<(), tsumugi::Error> {
//! # tsumugi::run(|rt| {
//! let world = rt.world();
//! let mut counts = [1u64, 2];
//! world.allreduce(&mut counts, Sum)?;
//! assert_eq!(counts, [u64::from(rt.size()), 2 * u64::from(rt.size())]);
//!
//! // The ranks with even numbers, and the others.
//! let half = world.split(Some(rt.rank().0 % 2), 0)?.expect("each rank has a color");
//! let ranks = half.allgather(&[rt.rank().0])?;
//! assert_eq!(ranks.len(), half.size() as usize);
//! # Ok::<_, tsumugi::Error>(()) })
//! # }
//! ```
//!
//! # Deaths
//!
//! When a rank of the job has died, each collective of each survivor ends, with its
//! result or with the number of a rank that has died, and so do all later ones, in
//! every group: groups are split from the group of all ranks, and a member that failed
//! to split might be waited for.
//!
//! Progress: blocking; a rank waits for the members whose values its result has. A
//! call suspends its ULT. Values take one trip of a cache line and no message if
//!
//! - the members share a node, and are at most 64;
//! - a value or block has at most 256 bytes; all blocks together of an alltoall, a scatter
//!   or a reduce-scatter at most 368;
//! - the group is one of the first eight that this rank has at a time.
//!
//! A root that is four of its broadcasts ahead of a member waits for it then. All else takes
//! messages: log2 P trips, one after the other, for short values of a barrier, a broadcast,
//! an allreduce and a scan.

mod operation;
mod handle;
mod call;
mod rooted;
mod all;
mod ops;
mod raw;

pub use handle::Group;
pub use operation::{And, Commuting, Max, Min, Operation, Or, Prod, Sum, Xor};
pub use ops::{CombineBy, GroupOps, InPlace, MoveOnly, NoValues, OfGroup, ToOther};
#[doc(hidden)]
pub use raw::{RawBlocks, RawCollective, StartedCollective, raw_combine};
pub use tsumugi_core::coll::schedule::{CollForced, CollKind, UnknownWord};
#[doc(hidden)]
pub use tsumugi_runtime::service::collectives::CombineFn;
