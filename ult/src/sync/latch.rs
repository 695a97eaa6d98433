//! Waiting until a number of things have happened.

use super::queue::{self, Node, Place, Queue};
use crate::limit::Limit;
use crate::lock::Lock;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use tsumugi_core::sync::{AtomicUsize, Ordering, mutant};
use tsumugi_core::wait::{Interrupted, Reason};

/// Counts down to zero once, and lets everybody pass from then on. Waiters
/// are made ready in the order in which they came.
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
    queue: Lock<Queue>,
}

/// Waits for all its clones to be dropped.
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
    /// A latch that opens after `count`.
    pub fn new(count: usize) -> Self {
        Self { count: AtomicUsize::new(count), queue: Lock::new(Queue::new()) }
    }

    /// Counts `by` down; opens at zero.
    ///
    /// # Panics
    ///
    /// If the count is less than `by`.
    pub fn count_down(&self, by: usize) {
        // Release: what was done before is seen by those who pass. Acquire: and
        // all of it by them, through whoever opens.
        let before = self.count.fetch_sub(by, Ordering::AcqRel);
        assert!(before >= by, "a latch at {before} was counted down by {by}");
        if before == by && by > 0 {
            self.queue.with(Queue::take).wake_all();
        }
    }

    /// Sleeps until the latch is open.
    pub fn wait(&self) {
        // Without a limit nothing interrupts.
        let _ = self.wait_within(Limit::NONE);
    }

    /// As [`wait`](Self::wait), for `limit` at most; whether it is open.
    pub fn wait_timeout(&self, limit: Duration) -> bool {
        self.wait_within(limit).is_ok()
    }

    /// As [`wait`](Self::wait), within a limit.
    ///
    /// # Errors
    ///
    /// [`Interrupted`].
    pub fn wait_within(&self, limit: impl Into<Limit>) -> Result<(), Interrupted> {
        if self.is_open() {
            return Ok(());
        }
        let at = self as *const Self as u64;
        queue::wait(
            self,
            &self.queue,
            Reason { what: "latch", at, wanted: 0 },
            limit.into(),
            |node| node,
            |queue| queue,
            // Whoever opens it takes the queue after, under the same lock.
            |_| mutant("latch_no_second_look") || !self.is_open(),
        )
    }

    /// Whether the count is zero.
    pub fn is_open(&self) -> bool {
        self.count() == 0
    }

    /// What is left to count.
    pub fn count(&self) -> usize {
        // Acquire: pairs with `count_down`.
        self.count.load(Ordering::Acquire)
    }
}

impl Place for Latch {
    unsafe fn take_out(&self, node: *mut Node) -> bool {
        // SAFETY: the caller's.
        unsafe { queue::take_out(&self.queue, node, |queue| queue, |_| {}) }
    }

    /// It is open for all, or for none.
    unsafe fn pass_on(&self, _: *mut Node, _: bool) {}
}

impl WaitGroup {
    /// A group of one, the caller.
    pub fn new() -> Self {
        Self(Arc::new(Latch::new(1)))
    }

    /// Leaves the group and waits until all others have.
    pub fn wait(self) {
        // Without a limit nothing interrupts.
        let _ = self.wait_within(Limit::NONE);
    }

    /// As [`wait`](Self::wait), within a limit. The caller has left in either
    /// case.
    ///
    /// # Errors
    ///
    /// [`Interrupted`].
    pub fn wait_within(self, limit: impl Into<Limit>) -> Result<(), Interrupted> {
        let latch = self.0.clone();
        drop(self);
        latch.wait_within(limit)
    }

    /// As [`wait`](Self::wait), for `limit` at most; whether all have left.
    pub fn wait_timeout(self, limit: Duration) -> bool {
        self.wait_within(limit).is_ok()
    }
}

impl Clone for WaitGroup {
    fn clone(&self) -> Self {
        // Relaxed: not zero, because we are a member.
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
