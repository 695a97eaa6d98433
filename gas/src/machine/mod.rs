//! One rank's part in the global memory, sans-IO: it takes requests and returns
//! operations.
//!
//! The machine holds no socket, reads no clock and never waits. The driver calls it
//! like this:
//!
//! 1. [`try_issue`](GlobalMachine::try_issue), [`register`](GlobalMachine::register),
//!    [`unregister`](GlobalMachine::unregister): the driver hands in requests.
//! 2. [`poll_op`](GlobalMachine::poll_op) until `None`: the driver posts each operation,
//!    with its tag; the completions go to [`handle`](GlobalMachine::handle), in any order,
//!    and a completion may come twice.
//! 3. [`handle`](GlobalMachine::handle): an operation has completed, a notified word
//!    of the control region has changed, a rank has died, time has passed.
//! 4. [`poll`](GlobalMachine::poll) until `None`: the machine returns operations that have
//!    ended, and regions that no rank reaches any more. Then step 2 again.
//!
//! An access that is carried out inside a call (a load, a store or an atomic on a
//! rank of the same node) needs only [`TableCache::hold`](crate::cache::TableCache::hold) and the backend. The machine is
//! for operations that take time or are ordered, and for the misses of such
//! accesses: [`want`](GlobalMachine::want).
//!
//! # Which rank does a copy
//!
//! The source puts. If the caller is the destination, the caller gets. If the caller
//! is neither, but can load and store the memory of both, the caller copies. Else
//! the caller sends the copy to the source as a command (see `command.rs`). Where
//! devices keep the order of operations, or the bytes and the note behind them go in
//! one packet, the destination reports the end to the caller: three trips. Where
//! that is not possible, and the copy is not long, the caller gets and puts: four
//! trips that wait for no other processor.
//!
//! Each own operation under way has a place of its own, and so has each operation
//! for another rank, so that a rank's own requests cannot keep it from serving
//! others (hazard A7). Places are served in turn, one operation each time, and each
//! may have a quarter of the operations that can be in flight: a slow destination
//! does not hold up the rest.
//!
//! # What an end means
//!
//! A copy has ended when its bytes are in the destination's memory, at whatever
//! rank. Where a put that has completed may not have landed, the machine first reads
//! its last byte back. An operation that was issued [after](crate::order::After)
//! another one begins then, also when the other one ended with an error.
//!
//! # Deaths
//!
//! An operation that needs the memory of a rank that died, or that this rank was to
//! carry out, ends with [`AddrError::PeerLost`](tsumugi_core::mem::AddrError::PeerLost), which names
//! the rank. A copy that the dead rank was to carry out may be done in part, and what
//! it has sent of the copy may land at any time. Everything else goes on.
//!
//! A rank that was [given up](tsumugi_core::backend::Domain#a-rank-that-is-given-up)
//! counts as dead at the ranks that have given it up. If a third rank carries out a
//! copy, the caller may get an error for a rank that the third rank has given up,
//! and that the caller has not.
//!
//! Progress: wait-free, on one thread. Handling a doorbell reads a word for each 64
//! ranks, each word for a note and each word for the end of a command.

mod third_party;
mod flight;
mod parts;
mod rank;
mod run;
mod tables;
mod traffic;
mod ranks;

pub use rank::GlobalMachine;
pub use tables::{InFlightOp, MachineTables, PendingOp, SentCommand};
pub use traffic::{MachineEvent, MachineOutput, MachineSetup, OutgoingOp};

#[cfg(test)]
mod tests;
