//! The thread that has made its process a rank.
//!
//! It is the program's own, and no worker: what it computes between two calls may
//! wake others whenever it is done. So it counts as something outside of the
//! workers, but for the time that it sleeps in a call, and the launcher does not
//! call the rank quiet meanwhile. Of a program's other threads nothing is known:
//! while the first one sleeps in a call, they are taken to do so too.

use crate::Runtime;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_ult::count_while_awake;

/// It counts until [`end`](Self::end).
#[derive(Clone, Copy)]
pub(super) struct Caller(&'static AtomicU32);

impl Caller {
    /// Counts the thread that waits for this rank to begin, before it is told.
    pub(super) fn of(runtime: &Runtime) -> Self {
        let outside: *const AtomicU32 = runtime.node().member().control().outside();
        // SAFETY: a space that has a heap is never unmapped, and a rank's has one.
        let outside = unsafe { &*outside };
        // SeqCst: one order with the workers' falling asleep, as all of it.
        outside.fetch_add(1, Ordering::SeqCst);
        Self(outside)
    }

    /// The calling thread is that one.
    pub(super) fn begin(self) {
        count_while_awake(Some(self.0));
    }

    /// The rank ends. Where another thread ends it than has begun it, that one
    /// may be anywhere, and counts.
    pub(super) fn end(self) {
        let count = count_while_awake(None);
        if count.is_some_and(|count| std::ptr::eq(count, self.0)) {
            // SeqCst: the same.
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
