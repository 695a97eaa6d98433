//! Operations in flight, and five ways for the caller to learn of a completion:
//! the caller chooses the way, and all of them cost the same.
//!
//! | the caller | begins with | and then |
//! |---|---|---|
//! | leaves a function | [`Completions::try_begin_callback`] | returns |
//! | leaves a value, in the slot | [`Completions::try_begin_owned`] | returns |
//! | looks | [`Completions::try_begin`] | [`Ticket::try_finish`] now and then |
//! | sleeps | [`Completions::try_begin`] | [`Ticket::wait`], [`Ticket::wait_timeout`] |
//! | awaits | [`Completions::try_begin`] | `ticket.await` |
//!
//! There is one slot for each tag. The requester fills the slot and posts the
//! operation with the tag. The thread that polls the device passes each
//! completion to [`Completions::complete`]. The state word of a slot defines
//! which thread may access which field:
//!
//! ```text
//!  word:  generation (40) | CALLBACK ABANDONED WAKER DONE CLAIMED LIVE
//!
//!                  try_begin                complete
//!   idle ─────────────► LIVE ─────────────► CLAIMED ────────► DONE ──┐
//!    ▲                 │ ▲  │ │             writes the result,       │
//!    │        wait,    ▼ │  │ │             takes the waker     try_finish,
//!    │        poll    WAKER │ │                  │                 wait
//!    │                      │ │ drop: ABANDONED  │ CALLBACK or       │
//!    │  retract             │ └─────────────────►│ ABANDONED         │
//!    └──────────────────────┴────────────────────┴───────────────────┘
//!          the slot is idle, then the tag is freed
//!
//!   field        written by                          read by
//!   result       the claimer, before DONE            the ticket, after DONE
//!   waiting      the ticket, while neither WAKER     the claimer, if WAKER was
//!                nor CLAIMED is set                  set when it claimed
//!   buffer       `try_begin`                         the ticket after DONE, the
//!                                                    claimer if ABANDONED
//! ```
//!
//! - A completion that comes twice, or for an earlier life of the tag, is
//!   dropped: `complete` returns false.
//! - A callback is moved out, then the tag is freed, then the callback is
//!   called: so the callback may begin an operation although no other tag was
//!   left.
//! - A ticket *owns* the buffer of its operation and gives it back at the end.
//!   The buffer lies in the slot. A ticket that is dropped early leaves the
//!   buffer there until the device is done; the thread that polls then drops the
//!   buffer. So a buffer is a handle of at most [`BUFFER_BYTES`] bytes: a `Box`,
//!   a `Vec`, a piece of registered memory. A callback that lies in the slot owns the
//!   buffer in the same way, and has as many bytes at most.
//!
//! Progress: `try_begin`, `complete` and `try_finish` are lock-free; `wait`
//! blocks its caller and no other thread.
//!
//! # Example
//!
//! ```
//! use tsumugi_core::completion::CompletionTable;
//!
//! let table = CompletionTable::<1>::new();
//! let operations = table.view();
//! let ticket = operations.try_begin(0, vec![0; 4096]).expect("64 tags are free");
//! let tag = ticket.tag(); // posted with the operation
//! // The thread that polls the device:
//! assert!(operations.complete(tag, Ok(7)));
//! // The caller:
//! let outcome = ticket.try_finish().expect("it has ended");
//! assert_eq!((outcome.result, outcome.buf.len()), (Ok(7), 4096));
//! ```

mod callback;
mod outcome;
mod slot;
mod table;
mod ticket;
mod waiter;

pub use callback::{Callback, OnEnd};
pub use outcome::{Busy, Outcome, Why};
pub use slot::BUFFER_BYTES;
pub use table::{CompletionTable, Completions};
pub use ticket::{Overdue, Status, Ticket};

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
