//! A lock for a few instructions: lists that are touched seldom and briefly.
//!
//! Nobody waits, allocates on purpose or calls a stranger while holding one,
//! and no ULT is switched off its worker in between. A holder may lose its
//! processor, so whoever waits gives its own away after a short spin.
//!
//! Progress: blocking.

use crate::futex::os_yield;
use tsumugi_core::sync::{AtomicBool, Ordering, UnsafeCell, mutant, spin_loop};

pub(crate) struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time, see `with`.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: the same.
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

    /// Runs `f` on the value, alone.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        struct Release<'a>(&'a AtomicBool);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                let order = if mutant("lock_release_relaxed") {
                    Ordering::Relaxed
                } else {
                    Ordering::Release
                };
                // Release: pairs with the Acquire of the next holder.
                self.0.store(false, order);
            }
        }
        self.acquire();
        let _release = Release(&self.held);
        // SAFETY: `held` was false and we made it true: nobody else is here.
        self.value.with_mut(|value| f(unsafe { &mut *value }))
    }

    #[inline]
    fn acquire(&self) {
        let order =
            if mutant("lock_acquire_relaxed") { Ordering::Relaxed } else { Ordering::Acquire };
        let mut spins = 0;
        // Acquire: pairs with the Release of the last holder.
        while self.held.compare_exchange_weak(false, true, order, Ordering::Relaxed).is_err() {
            spins += 1;
            if spins % SPINS == 0 { os_yield() } else { spin_loop() }
        }
    }
}

const SPINS: u32 = 64;
