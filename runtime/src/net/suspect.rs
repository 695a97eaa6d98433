//! Suspects: ranks that do not answer while the launcher's report of the first death
//! is awaited.
//!
//! ```text
//!  an operation fails ─► suspect ─── the launcher's report, or ─► declared lost
//!                           │        its time is over
//!                           └─ operations that fail on it wait: their error may
//!                              name another rank
//! ```
//!
//! The thread that detects the failure holds the lock of the device, or that of the
//! heartbeats, so it must not wait for the report: each thread that polls looks whether
//! the report has come.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi_backends::ofi::DeviceFailure;
use tsumugi_core::mem::Rank;
use tsumugi_core::sync::{AtomicBool, Ordering};

/// The list of suspects. See the module.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    list: Mutex<Vec<Suspect>>,
    /// Whether the list has entries.
    any: AtomicBool,
}

/// A suspect, and the first error of the device for it.
type Suspect = (Rank, Option<DeviceFailure>);

impl Suspects {
    /// Adds a rank once, with its first error.
    pub(super) fn add(&self, rank: Rank, failure: Option<DeviceFailure>) {
        let mut list = self.lock();
        if !list.iter().any(|(other, _)| *other == rank) {
            list.push((rank, failure));
        }
        // Relaxed: a thread that misses it looks again; the lock orders the list.
        self.any.store(true, Ordering::Relaxed);
    }

    /// Whether there are suspects.
    #[inline]
    pub(super) fn has_some(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Whether that rank is a suspect.
    #[inline]
    pub(super) fn has(&self, rank: Rank) -> bool {
        self.has_some() && self.lock().iter().any(|(other, _)| *other == rank)
    }

    /// Takes all suspects.
    #[cold]
    pub(super) fn take(&self) -> Vec<Suspect> {
        let mut list = self.lock();
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *list)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Suspect>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_is_taken_once() {
        let suspects = Suspects::default();
        assert!(!suspects.has_some());
        for rank in [2, 1, 2] {
            suspects.add(Rank(rank), None);
        }
        assert!(suspects.has_some() && suspects.has(Rank(1)) && !suspects.has(Rank(0)));
        assert_eq!(suspects.take(), [(Rank(2), None), (Rank(1), None)]);
        assert!(!suspects.has_some() && suspects.take().is_empty());
    }
}
