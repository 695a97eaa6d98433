//! The move of a page to the rank that requests it, or to another rank that takes no
//! part, by remote atomics alone.
//!
//! ```text
//!  the paper's step                   here
//!   1  request                        entry: read; own frame: take
//!   2  lock, invalidate               entry: At → Moving, by us
//!   3  stop, to all that may write    holders: emptied; of each: its gate,
//!   4  invalidate, wait for writes      Pending → Revoked, Valid → Stopped
//!   5  stopped                        ... and wait until the count is 0
//!   6  permission                     (not needed)
//!   7  copy                           bytes: get; header there: gone
//!   8  done    9  new metadata        entry: Moving → At us
//!  10  cached                         (by the next pin or optimistic read)
//! ```
//!
//! Ranks that only read are neither asked nor waited for, however many they are; the
//! frame that the page has left is free after a [`GracePeriod`](super::GracePeriod).
//!
//! The order of the stores is: the bytes, the new header, the mark of the old
//! header, the entry. So of all headers that a reader can come to, at most one is
//! live with the epoch of the entry that the reader has, and while it is live, its
//! bytes are the page's.
//!
//! A mover may die. The next rank that requests the page then takes over (the recovering mover).
//! Any rank may have been left with a valid gate, so the recovering mover stops all ranks; each
//! later mover does so, too, because the operation by which the dead mover empties
//! the list may land at any time, and remove a rank that was entered since. If the
//! recovering mover fails, the page stays where it is, but with the epoch of a move: the dead
//! mover may have marked the page's header, or may do so later.
//!
//! | file | contents |
//! |---|---|
//! | `mover` | a relocation, and its steps |
//! | `action` | the operation of each step |
//! | `advance` | the step that follows the result of an operation |
//! | `outcome` | what is copied, and how a relocation ends |

mod outcome;
mod mover;
mod advance;
mod action;

pub use mover::Relocation;
pub use outcome::{MoveOutcome, PageCopy, Refusal, RetiredFrame};

#[cfg(test)]
mod tests;
