//! Messages: send and receive by source and tag, in MPI's order, and with one
//! copy where the receiver's buffer is known and can be reached.
//!
//! # Lanes
//!
//! Each ordered pair of ranks has one lane, in memory of the receiver: a ring
//! of lines, slots for the bytes of larger messages, and a line in which the
//! receiver returns what it has taken. It is the only place that is polled for
//! that pair.
//!
//! ```text
//!   sender i                                  receiver j
//!            ──── packets ──────────────────► lane of i: lines
//!            ──── bytes of eager messages ──►            slots
//!   reads it when it needs room ◄──────────              return line
//!   asks for more ─────────────────────────►             need line
//! ```
//!
//! # Which way a message goes
//!
//! | | |
//! |---|---|
//! | inline | in its packet: one to four lines |
//! | eager | through slots: copied in by the sender, out by the receiver |
//! | direct | copied by the sender into the buffer of a receive that it knows |
//! | rendezvous | the packet says where the bytes are; the receiver copies them, or says where to |
//!
//! [`Thresholds`] say which, for each peer. Where neither side reaches the
//! other's buffer, the bytes go through slots, piece by piece.
//!
//! Ranks of other nodes are reached by [`Mail`]: neither side reaches the
//! other's buffers, and lanes and slots are bytes in parcels.
//!
//! How a sender knows the buffer is the [`Design`]: it is told of receives and
//! matches by itself (`mirror`), or it looks into the table of the receiver
//! under a lock (`locked`, [`board`]), or it does not.
//!
//! # What is promised
//!
//! - Messages of one rank to another in one context are received in the order
//!   in which they were sent, if the same receive could take both; a message
//!   takes the first posted receive that takes it, whether that is for its
//!   source alone or for any.
//! - A message longer than its buffer is cut off; the receive says so.
//! - Each request ends once. A cancelled receive ends as cancelled or with its
//!   message, never with neither.
//! - A rank that dies ends what waits for it; what it had sent before can be
//!   received.
//! - No queue grows: of one rank's messages to another, [`Shape::quota`] can be
//!   without a receive. More wait at the sender, whose buffer they need until
//!   then; packets that are no messages always get through. A message whose
//!   receive is known passes the quota.
//!
//! # What is not
//!
//! A rank grants more than its quota to whoever has used it up while it waits
//! for a message itself, but not without end: when four quotas are granted, a
//! receive finds what waits beyond them only when earlier messages have been
//! received, or if it could be offered to its source. A send that has begun
//! cannot be cancelled.
//!
//! # What is believed
//!
//! A packet names requests, and says lengths and addresses.
//!
//! | | of a rank of another node | of a rank of this node |
//! |---|---|---|
//! | a name | as far as a request of that peer has it, in the state that awaits it | the same |
//! | a length | as far as the own buffer, and the slots that it names | the same |
//! | an address | not at all: it is taken out when the parcel is read | as one of the peer's buffers |
//!
//! So the own end of each copy is a buffer of a send or a receive under way,
//! whatever came; of another node's packets the other end is a
//! [place](Buffers::place) in the network, which the owner checks. Ranks of
//! one node share their memory: whoever could write a packet into a lane of
//! theirs could write to the buffers, too. What keeps others out are the
//! [classes of keys](crate::mem::RegionKey), and that no device knows the lanes.
//!
//! # How to drive it
//!
//! [`Machine`] holds no memory but its tables, which the caller gives, and
//! reads no clock. What moves packets and bytes is a [`Wire`]; [`Lanes`] is
//! the one over shared memory, [`Mail`] does its part for ranks of other
//! nodes.
//!
//! 1. [`send`](Machine::send), [`receive`](Machine::receive): each is done at
//!    once or pending.
//! 2. [`advance`](Machine::advance), or
//!    [`advance_from`](Machine::advance_from) where one peer is waited for.
//! 3. [`poll_job`](Machine::poll_job) until `None`: long copies, made by
//!    whoever has time; then [`job_done`](Machine::job_done).
//! 4. [`watch`](Machine::watch): whose end is to be told of;
//!    [`poll_ended`](Machine::poll_ended) until `None`: whom to wake;
//!    [`take`](Machine::take): what came of it.
//! 5. Before nobody looks for a while: [`rest`](Machine::rest).
//!
//! A machine's ranks are small numbers that only it and its wire have to know.
//! A far rank with which there was nothing to do gets the next one by
//! [`admit`](Machine::admit), and tables that are too short for it
//! [grow](Machine::grow).
//!
//! Progress: every call is wait-free, on one thread at a time. With
//! [`Design::Locked`] those that post, cancel or take from a lane are blocking:
//! they wait for a sender that has the lock, for a few loads and stores unless
//! it is preempted there.
//!
//! # Example
//!
//! ```
//! use std::alloc::{Layout, alloc_zeroed};
//! use std::ptr::NonNull;
//! use tsumugi_core::mem::Rank;
//! use tsumugi_core::msg::*;
//!
//! let shape = Shape::of(1);
//! let mut tables = (
//!     [Peer::EMPTY],
//!     [Entry::EMPTY; 8],
//!     vec![Unexpected::EMPTY; shape.unexpected()],
//!     vec![Logged::EMPTY; shape.log()],
//!     vec![Mirrored::EMPTY; shape.mirrored()],
//! );
//! let tables = Tables {
//!     peers: &mut tables.0,
//!     requests: &mut tables.1,
//!     unexpected: &mut tables.2,
//!     log: &mut tables.3,
//!     mirror: &mut tables.4,
//! };
//! let (me, design) = (Rank(0), Design::Mirror);
//! let mut machine = Machine::new(me, shape, design, Thresholds::DEFAULT, tables)?;
//! let layout = Layout::from_size_align(shape.memory_size(), Shape::ALIGN).unwrap();
//! let mut ends = [LaneEnd::EMPTY];
//! // SAFETY: zero memory of this size, for these lanes alone; the buffers
//! // below outlive their messages.
//! let mut lanes = unsafe {
//!     let memory = NonNull::new(alloc_zeroed(layout)).unwrap();
//!     let mut lanes = Lanes::new(me, shape, memory, &mut ends)?;
//!     lanes.connect(me, memory);
//!     lanes
//! };
//!
//! let (text, mut buffer) = (*b"to myself", [0; 16]);
//! let label = Label { context: 0, tag: 7 };
//! let at = text.as_ptr().expose_provenance() as u64;
//! machine.send(&mut lanes, me, label, Bytes { at, len: 9, in_reach: true }).unwrap();
//! machine.advance(&mut lanes);
//! let pattern = Pattern { context: 0, source: None, tag: Some(7) };
//! let at = buffer.as_mut_ptr().expose_provenance() as u64;
//! let into = Bytes { at, len: 16, in_reach: true };
//! let received = machine.receive(&mut lanes, pattern, into).unwrap().done().unwrap();
//! assert_eq!((received.source, received.len), (me, 9));
//! assert_eq!(buffer[..9], text);
//! # Ok::<(), SetupError>(())
//! ```

#![deny(unsafe_code)]

mod arrive;
pub mod board;
mod count;
#[allow(unsafe_code)]
mod lanes;
mod launch;
#[allow(unsafe_code)]
mod line;
mod list;
mod locked;
mod lost;
mod machine;
mod mail;
mod mirror;
mod offer;
mod outcome;
mod packet;
mod receive;
mod rendezvous;
mod room;
mod send;
mod setup;
mod split;
mod tables;
mod threshold;
mod wire;

pub use count::{Counts, Path};
pub use lanes::{LaneEnd, Lanes};
pub use line::{Lane, LaneReceiver, LaneSender, Line, NeedLine, ReturnLine};
pub use machine::Machine;
pub use mail::{Buffers, Chunk, FarLane, Mail, MailEnd, PARCEL_BYTES_MIN, ParcelError, Place};
pub use outcome::{Begun, Bytes, CallError, Cancel, Ended, Job, Label, Pattern, Received, Request};
pub use packet::{INLINE_BYTES_MAX, INLINE_WORDS, Kind, Load, Offer, Packet};
pub use send::COPY_BYTES_MAX;
pub use setup::{Design, SetupError, Shape};
pub use split::{Claimed, Side, Split};
pub use tables::{Entry, Logged, Mirrored, Peer, Tables, Unexpected};
pub use threshold::Thresholds;
pub use wire::{Copy, Returned, Wire};

#[cfg(all(test, not(tsumugi_loom)))]
#[allow(unsafe_code)]
mod tests;
