//! Long messages that both sides copy, on machines where two cores move more bytes
//! than one.
//!
//! ```text
//!   sender                         receiver
//!   Pushing ──Direct, address──►   Helping        (the receive was offered)
//!   Told ──Rts──►                  Coming
//!   Pushing ◄──Cts────────────────  │ when the Cts is in the lane: Helping
//!     │ copies from the back         │ copies from the front
//!     ├──Copied──►                   ├ waits for it, if the sender copied any
//!   Told ◄──Fin─────────────────────┘ if the receiver copied any
//!   Ended                          Ended
//! ```
//!
//! Each side claims the parts that it copies on the [`Split`] of the lane,
//! outside the machine. A side that comes late finds that the other side has
//! copied all. Only one message at a time of each lane is split: while another
//! message has the word, one side copies alone.

mod word;

pub use word::{Claimed, Split, SplitSide};

use super::machine::MessageMachine;
use super::outcome::{MessageBytes, RequestError, RequestId};
use super::outgoing::{Launched, OutgoingMessage};
use super::packet::{Offer, Packet, PacketKind, PacketLoad};
use super::tables::{DuePacket, RequestEntry, RequestState, SplitProgress};
use super::wire::LaneTransport;
use crate::mem::PeerIndex;
use crate::mutate;

impl MessageMachine<'_> {
    /// Takes the end of a split [`CopyJob`](super::CopyJob): this side has copied its
    /// parts, and all other parts are claimed. `claimed`: whether this side, and
    /// the other side, has claimed any part.
    pub fn split_done<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        job: RequestId,
        claimed: [bool; 2],
    ) {
        let Some(entry) = self.tables.requests.get(job.index as usize) else { return };
        if entry.generation != job.generation {
            return;
        }
        match entry.state {
            RequestState::Pushing => self.sender_done(wire, job.index as usize, claimed),
            RequestState::Helping => self.receiver_done(wire, job.index as usize, claimed),
            _ => {}
        }
    }

    fn sender_done<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        index: usize,
        [own, other]: [bool; 2],
    ) {
        let entry = &mut self.tables.requests[index];
        let to = PeerIndex(entry.peer);
        if entry.both == SplitProgress::Heard {
            self.end(index, None);
        } else if self.tables.peers[to.0 as usize].lost {
            self.end(index, Some(RequestError::PeerLost { peer: to }));
        } else {
            let reads_on = mutate!("msg_split_sender_ends": other => false);
            entry.both = if reads_on { SplitProgress::Owed } else { SplitProgress::No };
            if own {
                self.close(wire, index, DuePacket::Copied);
            } else {
                entry.state = RequestState::Told;
            }
        }
    }

    fn receiver_done<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        index: usize,
        [own, other]: [bool; 2],
    ) {
        let entry = &mut self.tables.requests[index];
        let is_here = mutate!("msg_split_receiver_ends":
            !other || entry.both == SplitProgress::Heard => true);
        let source = PeerIndex(entry.source);
        if is_here && own {
            self.close(wire, index, DuePacket::Fin);
        } else if is_here {
            self.end(index, None);
        } else if self.tables.peers[source.0 as usize].lost {
            self.end(index, Some(RequestError::PeerLost { peer: source }));
        } else {
            entry.both = if own { SplitProgress::Owed } else { SplitProgress::No };
            entry.state = RequestState::Coming;
        }
    }

    /// Returns whether a message for a known receive is split from now on.
    pub(super) fn splits<W: LaneTransport>(
        &self,
        wire: &mut W,
        to: PeerIndex,
        bytes: &MessageBytes,
        (id, room): (u32, u64),
    ) -> bool {
        let both_from = self.tables.peers[to.0 as usize].thresholds.both_from;
        let fitting = bytes.len.min(room);
        let is_it = bytes.in_reach && fitting > 0 && fitting >= u64::from(both_from);
        is_it && wire.split_to(to, id)
    }

    /// Sends a split message. Its packet contains the place of the bytes where
    /// others contain an offer.
    pub(super) fn launch_split<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        out: &OutgoingMessage,
        (id, at, room): (u32, u64, u64),
    ) -> Launched {
        let bytes = out.bytes;
        let index = self.request_of(out, RequestState::Pushing);
        let source = Offer {
            id: self.id(index),
            taken: 0,
            context: out.label.context,
            tag: None,
            at: Some(bytes.at),
            room: bytes.len,
        };
        let packet = Packet { count: Packet::SPLIT, id, ..out.packet(PacketKind::Direct) };
        wire.push(out.to, &packet, PacketLoad::Offer(source));
        let request = &mut self.tables.requests[index];
        request.remote = id;
        request.peer_at = Some(at);
        request.size = bytes.len.min(room);
        self.send_part(index);
        Launched::Running(index)
    }

    /// Begins the sender's side of a split copy.
    pub(super) fn send_part(&mut self, index: usize) {
        let entry = &mut self.tables.requests[index];
        entry.state = RequestState::Pushing;
        entry.both = SplitProgress::Copying;
        self.jobs.push(self.tables.requests, index);
    }

    /// Begins the receiver's side of a split copy.
    pub(super) fn fetch_part(&mut self, index: usize) {
        self.tables.requests[index].state = RequestState::Helping;
        self.jobs.push(self.tables.requests, index);
    }

    /// Takes a split message for an offered receive; the packet contains the
    /// address of the bytes.
    pub(super) fn take_split<W: LaneTransport>(&mut self, wire: &mut W, from: usize, post: usize) {
        let source = wire.offer(PeerIndex(from as u32));
        let entry = &mut self.tables.requests[post];
        entry.remote = source.id;
        entry.peer_at = source.at;
        entry.both = SplitProgress::Copying;
        self.fetch_part(post);
    }

    /// Returns whether a message that lies with its sender is split from now on.
    pub(super) fn splits_found<W: LaneTransport>(&self, wire: &mut W, index: usize) -> bool {
        let entry = &self.tables.requests[index];
        let peer = &self.tables.peers[entry.source as usize];
        let is_near = entry.in_reach && entry.peer_at.is_some() && !peer.remote;
        let is_it = is_near && entry.fitting() >= u64::from(peer.thresholds.both_from);
        is_it && wire.split_from(PeerIndex(entry.source), self.id(index))
    }

    /// Takes the report that the other side's part is copied, while this side
    /// copies.
    pub(super) fn peer_copied(&mut self, id: u32, from: usize, state: RequestState) -> bool {
        let Some(index) = self.named(id, from, state) else { return false };
        let entry: &mut RequestEntry = &mut self.tables.requests[index];
        let is_it = entry.both == SplitProgress::Copying;
        if is_it {
            entry.both = SplitProgress::Heard;
        }
        is_it
    }
}
