//! A place for one item, which its owner looks at while it spins.
//!
//! ```text
//!   CLOSED ──open──► OPEN ──try_send──► the item
//!     ▲                │                   │
//!     └─────close──────┴───────close───────┘  the owner takes it
//! ```
//!
//! A worker with nothing to do spins on a line of its own, so what is put
//! there costs one trip of that line, where a theft costs several.
//!
//! Progress: all calls are wait-free.

use core::ptr::{self, NonNull};
use tsumugi_core::sync::{AtomicPtr, CachePadded, Ordering, mutant};

/// The place. `open`, `has_come` and `close` are the owner's.
#[derive(Debug)]
pub struct Mail<T>(CachePadded<AtomicPtr<T>>);

impl<T> Mail<T> {
    /// No item's address.
    const OPEN: *mut T = ptr::without_provenance_mut(1);

    /// Nobody looks.
    #[expect(clippy::new_without_default, reason = "an empty place is nothing to begin with")]
    pub fn new() -> Self {
        Self(CachePadded::new(AtomicPtr::new(ptr::null_mut())))
    }

    /// Hands an item over if the owner spins and has none yet. Without a look
    /// first, which would fetch the line once more. If true, nothing of the
    /// place is touched any more.
    #[inline]
    pub fn try_send(&self, item: NonNull<T>) -> bool {
        let order = if mutant("mail_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        // Release: pairs with the Acquire in `close`.
        self.0.compare_exchange(Self::OPEN, item.as_ptr(), order, Ordering::Relaxed).is_ok()
    }

    /// The owner looks from now on.
    pub fn open(&self) {
        self.0.store(Self::OPEN, Ordering::Relaxed);
    }

    /// Whether something has come.
    #[inline(always)]
    pub fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed) != Self::OPEN
    }

    /// The owner looks no longer; what has come.
    pub fn close(&self) -> Option<NonNull<T>> {
        // Acquire: pairs with the Release in `try_send`.
        let mut came = self.0.load(Ordering::Acquire);
        if came == Self::OPEN && !mutant("mail_load_then_store") {
            came = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        } else {
            // Closed, or with an item: only the owner changes that.
            self.0.store(ptr::null_mut(), Ordering::Relaxed);
        }
        if came == Self::OPEN { None } else { NonNull::new(came) }
    }
}
