//! What a rank does for others besides its messages: whoever of its threads
//! comes by does it, its workers between two ULTs, its helper when they all
//! compute.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tsumugi_core::mem::RegionKey;
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_core::wait::Wait;
use tsumugi_ult::Here;

/// Something that a rank does when it is rung for.
pub(crate) trait Duty: Send + Sync {
    /// Whether there is something to be done; for a thread about to sleep.
    fn has_work(&self) -> bool;

    /// Does it, and never waits; whether there was anything. At once, if
    /// another thread is at it.
    fn pump(&self) -> bool;

    /// Whether something that it began is under way.
    fn is_busy(&self) -> bool;

    /// A word under `key` was changed from another node.
    fn rang(&self, key: RegionKey);
}

/// Those of a rank.
#[derive(Default)]
pub(crate) struct Duties {
    count: AtomicUsize,
    list: Mutex<Vec<Arc<dyn Duty>>>,
}

impl Duties {
    /// One more.
    pub(crate) fn add(&self, duty: Arc<dyn Duty>) {
        let mut list = self.list();
        list.push(duty);
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// One less.
    pub(crate) fn remove(&self, duty: &Arc<dyn Duty>) {
        let mut list = self.list();
        list.retain(|other| !Arc::ptr_eq(other, duty));
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// The job is over.
    pub(crate) fn close(&self) {
        let list = std::mem::take(&mut *self.list());
        self.count.store(0, Ordering::SeqCst);
        drop(list);
    }

    /// Whether there is something to be done.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0 && self.any(|duty| duty.has_work())
    }

    /// Does it; whether there was anything.
    #[inline]
    pub(crate) fn pump(&self) -> bool {
        // Relaxed: what this thread does not know of, another look finds.
        self.count.load(Ordering::Relaxed) > 0 && self.any(|duty| duty.pump())
    }

    /// A word under `key` was changed from another node.
    pub(crate) fn rang(&self, key: RegionKey) {
        self.list().iter().for_each(|duty| duty.rang(key));
    }

    /// Waits until nothing of theirs is under way.
    pub(crate) fn settle(&self) {
        while self.any(|duty| duty.is_busy()) {
            self.pump();
            Here.yield_now();
        }
    }

    fn any(&self, of: impl Fn(&dyn Duty) -> bool) -> bool {
        // One after the other, also when the first has something.
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
