//! Packets between ranks: doorbells for ranks that wait for a word, and the packets
//! of active messages.
//!
//! ```text
//!  job 8 | from 4 | kind 4 | bytes ...
//! ```
//!
//! Buffers are fixed in number. If no send buffer is free, a packet is refused; a
//! short packet is injected (given away) where the library supports that, and its
//! buffer is free at once. If no receive buffer is free, the provider holds the
//! sender back (resource management is requested). Arrivals are checked: packets of
//! other jobs, of ranks that do not exist, or of unknown kinds (*strays*) are
//! counted and dropped.

use super::failure::Failure;
use super::number::may_ring;
use super::rail::{NO_WAY, Peer, Rail, Shared};
use super::scratch::Context;
use super::wire::Wire;
use core::ffi::c_int;
use core::fmt;
use libc::{EAGAIN, EINPROGRESS};
use std::collections::VecDeque;
use tsumugi_core::mem::{AddrError, LocalAddr, Rank, RegionKey};
use tsumugi_core::op::Op;
use tsumugi_core::sync::Ordering;

/// An arrival for this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival<'p> {
    /// A notifying operation has changed this word of this rank.
    Bell(LocalAddr),
    /// A packet.
    Packet {
        /// The rank that sent it.
        from: Rank,
        /// Its content.
        bytes: &'p [u8],
    },
}

/// Why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// No buffer is free, the provider accepts nothing, the rank's card has not come
    /// yet, or another thread uses the endpoint: the caller must try again later.
    Full,
    /// The content does not fit in a packet.
    TooLong {
        /// The bytes of the content.
        bytes: usize,
        /// The bytes that fit.
        max: usize,
    },
    /// [`AddrError::NoSuchRank`]: the rank does not exist. [`AddrError::PeerLost`]: the
    /// rank has died, or its card or the device refuses the connection to it.
    Addr(AddrError),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "no packet can be sent to this rank now: try again later"),
            Self::TooLong { bytes, max } => {
                write!(f, "a packet of {bytes} bytes: at most {max} are possible")
            }
            Self::Addr(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SendError {}

/// The packets of one rail.
#[derive(Debug)]
pub(super) struct Packets {
    count: usize,
    free: Vec<u32>,
    arrived: VecDeque<(u32, usize)>,
    /// The numbers that puts have carried.
    rung: VecDeque<u32>,
    /// Receive buffers that could not be posted to the provider yet.
    idle: Vec<u32>,
    /// Packets that must be sent again.
    pub(super) returned: VecDeque<u32>,
    /// The receiver of each packet that is being sent, and its bytes.
    addressed: Vec<(Rank, usize)>,
    /// How many packets were dropped.
    pub strays: u64,
}

impl Packets {
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            free: (0..count as u32).collect(),
            arrived: VecDeque::with_capacity(count),
            rung: VecDeque::with_capacity(count),
            idle: (0..count as u32).collect(),
            returned: VecDeque::with_capacity(count),
            addressed: vec![(Rank(0), 0); count],
            strays: 0,
        }
    }

    /// The number of packets that the device has.
    pub(super) fn under_way(&self) -> usize {
        self.count - self.free.len()
    }

    pub(super) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty() || !self.rung.is_empty()
    }

    /// Whether there are arrivals to pass on, or receive buffers to post to the
    /// provider.
    #[inline]
    pub(super) fn needs_receive(&self) -> bool {
        self.has_arrived() || !self.idle.is_empty()
    }

    pub(super) fn sent(&mut self, packet: usize) {
        self.free.push(packet as u32);
    }

    /// The rank that a packet is sent to.
    pub(super) fn receiver(&self, packet: usize) -> Option<Rank> {
        Some(self.addressed.get(packet)?.0)
    }

    pub(super) fn came(&mut self, packet: usize, bytes: usize) {
        self.arrived.push_back((packet as u32, bytes));
    }

    /// A put has used the packet's receive buffer to deliver a number.
    pub(super) fn rang(&mut self, packet: usize, number: u32) {
        self.rung.push_back(number);
        self.failed(packet);
    }

    pub(super) fn failed(&mut self, packet: usize) {
        self.idle.push(packet as u32);
    }
}

impl<W: Wire> Rail<W> {
    /// Posts receive buffers to the provider.
    pub(super) fn open_receives(&mut self) {
        while let Some(packet) = self.packets.idle.pop() {
            let near = self.scratch.near(self.scratch.incoming(packet as usize));
            let context = self.scratch.context(Context::Receive(packet as usize));
            let bytes = self.scratch.packet_bytes();
            // SAFETY: the packet's own bytes and context, which no other code uses
            // until it has arrived.
            if unsafe { self.wire.receive(near, bytes, context) } != 0 {
                self.packets.idle.push(packet);
                return;
            }
        }
    }

    /// The bytes of content that fit in a packet.
    pub(super) fn packet_bytes_max(&self) -> usize {
        self.scratch.packet_bytes() - HEADER_BYTES
    }

    pub(super) fn try_send(
        &mut self,
        shared: &Shared,
        to: Rank,
        bytes: &[u8],
    ) -> Result<(), SendError> {
        let sent = self.send_kind(shared, to, PACKET, bytes);
        self.wire.ring();
        sent
    }

    /// Sends a packet to a rank that is lost, if the connection to it is still
    /// open.
    pub(super) fn tell_lost(
        &mut self,
        shared: &Shared,
        to: Rank,
        bytes: &[u8],
    ) -> Result<(), SendError> {
        self.see_losses(shared);
        let sent = match self.peers.get(&to.0) {
            Some(peer) if peer.lost && peer.addr != NO_WAY => {
                let peer = *peer;
                self.send_to(shared, to, peer, PACKET, bytes)
            }
            _ => Err(SendError::Addr(AddrError::PeerLost { rank: to })),
        };
        self.wire.ring();
        sent
    }

    /// Notifies the owner of a word that it has changed. Returns false if there is
    /// no room now.
    pub(super) fn ring(&mut self, shared: &Shared, op: &Op) -> bool {
        let mut bell = [0; BELL_BYTES];
        bell[..4].copy_from_slice(&op.remote.key.to_bits().to_le_bytes());
        bell[8..].copy_from_slice(&op.remote.offset.to_le_bytes());
        // A peer that is lost gets no bell; the operation has ended before.
        self.send_kind(shared, op.remote.rank, BELL, &bell) != Err(SendError::Full)
    }

    fn send_kind(
        &mut self,
        shared: &Shared,
        to: Rank,
        kind: u32,
        bytes: &[u8],
    ) -> Result<(), SendError> {
        let max = self.packet_bytes_max();
        if bytes.len() > max {
            return Err(SendError::TooLong { bytes: bytes.len(), max });
        }
        if to.0 >= shared.size {
            let error = AddrError::NoSuchRank { rank: to, size: shared.size };
            return Err(SendError::Addr(error));
        }
        let peer = self.peer(shared, to).map_err(SendError::Addr)?.ok_or(SendError::Full)?;
        self.send_to(shared, to, peer, kind, bytes)
    }

    /// Sends to a peer that is known; the caller has checked that the bytes fit.
    #[inline]
    fn send_to(
        &mut self,
        shared: &Shared,
        to: Rank,
        peer: Peer,
        kind: u32,
        bytes: &[u8],
    ) -> Result<(), SendError> {
        if self.must_wait() || self.must_pause(to) {
            return Err(SendError::Full);
        }
        let Some(packet) = self.packets.free.pop() else { return Err(SendError::Full) };
        let at = self.scratch.outgoing(packet as usize);
        // SAFETY: a free packet's own bytes, as many as were checked.
        let place = unsafe { core::slice::from_raw_parts_mut(at, HEADER_BYTES + bytes.len()) };
        place[..8].copy_from_slice(&shared.job.load(Ordering::Relaxed).to_le_bytes());
        place[8..12].copy_from_slice(&shared.rank.0.to_le_bytes());
        place[12..16].copy_from_slice(&kind.to_le_bytes());
        place[16..].copy_from_slice(bytes);
        let (given, answer) = if place.len() <= self.limits.give_bytes && peer.given < GIVEN_MAX {
            (peer.given + 1, self.wire.give(place, peer.addr) as c_int)
        } else {
            self.packets.addressed[packet as usize] = (to, place.len());
            (0, self.send_packet(packet as usize, peer.addr))
        };
        // A packet that was injected, or refused, has no completion.
        if given > 0 || answer != 0 {
            self.packets.free.push(packet);
        }
        if answer == 0 {
            if given != peer.given
                && let Some(peer) = self.peers.get_mut(&to.0)
            {
                peer.given = given;
            }
            return Ok(());
        }
        Err(match answer {
            code if code == -EAGAIN || code == -EINPROGRESS => SendError::Full,
            code if self.is_early(to, -code) => SendError::Full,
            code => {
                self.failures.add(Failure::new(Some(to), None, -code, 0));
                SendError::Addr(AddrError::PeerLost { rank: to })
            }
        })
    }

    fn send_packet(&mut self, packet: usize, peer: u64) -> c_int {
        let near = self.scratch.near(self.scratch.outgoing(packet));
        let (_, bytes) = self.packets.addressed[packet];
        let context = self.scratch.context(Context::Send(packet));
        // SAFETY: the packet's bytes belong to it until it is sent.
        unsafe { self.wire.send(near, bytes, peer, context) as c_int }
    }

    /// Sends packets again that the device has returned unsent.
    pub(super) fn send_again(&mut self, shared: &Shared) {
        for _ in 0..self.packets.returned.len() {
            let Some(packet) = self.packets.returned.pop_front() else { return };
            let (to, _) = self.packets.addressed[packet as usize];
            let answer = match self.peer(shared, to) {
                Ok(None) => -EAGAIN,
                Ok(_) if self.must_pause(to) => -EAGAIN,
                Ok(Some(peer)) => self.send_packet(packet as usize, peer.addr),
                Err(_) => -libc::EHOSTUNREACH,
            };
            match -answer {
                0 => {}
                EAGAIN | EINPROGRESS => self.packets.returned.push_back(packet),
                code if self.is_early(to, code) => self.packets.returned.push_back(packet),
                code => {
                    self.failures.add(Failure::new(Some(to), None, code, 0));
                    self.packets.sent(packet as usize);
                }
            }
        }
    }

    pub(super) fn receive(
        &mut self,
        shared: &Shared,
        handle: &mut dyn FnMut(Arrival<'_>),
    ) -> usize {
        let mut handed = 0;
        while let Some(number) = self.packets.rung.pop_front() {
            match self.word_of(shared, number) {
                Some(word) => {
                    handed += 1;
                    handle(Arrival::Bell(word));
                }
                None => self.packets.strays += 1,
            }
        }
        for _ in 0..PACKETS_AT_ONCE {
            let Some((packet, length)) = self.packets.arrived.pop_front() else { break };
            let at = self.scratch.incoming(packet as usize);
            let length = length.min(self.scratch.packet_bytes());
            // SAFETY: the packet's own bytes, with which the provider has finished.
            let bytes = unsafe { core::slice::from_raw_parts(at, length) };
            match parse(bytes, shared) {
                Some(arrival) => {
                    handed += 1;
                    handle(arrival);
                }
                None => self.packets.strays += 1,
            }
            self.packets.idle.push(packet);
        }
        // The buffers are posted again only when nothing was passed on, or many are
        // idle, so that this does not delay the arrivals.
        if handed == 0 || self.packets.idle.len() >= self.packets.count / 2 {
            self.open_receives();
        }
        handed
    }
}

/// Parses a packet; `None` if it is not of this job.
fn parse<'p>(bytes: &'p [u8], shared: &Shared) -> Option<Arrival<'p>> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
    let job = u64::from_le_bytes(header[..8].try_into().expect("8 bytes"));
    let from = Rank(word(8));
    if job != shared.job.load(Ordering::Relaxed) || from.0 >= shared.size {
        return None;
    }
    match word(12) {
        PACKET => Some(Arrival::Packet { from, bytes: rest }),
        BELL => {
            let bell: &[u8; BELL_BYTES] = rest.try_into().ok()?;
            let key = u32::from_le_bytes(bell[..4].try_into().expect("4 bytes"));
            let offset = u64::from_le_bytes(bell[8..].try_into().expect("8 bytes"));
            may_ring(shared, RegionKey::from_bits(key), offset).map(Arrival::Bell)
        }
        _ => None,
    }
}

/// The largest number of packets that are passed on at once: a caller that must
/// copy them needs room for as many.
pub const PACKETS_AT_ONCE: usize = 8;

/// The bytes that [`Packets`] needs for each packet.
pub(super) const PACKET_TABLES_BYTES: usize =
    4 * size_of::<u32>() + size_of::<(u32, usize)>() + size_of::<(Rank, usize)>();

const PACKET: u32 = 1;
const BELL: u32 = 2;

/// The largest number of packets to a peer that are injected in a row: the next one
/// takes a buffer until it has gone, so that the memory that a library uses for a
/// peer that does not read has a limit.
const GIVEN_MAX: u16 = 16;

/// The bytes of a packet before its content.
pub(super) const HEADER_BYTES: usize = 16;
const BELL_BYTES: usize = 16;

#[cfg(test)]
mod tests;
