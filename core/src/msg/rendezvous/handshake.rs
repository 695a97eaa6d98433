//! How the bytes of an announced message are moved: by the receiver, by the sender, or
//! through slots.

use crate::mem::PeerIndex;
use crate::msg::machine::MessageMachine;
use crate::msg::outcome::RequestError;
use crate::msg::packet::Packet;
use crate::msg::tables::{DuePacket, OfferState, RequestState, SplitProgress};
use crate::msg::wire::LaneTransport;
use crate::mutate;

impl MessageMachine<'_> {
    /// Stores the address of an announced message: if it is in reach, or at least
    /// if the kernel reaches it. The sender copies bytes itself into a buffer
    /// that it reaches.
    pub(in crate::msg) fn find_bytes(
        &mut self,
        index: usize,
        at: u64,
        [in_reach, by_kernel]: [bool; 2],
    ) {
        let entry = &mut self.tables.requests[index];
        let peer = &self.tables.peers[entry.source as usize];
        let is_long = entry.fitting() >= peer.thresholds.kernel_from.into();
        entry.by_kernel = by_kernel && is_long && !entry.in_reach && !in_reach && !peer.remote;
        entry.peer_at = (in_reach || entry.by_kernel).then_some(at);
    }

    /// Begins to move the bytes of a message that lies with its sender and has
    /// met its receive.
    pub(in crate::msg) fn fetch<W: LaneTransport>(&mut self, wire: &mut W, index: usize) {
        let source = self.tables.requests[index].source as usize;
        self.tables.requests[index].state = RequestState::Fetching;
        if self.tables.peers[source].lost {
            let rank = PeerIndex(source as u32);
            return self.end(index, Some(RequestError::PeerLost { peer: rank }));
        }
        let entry = &self.tables.requests[index];
        let peer = &self.tables.peers[source];
        let ask_from = if peer.remote { u32::MAX } else { peer.thresholds.ask_from };
        if entry.fitting() == 0 {
            self.close(wire, index, DuePacket::Fin);
        } else if self.splits_found(wire, index) {
            self.tables.requests[index].both = SplitProgress::Copying;
            self.ask_for(wire, index, source);
        } else if entry.peer_at.is_none() || entry.in_reach && entry.fitting() >= ask_from.into() {
            self.ask_for(wire, index, source);
        } else {
            self.copy_or_queue(wire, index, DuePacket::Fin);
        }
    }

    /// Requests the bytes from the sender.
    pub(super) fn ask_for<W: LaneTransport>(&mut self, wire: &mut W, index: usize, source: usize) {
        if self.tables.peers[source].lost {
            let rank = PeerIndex(source as u32);
            return self.end(index, Some(RequestError::PeerLost { peer: rank }));
        }
        self.tables.requests[index].state = RequestState::Coming;
        self.queue_packet(index, source, DuePacket::Cts);
        self.push_dues(wire, source);
    }

    pub(in crate::msg) fn take_cts<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        from: usize,
        packet: &Packet,
    ) {
        let Some(index) = self.named(packet.id, from, RequestState::Told) else {
            self.counts.dropped += 1;
            return;
        };
        let entry = &mut self.tables.requests[index];
        entry.remote = packet.tag;
        entry.size = packet.a.min(entry.len);
        if packet.has(Packet::IN_REACH) {
            entry.peer_at = Some(packet.b);
            if packet.has(Packet::SPLIT) {
                return self.send_part(index);
            }
            entry.state = RequestState::Pushing;
            entry.offered = OfferState::Yes;
            self.copy_or_queue(wire, index, DuePacket::Copied);
        } else {
            entry.state = RequestState::Streaming;
            self.counts.through_slots += 1;
            self.queue_packet(index, from, DuePacket::Data);
        }
    }

    pub(in crate::msg) fn take_data<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        from: usize,
        packet: &Packet,
    ) {
        let slots = (packet.b >> 32) as u32 & self.shape.slot_mask();
        let max = u64::from(slots.count_ones()) * u64::from(self.shape.slot_bytes);
        let len = (packet.b & u64::from(u32::MAX)).min(max);
        self.tables.peers[from].here.slots ^= slots;
        let Some(index) = self.named(packet.id, from, RequestState::Coming) else {
            self.counts.dropped += 1;
            return;
        };
        let entry = &mut self.tables.requests[index];
        if packet.a != entry.moved || len > entry.fitting() - entry.moved {
            self.counts.dropped += 1;
            return;
        }
        wire.read_slots(PeerIndex(from as u32), slots, entry.at + packet.a, len);
        entry.moved += len;
        if entry.moved == entry.fitting() {
            self.end(index, None);
        }
    }

    pub(in crate::msg) fn take_copied<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        from: usize,
        packet: &Packet,
    ) {
        let Some(index) = self.named(packet.id, from, RequestState::Coming) else {
            if !self.peer_copied(packet.id, from, RequestState::Helping) {
                self.counts.dropped += 1;
            }
            return;
        };
        let is_owed = self.tables.requests[index].both == SplitProgress::Owed;
        if mutate!("msg_split_end_untold": is_owed => false) {
            return self.close(wire, index, DuePacket::Fin);
        }
        self.end(index, failure(packet, from));
    }

    pub(in crate::msg) fn take_fin(&mut self, from: usize, packet: &Packet) {
        let Some(index) = self.named(packet.id, from, RequestState::Told) else {
            if !self.peer_copied(packet.id, from, RequestState::Pushing) {
                self.counts.dropped += 1;
            }
            return;
        };
        self.end(index, failure(packet, from));
    }
}

fn failure(packet: &Packet, from: usize) -> Option<RequestError> {
    packet.has(Packet::FAILED).then_some(RequestError::Failed { peer: PeerIndex(from as u32) })
}
