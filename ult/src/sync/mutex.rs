//! One at a time.
//!
//! ```text
//!   FREE ──lock──► LOCKED ──somebody waits──► LOCKED | WAITERS
//!     ▲               │                             │ unlock: the first
//!     └────unlock─────┘                             ▼ waiter has it now
//! ```
//!
//! An unlock with waiters hands the lock over: nobody overtakes, and a waiter
//! that is woken has it.

use super::queue::{Node, Queue};
use crate::lock::Lock;
use crate::park::Here;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use tsumugi_core::sync::{AtomicU32, Ordering, UnsafeCell, mutant};
use tsumugi_core::wait::{Reason, Wait};

/// A value that one ULT or OS thread at a time can reach. Not poisoned by a
/// panic.
pub struct Mutex<T: ?Sized> {
    raw: RawMutex,
    value: UnsafeCell<T>,
}

/// The right to the value, until dropped. A ULT may drop it on another worker
/// than it locked on.
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// `Sync` exactly if `T` is.
    value: PhantomData<&'a mut T>,
}

/// The lock without the value.
pub(super) struct RawMutex {
    word: AtomicU32,
    queue: Lock<Queue>,
}

// SAFETY: a mutex lends its value to one thread at a time.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: the same.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A mutex that nobody holds.
    #[cfg(not(tsumugi_loom))]
    pub const fn new(value: T) -> Self {
        let raw = RawMutex { word: AtomicU32::new(FREE), queue: Lock::new(Queue::new()) };
        Self { raw, value: UnsafeCell::new(value) }
    }

    /// A mutex that nobody holds.
    #[cfg(tsumugi_loom)]
    pub fn new(value: T) -> Self {
        let raw = RawMutex { word: AtomicU32::new(FREE), queue: Lock::new(Queue::new()) };
        Self { raw, value: UnsafeCell::new(value) }
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks; sleeps while somebody else has it. Locking it twice on one
    /// thread sleeps for ever.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.raw.lock();
        MutexGuard { mutex: self, value: PhantomData }
    }

    /// Locks if nobody has it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.raw.try_lock().then_some(MutexGuard { mutex: self, value: PhantomData })
    }

    /// The value, which nobody else can reach.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `self` is borrowed alone.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl RawMutex {
    #[inline]
    fn try_lock(&self) -> bool {
        // Acquire: pairs with the Release of `unlock`.
        self.word.compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    pub(super) fn lock(&self) {
        if !self.try_lock() {
            self.lock_slow();
        }
    }

    #[inline]
    pub(super) fn unlock(&self) {
        // Release: pairs with the Acquire of the next holder.
        if self.word.compare_exchange(LOCKED, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.hand_over();
        }
    }

    #[cold]
    fn lock_slow(&self) {
        let mut node = Node::new();
        let reason = Reason { what: "mutex", at: self as *const Self as u64, wanted: 0 };
        Here.sleep(reason, &mut |waker| {
            let (this, node) = (self, &raw mut node);
            // SAFETY: the node stays until we are woken. Once the queue's lock
            // is released nothing of the sleeper's is touched; the mutex is
            // there as long as anybody waits for it.
            this.queue.with(|queue| unsafe {
                if this.announce() {
                    queue.push(node, waker);
                    true
                } else {
                    false
                }
            })
        });
    }

    /// Says that somebody waits, or takes the lock: false. Under the queue's
    /// lock.
    fn announce(&self) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let next = if seen == FREE { LOCKED } else { LOCKED | WAITERS };
            if mutant("mutex_no_second_look") {
                self.word.store(LOCKED | WAITERS, Ordering::Relaxed);
                return true;
            }
            // Acquire: if we take the lock, as in `try_lock`.
            match self.word.compare_exchange(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return seen != FREE,
                Err(changed) => seen = changed,
            }
        }
    }

    #[cold]
    fn hand_over(&self) {
        let waker = self.queue.with(|queue| {
            let waker = queue.pop();
            let left = if queue.is_empty() { 0 } else { WAITERS };
            let word = if waker.is_some() { LOCKED | left } else { FREE };
            // Release: pairs with the Acquire of a `lock` after the next one.
            self.word.store(word, Ordering::Release);
            waker
        });
        // Last: the one that is woken may be the mutex's end.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    pub(super) fn raw(&self) -> &'a RawMutex {
        &self.mutex.raw
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the right to the value.
        self.mutex.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the right to the value.
        self.mutex.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.raw.unlock();
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(value) => f.debug_tuple("Mutex").field(&&*value).finish(),
            None => f.write_str("Mutex(<locked>)"),
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

const FREE: u32 = 0;
const LOCKED: u32 = 1;
const WAITERS: u32 = 2;
