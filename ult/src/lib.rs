//! User-level threads: who waits.
//!
//! Thousands of them on a few OS threads, each on a small stack of its own. A
//! ULT that waits leaves its worker to others; switching costs nanoseconds.
//! [`Here`] is what the rest of tsumugi sleeps through.
//!
//! Bottom-up; a file uses only files above it in this list:
//!
//! | file | what it is |
//! |---|---|
//! | `host` | what the system gives, or whoever is there in its place |
//! | `thread`, `futex`, `lock`, `fences`, `bias`, `pool` | small things |
//! | `area`, `stack` | where ULTs run |
//! | `stake` | what a sleeper may be handed |
//! | `overflow` | naming a stack overflow |
//! | `deque`, `inject`, `mail`, `offer` | queues of ULTs |
//! | `timer`, `limit` | how long to wait |
//! | `fp`, `local` | what a ULT has for itself |
//! | `check` | what is said of suspensions that break a rule |
//! | `body`, `token`, `task`, `slab` | descriptors |
//! | `sched` | workers, and the thread-local door to them |
//! | `footprint` | what the tables cost |
//! | `foreign` | schedulers of somebody else's |
//! | `awake` | threads that are counted while they are awake |
//! | `park`, `limited` | sleeping and waking, and within a limit |
//! | `no_suspend` | saying that a ULT must not suspend |
//! | `future` | waiting for futures |
//! | `join`, `builder` | waiting for the end, and starting |
//! | `key` | ULT-local values |
//! | [`sync`] | locks, meeting points, channels |
//! | `scope` | ULTs that borrow |
//! | `inside` | dumps, backtraces, traces, a watchdog |
//!
//! # Hazards of stackful threads
//!
//! A ULT may change its OS thread at any call that suspends it. References
//! into `thread_local!`s, and guards that are not `Send`, must not live across
//! such a call; the compiler does not check that, [`callback`] and [`NoSuspend`]
//! do (see [`spawn`](spawn#suspension)). Nor should a ULT suspend in a destructor
//! while it unwinds: the standard library counts panics per OS thread. Builds with
//! debug assertions report that.
//!
//! What it does not do: preempt, bind to cores, or, with `std`, run anywhere
//! but on Linux.
//!
//! # Without std
//!
//! Without the feature `std`, which is a default, what is left needs `alloc`
//! alone: schedulers of one worker, whose thread is the one that calls
//! [`Scheduler::run`]. The embedding program gives the memory of the stacks
//! ([`StackArea::from_raw`]), and, as a `Host`, the time and what to do when
//! there is nothing to run. Everything but [`sync`]'s `try_` calls, unlocking
//! and unparking is for ULTs only. A panic is the program's own handler's, and
//! stacks have canaries in place of guard pages. Where a processor and system
//! are not known to have thread-local storage, one scheduler runs at a time,
//! and nobody else may call anything here, an interrupt included.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod host;
mod thread;
mod futex;
mod lock;
#[doc(hidden)]
pub mod fences;
#[doc(hidden)]
pub mod bias;
mod pool;
mod area;
mod stake;
mod stack;
mod overflow;
#[doc(hidden)]
pub mod deque;
#[doc(hidden)]
pub mod inject;
#[doc(hidden)]
pub mod mail;
#[doc(hidden)]
pub mod offer;
mod timer;
mod limit;
mod fp;
mod local;
mod check;
mod body;
mod token;
mod task;
mod slab;
mod sched;
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
mod key;
pub mod sync;
mod scope;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
pub mod inside;
#[cfg(all(test, any(tsumugi_asan, tsumugi_tsan)))]
mod planted;

/// The lock of what is driven by one worker as a rule, and by others now and
/// then: for the runtime.
#[doc(hidden)]
pub mod biased {
    pub use crate::sync::lock::{BiasedGuard, BiasedLock};
}

pub use area::{StackArea, StackError};
#[cfg(all(feature = "std", not(tsumugi_loom)))]
pub use awake::count_while_awake;
pub use body::Cancelled;
pub use builder::{Builder, Order, SpawnError, spawn, spawn_future};
pub use check::SuspensionCheck;
pub use footprint::{Footprint, footprint};
#[cfg(all(feature = "std", not(tsumugi_loom)))]
pub use foreign::{Crowded, FOREIGN_MAX, Registration, register};
pub use futex::SystemFutex;
pub use future::block_on;
#[cfg(not(feature = "std"))]
pub use host::{Host, NoThreads, set_host};
pub use join::{JoinHandle, is_alone, is_cancelled, yield_now, yield_to};
pub use key::LocalKey;
pub use limit::Limit;
#[cfg(feature = "std")]
pub use limited::sleep_until;
pub use limited::{park_timeout, park_within, sleep, sleep_within};
pub use no_suspend::NoSuspend;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
pub use no_suspend::with_thread_local;
pub use park::{Here, Unparker, on_os_stack, park, unparker};
pub use sched::{
    Config, NoProgress, Progress, Scheduler, Spawner, StartError, UltId, UltInfo, assert_may_block,
    callback, id, in_callback,
};
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use stack::{Guards, Unguarded};
pub use task::State;
pub use tsumugi_core::wait::{Foreign, Interrupted, Task};
