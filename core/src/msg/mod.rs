//! Messages: send and receive by source and tag, in MPI's order, with a single
//! copy where the sender knows and can reach the receiver's buffer.
//!
//! # Lanes
//!
//! Each ordered pair of ranks has one lane, in memory of the receiver: a ring of
//! cache lines, slots (buffers for the bytes of larger messages), and a line in
//! which the receiver returns credits. The receiver polls only the lane for that
//! pair.
//!
//! ```text
//!   sender i                                  receiver j
//!            ──── packets ──────────────────► lane of i: lines
//!            ──── bytes of eager messages ──►            slots
//!   reads it when it needs room ◄──────────              return line
//!   requests more credits ──────────────────────►        need line
//! ```
//!
//! # Which path a message takes
//!
//! | | |
//! |---|---|
//! | inline | in its packet: one to four lines |
//! | eager | through slots: copied in by the sender, out by the receiver |
//! | direct | copied by the sender into the buffer of a receive that it knows |
//! | rendezvous | the packet announces the bytes; the receiver copies them, or requests them |
//!
//! [`Thresholds`] select the path, for each peer. Where neither side reaches the
//! other's buffer, the bytes go through slots, piece by piece.
//!
//! [`NetworkLanes`] reaches ranks of other nodes: neither side reaches the other's
//! buffers, and lanes and slots are bytes in parcels (the payloads of network
//! packets).
//!
//! The [`MatchingDesign`] decides how a sender knows the buffer: the receiver sends its
//! posted receives and the sender matches by itself (`mirror`), or the sender
//! looks into the receiver's table of posted receives under a lock
//! ([`locked_matching`], which is a paper's design and not the default), or the
//! sender does not know it.
//!
//! # Guarantees
//!
//! - Messages of one rank to another in one context are received in the order in
//!   which they were sent, if the same receive could take both. A message takes
//!   the first posted receive that matches it, whether that receive is for the
//!   message's source alone or for any source.
//! - A message longer than its buffer is truncated; the receive reports it.
//! - Each request ends once. A cancelled receive ends as cancelled or with its
//!   message, never with neither.
//! - When a rank dies, the requests that wait for it end; messages that the rank
//!   had sent before can be received.
//! - A sender alone makes no queue grow: of one rank's messages to another,
//!   [`MessageShape::quota`] can be without a receive. More wait at the sender, which
//!   needs their buffers until then; packets that are no messages always get through. A
//!   message with a known receive passes the quota.
//! - A rank that itself waits for a message gets it behind any number of others: it grants
//!   more than the quota to a sender that has used its quota up, at first from the four
//!   quotas that all tables have beyond those of the peers. When these are granted, too, it
//!   [is cramped](MessageMachine::is_cramped), and its caller makes
//!   [more room](MessageMachine::widen).
//!
//! # Limits
//!
//! A rank has at most [`REQUESTS_MAX`] requests. A send that has begun cannot be cancelled.
//!
//! # What a rank trusts
//!
//! A packet names requests, and contains lengths and addresses.
//!
//! | | of a rank of another node | of a rank of this node |
//! |---|---|---|
//! | a name | only if a request with that peer has it, in the state that expects it | the same |
//! | a length | up to the size of the own buffer, and of the slots that it names | the same |
//! | an address | not at all: it is removed when the parcel is read | as an address in one of the peer's buffers |
//!
//! So the own end of each copy is a buffer of a send or a receive under way,
//! whatever a packet contains. For a packet of another node, the other end is a
//! [place](Buffers::place) in the network, which its owner checks. Ranks of one
//! node share their memory: a process that can write a packet into a lane could
//! write to the buffers, too. Other processes are kept out by the
//! [classes of keys](crate::mem::RegionKey), and because no device can address
//! the lanes.
//!
//! # How to drive the machine
//!
//! [`MessageMachine`] holds no memory except its tables, which the caller provides, and
//! reads no clock (sans-IO). A [`LaneTransport`] moves packets and bytes; [`NodeLanes`] is the
//! wire over shared memory, [`NetworkLanes`] does its part for ranks of other nodes.
//!
//! 1. [`send`](MessageMachine::send), [`receive`](MessageMachine::receive): each is done at
//!    once or pending.
//! 2. [`advance`](MessageMachine::advance), or [`advance_from`](MessageMachine::advance_from)
//!    where the caller waits for one peer.
//! 3. [`poll_job`](MessageMachine::poll_job) until `None`: long copies, which any thread
//!    may make; then [`job_done`](MessageMachine::job_done).
//! 4. [`watch`](MessageMachine::watch): report the end of this request;
//!    [`poll_ended`](MessageMachine::poll_ended) until `None`: requests with a waiter to
//!    wake; [`take`](MessageMachine::take): the result.
//! 5. [`is_cramped`](MessageMachine::is_cramped): [grow](MessageMachine::grow) the tables and
//!    [widen](MessageMachine::widen) the machine; the calls that begin a request return
//!    [`Why::NoTag`](crate::completion::Why::NoTag) when the table of requests must grow.
//! 6. Before the rank stops polling for a while: [`rest`](MessageMachine::rest).
//!
//! A machine's ranks are small numbers that only the machine and its wire use. A
//! remote rank (on another node) gets the next number by
//! [`admit`](MessageMachine::admit), when there is first something to do with it;
//! tables that are too short for it [grow](MessageMachine::grow).
//!
//! Progress: every call is wait-free, on one thread at a time. With
//! [`MatchingDesign::Locked`] the calls that post, cancel or take from a lane are
//! blocking: they wait for a sender that has the lock, for a few loads and stores
//! unless the sender is preempted there.
//!
//! # Example
//!
//! ```
//! use std::alloc::{Layout, alloc_zeroed};
//! use std::ptr::NonNull;
//! use tsumugi_core::mem::{LocalRank, PeerIndex};
//! use tsumugi_core::msg::*;
//!
//! let shape = MessageShape::of(1);
//! let mut tables = (
//!     [MessagePeer::EMPTY],
//!     [RequestEntry::EMPTY; 8],
//!     vec![UnexpectedMessage::EMPTY; shape.unexpected()],
//!     vec![LoggedMessage::EMPTY; shape.log()],
//!     vec![MirroredOffer::EMPTY; shape.mirrored()],
//! );
//! let tables = MessageTables {
//!     peers: &mut tables.0,
//!     requests: &mut tables.1,
//!     unexpected: &mut tables.2,
//!     log: &mut tables.3,
//!     mirror: &mut tables.4,
//! };
//! let (own, me, design) = (LocalRank(0), PeerIndex(0), MatchingDesign::Mirror);
//! let mut machine = MessageMachine::new(own, shape, design, Thresholds::DEFAULT, tables)?;
//! let layout = Layout::from_size_align(shape.memory_size(), MessageShape::ALIGN).unwrap();
//! let mut ends = [LaneEnd::EMPTY];
//! // SAFETY: zero memory of this size, for these lanes alone; the buffers
//! // below outlive their messages.
//! let mut lanes = unsafe {
//!     let memory = NonNull::new(alloc_zeroed(layout)).unwrap();
//!     let mut lanes = NodeLanes::new(own, shape, memory, &mut ends)?;
//!     lanes.connect(me, memory);
//!     lanes
//! };
//!
//! let (text, mut buffer) = (*b"to myself", [0; 16]);
//! let label = Label { context: 0, tag: 7 };
//! let at = text.as_ptr().expose_provenance() as u64;
//! machine.send(&mut lanes, me, label, MessageBytes { at, len: 9, in_reach: true }).unwrap();
//! machine.advance(&mut lanes);
//! let pattern = Pattern { context: 0, source: None, tag: Some(7) };
//! let at = buffer.as_mut_ptr().expose_provenance() as u64;
//! let into = MessageBytes { at, len: 16, in_reach: true };
//! let received = machine.receive(&mut lanes, pattern, into).unwrap().done().unwrap();
//! assert_eq!((received.source, received.len), (me, 9));
//! assert_eq!(buffer[..9], text);
//! # Ok::<(), SetupError>(())
//! ```

#![deny(unsafe_code)]

mod arrive;
mod count;
#[allow(unsafe_code)]
mod lanes;
mod launch;
#[allow(unsafe_code)]
mod line;
mod list;
pub mod locked_matching;
mod lost;
mod machine;
mod network;
mod mirror;
mod offer;
mod outcome;
mod outgoing;
mod packet;
mod receive;
mod rendezvous;
mod request_state;
mod room;
mod seal;
mod send;
mod setup;
mod shape;
mod split;
mod tables;
mod threshold;
mod wire;

pub use count::{MessageCounts, MessagePath};
pub use lanes::{LaneEnd, NodeLanes};
pub use launch::COPY_BYTES_MAX;
pub use line::{Lane, LaneLine, LaneReceiver, LaneSender, NeedLine, ReturnLine};
pub use machine::{MessageMachine, REQUESTS_MAX};
pub use network::{
    Buffers, ChunkPlace, LaneChunk, NetworkLane, NetworkLaneEnd, NetworkLanes, PARCEL_BYTES_MIN,
    ParcelError,
};
pub use outcome::{
    Begun, CallError, Cancel, CopyJob, Label, MessageBytes, Pattern, ReceivedMessage, RequestError,
    RequestId,
};
pub use packet::{INLINE_BYTES_MAX, INLINE_WORDS, Offer, Packet, PacketKind, PacketLoad};
pub use shape::{MatchingDesign, MessageShape, SetupError};
pub use split::{Claimed, Split, SplitSide};
pub use tables::{
    LoggedMessage, MessagePeer, MessageTables, MirroredOffer, RequestEntry, UnexpectedMessage,
};
pub use threshold::Thresholds;
pub use wire::{Copy, LaneTransport, Returned};

#[cfg(all(test, not(tsumugi_loom)))]
#[allow(unsafe_code)]
mod tests;
