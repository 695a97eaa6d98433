//! Mutual exclusion.
//!
//! ```text
//!   FREE ──lock──► LOCKED ──another waits───► LOCKED | WAITERS
//!     ▲               │                             │ unlock: the first
//!     └────unlock─────┘                             ▼ waiter has it now
//! ```
//!
//! An unlock with waiters hands the lock over: a waiter that is woken holds the
//! lock, and no later caller overtakes it.
//!
//! A mutex that the ULTs of one worker have locked many times, and that no other
//! thread has ever locked, is *biased*. From then on its word stays `LOCKED`, and
//! that worker's ULTs lock and unlock by entering and leaving the [`Bias`],
//! without an atomic instruction. Any other caller (another thread, or a ULT of
//! that worker while another ULT holds the lock) finds the word taken, and ends
//! the bias under the lock of the queue.
//!
//! Progress: `lock` blocks; `try_lock` and the unlock take the lock of the queue
//! if there are waiters, or if the mutex is biased to another thread.

use super::queue::{self, WaitNode, WaitQueue, WaitSite, Wake};
use crate::bias::Bias;
use crate::limit::Limit;
use crate::lock::Lock;
use crate::sched::bias_name;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicU32, Ordering, UnsafeCell};
use tsumugi_core::wait::{Interrupted, Reason};

/// A value that one ULT or OS thread at a time can access. A panic does not
/// poison it.
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
/// than the one on which it locked.
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// `Sync` exactly if `T` is.
    value: PhantomData<&'a mut T>,
}

/// The lock without the value.
pub(super) struct RawMutex {
    word: AtomicU32,
    bias: Bias,
    waiting: Lock<MutexWaiters>,
}

struct MutexWaiters {
    queue: WaitQueue,
    /// The bias ended while its owner held the lock by it, and the owner has not
    /// noticed yet: it must pass the lock on when it does.
    owed: bool,
}

// SAFETY: a mutex gives its value to one thread at a time.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: the same.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// Makes a mutex that is free.
    #[cfg(not(tsumugi_loom))]
    pub const fn new(value: T) -> Self {
        Self { raw: RawMutex::new(), value: UnsafeCell::new(value) }
    }

    /// Makes a mutex that is free.
    #[cfg(tsumugi_loom)]
    pub fn new(value: T) -> Self {
        Self { raw: RawMutex::new(), value: UnsafeCell::new(value) }
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks the mutex; sleeps while another ULT or thread holds it. A caller
    /// that holds the mutex already sleeps for ever.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.raw.lock();
        MutexGuard { mutex: self, value: PhantomData }
    }

    /// Locks the mutex if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.raw.try_lock().then(|| MutexGuard { mutex: self, value: PhantomData })
    }

    /// Locks the mutex, if that takes at most `limit`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tsumugi_ult::sync::Mutex;
    ///
    /// let mutex = Mutex::new(7);
    /// let held = mutex.lock();
    /// assert!(mutex.lock_timeout(Duration::from_millis(1)).is_none());
    /// drop(held);
    /// assert_eq!(*mutex.lock_timeout(Duration::from_millis(1)).unwrap(), 7);
    /// ```
    pub fn lock_timeout(&self, limit: Duration) -> Option<MutexGuard<'_, T>> {
        self.lock_within(limit).ok()
    }

    /// Locks the mutex within a limit.
    ///
    /// # Errors
    ///
    /// [`Interrupted::TimedOut`] if the limit's point in time came before the lock,
    /// [`Interrupted::Cancelled`] if a cancellation of the ULT did.
    pub fn lock_within(&self, limit: impl Into<Limit>) -> Result<MutexGuard<'_, T>, Interrupted> {
        if !self.raw.try_lock() {
            self.raw.lock_slow(limit.into())?;
        }
        Ok(MutexGuard { mutex: self, value: PhantomData })
    }

    /// Returns the value, which no other thread can access: the borrow is exclusive.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `self` is borrowed exclusively.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl RawMutex {
    #[cfg(not(tsumugi_loom))]
    const fn new() -> Self {
        let waiting = MutexWaiters { queue: WaitQueue::new(), owed: false };
        Self { word: AtomicU32::new(FREE), bias: Bias::new(), waiting: Lock::new(waiting) }
    }

    #[cfg(tsumugi_loom)]
    fn new() -> Self {
        let waiting = MutexWaiters { queue: WaitQueue::new(), owed: false };
        Self { word: AtomicU32::new(FREE), bias: Bias::new(), waiting: Lock::new(waiting) }
    }

    #[inline(always)]
    pub(super) fn lock(&self) {
        if !self.lock_fast() {
            // Without a limit nothing interrupts the wait.
            let _ = self.lock_slow(Limit::NONE);
        }
    }

    fn try_lock(&self) -> bool {
        self.lock_fast() || self.bias.is_taken() && self.try_lock_slow()
    }

    /// Locks, if that takes a few instructions. It does not if the lock is free
    /// but biased to another thread.
    #[inline(always)]
    fn lock_fast(&self) -> bool {
        let me = bias_name();
        if self.bias.is_of(me) {
            // Another ULT of this thread may hold the lock.
            return !self.bias.is_inside() && (self.bias.go_in(me) || self.lock_disturbed());
        }
        if self.bias.is_shared() { self.lock_word() } else { self.lock_and_note(me) }
    }

    #[inline(always)]
    fn lock_word(&self) -> bool {
        // Acquire: pairs with the Release of `unlock`.
        self.word.compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn lock_and_note(&self, me: usize) -> bool {
        let locked = self.lock_word();
        if locked {
            // If the bias is this thread's from now on, the word stays LOCKED.
            self.bias.note(me);
        }
        locked
    }

    /// Called when the bias ended while this thread entered it.
    #[cold]
    #[inline(never)]
    fn lock_disturbed(&self) -> bool {
        self.settle();
        self.lock_word()
    }

    #[inline(always)]
    pub(super) fn unlock(&self) {
        let me = bias_name();
        if self.bias.is_of(me) {
            self.bias.leave();
            if !self.bias.is_still_of(me) {
                self.settle();
            }
        } else if self.bias.is_shared() || !self.bias.is_taken() {
            self.unlock_word();
        } else {
            self.unlock_for_another();
        }
    }

    #[inline(always)]
    fn unlock_word(&self) {
        // Release: pairs with the Acquire of the next holder.
        if self.word.compare_exchange(LOCKED, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.hand_over();
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, limit: Limit) -> Result<(), Interrupted> {
        let reason = Reason { what: "mutex", at: self as *const Self as u64, wanted: 0 };
        // A waiter that gives up and leaves the queue empty leaves WAITERS set:
        // the next unlock finds no waiter and frees the lock.
        queue::wait(
            self,
            &self.waiting,
            reason,
            limit,
            |node| node,
            |waiting| &mut waiting.queue,
            |waiting| self.announce(waiting),
        )
    }

    #[cold]
    fn try_lock_slow(&self) -> bool {
        self.waiting.with(|waiting| self.end_bias(waiting));
        self.lock_word()
    }

    /// Announces a waiter in the word. If the lock is free, takes it and returns
    /// false.
    fn announce(&self, waiting: &mut MutexWaiters) -> bool {
        self.end_bias(waiting);
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let next = if seen == FREE { LOCKED } else { LOCKED | WAITERS };
            // Acquire: as in `lock_word`, in case this takes the lock.
            let announced = mutate!("mutex_no_second_look":
                self.word.compare_exchange(seen, next, Ordering::Acquire, Ordering::Relaxed)
                => {
                    self.word.store(LOCKED | WAITERS, Ordering::Relaxed);
                    return true;
                }
            );
            match announced {
                Ok(_) => return seen != FREE,
                Err(changed) => seen = changed,
            }
        }
    }

    /// Ends the bias, if there is one: from here on the word has the state of the
    /// lock.
    fn end_bias(&self, waiting: &mut MutexWaiters) {
        self.bias.end(bias_name(), |inside| {
            if inside {
                // This comes before the owner can find that the bias has ended
                // and that it must free the word.
                self.word.store(LOCKED | WAITERS, Ordering::Relaxed);
                waiting.owed = mutate!("mutex_owes_nothing": true => false);
            } else {
                // Release: what the owner did inside, which `end` has acquired.
                self.word.store(FREE, Ordering::Release);
            }
        });
    }

    /// Called by an owner that finds the bias ended. If the bias ended while this
    /// owner was inside, the owner has held the lock, and passes it on.
    #[cold]
    #[inline(never)]
    fn settle(&self) {
        let first = self.waiting.with(|waiting| waiting.owed.then(|| self.pass_on(waiting)));
        queue::tell(first.flatten());
    }

    /// Unlocks when the lock is biased to another thread: the guard has moved to
    /// this one.
    #[cold]
    #[inline(never)]
    fn unlock_for_another(&self) {
        let first = self.waiting.with(|waiting| {
            self.end_bias(waiting);
            self.pass_on(waiting)
        });
        queue::tell(first);
    }

    #[cold]
    #[inline(never)]
    fn hand_over(&self) {
        let first = self.waiting.with(|waiting| self.pass_on(waiting));
        // The wake is last: the waiter that is woken may free the mutex.
        queue::tell(first);
    }

    /// Gives the lock to the first waiter, or frees it. The caller must wake the
    /// waiter.
    fn pass_on(&self, waiting: &mut MutexWaiters) -> Option<Wake> {
        waiting.owed = false;
        let first = waiting.queue.pop();
        let left = if waiting.queue.is_empty() { 0 } else { WAITERS };
        let word = if first.is_some() { LOCKED | left } else { FREE };
        // Release: pairs with the Acquire of a `lock` that comes after the next
        // holder.
        self.word.store(word, Ordering::Release);
        first
    }
}

impl WaitSite for RawMutex {
    unsafe fn take_out(&self, node: *mut WaitNode) -> bool {
        // SAFETY: by the caller's contract the node is there, and was pushed to
        // this queue if to any.
        unsafe { queue::take_out(&self.waiting, node, |waiting| &mut waiting.queue, |_| {}) }
    }

    unsafe fn pass_on(&self, _: *mut WaitNode, waited: bool) {
        if !waited {
            self.unlock();
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
        // SAFETY: the guard is the exclusive right to the value.
        self.mutex.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the exclusive right to the value.
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
