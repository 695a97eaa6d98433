//! What a machine is told, and what it tells.

use crate::address::Split;
use crate::control::Shape;
use crate::error::AccessError;
use crate::order::Handle;
use crate::table::{Agent, Retired, Starter};
use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::tag::Tag;

/// What a machine is told at the start: the same on every rank, but for the
/// rank.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'m> {
    /// This rank.
    pub rank: Rank,
    /// Ranks whose memory the driver loads and stores, in ascending order:
    /// copies between two of them it does itself.
    pub near: &'m [Rank],
    /// How addresses are split.
    pub split: Split,
    /// How large the control region is.
    pub shape: Shape,
    /// Its key.
    pub control: RegionKey,
    /// The starter memory.
    pub starter: Starter,
    /// Whether a put that has completed has landed, on all devices used.
    pub remote_completion: bool,
    /// Longest put of which what is posted right behind it, to the same rank,
    /// comes to pass there after the put has landed: all, where all devices used
    /// keep the order, and none is 0.
    pub ordered_bytes_max: u64,
    /// Longest copy between two ranks that the driver carries from the one to the
    /// other, both far, on its own memory: none is 0.
    pub carried_bytes_max: u64,
    /// Longest single put or get.
    pub part_bytes_max: u64,
    /// Has every processor that runs a worker of this rank pass a barrier;
    /// without it each lookup has a fence.
    pub barrier: Option<fn()>,
}

/// Something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An operation has completed.
    Completed {
        /// Its tag.
        tag: Tag,
        /// What came of it.
        result: Result<u64, AddrError>,
    },
    /// An operation that was to be posted behind another was not.
    NotPosted(Tag),
    /// A notified word of the control region has changed.
    Rang,
    /// A rank has died.
    Lost(Rank),
    /// Time has passed, or a pin was given back that was waited for.
    Tick,
}

/// An operation to be posted.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// What.
    pub op: Op,
    /// Where a put takes its bytes from, if not from the own memory: from that
    /// of another rank, which is near if the target is.
    pub source: Option<RemoteAddr>,
    /// Who is to do it, if it is an atomic.
    pub agent: Agent,
    /// What is to be posted right behind it, to the same rank, if it was taken
    /// at once; if not, [`Event::NotPosted`] comes instead of its completion.
    pub then: Option<Op>,
}

/// Something for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out {
    /// An operation has ended.
    Ended {
        /// Which.
        handle: Handle,
        /// For a word the old value, else 0.
        result: Result<u64, AccessError>,
    },
    /// Nobody reaches a region any more: the backend is to forget its key, and
    /// then the memory is its owner's.
    Retired(Retired),
    /// A table that was wanted is here, or its rank is gone.
    Table {
        /// Whose.
        rank: Rank,
        /// What came of it.
        result: Result<(), AddrError>,
    },
}
