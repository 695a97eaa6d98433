//! Receiving: packets in the order of their lane, and the credits that are
//! returned for them.
//!
//! The machine trusts a length, an address or a name in a packet only as far as
//! its own tables allow: an invalid packet is counted and dropped.

use super::list::IndexList;
use super::machine::MessageMachine;
use super::outcome::Label;
use super::packet::{Packet, PacketKind};
use super::shape::MatchingDesign;
use super::tables::{OfferState, RequestState, UnexpectedMessage};
use super::wire::LaneTransport;
use crate::mem::PeerIndex;
use crate::mutate;

impl MessageMachine<'_> {
    /// Takes the packets in the lane from a rank. Returns whether there was one.
    #[inline]
    pub(super) fn drain<W: LaneTransport>(&mut self, wire: &mut W, from: usize) -> bool {
        // Read before the lane is looked at: see `mirror`.
        let Some(record) = self.tables.peers.get(from) else { return false };
        let taken_there = record.taken_there;
        let peer = PeerIndex(from as u32);
        if wire.peek(peer).is_none() {
            self.drop_log(from, taken_there);
            self.answer_starved(wire, from);
            return false;
        }
        if self.tables.peers[from].lost {
            return false;
        }
        let mut left = self.shape.lines + 1;
        while left > 0 {
            left -= self.take_run(wire, from, left);
            let Some(packet) = wire.peek(peer) else {
                self.drop_log(from, taken_there);
                break;
            };
            if left > 0 {
                self.take_packet(wire, from, &packet);
                wire.pop(peer);
                left -= 1;
            }
        }
        if self.recent[0] != from as u32 {
            self.remember(from as u32);
        }
        self.answer_starved(wire, from);
        self.settle(wire, from);
        true
    }

    /// Returns credits to the sender, if there are many or the sender waits for
    /// them.
    #[inline(always)]
    pub(super) fn settle<W: LaneTransport>(&mut self, wire: &mut W, from: usize) {
        let peer = PeerIndex(from as u32);
        let untold = wire.untold(peer);
        let is_starved = wire.is_starved(peer);
        let record = &mut self.tables.peers[from];
        if !record.credits_due {
            record.credits_due = true;
            self.credits_due.push(self.tables.peers, from);
        }
        let record = &mut self.tables.peers[from];
        let matched = record.here.matched.wrapping_sub(record.told.matched);
        let is_much = untold >= self.shape.lines / 4
            || matched >= self.shape.quota.div_ceil(4)
            || record.here.slots != record.told.slots;
        if is_much || is_starved && self.owes(wire, from) {
            self.return_credits(wire, from);
        }
    }

    /// Feeds a sender that waits for room, if a receive or a probe here may wait
    /// for its messages: offers all receives to the sender, because a message
    /// with a known receive may always go; and grants the sender more, if it has
    /// used its quota up.
    #[inline(always)]
    pub(super) fn answer_starved<W: LaneTransport>(&mut self, wire: &mut W, from: usize) {
        let is_wanted = !self.tables.peers[from].posted.is_empty()
            || !self.any_posted.is_empty()
            || self.is_probed;
        if is_wanted && wire.is_starved(PeerIndex(from as u32)) {
            self.grant(wire, from);
        }
    }

    #[cold]
    fn grant<W: LaneTransport>(&mut self, wire: &mut W, from: usize) {
        let peer = &mut self.tables.peers[from];
        if peer.lost {
            return;
        }
        let unmatched = peer.here.taken.wrapping_sub(peer.here.matched);
        let is_full = unmatched >= self.shape.quota;
        let is_cramped = is_full && self.spare == 0;
        self.is_cramped |= mutate!("msg_cramp_unnoticed": is_cramped => false);
        let is_due = is_full && self.spare > 0;
        if mutate!("msg_nothing_granted": is_due => false) {
            let more = self.spare.min(self.shape.quota).min(GRANT);
            self.spare -= more;
            self.is_probed = false;
            peer.granted += more;
            peer.here.matched = peer.here.matched.wrapping_add(more);
            self.return_credits(wire, from);
        }
        self.urge_offers(from);
        let peer = &mut self.tables.peers[from];
        if peer.unoffered > 0 && self.design == MatchingDesign::Mirror {
            peer.revisit = true;
            self.schedule_pump(from);
        }
    }

    /// Counts a message of a peer that has met its receive. If the message came
    /// before its receive, it gives up a place that may be granted again; a
    /// message that met its receive at once may have passed the quota, and gives
    /// up none.
    #[inline(always)]
    pub(super) fn count_matched(&mut self, from: usize, was_unexpected: bool) {
        let peer = &mut self.tables.peers[from];
        if peer.granted > 0 && was_unexpected {
            peer.granted -= 1;
            self.spare += 1;
        } else {
            peer.here.matched = peer.here.matched.wrapping_add(1);
        }
    }

    /// Returns whether credits are owed to the sender.
    pub(super) fn owes<W: LaneTransport>(&self, wire: &mut W, from: usize) -> bool {
        let peer = &self.tables.peers[from];
        let is_owed = peer.here != peer.told || wire.untold(PeerIndex(from as u32)) > 0;
        mutate!("msg_answered_with_nothing": is_owed => true)
    }

    /// Returns credits to the sender. Never called with none: so a request for
    /// more stays open until there is more.
    pub(super) fn return_credits<W: LaneTransport>(&mut self, wire: &mut W, from: usize) {
        let peer = &mut self.tables.peers[from];
        peer.told = peer.here;
        if wire.give_back(PeerIndex(from as u32), peer.here) {
            wire.ring(PeerIndex(from as u32));
        }
    }

    /// Takes a run of messages that are in their packets, as long as each is for
    /// the first receive of its source, which only this rank knows. Returns how
    /// many it took, `most` at most. This is the common case.
    pub(super) fn take_run<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        from: usize,
        most: u32,
    ) -> u32 {
        let peer = PeerIndex(from as u32);
        let requests = &mut *self.tables.requests;
        let record = &mut self.tables.peers[from];
        let mut next = record.posted.first();
        if record.held > 0 || !self.any_posted.is_empty() || !self.boards.is_empty() {
            next = None;
        }
        let mut taken = 0;
        while taken < most
            && let Some(post) = next
            && let Some(packet) = wire.peek(peer)
        {
            let entry = &mut requests[post];
            let label = Label { context: packet.context, tag: packet.tag };
            let is_it = packet.kind == PacketKind::Inline && entry.takes(label);
            if !is_it || entry.offered != OfferState::No {
                break;
            }
            let len = packet.inline_len();
            wire.deliver(peer, entry.at, len.min(entry.len));
            wire.pop(peer);
            entry.source = peer.0;
            entry.found_tag = label.tag;
            entry.size = len;
            entry.state = RequestState::Ended;
            entry.listed = entry.watched;
            let is_watched = entry.watched;
            next = IndexList::<0>::after(requests, post);
            if is_watched {
                self.ended.push(requests, post);
            }
            taken += 1;
        }
        if taken > 0 {
            record.posted.cut(requests, next);
            record.unoffered -= taken;
            record.here.taken = record.here.taken.wrapping_add(taken);
            record.here.matched = record.here.matched.wrapping_add(taken);
            self.under_way -= taken;
        }
        taken
    }

    #[inline(always)]
    fn take_packet<W: LaneTransport>(&mut self, wire: &mut W, from: usize, packet: &Packet) {
        let peer = PeerIndex(from as u32);
        if packet.has(Packet::OFFER) {
            let offer = wire.offer(peer);
            self.offered(from, offer);
        }
        if packet.kind.is_message() {
            let record = &mut self.tables.peers[from];
            record.here.taken = record.here.taken.wrapping_add(1);
            if self.has_board() {
                return self.take_locked(wire, from, packet);
            }
            if packet.kind == PacketKind::Inline {
                return self.take_inline(wire, from, packet);
            }
        }
        self.take_other(wire, from, packet);
    }

    /// Counts a message on the board and lets it meet its receive in one hold of
    /// the lock.
    fn take_locked<W: LaneTransport>(&mut self, wire: &mut W, from: usize, packet: &Packet) {
        self.lock_board();
        self.expect_next(from);
        mutate!("msg_expected_early": {} => {
            self.unlock_board();
            self.lock_board();
        });
        match packet.kind {
            PacketKind::Inline => self.take_inline(wire, from, packet),
            _ => self.take_other(wire, from, packet),
        }
        self.unlock_board();
    }

    #[inline(always)]
    fn take_inline<W: LaneTransport>(&mut self, wire: &mut W, from: usize, packet: &Packet) {
        let label = Label { context: packet.context, tag: packet.tag };
        let len = packet.inline_len();
        if let Some(post) = self.find_post(from, label) {
            let entry = &self.tables.requests[post];
            wire.deliver(PeerIndex(from as u32), entry.at, len.min(entry.len));
            self.meet(post, from, packet.tag, len);
            self.end(post, None);
        } else if let Some(index) = self.unexpected(from, packet, len) {
            wire.keep(PeerIndex(from as u32), &mut self.tables.unexpected[index].bytes);
        }
    }

    fn take_other<W: LaneTransport>(&mut self, wire: &mut W, from: usize, packet: &Packet) {
        match packet.kind {
            PacketKind::Eager => self.take_eager(wire, from, packet),
            PacketKind::Direct => self.take_direct(wire, from, packet),
            PacketKind::Rts => self.take_rts(wire, from, packet),
            PacketKind::Copied => self.take_copied(wire, from, packet),
            PacketKind::Fin => self.take_fin(from, packet),
            PacketKind::Cts => self.take_cts(wire, from, packet),
            PacketKind::Data => self.take_data(wire, from, packet),
            PacketKind::Cancel => self.cancelled(wire, from, packet.id),
            PacketKind::CancelAck => self.cancel_answered(from, packet.id),
            PacketKind::Part => self.take_part(wire, from, packet),
            PacketKind::Post | PacketKind::Inline => {}
        }
    }

    fn take_eager<W: LaneTransport>(&mut self, wire: &mut W, from: usize, packet: &Packet) {
        let slots = packet.b as u32 & self.shape.slot_mask();
        let len = packet.a.min(u64::from(slots.count_ones()) * u64::from(self.shape.slot_bytes));
        let label = Label { context: packet.context, tag: packet.tag };
        if let Some(post) = self.find_post(from, label) {
            let entry = &self.tables.requests[post];
            wire.read_slots(PeerIndex(from as u32), slots, entry.at, len.min(entry.len));
            self.tables.peers[from].here.slots ^= slots;
            self.meet(post, from, packet.tag, len);
            self.end(post, None);
            return;
        }
        let named = Packet { b: slots.into(), ..*packet };
        let is_kept = self.unexpected(from, &named, len).is_some();
        mutate!("msg_slot_early": {} => if is_kept {
            self.tables.peers[from].here.slots ^= slots;
        });
    }

    fn take_direct<W: LaneTransport>(&mut self, wire: &mut W, from: usize, packet: &Packet) {
        let Some(post) = self.named(packet.id, from, RequestState::Posted) else {
            self.counts.dropped += 1;
            return;
        };
        self.meet(post, from, packet.tag, packet.a);
        if packet.has(Packet::DONE) {
            self.end(post, None);
        } else if packet.has(Packet::SPLIT) {
            self.take_split(wire, from, post);
        } else {
            self.tables.requests[post].state = RequestState::Coming;
            self.has_come(wire, from, (post, packet.b));
        }
    }

    fn take_rts<W: LaneTransport>(&mut self, wire: &mut W, from: usize, packet: &Packet) {
        let label = Label { context: packet.context, tag: packet.tag };
        if let Some(post) = self.find_post(from, label) {
            self.meet(post, from, packet.tag, packet.a);
            let entry = &mut self.tables.requests[post];
            entry.remote = packet.id;
            let flags = [Packet::IN_REACH, Packet::BY_KERNEL].map(|flag| packet.has(flag));
            self.find_bytes(post, packet.b, flags);
            self.fetch(wire, post);
        } else {
            self.unexpected(from, packet, packet.a);
        }
    }

    /// Notes that a message and a posted receive have met.
    #[inline(always)]
    pub(super) fn meet(&mut self, post: usize, from: usize, tag: u32, len: u64) {
        self.unpost(post);
        let entry = &mut self.tables.requests[post];
        entry.source = from as u32;
        entry.found_tag = tag;
        entry.size = len;
        self.count_matched(from, false);
    }

    fn unexpected(&mut self, from: usize, packet: &Packet, len: u64) -> Option<usize> {
        let index = self.new_unexpected(UnexpectedMessage {
            source: from as u32,
            tag: packet.tag,
            context: packet.context,
            kind: packet.kind,
            in_reach: packet.has(Packet::IN_REACH),
            by_kernel: packet.has(Packet::BY_KERNEL),
            id: packet.id,
            len,
            b: packet.b,
            ..UnexpectedMessage::EMPTY
        });
        if index.is_none() {
            self.counts.dropped += 1;
        }
        index
    }

    /// Moves a lane to the front of the lanes that are looked at first.
    fn remember(&mut self, from: u32) {
        let at = self.recent.iter().position(|lane| *lane == from);
        let end = at.unwrap_or(self.recent.len() - 1);
        self.recent.copy_within(..end, 1);
        self.recent[0] = from;
    }
}

/// How many messages beyond its quota a peer is granted at once.
const GRANT: u32 = 16;
