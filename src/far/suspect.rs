//! Ranks that do not answer while the launcher is to say who has died.
//!
//! ```text
//!  an operation fails ─► suspect ─── the launcher's word, or ───► declared lost
//!                           │        its time is over
//!                           └─ what fails on it waits: its error may name another
//! ```
//!
//! Whoever notices that holds the lock of the device, or that of the beats, so it
//! does not wait for the word: all that polls looks whether it has come.

use crate::Rank;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi_backends::ofi::Failure;
use tsumugi_core::sync::{AtomicBool, Ordering};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    list: Mutex<Vec<Suspect>>,
    /// There are some.
    any: AtomicBool,
}

/// Who, and how the device has said it first.
type Suspect = (Rank, Option<Failure>);

impl Suspects {
    /// Each rank once, as it was noticed first.
    pub(super) fn add(&self, rank: Rank, failure: Option<Failure>) {
        let mut list = self.lock();
        if !list.iter().any(|(other, _)| *other == rank) {
            list.push((rank, failure));
        }
        // Relaxed: whoever misses it looks again; the lock orders the list.
        self.any.store(true, Ordering::Relaxed);
    }

    /// Whether there are any.
    #[inline]
    pub(super) fn has_some(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Whether that rank is one.
    #[inline]
    pub(super) fn has(&self, rank: Rank) -> bool {
        self.has_some() && self.lock().iter().any(|(other, _)| *other == rank)
    }

    /// All, once.
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
