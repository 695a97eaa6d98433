//! A lock for a few instructions, as `crate::lock`, that costs one thread no
//! atomic instruction as long as it alone takes it, see [`Bias`].
//!
//! While the lock is biased, `held` stays set: whoever comes from elsewhere
//! fails there and ends the bias.
//!
//! Progress: blocking.

use crate::bias::{Bias, Ended};
use crate::futex::os_yield;
use crate::sched::bias_name;
use tsumugi_core::sync::{AtomicBool, Ordering, UnsafeCell, spin_loop};

pub(super) struct BiasedLock<T> {
    bias: Bias,
    held: AtomicBool,
    value: UnsafeCell<T>,
}

/// How the lock was taken.
#[derive(Clone, Copy)]
enum Way {
    Alone,
    Shared,
}

/// Gives the lock back.
struct Release<'a, T>(&'a BiasedLock<T>, Way);

// SAFETY: the value is reached by one thread at a time, see `with`.
unsafe impl<T: Send> Send for BiasedLock<T> {}
// SAFETY: the same.
unsafe impl<T: Send> Sync for BiasedLock<T> {}

impl<T> BiasedLock<T> {
    #[cfg(not(tsumugi_loom))]
    pub(super) const fn new(value: T) -> Self {
        Self { bias: Bias::new(), held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[cfg(tsumugi_loom)]
    pub(super) fn new(value: T) -> Self {
        Self { bias: Bias::new(), held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Runs `f` on the value, alone.
    #[inline(always)]
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let me = if self.bias.is_shared() { 0 } else { bias_name() };
        let way = if self.bias.enter(me) { Way::Alone } else { self.acquire(me) };
        let _release = Release(self, way);
        // SAFETY: we have the lock, in one of its two ways, of which the bias
        // lets only one be open.
        self.value.with_mut(|value| f(unsafe { &mut *value }))
    }

    #[inline]
    fn acquire(&self, me: usize) -> Way {
        // Acquire: pairs with the Release of the last holder.
        while self
            .held
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            if self.contend(me) {
                return Way::Shared;
            }
        }
        if !self.bias.is_shared() && self.bias.note(me) { Way::Alone } else { Way::Shared }
    }

    /// Somebody has it. True: it was biased, and now is ours.
    #[cold]
    fn contend(&self, me: usize) -> bool {
        match self.bias.end(me) {
            Ended::Before => {
                for _ in 0..SPINS {
                    if !self.held.load(Ordering::Relaxed) {
                        return false;
                    }
                    spin_loop();
                }
                os_yield();
                false
            }
            Ended::Outside => true,
            Ended::Inside => {
                self.bias.wait_outside();
                true
            }
        }
    }
}

impl<T> Drop for Release<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        match self.1 {
            Way::Alone => self.0.bias.leave(),
            // Release: pairs with the Acquire of the next holder.
            Way::Shared => self.0.held.store(false, Ordering::Release),
        }
    }
}

const SPINS: u32 = if cfg!(tsumugi_loom) { 1 } else { 64 };
