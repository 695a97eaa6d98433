//! What a communication is: the part of tsumugi that a task scheduler or a
//! PGAS runtime embeds. `no_std`, no allocation.
//!
//! Bottom-up; a module uses only modules above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | [`sync`] | the one door to atomics and cells |
//! | [`time`] | time as an argument |
//! | [`excerpt`] | what of a text fits into an error |
//! | [`stats`] | what is counted and how long it took |
//! | [`tag`] | who a completion is for |
//! | [`ring`] | bounded queues between threads |
//! | [`wait`] | sleeping and waking |
//! | [`mem`] | regions, keys and addresses |
//! | [`op`] | what is asked of a backend |
//! | [`completion`] | one operation, four waits |
//! | [`backend`] | how bytes move |
//! | [`boot`] | finding each other |
//! | [`engine`] | who posts, who polls, who waits |
//! | [`signal`] | waiting for a word |
//! | [`am`] | active messages |
//! | [`msg`] | messages: send and receive by source and tag |
//! | [`coll`] | barrier and sum over all ranks |
//! | `sim` | many nodes in one thread, from one seed (feature `alloc`) |
//!
//! Nothing here allocates but the simulator. Features: `alloc` adds it, `std`
//! its printing of seeds that fail, `mutants` the defects that a test can
//! plant. `unwind`, which needs the standard library, contains panics of the
//! wakers of futures.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", feature = "unwind"))]
extern crate std;

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
