//! Packets of a lane: of one to four lines.
//!
//! ```text
//!  head     stamp (32) | kind (8) | count (8) | context (16)
//!  word 0   tag (32) | id (32)
//!       1   a                       an address or a number
//!       2   b                       a length or a set of slots
//!     3-6   inline bytes, or an offer
//! ```
//!
//! `count` is the number of inline bytes of an [`Inline`](Kind::Inline) packet,
//! and flags in all others. Each further line has a stamp and 56 bytes. The
//! messages of a lane (see [`PacketKind::is_message`]) are numbered in their order;
//! that number is in no packet.

/// Most inline bytes of a packet, which has four lines then.
pub const INLINE_BYTES_MAX: usize = 8 * INLINE_WORDS;

/// Most inline words of a packet.
pub const INLINE_WORDS: usize = FIRST_WORDS + 3 * LINE_WORDS;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketKind {
    /// A whole message.
    Inline = 1,
    /// A message with its bytes in slots: `a` length, `b` slots.
    Eager = 2,
    /// A message that the sender puts into an offered buffer: `id` the post, `a`
    /// length. All bytes are there if [`DONE`](Packet::DONE) is set, else the
    /// first `b` bytes are, and a [`Copied`](Self::Copied) follows. If
    /// [`SPLIT`](Packet::SPLIT) is set, both sides copy, and the place of an
    /// offer contains the send and its address.
    Direct = 3,
    /// The announcement of a message that stays with the sender: `id` the send,
    /// `a` length, `b` address if [`IN_REACH`](Packet::IN_REACH) or
    /// [`BY_KERNEL`](Packet::BY_KERNEL).
    Rts = 4,
    /// All bytes of the receive `id` are in its buffer.
    Copied = 5,
    /// The receiver has ended the send `id`: its buffer is not needed any more.
    Fin = 6,
    /// A request to the sender of `id` to push `a` bytes to the receive `tag`: to
    /// address `b` if [`IN_REACH`](Packet::IN_REACH), else through slots; only
    /// the sender's part of them, if [`SPLIT`](Packet::SPLIT).
    Cts = 7,
    /// Bytes of the receive `id`: `a` offset, `b` length and slots.
    Data = 8,
    /// Only an offer.
    Post = 9,
    /// A request to forget the offer `id`.
    Cancel = 10,
    /// The answer to a `Cancel`: the offer `id` is forgotten. A message had used
    /// it if [`DONE`](Packet::DONE) is set.
    CancelAck = 11,
    /// The first `a` bytes of the receive `id` are in its buffer. A hint: it
    /// may be left out.
    Part = 12,
}

/// A packet without its inline bytes or its offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its kind.
    pub kind: PacketKind,
    /// Inline bytes, or flags.
    pub count: u8,
    /// The context of a message.
    pub context: u16,
    /// The tag of a message.
    pub tag: u32,
    /// The name of a request of the receiver or of the sender.
    pub id: u32,
    /// As described at the kind.
    pub a: u64,
    /// As described at the kind.
    pub b: u64,
}

/// A posted receive, as it is sent to its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The name of the receive.
    pub id: u32,
    /// How many messages of the source had been taken when the receive was
    /// offered: these were not for it.
    pub taken: u32,
    /// The context of the messages that it takes.
    pub context: u16,
    /// Their tag; `None`: any tag.
    pub tag: Option<u32>,
    /// The address of its buffer; `None`: out of the source's reach.
    pub at: Option<u64>,
    /// The length of its buffer.
    pub room: u64,
}

/// The content of a packet beside its words.
#[derive(Clone, Copy, Debug)]
pub enum PacketLoad {
    /// Nothing.
    Empty,
    /// The `count` bytes at this address.
    Inline(u64),
    /// A posted receive.
    Offer(Offer),
}

impl PacketKind {
    /// Returns whether a packet of this kind is a message: messages are counted.
    #[inline(always)]
    pub const fn is_message(self) -> bool {
        (self as u8) <= Self::Rts as u8
    }

    #[inline(always)]
    pub(super) const fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            1 => Self::Inline,
            2 => Self::Eager,
            3 => Self::Direct,
            4 => Self::Rts,
            5 => Self::Copied,
            6 => Self::Fin,
            7 => Self::Cts,
            8 => Self::Data,
            9 => Self::Post,
            10 => Self::Cancel,
            11 => Self::CancelAck,
            12 => Self::Part,
            _ => return None,
        })
    }
}

impl Packet {
    /// Flag: the bytes are in the buffer; in a `CancelAck`, the offer was used.
    pub const DONE: u8 = 1;
    /// Flag: there is an address, and the peer can reach it.
    pub const IN_REACH: u8 = 2;
    /// Flag: the copy has failed.
    pub const FAILED: u8 = 4;
    /// Flag: the packet contains an offer.
    pub const OFFER: u8 = 8;
    /// Flag: both sides copy.
    pub const SPLIT: u8 = 16;
    /// Flag: there is an address that only the kernel can reach, and no peer.
    pub const BY_KERNEL: u8 = 32;

    /// Makes a packet of this kind, with all other fields zero.
    #[inline(always)]
    pub const fn new(kind: PacketKind) -> Self {
        Self { kind, count: 0, context: 0, tag: 0, id: 0, a: 0, b: 0 }
    }

    /// Returns how many lines the packet takes.
    #[inline(always)]
    pub const fn lines(&self) -> u32 {
        match self.kind {
            PacketKind::Inline => Self::lines_of(self.count as u64),
            _ => 1,
        }
    }

    /// Returns how many lines an inline message of `bytes` bytes takes.
    #[inline(always)]
    pub const fn lines_of(bytes: u64) -> u32 {
        match bytes {
            0..=32 => 1,
            33..=88 => 2,
            89..=144 => 3,
            _ => 4,
        }
    }

    /// Returns the length of an inline message, limited to the maximum.
    #[inline(always)]
    pub(super) fn inline_len(&self) -> u64 {
        u64::from(self.count).min(INLINE_BYTES_MAX as u64)
    }

    /// Returns whether a flag is set; always false for an inline message.
    #[inline(always)]
    pub fn has(&self, flag: u8) -> bool {
        self.kind != PacketKind::Inline && self.count & flag != 0
    }

    /// Returns the first word of the first line, without the stamp.
    #[inline(always)]
    pub(super) const fn head(&self) -> u64 {
        (self.kind as u64) << 32 | (self.count as u64) << 40 | (self.context as u64) << 48
    }

    /// Decodes such a word and the three words after it. `None`: not a packet.
    #[inline(always)]
    pub(super) const fn from_words(head: u64, first: u64, a: u64, b: u64) -> Option<Self> {
        let Some(kind) = PacketKind::from_bits((head >> 32) as u8) else { return None };
        let count = (head >> 40) as u8;
        let context = (head >> 48) as u16;
        Some(Self { kind, count, context, tag: first as u32, id: (first >> 32) as u32, a, b })
    }
}

impl Offer {
    /// Encodes the offer as words of a line.
    #[inline(always)]
    pub(super) const fn to_words(self) -> [u64; FIRST_WORDS] {
        let (tag, any) = match self.tag {
            Some(tag) => (tag, 0),
            None => (0, ANY_TAG),
        };
        let (at, in_reach) = match self.at {
            Some(at) => (at, REACHABLE),
            None => (0, 0),
        };
        let last = self.taken as u64 | (self.context as u64) << 32 | any | in_reach;
        [tag as u64 | (self.id as u64) << 32, at, self.room, last]
    }

    #[inline(always)]
    pub(super) fn from_words(words: [u64; FIRST_WORDS]) -> Self {
        Self {
            id: (words[0] >> 32) as u32,
            taken: words[3] as u32,
            context: (words[3] >> 32) as u16,
            tag: (words[3] & ANY_TAG == 0).then_some(words[0] as u32),
            at: (words[3] & REACHABLE != 0).then_some(words[1]),
            room: words[2],
        }
    }
}

/// Inline words of the first line, and of each further line.
pub(super) const FIRST_WORDS: usize = 4;
pub(super) const LINE_WORDS: usize = 7;
/// Flags in the last word of an offer.
const ANY_TAG: u64 = 1 << 48;
const REACHABLE: u64 = 1 << 49;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        for bits in 0..=u8::MAX {
            let Some(kind) = PacketKind::from_bits(bits) else { continue };
            assert_eq!(kind as u8, bits);
            let packet = Packet { kind, count: 200, context: 0xfffe, tag: 1, id: !0, a: 5, b: !0 };
            let first = u64::from(packet.tag) | u64::from(packet.id) << 32;
            let stamped = packet.head() | 77;
            assert_eq!(Packet::from_words(stamped, first, packet.a, packet.b), Some(packet));
        }
        assert_eq!(Packet::from_words(0, 0, 0, 0), None);
    }

    #[test]
    fn an_offer_is_read_as_it_was_written() {
        for (tag, at) in [(None, Some(!0)), (Some(0), None), (Some(u32::MAX), Some(0))] {
            let offer = Offer { id: 9, taken: !0, context: !0, tag, at, room: 1 << 40 };
            assert_eq!(Offer::from_words(offer.to_words()), offer);
        }
    }

    #[test]
    fn lines_have_room_for_their_bytes() {
        for bytes in 0..=INLINE_BYTES_MAX {
            let lines = Packet::lines_of(bytes as u64) as usize;
            let room = 8 * (FIRST_WORDS + (lines - 1) * LINE_WORDS);
            assert!(bytes <= room && (lines == 1 || bytes > room - 8 * LINE_WORDS), "{bytes}");
        }
    }
    #[test]
    fn flags_are_those_of_packets_that_have_no_inline_bytes() {
        let flags = [Packet::DONE, Packet::IN_REACH, Packet::FAILED, Packet::OFFER];
        for flag in flags.into_iter().chain([Packet::SPLIT, Packet::BY_KERNEL]) {
            let packet = Packet { count: flag, ..Packet::new(PacketKind::Fin) };
            assert!(packet.has(flag) && !Packet::new(PacketKind::Fin).has(flag), "{flag}");
            let others = Packet { count: !flag, ..packet };
            assert!(!others.has(flag), "{flag}");
            assert!(!Packet { kind: PacketKind::Inline, ..packet }.has(flag), "{flag} bytes");
        }
    }

    #[test]
    fn an_inline_message_is_no_longer_than_a_packet() {
        let packet = |count| Packet { count, ..Packet::new(PacketKind::Inline) };
        assert_eq!([0, 8, 200].map(|count| packet(count).inline_len()), [0, 8, 200]);
        assert_eq!(packet(u8::MAX).inline_len(), INLINE_BYTES_MAX as u64);
    }
}
