//! Inputs and outputs of the machine.

use super::cell::Inline;
use crate::completion::Why;
use crate::mem::{AddrError, LocalAddr, PeerIndex, Rank};
use crate::tag::Tag;
use core::fmt;

/// The number of the function that a message calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct HandlerId(pub u32);

/// One call under way: the index of an entry of the caller's table, and its
/// generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    index: u32,
    generation: u32,
}

/// The payload of a request to be sent.
#[derive(Clone, Copy, Debug)]
pub enum CallPayload<'p> {
    /// Bytes that are sent inside the message.
    Inline(&'p [u8]),
    /// Bytes of the caller's memory, registered for reading. The caller must not
    /// change them until the call has ended.
    Long {
        /// Where the bytes start.
        from: LocalAddr,
        /// How many bytes there are.
        bytes: u64,
    },
}

/// An event for the machine.
#[derive(Clone, Copy, Debug)]
pub enum AmEvent {
    /// A bell rang, or may have.
    Rang,
    /// An operation that the machine had posted has completed.
    Completed {
        /// The tag of the operation.
        tag: Tag,
        /// The result of the operation.
        result: Result<u64, AddrError>,
    },
    /// A peer has died.
    Lost(PeerIndex),
    /// Only time has passed.
    Tick,
}

/// A task for the driver.
#[derive(Debug)]
pub enum AmOutput {
    /// Run a handler.
    Run(Incoming),
    /// A call has ended. The caller may use its payload again, unless the call
    /// was long and ended by its deadline.
    Done {
        /// The call that has ended.
        token: Token,
        /// The reply or the error.
        result: Result<Inline, CallError>,
    },
    /// The caller may use the payload of a long call again that ended by its
    /// deadline.
    Released {
        /// The call with this payload.
        token: Token,
    },
}

/// A request that has arrived.
#[derive(Debug)]
pub struct Incoming {
    /// The rank that sent the request.
    pub from: Rank,
    /// The function that the request calls.
    pub handler: HandlerId,
    /// The payload of the request.
    pub body: RequestBody,
    /// The right, and the duty, to answer; `None` for a cast.
    pub reply_to: Option<ReplyTo>,
}

/// The payload of a request that has arrived.
#[derive(Debug)]
pub enum RequestBody {
    /// Bytes that came inside the message.
    Inline(Inline),
    /// Bytes in a landing buffer. The driver must give the buffer back by
    /// [`AmMachine::release`](super::AmMachine::release).
    Landed(Landed),
}

/// A landing buffer that holds a payload.
#[derive(Debug)]
#[must_use = "give the landing buffer back with `Machine::release`"]
pub struct Landed {
    pub(super) index: u32,
    /// How many bytes it holds.
    pub bytes: u64,
}

/// The right to answer one call, once.
#[derive(Debug)]
#[must_use = "the caller waits until the call is answered"]
pub struct ReplyTo {
    pub(super) to: PeerIndex,
    pub(super) token: u64,
    /// A staging cell is reserved for the answer.
    pub(super) promised: bool,
}

/// The answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HandlerAnswer {
    /// The handler's bytes.
    Value(Inline),
    /// The rank has no function with this number.
    UnknownHandler,
    /// The function failed, or was dropped without an answer.
    Failed,
    /// The payload could not be fetched from the address in the request.
    BadPayload,
}

/// Why a request was not sent; then nothing has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// There is no room now; there will be room later.
    Busy(Why),
    /// The payload is longer than the maximum.
    TooLong {
        /// Its length.
        bytes: u64,
        /// The maximum.
        bytes_max: u64,
    },
    /// The machine has no such peer.
    NoSuchPeer {
        /// The index that was given.
        peer: PeerIndex,
        /// How many peers the machine has.
        peers: u32,
    },
    /// The peer has died.
    PeerLost {
        /// The peer that has died.
        peer: PeerIndex,
    },
}

/// Why a call has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// The rank has died. It is unknown whether the handler ran.
    PeerLost {
        /// The rank that has died.
        rank: Rank,
    },
    /// The deadline has passed. It is unknown whether the handler ran, or will
    /// run.
    Timeout,
    /// The rank has no such handler.
    UnknownHandler {
        /// The number of the handler.
        handler: HandlerId,
    },
    /// The handler panicked, or was dropped before it had answered.
    Failed,
    /// The rank could not fetch the payload.
    BadPayload,
    /// The caller's own rank has ended, so no thread is left to take an answer.
    Ended,
}

impl Token {
    pub(super) const fn new(index: usize, generation: u32) -> Self {
        Self { index: index as u32, generation }
    }

    /// Returns the index of the entry: less than the number of calls that can be
    /// under way.
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
    /// Returns the index of the landing buffer.
    pub const fn index(&self) -> usize {
        self.index as usize
    }
}

impl ReplyTo {
    /// Returns the peer that waits for the answer.
    pub const fn peer(&self) -> PeerIndex {
        self.to
    }
}

impl HandlerAnswer {
    pub(super) const fn status(&self) -> u8 {
        match self {
            Self::Value(_) => 0,
            Self::UnknownHandler => 1,
            Self::Failed => 2,
            Self::BadPayload => 3,
        }
    }

    /// Returns the caller's result for a reply with this status.
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
                write!(f, "a message of {bytes} bytes is too long: the limit is {bytes_max} bytes")
            }
            Self::NoSuchPeer { peer, peers } => {
                write!(f, "{peer} does not exist: there are {peers} peers")
            }
            Self::PeerLost { peer } => write!(f, "{peer} has died"),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerLost { rank } => write!(f, "{rank} has died"),
            Self::Timeout => f.write_str("no reply came before the deadline of the call"),
            Self::UnknownHandler { handler } => {
                write!(f, "{handler} is not registered at the called rank")
            }
            Self::Failed => f.write_str("the handler panicked, or was dropped without an answer"),
            Self::BadPayload => f.write_str("the called rank could not fetch the payload"),
            Self::Ended => f.write_str("the caller's own rank has ended: it takes no more replies"),
        }
    }
}

impl core::error::Error for SendError {}
impl core::error::Error for CallError {}
