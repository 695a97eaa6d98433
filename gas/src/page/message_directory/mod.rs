//! The message directory: the page directory between processors, by messages. The home
//! answers queries, lists the ranks that have asked, and stops them before a page
//! moves.
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
//! A [`Requester`] is the state of a page at a rank that uses it, a [`Home`] the
//! state at its home; neither keeps a table or sends anything. Messages may overtake
//! each other, and none is lost; all carry the epoch of the entry that they concern.
//! The hazards that the paper leaves open, and their solutions here:
//!
//! | hazard | |
//! |---|---|
//! | O1, O6 | entering counts and checks in one step; `leave` is called for an access that has completed at the remote end |
//! | O2, O13 | a `Stop` names an epoch; a `Told` of that epoch or an earlier one is ignored from then on; an `Ended` counts for its epoch alone |
//! | O3, O4, O8 | the home lists a rank in the step in which it answers, reader or writer; no rank gets an answer while the page moves |
//! | O5 | `Stopped` says whether reads go on, `Ended` that they have ended; only then the old frame is free |
//! | O7 | a request that has to wait is noted with the page, and the next message is handled |
//! | O9 | ranks that want to own the page wait in the order of their numbers, and queries are answered before; step 10 is part of step 9: the new owner is listed and gets its `Told` before it could be stopped |
//! | O10 | the home, the old owner and the new owner are listed and stopped like all other ranks |
//! | O11 | one bit for each rank, so at most 64; a requester that knows no entry acknowledges a `Stop` at once |
//! | O14 | if a mover has no frame, or dies before the home has handled its `Moved`, the page stays where it was, under a new epoch; the mover has not used the page, because it waits for its `Told`. A frame that a lost rank may still write to, or read, is not freed |
//! | O18 | a `Told` of a page that is known is ignored: the place is the same, and the accesses there belong to the known epoch until its `Stop` |
//!
//! Progress: blocking. An `own` waits for every listed rank.
//!
//! # Use
//!
//! The design of paper 5 of docs/papers.md, for comparison. It is not the default:
//! arrays keep their directory in words that are changed by remote atomics (the
//! other modules of [`page`](super)).
//!
//! | | |
//! |---|---|
//! | selected by | `Directory::Messages`, an option of an array in the facade |
//! | driver | `src/array/message_directory.rs`: active messages |
//! | explored by | `gas/tests/page/messages.rs`, `gas/tests/page/random.rs` |
//! | run by | `tests/array/main.rs`, `tests/moving/histories.rs` |
//! | measured by | `tsumugi bench gas`, rows `own` with `directory=messages`, `letters_own` |
//!
//! # References
//!
//! W. Endo and K. Taura, on a PGAS with relocation and a cache of metadata; the
//! ten steps of `own`.

mod home;
mod protocol;
mod requester;

pub use home::{Home, RANKS_MAX};
pub use protocol::{DirectoryMessage, PageAccess};
pub use requester::{Enter, Requester};
