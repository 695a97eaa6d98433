//! One step of a collective, and the bytes on which it works.

use core::ops::Range;

/// A buffer of one rank's part in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollBuffer {
    /// What this rank contributes; only read.
    Input,
    /// The result of this rank.
    Output,
    /// Memory for parts that are on their way, of
    /// [`CollPlan::scratch_bytes`](super::CollPlan::scratch_bytes) bytes.
    Scratch,
}

/// Some bytes of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSpan {
    /// The buffer.
    pub buffer: CollBuffer,
    /// The first byte.
    pub at: usize,
    /// The number of bytes.
    pub len: usize,
}

/// The order in which an operation that does not commute takes its two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CombineOrder {
    /// `into = from ∘ into`: the bytes that came are of lower ranks.
    FromFirst,
    /// `into = into ∘ from`: the bytes that came are of higher ranks.
    IntoFirst,
}

/// One step of a rank's part in a collective. Peers are places in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollStep {
    /// Copies bytes between two buffers; both spans have one length.
    Copy {
        /// The source.
        from: BufferSpan,
        /// The destination.
        to: BufferSpan,
    },
    /// Combines elements into others by the operation of the collective.
    Combine {
        /// The side that is only read.
        from: BufferSpan,
        /// The side that has the result afterwards.
        into: BufferSpan,
        /// Which side is the first argument.
        order: CombineOrder,
    },
    /// Sends bytes, which do not change before the round has ended.
    Send {
        /// The place of the receiver in the group.
        to: u32,
        /// The bytes.
        from: BufferSpan,
    },
    /// Receives exactly as many bytes.
    Receive {
        /// The place of the sender in the group.
        from: u32,
        /// Where they go.
        into: BufferSpan,
    },
    /// Begins a collective in the rows of a group ([`row`](crate::coll::row)), and publishes
    /// these bytes, if others need some of this rank.
    Enter {
        /// The bytes.
        from: Option<BufferSpan>,
    },
    /// Takes the bytes that a member has published.
    Take {
        /// The place of the member.
        member: u32,
        /// The first of the bytes that are taken.
        at: usize,
        /// The bytes that the member publishes; `None`: of no matter.
        value_bytes: Option<usize>,
        /// Where they go.
        into: BufferSpan,
        /// They are combined with what is there, in this order.
        combined: Option<CombineOrder>,
    },
    /// Ends that collective.
    Leave {
        /// How many collectives earlier all members have surely ended one; `None`: not known.
        all_left: Option<u64>,
    },
}

impl BufferSpan {
    /// No bytes.
    pub const EMPTY: Self = Self { buffer: CollBuffer::Scratch, at: 0, len: 0 };

    /// The first `len` bytes of a buffer.
    pub const fn first(buffer: CollBuffer, len: usize) -> Self {
        Self { buffer, at: 0, len }
    }

    /// A range of these bytes, counted from the first of them.
    pub const fn part(self, range: Range<usize>) -> Self {
        Self { buffer: self.buffer, at: self.at + range.start, len: range.end - range.start }
    }

    /// As many bytes of the scratch buffer, from `at` on.
    pub(super) const fn scratch(at: usize, len: usize) -> Self {
        Self { buffer: CollBuffer::Scratch, at, len }
    }
}
