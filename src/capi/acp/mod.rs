//! ACP's names and meaning: `include/acp.h`, for programs that were written for
//! the Advanced Communication Primitives.
//!
//! ```text
//!  main thread     acp_init ──────── calls ──────── acp_finalize
//!                     │                                 │
//!  a rank's threads   └─► tsumugi::run, whose main ─────┘ sleeps meanwhile
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `job` | init, finalize, reset, abort, sync, rank, procs |
//! | `mirror` | memory of the program's, where other ranks can reach it |
//! | `still` | a moment in which no other thread runs, for that |
//! | `memory` | starter memory, registration, questions to an address |
//! | `access` | copies and atomics with handles |
//! | `channel`, `segment`, `workspace` | the communication library |
//! | `heap`, `vector` ... `map` | the data library |
//! | `hook` | the program's own malloc, from the rank's heap |
//!
//! What differs: any thread may call (but for what all ranks call together);
//! atomics, and copies between ranks of a node, are over when the call returns;
//! handles are numbers that go up; containers have locks that their callers
//! sleep for. A call that fails answers what ACP says, and
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
