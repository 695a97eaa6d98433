//! Waiting for a condition under a mutex.

use super::mutex::MutexGuard;
use super::queue::{Node, Queue};
use crate::lock::Lock;
use crate::park::Here;
use core::fmt;
use tsumugi_core::wait::{Reason, Wait};

/// Where ULTs and OS threads wait until a condition may have changed.
pub struct Condvar {
    queue: Lock<Queue>,
}

impl Condvar {
    /// Nobody waiting.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self { queue: Lock::new(Queue::new()) }
    }

    /// Nobody waiting.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self { queue: Lock::new(Queue::new()) }
    }

    /// Unlocks, sleeps until notified, and locks again. A notice between the
    /// unlock and the sleep is not lost. Never returns without a notice, but
    /// the condition may have changed back by the time the lock is held.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        let mutex = guard.raw();
        let mut node = Node::new();
        let reason = Reason { what: "condvar", at: self as *const Self as u64, wanted: 0 };
        Here.sleep(reason, &mut |waker| {
            let (this, mutex, node) = (self, mutex, &raw mut node);
            // SAFETY: the node stays until we are woken. The sleeper may go on
            // from here, but only to wait for the mutex, which `unlock` gives
            // it as the last thing.
            this.queue.with(|queue| unsafe { queue.push(node, waker) });
            mutex.unlock();
            true
        });
        mutex.lock();
    }

    /// Waits until `condition` is false, as the standard library's does.
    pub fn wait_while<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// Wakes the one that waits longest; whether there was one.
    pub fn notify_one(&self) -> bool {
        let waker = self.queue.with(Queue::pop);
        waker.map(|waker| waker.wake()).is_some()
    }

    /// Wakes all that wait now; how many.
    pub fn notify_all(&self) -> usize {
        self.queue.with(Queue::take).wake_all()
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
