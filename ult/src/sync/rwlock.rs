//! A lock for many readers or one writer.
//!
//! ```text
//!   word:   readers · 4  +  WAITERS (2)  +  WRITER (1)
//! ```
//!
//! WAITERS is set exactly while the queue is not empty; it changes under the
//! queue's lock. It keeps later callers off the fast path, so no reader overtakes
//! a waiting writer, and no writer a waiting reader. A thread that leaves the
//! lock free, or leaves the queue with another first waiter, admits waiters from
//! the front: one writer, or all readers up to the next writer.

use super::queue::{self, WaitNode, WaitQueue, WaitSite};
use crate::limit::Limit;
use crate::lock::Lock;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicU32, Ordering, UnsafeCell};
use tsumugi_core::wait::{Interrupted, Reason};

/// A value that many threads may read or one may write. The lock is first-in
/// first-out, so a reader that reads again while a writer waits in between sleeps
/// for ever. A panic does not poison it.
///
/// ```
/// use tsumugi_ult::sync::RwLock;
///
/// let lock = RwLock::new(5);
/// {
///     let (one, other) = (lock.read(), lock.read());
///     assert_eq!(*one + *other, 10);
///     assert!(lock.try_write().is_none());
/// }
/// *lock.write() += 1;
/// assert_eq!(lock.into_inner(), 6);
/// ```
pub struct RwLock<T: ?Sized> {
    raw: RawRwLock,
    value: UnsafeCell<T>,
}

/// The lock without the value.
struct RawRwLock {
    word: AtomicU32,
    queue: Lock<WaitQueue>,
}

/// The right to read, until dropped. It may be dropped on any worker.
pub struct ReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
}

/// The right to write, until dropped. It may be dropped on any worker.
pub struct WriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    /// `Sync` exactly if `T` is.
    value: PhantomData<&'a mut T>,
}

// SAFETY: the lock gives its value to one writer at a time, or to many readers.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: as for `Send`; readers on several threads share the value, so it must
// be `Sync`.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// Makes a lock that is free.
    #[cfg(not(tsumugi_loom))]
    pub const fn new(value: T) -> Self {
        let raw = RawRwLock { word: AtomicU32::new(0), queue: Lock::new(WaitQueue::new()) };
        Self { raw, value: UnsafeCell::new(value) }
    }

    /// Makes a lock that is free.
    #[cfg(tsumugi_loom)]
    pub fn new(value: T) -> Self {
        let raw = RawRwLock { word: AtomicU32::new(0), queue: Lock::new(WaitQueue::new()) };
        Self { raw, value: UnsafeCell::new(value) }
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks for reading: waits until no writer holds the lock or waits in front.
    pub fn read(&self) -> ReadGuard<'_, T> {
        if !self.raw.take(READER) {
            // Without a limit nothing interrupts the wait.
            let _ = self.raw.wait(READER, Limit::NONE);
        }
        ReadGuard { lock: self }
    }

    /// Locks for reading, if no writer holds the lock and there are no waiters.
    pub fn try_read(&self) -> Option<ReadGuard<'_, T>> {
        self.raw.take(READER).then(|| ReadGuard { lock: self })
    }

    /// Does what [`read`](Self::read) does, for at most `limit`.
    pub fn read_timeout(&self, limit: Duration) -> Option<ReadGuard<'_, T>> {
        self.read_within(limit).ok()
    }

    /// Does what [`read`](Self::read) does, within a limit.
    ///
    /// # Errors
    ///
    /// [`Interrupted::TimedOut`] if the limit's point in time came before the lock,
    /// [`Interrupted::Cancelled`] if a cancellation of the ULT did.
    pub fn read_within(&self, limit: impl Into<Limit>) -> Result<ReadGuard<'_, T>, Interrupted> {
        if !self.raw.take(READER) {
            self.raw.wait(READER, limit.into())?;
        }
        Ok(ReadGuard { lock: self })
    }

    /// Locks for writing: waits until the lock is free and no caller waits in front.
    pub fn write(&self) -> WriteGuard<'_, T> {
        if !self.raw.take(WRITER) {
            // As in `read`.
            let _ = self.raw.wait(WRITER, Limit::NONE);
        }
        WriteGuard { lock: self, value: PhantomData }
    }

    /// Locks for writing, if the lock is free and there are no waiters.
    pub fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        self.raw.take(WRITER).then(|| WriteGuard { lock: self, value: PhantomData })
    }

    /// Does what [`write`](Self::write) does, for at most `limit`.
    pub fn write_timeout(&self, limit: Duration) -> Option<WriteGuard<'_, T>> {
        self.write_within(limit).ok()
    }

    /// Does what [`write`](Self::write) does, within a limit.
    ///
    /// # Errors
    ///
    /// [`Interrupted::TimedOut`] if the limit's point in time came before the lock,
    /// [`Interrupted::Cancelled`] if a cancellation of the ULT did.
    pub fn write_within(&self, limit: impl Into<Limit>) -> Result<WriteGuard<'_, T>, Interrupted> {
        if !self.raw.take(WRITER) {
            self.raw.wait(WRITER, limit.into())?;
        }
        Ok(WriteGuard { lock: self, value: PhantomData })
    }

    /// Unlocks a lock whose read guard was forgotten. Returns false, and changes nothing,
    /// if the lock has no reader.
    ///
    /// # Safety
    ///
    /// There is such a guard, and it is not used; or the lock has no reader.
    #[must_use]
    pub unsafe fn unlock_read(&self) -> bool {
        self.raw.leave_if_held(READER)
    }

    /// Unlocks a lock whose write guard was forgotten. Returns false, and changes nothing,
    /// if the lock has no writer.
    ///
    /// # Safety
    ///
    /// There is such a guard, and it is not used; or the lock has no writer.
    #[must_use]
    pub unsafe fn unlock_write(&self) -> bool {
        self.raw.leave_if_held(WRITER)
    }

    /// Returns the value, which no other thread can access: the borrow is exclusive.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `self` is borrowed exclusively.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl RawRwLock {
    /// Takes a share of the lock, if there are no waiters and no holder that
    /// clashes.
    #[inline]
    fn take(&self, share: u32) -> bool {
        self.take_if(share, WAITERS)
    }

    fn take_if(&self, share: u32, refused_by: u32) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            if seen & refused_by != 0 || clashes(share, seen) {
                return false;
            }
            let next = seen + share;
            // Acquire: pairs with the Release of the holder before.
            match self.word.compare_exchange(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(changed) => seen = changed,
            }
        }
    }

    #[cold]
    fn wait(&self, share: u32, limit: Limit) -> Result<(), Interrupted> {
        let what = if share == READER { "read" } else { "write" };
        let reason = Reason { what, at: (&raw const self.word) as u64, wanted: 0 };
        let outcome = queue::wait(
            self,
            &self.queue,
            reason,
            limit,
            |node| node.with_amount(share as usize),
            |queue| queue,
            |queue| self.announce(share, queue),
        );
        if outcome.is_err() {
            // The waiters behind this one may have had to wait only because of it.
            self.admit();
        }
        outcome
    }

    /// Announces a waiter in the word. If the lock may be taken, takes it and
    /// returns false. Called under the lock of the queue.
    fn announce(&self, share: u32, queue: &WaitQueue) -> bool {
        if !queue.is_empty() {
            return true;
        }
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let clash = clashes(share, seen);
            let next = if clash { seen | WAITERS } else { seen + share };
            // Acquire: as in `take_if`, in case this takes the lock.
            let announced = mutate!("rwlock_no_second_look":
                self.word.compare_exchange(seen, next, Ordering::Acquire, Ordering::Relaxed)
                => {
                    self.word.fetch_or(WAITERS, Ordering::Relaxed);
                    return true;
                }
            );
            match announced {
                Ok(_) => return clash,
                Err(changed) => seen = changed,
            }
        }
    }

    /// Gives a share back, if there is one of this kind: always, if the caller has it.
    fn leave_if_held(&self, share: u32) -> bool {
        // Relaxed: the caller's own share cannot go meanwhile, so it is in any value that
        // the caller can see.
        let word = self.word.load(Ordering::Relaxed);
        let is_held = if share == READER { word >= READER } else { word & WRITER != 0 };
        if is_held {
            self.leave(share);
        }
        is_held
    }

    fn leave(&self, share: u32) {
        // Release: pairs with the Acquire of the next holder.
        let left = self.word.fetch_sub(share, Ordering::Release) - share;
        if left == WAITERS {
            self.admit();
        }
    }

    /// Admits waiters from the front of the queue, as many as may enter.
    #[cold]
    fn admit(&self) {
        // The wakes come last: a waiter that is woken may free the lock.
        queue::wake_each(&self.queue, |queue| {
            let admitted = match queue.first() {
                Some(first) => self.take_if(first.amount as u32, 0),
                None => false,
            };
            let wake = if admitted { queue.pop() } else { None };
            if queue.is_empty() {
                self.word.fetch_and(!WAITERS, Ordering::Relaxed);
            }
            wake
        });
    }
}

impl WaitSite for RawRwLock {
    unsafe fn take_out(&self, node: *mut WaitNode) -> bool {
        // SAFETY: by the caller's contract the node is there, and was pushed to
        // this queue if to any.
        unsafe { queue::take_out(&self.queue, node, |queue| queue, |_| {}) }
    }

    unsafe fn pass_on(&self, node: *mut WaitNode, waited: bool) {
        if waited {
            // The waiters behind this one may have had to wait only because of it.
            self.admit();
        } else {
            // SAFETY: by the caller's contract the node is there, and in no queue.
            self.leave(unsafe { (*node).amount } as u32);
        }
    }
}

/// Whether a caller that wants `share` must wait for the holders in `word`.
fn clashes(share: u32, word: u32) -> bool {
    let in_the_way = if share == READER { WRITER } else { !WAITERS };
    word & in_the_way != 0
}

impl<T: ?Sized> Deref for ReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard is the right to read.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard is the exclusive right to the value.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the exclusive right to the value.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: ?Sized> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.raw.leave(READER);
    }
}

impl<T: ?Sized> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.raw.leave(WRITER);
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_read() {
            Some(value) => f.debug_tuple("RwLock").field(&&*value).finish(),
            None => f.write_str("RwLock(<locked>)"),
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for ReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for WriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

const WRITER: u32 = 1;
const WAITERS: u32 = 2;
const READER: u32 = 4;
