//! Fences that the thread sanitizer sees.
//!
//! The sanitizer takes no notice of a fence. Here each is a read-modify-write of
//! one word that all share, of the fence's own ordering: where two fences
//! synchronize, by a word that one side writes after its own and the other reads
//! before, the first has written the shared word before the second does, so the
//! sanitizer sees that order. It also sees it where nothing was read in between:
//! a race is missed that happens to have fences between its two sides. What a fence
//! has with an ordered access of the other side it does not see: a report there may
//! be of no race.

use core::sync::atomic::{self, AtomicU32, Ordering};

static FENCES: AtomicU32 = AtomicU32::new(0);

/// As `core`'s.
#[inline]
pub fn fence(order: Ordering) {
    atomic::fence(order);
    // As a fence, it pairs with every other.
    FENCES.fetch_add(1, if order == Ordering::SeqCst { Ordering::AcqRel } else { order });
}
