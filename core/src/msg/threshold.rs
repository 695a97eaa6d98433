//! The sizes at which messages change their path. They are measured at start, for
//! each peer, and none of them changes what is received.

use super::packet::INLINE_BYTES_MAX;

/// Sizes in bytes at which the path of a message to one peer changes.
///
/// ```text
///             0 .. inline_max      inside the packet
///   offered:  nt_from ..           into the buffer, past the cache
///             pull_from ..         fetched by the receiver
///             direct_from .. max   into the buffer
///             halves_from ..       in two halves, up to what is copied in a call
///   else:     .. eager_max         through slots
///             beyond               fetched by the receiver
///             ask_from ..          into the buffer, after the receiver has sent
///                                  its address
///   always:   both_from ..         by both sides, where both reach the other's
///   neither reaches the other's:
///             .. eager_max         through slots
///             beyond               through slots, when the receive is posted
///             kernel_from ..       fetched by the receiver's kernel
/// ```
///
/// The first line that applies is used; of the last two lines under `else`, the
/// last. *Offered*: the sender knows the buffer of the receive that will take the
/// message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Longest message that is sent inline in its packet; at most
    /// [`INLINE_BYTES_MAX`](super::INLINE_BYTES_MAX).
    pub inline_max: u32,
    /// Shortest message that is copied into an offered buffer. Receives with less
    /// room than any path into an offered buffer needs are not offered.
    pub direct_from: u32,
    /// Least room of a receive that gets an offer in a packet of its own, if
    /// there is no other packet to carry the offer.
    pub alone_from: u32,
    /// Longest message that is copied there by ordinary stores.
    pub direct_max: u32,
    /// Shortest message that is copied there inside the call in two halves: the
    /// receiver fetches the first half while the second is on its way.
    pub halves_from: u32,
    /// Shortest message that is copied there by non-temporal stores.
    pub nt_from: u32,
    /// Shortest message for an offered buffer that the receiver fetches.
    pub pull_from: u32,
    /// Longest message that goes through slots.
    pub eager_max: u32,
    /// Least bytes that are copied into an offered buffer before the sender
    /// reports them, so that the receiver can fetch them while the next bytes are
    /// on their way; not 0.
    pub chunk: u32,
    /// The same number for bytes that are copied by non-temporal stores.
    pub part: u32,
    /// Shortest message without a known receive that its receiver does not fetch:
    /// the receiver asks the sender to copy it.
    pub ask_from: u32,
    /// Shortest message that both sides copy, whatever the other thresholds are.
    pub both_from: u32,
    /// Shortest message between two buffers, both out of reach, that the
    /// receiver's kernel copies; shorter messages go through slots.
    pub kernel_from: u32,
}

impl Thresholds {
    /// Values that are suitable for most current machines.
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

    /// Returns the least room of a receive that is worth an offer.
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

    /// Returns how many bytes the sender copies before it reports them to the
    /// receiver, for a message of `len` bytes: an eighth, and at most four
    /// chunks.
    #[inline]
    pub fn part_of(&self, len: u64, streaming: bool) -> u64 {
        let chunk = u64::from(self.chunk);
        if streaming { self.part.into() } else { (len / 8).clamp(chunk, 4 * chunk) }
    }

    /// Returns how many bytes the sender reports first, for a message of `len`
    /// bytes that it copies in one call: whole lines, or all bytes.
    #[inline]
    pub fn half_of(&self, len: u64) -> u64 {
        if len < self.halves_from.into() {
            len
        } else {
            len.div_ceil(2).next_multiple_of(64).min(len)
        }
    }

    /// For ranks of other nodes: nothing is in reach, and a request before the
    /// copy takes longer than two copies.
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

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: Thresholds = Thresholds { inline_max: 64, ..Thresholds::FAR };

    #[test]
    fn offers_begin_at_the_smallest_threshold_that_needs_them() {
        let (mut direct, mut past) = (LARGE, LARGE);
        let (mut pull, mut both) = (LARGE, LARGE);
        (direct.direct_from, past.nt_from, pull.pull_from, both.both_from) = (500, 500, 500, 500);
        for one in [direct, past, pull, both] {
            assert_eq!(one.offered_from(), 500, "{one:?}");
            assert_eq!(Thresholds { inline_max: 500, ..one }.offered_from(), 501, "{one:?}");
            assert_eq!(Thresholds { inline_max: 499, ..one }.offered_from(), 500, "{one:?}");
        }
        let first = Thresholds { direct_from: 400, nt_from: 300, pull_from: 200, ..both };
        assert_eq!(first.offered_from(), 200);
        assert_eq!(LARGE.offered_from(), u32::MAX);
        assert_eq!(Thresholds { inline_max: u32::MAX, ..first }.offered_from(), u32::MAX);
    }

    #[test]
    fn a_part_is_an_eighth_within_its_limits() {
        let own = Thresholds { chunk: 1000, part: 77, ..LARGE };
        for (len, part) in [(0, 1000), (8000, 1000), (8008, 1001), (32_000, 4000), (!0, 4000)] {
            assert_eq!((own.part_of(len, false), own.part_of(len, true)), (part, 77), "{len}");
        }
    }

    #[test]
    fn the_first_half_has_whole_lines() {
        let own = Thresholds { halves_from: 1000, ..LARGE };
        for (len, half) in [(0, 0), (999, 999), (1000, 512), (1024, 512), (1025, 576)] {
            assert_eq!(own.half_of(len), half, "{len}");
        }
        let short = Thresholds { halves_from: 0, ..LARGE };
        assert_eq!((short.half_of(1), short.half_of(50)), (1, 50));
    }
}
