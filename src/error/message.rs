//! What can go wrong with a message.

use crate::Rank;
use std::fmt;

/// Why a message was not sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// The message is longer than the buffer. Its beginning is in the buffer,
    /// and the rest is gone; the sender is not told.
    Truncated {
        /// Who sent it.
        source: Rank,
        /// Its tag.
        tag: u32,
        /// Its length.
        bytes: usize,
        /// That of the buffer.
        room: usize,
    },
    /// The message is no whole number of values.
    Uneven {
        /// Who sent it.
        source: Rank,
        /// Its tag.
        tag: u32,
        /// Its length.
        bytes: usize,
        /// That of a value.
        value_bytes: usize,
    },
    /// The other rank has died, or had ended before it came to this.
    PeerLost {
        /// Which.
        rank: Rank,
    },
    /// The bytes could not be moved; what the buffer holds is not said.
    Failed {
        /// From or to whom.
        rank: Rank,
    },
    /// The receive was cancelled before a message came.
    Cancelled,
    /// There is no such rank.
    NoSuchRank {
        /// Which was asked for.
        rank: Rank,
        /// Ranks of the job.
        size: u32,
    },
    /// The rank is of another node, where messages do not go.
    OtherNode {
        /// Which.
        rank: Rank,
    },
    /// As many messages of this rank are under way as its tables hold.
    TooMany {
        /// How many that is.
        limit: usize,
    },
    /// The job has as many communicators as there are numbers for.
    NoContext,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { source, tag, bytes, room } => write!(
                f,
                "a message of {bytes} bytes from {source} with tag {tag} for a buffer of {room}"
            ),
            Self::Uneven { source, tag, bytes, value_bytes } => write!(
                f,
                "a message of {bytes} bytes from {source} with tag {tag} for values of \
                 {value_bytes} bytes"
            ),
            Self::PeerLost { rank } => write!(f, "{rank} has died"),
            Self::Failed { rank } => {
                write!(f, "the bytes of a message with {rank} could not be moved")
            }
            Self::Cancelled => f.write_str("the receive was cancelled"),
            Self::NoSuchRank { rank, size } => write!(f, "{rank} of {size}"),
            Self::OtherNode { rank } => {
                write!(f, "{rank} is on another node, where messages do not go")
            }
            Self::TooMany { limit } => write!(f, "{limit} messages are under way already"),
            Self::NoContext => f.write_str("there are no more communicators"),
        }
    }
}

impl std::error::Error for MessageError {}
