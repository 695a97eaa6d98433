//! The types at a machine's interface: its configuration, the events that it takes,
//! and the operations and results that it returns.

use crate::address::{GlobalAddr, Split};
use crate::control::ControlShape;
use crate::order::Handle;
use crate::table::{Agent, RetiredRegion, Starter};
use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::tag::Tag;

/// The configuration of a machine: the same on every rank, except for the rank's
/// number and `near`.
#[derive(Clone, Copy, Debug)]
pub struct MachineSetup<'m> {
    /// This rank.
    pub rank: Rank,
    /// Ranks of which the driver can load and store the memory, in ascending order.
    /// The driver carries out copies between two of them itself.
    pub near: &'m [Rank],
    /// How addresses are split.
    pub split: Split,
    /// The sizes of the parts of the control region.
    pub shape: ControlShape,
    /// The key of the control region.
    pub control: RegionKey,
    /// The starter memory.
    pub starter: Starter,
    /// Whether a put that has completed has landed, on all devices used.
    pub remote_completion: bool,
    /// The longest put after which an operation that is posted right behind it, to
    /// the same rank, takes effect after the put has landed. `u64::MAX` if all
    /// devices used keep the order, 0 if there is no such put.
    pub ordered_bytes_max: u64,
    /// The longest copy between two far ranks that the driver carries from the one
    /// to the other through its own memory. 0: the driver carries none.
    pub carried_bytes_max: u64,
    /// The length of the longest single put or get.
    pub part_bytes_max: u64,
    /// A function that makes every processor that runs a worker of this rank pass a
    /// barrier. If there is none, each lookup has a fence.
    pub barrier: Option<fn()>,
}

/// An event for the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineEvent {
    /// An operation has completed.
    Completed {
        /// The operation's tag.
        tag: Tag,
        /// The operation's result.
        result: Result<u64, AddrError>,
    },
    /// An operation that was to be posted right behind another one was not posted.
    NotPosted(Tag),
    /// A notified word of the control region has changed.
    Rang,
    /// A rank has died.
    Lost(Rank),
    /// Time has passed, or a pin was given back that the machine waits for.
    Tick,
}

/// An operation to post.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingOp {
    /// The operation.
    pub op: Op,
    /// The address of a put's bytes, if they are not in the own memory: then they
    /// are in the memory of another rank, which is near if the target is near.
    pub source: Option<RemoteAddr>,
    /// The agent that is to carry the operation out, if it is an atomic.
    pub agent: Agent,
    /// The operation to post right behind `op`, to the same rank, if the device has
    /// taken `op` at once. If not, the driver must hand in [`MachineEvent::NotPosted`] in
    /// place of its completion.
    pub then: Option<Op>,
}

/// A result for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineOutput {
    /// An operation has ended.
    Ended {
        /// The operation.
        handle: Handle,
        /// The old value for an operation on a word, else 0.
        result: Result<u64, AddrError<GlobalAddr>>,
    },
    /// No rank reaches the region any more: the backend must forget its key, and
    /// then the owner may use the memory for something else.
    Retired(RetiredRegion),
    /// A table that was requested is here, or its rank is lost.
    Table {
        /// The rank of the table.
        rank: Rank,
        /// Whether the table came.
        result: Result<(), AddrError>,
    },
}
