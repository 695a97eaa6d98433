//! Rendezvous: bytes that move after their message was announced.
//!
//! ```text
//!   sender                        receiver
//!   Told    ──Rts, address──►     Fetching: copies         ──Fin──►  Ended
//!   Told    ──Rts, place──►       Fetching: from another node, or by the
//!     │                             │       kernel          ──Fin──►  Ended
//!     │                             │ it failed
//!     └──────◄──Cts────────────── Coming
//!   Told    ──Rts──►              Coming ◄─ buffer in reach, and the bytes are
//!                                           not, or the sender should push them
//!   Pushing: copies   ◄──Cts, address──
//!           ──Copied──►           Ended
//!   Told    ──Rts──►              Coming ◄─ no buffer in reach
//!   Streaming ◄──Cts──
//!           ──Data, Data, ..──►   Ended
//!   Pushing ──Direct──►           Coming     (the receive was offered)
//!           ──Copied──►           Ended
//! ```
//!
//! Copies of some length are jobs, done outside the machine. So are all bytes
//! that are fetched from another node, or by the kernel from one buffer out of
//! reach to another: if that fails, the bytes come through slots. The copy by a
//! sender is one job for each part: the sender reports a finished part (`Part`),
//! and the receiver fetches it into its cache while the next part is copied.

use super::launch::COPY_BYTES_MAX;
use super::list::IndexList;
use super::machine::MessageMachine;
use super::outcome::{CopyJob, RequestError, RequestId};
use super::packet::{Packet, PacketKind, PacketLoad};
use super::split::SplitSide;
use super::tables::{DuePacket, OfferState, RequestEntry, RequestState, SplitProgress};
use super::wire::{Copy, LaneTransport};
use crate::mem::PeerIndex;
use crate::mutate;

impl MessageMachine<'_> {
    /// Takes the end of a [`CopyJob`]: the bytes have been copied, or could not be.
    pub fn job_done<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        job: RequestId,
        result: Result<(), RequestError>,
    ) {
        let index = job.index as usize;
        let Some(entry) = self.tables.requests.get_mut(index) else { return };
        let is_fetched = entry.state == RequestState::Fetching;
        let is_claimed = entry.state == RequestState::Claiming;
        let is_job = is_fetched || is_claimed || entry.state == RequestState::Pushing;
        if entry.generation != job.generation || !is_job {
            return;
        }
        let source = entry.source as usize;
        let can_ask = is_fetched
            && matches!(result, Err(RequestError::Failed { .. }))
            && (self.tables.peers[source].remote || entry.by_kernel);
        if mutate!("msg_fetch_given_up": can_ask => false) {
            entry.by_kernel = false;
            return self.ask_for(wire, index, source);
        }
        entry.error = result.err();
        self.counts.by_kernel += u64::from(entry.by_kernel && entry.error.is_none());
        if is_claimed {
            return self.claim_done(wire, index);
        }
        if !is_fetched && entry.error.is_none() && entry.moved < entry.fitting() {
            let is_over = mutate!("msg_part_is_all": !self.part_done(wire, index) => true);
            if !is_over {
                return;
            }
        }
        self.close(wire, index, if is_fetched { DuePacket::Fin } else { DuePacket::Copied });
    }

    /// Returns the job for all bytes of a request.
    fn whole(&self, index: usize) -> CopyJob {
        let entry = &self.tables.requests[index];
        let peer_at = entry.peer_at.expect("a copy has both addresses");
        let is_fetched = matches!(entry.state, RequestState::Fetching | RequestState::Helping);
        let peer = PeerIndex(if is_fetched { entry.source } else { entry.peer });
        let (from, to) = if is_fetched { (peer_at, entry.at) } else { (entry.at, peer_at) };
        let nt_from = self.tables.peers[peer.0 as usize].thresholds.nt_from;
        let len = entry.fitting();
        let split = match (entry.both, entry.state) {
            (SplitProgress::No, _) => None,
            (_, RequestState::Helping) => Some((self.id(index), SplitSide::Receiver)),
            _ => Some((entry.remote, SplitSide::Sender)),
        };
        let streaming = !is_fetched && split.is_none() && len >= u64::from(nt_from);
        let copy = Copy { peer, from, to, len, streaming, by_kernel: entry.by_kernel };
        CopyJob { request: self.request(index), copy, split }
    }

    /// Returns the job for the bytes that are copied next.
    pub(super) fn job(&mut self, index: usize) -> CopyJob {
        let mut job = self.whole(index);
        let entry = &mut self.tables.requests[index];
        if entry.state == RequestState::Pushing && job.split.is_none() {
            let thresholds = &self.tables.peers[job.copy.peer.0 as usize].thresholds;
            let part = thresholds.part_of(entry.fitting(), job.copy.streaming);
            job.copy.from += entry.moved;
            job.copy.to += entry.moved;
            job.copy.len -= entry.moved;
            // Avoids a last part that is too short.
            if job.copy.len / 2 >= part {
                job.copy.len = part;
            }
            entry.moved += job.copy.len;
        }
        job
    }

    /// Reports a finished part of a push to the receiver, and queues the next
    /// part. Returns whether there is a next one.
    fn part_done<W: LaneTransport>(&mut self, wire: &mut W, index: usize) -> bool {
        let RequestEntry { peer, remote, moved, .. } = self.tables.requests[index];
        if self.tables.peers[peer as usize].lost {
            return false;
        }
        let to = PeerIndex(peer);
        if wire.has_room(to, 1 + self.shape.reserve()) {
            let packet = Packet { id: remote, a: moved, ..Packet::new(PacketKind::Part) };
            wire.push(to, &packet, PacketLoad::Empty);
        }
        self.jobs.push(self.tables.requests, index);
        true
    }

    pub(super) fn take_part<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        from: usize,
        packet: &Packet,
    ) {
        if let Some(index) = self.named(packet.id, from, RequestState::Coming) {
            self.has_come(wire, from, (index, packet.a));
        }
    }

    /// Notes that `bytes` bytes of a message that a rank pushes are there.
    pub(super) fn has_come<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        from: usize,
        (index, bytes): (usize, u64),
    ) {
        let entry = &mut self.tables.requests[index];
        if self.tables.peers[from].remote || !(entry.moved..=entry.fitting()).contains(&bytes) {
            self.counts.dropped += 1;
            return;
        }
        wire.come(entry.at + entry.moved, bytes - entry.moved);
        entry.moved = bytes;
    }

    /// Stores the address of an announced message: if it is in reach, or at least
    /// if the kernel reaches it. The sender copies bytes itself into a buffer
    /// that it reaches.
    pub(super) fn find_bytes(&mut self, index: usize, at: u64, [in_reach, by_kernel]: [bool; 2]) {
        let entry = &mut self.tables.requests[index];
        let peer = &self.tables.peers[entry.source as usize];
        let is_long = entry.fitting() >= peer.thresholds.kernel_from.into();
        entry.by_kernel = by_kernel && is_long && !entry.in_reach && !in_reach && !peer.remote;
        entry.peer_at = (in_reach || entry.by_kernel).then_some(at);
    }

    /// Begins to move the bytes of a message that lies with its sender and has
    /// met its receive.
    pub(super) fn fetch<W: LaneTransport>(&mut self, wire: &mut W, index: usize) {
        let source = self.tables.requests[index].source as usize;
        self.tables.requests[index].state = RequestState::Fetching;
        if self.tables.peers[source].lost {
            let peer = PeerIndex(source as u32);
            return self.end(index, Some(RequestError::PeerLost { peer }));
        }
        let entry = &self.tables.requests[index];
        let record = &self.tables.peers[source];
        let ask_from = if record.remote { u32::MAX } else { record.thresholds.ask_from };
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
    fn ask_for<W: LaneTransport>(&mut self, wire: &mut W, index: usize, source: usize) {
        if self.tables.peers[source].lost {
            let peer = PeerIndex(source as u32);
            return self.end(index, Some(RequestError::PeerLost { peer }));
        }
        self.tables.requests[index].state = RequestState::Coming;
        self.queue_packet(index, source, DuePacket::Cts);
        self.push_dues(wire, source);
    }

    /// Pushes packets of requests that found no room before.
    pub(super) fn push_dues<W: LaneTransport>(&mut self, wire: &mut W, to: usize) -> bool {
        let mut has_moved = false;
        let peer = PeerIndex(to as u32);
        let mut at = self.tables.peers[to].dues.first();
        while let Some(index) = at
            && self.has_lines(wire, peer, 1)
        {
            at = IndexList::<1>::after(self.tables.requests, index);
            let entry = self.tables.requests[index];
            let failed = if entry.error.is_some() { Packet::FAILED } else { 0 };
            let named = |kind| Packet { count: failed, id: entry.remote, ..Packet::new(kind) };
            let packet = match entry.due {
                DuePacket::Copied => mutate!("msg_direct_late":
                    named(PacketKind::Copied)
                    => if entry.offered == OfferState::No {
                        Packet {
                            count: Packet::DONE,
                            context: entry.context,
                            tag: entry.tag,
                            a: entry.len,
                            ..named(PacketKind::Direct)
                        }
                    } else {
                        named(PacketKind::Copied)
                    }
                ),
                DuePacket::Fin => named(PacketKind::Fin),
                DuePacket::Cts => Packet {
                    count: match (entry.in_reach, entry.both) {
                        (true, SplitProgress::No) => Packet::IN_REACH,
                        (true, _) => Packet::IN_REACH | Packet::SPLIT,
                        (false, _) => 0,
                    },
                    tag: self.id(index),
                    a: entry.fitting(),
                    b: entry.at,
                    ..named(PacketKind::Cts)
                },
                DuePacket::Cancel if self.tables.peers[to].asked == self.shape.mirror => continue,
                DuePacket::Cancel => {
                    self.tables.peers[to].asked += 1;
                    Packet { id: self.id(index), ..Packet::new(PacketKind::Cancel) }
                }
                DuePacket::Data => {
                    has_moved |= self.stream(wire, index);
                    continue;
                }
                DuePacket::Nothing => unreachable!("request {index} has no packet to send"),
            };
            wire.push(peer, &packet, PacketLoad::Empty);
            has_moved = true;
            self.paid(index, to);
            match entry.due {
                // The receiver still reads the buffer.
                DuePacket::Copied if entry.both == SplitProgress::Owed => {
                    self.tables.requests[index].state = RequestState::Told;
                }
                DuePacket::Copied | DuePacket::Fin => self.end(index, entry.error),
                DuePacket::Cts if entry.both == SplitProgress::Copying => self.fetch_part(index),
                _ => {}
            }
        }
        has_moved
    }

    pub(super) fn take_copied<W: LaneTransport>(
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

    pub(super) fn take_fin(&mut self, from: usize, packet: &Packet) {
        let Some(index) = self.named(packet.id, from, RequestState::Told) else {
            if !self.peer_copied(packet.id, from, RequestState::Pushing) {
                self.counts.dropped += 1;
            }
            return;
        };
        self.end(index, failure(packet, from));
    }

    pub(super) fn take_cts<W: LaneTransport>(
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

    pub(super) fn take_data<W: LaneTransport>(
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

    /// Pushes the bytes for which there are free slots. Returns whether any
    /// moved.
    fn stream<W: LaneTransport>(&mut self, wire: &mut W, index: usize) -> bool {
        let mut has_moved = false;
        let to = self.tables.requests[index].peer as usize;
        let peer = PeerIndex(to as u32);
        loop {
            let entry = &self.tables.requests[index];
            let len = (entry.size - entry.moved).min(u64::from(self.shape.slot_bytes));
            if len == 0 {
                self.paid(index, to);
                self.end(index, None);
                return true;
            }
            if !self.has_lines(wire, peer, 1) {
                return has_moved;
            }
            let mut slots = self.take_slots(wire, peer, len, 0);
            if slots.is_none() {
                self.starve(wire, peer);
                slots = self.take_slots(wire, peer, len, 0);
            }
            let Some(slots) = slots else { return has_moved };
            let entry = &mut self.tables.requests[index];
            wire.write_slots(peer, slots, entry.at + entry.moved, len);
            let packet = Packet {
                id: entry.remote,
                a: entry.moved,
                b: len | u64::from(slots) << 32,
                ..Packet::new(PacketKind::Data)
            };
            entry.moved += len;
            wire.push(peer, &packet, PacketLoad::Empty);
            has_moved = true;
        }
    }

    fn copy_or_queue<W: LaneTransport>(&mut self, wire: &mut W, index: usize, due: DuePacket) {
        let entry = &self.tables.requests[index];
        // Only fetched bytes come from another node: a sender never gets the
        // address of a buffer there.
        let is_remote = due == DuePacket::Fin && self.tables.peers[entry.source as usize].remote;
        let may_fail = is_remote || entry.by_kernel;
        if entry.fitting() > COPY_BYTES_MAX || may_fail {
            self.jobs.push(self.tables.requests, index);
            mutate!("msg_fetch_ends_early": {} => if may_fail {
                self.close(wire, index, due);
            });
            return;
        }
        wire.copy(&self.whole(index).copy);
        self.close(wire, index, due);
    }

    /// Closes a request, for which only the last packet is left to send.
    pub(super) fn close<W: LaneTransport>(&mut self, wire: &mut W, index: usize, due: DuePacket) {
        let entry = &mut self.tables.requests[index];
        let to = if due == DuePacket::Fin { entry.source } else { entry.peer } as usize;
        if self.tables.peers[to].lost {
            let peer = PeerIndex(to as u32);
            let is_here = due == DuePacket::Fin && entry.error.is_none();
            let error = if is_here { None } else { Some(RequestError::PeerLost { peer }) };
            return self.end(index, error);
        }
        entry.state = RequestState::Closing;
        self.queue_packet(index, to, due);
        self.push_dues(wire, to);
    }

    /// Notes that the packet that was due is in the lane.
    fn paid(&mut self, index: usize, to: usize) {
        self.tables.requests[index].due = DuePacket::Nothing;
        self.tables.peers[to].dues.remove(self.tables.requests, index);
    }
}

fn failure(packet: &Packet, from: usize) -> Option<RequestError> {
    packet.has(Packet::FAILED).then_some(RequestError::Failed { peer: PeerIndex(from as u32) })
}
