//! The next time limit of a machine that is driven from many threads: written
//! under the machine's lock, read by whoever is about to sleep.

use std::time::Duration;
use tsumugi_core::sync::{AtomicU64, Ordering};
use tsumugi_core::time::Instant;
use tsumugi_pvas::Member;
use tsumugi_ult::SystemFutex;

/// The limit, and the clock that it is of.
#[derive(Debug)]
pub(crate) struct Deadline {
    /// In nanoseconds; none: the highest number.
    next: AtomicU64,
    epoch: std::time::Instant,
}

impl Deadline {
    /// None; the clock begins.
    pub(crate) fn new() -> Self {
        Self { next: AtomicU64::new(u64::MAX), epoch: std::time::Instant::now() }
    }

    /// The machine's time.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_ns(self.epoch.elapsed().as_nanos() as u64)
    }

    /// How long until the next limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        match self.next.load(Ordering::SeqCst) {
            u64::MAX => None,
            next => Some(Instant::from_ns(next).since(self.now())),
        }
    }

    /// Whether it has passed.
    #[inline]
    pub(crate) fn has_passed(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// The machine has this one now. By whoever has its lock; the rank's helper
    /// is rung if it may sleep for longer.
    pub(crate) fn note(&self, next: Option<Instant>, member: &Member) {
        let next = next.map_or(u64::MAX, Instant::as_ns);
        // Relaxed: it is written under the lock only.
        let before = self.next.load(Ordering::Relaxed);
        if next != before {
            // SeqCst: before the helper's word; the helper looks after it.
            self.next.store(next, Ordering::SeqCst);
        }
        if next < before {
            member.control().bells().ring_helper(&SystemFutex);
        }
    }
}
