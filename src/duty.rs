//! Services ("duties") that a rank runs for other ranks besides its messages: its
//! workers run them between two ULTs, and its helper when all workers compute.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tsumugi_core::mem::RegionKey;
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_core::wait::Wait;
use tsumugi_ult::Here;

/// A service that a rank runs when its bell was rung.
pub(crate) trait Duty: Send + Sync {
    /// Whether there is work; for a thread that is about to sleep.
    fn has_work(&self) -> bool;

    /// Does the work, and never waits; returns whether there was any. Returns at
    /// once if another thread is doing it.
    fn pump(&self) -> bool;

    /// Whether an operation that it began is under way.
    fn is_busy(&self) -> bool;

    /// Handles a change of a word under `key` by another node.
    fn rang(&self, key: RegionKey);
}

/// The services of a rank.
#[derive(Default)]
pub(crate) struct Duties {
    count: AtomicUsize,
    list: Mutex<Vec<Arc<dyn Duty>>>,
}

impl Duties {
    /// Adds a service.
    pub(crate) fn add(&self, duty: Arc<dyn Duty>) {
        let mut list = self.list();
        list.push(duty);
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// Removes a service.
    pub(crate) fn remove(&self, duty: &Arc<dyn Duty>) {
        let mut list = self.list();
        list.retain(|other| !Arc::ptr_eq(other, duty));
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// Drops all services at the end of the job.
    pub(crate) fn close(&self) {
        let list = std::mem::take(&mut *self.list());
        self.count.store(0, Ordering::SeqCst);
        drop(list);
    }

    /// Whether a service has work.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0 && self.any(|duty| duty.has_work())
    }

    /// Runs all services; returns whether there was work.
    #[inline]
    pub(crate) fn pump(&self) -> bool {
        // Relaxed: a service that this thread does not see yet is run at another
        // look.
        self.count.load(Ordering::Relaxed) > 0 && self.any(|duty| duty.pump())
    }

    /// Passes a change of a word under `key` by another node to all services.
    pub(crate) fn rang(&self, key: RegionKey) {
        self.list().iter().for_each(|duty| duty.rang(key));
    }

    /// Waits until no operation of a service is under way.
    pub(crate) fn settle(&self) {
        while self.any(|duty| duty.is_busy()) {
            self.pump();
            Here.yield_now();
        }
    }

    fn any(&self, of: impl Fn(&dyn Duty) -> bool) -> bool {
        // Calls all of them, also when the first one returns true.
        self.list().iter().fold(false, |any, duty| of(&**duty) | any)
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<dyn Duty>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Duties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Duties({})", self.count.load(Ordering::Relaxed))
    }
}
