//! The packets of a request that are due: they wait until the lane has room.

use crate::mem::PeerIndex;
use crate::msg::list::IndexList;
use crate::msg::machine::MessageMachine;
use crate::msg::outcome::RequestError;
use crate::msg::packet::{Packet, PacketKind, PacketLoad};
use crate::msg::tables::{DuePacket, OfferState, RequestState, SplitProgress};
use crate::msg::wire::LaneTransport;
use crate::mutate;

impl MessageMachine<'_> {
    /// Pushes packets of requests that found no room before.
    pub(in crate::msg) fn push_dues<W: LaneTransport>(&mut self, wire: &mut W, to: usize) -> bool {
        let mut has_moved = false;
        let rank = PeerIndex(to as u32);
        let mut at = self.tables.peers[to].dues.first();
        while let Some(index) = at
            && self.has_lines(wire, rank, 1)
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
            wire.push(rank, &packet, PacketLoad::Empty);
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

    /// Pushes the bytes for which there are free slots. Returns whether any
    /// moved.
    fn stream<W: LaneTransport>(&mut self, wire: &mut W, index: usize) -> bool {
        let mut has_moved = false;
        let to = self.tables.requests[index].peer as usize;
        let rank = PeerIndex(to as u32);
        loop {
            let entry = &self.tables.requests[index];
            let len = (entry.size - entry.moved).min(u64::from(self.shape.slot_bytes));
            if len == 0 {
                self.paid(index, to);
                self.end(index, None);
                return true;
            }
            if !self.has_lines(wire, rank, 1) {
                return has_moved;
            }
            let mut slots = self.take_slots(wire, rank, len, 0);
            if slots.is_none() {
                self.starve(wire, rank);
                slots = self.take_slots(wire, rank, len, 0);
            }
            let Some(slots) = slots else { return has_moved };
            let entry = &mut self.tables.requests[index];
            wire.write_slots(rank, slots, entry.at + entry.moved, len);
            let packet = Packet {
                id: entry.remote,
                a: entry.moved,
                b: len | u64::from(slots) << 32,
                ..Packet::new(PacketKind::Data)
            };
            entry.moved += len;
            wire.push(rank, &packet, PacketLoad::Empty);
            has_moved = true;
        }
    }

    /// Closes a request, for which only the last packet is left to send.
    pub(in crate::msg) fn close<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        index: usize,
        due: DuePacket,
    ) {
        let entry = &mut self.tables.requests[index];
        let peer = if due == DuePacket::Fin { entry.source } else { entry.peer } as usize;
        if self.tables.peers[peer].lost {
            let rank = PeerIndex(peer as u32);
            let is_here = due == DuePacket::Fin && entry.error.is_none();
            let error = if is_here { None } else { Some(RequestError::PeerLost { peer: rank }) };
            return self.end(index, error);
        }
        entry.state = RequestState::Closing;
        self.queue_packet(index, peer, due);
        self.push_dues(wire, peer);
    }

    /// Notes that the packet that was due is in the lane.
    fn paid(&mut self, index: usize, to: usize) {
        self.tables.requests[index].due = DuePacket::Nothing;
        self.tables.peers[to].dues.remove(self.tables.requests, index);
    }
}
