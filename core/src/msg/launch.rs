//! Sending a message: the choice of its path, and its packet.

use super::count::MessagePath;
use super::machine::MessageMachine;
use super::mirror::ClaimedOffer;
use super::outcome::{Label, MessageBytes};
use super::outgoing::{Launched, OutgoingMessage};
use super::packet::{Packet, PacketKind, PacketLoad};
use super::shape::MatchingDesign;
use super::tables::RequestState;
use super::wire::{Copy, LaneTransport};
use crate::mem::PeerIndex;
use crate::mutate;

impl MessageMachine<'_> {
    /// Sends a message if there is room.
    pub(super) fn launch<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        out: &OutgoingMessage,
    ) -> Launched {
        let OutgoingMessage { to, label, bytes, synchronous, entry } = *out;
        let peer = &self.tables.peers[to.0 as usize];
        let is_short = !synchronous && bytes.len <= u64::from(peer.thresholds.inline_max);
        let unmatched = peer.sent.wrapping_sub(peer.matched_there);
        let mut is_full = mutate!("msg_quota_ignored": unmatched >= self.shape.quota => false);
        // Other messages wait: this one may pass them if they do not match its
        // receive.
        let passes = match entry {
            Some(index) => {
                mutate!("msg_quota_raced": peer.waiting.first() != Some(index) => false)
            }
            None => false,
        };
        if is_full || peer.sent.wrapping_sub(peer.log_low) >= self.shape.log_len() {
            match self.look_back(wire, to) {
                Some(full) => is_full = full,
                None => return Launched::NoLog,
            }
        }
        let lines = if is_short { Packet::lines_of(bytes.len) } else { 1 };
        if !self.has_lines(wire, to, lines + self.shape.reserve()) {
            return Launched::NoLines;
        }
        if !is_short && entry.is_none() && self.free.is_empty() {
            return Launched::NoRequest;
        }
        if self.has_board()
            && let Some(launched) = self.launch_claimed(wire, out)
        {
            self.waits_no_more(out);
            self.log(to, label, false);
            return launched;
        }
        let claim = self.claim(to, label);
        if (is_full || passes) && claim.is_none() {
            self.starve(wire, to);
            return Launched::NoQuota;
        }
        self.waits_no_more(out);
        let launched = if is_short {
            self.push_inline(wire, to, label, bytes);
            Launched::Done
        } else {
            self.launch_long(wire, out, claim)
        };
        self.log(to, label, claim.is_none());
        launched
    }

    fn waits_no_more(&mut self, out: &OutgoingMessage) {
        if let Some(index) = out.entry {
            self.tables.peers[out.to.0 as usize].waiting.remove(self.tables.requests, index);
        }
    }

    fn launch_long<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        out: &OutgoingMessage,
        claim: Option<ClaimedOffer>,
    ) -> Launched {
        let OutgoingMessage { to, bytes, synchronous, .. } = *out;
        let thresholds = self.tables.peers[to.0 as usize].thresholds;
        if let Some(ClaimedOffer { id, at: Some(at), room }) = claim {
            if self.splits(wire, to, &bytes, (id, room)) {
                self.counts.sent(MessagePath::Direct, bytes.len);
                return self.launch_split(wire, out, (id, at, room));
            }
            if let Some(streaming) = self.streams(to, &bytes) {
                return self.launch_direct(wire, out, (id, at, room), streaming);
            }
            if bytes.len >= u64::from(thresholds.pull_from) && bytes.in_reach {
                return self.launch_told(wire, out);
            }
        }
        let eager = mutate!("msg_synchronous_eager": !synchronous => true);
        if eager
            && bytes.len <= u64::from(thresholds.eager_max)
            && let Some(slots) = self.take_slots(wire, to, bytes.len, self.shape.slots_reserved())
        {
            wire.write_slots(to, slots, bytes.at, bytes.len);
            let mut packet = out.packet(PacketKind::Eager);
            packet.b = u64::from(slots);
            self.push_message(wire, out, packet);
            self.counts.sent(MessagePath::Eager, bytes.len);
            return Launched::Done;
        }
        self.launch_told(wire, out)
    }

    /// Returns whether bytes that go straight into a known buffer go past the
    /// cache (non-temporal stores). `None`: they do not go straight.
    #[inline]
    pub(super) fn streams(&self, to: PeerIndex, bytes: &MessageBytes) -> Option<bool> {
        let thresholds = &self.tables.peers[to.0 as usize].thresholds;
        if bytes.len <= u64::from(thresholds.inline_max) {
            return None;
        }
        if bytes.len >= u64::from(thresholds.nt_from) {
            return Some(true);
        }
        let is_fetched = bytes.len >= u64::from(thresholds.pull_from) && bytes.in_reach;
        let direct = u64::from(thresholds.direct_from)..=u64::from(thresholds.direct_max);
        (!is_fetched && direct.contains(&bytes.len)).then_some(false)
    }

    /// Copies straight into the buffer of a receive. For a short message the
    /// packet reports that the bytes are there, or that the first half is, and a
    /// second packet reports the rest. For a long message the packet keeps the
    /// message's place in the lane during the copy, so that no later message has
    /// to wait.
    fn launch_direct<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        out: &OutgoingMessage,
        (id, at, room): (u32, u64, u64),
        streaming: bool,
    ) -> Launched {
        let OutgoingMessage { to: peer, bytes, .. } = *out;
        let len = bytes.len.min(room);
        let is_short = len <= COPY_BYTES_MAX;
        let half = self.tables.peers[peer.0 as usize].thresholds.half_of(len);
        let both = 2 + self.shape.reserve();
        let is_halved = is_short && half < len && wire.has_room(peer, both);
        let whole = Copy { peer, from: bytes.at, to: at, len, streaming, by_kernel: false };
        let mut packet = out.packet(PacketKind::Direct);
        packet.id = id;
        if is_halved {
            wire.copy(&Copy { len: half, ..whole });
            packet.b = half;
        } else if is_short {
            wire.copy(&whole);
        }
        if mutate!("msg_done_early": is_short && !is_halved => true) {
            packet.count = Packet::DONE;
        }
        if mutate!("msg_direct_late": true => is_short) {
            self.push_message(wire, out, packet);
        }
        self.counts.sent(MessagePath::Direct, bytes.len);
        if is_halved {
            let (from, to) = (whole.from + half, whole.to + half);
            let rest = Copy { from, to, len: len - half, ..whole };
            mutate!("msg_half_is_all": wire.copy(&rest) => ());
            let packet = Packet { id, ..Packet::new(PacketKind::Copied) };
            mutate!("msg_half_untold": wire.push(peer, &packet, PacketLoad::Empty) => ());
        }
        if is_short {
            return Launched::Done;
        }
        let index = self.request_of(out, RequestState::Pushing);
        let request = &mut self.tables.requests[index];
        request.remote = id;
        request.peer_at = Some(at);
        request.size = len;
        self.jobs.push(self.tables.requests, index);
        Launched::Running(index)
    }

    /// Announces the message: sends the receiver the place of the bytes
    /// (rendezvous).
    fn launch_told<W: LaneTransport>(&mut self, wire: &mut W, out: &OutgoingMessage) -> Launched {
        let OutgoingMessage { to, bytes, .. } = *out;
        let kernel_from = self.tables.peers[to.0 as usize].thresholds.kernel_from;
        let index = self.request_of(out, RequestState::Told);
        let mut packet = out.packet(PacketKind::Rts);
        packet.id = self.id(index);
        packet.b = bytes.at;
        packet.count = match bytes.in_reach {
            true => Packet::IN_REACH,
            false if bytes.len >= u64::from(kernel_from) => Packet::BY_KERNEL,
            false => 0,
        };
        self.push_message(wire, out, packet);
        self.counts.sent(MessagePath::Rendezvous, bytes.len);
        Launched::Running(index)
    }

    /// Pushes the packet of a message without inline bytes, together with the
    /// next offer.
    #[inline]
    fn push_message<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        out: &OutgoingMessage,
        mut packet: Packet,
    ) {
        let offer = self.take_offer(out.to);
        if matches!(offer, PacketLoad::Offer(_)) {
            packet.count |= Packet::OFFER;
        }
        wire.push(out.to, &packet, offer);
    }

    /// Numbers the message and logs it. The log decides whether a receive that
    /// the peer offers later was for this message.
    #[inline(always)]
    pub(super) fn log(&mut self, to: PeerIndex, label: Label, is_open: bool) {
        let peer = &mut self.tables.peers[to.0 as usize];
        let number = peer.sent;
        peer.sent = number.wrapping_add(1);
        if self.design == MatchingDesign::Mirror {
            let len = self.shape.log_len();
            let at = to.0 as usize * len as usize + (number & (len - 1)) as usize;
            let logged = &mut self.tables.log[at];
            logged.tag = label.tag;
            logged.context = label.context;
            logged.open = is_open;
        } else {
            peer.log_low = peer.sent;
        }
    }

    /// Returns the request of a message that goes on; a free one must be there.
    pub(super) fn request_of(&mut self, out: &OutgoingMessage, state: RequestState) -> usize {
        let index = out
            .entry
            .unwrap_or_else(|| self.new_entry(out.request(state)).expect("a request is free"));
        self.tables.requests[index].state = state;
        index
    }
}

/// Longest copy that is made inside a call.
pub const COPY_BYTES_MAX: u64 = 8 << 10;
