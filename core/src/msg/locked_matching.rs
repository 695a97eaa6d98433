//! Locked matching: a sender looks into the table of its receiver, under a lock.
//!
//! Each rank has a [`Board`] in memory that the others reach, and puts all its
//! posted receives on it. A message of a suitable size claims the first receive
//! that takes it and is copied into that receive's buffer, and no packet
//! announces it: the receiver finds the state `done` on its board. A message that
//! cannot do so (the lock is taken, earlier messages are in the lane, no receive,
//! out of reach) goes by the lane, as without a board.
//!
//! ```text
//!   sender                                    receiver
//!   try_claim ── not the expected one ──┐
//!     │      └── locked, none, too far ─┴──►  lane: lock; count it as expected,
//!     ▼                                       meet the first receive that is
//!   copy, finish ───────────────────────────► not claimed; unlock
//!                                             done? meet
//! ```
//!
//! # Use
//!
//! The design of paper 2 of docs/papers.md. It is not the default: receivers offer
//! their receives to the senders (`mirror`), and no lock is taken.
//!
//! | | |
//! |---|---|
//! | selected by | [`MatchingDesign::Locked`](super::MatchingDesign), `TSUMUGI_MESSAGES=locked` |
//! | explored by | `core/tests/explore/locked.rs`; `core/tests/loom/board.rs` |
//! | run by | `core/tests/sim/message/mod.rs`; `tests/job/cases.rs`, case `mixture` |
//! | measured by | `tsumugi bench message`, system `locked` |

mod board;
mod matching;

pub use board::{Arrival, Board, BoardError, BoardPost, BoardShape, ClaimError, ClaimedPost};
pub use board::{PostState, WALK_MAX};
