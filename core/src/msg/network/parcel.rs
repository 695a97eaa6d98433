//! The format of a parcel: a head and records, or an acknowledgement alone.
//!
//! ```text
//!  head     kind (8) | 0 (24) | number | acknowledged | first line | lines
//!           returned: lines | taken | matched | slots | asked
//!  records  packet  kind (8) | count (8) | context (16) | tag | id
//!                   then inline bytes, or a (64) | b (64) and maybe an offer
//!           bytes   0 (8) | slot (8) | 0 (16) | offset | length, then the bytes
//!
//!  alone    kind (8) | 0 (24) | acknowledged
//! ```
//!
//! Words without a width have 32 bits; all are little-endian. The bytes of a
//! packet that names slots come before it, in as many pieces and parcels as they
//! need. All of it comes from another node: every length, kind and slot is
//! checked before anything of the parcel is used.

use crate::msg::packet::{FIRST_WORDS, INLINE_BYTES_MAX, Offer, Packet, PacketKind};
use crate::msg::shape::MessageShape;
use crate::msg::wire::Returned;
use core::fmt;

/// Bytes of the shortest parcel that can carry every packet.
pub const PARCEL_BYTES_MIN: usize = HEAD_BYTES + RECORD_BYTES_MAX;

/// Why a parcel was refused; then nothing of it was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParcelError {
    /// The parcel ends inside of a record or of its head.
    Short {
        /// The bytes that are there, from the incomplete head or record on.
        bytes: usize,
    },
    /// The parcel, or a record of it, has an unknown kind.
    Kind(u8),
    /// A parcel with this number has come before, or is too early.
    Number(u32),
    /// Its packets have no place in the lane.
    Lines {
        /// The first line of the packets.
        start: u32,
        /// The number of lines according to the head.
        lines: u32,
    },
    /// More inline bytes than a packet has room for.
    Inline(u8),
    /// Bytes for a slot that does not exist, or beyond the end of a slot.
    Slot(u8),
    /// The parcel acknowledges parcels that were not sent.
    Acknowledged(u32),
    /// There is no such rank, it was not connected, or it was lost.
    NoLane,
    /// An earlier parcel was refused: nothing more can follow.
    Broken,
}

/// The part of a parcel before the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ParcelHead {
    pub(super) number: u32,
    pub(super) acked: u32,
    /// The position of the first line, and how many lines the packets take.
    pub(super) start: u32,
    pub(super) lines: u32,
    pub(super) returned: Returned,
    pub(super) asked: u32,
}

/// A parcel with valid records.
#[derive(Clone, Copy, Debug)]
pub(super) enum ParsedParcel<'b> {
    Numbered(ParcelHead, ParcelRecords<'b>),
    Acknowledged(u32),
}

/// Records that were checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParcelRecords<'b>(&'b [u8]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParcelRecord<'b> {
    /// A packet, as it lies in a lane.
    Packet(&'b [u8]),
    /// Bytes of a slot.
    Bytes { slot: u8, offset: u32, bytes: &'b [u8] },
}

impl<'b> ParsedParcel<'b> {
    /// Parses a parcel of a lane of this shape.
    pub(super) fn parse(bytes: &'b [u8], shape: &MessageShape) -> Result<Self, ParcelError> {
        let short = ParcelError::Short { bytes: bytes.len() };
        match *bytes.first().ok_or(short)? {
            NUMBERED => {
                let (head, records) = bytes.split_at_checked(HEAD_BYTES).ok_or(short)?;
                let head = ParcelHead::from_bytes(head);
                let records = ParcelRecords(records);
                let lines = records.check(shape)?;
                if lines != u64::from(head.lines) {
                    let ParcelHead { start, lines, .. } = head;
                    return Err(ParcelError::Lines { start, lines });
                }
                Ok(Self::Numbered(head, records))
            }
            ALONE if bytes.len() == ALONE_BYTES => Ok(Self::Acknowledged(word(bytes, 4))),
            ALONE => Err(short),
            kind => Err(ParcelError::Kind(kind)),
        }
    }
}

impl ParcelHead {
    pub(super) fn write(&self, into: &mut [u8]) {
        let Returned { lines, taken, matched, slots } = self.returned;
        let words = [self.number, self.acked, self.start, self.lines, lines, taken, matched, slots];
        into[..4].copy_from_slice(&[NUMBERED, 0, 0, 0]);
        for (at, word) in words.into_iter().chain([self.asked]).enumerate() {
            into[4 + 4 * at..][..4].copy_from_slice(&word.to_le_bytes());
        }
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let at = |index: usize| word(bytes, 4 + 4 * index);
        Self {
            number: at(0),
            acked: at(1),
            start: at(2),
            lines: at(3),
            returned: Returned { lines: at(4), taken: at(5), matched: at(6), slots: at(7) },
            asked: at(8),
        }
    }
}

impl ParcelRecords<'_> {
    /// Checks the records. Returns how many lines their packets take.
    fn check(mut self, shape: &MessageShape) -> Result<u64, ParcelError> {
        let mut lines = 0;
        while !self.0.is_empty() {
            match self.split()? {
                ParcelRecord::Packet(bytes) => {
                    lines += u64::from(lines_of(bytes));
                    let kind = PacketKind::from_bits(bytes[0]);
                    if kind == Some(PacketKind::Inline) && usize::from(bytes[1]) > INLINE_BYTES_MAX
                    {
                        return Err(ParcelError::Inline(bytes[1]));
                    }
                }
                ParcelRecord::Bytes { slot, offset, bytes } => {
                    let end = u64::from(offset) + bytes.len() as u64;
                    if u32::from(slot) >= shape.slots || end > u64::from(shape.slot_bytes) {
                        return Err(ParcelError::Slot(slot));
                    }
                }
            }
        }
        Ok(lines)
    }

    fn split(&mut self) -> Result<ParcelRecord<'_>, ParcelError> {
        let bytes = self.0;
        let short = ParcelError::Short { bytes: bytes.len() };
        let &[kind, count, ..] = bytes else { return Err(short) };
        if kind == BYTES {
            let (head, rest) = bytes.split_at_checked(BYTES_HEAD).ok_or(short)?;
            let (offset, len) = (word(head, 4), word(head, 8));
            let (bytes, rest) = rest.split_at_checked(len as usize).ok_or(short)?;
            self.0 = rest;
            return Ok(ParcelRecord::Bytes { slot: count, offset, bytes });
        }
        let len = record_bytes(kind, count).ok_or(ParcelError::Kind(kind))?;
        let (packet, rest) = bytes.split_at_checked(len).ok_or(short)?;
        self.0 = rest;
        Ok(ParcelRecord::Packet(packet))
    }
}

impl<'b> Iterator for ParcelRecords<'b> {
    type Item = ParcelRecord<'b>;

    fn next(&mut self) -> Option<ParcelRecord<'b>> {
        // The record must borrow the bytes and not this iterator.
        let mut rest = ParcelRecords(self.0);
        let record = match rest.split().ok()? {
            ParcelRecord::Packet(packet) => ParcelRecord::Packet(&self.0[..packet.len()]),
            ParcelRecord::Bytes { slot, offset, bytes } => {
                ParcelRecord::Bytes { slot, offset, bytes: &self.0[BYTES_HEAD..][..bytes.len()] }
            }
        };
        let len = match record {
            ParcelRecord::Packet(packet) => packet.len(),
            ParcelRecord::Bytes { bytes, .. } => BYTES_HEAD + bytes.len(),
        };
        self.0 = &self.0[len..];
        Some(record)
    }
}

/// Writes an acknowledgement alone. Returns its length.
pub(super) fn write_alone(acked: u32, into: &mut [u8]) -> usize {
    into[..4].copy_from_slice(&[ALONE, 0, 0, 0]);
    into[4..ALONE_BYTES].copy_from_slice(&acked.to_le_bytes());
    ALONE_BYTES
}

/// Writes the head of a record of bytes; the bytes follow it.
pub(super) fn write_bytes_head(slot: u8, offset: u32, len: u32, into: &mut [u8]) {
    into[..4].copy_from_slice(&[BYTES, slot, 0, 0]);
    into[4..8].copy_from_slice(&offset.to_le_bytes());
    into[8..12].copy_from_slice(&len.to_le_bytes());
}

/// Writes a packet as a record, without its inline bytes. Returns the length with
/// them.
pub(super) fn write_packet(
    packet: &Packet,
    offer: Option<Offer>,
    into: &mut [u8; RECORD_BYTES_MAX],
) -> usize {
    into[..2].copy_from_slice(&[packet.kind as u8, packet.count]);
    into[2..4].copy_from_slice(&packet.context.to_le_bytes());
    into[4..8].copy_from_slice(&packet.tag.to_le_bytes());
    into[8..12].copy_from_slice(&packet.id.to_le_bytes());
    if packet.kind != PacketKind::Inline {
        into[12..20].copy_from_slice(&packet.a.to_le_bytes());
        into[20..28].copy_from_slice(&packet.b.to_le_bytes());
        for (index, word) in offer.map_or([0; FIRST_WORDS], Offer::to_words).iter().enumerate() {
            into[WORDS_HEAD + 8 * index..][..8].copy_from_slice(&word.to_le_bytes());
        }
    }
    record_bytes(packet.kind as u8, packet.count).expect("a packet to another node has a record")
}

/// Returns the packet of a record that was checked.
pub(super) fn packet_of(bytes: &[u8]) -> Option<Packet> {
    let kind = PacketKind::from_bits(bytes[0])?;
    let (a, b) = match kind {
        PacketKind::Inline => (0, 0),
        _ => (long(bytes, 12), long(bytes, 20)),
    };
    let mut packet = Packet {
        kind,
        count: bytes[1],
        context: u16::from_le_bytes([bytes[2], bytes[3]]),
        tag: word(bytes, 4),
        id: word(bytes, 8),
        a,
        b,
    };
    if kind != PacketKind::Rts {
        conceal(&mut packet);
    }
    Some(packet)
}

/// Returns the offer in a record.
pub(super) fn offer_of(bytes: &[u8]) -> Offer {
    let words = core::array::from_fn(|index| long(bytes, WORDS_HEAD + 8 * index));
    Offer { at: None, ..Offer::from_words(words) }
}

/// Removes an address, because addresses have no meaning on another node. (The
/// word of an Rts may have one: see [`Buffers::place`](super::Buffers::place).)
pub(super) fn conceal(packet: &mut Packet) {
    if matches!(packet.kind, PacketKind::Rts | PacketKind::Cts) {
        packet.count &= !(Packet::IN_REACH | Packet::SPLIT);
        packet.b = 0;
    }
}

/// Returns the slots that a packet names, and how many bytes are in them.
pub(super) const fn payload(packet: &Packet) -> (u32, u64) {
    match packet.kind {
        PacketKind::Eager => (packet.b as u32, packet.a),
        PacketKind::Data => ((packet.b >> 32) as u32, packet.b & u32::MAX as u64),
        _ => (0, 0),
    }
}

/// Returns how many lines a packet takes.
pub(super) fn lines_of(record: &[u8]) -> u32 {
    let inline = record[0] == PacketKind::Inline as u8;
    if inline { Packet::lines_of(record[1].into()) } else { 1 }
}

/// Returns the length of the record of a packet. `None`: not a packet, or one
/// that would access another node's buffer.
pub(super) const fn record_bytes(kind: u8, count: u8) -> Option<usize> {
    match PacketKind::from_bits(kind) {
        None | Some(PacketKind::Direct | PacketKind::Copied) => None,
        Some(PacketKind::Inline) => Some(INLINE_HEAD + count as usize),
        Some(_) if count & Packet::OFFER != 0 => Some(WORDS_HEAD + 8 * FIRST_WORDS),
        Some(_) => Some(WORDS_HEAD),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl fmt::Display for ParcelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { bytes } => {
                write!(f, "a head or record of a parcel is incomplete: {bytes} bytes are left")
            }
            Self::Kind(kind) => write!(f, "a parcel or a record of it has unknown kind {kind}"),
            Self::Number(number) => write!(f, "parcel {number} has come before or is too early"),
            Self::Lines { start, lines } => {
                write!(f, "{lines} lines from line {start} on have no place in the lane")
            }
            Self::Inline(bytes) => {
                write!(f, "a packet has {bytes} inline bytes: the limit is {INLINE_BYTES_MAX}")
            }
            Self::Slot(slot) => {
                write!(f, "the bytes for slot {slot} do not fit, or the lane has no such slot")
            }
            Self::Acknowledged(number) => {
                write!(f, "a parcel acknowledges parcels before {number} that were not sent")
            }
            Self::NoLane => f.write_str("there is no lane from the sender of the parcel"),
            Self::Broken => f.write_str("an earlier parcel of this lane was refused"),
        }
    }
}

impl core::error::Error for ParcelError {}

/// Bytes before the content: of a parcel, of a record of bytes, of an inline
/// packet; of any other packet: bytes before its offer.
pub(super) const HEAD_BYTES: usize = 40;
pub(super) const BYTES_HEAD: usize = 12;
pub(super) const INLINE_HEAD: usize = 12;
const WORDS_HEAD: usize = 28;
/// The longest record of a packet.
pub(super) const RECORD_BYTES_MAX: usize = INLINE_HEAD + INLINE_BYTES_MAX;
/// Kinds of parcels, and the kind of a record that is no packet.
const NUMBERED: u8 = 1;
const ALONE: u8 = 2;
const BYTES: u8 = 0;
const ALONE_BYTES: usize = 8;
