//! The machine's own tables: its peers, the requests under way, and the messages
//! that no receive has taken yet. The caller provides the memory.

use super::list::{IndexList, Linked, ListLink};
use super::outcome::{Label, RequestError};
use super::packet::{INLINE_WORDS, PacketKind};
pub(super) use super::request_state::{DuePacket, OfferState, RequestState, SplitProgress};
use super::threshold::Thresholds;
use super::wire::Returned;
use crate::mem::PeerIndex;

/// Memory for the machine's tables; any content. A [`MessageShape`](super::MessageShape) gives
/// the length of each, except of the requests.
#[derive(Debug)]
pub struct MessageTables<'m> {
    /// One for each rank.
    pub peers: &'m mut [MessagePeer],
    /// One for each send or receive that can be under way.
    pub requests: &'m mut [RequestEntry],
    /// Messages that came before their receive; more than the shape's if the machine is
    /// [widened](super::MessageMachine::widen).
    pub unexpected: &'m mut [UnexpectedMessage],
    /// Messages that went by lane and may still meet an offer.
    pub log: &'m mut [LoggedMessage],
    /// Offers of the peers.
    pub mirror: &'m mut [MirroredOffer],
}

/// State of a peer. Counts wrap.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct MessagePeer {
    // Of the lane to the peer.
    /// Messages sent, and messages that the peer has matched, as far as is known.
    pub(super) sent: u32,
    pub(super) matched_there: u32,
    /// The first message that the log still has; the message up to which the log
    /// is dropped once the lane from the peer is empty.
    pub(super) log_low: u32,
    pub(super) taken_there: u32,
    pub(super) lines_there: u32,
    /// The peer's offers: a queue in its part of the mirror.
    pub(super) mirror_first: u32,
    pub(super) mirror_len: u32,
    /// Bits of the slots, at this rank and at the peer.
    pub(super) slots: u32,
    pub(super) slots_there: u32,
    /// Sends that wait for room; packets that wait for room; offers to be made.
    pub(super) waiting: IndexList<0>,
    pub(super) dues: IndexList<1>,
    pub(super) ripe: IndexList<1>,
    // Of the lane from the peer.
    /// Messages taken and matched, and slots freed; what the peer was sent of
    /// that.
    pub(super) here: Returned,
    pub(super) told: Returned,
    /// Messages that the peer may send beyond its quota: counted as matched.
    pub(super) granted: u32,
    /// Receives posted for this peer alone, and its messages that no receive has
    /// taken.
    pub(super) posted: IndexList<0>,
    pub(super) unexpected: IndexList<0>,
    /// Posted receives that are not offered, and receives that are or will be;
    /// receives on a board are counted in neither.
    pub(super) unoffered: u32,
    pub(super) offered: u32,
    /// Of the receives that are not offered: those that would be, if no earlier
    /// receive prevented it.
    pub(super) held: u32,
    /// Answers to cancelled offers that found no room: a queue in the peer's part
    /// of the mirror. Own cancels that were not answered.
    pub(super) acks_first: u32,
    pub(super) acks: u32,
    pub(super) asked: u32,
    pub(super) links: [ListLink; 2],
    pub(super) thresholds: Thresholds,
    pub(super) lost: bool,
    /// The peer is on another node: neither side reaches the other's memory.
    pub(super) remote: bool,
    pub(super) starving: bool,
    /// At least one waiting offer must go now, if necessary in a packet of its
    /// own.
    pub(super) urgent: bool,
    /// Receives that were held back may be offered now.
    pub(super) revisit: bool,
    /// Whether the peer is in the list of peers to be pumped, and in the list of
    /// peers that must get credits back.
    pub(super) busy: bool,
    pub(super) credits_due: bool,
}

/// A send or receive under way.
#[derive(Clone, Copy, Debug)]
pub struct RequestEntry {
    // The fields that a match reads come first.
    pub(super) links: [ListLink; 2],
    pub(super) number: u64,
    /// The source or destination; [`ANY`]: any source.
    pub(super) peer: u32,
    pub(super) tag: u32,
    pub(super) context: u16,
    pub(super) any_tag: bool,
    pub(super) in_reach: bool,
    pub(super) state: RequestState,
    pub(super) offered: OfferState,
    pub(super) due: DuePacket,
    pub(super) both: SplitProgress,
    /// The peer's bytes are out of reach, and the kernel fetches them.
    pub(super) by_kernel: bool,
    /// A send that ends only when its message has met its receive.
    pub(super) synchronous: bool,
    /// The end of the request must be reported; the request is in the list for
    /// that.
    pub(super) watched: bool,
    pub(super) listed: bool,
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) generation: u32,
    /// The peer's request.
    pub(super) remote: u32,
    /// The peer's address, if it can be reached, or if the kernel can fetch from
    /// it.
    pub(super) peer_at: Option<u64>,
    /// The length of the message, and how much of it is here; for a push, how
    /// much of it has been begun.
    pub(super) size: u64,
    pub(super) moved: u64,
    /// The source and tag of the received message, or the error.
    pub(super) source: u32,
    pub(super) found_tag: u32,
    pub(super) error: Option<RequestError>,
}

/// A message that came before its receive.
#[derive(Clone, Copy, Debug)]
pub struct UnexpectedMessage {
    pub(super) links: [ListLink; 2],
    pub(super) source: u32,
    pub(super) tag: u32,
    pub(super) context: u16,
    pub(super) kind: PacketKind,
    pub(super) in_reach: bool,
    pub(super) by_kernel: bool,
    pub(super) id: u32,
    pub(super) len: u64,
    /// Slots or an address.
    pub(super) b: u64,
    pub(super) bytes: [u64; INLINE_WORDS],
}

/// A logged message, which went by lane.
#[derive(Clone, Copy, Debug)]
pub struct LoggedMessage {
    pub(super) tag: u32,
    pub(super) context: u16,
    /// No offer has met the message.
    pub(super) open: bool,
}

/// A peer's offer; in the same entry, but of a queue of its own, an answer to be
/// sent.
#[derive(Clone, Copy, Debug)]
pub struct MirroredOffer {
    pub(super) id: u32,
    pub(super) tag: u32,
    pub(super) context: u16,
    pub(super) any_tag: bool,
    pub(super) at: Option<u64>,
    pub(super) room: u64,
    pub(super) ack: u32,
    pub(super) ack_open: bool,
}

impl MessagePeer {
    /// A peer of which nothing is known.
    pub const EMPTY: Self = Self {
        sent: 0,
        matched_there: 0,
        log_low: 0,
        taken_there: 0,
        lines_there: 0,
        mirror_first: 0,
        mirror_len: 0,
        slots: 0,
        slots_there: 0,
        waiting: IndexList::EMPTY,
        dues: IndexList::EMPTY,
        ripe: IndexList::EMPTY,
        here: Returned { lines: 0, taken: 0, matched: 0, slots: 0 },
        told: Returned { lines: 0, taken: 0, matched: 0, slots: 0 },
        granted: 0,
        posted: IndexList::EMPTY,
        unexpected: IndexList::EMPTY,
        unoffered: 0,
        offered: 0,
        held: 0,
        acks_first: 0,
        acks: 0,
        asked: 0,
        links: [ListLink::NONE; 2],
        thresholds: Thresholds::DEFAULT,
        lost: false,
        remote: false,
        starving: false,
        urgent: false,
        revisit: false,
        busy: false,
        credits_due: false,
    };

    /// Returns whether there are offers that must go now, if necessary in packets
    /// of their own.
    #[inline]
    pub(super) fn has_urgent(&self) -> bool {
        self.urgent && !self.ripe.is_empty()
    }
}

impl RequestEntry {
    /// No request.
    pub const EMPTY: Self = Self {
        links: [ListLink::NONE; 2],
        number: 0,
        peer: 0,
        tag: 0,
        context: 0,
        any_tag: false,
        in_reach: false,
        state: RequestState::Free,
        offered: OfferState::No,
        due: DuePacket::Nothing,
        both: SplitProgress::No,
        by_kernel: false,
        synchronous: false,
        watched: false,
        listed: false,
        at: 0,
        len: 0,
        generation: 0,
        remote: 0,
        peer_at: None,
        size: 0,
        moved: 0,
        source: 0,
        found_tag: 0,
        error: None,
    };

    /// Returns whether a message from the source of this receive matches it.
    #[inline(always)]
    pub(super) fn takes(&self, label: Label) -> bool {
        self.context == label.context && (self.any_tag || self.tag == label.tag)
    }

    /// Returns whether a message could match both of two receives.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.context == other.context
            && (self.any_tag || other.any_tag || self.tag == other.tag)
            && (self.peer == ANY || other.peer == ANY || self.peer == other.peer)
    }

    /// Returns how many bytes of the message fit into the buffer.
    #[inline(always)]
    pub(super) fn fitting(&self) -> u64 {
        self.size.min(self.len)
    }
}

impl UnexpectedMessage {
    /// No message.
    pub const EMPTY: Self = Self {
        links: [ListLink::NONE; 2],
        source: 0,
        tag: 0,
        context: 0,
        kind: PacketKind::Inline,
        in_reach: false,
        by_kernel: false,
        id: 0,
        len: 0,
        b: 0,
        bytes: [0; INLINE_WORDS],
    };

    pub(super) const fn label(&self) -> Label {
        Label { context: self.context, tag: self.tag }
    }

    pub(super) const fn source(&self) -> PeerIndex {
        PeerIndex(self.source)
    }
}

impl LoggedMessage {
    /// No message.
    pub const EMPTY: Self = Self { tag: 0, context: 0, open: false };
}

impl MirroredOffer {
    /// No offer.
    pub const EMPTY: Self = Self {
        id: 0,
        tag: 0,
        context: 0,
        any_tag: false,
        at: None,
        room: 0,
        ack: 0,
        ack_open: false,
    };

    #[inline(always)]
    pub(super) fn takes(&self, label: Label) -> bool {
        self.context == label.context && (self.any_tag || self.tag == label.tag)
    }
}

macro_rules! linked {
    ($($type:ty: $($number:literal)*;)*) => {$($(
        impl Linked<$number> for $type {
            #[inline(always)]
            fn link(&mut self) -> &mut ListLink {
                &mut self.links[$number]
            }
            #[inline(always)]
            fn next(&self) -> u32 {
                self.links[$number].next()
            }
        }
    )*)*};
}

linked! {
    MessagePeer: 0 1;
    RequestEntry: 0 1;
    UnexpectedMessage: 0 1;
}

/// No particular source.
pub(super) const ANY: u32 = u32::MAX;

#[cfg(test)]
mod tests;
