//! What is asked of the machine, what it answers, and what can go wrong.

use super::split::Side;
use super::wire::Copy;
use crate::completion::Why;
use crate::mem::{AddrError, Rank};
use core::fmt;

/// What a message is sent under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Which group of messages: no pattern matches two of them.
    pub context: u16,
    /// What the sender says it is.
    pub tag: u32,
}

/// Which messages a receive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Which group of messages.
    pub context: u16,
    /// Whose; `None`: anybody's.
    pub source: Option<Rank>,
    /// Under which tag; `None`: any.
    pub tag: Option<u32>,
}

/// A buffer, at an address that the wire understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// Where it starts.
    pub at: u64,
    /// How long it is.
    pub len: u64,
    /// Whether peers can reach it by this address.
    pub in_reach: bool,
}

/// What was received, or could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Who sent it.
    pub source: Rank,
    /// Under which tag.
    pub tag: u32,
    /// How long the message is.
    pub len: u64,
    /// The buffer is shorter: it has what fits, the rest is gone.
    pub truncated: bool,
}

/// A send or receive under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// Bytes to be copied outside the machine, in chunks or by several threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// What it is for.
    pub request: Request,
    /// What is to be done.
    pub copy: Copy,
    /// It is to be done together with the other side: as much as can be
    /// claimed on the lane's [`Split`](super::Split) under this number and from
    /// this side. Then [`split_done`](super::Machine::split_done) takes the
    /// place of [`job_done`](super::Machine::job_done).
    pub split: Option<(u32, Side)>,
}

/// How far a call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun<T> {
    /// It has ended: the buffer is the caller's.
    Done(T),
    /// It will end: the buffer is the machine's until then.
    Pending(Request),
}

/// Why a request ended without a message, or without the whole of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was cancelled, and nothing was received.
    Cancelled,
    /// The rank has died.
    PeerLost {
        /// Which.
        rank: Rank,
    },
    /// The bytes could not be moved: what the buffer holds is not said.
    Failed {
        /// From or to whom.
        rank: Rank,
    },
}

/// Why a call did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// Try again later.
    Busy(Why),
    /// A rank that is not there, or not any more.
    Addr(AddrError),
}

/// What came of an attempt to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// It has ended as [`Ended::Cancelled`].
    Done,
    /// The peer is being asked: it will end so, or with its message.
    Asked,
    /// It has ended already, or its message is under way.
    TooLate,
}

impl Pattern {
    /// Whether a message of this source and label is one of them.
    #[inline(always)]
    pub fn takes(&self, source: Rank, label: Label) -> bool {
        self.context == label.context
            && self.source.is_none_or(|wanted| wanted == source)
            && self.tag.is_none_or(|tag| tag == label.tag)
    }
}

impl Request {
    /// As a word.
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// From such a word; one that names no request is found out at its use.
    pub const fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

impl<T> Begun<T> {
    /// What it ended with, if it has.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(value) => Some(value),
            Self::Pending(_) => None,
        }
    }

    /// The request, if it has not.
    pub fn pending(self) -> Option<Request> {
        match self {
            Self::Done(_) => None,
            Self::Pending(request) => Some(request),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("the receive was cancelled"),
            Self::PeerLost { rank } => write!(f, "{rank} has died"),
            Self::Failed { rank } => {
                write!(f, "the bytes of a message with {rank} could not be moved")
            }
        }
    }
}

impl core::error::Error for Ended {}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(Why::NoTag) => f.write_str("all requests are under way"),
            Self::Busy(why) => write!(f, "no room for the message now: {why:?}"),
            Self::Addr(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for CallError {}
