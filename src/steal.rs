//! Work that other ranks steal: a deque of each rank, in memory that all ranks reach.
//!
//! | | |
//! |---|---|
//! | [`Runtime::rank_deque`](crate::Runtime::rank_deque) | the deques of all ranks, and this rank's end of its own |
//! | [`RankDeque::push`], [`RankDeque::pop`] | add an item, and take the newest one |
//! | [`RankDeque::steal`], [`Stealer::steal`] | take the oldest item of any rank |
//!
//! A rank works at the newest end of its deque without any other rank; thieves take from
//! the oldest end by reads and one compare-and-swap, and the program of the other rank
//! takes no part.
//!
//! ```
//! # fn main() -> Result<(), tsumugi::Error> {
//! # tsumugi::run(|rt| {
//! let mut deque = rt.rank_deque::<[u32; 2]>(1000)?;
//! deque.push([3, 4]).expect("there is room for 1000 items");
//! // Any other thread of the rank may steal.
//! let stealer = deque.stealer();
//! let next = tsumugi::Rank((rt.rank().0 + 1) % rt.size());
//! match stealer.steal(next)? {
//!     Some(work) => println!("{} has stolen {work:?} from {next}", rt.rank()),
//!     None => println!("{next} has nothing left"),
//! }
//! # Ok::<_, tsumugi::Error>(()) })
//! # }
//! ```
//!
//! Progress: lock-free; between ranks of a node no call waits, and elsewhere a theft
//! waits for three operations of the network, and for one if there is nothing to steal.
//!
//! # References
//!
//! - Chase and Lev: Dynamic Circular Work-Stealing Deque. SPAA 2005.
//! - Dinan et al.: Scalable Work Stealing. SC 2009.

mod raw;
mod deque;

pub use deque::{RankDeque, Stealer};
#[doc(hidden)]
pub use raw::RawDeque;
