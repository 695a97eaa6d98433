//! Arguments and results of the machine's calls, and their errors.

use super::split::SplitSide;
use super::wire::Copy;
use crate::completion::Why;
use crate::mem::PeerIndex;
use core::fmt;

/// The label that the sender gives a message: context and tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The context: no receive matches messages of two contexts.
    pub context: u16,
    /// The tag, chosen by the sender.
    pub tag: u32,
}

/// The messages that a receive takes. `S` names a sender: the machine's own patterns
/// name it by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern<S = PeerIndex> {
    /// The context.
    pub context: u16,
    /// The rank that sent the message; `None`: any rank.
    pub source: Option<S>,
    /// The tag; `None`: any tag.
    pub tag: Option<u32>,
}

/// A buffer, at an address that the wire understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageBytes {
    /// The address of the first byte.
    pub at: u64,
    /// The number of bytes.
    pub len: u64,
    /// Whether peers can reach it by this address.
    pub in_reach: bool,
}

/// Description of a message that was received, or could be. `S` names a sender, as in
/// a [`Pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedMessage<S = PeerIndex> {
    /// The rank that sent it.
    pub source: S,
    /// Its tag.
    pub tag: u32,
    /// Its length.
    pub len: u64,
    /// The buffer is shorter: it holds the bytes that fit, and the rest is lost.
    pub truncated: bool,
}

/// A send or receive under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// Bytes to be copied outside the machine, in chunks or by several threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyJob {
    /// The request with these bytes.
    pub request: RequestId,
    /// The copy to be made.
    pub copy: Copy,
    /// If set, both sides make the copy together: each side copies the parts that
    /// it can claim on the lane's [`Split`](super::Split), under this number and
    /// as this side. Then [`split_done`](super::MessageMachine::split_done) must be
    /// called in place of [`job_done`](super::MessageMachine::job_done).
    pub split: Option<(u32, SplitSide)>,
}

/// How far a call has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun<T> {
    /// The request has ended: the caller may use the buffer.
    Done(T),
    /// The request will end: the buffer is the machine's until then.
    Pending(RequestId),
}

/// Why a request ended without a message, or without the whole of it. `P` names a
/// peer.
///
/// The enum is exhaustive: a driver wakes or fails its caller in a way of its own for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError<P = PeerIndex> {
    /// The request was cancelled, and nothing was received.
    Cancelled,
    /// The machine was [sealed](super::MessageMachine::seal) before the request had
    /// its message.
    Ended,
    /// The rank has died.
    PeerLost {
        /// The peer that has died.
        peer: P,
    },
    /// The bytes could not be moved: the content of the buffer is undefined.
    Failed {
        /// The peer at the other end of the copy.
        peer: P,
    },
}

/// Why a call did nothing.
///
/// The enum is exhaustive: a driver has to know whether it tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// All requests are under way; try again later.
    Busy(Why),
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

/// Result of an attempt to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// The request has ended as [`RequestError::Cancelled`].
    Done,
    /// The machine asks the peer: the request will end as cancelled or with its
    /// message.
    Asked,
    /// The request has ended already, or its message is under way.
    TooLate,
}

impl Pattern {
    /// Returns whether a message with this source and label matches.
    #[inline(always)]
    pub fn takes(&self, source: PeerIndex, label: Label) -> bool {
        self.context == label.context
            && self.source.is_none_or(|wanted| wanted == source)
            && self.tag.is_none_or(|tag| tag == label.tag)
    }
}

impl RequestId {
    /// Encodes the request as a word.
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// Decodes such a word. A word that names no request is detected at its use.
    pub const fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

impl<T> Begun<T> {
    /// Returns the result, if the request has ended.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(value) => Some(value),
            Self::Pending(_) => None,
        }
    }

    /// Returns the request, if it has not ended.
    pub fn pending(self) -> Option<RequestId> {
        match self {
            Self::Done(_) => None,
            Self::Pending(request) => Some(request),
        }
    }
}

impl<P: fmt::Display> fmt::Display for RequestError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("the receive was cancelled"),
            Self::Ended => f.write_str("the rank has ended"),
            Self::PeerLost { peer } => write!(f, "{peer} has died"),
            Self::Failed { peer } => {
                write!(f, "the bytes of a message to or from {peer} could not be copied")
            }
        }
    }
}

impl<P: fmt::Debug + fmt::Display> core::error::Error for RequestError<P> {}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(Why::NoTag) => {
                f.write_str("all requests of this rank are under way: wait until one has ended")
            }
            Self::Busy(why) => write!(f, "there is no room for the message now: {why}"),
            Self::NoSuchPeer { peer, peers } => {
                write!(f, "{peer} does not exist: there are {peers} peers")
            }
            Self::PeerLost { peer } => write!(f, "{peer} has died"),
        }
    }
}

impl core::error::Error for CallError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_takes_only_the_messages_that_it_names() {
        let label = Label { context: 3, tag: 7 };
        let takes = |context, source: Option<u32>, tag| {
            Pattern { context, source: source.map(PeerIndex), tag }.takes(PeerIndex(1), label)
        };
        for (source, is_right_source) in [(None, true), (Some(1), true), (Some(2), false)] {
            for (tag, is_right_tag) in [(None, true), (Some(7), true), (Some(8), false)] {
                let is_its = is_right_source && is_right_tag;
                assert_eq!(takes(3, source, tag), is_its, "{source:?} {tag:?}");
                assert!(!takes(4, source, tag), "another context: {source:?} {tag:?}");
            }
        }
    }

    #[test]
    fn a_call_is_done_or_has_a_request() {
        let request = RequestId { index: 5, generation: !0 };
        assert_eq!((Begun::Done(7).done(), Begun::Done(7).pending()), (Some(7), None));
        let pending = Begun::<u8>::Pending(request);
        assert_eq!((pending.done(), pending.pending()), (None, Some(request)));
        assert_eq!(RequestId::from_bits(request.to_bits()), request);
    }
}
