//! A message that is to be sent, and the result of an attempt.

use super::outcome::{Label, MessageBytes};
use super::packet::{Packet, PacketKind};
use super::tables::{DuePacket, RequestEntry, RequestState};
use crate::mem::PeerIndex;

/// A message that is to be sent.
#[derive(Clone, Copy)]
pub(super) struct OutgoingMessage {
    pub(super) to: PeerIndex,
    pub(super) label: Label,
    pub(super) bytes: MessageBytes,
    /// Whether the send ends only when the message has met its receive.
    pub(super) synchronous: bool,
    /// The request of the message, if it had to wait for room.
    pub(super) entry: Option<usize>,
}

impl OutgoingMessage {
    /// Makes the message of a request that waits.
    pub(super) fn of(request: &RequestEntry, index: usize) -> Self {
        Self {
            to: PeerIndex(request.peer),
            label: Label { context: request.context, tag: request.tag },
            bytes: MessageBytes { at: request.at, len: request.len, in_reach: request.in_reach },
            synchronous: request.synchronous,
            entry: Some(index),
        }
    }

    /// Returns the packet of the message, without the place of its bytes.
    #[inline]
    pub(super) const fn packet(&self, kind: PacketKind) -> Packet {
        let Label { context, tag } = self.label;
        Packet { context, tag, a: self.bytes.len, ..Packet::new(kind) }
    }

    /// Returns the request of the message.
    pub(super) const fn request(&self, state: RequestState) -> RequestEntry {
        let Self { to, label, bytes, synchronous, .. } = *self;
        RequestEntry {
            state,
            synchronous,
            peer: to.0,
            source: to.0,
            tag: label.tag,
            found_tag: label.tag,
            context: label.context,
            at: bytes.at,
            len: bytes.len,
            size: bytes.len,
            in_reach: bytes.in_reach,
            due: DuePacket::Nothing,
            ..RequestEntry::EMPTY
        }
    }
}

/// Result of an attempt to send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Launched {
    /// The message was sent, and its buffer is not needed any more.
    Done,
    /// This request still needs the buffer.
    Running(usize),
    /// The lane has no free lines.
    NoLines,
    /// Too many messages to the peer are without a receive.
    NoQuota,
    /// The log has no place. The mirror was not searched for a receive of this
    /// message. So it must not be searched for a later message either: if the log
    /// had a place by then, the later message would take that receive.
    NoLog,
    /// There is no free request.
    NoRequest,
}
