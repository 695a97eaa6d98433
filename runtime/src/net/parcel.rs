//! The payload of packets: a byte with the kind, and then the parcel.

use crate::error::Error;
use std::fmt;
use tsumugi_core::mem::{AddrError, Rank};

/// The kind of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Parcel {
    /// A request for an operation of the target's processor, or its answer.
    Emulated = 0,
    /// Part of a message.
    Message = 1,
    /// A heartbeat.
    Heartbeat = 2,
    /// The place of the sender's lanes for calls of the receiver.
    Greeting = 3,
    /// A notice that the sender's node has given up the receiver's node.
    GivenUp = 4,
}

/// A handler of parcels: it gets the sender and the bytes.
pub type ParcelHandler = Box<dyn Fn(Rank, &[u8]) + Send + Sync>;

/// Why a parcel was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParcelError {
    /// There is no room now; a later attempt may succeed.
    Full,
    /// The parcel is longer than any may be.
    TooLong,
    /// The rank does not exist, or is lost.
    Addr(AddrError),
}

impl Parcel {
    pub(super) const KINDS: usize = 5;

    /// Splits a packet into the kind and the bytes; `None` if the kind is unknown.
    pub(super) fn of(packet: &[u8]) -> Option<(Self, &[u8])> {
        let (kind, bytes) = packet.split_first()?;
        let kind = match kind {
            0 => Self::Emulated,
            1 => Self::Message,
            2 => Self::Heartbeat,
            3 => Self::Greeting,
            4 => Self::GivenUp,
            _ => return None,
        };
        Some((kind, bytes))
    }
}

impl fmt::Display for ParcelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the network has no room for a packet now; try again later"),
            Self::TooLong => f.write_str("the payload is longer than the longest packet"),
            Self::Addr(error) => error.fmt(f),
        }
    }
}

impl From<ParcelError> for Error {
    fn from(error: ParcelError) -> Self {
        match error {
            ParcelError::Addr(error) => Self::Addr(error),
            other => Self::program(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_its_byte() {
        use Parcel::{Emulated, GivenUp, Greeting, Heartbeat, Message};
        for kind in [Emulated, Message, Heartbeat, Greeting, GivenUp] {
            assert_eq!(Parcel::of(&[kind as u8, 7, 8]), Some((kind, &[7, 8][..])));
        }
        assert_eq!(Parcel::of(&[]), None);
        assert!((Parcel::KINDS as u8..=u8::MAX).all(|kind| Parcel::of(&[kind]).is_none()));
    }
}
