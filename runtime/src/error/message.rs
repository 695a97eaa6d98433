//! Errors of messages.

use std::fmt;
use tsumugi_core::mem::Rank;

/// Why a message was not sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageError {
    /// The message is longer than the buffer. Its beginning is in the buffer, and
    /// the rest is lost; the sender is not notified.
    Truncated {
        /// The sender of the message.
        source: Rank,
        /// Its tag.
        tag: u32,
        /// Its length in bytes.
        bytes: usize,
        /// The length of the buffer in bytes.
        room: usize,
    },
    /// The length of the message is not a multiple of the size of a value.
    Uneven {
        /// The sender of the message.
        source: Rank,
        /// Its tag.
        tag: u32,
        /// Its length in bytes.
        bytes: usize,
        /// The size of a value in bytes.
        value_bytes: usize,
    },
    /// The other rank has died.
    PeerLost {
        /// The other rank.
        rank: Rank,
    },
    /// The bytes could not be moved; the content of the buffer is not defined.
    Failed {
        /// The other rank, sender or receiver.
        rank: Rank,
    },
    /// The receive was cancelled before a message came.
    Cancelled,
    /// This rank has ended: its job was over before the message was.
    Ended,
    /// The job has no such rank.
    NoSuchRank {
        /// The rank of the request.
        rank: Rank,
        /// The number of ranks of the job.
        size: u32,
    },
    /// This rank has as many messages in progress as its tables can hold.
    TooMany {
        /// The maximum number.
        limit: usize,
    },
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { source, tag, bytes, room } => write!(
                f,
                "a message of {bytes} bytes from {source} with tag {tag} does not fit in a \
                 buffer of {room} bytes"
            ),
            Self::Uneven { source, tag, bytes, value_bytes } => write!(
                f,
                "a message of {bytes} bytes from {source} with tag {tag} is not a multiple of \
                 {value_bytes} bytes, the size of a value"
            ),
            Self::PeerLost { rank } => write!(f, "{rank} has died"),
            Self::Failed { rank } => {
                write!(
                    f,
                    "the bytes of a message to or from {rank} could not be moved; the content of \
                     the buffer is undefined"
                )
            }
            Self::Cancelled => f.write_str("the receive was cancelled before a message came"),
            Self::Ended => f.write_str("this rank has ended, and its messages with it"),
            Self::NoSuchRank { rank, size } => {
                write!(f, "{rank} does not exist: the job has {size} ranks")
            }
            Self::TooMany { limit } => write!(
                f,
                "this rank has {limit} messages in progress, the maximum; wait for some of them"
            ),
        }
    }
}

impl std::error::Error for MessageError {}
