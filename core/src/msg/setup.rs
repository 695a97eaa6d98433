//! Setup of a machine: its shape, its tables, and the errors in them.

use super::list::{IndexList, IndexStack};
use super::machine::{MessageMachine, REQUESTS_MAX};
use super::shape::{MatchingDesign, MessageShape, SetupError};
use super::tables::{
    LoggedMessage, MessagePeer, MessageTables, MirroredOffer, RequestEntry, UnexpectedMessage,
};
use super::threshold::Thresholds;
use super::{count::MessageCounts, packet::INLINE_BYTES_MAX};
use crate::mem::{LocalRank, PeerIndex};

impl<'m> MessageMachine<'m> {
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
        shape: MessageShape,
        design: MatchingDesign,
        thresholds: Thresholds,
        tables: MessageTables<'m>,
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
        tables.peers.fill(MessagePeer::EMPTY);
        tables.requests.fill(RequestEntry::EMPTY);
        tables.unexpected.fill(UnexpectedMessage::EMPTY);
        tables.log.fill(LoggedMessage::EMPTY);
        tables.mirror.fill(MirroredOffer::EMPTY);
        let mut free = IndexStack::EMPTY;
        for index in (0..tables.requests.len()).rev() {
            free.push(tables.requests, index);
        }
        let mut room = IndexStack::EMPTY;
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
            ended: IndexList::EMPTY,
            jobs: IndexList::EMPTY,
            any_posted: IndexList::EMPTY,
            arrived: IndexList::EMPTY,
            busy: IndexList::EMPTY,
            credits_due: IndexList::EMPTY,
            posts: 0,
            under_way: 0,
            spare: shape.spare(),
            is_probed: false,
            extra: 0,
            is_cramped: false,
            has_learned: false,
            recent: [u32::MAX; 4],
            turn: 0,
            counts: MessageCounts::default(),
            boards: &[],
            boarded: IndexList::EMPTY,
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

impl<'m> MessageMachine<'m> {
    /// Returns the number of peers: those of the shape, and those that were
    /// [admitted](Self::admit).
    #[inline]
    pub const fn peers(&self) -> u32 {
        self.shape.peers
    }

    /// Adds a peer: a [remote](Self::set_remote) rank with which no message was
    /// exchanged before. Returns its number, which is the next one. `None`: the
    /// tables have no room for it, and must [grow](Self::grow) first. Wait-free.
    pub fn admit(&mut self) -> Option<PeerIndex> {
        let shape = MessageShape { peers: self.shape.peers + 1, ..self.shape };
        let has_room = shape.is_valid()
            && self.tables.peers.len() >= shape.peers as usize
            && self.tables.unexpected.len() >= shape.unexpected() + self.extra
            && self.tables.log.len() >= shape.log()
            && self.tables.mirror.len() >= shape.mirrored();
        if !has_room {
            return None;
        }
        let peer = PeerIndex(self.shape.peers);
        self.shape = shape;
        self.set_remote(peer);
        Some(peer)
    }

    /// Replaces the tables by longer ones; the content of the old ones is copied.
    ///
    /// # Errors
    ///
    /// [`SetupError::Tables`] if one of them is shorter, or there are more than 2^20
    /// requests; nothing has happened.
    pub fn grow(&mut self, tables: MessageTables<'m>) -> Result<(), SetupError> {
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
        carry_over(old.peers, tables.peers, MessagePeer::EMPTY);
        carry_over(old.requests, tables.requests, RequestEntry::EMPTY);
        carry_over(old.unexpected, tables.unexpected, UnexpectedMessage::EMPTY);
        carry_over(old.log, tables.log, LoggedMessage::EMPTY);
        carry_over(old.mirror, tables.mirror, MirroredOffer::EMPTY);
        self.tables = tables;
        for index in (requests..self.tables.requests.len()).rev() {
            self.free.push(self.tables.requests, index);
        }
        for index in (unexpected..self.tables.unexpected.len()).rev() {
            self.room.push(self.tables.unexpected, index);
        }
        Ok(())
    }

    /// Returns whether a peer has requested room for more messages that no receive has taken,
    /// while a receive or a probe waits here, and all room was granted: the message for the
    /// receive may be behind them. Then the caller should give [more room](Self::widen), or
    /// the receive waits until others take messages.
    #[inline]
    pub const fn is_cramped(&self) -> bool {
        self.is_cramped
    }

    /// Returns the entries of [`MessageTables::unexpected`] that the machine uses: those of its
    /// shape, and those of [`widen`](Self::widen).
    pub const fn places(&self) -> usize {
        self.shape.unexpected() + self.extra
    }

    /// Lets peers have `more` messages that no receive has taken, beyond their quotas.
    ///
    /// # Errors
    ///
    /// [`SetupError::Tables`] if the table of unexpected messages must [grow](Self::grow)
    /// first; nothing has happened.
    pub fn widen(&mut self, more: u32) -> Result<(), SetupError> {
        let (entries, needed) = (self.tables.unexpected.len(), self.places() + more as usize);
        if entries < needed {
            return Err(SetupError::Tables { entries, needed });
        }
        self.extra += more as usize;
        self.spare += more;
        self.is_cramped = false;
        Ok(())
    }

    /// Returns the requests that can be under way before the tables must
    /// [grow](Self::grow).
    pub const fn requests(&self) -> usize {
        self.tables.requests.len()
    }

    /// Marks a rank as remote: it is on another node, and reached by
    /// [`NetworkLanes`](super::NetworkLanes). It gets offers only when it needs room, and its
    /// board is not looked at.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn set_remote(&mut self, peer: PeerIndex) {
        self.tables.peers[peer.0 as usize].remote = true;
    }
}

/// Copies a table into a longer one, and fills the rest with `empty`.
fn carry_over<T: Copy>(from: &[T], into: &mut [T], empty: T) {
    let (old, new) = into.split_at_mut(from.len());
    old.copy_from_slice(from);
    new.fill(empty);
}

#[cfg(all(test, not(tsumugi_loom)))]
#[allow(unsafe_code)]
mod tests;
