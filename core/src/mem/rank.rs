//! The three numbers of a rank. Each has a type of its own, and none converts into
//! another one without a table:
//!
//! ```text
//!  Rank       its number in the job, 0 .. size        same at all ranks
//!  LocalRank  its place among the ranks of its node   same at all ranks of the node
//!  PeerIndex  its entry in the tables of one rank     known to that rank alone
//! ```
//!
//! In a job of one node the three numbers of a rank are equal. On several nodes they
//! differ: a rank numbers its peers in the order in which it meets them.

use core::fmt;

/// A process (or thread) of the job, named by its number `0 .. size`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Rank(pub u32);

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

/// The place of a rank among the ranks of its node, in the order of their numbers in
/// the job. It names the rank's partition of the node's address space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct LocalRank(pub u32);

impl fmt::Display for LocalRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "local rank {}", self.0)
    }
}

/// The index of a peer in the tables of one rank, for instance of its message
/// machine. Two ranks may have different indices for the same peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PeerIndex(pub u32);

impl fmt::Display for PeerIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "peer {}", self.0)
    }
}
