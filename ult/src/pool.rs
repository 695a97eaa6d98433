//! Pools of reused objects: a small cache per worker in front of one depot for all
//! workers.
//!
//! ```text
//!  worker 0 [cache ≤ 2·BATCH]──BATCH──►┌───────┐◄──BATCH──[cache] worker 1
//!                            ◄──BATCH──│ depot │──BATCH──►
//!                                      └───────┘◄── threads that are no workers, one by one
//! ```
//!
//! A worker that frees more objects than it takes returns them, so that they do not
//! gather at one worker for good. It takes the depot's lock once per batch.

use crate::lock::Lock;
use alloc::vec::Vec;

pub(crate) struct Depot<T>(Lock<Vec<T>>);

/// The cache of one worker.
pub(crate) struct WorkerCache<T>(Vec<T>);

impl<T> Depot<T> {
    pub(crate) fn new() -> Self {
        Self(Lock::new(Vec::new()))
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.0.with(Vec::pop)
    }

    pub(crate) fn put(&self, item: T) {
        self.0.with(|items| items.push(item));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.with(|items| items.is_empty())
    }

    pub(crate) fn put_all(&self, more: impl IntoIterator<Item = T>) {
        self.0.with(|items| items.extend(more));
    }
}

impl<T> WorkerCache<T> {
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(2 * BATCH))
    }

    #[inline]
    pub(crate) fn take(&mut self, depot: &Depot<T>) -> Option<T> {
        self.0.pop().or_else(|| self.refill(depot))
    }

    /// Takes an object that is in the cache.
    #[inline(always)]
    pub(crate) fn take_cached(&mut self) -> Option<T> {
        self.0.pop()
    }

    /// Puts an object into the cache; returns it if the cache is full.
    #[inline(always)]
    pub(crate) fn put_cached(&mut self, item: T) -> Option<T> {
        if self.0.len() == 2 * BATCH {
            return Some(item);
        }
        self.0.push(item);
        None
    }

    #[inline]
    pub(crate) fn put(&mut self, item: T, depot: &Depot<T>) {
        if self.0.len() == 2 * BATCH {
            self.hand_back(depot);
        }
        self.0.push(item);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Moves all objects to the depot.
    pub(crate) fn drain(&mut self, depot: &Depot<T>) {
        depot.put_all(self.0.drain(..));
    }

    #[cold]
    fn refill(&mut self, depot: &Depot<T>) -> Option<T> {
        depot.0.with(|items| {
            let from = items.len().saturating_sub(BATCH);
            self.0.extend(items.drain(from..));
        });
        self.0.pop()
    }

    #[cold]
    fn hand_back(&mut self, depot: &Depot<T>) {
        // The oldest objects go, because the youngest are still in this core's
        // caches.
        depot.put_all(self.0.drain(..BATCH));
    }
}

const BATCH: usize = if cfg!(tsumugi_loom) { 1 } else { 32 };

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_returns_a_batch_and_an_empty_one_refills() {
        let (depot, mut cache) = (Depot::new(), WorkerCache::new());
        for item in 0..3 * BATCH {
            cache.put(item, &depot);
        }
        assert_eq!(cache.0.len(), 2 * BATCH);
        let mut other = WorkerCache::new();
        assert_eq!(other.take(&depot), Some(BATCH - 1));
        assert_eq!(depot.take(), None, "a refill takes a batch");
        cache.drain(&depot);
        assert!(cache.is_empty());
        assert_eq!(depot.take(), Some(3 * BATCH - 1));
    }
}
