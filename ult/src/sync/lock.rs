//! A biased lock for a few instructions: as `crate::lock`, but as long as only
//! one thread takes it, that thread needs no atomic instruction, see [`Bias`].
//!
//! While the lock is biased, `held` stays set: another thread finds it set, and
//! ends the bias.
//!
//! Progress: blocking.

use crate::bias::{Bias, BiasEnd};
use crate::futex::os_yield;
use crate::sched::bias_name;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use tsumugi_core::sync::{AtomicBool, Ordering, UnsafeCell, spin_loop};

/// A lock that a ULT must not hold while it suspends.
pub struct BiasedLock<T> {
    bias: Bias,
    held: AtomicBool,
    value: UnsafeCell<T>,
}

/// How the lock was taken.
#[derive(Clone, Copy, Debug)]
enum LockPath {
    Alone,
    Shared,
}

/// The right to the value. It gives the lock back on the thread that took it,
/// because a bias must be left by its owner.
pub struct BiasedGuard<'a, T> {
    lock: &'a BiasedLock<T>,
    way: LockPath,
    stays: PhantomData<*const ()>,
}

// SAFETY: one thread at a time accesses the value, see `deref`.
unsafe impl<T: Send> Send for BiasedLock<T> {}
// SAFETY: the same.
unsafe impl<T: Send> Sync for BiasedLock<T> {}

impl<T> BiasedLock<T> {
    /// Makes a lock that is free.
    #[cfg(not(tsumugi_loom))]
    pub const fn new(value: T) -> Self {
        Self { bias: Bias::new(), held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Makes a lock that is free.
    #[cfg(tsumugi_loom)]
    pub fn new(value: T) -> Self {
        Self { bias: Bias::new(), held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Runs `f` on the value, with the lock held.
    #[inline(always)]
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock())
    }

    /// Takes the lock. The caller must not suspend before it has given the lock
    /// back: another ULT of its thread would wait for ever.
    #[inline(always)]
    pub fn lock(&self) -> BiasedGuard<'_, T> {
        let me = bias_name();
        let way = if self.enter(me) { LockPath::Alone } else { self.acquire(me) };
        BiasedGuard::new(self, way)
    }

    /// Takes the lock if it is free and not biased to another thread.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<BiasedGuard<'_, T>> {
        let me = bias_name();
        if self.enter(me) {
            return Some(BiasedGuard::new(self, LockPath::Alone));
        }
        // Acquire: pairs with the Release of the last holder.
        self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(BiasedGuard::new(self, self.noted(me)))
    }

    /// Takes the lock if it is biased to this thread, and this thread does not
    /// hold it.
    #[inline(always)]
    fn enter(&self, me: usize) -> bool {
        self.bias.is_of(me) && !self.bias.is_inside() && self.bias.go_in(me)
    }

    #[inline]
    fn acquire(&self, me: usize) -> LockPath {
        // Acquire: pairs with the Release of the last holder.
        while self
            .held
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            if self.contend(me) {
                return LockPath::Shared;
            }
        }
        self.noted(me)
    }

    #[inline]
    fn noted(&self, me: usize) -> LockPath {
        if !self.bias.is_shared() && self.bias.note(me) {
            LockPath::Alone
        } else {
            LockPath::Shared
        }
    }

    /// Called when the lock is taken or biased. True: it was biased, and this
    /// thread holds it now.
    #[cold]
    fn contend(&self, me: usize) -> bool {
        // `held` was set as long as the bias lasted.
        match self.bias.end(me, |_| {}) {
            BiasEnd::Before => {
                for _ in 0..SPINS {
                    if !self.held.load(Ordering::Relaxed) {
                        return false;
                    }
                    spin_loop();
                }
                os_yield();
                false
            }
            BiasEnd::Outside => true,
            BiasEnd::Inside => {
                self.bias.wait_outside();
                true
            }
        }
    }
}

impl<'a, T> BiasedGuard<'a, T> {
    #[inline(always)]
    fn new(lock: &'a BiasedLock<T>, way: LockPath) -> Self {
        Self { lock, way, stays: PhantomData }
    }
}

impl<T> Deref for BiasedGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock in one of the two ways, and the bias
        // permits only one of them at a time.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for BiasedGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for BiasedGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        match self.way {
            LockPath::Alone => self.lock.bias.leave(),
            // Release: pairs with the Acquire of the next holder.
            LockPath::Shared => self.lock.held.store(false, Ordering::Release),
        }
    }
}

impl<T> fmt::Debug for BiasedLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BiasedLock({:?})", self.bias)
    }
}

impl<T> fmt::Debug for BiasedGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BiasedGuard({:?})", self.way)
    }
}

const SPINS: u32 = if cfg!(tsumugi_loom) { 1 } else { 64 };
