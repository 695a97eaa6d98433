//! Communication: the part of tsumugi that a task scheduler or a PGAS
//! runtime embeds. `no_std`, no allocation.
//!
//! | first of all | |
//! |---|---|
//! | [`RemoteAddr`](mem::RemoteAddr), [`Region`](mem::Region), [`AddrError`](mem::AddrError) | the address of a byte of any rank, registered memory, why an address was refused |
//! | [`Op`](op::Op) | a put, a get or an atomic |
//! | [`Domain`](backend::Domain), [`Endpoint`](backend::Endpoint), [`LoadStore`](backend::LoadStore) | the interfaces of a backend |
//! | [`Engine`](engine::Engine), [`Ticket`](completion::Ticket) | threads begin operations and wait for their ends |
//! | [`Wait`](wait::Wait), [`Waker`](wait::Waker) | how a thread of the embedding scheduler sleeps |
//! | [`Mpsc`](ring::Mpsc) | a bounded queue |
//!
//! ```
//! use std::ptr::NonNull;
//! use tsumugi_core::backend::{Domain, Loopback, execute};
//! use tsumugi_core::mem::{Access, Rank, RemoteAddr, Width};
//! use tsumugi_core::op::{Kind, Op};
//!
//! // A job of two ranks inside this process. Rank 1 shows a word to rank 0.
//! let job = Loopback::<2>::new(2);
//! let word: &'static mut u64 = Box::leak(Box::new(40));
//! let (base, access) = (NonNull::from(word).cast(), Access::ReadWrite);
//! // SAFETY: leaked, and used as nothing but a word that ranks change.
//! let region = unsafe { job.rank(Rank(1)).register(base, 8, access) }.unwrap();
//!
//! let at = RemoteAddr { rank: Rank(1), key: region.key, offset: 0 };
//! let from_rank_0 = job.rank(Rank(0));
//! assert_eq!(execute(&from_rank_0, &Op::atomic(Kind::FetchAdd, at, 2u64)), Ok(40));
//! assert_eq!(execute(&from_rank_0, &Op::get_word(at, Width::W8)), Ok(42));
//! ```
//!
//! The modules, bottom-up; a module uses only modules above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | [`setters!`] | functions that set single fields of a struct of options |
//! | [`random`] | pseudo-random numbers from a seed |
//! | [`sync`] | the only source of atomics and cells |
//! | [`time`] | points in time, and the clock |
//! | [`excerpt`] | the part of a text that fits into an error |
//! | [`quantity`] | numbers, sizes and times as users write them |
//! | [`release`] | the release with which a program was built |
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
//! Nothing here allocates except the simulator.
//!
//! # Features
//!
//! None is on unless a package asks for it.
//!
//! | feature | what it adds |
//! |---|---|
//! | `alloc` | the simulator `sim`, and an allocator |
//! | `std` | the simulator prints the seeds that fail, and replays them; it includes `alloc` |
//! | `unwind` | panics of the wakers of futures are contained and printed; it needs the standard library |
//! | `mutants` | defects that a test can plant, in builds with debug assertions; it includes `std` |
//! | `loom`, `shuttle` | the model checkers, in builds with `cfg(tsumugi_loom)` or `cfg(tsumugi_shuttle)` alone |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", feature = "unwind"))]
extern crate std;

mod setters;
pub mod random;
pub mod sync;
pub mod time;
pub mod excerpt;
pub mod quantity;
pub mod release;
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
