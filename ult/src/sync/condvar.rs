//! A condition variable: waiting for a condition under a mutex.

use super::lock::BiasedLock;
use super::mutex::MutexGuard;
use super::queue::{self, WaitNode, WaitQueue, WaitSite, Wake};
use crate::limit::Limit;
use core::fmt;
use core::time::Duration;
use tsumugi_core::wait::{Interrupted, Reason};

/// A condition variable: ULTs and OS threads wait here until a condition may have
/// changed. A notice goes to the waiter that waits longest.
///
/// ```
/// use tsumugi_ult::sync::{Condvar, Mutex};
///
/// let (ready, changed) = (Mutex::new(false), Condvar::new());
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *ready.lock() = true;
///         changed.notify_one();
///     });
///     let mut ready = ready.lock();
///     changed.wait_while(&mut ready, |ready| !*ready);
///     assert!(*ready);
/// });
/// ```
pub struct Condvar {
    queue: BiasedLock<WaitQueue>,
}

impl Condvar {
    /// Makes a condition variable without waiters.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self { queue: BiasedLock::new(WaitQueue::new()) }
    }

    /// Makes a condition variable without waiters.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self { queue: BiasedLock::new(WaitQueue::new()) }
    }

    /// Unlocks, sleeps until notified, and locks again. A notice between the
    /// unlock and the sleep is not lost. It never returns without a notice, but
    /// the condition may have changed back by the time the lock is held.
    #[inline(always)]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        // Without a limit nothing interrupts the wait.
        let _ = self.wait_within(guard, Limit::NONE);
    }

    /// Does what [`wait`](Self::wait) does, for at most `limit`. Returns whether it
    /// was notified. The lock is held again in either case, however long that takes.
    pub fn wait_timeout<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, limit: Duration) -> bool {
        self.wait_within(guard, limit).is_ok()
    }

    /// Does what [`wait`](Self::wait) does, within a limit. The lock is held
    /// again in either case, however long that takes.
    ///
    /// # Errors
    ///
    /// [`Interrupted::TimedOut`] if the limit's point in time came before a notice,
    /// [`Interrupted::Cancelled`] if a cancellation of the ULT did. No notice was used up
    /// then.
    #[inline(always)]
    pub fn wait_within<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        limit: impl Into<Limit>,
    ) -> Result<(), Interrupted> {
        let mutex = guard.raw();
        let mut node = WaitNode::at(self);
        let node = &raw mut node;
        let reason = Reason { what: "condvar", at: self as *const Self as u64, wanted: 0 };
        let mut publish = |waker| {
            let (this, mutex) = (self, mutex);
            // SAFETY: the node stays until this waiter is woken or has removed
            // it. From here on the sleeper may be woken and go on, but only to
            // wait for the mutex, which `unlock` gives it as its last action.
            this.queue.with(|queue| unsafe { queue.push(node, Wake::Sleeper(waker)) });
            mutex.unlock();
            true
        };
        // SAFETY: the thread that takes the node out uses the waker, unless this
        // call takes it out, or the end of our scheduler does. The node is on
        // this frame.
        let outcome = unsafe {
            queue::sleep(reason, limit.into(), node, &mut publish, &mut || self.take_out(node))
        };
        mutex.lock();
        outcome
    }

    /// Waits until `condition` returns false, as the standard library's function
    /// does.
    #[inline(always)]
    pub fn wait_while<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// Wakes the waiter that waits longest. Returns whether there was one.
    #[inline(always)]
    pub fn notify_one(&self) -> bool {
        let first = self.queue.with(WaitQueue::pop);
        first.map(Wake::wake).is_some()
    }

    /// Wakes all that wait at this moment. Returns how many there were.
    pub fn notify_all(&self) -> usize {
        self.queue.with(WaitQueue::take).wake_all()
    }
}

impl WaitSite for Condvar {
    unsafe fn take_out(&self, node: *mut WaitNode) -> bool {
        // SAFETY: by the caller's contract the node is there, and was pushed to
        // this queue if to any.
        self.queue.with(|queue| unsafe { queue.remove(node) })
    }

    unsafe fn pass_on(&self, _: *mut WaitNode, waited: bool) {
        if !waited {
            self.notify_one();
        }
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar")
    }
}
