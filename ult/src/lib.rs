//! User-level threads (ULTs) and their scheduler: all blocking calls of tsumugi wait
//! here.
//!
//! Thousands of ULTs run on a few OS threads, the workers, each ULT on a small stack
//! of its own. A ULT that waits leaves its worker to other ULTs; a switch costs
//! nanoseconds. The rest of tsumugi sleeps through [`Here`].
//!
//! | first of all | |
//! |---|---|
//! | [`Scheduler`], [`Config`] | the workers |
//! | [`spawn`], [`JoinHandle`], [`Builder`] | starts a ULT, waits for its end |
//! | [`scope`](fn@scope) | ULTs that borrow |
//! | [`yield_now`], [`park`](fn@park), [`sleep`] | leaves the worker to others |
//! | [`sync`] | locks, barriers, channels |
//! | [`callback`], [`NoSuspend`] | code that must not suspend |
//!
//! ```
//! use tsumugi_ult::{Config, Scheduler, StackArea, spawn, yield_now};
//!
//! let config = Config::new(StackArea::map(16 << 20)?).main_stack_bytes(256 << 10);
//! let sum = Scheduler::new(config)?.run(|| {
//!     let ults: Vec<_> = (0..100u64)
//!         .map(|number| {
//!             spawn(move || {
//!                 yield_now();
//!                 number
//!             })
//!         })
//!         .collect();
//!     ults.into_iter().map(|ult| ult.join().expect("no ULT panics")).sum::<u64>()
//! });
//! assert_eq!(sum, 4950);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The files, bottom-up; a file uses only files above it in this list:
//!
//! | file | what it is |
//! |---|---|
//! | `host` | the system's services, or the embedding program in place of a system |
//! | `thread`, `futex`, `lock`, `fences`, `bias`, `pool` | OS threads, futexes, locks, fences, pools |
//! | `area`, `stack` | the memory of stacks, and the stacks with their contexts |
//! | `cleanup` | what the end of a scheduler does for ULTs that are cut off |
//! | `overflow` | the report of a stack overflow |
//! | `deque`, `inject`, `handoff`, `public_slot` | queues and hand-off slots of ULTs |
//! | `timer`, `limit` | timers, and limits of waits |
//! | `fp`, `local` | per-ULT state: floating-point control words, local values |
//! | `check` | reports of suspensions that break a rule |
//! | `body`, `token`, `task`, `slab` | descriptors of ULTs and their parts |
//! | `sched` | workers, and the thread-local pointer to the own worker |
//! | `footprint` | the size of the tables |
//! | `foreign` | schedulers of other libraries |
//! | `awake` | threads that are counted while they are awake |
//! | `park`, `limited` | sleeping and waking; sleeping within a limit |
//! | `no_suspend` | a guard under which a ULT must not suspend |
//! | `future` | waiting for futures |
//! | `join`, `builder` | waiting for the end of ULTs, and starting them |
//! | `key` | ULT-local values |
//! | [`sync`] | locks, barriers, channels |
//! | `scope` | ULTs that borrow |
//! | `inside` | dumps, backtraces, traces, a watchdog |
//!
//! # Hazards of stackful threads
//!
//! A ULT may change its OS thread at any call that suspends it. References into
//! `thread_local!`s, and guards that are not `Send`, must not live across such a
//! call. The compiler does not check that; [`callback`] and [`NoSuspend`] do (see
//! [`spawn`](spawn#suspension)). Nor should a ULT suspend in a destructor while it
//! unwinds, because the standard library counts panics per OS thread. Builds with
//! debug assertions report that.
//!
//! This crate does not preempt ULTs, does not bind workers to cores, and, with `std`,
//! runs on Linux only.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `std` (default) | OS threads as workers, the system's clock and stacks, panics that a join returns, and the reports `inside` |
//!
//! # Without std
//!
//! Without the feature `std` this crate needs `alloc` alone. A
//! scheduler then has one worker, and its thread is the one that calls
//! [`Scheduler::run`]. The embedding program gives the memory of the stacks
//! ([`StackArea::from_raw`]), and, as a `Host`, the time and the way to rest when
//! there is nothing to run. Everything but [`sync`]'s `try_` calls, unlocking and
//! unparking is for ULTs only. A panic goes to the program's own panic handler, and
//! stacks have canaries in place of guard pages. On processors and systems that are
//! not known to have thread-local storage, one scheduler runs at a time, and no other
//! code, an interrupt handler included, may call anything here.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod host;
mod thread;
mod futex;
mod lock;
mod fences;
mod bias;
mod pool;
mod area;
mod cleanup;
mod stack;
mod overflow;
mod deque;
mod inject;
mod handoff;
mod public_slot;
mod timer;
mod limit;
mod fp;
mod local;
mod check;
mod join_error;
mod body;
mod token;
mod task;
mod slab;
mod sched;
mod enter;
mod footprint;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
mod foreign;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
mod awake;
mod park;
mod limited;
mod no_suspend;
mod future;
mod join;
mod builder;
pub mod call;
mod key;
pub mod sync;
mod scope;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
pub mod inside;
#[cfg(all(test, any(tsumugi_asan, tsumugi_tsan)))]
mod planted;

/// For the runtime, which has memory and locks that one worker uses as a rule, and for
/// the model checkers' tests: no part of the interface.
#[doc(hidden)]
pub mod internals {
    pub use crate::bias::{Bias, BiasEnd, InsideMark, STREAK};
    pub use crate::deque::{Steal, WorkDeque};
    pub use crate::fences::Fences;
    pub use crate::handoff::{HandoffBatch, HandoffSlot};
    pub use crate::inject::{Inject, Linked};
    pub use crate::public_slot::PublicSlot;
    pub use crate::sched::{has_offers, worker_of_thread};
    pub use crate::sync::lock::{BiasedGuard, BiasedLock};
}

pub use area::{StackArea, StackError};
#[cfg(all(feature = "std", not(tsumugi_loom)))]
pub use awake::{AwakeThread, count_while_awake, sleeper_of};
pub use builder::{Builder, Order, SpawnError, spawn, spawn_future};
pub use check::SuspensionCheck;
pub use enter::Entered;
pub use footprint::{Footprint, footprint};
#[cfg(all(feature = "std", not(tsumugi_loom)))]
pub use foreign::{Crowded, FOREIGN_MAX, Registration, register};
pub use futex::SystemFutex;
pub use future::block_on;
#[cfg(not(feature = "std"))]
pub use host::{Host, NoThreads, set_host};
pub use join::{JoinHandle, is_alone, is_cancelled, yield_now, yield_to};
pub use join_error::{Cancelled, JoinError};
pub use key::LocalKey;
pub use limit::Limit;
#[cfg(feature = "std")]
pub use limited::sleep_until;
pub use limited::{park_timeout, park_within, sleep, sleep_within};
pub use no_suspend::NoSuspend;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
pub use no_suspend::with_thread_local;
pub use overflow::Origin;
pub use park::{Here, Unparker, on_os_stack, park, unparker};
pub use sched::{
    Config, NoProgress, Progress, Scheduler, Spawner, StartError, UltId, UltInfo, assert_may_block,
    callback, id, in_callback, name, rank, worker,
};
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use stack::{Guards, Unguarded};
pub use task::UltState;
pub use tsumugi_core::wait::{Foreign, ForeignTask, Interrupted};
