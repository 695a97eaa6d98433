//! Kernel-bypass communication for programs with thousands of user-level
//! threads (ULTs).
//!
//! A job is a number of *ranks*: processes that share an address space with the
//! ranks of their node (or threads of one process, [`run_ranks`]), and reach the
//! ranks of other nodes over a network. Each rank runs ULTs and provides memory; any
//! ULT reads, writes and does atomics on any rank's memory, by the same calls, and
//! the program of the target rank takes no part in them.
//!
//! ```
//! use tsumugi::{Error, Rank, Runtime};
//!
//! #[tsumugi::main]
//! fn main(rt: &Runtime) -> Result<(), Error> {
//!     let counter = rt.share::<u64>(1)?;
//!     let number = rt.fetch_add(counter.at(Rank(0), 0), 1)?;
//!     println!("{} of {} drew number {number}", rt.rank(), rt.size());
//!     rt.barrier()
//! }
//! ```
//!
//! | | |
//! |---|---|
//! | [`main`](macro@main), [`run`], [`Runtime`] | being a rank |
//! | [`prelude`] | the names with which a program begins, for one `use` |
//! | [`run_ranks`] | ranks that are threads of one process, for tests |
//! | [`Plain`](macro@Plain) | a derive for types that cross between ranks |
//! | [`Shared`], [`Exposed`], [`Buffer`] | registered memory |
//! | [`Adopted`] | memory from elsewhere, which the network's device may use |
//! | [`Runtime::get`] and similar | one-sided operations |
//! | [`Runtime::ops`], [`deferred`] | operations as values: waited for, awaited, tried, or given a function |
//! | [`Runtime::comm`], [`comm`] | messages: send and receive |
//! | [`Runtime::world`], [`group`] | groups of ranks, and collectives: broadcast, reduce, gather, scan, ... |
//! | [`Runtime::call`], [`Runtime::handler`] | functions of other ranks |
//! | [`Runtime::global`], [`global`] | addresses that name a byte of any rank, and copies between any two |
//! | [`Runtime::map`], [`container`] | maps, sets, vectors, deques and lists of all ranks |
//! | [`Runtime::share_lock`], [`lock`] | locks of all ranks |
//! | [`Runtime::window`], [`window`] | arrays with fences, epochs and locks |
//! | [`Runtime::array`], [`array`](mod@array) | arrays of all ranks, with pages that move |
//! | [`Runtime::rank_deque`], [`steal`] | work of a rank, from which other ranks steal |
//! | [`Runtime::wait_until`], [`Signal`] | sleeping until another rank signals |
//! | [`Runtime::spawn`], [`ult`] | user-level threads |
//! | [`GlobalHeap`] | an allocator that puts all allocations of a program where peers can read them |
//! | [`Config::knobs`], [`Ledger`] | the settings that a job would use, and the memory of its tables |
//! | [`pvas`] | starting jobs, partitions |
//! | [`boot`] | ranks that other launchers started |
//! | [`ult::register`] | other schedulers: their tasks block on all of this |
//! | package `tsumugi-capi` | the calls for C programs: threads, jobs and global memory; `tsumugi-library` makes the library |
//! | package `tsumugi-acp` | the calls of ACP, in the same library |
//!
//! | feature | |
//! |---|---|
//! | `bytemuck` (off) | `Pod`: types of other crates that are `bytemuck::Pod` cross between ranks |

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "bytemuck")]
mod pod;
pub mod config;
mod knob;
mod runtime;
mod agreement;
mod memory;
mod adopted;
mod ops;
pub mod deferred;
pub mod comm;
pub mod group;
pub mod lock;
pub mod window;
pub mod array;
pub mod global;
pub mod container;
pub mod steal;
mod ledger;
mod call;
mod start;
pub mod prelude;
#[doc(hidden)]
pub mod entry;
#[cfg(all(test, any(tsumugi_asan, tsumugi_tsan)))]
mod planted;
#[cfg(test)]
mod tests;

pub use adopted::{Adoptable, Adopted};
pub use array::GlobalArray;
pub use comm::Comm;
pub use config::{Bind, Chosen, Config, NetworkConfig, NetworkKind, NetworkSleep, Path};
pub use container::{GlobalDeque, GlobalList, GlobalMap, GlobalMultiset, GlobalSet, GlobalVec};
pub use deferred::{Busy, Deferred, InFlight, Status};
pub use global::{Global, GlobalAddr, GlobalBlock, GlobalPtr};
pub use group::Group;
pub use knob::{Knob, KnobGroup};
pub use ledger::{Beside, InUse, Ledger, Table, Unit};
pub use lock::{LockGuard, SharedLock};
pub use memory::{Buffer, Exposed, MemoryOptions, Shared};
pub use ops::Signal;
#[cfg(feature = "bytemuck")]
#[cfg_attr(docsrs, doc(cfg(feature = "bytemuck")))]
pub use pod::Pod;
pub use runtime::Runtime;
pub use start::{Bootstrapped, EnteredJob, run, run_ranks};
pub use steal::{RankDeque, Stealer};
pub use window::Window;

/// Derives [`Plain`](trait@Plain) for a struct, if the compiler can prove it:
///
/// ```
/// #![forbid(unsafe_code)]
/// use tsumugi::Plain;
///
/// #[derive(Clone, Copy, Debug, PartialEq, Plain)]
/// #[repr(C)]
/// struct Particle {
///     place: [f64; 3],
///     cell: u32,
///     kind: u32,
/// }
///
/// # fn main() -> Result<(), tsumugi::Error> {
/// tsumugi::run(|rt| {
///     let particles = rt.share::<Particle>(100)?;
///     let one = Particle { place: [0.5; 3], cell: 7, kind: 1 };
///     rt.put(particles.at(rt.rank(), 8), one)?;
///     assert_eq!(rt.get(particles.at(rt.rank(), 8))?, one);
///     Ok(())
/// })
/// # }
/// ```
///
/// - Each field is `Plain`. So a reference, a pointer, a `bool`, a `char`, an enum or a
///   `Box` is refused: other ranks could not follow the one, or could make an invalid value
///   of the other.
/// - The struct is `#[repr(C)]` or `#[repr(transparent)]`, and has no padding.
/// - The fields of a generic struct have one type, or are arrays of it; a generic struct
///   that is packed or transparent may have any.
///
/// `#[plain(crate = path)]` names the module that has the trait, where another crate
/// re-exports it: `#[plain(crate = tsumugi_core::mem)]` in a program of `tsumugi-core`.
pub use tsumugi_macros::Plain;
/// Makes a function of a rank the `main` of the program, which [`run`] runs:
///
/// ```
/// #[tsumugi::main]
/// fn main(rt: &tsumugi::Runtime) -> Result<(), tsumugi::Error> {
///     println!("{} of {}", rt.rank(), rt.size());
///     rt.barrier()
/// }
/// ```
///
/// The function has one argument, and returns nothing, an `ExitCode`, or a `Result` of
/// these, of which the error is `Send`, `Debug` and `From<Error>`: [`Error`],
/// `anyhow::Error`, `Box<dyn std::error::Error + Send + Sync>`, or a type of the program.
/// An error is printed, behind the number of the rank if there are several, and the
/// process ends with exit code 1. A program that needs a [`Config`] of its own calls
/// [`Config::run`] in an ordinary `main`.
///
/// `#[tsumugi::main(crate = path)]` names this crate, where another crate re-exports it.
pub use tsumugi_macros::main;

pub use tsumugi_runtime::affinity;
pub use tsumugi_runtime::inside::Inside;
pub use tsumugi_runtime::job::is_rank;
pub use tsumugi_runtime::net::{NetworkCounts, NetworkFacts};
pub use tsumugi_runtime::service::messages::{Received, Source, Tags};
pub use tsumugi_runtime::{Error, MessageError, NoNetwork};

pub use tsumugi_backends::boot;

pub use tsumugi_core::am::{CallError, Message, SendError};
pub use tsumugi_core::coll::CollError;
pub use tsumugi_core::completion::{Outcome, Why};
pub use tsumugi_core::mem::{AddrError, Agent, Overflow, Plain, Rank, Remote, RemoteAddr, Word};
pub use tsumugi_core::signal::Until;
pub use tsumugi_pvas as pvas;
pub use tsumugi_pvas::GlobalHeap;
pub use tsumugi_ult as ult;
pub use tsumugi_ult::{JoinError, JoinHandle};
