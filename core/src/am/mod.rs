//! Active messages: a rank calls a function on another rank with bytes, and gets
//! bytes as the answer. They need only puts, gets and notified atomics of a
//! device, and no call waits for another rank.
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
//! - A *call* is sent only while fewer calls to that rank are unanswered than a
//!   lane has cells. So a reply always has room, a handler never waits for room,
//!   and two ranks that are both full still drain each other.
//! - A handler answers once, with at most [`INLINE_BYTES_MAX`] bytes, and sends
//!   nothing else. A handler that must do more, or block, starts a thread
//!   ([`Spawn`](crate::wait::Spawn)) that keeps the [`ReplyTo`] and answers
//!   later.
//! - Credits for requests come back in any cell that goes the other way, or by an
//!   atomic when half a lane was taken. Since half a lane is always returned
//!   without a request, a sender that waits need not ask for credits. Reply cells
//!   need no credits: the number of unanswered calls bounds them.
//! - A *cast* has no reply and takes a request cell only.
//! - A *long* payload stays in the caller's registered memory; the target fetches
//!   it by a get into one of a few landing buffers before the handler runs. The
//!   reply is the acknowledgement: after it the caller may use the memory again.
//!
//! # Peers
//!
//! A machine names its peers by small numbers, which have a meaning only at that
//! machine. The peers of its shape have their numbers from the start; in a job where all ranks
//! are in the shape, the number is the rank. A peer outside the shape gets its
//! number when there is first something to do with it: then the machine
//! [grows](AmMachine::grow), and its driver sends the other rank the address of the
//! lanes for it, and passes the address that comes back to
//! [`connect`](AmMachine::connect). The other rank must have its address before it
//! is connected, because its first call may come at once.
//!
//! # Guarantees
//!
//! Handlers for requests of one rank to another start in the order in which the
//! requests were sent: calls, casts and long calls alike. Between different pairs
//! there is no order, and none between replies that were deferred. Each request
//! is handled once; each call ends once: with its reply, or with an error. A call
//! that passes its deadline ends with [`CallError::Timeout`]. If its reply comes
//! after all, the reply finds another generation and is dropped, and only then is
//! the reply cell free again. When a rank dies, all calls to it end with
//! [`CallError::PeerLost`]. The same holds for a rank that was
//! [given up](crate::backend::Domain#a-rank-that-is-given-up): none of its requests
//! is handled any more.
//!
//! # How to drive the machine
//!
//! [`AmMachine`] holds no socket and reads no clock (sans-IO):
//!
//! 1. [`call`](AmMachine::call), [`cast`](AmMachine::cast): requests in.
//! 2. [`poll_op`](AmMachine::poll_op) until `None`: operations to be posted,
//!    tagged; their completions go to [`handle`](AmMachine::handle).
//! 3. [`handle`](AmMachine::handle): a bell rang, an operation has completed, a
//!    rank died, time has passed.
//! 4. [`poll`](AmMachine::poll) until `None`: handlers to run, calls that have
//!    ended. Then 2 again, until there is nothing to post and
//!    [`wants_poll`](AmMachine::wants_poll) is false: room that becomes free while
//!    operations are polled lets waiting requests go on.
//!
//! A bell is the doorbell of a lane. A cell may land after its bell. Then
//! [`is_landing`](AmMachine::is_landing) returns true, and the caller must come
//! back soon without any event. The caller need not where the device keeps the
//! order of a queue, nor with [`DoorbellOrder::AfterCell`] where a put that has completed
//! has landed.
//!
//! Memory: [`AmShape::memory_size`] bytes of registered memory a rank, that is
//! `peers * 2 * cells * 256`; it grows with the ranks to which active messages
//! are sent. The caller provides the tables as slices.
//!
//! Progress: every call of this module is wait-free, on one thread. `handle`
//! reads one word for each eight peers, and goes through all calls when a
//! deadline has passed or a rank has died.

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
mod memory;
mod op_tag;
mod outcome;
mod lane_address;
mod send;
mod setup;
mod tables;

pub use cell::{CELL_BYTES, INLINE_BYTES_MAX, Inline};
pub use handler::{HandlerFn, HandlerTable, Message, Reply};
pub use lanes::{AmShape, BLOCK_PEERS, CELLS_MAX, LaneBlock, has_rung};
pub use machine::{AmMachine, NOTICES_MAX};
pub use memory::{AmMemory, DoorbellOrder};
pub use outcome::{
    AmEvent, AmOutput, CallError, CallPayload, HandlerAnswer, HandlerId, Incoming, Landed, ReplyTo,
    RequestBody, SendError, Token,
};
pub use setup::SetupError;
pub use tables::{AmPeer, AmTables, LandingBuffer, PendingCall, StagingCell};

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
