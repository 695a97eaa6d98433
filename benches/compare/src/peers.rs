//! Who else can do such work, each by the interface that its documentation
//! calls the fastest for it.
//!
//! | row | rayon | tokio | may | cmpth | MassiveThreads | Argobots |
//! |---|---|---|---|---|---|---|
//! | threads | none: calls | stackless | stackful | stackful | stackful | stackful |
//! | yield | | `yield_now` | `yield_now` | `yield_now` | `yield_ex`, local | `self_yield` |
//! | fork | `join` | `spawn` | `go!` | `spawn`; inline: `parallel_call` | help first | `create_to`, RANDWS |
//! | park | | `Notify` | `park` | `Resumable` | uncond | `self_suspend` |
//!
//! The last two are C libraries, which are loaded if they are there: on the
//! loader's path, or where `LD_LIBRARY_PATH` points.

mod argobots;
mod cmpth;
mod frames;
mod library;
mod rows;
mod massive;
mod may;
mod rayon;
mod tokio;

use tsumugi_bench_ult::System;

/// All of them.
pub const ULT: [System; 6] =
    [rayon::SYSTEM, tokio::SYSTEM, may::SYSTEM, cmpth::SYSTEM, massive::SYSTEM, argobots::SYSTEM];
