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

use super::queue::{self, Node, Queue};
use crate::limit::Limit;
use crate::lock::Lock;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use tsumugi_core::sync::{AtomicU32, Ordering, UnsafeCell, mutant};
use tsumugi_core::wait::{Interrupted, Reason};

/// A value that one ULT or OS thread at a time can reach. Not poisoned by a
/// panic.
///
/// ```
/// use tsumugi_ult::sync::Mutex;
///
/// let count = Mutex::new(0);
/// std::thread::scope(|scope| {
///     (0..4).for_each(|_| {
///         scope.spawn(|| *count.lock() += 1);
///     });
/// });
/// assert_eq!(count.into_inner(), 4);
/// ```
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
        self.raw.try_lock().then(|| MutexGuard { mutex: self, value: PhantomData })
    }

    /// Locks, if that takes `limit` at most.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tsumugi_ult::sync::Mutex;
    ///
    /// let mutex = Mutex::new(7);
    /// let held = mutex.lock();
    /// assert!(mutex.lock_for(Duration::from_millis(1)).is_none());
    /// drop(held);
    /// assert_eq!(*mutex.lock_for(Duration::from_millis(1)).unwrap(), 7);
    /// ```
    pub fn lock_for(&self, limit: Duration) -> Option<MutexGuard<'_, T>> {
        self.lock_within(limit).ok()
    }

    /// Locks within a limit.
    ///
    /// # Errors
    ///
    /// [`Interrupted`].
    pub fn lock_within(&self, limit: impl Into<Limit>) -> Result<MutexGuard<'_, T>, Interrupted> {
        if !self.raw.try_lock() {
            self.raw.lock_slow(limit.into())?;
        }
        Ok(MutexGuard { mutex: self, value: PhantomData })
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
            // Without a limit nothing interrupts.
            let _ = self.lock_slow(Limit::NONE);
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
    fn lock_slow(&self, limit: Limit) -> Result<(), Interrupted> {
        let reason = Reason { what: "mutex", at: self as *const Self as u64, wanted: 0 };
        // One who leaves the queue empty leaves WAITERS set: the next unlock
        // finds nobody and frees the lock.
        queue::wait(
            &self.queue,
            reason,
            limit,
            Node::new(),
            |queue| queue,
            |_| self.announce(),
            |_| {},
        )
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
        let first = self.queue.with(|queue| {
            let first = queue.pop();
            let left = if queue.is_empty() { 0 } else { WAITERS };
            let word = if first.is_some() { LOCKED | left } else { FREE };
            // Release: pairs with the Acquire of a `lock` after the next one.
            self.word.store(word, Ordering::Release);
            first
        });
        // Last: the one that is woken may be the mutex's end.
        queue::tell(first);
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
