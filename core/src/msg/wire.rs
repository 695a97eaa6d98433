//! The interface to the part that carries packets and moves bytes: lanes in
//! shared memory, or a network of a test.

use super::packet::{INLINE_WORDS, Packet, PacketLoad};
use crate::mem::PeerIndex;

/// Packets in lanes, one for each ordered pair of ranks; slots for the bytes of
/// larger messages; the counts that a receiver returns.
///
/// When `pop` or `returned` shows something of a peer, then everything that the
/// peer did before to this rank's lanes and buffers is visible, too. Addresses
/// are those of [`MessageBytes`](super::MessageBytes); a length never exceeds the length that
/// was given with the address.
pub trait LaneTransport {
    /// Returns whether `lines` more lines fit into the lane to that rank. Reads
    /// the counts that the rank has returned if the known ones do not suffice.
    fn has_room(&mut self, to: PeerIndex, lines: u32) -> bool;

    /// Puts a packet into the lane; there must be room.
    fn push(&mut self, to: PeerIndex, packet: &Packet, load: PacketLoad);

    /// Returns the next packet of the lane from that rank; it stays there.
    fn peek(&mut self, from: PeerIndex) -> Option<Packet>;

    /// Copies the first `len` inline bytes of the next packet to an address.
    fn deliver(&mut self, from: PeerIndex, at: u64, len: u64);

    /// Copies the inline bytes of the next packet to the start of `into`.
    fn keep(&mut self, from: PeerIndex, into: &mut [u64; INLINE_WORDS]);

    /// Copies the bytes that `keep` has stored to an address.
    fn deliver_kept(&mut self, kept: &[u64; INLINE_WORDS], at: u64, len: u64);

    /// Returns the offer in the next packet.
    fn offer(&mut self, from: PeerIndex) -> super::Offer;

    /// Takes the next packet out of the lane.
    fn pop(&mut self, from: PeerIndex);

    /// Returns the counts that that rank has returned last.
    fn returned(&mut self, to: PeerIndex) -> Returned;

    /// Returns `returned` and the number of taken lines to that rank. Returns
    /// whether the rank had requested more, which this answers: then the caller
    /// must [ring](Self::ring) it.
    fn give_back(&mut self, from: PeerIndex, returned: Returned) -> bool;

    /// Returns how many lines were taken from that rank's lane and not given
    /// back.
    fn untold(&mut self, from: PeerIndex) -> u32;

    /// Requests more from the receiver than it has returned, and wakes it if it
    /// sleeps. Counts that the receiver returned before it could see the request
    /// are visible after this call.
    fn set_starved(&mut self, to: PeerIndex);

    /// Returns whether the sender has requested more since the last `give_back`
    /// to it.
    fn is_starved(&mut self, from: PeerIndex) -> bool;

    /// Orders what was given back before the next `is_starved`.
    fn fence(&mut self);

    /// Wakes a rank that may sleep until something is given back to it. (After a
    /// `push` the wire itself wakes the receiver.)
    fn ring(&mut self, from: PeerIndex);

    /// Copies bytes into these slots of the lane to that rank, the lowest
    /// slot first.
    fn write_slots(&mut self, to: PeerIndex, slots: u32, at: u64, len: u64);

    /// Copies bytes out of these slots of the lane from that rank.
    fn read_slots(&mut self, from: PeerIndex, slots: u32, at: u64, len: u64);

    /// Copies bytes between an own buffer and a peer's buffer.
    fn copy(&mut self, copy: &Copy);

    /// Opens the [`Split`](super::Split) of the lane to that rank for a receive
    /// of that rank. Returns whether it was free; always false where lanes have
    /// none.
    fn split_to(&mut self, to: PeerIndex, id: u32) -> bool {
        let _ = (to, id);
        false
    }

    /// Does the same for the lane from that rank, for an own receive.
    fn split_from(&mut self, from: PeerIndex, id: u32) -> bool {
        let _ = (from, id);
        false
    }

    /// Prefetches bytes of an own buffer that a peer's streaming stores have
    /// written and that will be read soon. A hint.
    fn come(&mut self, at: u64, len: u64) {
        let _ = (at, len);
    }
}

/// The counts that a receiver returns to a sender (credits). Counts wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// Lines taken out of the lane, ever. The wire itself counts them.
    pub lines: u32,
    /// Messages taken out of the lane, ever.
    pub taken: u32,
    /// Messages that have met their receive, ever.
    pub matched: u32,
    /// A bit for each slot, which is inverted when the slot is free again.
    pub slots: u32,
}

/// Bytes to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The rank of the other buffer.
    pub peer: PeerIndex,
    /// The source address. For a rank of another node it is the
    /// [place](super::Buffers::place) that this rank has sent, which is not to be
    /// trusted.
    pub from: u64,
    /// The destination address.
    pub to: u64,
    /// The number of bytes.
    pub len: u64,
    /// Past the cache, by non-temporal stores.
    pub streaming: bool,
    /// The peer's buffer is out of reach: only the kernel may copy from it. Such
    /// a copy is always a [`CopyJob`](super::CopyJob), and may fail.
    pub by_kernel: bool,
}
