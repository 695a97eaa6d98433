//! A count of OS threads that are awake.
//!
//! A program's own OS thread can wake ULTs at any time. A detector of the state in
//! which nothing moves any more therefore counts each such thread, except while the
//! thread sleeps in this crate and only other threads can wake it. The thread that
//! wakes a sleeper adds the sleeper to the count before the wake. So there is no
//! moment in which the waker already sleeps and the woken thread is not yet counted.

use core::cell::Cell;
use tsumugi_core::sync::{AtomicU32, Ordering};

/// Sets the count of the calling OS thread, and returns the previous one. From here
/// on, the thread takes itself out of `count`, in which the caller has counted it,
/// while it sleeps in this crate without a limit. With `None` the thread no longer
/// does so. Wait-free.
pub fn count_while_awake(count: Option<&'static AtomicU32>) -> Option<&'static AtomicU32> {
    COUNT.replace(count)
}

/// The count in which the calling thread is, if there is one.
pub(crate) fn counted() -> Counted {
    Counted(COUNT.get())
}

/// The count that a thread leaves while it sleeps, if it has one.
#[derive(Clone, Copy)]
pub(crate) struct Counted(Option<&'static AtomicU32>);

impl Counted {
    /// The thread is counted all the time, or in no count.
    pub(crate) const NONE: Self = Self(None);

    /// The thread is about to sleep, and the thread that wakes it has this value.
    pub(crate) fn sleeps(self) {
        if let Some(count) = self.0 {
            // SeqCst: one order with the detector's other counts.
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The sleeper is about to be woken: counts it again.
    pub(crate) fn wakes(self) {
        if let Some(count) = self.0 {
            // SeqCst: as in `sleeps`.
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

std::thread_local! {
    static COUNT: Cell<Option<&'static AtomicU32>> = const { Cell::new(None) };
}
