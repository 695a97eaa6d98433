//! From which size on a message goes which way. Measured at start, for each
//! peer; none of them changes what is received.

use super::packet::INLINE_BYTES_MAX;

/// Sizes in bytes at which the way of a message to one peer changes.
///
/// ```text
///             0 .. inline_max      inside the packet
///   offered:  nt_from ..           into the buffer, past the cache
///             pull_from ..         fetched by the receiver
///             direct_from .. max   into the buffer
///             halves_from ..       in two halves, up to what is copied in a call
///   else:     .. eager_max         through slots
///             beyond               fetched by the receiver
///             ask_from ..          into the buffer, when the receiver has said
///                                  where that is
///   always:   both_from ..         by both, where both reach the other's
///   neither reaches the other's:
///             .. eager_max         through slots
///             beyond               through slots, when the receiver is there
///             kernel_from ..       fetched by the receiver's kernel
/// ```
///
/// The first that holds is taken; of the last two that follow `else`, the last.
/// *Offered*: the buffer of the receive that will take the message is known to
/// the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Longest message that travels in its packet; at most
    /// [`INLINE_BYTES_MAX`](super::INLINE_BYTES_MAX).
    pub inline_max: u32,
    /// Shortest message that is copied into an offered buffer. Receives with
    /// less room than what goes there in one of the ways are not offered.
    pub direct_from: u32,
    /// The least room of a receive whose offer goes in a packet of its own where
    /// there is none to ride on.
    pub alone_from: u32,
    /// Longest one, by ordinary stores.
    pub direct_max: u32,
    /// Shortest message that is copied there, inside of the call, in two halves:
    /// the receiver fetches one while the other is on its way.
    pub halves_from: u32,
    /// Shortest message that is copied there by non-temporal stores.
    pub nt_from: u32,
    /// Shortest message for an offered buffer that the receiver fetches.
    pub pull_from: u32,
    /// Longest message that goes through slots.
    pub eager_max: u32,
    /// Least bytes that are copied into an offered buffer before the receiver is
    /// told, so that it can fetch them while the next ones are on their way;
    /// not 0.
    pub chunk: u32,
    /// The same of those that are copied by non-temporal stores: so many.
    pub part: u32,
    /// Shortest message without a receive that its receiver does not fetch: it
    /// has the sender copy it.
    pub ask_from: u32,
    /// Shortest message that both sides copy, whatever else is said here.
    pub both_from: u32,
    /// Shortest message between two buffers, both out of reach, that the
    /// receiver has the kernel copy; shorter ones go through slots.
    pub kernel_from: u32,
}

impl Thresholds {
    /// What is right on most machines of today.
    pub const DEFAULT: Self = Self {
        inline_max: 200,
        direct_from: 201,
        alone_from: 2 << 10,
        direct_max: 16 << 10,
        halves_from: u32::MAX,
        nt_from: 128 << 10,
        pull_from: 16 << 10,
        eager_max: 8 << 10,
        chunk: 8 << 10,
        part: 32 << 10,
        ask_from: u32::MAX,
        both_from: u32::MAX,
        kernel_from: u32::MAX,
    };

    /// The least room of a receive that is worth an offer.
    #[inline(always)]
    pub const fn offered_from(&self) -> u32 {
        let mut from = self.direct_from;
        if self.nt_from < from {
            from = self.nt_from;
        }
        if self.pull_from < from {
            from = self.pull_from;
        }
        if self.both_from < from {
            from = self.both_from;
        }
        if from > self.inline_max { from } else { self.inline_max.saturating_add(1) }
    }

    /// Of a message of so many bytes that its sender copies, what its receiver is
    /// told of at once: an eighth, and at most four chunks.
    #[inline]
    pub fn part_of(&self, len: u64, streaming: bool) -> u64 {
        let chunk = u64::from(self.chunk);
        if streaming { self.part.into() } else { (len / 8).clamp(chunk, 4 * chunk) }
    }

    /// Of a message of so many bytes that its sender copies in one call, what its
    /// receiver is told of first: whole lines, or all.
    #[inline]
    pub fn half_of(&self, len: u64) -> u64 {
        if len < self.halves_from.into() {
            len
        } else {
            len.div_ceil(2).next_multiple_of(64).min(len)
        }
    }

    /// For ranks of other nodes: nothing is in reach, and to ask first takes
    /// longer than to copy twice.
    pub const FAR: Self = Self {
        inline_max: INLINE_BYTES_MAX as u32,
        direct_from: u32::MAX,
        alone_from: u32::MAX,
        direct_max: 0,
        halves_from: u32::MAX,
        nt_from: u32::MAX,
        pull_from: u32::MAX,
        eager_max: u32::MAX,
        chunk: u32::MAX,
        part: u32::MAX,
        ask_from: u32::MAX,
        both_from: u32::MAX,
        kernel_from: u32::MAX,
    };
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::DEFAULT
    }
}
