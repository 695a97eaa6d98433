//! The mirror: the sender's copy of the receives that wait for its messages, so
//! that it can copy straight into their buffers.
//!
//! A receive from one rank is *offered* to that rank (the posted receive is sent
//! to its source). The source keeps its offers in a *mirror* in the order in
//! which they were posted. A message first looks there. A message that meets no
//! offer is written into the *log*, because an offer may be on its way that the
//! message will meet at the receiver:
//!
//! ```text
//!   receiver                                      sender
//!   post P, `taken` messages so far ──offer──►  log: first open message from
//!                                                    number `taken` on that P
//!                                                    takes? ── both dropped
//!                                                    none   ── P into mirror
//! ```
//!
//! Both sides then match alike, each by itself: between two ranks the matching is
//! a function of the order of messages and of posts, and `taken` gives the
//! position of the post in the order of messages. A receive from any source
//! breaks that, and so does any receive that its source does not have: later
//! receives that could take the same message are *held back* until that receive
//! is gone.
//!
//! A logged message is dropped when it was taken before every offer that can
//! still come: first the receiver reports how many messages it has taken
//! (`returned`), *then* the lane from it is found empty. The count alone is not
//! enough: it may be newer than offers that still lie in the lane.

use super::machine::MessageMachine;
use super::outcome::Label;
use super::packet::{Offer, Packet, PacketKind, PacketLoad};
use super::shape::MatchingDesign;
use super::tables::MirroredOffer;
use super::wire::LaneTransport;
use crate::mem::PeerIndex;
use crate::mutate;

/// The receive that will take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClaimedOffer {
    /// The name of the receive.
    pub(super) id: u32,
    /// The address of its buffer, if it can be reached, and the length of the
    /// buffer.
    pub(super) at: Option<u64>,
    pub(super) room: u64,
}

impl MessageMachine<'_> {
    /// Takes the receive that will get the next message to that rank, if it is
    /// known, out of the mirror.
    #[inline]
    pub(super) fn claim(&mut self, to: PeerIndex, label: Label) -> Option<ClaimedOffer> {
        if self.tables.peers[to.0 as usize].mirror_len == 0 {
            None
        } else {
            self.find_claim(to, label)
        }
    }

    fn find_claim(&mut self, to: PeerIndex, label: Label) -> Option<ClaimedOffer> {
        let len = self.tables.peers[to.0 as usize].mirror_len;
        for place in 0..len {
            let offer = self.tables.mirror[self.mirror_at(to, place)];
            if offer.takes(label) {
                self.forget(to, place);
                return Some(ClaimedOffer { id: offer.id, at: offer.at, room: offer.room });
            }
        }
        None
    }

    /// Takes a peer's offer of a receive.
    pub(super) fn offered(&mut self, from: usize, offer: Offer) {
        if self.design != MatchingDesign::Mirror {
            self.counts.dropped += 1;
            return;
        }
        let log_len = self.shape.log_len();
        let peer = &mut self.tables.peers[from];
        // Messages taken before this offer were taken before any later offer.
        if offer.taken.wrapping_sub(peer.log_low) <= peer.sent.wrapping_sub(peer.log_low) {
            mutate!("msg_k_ignored": peer.log_low = offer.taken => ());
        }
        let entry = MirroredOffer {
            id: offer.id,
            tag: offer.tag.unwrap_or(0),
            context: offer.context,
            any_tag: offer.tag.is_none(),
            at: offer.at,
            room: offer.room,
            ..MirroredOffer::EMPTY
        };
        let (mut number, sent) = (peer.log_low, peer.sent);
        while number != sent {
            let at = from * log_len as usize + (number & (log_len - 1)) as usize;
            let logged = &mut self.tables.log[at];
            let label = Label { context: logged.context, tag: logged.tag };
            if logged.open && entry.takes(label) {
                logged.open = false;
                return;
            }
            number = number.wrapping_add(1);
        }
        if self.tables.peers[from].mirror_len == self.shape.mirror {
            self.counts.dropped += 1;
            return;
        }
        let place = self.tables.peers[from].mirror_len;
        self.tables.peers[from].mirror_len += 1;
        let at = self.mirror_at(PeerIndex(from as u32), place);
        let MirroredOffer { ack, ack_open, .. } = self.tables.mirror[at];
        self.tables.mirror[at] = MirroredOffer { ack, ack_open, ..entry };
        if !self.tables.peers[from].waiting.is_empty() {
            self.schedule_pump(from);
        }
    }

    /// Takes a peer's request to forget an offer, and answers whether it was
    /// used.
    pub(super) fn cancelled<W: LaneTransport>(&mut self, wire: &mut W, from: usize, id: u32) {
        let peer = PeerIndex(from as u32);
        let len = self.tables.peers[from].mirror_len;
        let place =
            (0..len).find(|place| self.tables.mirror[self.mirror_at(peer, *place)].id == id);
        if let Some(place) = place {
            self.forget(peer, place);
        }
        let record = &mut self.tables.peers[from];
        if record.acks == self.shape.mirror {
            self.counts.dropped += 1;
            return;
        }
        let at = (record.acks_first + record.acks) % self.shape.mirror;
        record.acks += 1;
        let ack = &mut self.tables.mirror[from * self.shape.mirror as usize + at as usize];
        (ack.ack, ack.ack_open) = (id, place.is_some());
        if !self.push_acks(wire, from) {
            self.schedule_pump(from);
        }
    }

    /// Pushes the answers that found no room before.
    pub(super) fn push_acks<W: LaneTransport>(&mut self, wire: &mut W, to: usize) -> bool {
        let mut has_moved = false;
        let peer = PeerIndex(to as u32);
        while self.tables.peers[to].acks > 0 && self.has_lines(wire, peer, 1) {
            let record = &mut self.tables.peers[to];
            let first = record.acks_first;
            record.acks -= 1;
            record.acks_first = if first + 1 == self.shape.mirror { 0 } else { first + 1 };
            let ack = self.tables.mirror[to * self.shape.mirror as usize + first as usize];
            let count = if ack.ack_open { 0 } else { Packet::DONE };
            let packet = Packet { count, id: ack.ack, ..Packet::new(PacketKind::CancelAck) };
            wire.push(peer, &packet, PacketLoad::Empty);
            has_moved = true;
        }
        has_moved
    }

    /// Drops logged messages: the lane from that rank was found empty after the
    /// rank had reported that it took `taken` messages, so no older offer can
    /// come any more.
    #[inline]
    pub(super) fn drop_log(&mut self, from: usize, taken: u32) {
        let peer = &mut self.tables.peers[from];
        if taken.wrapping_sub(peer.log_low) <= peer.sent.wrapping_sub(peer.log_low) {
            peer.log_low = taken;
        }
    }

    /// Removes an offer from the mirror; the order of the others stays.
    fn forget(&mut self, of: PeerIndex, place: u32) {
        for place in (1..=place).rev() {
            let (to, from) = (self.mirror_at(of, place), self.mirror_at(of, place - 1));
            let MirroredOffer { ack, ack_open, .. } = self.tables.mirror[to];
            self.tables.mirror[to] = MirroredOffer { ack, ack_open, ..self.tables.mirror[from] };
        }
        let peer = &mut self.tables.peers[of.0 as usize];
        let first = peer.mirror_first + 1;
        peer.mirror_first = if first == self.shape.mirror { 0 } else { first };
        peer.mirror_len -= 1;
    }

    #[inline]
    fn mirror_at(&self, of: PeerIndex, place: u32) -> usize {
        let mirror = self.shape.mirror;
        let at = self.tables.peers[of.0 as usize].mirror_first + place;
        of.0 as usize * mirror as usize + if at >= mirror { at - mirror } else { at } as usize
    }
}
