//! Packets on their way down.

use super::failure::DeviceFailure;
use super::nic_endpoint::{DomainShared, NO_ADDRESS, NicEndpoint, NicPeer};
use super::packet::{
    HEADER_BYTES, NOTICE_BYTES, NOTIFICATION, NOTIFICATION_BYTES, PACKET, PacketError,
};
use super::scratch::Context;
use super::wire::NetWire;
use core::ffi::c_int;
use libc::{EAGAIN, EINPROGRESS};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::op::Op;
use tsumugi_core::sync::Ordering;

impl<W: NetWire> NicEndpoint<W> {
    /// The bytes of content that fit in a packet.
    pub(super) fn packet_bytes_max(&self) -> usize {
        self.scratch.packet_bytes() - HEADER_BYTES
    }

    pub(super) fn try_send(
        &mut self,
        shared: &DomainShared,
        to: Rank,
        bytes: &[u8],
    ) -> Result<(), PacketError> {
        let sent = self.send_kind(shared, to, PACKET, bytes);
        self.wire.ring_doorbell();
        sent
    }

    /// Sends a notice to a rank that is lost: as a packet, if the wire has no other way,
    /// and the connection to it is still open.
    pub(super) fn notify_dead(
        &mut self,
        shared: &DomainShared,
        to: Rank,
        bytes: &[u8],
    ) -> Result<(), PacketError> {
        self.end_lost_ops(shared);
        let sent = match self.peers.get(&to.0) {
            Some(peer) if peer.lost && peer.addr != NO_ADDRESS => {
                let peer = *peer;
                let mut notice = [0; NOTICE_BYTES];
                if let Some(notice) = notice.get_mut(..HEADER_BYTES + bytes.len()) {
                    fill(notice, shared, PACKET, bytes);
                    if self.wire.send_notice(notice, peer.addr) {
                        return Ok(());
                    }
                }
                self.send_to(shared, to, peer, PACKET, bytes)
            }
            _ => Err(PacketError::Addr(AddrError::PeerLost { rank: to })),
        };
        self.wire.ring_doorbell();
        sent
    }

    /// Notifies the owner of a word that it has changed. Returns false if there is
    /// no room now.
    pub(super) fn notify_owner(&mut self, shared: &DomainShared, op: &Op) -> bool {
        let mut bell = [0; NOTIFICATION_BYTES];
        bell[..4].copy_from_slice(&op.remote.key.to_bits().to_le_bytes());
        bell[8..].copy_from_slice(&op.remote.offset.to_le_bytes());
        // A peer that is lost gets no notification; the operation has ended before.
        self.send_kind(shared, op.remote.rank, NOTIFICATION, &bell) != Err(PacketError::Full)
    }

    fn send_kind(
        &mut self,
        shared: &DomainShared,
        to: Rank,
        kind: u32,
        bytes: &[u8],
    ) -> Result<(), PacketError> {
        let max = self.packet_bytes_max();
        if bytes.len() > max {
            return Err(PacketError::TooLong { bytes: bytes.len(), max });
        }
        if to.0 >= shared.size {
            let error = AddrError::NoSuchRank { rank: to, size: shared.size };
            return Err(PacketError::Addr(error));
        }
        let peer = self.peer(shared, to).map_err(PacketError::Addr)?.ok_or(PacketError::Full)?;
        self.send_to(shared, to, peer, kind, bytes)
    }

    /// Sends to a peer that is known; the caller has checked that the bytes fit.
    #[inline]
    fn send_to(
        &mut self,
        shared: &DomainShared,
        to: Rank,
        peer: NicPeer,
        kind: u32,
        bytes: &[u8],
    ) -> Result<(), PacketError> {
        if self.must_wait() || self.must_back_off(to) {
            return Err(PacketError::Full);
        }
        let Some(packet) = self.packets.free.pop() else { return Err(PacketError::Full) };
        let at = self.scratch.outgoing(packet as usize);
        // SAFETY: a free packet's own bytes, as many as were checked.
        let place = unsafe { core::slice::from_raw_parts_mut(at, HEADER_BYTES + bytes.len()) };
        fill(place, shared, kind, bytes);
        let (injected, answer) =
            if place.len() <= self.limits.inject_packet_bytes && peer.injected < INJECTED_MAX {
                (peer.injected + 1, self.wire.inject_packet(place, peer.addr) as c_int)
            } else {
                self.packets.addressed[packet as usize] = (to, place.len());
                (0, self.send_packet(packet as usize, peer.addr))
            };
        // A packet that was injected, or refused, has no completion.
        if injected > 0 || answer != 0 {
            self.packets.free.push(packet);
        }
        if answer == 0 {
            if injected != peer.injected
                && let Some(peer) = self.peers.get_mut(&to.0)
            {
                peer.injected = injected;
            }
            return Ok(());
        }
        Err(match answer {
            code if code == -EAGAIN || code == -EINPROGRESS => PacketError::Full,
            code if self.is_not_yet_reachable(to, -code) => PacketError::Full,
            code => {
                self.failures.add(DeviceFailure::new(Some(to), None, -code, 0));
                PacketError::Addr(AddrError::PeerLost { rank: to })
            }
        })
    }

    fn send_packet(&mut self, packet: usize, peer: u64) -> c_int {
        let local = self.scratch.local(self.scratch.outgoing(packet));
        let (_, bytes) = self.packets.addressed[packet];
        let context = self.scratch.context(Context::Send(packet));
        // SAFETY: the packet's bytes belong to it until it is sent.
        unsafe { self.wire.send(local, bytes, peer, context) as c_int }
    }

    /// Sends packets again that the device has returned unsent.
    pub(super) fn send_again(&mut self, shared: &DomainShared) {
        for _ in 0..self.packets.returned.len() {
            let Some(packet) = self.packets.returned.pop_front() else { return };
            let (to, _) = self.packets.addressed[packet as usize];
            let answer = match self.peer(shared, to) {
                Ok(None) => -EAGAIN,
                Ok(_) if self.must_back_off(to) => -EAGAIN,
                Ok(Some(peer)) => self.send_packet(packet as usize, peer.addr),
                Err(_) => -libc::EHOSTUNREACH,
            };
            match -answer {
                0 => {}
                EAGAIN | EINPROGRESS => self.packets.returned.push_back(packet),
                code if self.is_not_yet_reachable(to, code) => {
                    self.packets.returned.push_back(packet)
                }
                code => {
                    self.failures.add(DeviceFailure::new(Some(to), None, code, 0));
                    self.packets.sent(packet as usize);
                }
            }
        }
    }
}

/// Writes a packet: its header, and its content, to which its length fits.
#[inline]
fn fill(place: &mut [u8], shared: &DomainShared, kind: u32, bytes: &[u8]) {
    place[..8].copy_from_slice(&shared.job.load(Ordering::Relaxed).to_le_bytes());
    place[8..12].copy_from_slice(&shared.rank.0.to_le_bytes());
    place[12..16].copy_from_slice(&kind.to_le_bytes());
    place[16..].copy_from_slice(bytes);
}

/// The largest number of packets to a peer that are injected in a row: the next one
/// takes a buffer until it has gone, so that the memory that a library uses for a
/// peer that does not read has a limit.
const INJECTED_MAX: u16 = 16;
