//! The paper's directory: the home answers, lists who has asked, and stops
//! them before a page moves. Between processors, by messages.
//!
//! ```text
//!  requester X, Y            home                 new owner B      old owner A
//!     │◄──────────────── Told(A) ──┤ ◄─ Query
//!     │                            │◄──────── Own ── 1 ┤
//!     │                          2 │ locked            │
//!     │◄──── Stop ──────────── 3 ──┤                   │
//!   4 │ forgets, waits for writes  │                   │
//!     ├── Stopped ──────────── 5 ─►│                   │
//!     │                            ├── Permit ─── 6 ──►│
//!     │                            │                 7 │ ◄── copy ──── │
//!     │                            │◄──────── Moved ── 8 ┤ 10           │
//!     │                            ├──────────────── Told ─────────►│ (B)
//!     ├── Ended (reads) ──────────►│ 9                                │
//!     │                            ├──────────────── Free ───────────►│
//! ```
//!
//! A [`Requester`] is what a rank knows of a page, a [`Home`] what its home
//! does; neither keeps a table or sends anything. Messages may overtake each
//! other and none is lost; all carry the epoch of the entry that they are
//! about. What the paper leaves open, and what is done here:
//!
//! | hazard | |
//! |---|---|
//! | O1, O6 | coming in counts and checks in one step; `leave` is for what has completed at the remote end |
//! | O2, O13 | a `Stop` names an epoch; a `Told` of that epoch or an earlier one is not believed any more |
//! | O3, O4, O8 | who is told is listed in the same step, reader or writer; nobody is told while the page moves |
//! | O5 | `Stopped` says whether reads go on, `Ended` when they do not; only then the old frame is free |
//! | O7 | what has to wait is noted with the page, and the next message handled |
//! | O9 | who wants the page waits in the order of ranks, those who wait to be told come before; step 10 is part of step 9: the new owner is listed, and told, before it could be stopped |
//! | O10 | the home, the old owner and the new one are listed and stopped like all others |
//! | O11 | one bit for each rank, so at most 64; a `Stop` that finds nothing is acknowledged at once |
//! | O14 | a mover without a frame, or that dies before the home has heard of its `Moved`, leaves the page where it was, under a new epoch; it has not used it, for it waits to be told. A frame that a lost rank may still write to, or read, is not freed |
//!
//! Progress: blocking. An own waits for every listed rank.
//!
//! # References
//!
//! W. Endo and K. Taura, on a PGAS with relocation and a cache of metadata; the
//! ten steps of `own`.

mod home;
mod requester;

pub use home::{Home, RANKS_MAX};
pub use requester::{Enter, Requester, Want};

use super::Entry;

/// From the home to a requester or back, about one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// Where is it?
    Query(Want),
    /// There.
    Told(Entry),
    /// It moves: this is its last epoch there.
    Stop(u32),
    /// No write is under way any more.
    Stopped {
        /// Of the page in that epoch.
        epoch: u32,
        /// Nor any read.
        has_ended: bool,
    },
    /// No read is under way any more.
    Ended(u32),
    /// Let me have it.
    Own,
    /// It is yours already.
    Yours,
    /// Copy it, it is there; all are stopped.
    Permit(Entry),
    /// It is here now, in this frame.
    Moved(u32),
    /// It could not be copied.
    Abort,
    /// Nobody reads this frame of yours any more.
    Free(u32),
}
