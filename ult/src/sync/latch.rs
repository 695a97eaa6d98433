//! Latches: waiting until a number of events have happened.

use super::queue::{self, WaitNode, WaitQueue, WaitSite};
use crate::limit::Limit;
use crate::lock::Lock;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_core::wait::{Interrupted, Reason};

/// A count that goes down to zero once. All waiters pass when it has, and later
/// ones pass at once. Waiters are made ready in the order in which they came.
///
/// ```
/// use tsumugi_ult::sync::Latch;
///
/// let latch = Latch::new(2);
/// latch.count_down(1);
/// assert!(!latch.is_open());
/// latch.count_down(1);
/// latch.wait();
/// ```
pub struct Latch {
    count: AtomicUsize,
    queue: Lock<WaitQueue>,
}

/// A group that waits until all its clones are dropped.
///
/// ```
/// use tsumugi_ult::sync::WaitGroup;
///
/// let group = WaitGroup::new();
/// for _ in 0..3 {
///     let member = group.clone();
///     std::thread::spawn(move || drop(member));
/// }
/// group.wait();
/// ```
pub struct WaitGroup(Arc<Latch>);

impl Latch {
    /// Makes a latch that opens when it has been counted down by `count`.
    pub fn new(count: usize) -> Self {
        Self { count: AtomicUsize::new(count), queue: Lock::new(WaitQueue::new()) }
    }

    /// Counts down by `by`. The latch opens at zero.
    ///
    /// # Panics
    ///
    /// If the count is less than `by`. The count stays as it is.
    pub fn count_down(&self, by: usize) {
        if let Err(left) = self.try_count_down(by) {
            panic!("a latch with {left} left was counted down by {by}");
        }
    }

    /// Does what [`count_down`](Self::count_down) does.
    ///
    /// # Errors
    ///
    /// The count, if it is less than `by`. It stays as it is.
    pub fn try_count_down(&self, by: usize) -> Result<(), usize> {
        // Release: a thread that passes sees what was done before. Acquire: it
        // sees that of all threads that counted down, through the thread that
        // opens the latch. Relaxed: a count that is too small is only shown.
        let less = |count: usize| count.checked_sub(by);
        match self.count.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less) {
            Ok(before) if before == by && by > 0 => {
                self.queue.with(WaitQueue::take).wake_all();
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(left) => Err(left),
        }
    }

    /// Sleeps until the latch is open.
    pub fn wait(&self) {
        // Without a limit nothing interrupts the wait.
        let _ = self.wait_within(Limit::NONE);
    }

    /// Does what [`wait`](Self::wait) does; reports have `reason`.
    #[doc(hidden)]
    pub fn wait_because(&self, reason: Reason) {
        // Without a limit nothing interrupts the wait.
        let _ = self.wait_by(reason, Limit::NONE);
    }

    /// Does what [`wait`](Self::wait) does, for at most `limit`. Returns whether
    /// the latch is open.
    pub fn wait_timeout(&self, limit: Duration) -> bool {
        self.wait_within(limit).is_ok()
    }

    /// Does what [`wait`](Self::wait) does, within a limit.
    ///
    /// # Errors
    ///
    /// [`Interrupted::TimedOut`] if the limit's point in time came before the latch was
    /// open, [`Interrupted::Cancelled`] if a cancellation of the ULT did.
    pub fn wait_within(&self, limit: impl Into<Limit>) -> Result<(), Interrupted> {
        let at = self as *const Self as u64;
        self.wait_by(Reason { what: "latch", at, wanted: 0 }, limit.into())
    }

    fn wait_by(&self, reason: Reason, limit: Limit) -> Result<(), Interrupted> {
        if self.is_open() {
            return Ok(());
        }
        queue::wait(
            self,
            &self.queue,
            reason,
            limit,
            |node| node,
            |queue| queue,
            // The thread that opens the latch takes the queue after that, under
            // the same lock.
            |_| mutate!("latch_no_second_look": !self.is_open() => true),
        )
    }

    /// Whether the count is zero.
    pub fn is_open(&self) -> bool {
        self.count() == 0
    }

    /// Returns what is left to count.
    pub fn count(&self) -> usize {
        // Acquire: pairs with `count_down`.
        self.count.load(Ordering::Acquire)
    }
}

impl WaitSite for Latch {
    unsafe fn take_out(&self, node: *mut WaitNode) -> bool {
        // SAFETY: by the caller's contract the node is there, and was pushed to
        // this queue if to any.
        unsafe { queue::take_out(&self.queue, node, |queue| queue, |_| {}) }
    }

    /// There is nothing to pass on: the latch is open for all, or for none.
    unsafe fn pass_on(&self, _: *mut WaitNode, _: bool) {}
}

impl WaitGroup {
    /// Makes a group with one member, the caller.
    pub fn new() -> Self {
        Self(Arc::new(Latch::new(1)))
    }

    /// Leaves the group and waits until all other members have left.
    pub fn wait(self) {
        // Without a limit nothing interrupts the wait.
        let _ = self.wait_within(Limit::NONE);
    }

    /// Does what [`wait`](Self::wait) does, within a limit. The caller has left
    /// in either case.
    ///
    /// # Errors
    ///
    /// [`Interrupted::TimedOut`] if the limit's point in time came before all members had
    /// left, [`Interrupted::Cancelled`] if a cancellation of the ULT did.
    pub fn wait_within(self, limit: impl Into<Limit>) -> Result<(), Interrupted> {
        let latch = self.0.clone();
        drop(self);
        latch.wait_within(limit)
    }

    /// Does what [`wait`](Self::wait) does, for at most `limit`. Returns whether
    /// all members have left.
    pub fn wait_timeout(self, limit: Duration) -> bool {
        self.wait_within(limit).is_ok()
    }
}

impl Clone for WaitGroup {
    fn clone(&self) -> Self {
        // Relaxed: the count is not zero, because the caller is a member.
        self.0.count.fetch_add(1, Ordering::Relaxed);
        Self(self.0.clone())
    }
}

impl Drop for WaitGroup {
    fn drop(&mut self) {
        self.0.count_down(1);
    }
}

impl Default for WaitGroup {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Latch({} left)", self.count())
    }
}

impl fmt::Debug for WaitGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WaitGroup({} members)", self.0.count())
    }
}
