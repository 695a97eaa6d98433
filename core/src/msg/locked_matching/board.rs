//! The board of a rank: its posted receives, in shared memory and under a lock,
//! where senders can see and claim them (the paper's receive queue).
//!
//! ```text
//!              owner, under the lock
//!   free ─────────post─────────► posted ──── try_claim: a sender, under the
//!    ▲                             │  │                  lock ─────┐
//!    ├──withdraw: matched by lane, ┘  │                            ▼
//!    │            or cancelled        └───────────────────────► claimed
//!    │                                                             │ the copy
//!    └──remove── done ◄──────────finish (release)──────────────────┘
//! ```
//!
//! Beside the posts lies, for each sender, the number of the message of that
//! sender that is *expected* next. Only the expected message may claim, because
//! otherwise earlier messages are still in the lane, and the claiming one would
//! overtake them. A message passes this point when its sender claims, or when the
//! owner takes it from the lane and matches it. That rank counts the message in
//! the same hold of the lock.
//!
//! # Which rank writes what
//!
//! The owner links and unlinks posts. A sender writes only the state of one post
//! and its own expected number, so if the sender dies at any point, the lists are
//! intact. The lock word contains the rank that holds the lock: when that rank
//! has died, the owner takes the lock over.
//!
//! Progress: `try_claim` is wait-free: it tries the lock once and looks at
//! [`WALK_MAX`] posts at most. `lock`, which the owner calls, is blocking: it
//! waits for a sender that has the lock. All other calls are wait-free.
//!
//! # References
//!
//! The single-copy eager protocol of Open MPI over PVAS: the sender searches the
//! receiver's queue under a try-lock and falls back to the ordinary protocol.

mod claim;
mod layout;
mod owner;
mod post;
#[allow(unsafe_code)]
mod view;

pub use claim::{ClaimError, ClaimedPost, WALK_MAX};
pub use post::{Arrival, BoardPost, PostState};
pub use view::{Board, BoardError, BoardShape};

#[cfg(all(test, not(tsumugi_loom)))]
#[allow(unsafe_code)]
mod tests;
