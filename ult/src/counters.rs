//! What a worker has done: counters that only it writes.

use tsumugi_core::sync::{AtomicU64, Ordering};

/// One worker's counters; a cache line of their own is the holder's business.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) spawned: AtomicU64,
    pub(crate) finished: AtomicU64,
    pub(crate) yields: AtomicU64,
    pub(crate) parks: AtomicU64,
    pub(crate) wakes: AtomicU64,
    pub(crate) steals: AtomicU64,
    pub(crate) sleeps: AtomicU64,
}

/// What the workers of a scheduler have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// ULTs created by ULTs. Those of OS threads are not counted.
    pub spawned: u64,
    /// ULTs that ended.
    pub finished: u64,
    /// Times a ULT let others run.
    pub yields: u64,
    /// Times a ULT was taken off its worker to sleep.
    pub parks: u64,
    /// Sleeping ULTs made ready by a worker.
    pub wakes: u64,
    /// ULTs taken from another worker.
    pub steals: u64,
    /// Times a worker slept in the system.
    pub sleeps: u64,
}

impl Counters {
    /// The sum with `counts`; each number by itself is exact, together they
    /// are of slightly different moments.
    pub(crate) fn add_to(&self, counts: &mut Counts) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        counts.spawned += read(&self.spawned);
        counts.finished += read(&self.finished);
        counts.yields += read(&self.yields);
        counts.parks += read(&self.parks);
        counts.wakes += read(&self.wakes);
        counts.steals += read(&self.steals);
        counts.sleeps += read(&self.sleeps);
    }
}

/// Counts one. Only the counter's writer may call it.
#[inline(always)]
pub(crate) fn count(counter: &AtomicU64) {
    if cfg!(not(tsumugi_loom)) {
        // Relaxed and not a read-modify-write: there is one writer.
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}
