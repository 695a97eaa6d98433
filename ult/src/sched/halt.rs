//! Where a worker stands still while that is wanted: at a fair turn, and while
//! it searches. Who wants it is `inside::standstill`.

use crate::futex::SystemFutex;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_core::wait::Futex;

/// The workers' traffic light.
pub(crate) struct Halt {
    /// 1 while somebody wants it.
    pub(crate) called: AtomicU32,
    /// How many stand.
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

    /// Stands still while that is wanted. By a worker, between two ULTs.
    #[inline]
    pub(super) fn stand(&self) {
        if self.is_called() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        // AcqRel: what this worker's ULTs did is seen by who looks.
        self.standing.fetch_add(1, Ordering::AcqRel);
        // Acquire: pairs with the end of the standstill.
        while self.called.load(Ordering::Acquire) != 0 {
            SystemFutex.wait(&self.called, 1, None);
        }
        // AcqRel: pairs with who waits until all have left.
        self.standing.fetch_sub(1, Ordering::AcqRel);
    }
}
