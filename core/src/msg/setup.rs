//! Setup of a machine: its shape, its tables, and the errors in them.

use super::list::{List, Stack};
use super::machine::Machine;
use super::tables::{Entry, Logged, Mirrored, Peer, Tables, Unexpected};
use super::threshold::Thresholds;
use super::{count::Counts, packet::INLINE_BYTES_MAX};
use crate::mem::{LocalRank, PeerIndex};
use core::fmt;

/// The sizes of lanes and tables: the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Ranks, this rank included. A machine may [admit](Machine::admit) more of
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

/// How the sender finds the receiver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// The sender does not find it: small messages are copied twice, large ones
    /// fetched.
    TwoCopy,
    /// Receives are sent to their source, which matches by itself.
    Mirror,
    /// Receives are put on a [`Board`](super::board::Board), where senders claim
    /// them under a lock.
    Locked,
}

/// Why a machine could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// The shape is not valid.
    Shape(Shape),
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

impl Shape {
    /// Returns a shape that is suitable for a few ranks.
    pub const fn of(peers: u32) -> Self {
        Self { peers, lines: 256, slots: 16, slot_bytes: 2048, quota: 256, mirror: 32 }
    }

    /// Entries of [`Tables::unexpected`]: the quota of each peer, and some to be
    /// granted.
    pub const fn unexpected(&self) -> usize {
        self.peers as usize * self.quota as usize + self.spare() as usize
    }

    /// Entries of [`Tables::log`].
    pub const fn log(&self) -> usize {
        self.peers as usize * self.log_len() as usize
    }

    /// Entries of [`Tables::mirror`].
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

impl<'m> Machine<'m> {
    /// Makes a machine without requests.
    ///
    /// # Errors
    ///
    /// - [`SetupError::Shape`]: a field of the shape is not allowed, or `rank` is not below
    ///   its number of ranks.
    /// - [`SetupError::Tables`]: a table is shorter than the shape needs, there is no
    ///   entry for a request, or there are more than 2^20 of them.
    /// - [`SetupError::InlineMax`]: `thresholds.inline_max` is above the room in a packet.
    pub fn new(
        own: LocalRank,
        shape: Shape,
        design: Design,
        thresholds: Thresholds,
        tables: Tables<'m>,
    ) -> Result<Self, SetupError> {
        if !shape.is_valid() || own.0 >= shape.peers {
            return Err(SetupError::Shape(shape));
        }
        let needed = [
            (tables.peers.len(), shape.peers as usize),
            (tables.requests.len(), 1),
            (tables.unexpected.len(), shape.unexpected()),
            (tables.log.len(), shape.log()),
            (tables.mirror.len(), shape.mirrored()),
        ];
        for (entries, needed) in needed {
            if entries < needed {
                return Err(SetupError::Tables { entries, needed });
            }
        }
        if tables.requests.len() > REQUESTS_MAX {
            let entries = tables.requests.len();
            return Err(SetupError::Tables { entries, needed: REQUESTS_MAX });
        }
        tables.peers.fill(Peer::EMPTY);
        tables.requests.fill(Entry::EMPTY);
        tables.unexpected.fill(Unexpected::EMPTY);
        tables.log.fill(Logged::EMPTY);
        tables.mirror.fill(Mirrored::EMPTY);
        let mut free = Stack::EMPTY;
        for index in (0..tables.requests.len()).rev() {
            free.push(tables.requests, index);
        }
        let mut room = Stack::EMPTY;
        for index in (0..tables.unexpected.len()).rev() {
            room.push(tables.unexpected, index);
        }
        let mut this = Self {
            own,
            shape,
            design,
            tables,
            free,
            room,
            ended: List::EMPTY,
            jobs: List::EMPTY,
            any_posted: List::EMPTY,
            arrived: List::EMPTY,
            busy: List::EMPTY,
            stirred: List::EMPTY,
            posts: 0,
            under_way: 0,
            spare: shape.spare(),
            is_probed: false,
            has_learned: false,
            recent: [u32::MAX; 4],
            turn: 0,
            counts: Counts::default(),
            boards: &[],
            boarded: List::EMPTY,
            holds_board: false,
        };
        for peer in 0..shape.peers {
            this.set_thresholds(PeerIndex(peer), thresholds)?;
        }
        Ok(this)
    }

    /// Sets the sizes at which messages to that rank change their path.
    ///
    /// # Errors
    ///
    /// [`SetupError::InlineMax`] if `inline_max` is above the room in a packet; nothing was
    /// changed.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn set_thresholds(&mut self, peer: PeerIndex, to: Thresholds) -> Result<(), SetupError> {
        if to.inline_max as usize > INLINE_BYTES_MAX {
            return Err(SetupError::InlineMax(to.inline_max));
        }
        let eager = (self.shape.slots - self.shape.slots_reserved()) * self.shape.slot_bytes;
        self.tables.peers[peer.0 as usize].thresholds =
            Thresholds { eager_max: to.eager_max.min(eager), ..to };
        Ok(())
    }
}

impl<'m> Machine<'m> {
    /// Returns the number of peers: those of the shape, and those that were
    /// [admitted](Self::admit).
    #[inline]
    pub const fn peers(&self) -> u32 {
        self.shape.peers
    }

    /// Adds a peer: a [far](Self::set_far) rank with which no message was
    /// exchanged before. Returns its number, which is the next one. `None`: the
    /// tables have no room for it, and must [grow](Self::grow) first. Wait-free.
    pub fn admit(&mut self) -> Option<PeerIndex> {
        let shape = Shape { peers: self.shape.peers + 1, ..self.shape };
        let has_room = shape.is_valid()
            && self.tables.peers.len() >= shape.peers as usize
            && self.tables.unexpected.len() >= shape.unexpected()
            && self.tables.log.len() >= shape.log()
            && self.tables.mirror.len() >= shape.mirrored();
        if !has_room {
            return None;
        }
        let peer = PeerIndex(self.shape.peers);
        self.shape = shape;
        self.set_far(peer);
        Some(peer)
    }

    /// Replaces the tables by longer ones; the content of the old ones is copied.
    ///
    /// # Errors
    ///
    /// [`SetupError::Tables`] if one of them is shorter, or there are more than 2^20
    /// requests; nothing has happened.
    pub fn grow(&mut self, tables: Tables<'m>) -> Result<(), SetupError> {
        let old = &self.tables;
        for (entries, needed) in [
            (tables.peers.len(), old.peers.len()),
            (tables.requests.len(), old.requests.len()),
            (tables.unexpected.len(), old.unexpected.len()),
            (tables.log.len(), old.log.len()),
            (tables.mirror.len(), old.mirror.len()),
        ] {
            if entries < needed {
                return Err(SetupError::Tables { entries, needed });
            }
        }
        if tables.requests.len() > REQUESTS_MAX {
            let entries = tables.requests.len();
            return Err(SetupError::Tables { entries, needed: REQUESTS_MAX });
        }
        let (requests, unexpected) = (old.requests.len(), old.unexpected.len());
        carry_over(old.peers, tables.peers, Peer::EMPTY);
        carry_over(old.requests, tables.requests, Entry::EMPTY);
        carry_over(old.unexpected, tables.unexpected, Unexpected::EMPTY);
        carry_over(old.log, tables.log, Logged::EMPTY);
        carry_over(old.mirror, tables.mirror, Mirrored::EMPTY);
        self.tables = tables;
        for index in (requests..self.tables.requests.len()).rev() {
            self.free.push(self.tables.requests, index);
        }
        for index in (unexpected..self.tables.unexpected.len()).rev() {
            self.room.push(self.tables.unexpected, index);
        }
        Ok(())
    }

    /// Marks a rank as far: it is on another node, and reached by
    /// [`Mail`](super::Mail). It gets offers only when it needs room, and its
    /// board is not looked at.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn set_far(&mut self, peer: PeerIndex) {
        self.tables.peers[peer.0 as usize].far = true;
    }
}

/// Copies a table into a longer one, and fills the rest with `empty`.
fn carry_over<T: Copy>(from: &[T], into: &mut [T], empty: T) {
    let (old, new) = into.split_at_mut(from.len());
    old.copy_from_slice(from);
    new.fill(empty);
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

/// Requests that a packet can name.
pub(super) const REQUESTS_MAX: usize = 1 << 20;
const PEERS_MAX: u32 = 1 << 20;
/// Quotas that can be granted beyond all peers' quotas.
const SPARE_QUOTAS: u32 = 4;
const LINES_MAX: u32 = 1 << 16;
/// The number of bytes in a slot is stored in half a word.
const SLOT_BYTES_MAX: u32 = 1 << 20;

#[cfg(all(test, not(tsumugi_loom)))]
#[allow(unsafe_code)]
mod tests;
