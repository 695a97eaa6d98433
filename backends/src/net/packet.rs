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

use core::fmt;
use std::collections::VecDeque;
use tsumugi_core::mem::{AddrError, LocalAddr, Rank};

/// An arrival for this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival<'p> {
    /// A notifying operation has changed this word of this rank.
    Notified(LocalAddr),
    /// A packet.
    Packet {
        /// The rank that sent it.
        from: Rank,
        /// Its content.
        bytes: &'p [u8],
    },
}

/// Why a packet was not sent.
///
/// The enum is exhaustive: a sender has to know whether it tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketError {
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

impl fmt::Display for PacketError {
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

impl std::error::Error for PacketError {}

/// The packets of one NIC endpoint.
#[derive(Debug)]
pub(super) struct Packets {
    pub(super) count: usize,
    pub(super) free: Vec<u32>,
    pub(super) arrived: VecDeque<(u32, usize)>,
    /// The numbers that puts have carried.
    pub(super) immediates: VecDeque<u32>,
    /// Receive buffers that could not be posted to the provider yet.
    pub(super) idle: Vec<u32>,
    /// Packets that must be sent again.
    pub(super) returned: VecDeque<u32>,
    /// The receiver of each packet that is being sent, and its bytes.
    pub(super) addressed: Vec<(Rank, usize)>,
    /// How many packets were dropped.
    pub strays: u64,
}

impl Packets {
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            free: (0..count as u32).collect(),
            arrived: VecDeque::with_capacity(count),
            immediates: VecDeque::with_capacity(count),
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
        !self.arrived.is_empty() || !self.immediates.is_empty()
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

    pub(super) fn packet_arrived(&mut self, packet: usize, bytes: usize) {
        self.arrived.push_back((packet as u32, bytes));
    }

    /// A put has used the packet's receive buffer to deliver a number.
    pub(super) fn immediate_arrived(&mut self, packet: usize, number: u32) {
        self.immediates.push_back(number);
        self.failed(packet);
    }

    pub(super) fn failed(&mut self, packet: usize) {
        self.idle.push(packet as u32);
    }
}

/// The largest number of packets that are passed on at once: a caller that must
/// copy them needs room for as many.
pub const PACKETS_AT_ONCE: usize = 8;

/// The bytes that [`Packets`] needs for each packet.
pub(super) const PACKET_TABLES_BYTES: usize =
    4 * size_of::<u32>() + size_of::<(u32, usize)>() + size_of::<(Rank, usize)>();

pub(super) const PACKET: u32 = 1;
pub(super) const NOTIFICATION: u32 = 2;

/// The bytes of a packet before its content.
pub(super) const HEADER_BYTES: usize = 16;
/// The bytes of the longest notice that goes by another way than packets.
pub(super) const NOTICE_BYTES: usize = 64;
pub(super) const NOTIFICATION_BYTES: usize = 16;
