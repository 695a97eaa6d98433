//! The interface of the Advanced Communication Primitives (ACP), for programs that
//! were written for them: `include/acp.h`.
//!
//! ```text
//!  main thread     acp_init ──────── calls ──────── acp_finalize
//!                     │                                 │
//!  a rank's threads   └─► tsumugi::run: its main ───────┘ sleeps meanwhile
//! ```
//!
//! | module | content |
//! |---|---|
//! | `job` | init, finalize, reset, abort, sync, rank, procs |
//! | `mirror` | makes the program's own memory reachable for other ranks |
//! | `still` | stops all other threads for a moment, as `mirror` needs |
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

mod access;
mod channel;
mod deque;
mod element;
mod heap;
mod hook;
mod job;
mod list;
mod map;
mod memory;
mod mirror;
mod multiset;
mod segment;
mod set;
mod still;
mod vector;
mod workspace;

pub(super) use memory::{end_mirror, mirrored};

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
