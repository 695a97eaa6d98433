//! Callers that look for messages, as the attendant of a rank with several workers sees them.
//!
//! A caller that receives one message after the other looks for each, and is away for a moment
//! in between. An attendant that took its messages in these moments would be in its way, and
//! would stay awake only for that. So the attendant leaves messages to callers in a round
//! before which a caller has come, but not in more than a few rounds on end: a caller may look
//! at the lane of one rank only, and a message of another rank may be for a ULT that sleeps.

use tsumugi_core::sync::{AtomicU32, CachePadded, Ordering};

/// How often callers have looked for messages, and what the attendant has seen of that.
#[derive(Debug, Default)]
pub(super) struct Lookers {
    /// Written by callers; one that two of them write at once may be lost.
    calls: CachePadded<AtomicU32>,
    /// The last number that the attendant has seen, and for how many rounds it has left
    /// messages to callers since it looked itself.
    seen: AtomicU32,
    left: AtomicU32,
}

impl Lookers {
    // Relaxed, here and below: the numbers only decide who looks first.
    pub(super) fn note(&self) {
        let calls = self.calls.load(Ordering::Relaxed);
        self.calls.store(calls.wrapping_add(1), Ordering::Relaxed);
    }

    /// Whether a caller has come since the last round. Now and then false in any case:
    /// callers may leave messages to others lying.
    pub(super) fn have_come(&self) -> bool {
        let calls = self.calls.load(Ordering::Relaxed);
        let left = self.left.load(Ordering::Relaxed) + 1;
        let have_come = self.seen.swap(calls, Ordering::Relaxed) != calls && left < LEFT_MAX;
        self.left.store(if have_come { left } else { 0 }, Ordering::Relaxed);
        have_come
    }
}

/// The attendant looks for messages at least once in so many rounds.
const LEFT_MAX: u32 = 16;
