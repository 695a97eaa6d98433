//! The hand-off slot of an idle worker: a place for one item, or a chain of them,
//! which the owner polls while it spins.
//!
//! ```text
//!   CLOSED ──open──► OPEN ──try_send──► the item · whether more hang on it
//!     ▲                │                   │
//!     └─────close──────┴──close, intercept─┘  the owner takes it, or another
//! ```
//!
//! An idle worker spins on a cache line of its own, so handing over an item costs one
//! transfer of that line. A theft costs several.
//!
//! Progress: all calls are wait-free.

use core::mem::align_of;
use core::ptr::{self, NonNull};
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicPtr, CachePadded, Ordering};

/// An item that was sent, perhaps with a chain behind it.
#[derive(Debug)]
pub struct HandoffBatch<T> {
    /// The item.
    pub first: NonNull<T>,
    /// Whether more items are linked to the first, by their own links.
    pub more: bool,
}

/// The slot. Only the owner calls `open`, `has_come` and `close`.
#[derive(Debug)]
pub struct HandoffSlot<T>(CachePadded<AtomicPtr<T>>);

impl<T> HandoffSlot<T> {
    /// A word that is no item's address.
    const OPEN: *mut T = ptr::without_provenance_mut(1);

    /// A closed slot.
    #[expect(clippy::new_without_default, reason = "an empty place is nothing to begin with")]
    pub fn new() -> Self {
        Self(CachePadded::new(AtomicPtr::new(ptr::null_mut())))
    }

    /// Hands an item over if the owner spins and has none yet. There is no load
    /// before the exchange, because it would fetch the cache line once more. After
    /// true, nothing of the slot is touched any more.
    #[inline]
    pub fn try_send(&self, batch: HandoffBatch<T>) -> bool {
        let word = batch.word();
        let order = mutate!("mail_relaxed": Ordering::Release => Ordering::Relaxed);
        // Release: pairs with the Acquire in `close`.
        self.0.compare_exchange(Self::OPEN, word, order, Ordering::Relaxed).is_ok()
    }

    /// Whether the owner polls the slot and has no item yet.
    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::OPEN
    }

    /// Opens the slot: the owner polls it from now on.
    pub fn open(&self) {
        self.0.store(Self::OPEN, Ordering::Relaxed);
    }

    /// Whether an item has come, or came and was intercepted.
    #[inline(always)]
    pub fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed) != Self::OPEN
    }

    /// Closes the slot: the owner polls it no longer. Returns what has come.
    pub fn close(&self) -> Option<HandoffBatch<T>> {
        if self.0.load(Ordering::Relaxed).is_null() {
            return None;
        }
        // Acquire: pairs with the Release in `try_send`.
        let came = mutate!("mail_load_then_store": self.0.swap(ptr::null_mut(), Ordering::Acquire) => {
            let came = self.0.load(Ordering::Acquire);
            self.0.store(ptr::null_mut(), Ordering::Relaxed);
            came
        });
        batch_of(came)
    }

    /// Takes an item in place of the owner, which may have lost its processor. The
    /// slot is closed then. Any thread.
    pub fn intercept(&self) -> Option<HandoffBatch<T>> {
        let seen = self.0.load(Ordering::Relaxed);
        batch_of(seen)?;
        // Acquire: as in `close`.
        let taken = mutate!("mail_intercept_blind":
            self.0.compare_exchange(seen, ptr::null_mut(), Ordering::Acquire, Ordering::Relaxed)
            => {
                self.0.store(ptr::null_mut(), Ordering::Relaxed);
                Ok(seen)
            }
        );
        batch_of(taken.ok()?)
    }

    /// Whether an item has come and was not taken yet. Any thread.
    pub fn is_full(&self) -> bool {
        batch_of(self.0.load(Ordering::Relaxed)).is_some()
    }
}

impl<T> HandoffBatch<T> {
    /// The word that stands for the batch.
    #[inline]
    pub(crate) fn word(self) -> *mut T {
        const { assert!(align_of::<T>() > BITS, "an item's address has two bits to spare") };
        let more = if self.more { MORE } else { 0 };
        self.first.as_ptr().map_addr(|address| address | more)
    }
}

/// The batch that a word stands for, if it is one.
#[inline]
pub(crate) fn batch_of<T>(word: *mut T) -> Option<HandoffBatch<T>> {
    // CLOSED and OPEN have no address bits.
    let first = NonNull::new(word.map_addr(|address| address & !BITS))?;
    Some(HandoffBatch { first, more: word.addr() & MORE != 0 })
}

impl<T> Clone for HandoffBatch<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for HandoffBatch<T> {}

impl<T> From<NonNull<T>> for HandoffBatch<T> {
    fn from(first: NonNull<T>) -> Self {
        Self { first, more: false }
    }
}

const MORE: usize = 1;
/// The bits that are no part of an address; a `PublicSlot` uses one bit more.
const BITS: usize = 3;
