//! Making all workers stand still for a moment, so that somebody can look at
//! the stacks of sleeping ULTs.
//!
//! ```text
//!   who looks: call ──► all stand? ──► look ──► release
//!   worker:    at a fair turn or while it searches: stand until released
//! ```
//!
//! A worker whose ULT does not let go never stands; the caller gives up after
//! a while. Workers that sleep are rung, because one that wakes by itself must
//! not run a ULT meanwhile.

#[cfg(feature = "std")]
use super::current;
#[cfg(feature = "std")]
use super::shared::Shared;
use crate::futex::SystemFutex;
#[cfg(feature = "std")]
use crate::futex::os_yield;
#[cfg(feature = "std")]
use std::time::{Duration, Instant};
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_core::wait::Futex;

/// The workers' traffic light.
pub(crate) struct Halt {
    called: AtomicU32,
    standing: AtomicU32,
}

/// All workers stand as long as this lives.
#[cfg(feature = "std")]
pub(crate) struct Standstill<'a>(&'a Halt);

impl Halt {
    pub(super) fn new() -> Self {
        Self { called: AtomicU32::new(0), standing: AtomicU32::new(0) }
    }

    #[inline]
    pub(super) fn is_called(&self) -> bool {
        cfg!(all(feature = "std", not(tsumugi_loom))) && self.called.load(Ordering::Relaxed) != 0
    }

    /// Stands still while that is wanted. By a worker, between two ULTs.
    #[inline]
    pub(super) fn stand(&self) {
        if self.is_called() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        // Release: what this worker's ULTs did is seen by who looks.
        self.standing.fetch_add(1, Ordering::AcqRel);
        while self.called.load(Ordering::Acquire) != 0 {
            SystemFutex.wait(&self.called, 1, None);
        }
        self.standing.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(feature = "std")]
impl Shared {
    /// Makes all workers stand, but the one that the caller runs on. `None`:
    /// some did not within `patience`, or somebody else looks.
    pub(crate) fn halt(&self, patience: Duration) -> Option<Standstill<'_>> {
        let own = current::worker().is_some_and(|worker| {
            // SAFETY: this thread's worker.
            core::ptr::eq(&raw const **unsafe { worker.as_ref() }.shared(), self)
        });
        let wanted = self.seats.len() as u32 - u32::from(own);
        let halt = &self.halt;
        if halt.called.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return None;
        }
        let standstill = Standstill(halt);
        let start = Instant::now();
        // Acquire: pairs with `wait`.
        while halt.standing.load(Ordering::Acquire) < wanted {
            // Again and again: one may have gone to sleep after the last time.
            self.bells.ring_all(&SystemFutex);
            if start.elapsed() > patience {
                return None;
            }
            os_yield();
        }
        Some(standstill)
    }
}

#[cfg(feature = "std")]
impl Drop for Standstill<'_> {
    fn drop(&mut self) {
        self.0.called.store(0, Ordering::Release);
        SystemFutex.wake(&self.0.called, u32::MAX);
        // The next caller must not count those who have not left yet.
        while self.0.standing.load(Ordering::Acquire) != 0 {
            os_yield();
        }
    }
}
