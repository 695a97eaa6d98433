//! The shape of a machine: the sizes of its lanes and tables, and its design.

use super::packet::INLINE_BYTES_MAX;
use core::fmt;

/// The sizes of lanes and tables: the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageShape {
    /// Ranks, this rank included. A machine may [admit](super::MessageMachine::admit) more of
    /// them later, which changes no other field.
    pub peers: u32,
    /// Lines of each lane: a power of two from 8 on.
    pub lines: u32,
    /// Slots of each lane: at most 32. A quarter of them is reserved for messages
    /// with both buffers out of reach.
    pub slots: u32,
    /// Bytes of each slot: a power of two from 64 on.
    pub slot_bytes: u32,
    /// Messages of one rank to another that no receive has taken: a power of two.
    /// More wait at the sender, unless the receiver grants more.
    pub quota: u32,
    /// Receives that one rank offers to another, at most.
    pub mirror: u32,
}

impl MessageShape {
    /// Returns a shape that is suitable for a few ranks.
    pub const fn of(peers: u32) -> Self {
        Self { peers, lines: 256, slots: 16, slot_bytes: 2048, quota: 256, mirror: 32 }
    }

    /// Entries of [`MessageTables::unexpected`](super::MessageTables::unexpected): the quota
    /// of each peer, and some to be granted.
    pub const fn unexpected(&self) -> usize {
        self.peers as usize * self.quota as usize + self.spare() as usize
    }

    /// Entries of [`MessageTables::log`](super::MessageTables::log).
    pub const fn log(&self) -> usize {
        self.peers as usize * self.log_len() as usize
    }

    /// Entries of [`MessageTables::mirror`](super::MessageTables::mirror).
    pub const fn mirrored(&self) -> usize {
        self.peers as usize * self.mirror as usize
    }

    /// Entries of the log for one peer: more than the quota, because a message
    /// with a known receive may pass the quota.
    pub(super) const fn log_len(&self) -> u32 {
        2 * self.quota
    }

    /// Unexpected messages beyond all quotas.
    pub(super) const fn spare(&self) -> u32 {
        SPARE_QUOTAS * self.quota
    }

    /// Lines that messages leave free for other packets.
    pub(super) const fn reserve(&self) -> u32 {
        if self.lines < 64 { self.lines / 4 } else { 16 }
    }

    /// Slots that eager messages leave free for other messages.
    pub(super) const fn slots_reserved(&self) -> u32 {
        self.slots.div_ceil(4)
    }

    /// Returns a mask with a bit for each slot.
    pub(super) const fn slot_mask(&self) -> u32 {
        ((1u64 << self.slots) - 1) as u32
    }

    pub(super) const fn is_valid(&self) -> bool {
        self.peers > 0
            && self.peers <= PEERS_MAX
            && self.lines.is_power_of_two()
            && self.lines >= 8
            && self.lines <= LINES_MAX
            && self.slots >= 1
            && self.slots <= 32
            && self.slot_bytes.is_power_of_two()
            && self.slot_bytes >= 64
            && self.slot_bytes <= SLOT_BYTES_MAX
            && self.quota.is_power_of_two()
            && self.quota <= LINES_MAX
            && self.mirror >= 1
            && self.mirror <= LINES_MAX
    }
}

/// How the sender finds the receiver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchingDesign {
    /// The sender does not find it: small messages are copied twice, large ones
    /// fetched.
    TwoCopy,
    /// Receives are sent to their source, which matches by itself.
    Mirror,
    /// Receives are put on a [`Board`](super::locked_matching::Board), where senders claim
    /// them under a lock.
    Locked,
}

/// Why a machine could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupError {
    /// The shape is not valid.
    Shape(MessageShape),
    /// A table is shorter than the shape needs, or has more requests than can be
    /// named.
    Tables {
        /// Entries of the first table that is too short, or of the table of requests.
        entries: usize,
        /// Entries that are needed, or the most that there can be.
        needed: usize,
    },
    /// The limit for inline messages is above the room in a packet.
    InlineMax(u32),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(shape) => write!(f, "the message shape is not valid here: {shape:?}"),
            Self::Tables { entries, needed } if entries < needed => {
                write!(f, "a table for messages has {entries} entries: it needs {needed}")
            }
            Self::Tables { entries, needed } => {
                write!(f, "the table of requests has {entries} entries: the limit is {needed}")
            }
            Self::InlineMax(bytes) => write!(
                f,
                "inline messages of {bytes} bytes: a packet has room for {INLINE_BYTES_MAX} bytes"
            ),
        }
    }
}

impl core::error::Error for SetupError {}

pub(super) const PEERS_MAX: u32 = 1 << 20;
/// Quotas that can be granted beyond all peers' quotas.
const SPARE_QUOTAS: u32 = 4;
pub(super) const LINES_MAX: u32 = 1 << 16;
/// The number of bytes in a slot is stored in half a word.
pub(super) const SLOT_BYTES_MAX: u32 = 1 << 20;
