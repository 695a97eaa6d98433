//! Copies as jobs, and the parts of a copy that the sender reports.

use crate::mem::PeerIndex;
use crate::msg::launch::COPY_BYTES_MAX;
use crate::msg::machine::MessageMachine;
use crate::msg::outcome::{CopyJob, RequestError, RequestId};
use crate::msg::packet::{Packet, PacketKind, PacketLoad};
use crate::msg::split::SplitSide;
use crate::msg::tables::{DuePacket, RequestEntry, RequestState, SplitProgress};
use crate::msg::wire::{Copy, LaneTransport};
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
    pub(in crate::msg) fn job(&mut self, index: usize) -> CopyJob {
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

    pub(in crate::msg) fn take_part<W: LaneTransport>(
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
    pub(in crate::msg) fn has_come<W: LaneTransport>(
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

    pub(super) fn copy_or_queue<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        index: usize,
        due: DuePacket,
    ) {
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
}
