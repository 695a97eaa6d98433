//! A posted receive on a board, and its state.

use crate::mem::LocalRank;
use crate::msg::outcome::Pattern;

/// A receive to be put on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardPost {
    /// Its place in the order of all receives of the owner; wraps.
    pub number: u32,
    /// The messages that it takes.
    pub pattern: Pattern<LocalRank>,
    /// The address of its buffer.
    pub at: u64,
    /// The length of its buffer.
    pub room: u64,
    /// Whether senders may copy to that address. If not, a message that matches
    /// this receive goes by the lane.
    pub in_reach: bool,
}

/// The state of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostState {
    /// No sender has claimed it.
    Posted,
    /// This rank has claimed it and copies into it.
    Claimed(LocalRank),
    /// The message of a rank is in its buffer.
    Done(Arrival),
    /// This rank has claimed it and could not copy.
    Failed(LocalRank),
}

/// The message that a sender put into a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The rank that sent it.
    pub source: LocalRank,
    /// Its tag.
    pub tag: u32,
    /// Its length.
    pub len: u64,
}
