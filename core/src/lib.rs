//! Communication: the part of tsumugi that a task scheduler or a PGAS
//! runtime embeds. `no_std`, no allocation.
//!
//! The modules, bottom-up; a module uses only modules above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | [`random`] | pseudo-random numbers from a seed |
//! | [`sync`] | the only source of atomics and cells |
//! | [`time`] | points in time, and the clock |
//! | [`excerpt`] | the part of a text that fits into an error |
//! | [`stats`] | counters and latency histograms |
//! | [`tag`] | names of operations in flight |
//! | [`ring`] | bounded queues between threads |
//! | [`wait`] | sleeping and waking |
//! | [`mem`] | regions, keys and addresses |
//! | [`op`] | the operations that a backend carries out |
//! | [`completion`] | the end of one operation, and four ways to wait for it |
//! | [`backend`] | how bytes move |
//! | [`boot`] | bootstrap: how ranks find each other |
//! | [`engine`] | which threads post, poll and wait |
//! | [`signal`] | waiting for a word |
//! | [`am`] | active messages |
//! | [`msg`] | messages: send and receive by source and tag |
//! | [`coll`] | barrier and sum over all ranks |
//! | `sim` | many nodes in one thread, from one seed (feature `alloc`) |
//!
//! Nothing here allocates except the simulator. Features: `alloc` adds the
//! simulator, `std` makes it print the seeds that fail, and `mutants` adds the
//! defects that a test can plant. `unwind`, which needs the standard library,
//! contains panics of the wakers of futures.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", feature = "unwind"))]
extern crate std;

pub mod random;
pub mod sync;
pub mod time;
pub mod excerpt;
pub mod stats;
pub mod tag;
pub mod ring;
pub mod wait;
pub mod mem;
pub mod op;
pub mod completion;
pub mod backend;
pub mod boot;
pub mod engine;
pub mod signal;
pub mod am;
pub mod msg;
pub mod coll;
#[cfg(feature = "alloc")]
pub mod sim;
#[cfg(all(test, any(tsumugi_asan, tsumugi_tsan)))]
mod planted;
