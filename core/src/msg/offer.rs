//! The receiver's side of offers: which posted receives it sends to their source,
//! when an offer goes, and how it is taken back. The sender's side is in
//! `mirror`.
//!
//! An offer goes in a packet that is sent anyway. A single offer waits for such a
//! packet, unless a packet of its own [pays](super::Thresholds::alone_from), or
//! the sender has no room: then only a message with a known receive goes on. So
//! for the sender an offer that waits is like a receive that is not offered: such
//! receives are offered when the sender requests room, at the latest, and waiting
//! offers go then, too.

use super::list::IndexList;
use super::machine::MessageMachine;
use super::packet::{Offer, Packet, PacketKind, PacketLoad};
use super::shape::MatchingDesign;
use super::tables::{ANY, DuePacket, OfferState, RequestState};
use super::wire::LaneTransport;
use crate::mem::PeerIndex;
use crate::mutate;

impl MessageMachine<'_> {
    /// Publishes a receive that was just posted, the last of all: offers it to
    /// its source, if that pays and no earlier receive prevents it.
    #[inline(always)]
    pub(super) fn publish<W: LaneTransport>(&mut self, wire: &mut W, post: usize) {
        if self.has_board() {
            return self.put_up_post(post);
        }
        let source = self.tables.requests[post].peer;
        if source == ANY {
            return;
        }
        self.tables.peers[source as usize].unoffered += 1;
        if self.design != MatchingDesign::Mirror {
            return;
        }
        let is_starved = wire.is_starved(PeerIndex(source));
        if self.wants_offer(post, is_starved) {
            self.publish_if_free(source as usize, post, is_starved);
            let first = self.tables.peers[source as usize].ripe.first();
            if first.is_some_and(|first| first != post) {
                // A packet carries one offer: further offers arrive in time only
                // if they go now.
                self.push_offers(wire, source as usize);
            }
        }
    }

    /// Asks a source to forget a receive that is to be cancelled. Returns whether
    /// the receive can be cancelled at once.
    pub(super) fn withdraw<W: LaneTransport>(&mut self, wire: &mut W, post: usize) -> bool {
        match self.tables.requests[post].offered {
            OfferState::No | OfferState::Held | OfferState::Ripe => true,
            OfferState::Yes => mutate!("msg_cancel_unasked":
                {
                    self.tables.requests[post].offered = OfferState::Cancelling;
                    let source = self.tables.requests[post].peer as usize;
                    self.queue_packet(post, source, DuePacket::Cancel);
                    self.push_dues(wire, source);
                    false
                }
                => true
            ),
            OfferState::Cancelling => false,
        }
    }

    /// Updates the offers when a posted receive leaves the table: receives that
    /// it held back may now be offered.
    #[inline(always)]
    pub(super) fn unoffer(&mut self, post: usize) {
        if self.has_board() {
            self.take_down(post);
            return;
        }
        let entry = &self.tables.requests[post];
        let source = entry.peer as usize;
        if entry.peer != ANY && entry.offered == OfferState::No {
            let peer = &mut self.tables.peers[source];
            peer.unoffered -= 1;
            if peer.held > 0 {
                peer.revisit = true;
                self.schedule_pump(source);
            }
        } else if self.design == MatchingDesign::Mirror {
            self.unoffer_wanted(post);
        }
    }

    /// Does the same for a receive from any source, or one that its source should
    /// have.
    fn unoffer_wanted(&mut self, post: usize) {
        let entry = &mut self.tables.requests[post];
        if entry.peer == ANY {
            return self.revisit_all();
        }
        let source = entry.peer as usize;
        let peer = &mut self.tables.peers[source];
        match entry.offered {
            OfferState::No | OfferState::Held => {
                peer.unoffered -= 1;
                peer.held -= u32::from(entry.offered == OfferState::Held);
            }
            OfferState::Ripe => {
                peer.offered -= 1;
                peer.ripe.remove(self.tables.requests, post);
            }
            OfferState::Yes => peer.offered -= 1,
            OfferState::Cancelling => {
                peer.offered -= 1;
                if entry.due == DuePacket::Cancel {
                    // The source was not asked yet.
                    entry.due = DuePacket::Nothing;
                    entry.offered = OfferState::Yes;
                    peer.dues.remove(self.tables.requests, post);
                }
            }
        }
        let was_held = self.tables.requests[post].offered == OfferState::Held;
        let peer = &mut self.tables.peers[source];
        if peer.held > 0 && (was_held || peer.offered <= self.shape.mirror / 2) {
            peer.revisit = true;
            self.schedule_pump(source);
        }
    }

    /// Looks again at the receives of a source that were held back.
    pub(super) fn revisit<W: LaneTransport>(&mut self, wire: &mut W, source: usize) {
        self.tables.peers[source].revisit = false;
        let is_starved = wire.is_starved(PeerIndex(source as u32));
        let mut looked = 0;
        let mut at = self.tables.peers[source].posted.first();
        while let Some(post) = at
            && self.tables.peers[source].unoffered > 0
            && looked < LOOK
        {
            at = IndexList::<0>::after(self.tables.requests, post);
            looked += 1;
            let offered = self.tables.requests[post].offered;
            if offered == OfferState::Held
                || offered == OfferState::No && self.wants_offer(post, is_starved)
            {
                self.publish_if_free(source, post, is_starved);
            }
        }
    }

    /// Takes the next offer to that rank, to go in a packet that is sent now.
    #[inline]
    pub(super) fn take_offer(&mut self, to: PeerIndex) -> PacketLoad {
        let peer = &mut self.tables.peers[to.0 as usize];
        let Some(post) = peer.ripe.pop(self.tables.requests) else { return PacketLoad::Empty };
        let taken = peer.here.taken;
        let id = self.id(post);
        self.counts.offered += 1;
        let entry = &mut self.tables.requests[post];
        entry.offered = OfferState::Yes;
        PacketLoad::Offer(Offer {
            id,
            taken,
            context: entry.context,
            tag: (!entry.any_tag).then_some(entry.tag),
            at: entry.in_reach.then_some(entry.at),
            room: entry.len,
        })
    }

    /// Pushes offers in packets of their own, if one of them is urgent.
    pub(super) fn push_offers<W: LaneTransport>(&mut self, wire: &mut W, to: usize) -> bool {
        let mut has_moved = false;
        let peer = PeerIndex(to as u32);
        while self.tables.peers[to].has_urgent() && self.has_lines(wire, peer, 1) {
            let offer = self.take_offer(peer);
            wire.push(
                peer,
                &Packet { count: Packet::OFFER, ..Packet::new(PacketKind::Post) },
                offer,
            );
            has_moved = true;
        }
        has_moved
    }

    /// Returns whether the source could make use of a receive.
    #[inline(always)]
    fn wants_offer(&self, post: usize, is_starved: bool) -> bool {
        let entry = &self.tables.requests[post];
        let peer = &self.tables.peers[entry.peer as usize];
        let offered_from = u64::from(peer.thresholds.offered_from());
        is_starved || entry.in_reach && !peer.remote && entry.len >= offered_from
    }

    fn publish_if_free(&mut self, source: usize, post: usize, is_starved: bool) {
        let was_held = self.tables.requests[post].offered == OfferState::Held;
        if self.tables.peers[source].offered >= self.shape.mirror || self.is_held_back(post) {
            if !was_held {
                self.tables.requests[post].offered = OfferState::Held;
                self.tables.peers[source].held += 1;
            }
            return;
        }
        let peer = &mut self.tables.peers[source];
        peer.held -= u32::from(was_held);
        peer.unoffered -= 1;
        peer.offered += 1;
        let entry = &mut self.tables.requests[post];
        entry.offered = OfferState::Ripe;
        let pays = entry.len >= u64::from(peer.thresholds.alone_from);
        // A packet carries one offer: of several, some would be late.
        peer.urgent = pays || is_starved || !peer.ripe.is_empty();
        peer.ripe.push(self.tables.requests, post);
        if peer.urgent {
            self.schedule_pump(source);
        }
    }

    /// Makes the waiting offers urgent, because the source has no room.
    pub(super) fn urge_offers(&mut self, source: usize) {
        let peer = &mut self.tables.peers[source];
        if mutate!("msg_offer_kept": !peer.ripe.is_empty() => false) {
            peer.urgent = true;
            self.schedule_pump(source);
        }
    }

    /// Returns whether an earlier receive that the source does not have could
    /// take the same message. If more than `LOOK` receives are earlier, the
    /// answer is yes.
    fn is_held_back(&self, post: usize) -> bool {
        let entry = &self.tables.requests[post];
        let peer = &self.tables.peers[entry.peer as usize];
        let no_wildcards = mutate!("msg_wildcard_passed": self.any_posted.is_empty() => true);
        if peer.unoffered <= 1 && no_wildcards {
            return false;
        }
        for (list, is_any) in [(&peer.posted, false), (&self.any_posted, true)] {
            if is_any && no_wildcards {
                continue;
            }
            let mut at = list.first();
            let mut looked = 0;
            while let Some(other) = at {
                let earlier = &self.tables.requests[other];
                if earlier.number >= entry.number {
                    break;
                }
                let is_unknown = matches!(earlier.offered, OfferState::No | OfferState::Held);
                if is_unknown && earlier.overlaps(entry) || looked == LOOK {
                    return true;
                }
                looked += 1;
                at = IndexList::<0>::after(self.tables.requests, other);
            }
        }
        false
    }

    fn revisit_all(&mut self) {
        for peer in 0..self.tables.peers.len() {
            if self.tables.peers[peer].held > 0 {
                self.tables.peers[peer].revisit = true;
                self.schedule_pump(peer);
            }
        }
    }

    /// Takes the peer's answer to a cancel.
    pub(super) fn cancel_answered(&mut self, from: usize, id: u32) {
        let peer = &mut self.tables.peers[from];
        peer.asked = peer.asked.saturating_sub(1);
        let Some(post) = self.named_any(id) else { return };
        let entry = &self.tables.requests[post];
        if entry.offered != OfferState::Cancelling || entry.peer as usize != from {
            return;
        }
        if entry.state == RequestState::Posted {
            self.unpost(post);
            self.tables.requests[post].offered = OfferState::No;
            self.end(post, Some(super::outcome::RequestError::Cancelled));
        } else {
            self.answered(post);
        }
    }

    /// Ends the wait for an answer that will not come, because the rank has died.
    pub(super) fn forget_question(&mut self, index: usize, of: usize) {
        let entry = &self.tables.requests[index];
        let is_its = entry.peer as usize == of && entry.offered == OfferState::Cancelling;
        if is_its && entry.state != RequestState::Posted {
            self.answered(index);
        }
    }

    /// Ends the cancelling of a receive that has got its message.
    fn answered(&mut self, index: usize) {
        let entry = &mut self.tables.requests[index];
        entry.offered = OfferState::No;
        if entry.state == RequestState::Free {
            self.release(index);
        }
    }
}

/// Receives that are looked at to find one that can be offered.
pub(super) const LOOK: u32 = 128;
