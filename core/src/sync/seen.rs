//! Fences in a form that the thread sanitizer understands.
//!
//! The sanitizer ignores fences. So each fence here also does a read-modify-write of
//! one word that all fences share, with the fence's own ordering. Suppose that two
//! fences synchronize, because one side writes a word after its fence and the other
//! side reads the word before its fence: the first side has then written the shared
//! word before the second side does, and the sanitizer recognizes this order. It
//! also assumes the order where no word was read in between, so it misses a race
//! that happens to have fences between its two sides. It does not recognize a fence
//! that synchronizes with an ordered access of the other side; a report at such a
//! place may be a false one.

use core::sync::atomic::{self, AtomicU32, Ordering};

static FENCES: AtomicU32 = AtomicU32::new(0);

/// `core`'s fence, and an access to the shared word.
#[inline]
pub fn fence(order: Ordering) {
    atomic::fence(order);
    // AcqRel for a SeqCst fence, so that it pairs with every other fence.
    FENCES.fetch_add(1, if order == Ordering::SeqCst { Ordering::AcqRel } else { order });
}
