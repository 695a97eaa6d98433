//! Waiters for words with which no thread waits: their end calls a function.
//!
//! The state of such a waiter differs from that of a sleeper in one step. A sleeper that
//! is woken looks at the word itself; here the drainer's call does it, and parks the
//! waiter again if the condition has ceased to hold. The owner may leave at any time:
//!
//! ```text
//!            a drainer takes it             the condition holds
//!   PARKED ────────────────────► WOKEN ────────────────────────► over
//!     │ ▲                          │ │
//!     │ └──── it does not hold ────┘ │ leave: LEFT, so that it is not parked again
//!     │ leave                        ▼
//!     └──► GAVE_UP ── a drainer ──► LEFT: over
//! ```

use super::parking_lot::{LEFT, PARKED, ParkedWaiter, ParkingLot, Until, WOKEN, Waiters, look};
use crate::mem::AddrError;
use crate::mutate;
use crate::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};
use crate::wait::Waker;
use core::fmt;
use core::ptr::{self, NonNull};

/// A waiter for a word, with which no thread waits.
pub struct DetachedWaiter(ParkedWaiter);

impl DetachedWaiter {
    /// A waiter that is not parked yet.
    pub fn new(word: &AtomicU64, until: Until) -> Self {
        Self(ParkedWaiter {
            next: UnsafeCell::new(ptr::null_mut()),
            word: &raw const *word,
            until,
            state: AtomicU32::new(PARKED),
            waker: UnsafeCell::new(None),
        })
    }
}

impl Waiters {
    /// Returns the result of a wait that is over before it begins.
    pub fn try_wait(
        &self,
        parking_lot: &ParkingLot,
        word: &AtomicU64,
        until: Until,
    ) -> Option<Result<u64, AddrError>> {
        look(parking_lot, word, until)
    }

    /// Parks the waiter. `waker` is used once, perhaps inside this call: it must call
    /// [`resume`](Self::resume).
    ///
    /// # Safety
    ///
    /// The waiter is not parked, and stays at its place until its `resume` has returned a
    /// result; its word lies in memory of the parking lot's owner, and stays mapped.
    pub unsafe fn park_detached(
        &self,
        parking_lot: &ParkingLot,
        waiter: NonNull<DetachedWaiter>,
        waker: Waker,
    ) {
        let node = waiter.cast::<ParkedWaiter>().as_ptr();
        // SAFETY: the waiter is not parked, so no other thread uses its cells.
        let bucket = unsafe {
            (*node).waker.with_mut(|slot| *slot = Some(waker));
            (*node).bucket()
        };
        // SeqCst: before the check after parking; pairs with `announce`.
        parking_lot.waiting[bucket].fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller promises that the waiter stays until its waker was used.
        if unsafe { self.park(parking_lot, bucket, node) } {
            self.drain_bucket(parking_lot, bucket);
        }
    }

    /// Called when the waiter's waker was used: returns the result of the wait, or parks
    /// the waiter again, with `waker`, because the word has changed once more.
    ///
    /// # Safety
    ///
    /// Called once for each use of the waker; the rest as for
    /// [`park_detached`](Self::park_detached). After `None` the waiter may be gone.
    pub unsafe fn resume(
        &self,
        parking_lot: &ParkingLot,
        waiter: NonNull<DetachedWaiter>,
        waker: Waker,
    ) -> Option<Result<u64, AddrError>> {
        // SAFETY: the waiter stays until a result is returned.
        let node = unsafe { &waiter.as_ref().0 };
        // SAFETY: the word stays mapped, by the promise of `park_detached`.
        if let Some(over) = look(parking_lot, unsafe { &*node.word }, node.until) {
            return Some(over);
        }
        // SeqCst: pairs with `leave`, on the same word: one of the two sees the other.
        if node.state.compare_exchange(WOKEN, PARKED, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            // The owner has left, and does not read the result.
            return Some(Ok(0));
        }
        // SAFETY: the drainer has taken the waiter out, so it is not parked.
        unsafe { self.park_detached(parking_lot, waiter, waker) };
        None
    }

    /// Ends the wait soon, without a result of use: the owner has no interest in it any
    /// more. Called once, by the owner, which keeps the waiter until this returns.
    pub fn leave(&self, parking_lot: &ParkingLot, waiter: &DetachedWaiter) {
        let node = &waiter.0;
        loop {
            self.quit(parking_lot, node);
            // SeqCst: pairs with `resume`. Fails with `PARKED` if the waiter was parked
            // again in between.
            let left = node.state.compare_exchange(WOKEN, LEFT, Ordering::SeqCst, Ordering::SeqCst);
            let is_over = !matches!(left, Err(PARKED));
            if mutate!("signal_left_unseen": is_over => true) {
                return;
            }
        }
    }
}

impl fmt::Debug for DetachedWaiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DetachedWaiter")
    }
}
