//! What goes over a lane: packets of one to four lines.
//!
//! ```text
//!  head     stamp (32) | kind (8) | count (8) | context (16)
//!  word 0   tag (32) | id (32)
//!       1   a                       an address or a number
//!       2   b                       a length or a set of slots
//!     3-6   inline bytes, or an offer that rides along
//! ```
//!
//! `count` is the number of inline bytes of an [`Inline`](Kind::Inline)
//! packet, flags in all others. Further lines are a stamp and 56 bytes each.
//! The messages of a lane (see [`Kind::is_message`]) count up by themselves;
//! that number is in no packet.

/// Most bytes that travel in a packet: four lines.
pub const INLINE_BYTES_MAX: usize = 8 * INLINE_WORDS;

/// The same in words.
pub const INLINE_WORDS: usize = FIRST_WORDS + 3 * LINE_WORDS;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A message, whole.
    Inline = 1,
    /// A message whose bytes lie in slots: `a` length, `b` slots.
    Eager = 2,
    /// A message that the sender puts into an offered buffer: `id` the post,
    /// `a` length. It is there if [`DONE`](Packet::DONE) is set, else its first
    /// `b` bytes are, and a [`Copied`](Self::Copied) follows. If
    /// [`SPLIT`](Packet::SPLIT) is set both sides copy, and in the place of an
    /// offer stands which send it is, and where.
    Direct = 3,
    /// A message that stays with the sender: `id` the send, `a` length,
    /// `b` address if [`IN_REACH`](Packet::IN_REACH) or
    /// [`BY_KERNEL`](Packet::BY_KERNEL).
    Rts = 4,
    /// The bytes of the receive `id` are in its buffer.
    Copied = 5,
    /// The send `id` has ended: its buffer is not needed any more.
    Fin = 6,
    /// The sender of `id` shall push `a` bytes to the receive `tag`: to
    /// address `b` if [`IN_REACH`](Packet::IN_REACH), else through slots; its
    /// part of them, if [`SPLIT`](Packet::SPLIT).
    Cts = 7,
    /// Bytes of the receive `id`: `a` offset, `b` length and slots.
    Data = 8,
    /// Nothing but an offer.
    Post = 9,
    /// The offer `id` shall be forgotten.
    Cancel = 10,
    /// It is; unused if [`DONE`](Packet::DONE) is set.
    CancelAck = 11,
    /// The first `a` bytes of the receive `id` are in its buffer. A hint: it
    /// may be left out.
    Part = 12,
}

/// A packet without its inline bytes or its offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What it is for.
    pub kind: Kind,
    /// Inline bytes, or flags.
    pub count: u8,
    /// The context of a message.
    pub context: u16,
    /// The tag of a message.
    pub tag: u32,
    /// A request of the receiver's or the sender's.
    pub id: u32,
    /// As the kind says.
    pub a: u64,
    /// As the kind says.
    pub b: u64,
}

/// A posted receive, as its source is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The receive.
    pub id: u32,
    /// How many messages of the source had been taken when it was offered:
    /// those were not for it.
    pub taken: u32,
    /// Which messages it takes.
    pub context: u16,
    /// Under which tag; `None`: any.
    pub tag: Option<u32>,
    /// Where its buffer is; `None`: out of the source's reach.
    pub at: Option<u64>,
    /// How long that is.
    pub room: u64,
}

/// What a packet carries beside its words.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// Nothing.
    Empty,
    /// The `count` bytes at this address.
    Inline(u64),
    /// A posted receive.
    Offer(Offer),
}

impl Kind {
    /// Whether it is a message: these are counted.
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
    /// Flag: what the packet tells of is done.
    pub const DONE: u8 = 1;
    /// Flag: there is an address, and the peer can reach it.
    pub const IN_REACH: u8 = 2;
    /// Flag: it was not possible.
    pub const FAILED: u8 = 4;
    /// Flag: an offer rides along.
    pub const OFFER: u8 = 8;
    /// Flag: both sides copy.
    pub const SPLIT: u8 = 16;
    /// Flag: there is an address that no peer can reach, but the kernel.
    pub const BY_KERNEL: u8 = 32;

    /// A packet of this kind, all else zero.
    #[inline(always)]
    pub const fn new(kind: Kind) -> Self {
        Self { kind, count: 0, context: 0, tag: 0, id: 0, a: 0, b: 0 }
    }

    /// How many lines it takes.
    #[inline(always)]
    pub const fn lines(&self) -> u32 {
        match self.kind {
            Kind::Inline => Self::lines_of(self.count as u64),
            _ => 1,
        }
    }

    /// How many lines an inline message of so many bytes takes.
    #[inline(always)]
    pub const fn lines_of(bytes: u64) -> u32 {
        match bytes {
            0..=32 => 1,
            33..=88 => 2,
            89..=144 => 3,
            _ => 4,
        }
    }

    /// How long an inline message is, whatever the packet says.
    #[inline(always)]
    pub(super) fn inline_len(&self) -> u64 {
        u64::from(self.count).min(INLINE_BYTES_MAX as u64)
    }

    /// Whether a flag is set; never in an inline message.
    #[inline(always)]
    pub fn has(&self, flag: u8) -> bool {
        self.kind != Kind::Inline && self.count & flag != 0
    }

    /// The first word of its first line, but for the stamp.
    #[inline(always)]
    pub(super) const fn head(&self) -> u64 {
        (self.kind as u64) << 32 | (self.count as u64) << 40 | (self.context as u64) << 48
    }

    /// The packet of such a word and the three after it. `None`: no packet.
    #[inline(always)]
    pub(super) const fn from_words(head: u64, first: u64, a: u64, b: u64) -> Option<Self> {
        let Some(kind) = Kind::from_bits((head >> 32) as u8) else { return None };
        let count = (head >> 40) as u8;
        let context = (head >> 48) as u16;
        Some(Self { kind, count, context, tag: first as u32, id: (first >> 32) as u32, a, b })
    }
}

impl Offer {
    /// As it rides in a line.
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

/// Inline words of the first line, and of each further one.
pub(super) const FIRST_WORDS: usize = 4;
pub(super) const LINE_WORDS: usize = 7;
/// In the last word of an offer.
const ANY_TAG: u64 = 1 << 48;
const REACHABLE: u64 = 1 << 49;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        for bits in 0..=u8::MAX {
            let Some(kind) = Kind::from_bits(bits) else { continue };
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
}
