//! What goes into the machine and what comes out of it.

use super::cell::Inline;
use crate::completion::Why;
use crate::mem::{AddrError, LocalAddr, Rank};
use crate::tag::Tag;
use core::fmt;

/// Which function a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct HandlerId(pub u32);

/// One call under way: an entry of the caller's table, and which life of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    index: u32,
    generation: u32,
}

/// What a request brings.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'p> {
    /// Bytes that travel in the message.
    Inline(&'p [u8]),
    /// Bytes of the caller's memory, registered for reading. They stay as
    /// they are until the call has ended.
    Long {
        /// Where they start.
        from: LocalAddr,
        /// How many.
        bytes: u64,
    },
}

/// What has happened.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A bell rang, or may have.
    Rang,
    /// An operation has completed.
    Completed {
        /// The tag that it carried.
        tag: Tag,
        /// How it ended.
        result: Result<u64, AddrError>,
    },
    /// A peer has died.
    Lost(Rank),
    /// Nothing but time.
    Tick,
}

/// What is to be done.
#[derive(Debug)]
pub enum Out {
    /// Run a handler.
    Run(Incoming),
    /// A call has ended. Its payload is the caller's again, unless it was
    /// long and ran into its time limit.
    Done {
        /// Which.
        token: Token,
        /// How.
        result: Result<Inline, CallError>,
    },
    /// The payload of a long call that ran into its time limit is the caller's
    /// again.
    Released {
        /// Which call.
        token: Token,
    },
}

/// A request that has arrived.
#[derive(Debug)]
pub struct Incoming {
    /// Of which rank.
    pub from: Rank,
    /// For which function.
    pub handler: HandlerId,
    /// What it brings.
    pub body: Body,
    /// The right, and the duty, to answer; `None` for a cast.
    pub reply_to: Option<ReplyTo>,
}

/// What a request has brought.
#[derive(Debug)]
pub enum Body {
    /// Bytes that came with it.
    Inline(Inline),
    /// Bytes in a landing buffer, to be given back by
    /// [`Machine::release`](super::Machine::release).
    Landed(Landed),
}

/// A landing buffer that holds a payload.
#[derive(Debug)]
#[must_use = "a landing buffer is given back by `release`"]
pub struct Landed {
    pub(super) index: u32,
    /// How many bytes it holds.
    pub bytes: u64,
}

/// The right to answer one call, once.
#[derive(Debug)]
#[must_use = "somebody waits for the answer"]
pub struct ReplyTo {
    pub(super) to: Rank,
    pub(super) token: u64,
    /// A staging cell is kept for it.
    pub(super) promised: bool,
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Answer {
    /// These bytes.
    Value(Inline),
    /// There is no such function here.
    UnknownHandler,
    /// The function failed, or forgot to answer.
    Failed,
    /// The payload could not be fetched from where it was said to be.
    BadPayload,
}

/// Why a request was not sent; nothing has happened then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// There is no room now; it will be there later.
    Busy(Why),
    /// The payload is longer than what can be sent.
    TooLong {
        /// Its length.
        bytes: u64,
        /// What can be sent.
        bytes_max: u64,
    },
    /// There is no such rank, or it has died.
    Addr(AddrError),
}

/// Why a call has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The rank has died. Whether the handler ran is unknown.
    PeerLost {
        /// Which.
        rank: Rank,
    },
    /// The time limit has passed. Whether the handler ran, or will, is
    /// unknown.
    Timeout,
    /// The rank has no such handler.
    UnknownHandler {
        /// Which.
        handler: HandlerId,
    },
    /// The handler panicked, or was dropped before it had answered.
    Failed,
    /// The rank could not fetch the payload.
    BadPayload,
    /// The caller's own rank has ended: there is nobody to take an answer.
    Ended,
}

impl Token {
    pub(super) const fn new(index: usize, generation: u32) -> Self {
        Self { index: index as u32, generation }
    }

    /// The entry: less than the number of calls that can be under way.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    pub(super) const fn generation(self) -> u32 {
        self.generation
    }

    pub(super) const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

impl Landed {
    /// Which of the landing buffers.
    pub const fn index(&self) -> usize {
        self.index as usize
    }
}

impl ReplyTo {
    /// The peer that waits for the answer.
    pub const fn peer(&self) -> Rank {
        self.to
    }
}

impl Answer {
    pub(super) const fn status(&self) -> u8 {
        match self {
            Self::Value(_) => 0,
            Self::UnknownHandler => 1,
            Self::Failed => 2,
            Self::BadPayload => 3,
        }
    }

    /// What the caller gets for a reply with this status.
    pub(super) fn outcome(
        status: u8,
        value: Inline,
        handler: HandlerId,
    ) -> Result<Inline, CallError> {
        match status {
            0 => Ok(value),
            1 => Err(CallError::UnknownHandler { handler }),
            3 => Err(CallError::BadPayload),
            _ => Err(CallError::Failed),
        }
    }
}

impl fmt::Display for HandlerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "handler {}", self.0)
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(why) => why.fmt(f),
            Self::TooLong { bytes, bytes_max } => {
                write!(f, "{bytes} bytes are too long for a message: {bytes_max} at most")
            }
            Self::Addr(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerLost { rank } => write!(f, "{rank} has died"),
            Self::Timeout => f.write_str("the time limit of the call has passed"),
            Self::UnknownHandler { handler } => write!(f, "the rank has no {handler}"),
            Self::Failed => f.write_str("the handler failed before it had answered"),
            Self::BadPayload => f.write_str("the payload could not be fetched by the rank"),
            Self::Ended => f.write_str("the caller's own rank has ended"),
        }
    }
}

impl core::error::Error for SendError {}
impl core::error::Error for CallError {}
