//! Active messages: a function on another rank is called with bytes, and
//! answers with bytes. They need puts, gets and notified atomics, nothing
//! else, and wait for nobody.
//!
//! # Lanes and credits
//!
//! Each ordered pair of ranks has two lanes of fixed cells in the memory of
//! the receiver, one for requests and one for replies:
//!
//! ```text
//!   caller A                               target B
//!   request cells left at B? ──put──────►  requests from A  ─► handler
//!   reply cell here kept free? ──ring───►  arrivals[A] + 1       │
//!                                                                ▼
//!   Done ◄─ replies from B   ◄──────────────────────put── staging cell kept
//!                                                  ring        for it
//! ```
//!
//! - A *call* is sent only while fewer calls to that rank are unanswered than
//!   a lane has cells. So a reply always has room, a handler never waits for
//!   room, and two ranks that are both full still drain each other.
//! - A handler answers once, with at most [`INLINE_BYTES_MAX`] bytes, and
//!   sends nothing else. What must do more, or block, becomes a thread
//!   ([`Spawn`](crate::wait::Spawn)) that keeps the [`ReplyTo`] and answers
//!   later.
//! - Credits for requests come back in whatever cell goes the other way, or by
//!   an atomic when half a lane was taken. Since half is always returned by
//!   itself, a sender that waits need not say so. Reply cells need no credits:
//!   the number of unanswered calls bounds them.
//! - A *cast* wants no reply and takes a request cell only.
//! - A *long* payload stays in the caller's registered memory; the target gets
//!   it into one of a few landing buffers before the handler runs. The reply
//!   is the acknowledgement: from then on the memory is the caller's again.
//!
//! # Peers
//!
//! A machine knows its peers by small numbers, which only it has to know. Those
//! of its shape have theirs from the start; in a job where all are, that is the
//! rank. Of others nothing is known until there is something to do with them:
//! then the machine [grows](Machine::grow), and whoever drives it tells the
//! other rank where its lanes are, and [is told](Machine::connect). A peer has
//! to be told before it is connected: its first call may come at once.
//!
//! # What is promised
//!
//! Handlers for requests of one rank to another start in the order in which
//! the requests were sent, calls, casts and long ones alike. Between different
//! pairs there is no order, nor for replies that were deferred. Each request
//! is handled once; each call ends once: with its reply, or an error. A call
//! whose time has passed ends with [`CallError::Timeout`]; the reply that
//! comes after all finds another generation and is dropped, and only then the
//! reply cell is free again. A rank that dies ends all calls to it with
//! [`CallError::PeerLost`], and so does one that was
//! [given up](crate::backend::Domain#a-rank-that-is-given-up): of its requests
//! none is handled any more.
//!
//! # How to drive it
//!
//! [`Machine`] holds no socket and reads no clock:
//!
//! 1. [`call`](Machine::call), [`cast`](Machine::cast): requests in.
//! 2. [`poll_op`](Machine::poll_op) until `None`: operations to be posted,
//!    tagged; their completions go to [`handle`](Machine::handle).
//! 3. [`handle`](Machine::handle): a bell rang, an operation has completed, a
//!    rank died, time has passed.
//! 4. [`poll`](Machine::poll) until `None`: handlers to run, calls that have
//!    ended. Then 2 again, until nothing is posted and
//!    [`wants_poll`](Machine::wants_poll) is false: room that is found while
//!    operations are polled lets requests go on that waited for it.
//!
//! A cell may land after its bell. Then [`is_landing`](Machine::is_landing)
//! says that the caller must come back soon without any event. It need not
//! where the device keeps the order of a queue, nor with [`Bell::AfterCell`]
//! where a put that has completed has landed.
//!
//! Memory: [`Shape::memory_size`] bytes of registered memory a rank, that is
//! `peers * 2 * cells * 256`; it grows with the ranks that are spoken to this
//! way. The tables are the caller's slices.
//!
//! Progress: every call here is wait-free, on one thread; `handle` looks at one
//! word for each eight peers, and at all calls when a time limit has passed or
//! a rank has died.

#![deny(unsafe_code)]
// There is no allocation: the bytes of a message travel in the value.
#![allow(clippy::large_enum_variant)]

mod arrive;
mod cell;
mod end;
mod fifo;
mod handler;
mod lanes;
mod machine;
mod outcome;
mod send;
mod setup;
mod tables;

pub use cell::{CELL_BYTES, INLINE_BYTES_MAX, Inline};
pub use handler::{Handler, Handlers, Message, Reply};
pub use lanes::{BLOCK_PEERS, Block, CELLS_MAX, Shape, has_rung};
pub use machine::{Machine, NOTICES_MAX};
pub use outcome::{
    Answer, Body, CallError, Event, HandlerId, Incoming, Landed, Out, Payload, ReplyTo, SendError,
    Token,
};
pub use setup::{Bell, Memory, SetupError};
pub use tables::{Call, Landing, Peer, Slot, Tables};

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
