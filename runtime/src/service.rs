//! The services that a rank runs for other ranks: active messages, messages, collectives,
//! the global memory, and the locks of windows. Workers run them between two ULTs, and the helper
//! runs them while all workers compute.
//!
//! ```text
//!  Node ─ each service ─┬─ Am                   always
//!                       ├─ Messages             always
//!                       ├─ Collectives          always
//!                       ├─ gas::Driver          once the global memory is open
//!                       └─ window::TreeService ...  one for each window with a tree lock
//! ```

pub mod am;
pub mod messages;
pub mod collectives;
pub mod global_memory;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tsumugi_core::mem::RegionKey;
use tsumugi_core::sync::{AtomicUsize, Ordering};

/// A service of a rank. No method blocks; a method that finds another thread at work
/// returns at once.
pub trait Service: Send + Sync {
    /// Whether there is work, for a thread that is about to sleep. May do a part of it.
    fn has_work(&self) -> bool;

    /// Does the work that there is, for a worker between two ULTs; returns whether
    /// there was any.
    fn pump(&self) -> bool;

    /// Whether the helper would find work that no worker has taken, or a time limit has
    /// passed.
    fn is_neglected(&self) -> bool {
        self.has_work()
    }

    /// Does that work; returns whether there was any.
    fn help(&self) -> bool {
        self.pump()
    }

    /// Does the work for which no doorbell was rung, because this worker attended until
    /// now: it must not wait for the ULT that the worker runs next.
    fn on_busy(&self) {
        self.pump();
    }

    /// Whether an operation that the service began is under way.
    fn is_busy(&self) -> bool {
        false
    }

    /// How long until the next time limit.
    fn until_deadline(&self) -> Option<Duration> {
        None
    }

    /// Handles the change of a word under `key` by another node. Returns whether the
    /// word belongs to this service.
    fn rang(&self, key: RegionKey) -> bool {
        let _ = key;
        false
    }

    /// Ends the service at the end of the job.
    fn close(&self) {}
}

/// The services that come and go while the rank runs.
#[derive(Default)]
pub struct Services {
    count: AtomicUsize,
    list: Mutex<Vec<Arc<dyn Service>>>,
}

impl Services {
    /// Adds a service.
    pub fn add(&self, service: Arc<dyn Service>) {
        let mut list = self.list();
        list.push(service);
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// Removes a service.
    pub fn remove(&self, service: &Arc<dyn Service>) {
        let mut list = self.list();
        list.retain(|other| !Arc::ptr_eq(other, service));
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// Closes and drops all services.
    pub(crate) fn close(&self) {
        let list = std::mem::take(&mut *self.list());
        self.count.store(0, Ordering::SeqCst);
        list.iter().for_each(|service| service.close());
    }

    /// Calls `of` for each service; returns whether one call returned true.
    #[inline]
    pub(crate) fn any(&self, of: impl Fn(&dyn Service) -> bool) -> bool {
        // SeqCst: a service that was added before a thread announced its sleep is seen
        // by that thread.
        self.count.load(Ordering::SeqCst) > 0 && self.any_of_list(of)
    }

    fn any_of_list(&self, of: impl Fn(&dyn Service) -> bool) -> bool {
        // Calls all of them, also when the first one returns true.
        self.list().iter().fold(false, |any, service| of(&**service) | any)
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<dyn Service>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Services({})", self.count.load(Ordering::Relaxed))
    }
}
