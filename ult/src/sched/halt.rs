//! The halt of all workers: each worker stands still at a fair turn, or while it
//! searches, as long as that is requested. `inside::standstill` requests it.

use crate::futex::SystemFutex;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_core::wait::Futex;

/// The request for a standstill, and the workers that have followed it.
pub(crate) struct Halt {
    /// 1 while a standstill is requested.
    pub(crate) called: AtomicU32,
    /// How many workers stand still.
    pub(crate) standing: AtomicU32,
}

impl Halt {
    pub(super) fn new() -> Self {
        Self { called: AtomicU32::new(0), standing: AtomicU32::new(0) }
    }

    #[inline]
    pub(super) fn is_called(&self) -> bool {
        cfg!(all(feature = "std", not(tsumugi_loom))) && self.called.load(Ordering::Relaxed) != 0
    }

    /// Stands still while that is requested. Called by a worker between two ULTs.
    #[inline]
    pub(super) fn stand(&self) {
        if self.is_called() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        // AcqRel: a thread that reads the count sees what this worker's ULTs did.
        self.standing.fetch_add(1, Ordering::AcqRel);
        // Acquire: pairs with the end of the standstill.
        while self.called.load(Ordering::Acquire) != 0 {
            SystemFutex.wait(&self.called, 1, None);
        }
        // AcqRel: pairs with the load of the thread that waits until all workers
        // have left.
        self.standing.fetch_sub(1, Ordering::AcqRel);
    }
}
