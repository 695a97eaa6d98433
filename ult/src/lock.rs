//! A spin lock for a few instructions: for lists that are touched seldom and briefly.
//!
//! A holder does not wait, does not allocate on purpose and calls no foreign code,
//! and no ULT leaves its worker while it holds the lock. A holder may lose its
//! processor, so a waiting thread yields its own after a short spin.
//!
//! Progress: blocking.

use crate::futex::os_yield;
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicBool, Ordering, UnsafeCell, spin_loop};

pub(crate) struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time reaches the value, see `with`.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    #[cfg(not(tsumugi_loom))]
    pub(crate) const fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[cfg(tsumugi_loom)]
    pub(crate) fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Runs `f` on the value under the lock.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        struct Release<'a>(&'a AtomicBool);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                let order = mutate!("lock_release_relaxed": Ordering::Release => Ordering::Relaxed);
                // Release: pairs with the Acquire of the next holder.
                self.0.store(false, order);
            }
        }
        self.acquire();
        let _release = Release(&self.held);
        // SAFETY: `held` was false and this thread has set it, so no other thread is
        // here.
        self.value.with_mut(|value| f(unsafe { &mut *value }))
    }

    #[inline]
    fn acquire(&self) {
        let order = mutate!("lock_acquire_relaxed": Ordering::Acquire => Ordering::Relaxed);
        let mut spins = 0;
        // Acquire: pairs with the Release of the last holder.
        while self.held.compare_exchange_weak(false, true, order, Ordering::Relaxed).is_err() {
            spins += 1;
            if spins % SPINS == 0 { os_yield() } else { spin_loop() }
        }
    }
}

const SPINS: u32 = 64;
