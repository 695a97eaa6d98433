//! Locks over remote atomics. A lock is a few words in some rank's memory, and a
//! claim works on them by remote atomics. The rank that has the words takes no part,
//! and a claim that has to wait sleeps until a word in its own rank's memory is
//! written. A claim is one request for a lock, as a state machine.
//!
//! | module | what it is |
//! |---|---|
//! | [`node`] | queue nodes: where a claim waits |
//! | [`claim`] | one claim to one lock: mutex, or shared and exclusive |
//! | [`drive`] | claims that block, on memory that can be loaded and stored |
//! | [`tree`] | the tree of a group lock |
//! | [`vertex`] | a vertex of that tree, run by one rank |
//! | [`member`] | one rank that enters and leaves a group lock |
//! | `window_design` | three designs of the locks of a window: what an access locks |
//! | [`access`] | one access to a window, by any of these designs |
//!
//! ```text
//!  words of a lock             words of a queue node, at each claimant
//!    count   readers, flags      state   what it may do
//!    tail    last writer  ───►   next    the node behind it
//!    head    first writer
//!    readers, other readers: lists of readers that wait
//! ```
//!
//! The lock's [`LockKind`] determines which claims wait for which. The protocols do no
//! IO: [`LockClaim::poll_op`] returns operations, and the driver hands in completions
//! and changes of the claim's own word. The driver must post the operations at the
//! agent that carries out the atomics on that word (one agent for all operations,
//! also for those to the own rank), with remote completion, and wait with
//! `core::signal`.
//!
//! Operations under a lock must have completed at the remote end before the lock is
//! given back, so the holder must flush first.
//!
//! # When a rank dies
//!
//! The dead rank may have held the lock, or may be in a queue. Every claim that
//! waits then ends with [`AddrError::PeerLost`], which names the dead rank; so do
//! operations on that rank's memory. Holders of the lock keep it and give it back.
//! The lock itself is of no use any more, until all live ranks have ended their
//! claims and agree on the next [epoch](Lock::epoch): other words, zero as at the
//! start, as if the lock had never been held. A rank that was
//! [given up](tsumugi_core::backend::Domain#a-rank-that-is-given-up) and lives may
//! still hold the lock in the epoch before: no other claim holds the lock of that
//! epoch with it.
//!
//! Progress: blocking. Without contention, a fixed number of operations; a claim
//! carries out operations for others at most as often as claims before it have given
//! up waiting.
//!
//! # References
//!
//! J. M. Mellor-Crummey and M. L. Scott: Scalable reader-writer synchronization
//! for shared-memory multiprocessors. PPoPP 1991. B. B. Brandenburg and J. H.
//! Anderson: Spin-based reader-writer synchronization for multiprocessor
//! real-time systems. Real-Time Systems 46 (2010): phases. M. Hatanaka, A. Hori
//! and Y. Ishikawa, on locks over the atomics of FX100.

pub mod access;
pub mod claim;
mod count;
pub mod drive;
pub mod member;
mod kind;
pub mod node;
mod side;
mod step;
pub mod tree;
pub mod vertex;
mod window_design;
mod words;

pub use access::{AccessRefused, AccessWait, RankMembership, WindowAccess};
pub use claim::{ClaimEnd, ClaimStatus, LockClaim};
pub use kind::{LockKind, LockMode};
pub use member::{GroupMember, MemberPlace};
pub use node::{NODE_BYTES, NodeId, NodePool, NodeSlot, NodeTable};
pub use side::GroupSide;
pub use step::StepId;
pub use tree::{FAN_MAX, Tree, TreeError, VertexId};
pub use vertex::{Vertex, VertexStep};
pub use window_design::{LockDesign, LockPlan, Want};
pub use words::{LOCK_BYTES, Lock};

#[cfg(doc)]
use tsumugi_core::mem::AddrError;
