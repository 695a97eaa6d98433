//! The next time limit of a state machine that many threads drive: written under
//! the machine's lock, and read by a thread that is about to sleep.

use std::time::Duration;
use tsumugi_core::sync::{AtomicU64, Ordering};
use tsumugi_core::time::Instant;
use tsumugi_pvas::Member;
use tsumugi_ult::SystemFutex;

/// The next time limit, and the clock that it refers to.
#[derive(Debug)]
pub(crate) struct Deadline {
    /// In nanoseconds; the highest number means no limit.
    next: AtomicU64,
    epoch: std::time::Instant,
}

impl Deadline {
    /// Starts the clock; there is no limit yet.
    pub(crate) fn new() -> Self {
        Self { next: AtomicU64::new(u64::MAX), epoch: std::time::Instant::now() }
    }

    /// The present time of the machine.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_ns(self.epoch.elapsed().as_nanos() as u64)
    }

    /// The time until the next limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        match self.next.load(Ordering::SeqCst) {
            u64::MAX => None,
            next => Some(Instant::from_ns(next).since(self.now())),
        }
    }

    /// Whether the limit has passed.
    #[inline]
    pub(crate) fn has_passed(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Sets the next limit. The caller holds the machine's lock. Rings the rank's
    /// progress thread if that thread may sleep for longer.
    pub(crate) fn note(&self, next: Option<Instant>, member: &Member) {
        let next = next.map_or(u64::MAX, Instant::as_ns);
        // Relaxed: the word is only written under the lock.
        let before = self.next.load(Ordering::Relaxed);
        if next != before {
            // SeqCst: before the progress thread's word is rung; that thread reads
            // the limit after the word.
            self.next.store(next, Ordering::SeqCst);
        }
        if next < before {
            member.control().bells().ring_helper(&SystemFutex);
        }
    }
}
