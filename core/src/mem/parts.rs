//! A range of bytes that several threads copy together.
//!
//! It is cut into parts of one size, and each part is claimed by one of them:
//!
//! ```text
//!  claim ─► 0   claim ─► 1   claim ─► 2        of whoever comes
//!  ├─ part ────┼─ part ────┼─ part ──┤        the last one may be shorter
//!    finish      finish      finish  ─► is_done
//! ```
//!
//! All zeroes is a range of which nothing has been claimed, so that it may
//! lie in fresh shared memory. A claim that is never finished (its claimer
//! died) leaves the range undone for good: whoever waits also looks whether
//! the others live.

use crate::sync::{AtomicU32, Ordering, mutant};
use core::ops::Range;

/// Who copies which part, and how many have been copied. Wait-free.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Parts {
    /// Parts that were asked for; more than there are, by one for each
    /// claimer that found nothing.
    next: AtomicU32,
    done: AtomicU32,
}

impl Parts {
    /// Nothing claimed.
    pub fn new() -> Self {
        Self { next: AtomicU32::new(0), done: AtomicU32::new(0) }
    }

    /// Starts over, for another range. Nobody else uses it meanwhile.
    pub fn restart(&self) {
        self.next.store(0, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    /// A part of `bytes` bytes cut into parts of `part_bytes`, which is the
    /// caller's to copy; `None` once all have been claimed. Wait-free.
    ///
    /// # Panics
    ///
    /// If `part_bytes` is zero.
    pub fn claim(&self, bytes: u64, part_bytes: u64) -> Option<Range<u64>> {
        let part = if mutant("parts_claim_load_store") {
            let part = self.next.load(Ordering::Relaxed);
            self.next.store(part + 1, Ordering::Relaxed);
            part
        } else {
            // Relaxed: what a part holds was published with the range.
            self.next.fetch_add(1, Ordering::Relaxed)
        };
        let start = u64::from(part) * part_bytes;
        assert!(part_bytes > 0, "parts of no bytes");
        (start < bytes).then(|| start..bytes.min(start + part_bytes))
    }

    /// Says that a claimed part has been copied. Wait-free.
    pub fn finish(&self) {
        let order =
            if mutant("parts_finish_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        // Release: pairs with the Acquire in `is_done`; those of earlier
        // finishers stay visible through it.
        self.done.fetch_add(1, order);
    }

    /// Whether all of `bytes` bytes have been copied, and may be read.
    /// Wait-free.
    pub fn is_done(&self, bytes: u64, part_bytes: u64) -> bool {
        // Acquire: pairs with the Release in `finish`.
        u64::from(self.done.load(Ordering::Acquire)) == bytes.div_ceil(part_bytes)
    }
}

#[cfg(not(tsumugi_loom))]
const _: () = assert!(size_of::<Parts>() == 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_the_range() {
        let parts = Parts::new();
        let claimed = [(); 4].map(|()| parts.claim(10, 4));
        assert_eq!(claimed, [Some(0..4), Some(4..8), Some(8..10), None]);
        for done in [false, false, true] {
            parts.finish();
            assert_eq!(parts.is_done(10, 4), done);
        }
        parts.restart();
        assert_eq!(parts.claim(3, 4), Some(0..3));
        assert!(!parts.is_done(3, 4));
    }

    #[test]
    fn nothing_is_done_at_once() {
        assert!(Parts::new().is_done(0, 4));
        assert_eq!(Parts::new().claim(0, 4), None);
    }
}
