//! A counting semaphore.

use super::queue::{self, WaitNode, WaitQueue, WaitSite, Wake};
use crate::limit::Limit;
use crate::lock::Lock;
use core::fmt;
use core::time::Duration;
use tsumugi_core::wait::{Interrupted, Reason};

/// A number of permits that are taken and given back. First-in first-out: a
/// caller that wants many permits is not overtaken by callers that want few.
///
/// ```
/// use tsumugi_ult::sync::Semaphore;
///
/// let room = Semaphore::new(2);
/// room.acquire(2);
/// assert!(!room.try_acquire(1));
/// room.release(1);
/// assert_eq!(room.available(), 1);
/// ```
pub struct Semaphore {
    state: Lock<Permits>,
}

struct Permits {
    free: usize,
    queue: WaitQueue,
}

impl Semaphore {
    /// Makes a semaphore with `permits` free permits.
    #[cfg(not(tsumugi_loom))]
    pub const fn new(permits: usize) -> Self {
        Self { state: Lock::new(Permits { free: permits, queue: WaitQueue::new() }) }
    }

    /// Makes a semaphore with `permits` free permits.
    #[cfg(tsumugi_loom)]
    pub fn new(permits: usize) -> Self {
        Self { state: Lock::new(Permits { free: permits, queue: WaitQueue::new() }) }
    }

    /// Takes `count` permits; sleeps until so many are free and no caller waits
    /// in front.
    pub fn acquire(&self, count: usize) {
        // Without a limit nothing interrupts the wait.
        let _ = self.acquire_within(count, Limit::NONE);
    }

    /// Takes `count` permits if so many are free and there are no waiters.
    pub fn try_acquire(&self, count: usize) -> bool {
        self.state.with(|permits| permits.take(count))
    }

    /// Does what [`acquire`](Self::acquire) does, if that takes at most `limit`.
    pub fn acquire_timeout(&self, count: usize, limit: Duration) -> bool {
        self.acquire_within(count, limit).is_ok()
    }

    /// Does what [`acquire`](Self::acquire) does, within a limit.
    ///
    /// # Errors
    ///
    /// [`Interrupted::TimedOut`] if the limit's point in time came before the permits,
    /// [`Interrupted::Cancelled`] if a cancellation of the ULT did. No permit was taken then.
    pub fn acquire_within(&self, count: usize, limit: impl Into<Limit>) -> Result<(), Interrupted> {
        if self.try_acquire(count) {
            return Ok(());
        }
        let at = self as *const Self as u64;
        let outcome = queue::wait(
            self,
            &self.state,
            Reason { what: "semaphore", at, wanted: count as u64 },
            limit.into(),
            |node| node.with_amount(count),
            |permits| &mut permits.queue,
            |permits| !permits.take(count),
        );
        if outcome.is_err() {
            // The waiters behind this one may have had to wait only because of it.
            self.release(0);
        }
        outcome
    }

    /// Gives `count` permits back, or adds new ones.
    ///
    /// # Panics
    ///
    /// If more than [`usize::MAX`] permits would be free. Their number stays as it is.
    pub fn release(&self, count: usize) {
        assert!(self.try_release(count), "a semaphore has no room for {count} more permits");
    }

    /// Does what [`release`](Self::release) does; if more than [`usize::MAX`] permits would
    /// be free, it changes nothing and returns false.
    #[must_use]
    pub fn try_release(&self, count: usize) -> bool {
        let (mut given, mut fits) = (count, true);
        queue::wake_each(&self.state, |permits| {
            match permits.free.checked_add(core::mem::take(&mut given)) {
                Some(free) => permits.free = free,
                None => {
                    fits = false;
                    return None;
                }
            }
            permits.hand_over()
        });
        fits
    }

    /// Returns how many permits are free.
    pub fn available(&self) -> usize {
        self.state.with(|permits| permits.free)
    }
}

impl WaitSite for Semaphore {
    unsafe fn take_out(&self, node: *mut WaitNode) -> bool {
        // SAFETY: by the caller's contract the node is there, and was pushed to
        // this queue if to any.
        unsafe { queue::take_out(&self.state, node, |permits| &mut permits.queue, |_| {}) }
    }

    unsafe fn pass_on(&self, node: *mut WaitNode, waited: bool) {
        // The waiters behind this one may have had to wait only because of it.
        // SAFETY: by the caller's contract the node is there, and in no queue.
        self.release(if waited { 0 } else { unsafe { (*node).amount } });
    }
}

impl Permits {
    fn take(&mut self, count: usize) -> bool {
        let takes = self.queue.is_empty() && count <= self.free;
        if takes {
            self.free -= count;
        }
        takes
    }

    /// Serves the first waiter, if there are enough permits for it.
    fn hand_over(&mut self) -> Option<Wake> {
        let wanted = self.queue.first()?.amount;
        self.free = self.free.checked_sub(wanted)?;
        self.queue.pop()
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Semaphore({} free)", self.available())
    }
}
