//! What a message is told apart by, and what a receiver asks for.

use crate::Rank;
use std::fmt;
use tsumugi_core::msg::Pattern;

/// Whom a receive takes a message of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Whoever sent it.
    Any,
    /// This rank.
    Rank(Rank),
}

/// Which tags a receive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tags {
    /// All.
    Any,
    /// This one.
    Is(u32),
}

/// A message that has come: whose it was, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Who sent it.
    pub source: Rank,
    /// Its tag.
    pub tag: u32,
    /// Its length.
    pub bytes: usize,
}

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
    /// The receive was cancelled before a message came.
    Cancelled,
    /// There is no such rank.
    NoSuchRank {
        /// Which was asked for.
        rank: Rank,
        /// Ranks of the job.
        size: u32,
    },
    /// As many messages of this rank are under way as its tables hold.
    TooMany {
        /// How many that is.
        limit: usize,
    },
    /// The job has as many communicators as there are numbers for.
    NoContext,
}

pub(super) fn pattern(context: u16, source: Source, tags: Tags) -> Pattern {
    let source = match source {
        Source::Any => None,
        Source::Rank(rank) => Some(rank),
    };
    let tag = match tags {
        Tags::Any => None,
        Tags::Is(tag) => Some(tag),
    };
    Pattern { context, source, tag }
}

impl Received {
    /// How many `T` that is; `None` if it is no whole number.
    pub fn values<T>(&self) -> Option<usize> {
        match size_of::<T>() {
            0 => Some(0),
            size if self.bytes % size == 0 => Some(self.bytes / size),
            _ => None,
        }
    }
}

impl From<Rank> for Source {
    fn from(rank: Rank) -> Self {
        Self::Rank(rank)
    }
}

impl From<u32> for Tags {
    fn from(tag: u32) -> Self {
        Self::Is(tag)
    }
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
            Self::Cancelled => f.write_str("the receive was cancelled"),
            Self::NoSuchRank { rank, size } => write!(f, "{rank} of {size}"),
            Self::TooMany { limit } => write!(f, "{limit} messages are under way already"),
            Self::NoContext => f.write_str("there are no more communicators"),
        }
    }
}

impl std::error::Error for MessageError {}
