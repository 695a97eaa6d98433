//! How a machine is set up: its shape, its tables, and what is wrong with
//! them.

use super::list::{List, Stack};
use super::machine::Machine;
use super::tables::{Entry, Logged, Mirrored, Peer, Tables, Unexpected};
use super::threshold::Thresholds;
use super::{count::Counts, packet::INLINE_BYTES_MAX};
use crate::mem::Rank;
use core::fmt;

/// How much room there is: the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Ranks, this one among them. A machine may [admit](Machine::admit) more
    /// of them later, with which nothing of this changes.
    pub peers: u32,
    /// Lines of each lane: a power of two from 8 on.
    pub lines: u32,
    /// Slots of each lane: at most 32. A quarter of them is kept for messages
    /// of which neither buffer can be reached.
    pub slots: u32,
    /// Bytes of each slot: a power of two from 64 on.
    pub slot_bytes: u32,
    /// Messages of one rank to another that no receive has taken: a power of
    /// two. More wait at the sender, unless the receiver grants more.
    pub quota: u32,
    /// Receives that one rank offers to another.
    pub mirror: u32,
}

/// How a receiver's buffer is found by the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// It is not: small messages are copied twice, large ones fetched.
    TwoCopy,
    /// Receives are told to their source, which matches by itself.
    Mirror,
    /// Receives are put up on a [`Board`](super::board::Board), where senders
    /// claim them under a lock.
    Locked,
}

/// Why there is no machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// The shape is none.
    Shape(Shape),
    /// A table is not as long as the shape needs.
    Tables {
        /// Entries of the first table that is too short.
        entries: usize,
        /// Entries that are needed.
        needed: usize,
    },
    /// More bytes inside a packet than fit.
    InlineMax(u32),
}

impl Shape {
    /// What is right for a few ranks.
    pub const fn of(peers: u32) -> Self {
        Self { peers, lines: 256, slots: 16, slot_bytes: 2048, quota: 256, mirror: 32 }
    }

    /// Entries of [`Tables::unexpected`]: those that each peer may count on,
    /// and some to be granted.
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

    /// A message may pass its quota when its receive is known.
    pub(super) const fn log_len(&self) -> u32 {
        2 * self.quota
    }

    /// Unexpected messages beyond all quotas.
    pub(super) const fn spare(&self) -> u32 {
        SPARE_QUOTAS * self.quota
    }

    /// Lines that messages leave to other packets.
    pub(super) const fn reserve(&self) -> u32 {
        if self.lines < 64 { self.lines / 4 } else { 16 }
    }

    /// Slots that eager messages leave to others.
    pub(super) const fn slots_reserved(&self) -> u32 {
        self.slots.div_ceil(4)
    }

    /// Bits of all slots.
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
    /// A machine of which nothing was asked yet.
    ///
    /// # Errors
    ///
    /// [`SetupError`].
    pub fn new(
        rank: Rank,
        shape: Shape,
        design: Design,
        thresholds: Thresholds,
        tables: Tables<'m>,
    ) -> Result<Self, SetupError> {
        if !shape.is_valid() || rank.0 >= shape.peers {
            return Err(SetupError::Shape(shape));
        }
        let needed = [
            (tables.peers.len(), shape.peers as usize),
            (tables.requests.len().min(REQUESTS_MAX + 1), 1),
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
            rank,
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
            this.set_thresholds(Rank(peer), thresholds)?;
        }
        Ok(this)
    }

    /// From which size on messages to that rank go which way.
    ///
    /// # Errors
    ///
    /// [`SetupError::InlineMax`]; nothing was changed.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn set_thresholds(&mut self, peer: Rank, to: Thresholds) -> Result<(), SetupError> {
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
    /// Peers that there are: those of the shape, and those that were
    /// [admitted](Self::admit).
    #[inline]
    pub const fn peers(&self) -> u32 {
        self.shape.peers
    }

    /// One peer more: a [far](Self::set_far) one with which there was nothing
    /// to do before. It gets the next number. `None`: the tables have no room
    /// for it, and must [grow](Self::grow) first. Wait-free.
    pub fn admit(&mut self) -> Option<Rank> {
        let shape = Shape { peers: self.shape.peers + 1, ..self.shape };
        let has_room = shape.is_valid()
            && self.tables.peers.len() >= shape.peers as usize
            && self.tables.unexpected.len() >= shape.unexpected()
            && self.tables.log.len() >= shape.log()
            && self.tables.mirror.len() >= shape.mirrored();
        if !has_room {
            return None;
        }
        let peer = Rank(self.shape.peers);
        self.shape = shape;
        self.set_far(peer);
        Some(peer)
    }

    /// Goes on with longer tables: what is in those that there are is copied.
    ///
    /// # Errors
    ///
    /// [`SetupError::Tables`]: one of them is shorter; nothing has happened.
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

    /// A rank is on another node, and reached by [`Mail`](super::Mail): it
    /// gets no offer but for room, and its board is not looked at.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn set_far(&mut self, peer: Rank) {
        self.tables.peers[peer.0 as usize].far = true;
    }
}

/// Fills a table with what is in a shorter one.
fn carry_over<T: Copy>(from: &[T], into: &mut [T], empty: T) {
    let (old, new) = into.split_at_mut(from.len());
    old.copy_from_slice(from);
    new.fill(empty);
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(shape) => write!(f, "no shape for messages: {shape:?}"),
            Self::Tables { entries, needed } => {
                write!(f, "a table for messages has {entries} entries and needs {needed}")
            }
            Self::InlineMax(bytes) => {
                write!(f, "{bytes} bytes in a packet that has room for {INLINE_BYTES_MAX}")
            }
        }
    }
}

impl core::error::Error for SetupError {}

/// Requests that a packet can name.
pub(super) const REQUESTS_MAX: usize = 1 << 20;
const PEERS_MAX: u32 = 1 << 20;
/// What can be granted, in quotas.
const SPARE_QUOTAS: u32 = 4;
const LINES_MAX: u32 = 1 << 16;
/// The length of a slot's bytes stands in half a word.
const SLOT_BYTES_MAX: u32 = 1 << 20;
