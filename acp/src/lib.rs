//! The interface of the Advanced Communication Primitives (ACP), for programs that
//! were written for them. The header is `include/acp.h`; the package `tsumugi-library`
//! makes the library.
//!
//! ```text
//!  main thread     acp_init ──────── calls ──────── acp_finalize
//!                     │                                 │
//!  a rank's threads   └─► tsumugi::run: its main ───────┘ sleeps meanwhile
//! ```
//!
//! | module | content |
//! |---|---|
//! | `shared_rank` | the rank of the process, beside other interfaces |
//! | `caller` | the thread that has made its process a rank |
//! | `still` | stops all other threads for a moment, as `mirror` needs |
//! | `mirror` | makes the program's own memory reachable for other ranks |
//! | `options`, `life` | what main's arguments say; the state of a rank, and how calls come to it |
//! | `job` | init, finalize, reset, abort, sync, rank, procs |
//! | `memory` | starter memory, registration, queries about an address |
//! | `access` | copies and atomics with handles |
//! | `channel`, `segment`, `workspace` | the communication library |
//! | `heap`, `vector` ... `map` | the data library |
//! | `hook` | takes the program's own allocations from the rank's heap |
//!
//! Differences from ACP: any thread may call (except for collective calls); atomic
//! operations, and copies between ranks of a node, are complete when the call
//! returns; handles are increasing numbers; containers have locks for which their
//! callers sleep. A call that fails returns the value that ACP documents, and
//! `tsumugi_acp_error` has the reason.
#![allow(non_camel_case_types)]

mod shared_rank;
mod caller;
mod background_rank;
mod still;
mod mirror;
mod options;
mod life;
mod memory;
mod access;
mod hook;
mod job;
mod channel;
mod segment;
mod workspace;
mod heap;
mod element;
mod vector;
mod deque;
mod list;
mod set;
mod multiset;
mod map;

pub use access::*;
pub use channel::*;
pub use deque::*;
pub use element::*;
pub use heap::*;
pub use job::*;
pub use list::*;
pub use map::*;
pub use memory::*;
pub use multiset::*;
pub use segment::*;
pub use set::*;
pub use vector::*;
pub use workspace::*;

/// What the C interface and MPI's share with this one. It stands here because there is one of
/// each in a process: the rank, the thread that made the process a rank, and the list of the
/// pages that are shared.
pub mod process {
    pub use crate::background_rank::{BackgroundCalls, BackgroundError, BackgroundRank};
    pub use crate::mirror::{end_mirror, mirrored};
    pub use crate::shared_rank::{
        BeginningRank, RankUser, begin, end, end_anyway, release, use_rank,
    };
}
