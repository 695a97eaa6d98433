//! The seam to whatever carries packets and moves bytes: lanes in shared
//! memory, or a network of a test.

use super::packet::{INLINE_WORDS, Load, Packet};
use crate::mem::Rank;

/// Packets in lanes, one for each ordered pair of ranks; slots for the bytes
/// of larger messages; the word that a receiver returns.
///
/// Whatever `pop` or `returned` shows of a peer, everything that the peer did
/// to this rank's lanes and buffers before is visible, too. Addresses are
/// those of [`Bytes`](super::Bytes); a length is never beyond what was given
/// with the address.
pub trait Wire {
    /// Whether `lines` more lines fit into the lane to that rank. What the
    /// rank has returned is looked at if they do not without.
    fn has_room(&mut self, to: Rank, lines: u32) -> bool;

    /// Puts a packet into the lane, for which there is room.
    fn push(&mut self, to: Rank, packet: &Packet, load: Load);

    /// The next packet of the lane from that rank; it stays there.
    fn peek(&mut self, from: Rank) -> Option<Packet>;

    /// Copies the first `len` inline bytes of that packet to an address.
    fn deliver(&mut self, from: Rank, at: u64, len: u64);

    /// Copies its inline bytes to the start of `into`.
    fn keep(&mut self, from: Rank, into: &mut [u64; INLINE_WORDS]);

    /// Copies such words to an address.
    fn deliver_kept(&mut self, kept: &[u64; INLINE_WORDS], at: u64, len: u64);

    /// The offer that rides on it.
    fn offer(&mut self, from: Rank) -> super::Offer;

    /// Takes the packet out of the lane.
    fn pop(&mut self, from: Rank);

    /// What that rank has returned last.
    fn returned(&mut self, to: Rank) -> Returned;

    /// Returns to that rank: this, and the lines that were taken. Whether it
    /// had asked for more, which this answers: then it is to be
    /// [rung](Self::ring).
    fn give_back(&mut self, from: Rank, returned: Returned) -> bool;

    /// Lines of the lane from that rank taken since they were given back.
    fn untold(&mut self, from: Rank) -> u32;

    /// Says to the receiver that more is needed than it has returned, and
    /// wakes it if it sleeps. What it returned before it could see that is
    /// seen from here on.
    fn set_starved(&mut self, to: Rank);

    /// Whether the sender has said so since something was given back to it.
    fn is_starved(&mut self, from: Rank) -> bool;

    /// Orders what was given back before the next `is_starved`.
    fn fence(&mut self);

    /// Something was given back to a rank that may sleep until then. (After a
    /// `push` the receiver is woken by the wire itself.)
    fn ring(&mut self, from: Rank);

    /// Copies bytes into these slots of the lane to that rank, the lowest
    /// slot first.
    fn write_slots(&mut self, to: Rank, slots: u32, at: u64, len: u64);

    /// Copies bytes out of these slots of the lane from that rank.
    fn read_slots(&mut self, from: Rank, slots: u32, at: u64, len: u64);

    /// Copies bytes between an own buffer and one of a peer's.
    fn copy(&mut self, copy: &Copy);

    /// Opens the [`Split`](super::Split) of the lane to that rank for a
    /// receive of its. Whether it was free; never where lanes have none.
    fn split_to(&mut self, to: Rank, id: u32) -> bool {
        let _ = (to, id);
        false
    }

    /// The same of the lane from that rank, for an own receive.
    fn split_from(&mut self, from: Rank, id: u32) -> bool {
        let _ = (from, id);
        false
    }

    /// These bytes of an own buffer were put there by a peer's streaming
    /// stores, and will be read soon. A hint.
    fn come(&mut self, at: u64, len: u64) {
        let _ = (at, len);
    }
}

/// What a receiver returns to a sender. Counts wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// Lines taken out of the lane, ever. The wire counts them itself.
    pub lines: u32,
    /// Messages taken out of the lane, ever.
    pub taken: u32,
    /// Messages that have met their receive, ever.
    pub matched: u32,
    /// A bit for each slot, which turns over when the slot is free again.
    pub slots: u32,
}

/// Bytes to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The rank that has the other buffer.
    pub peer: Rank,
    /// From this address; of a rank of another node it is the
    /// [place](super::Buffers::place) that it has told, which is not to be
    /// trusted.
    pub from: u64,
    /// To this one.
    pub to: u64,
    /// So many.
    pub len: u64,
    /// Past the cache, by non-temporal stores.
    pub streaming: bool,
    /// The peer's buffer is out of reach: only the kernel may copy from it.
    /// That is always tried as a [`Job`](super::Job), and may fail.
    pub by_kernel: bool,
}
