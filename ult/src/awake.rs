//! An OS thread that is counted while it is awake.
//!
//! A program's own thread wakes ULTs when it likes to. What looks whether
//! anything is left that moves, counts such a thread, but for the time that it
//! sleeps here and only others can wake it. Whoever wakes it counts it again,
//! before it does: there is no moment in which the waker sleeps already and the
//! woken is not counted yet.

use core::cell::Cell;
use tsumugi_core::sync::{AtomicU32, Ordering};

/// From here on the calling OS thread takes itself out of `count`, in which the
/// caller has counted it, while it sleeps in this crate without a limit. `None`:
/// no more. Answers what it was. Wait-free.
pub fn count_while_awake(count: Option<&'static AtomicU32>) -> Option<&'static AtomicU32> {
    COUNT.replace(count)
}

/// Where the calling thread is counted.
pub(crate) fn counted() -> Counted {
    Counted(COUNT.get())
}

/// Where a thread is counted while it is awake, if it is.
#[derive(Clone, Copy)]
pub(crate) struct Counted(Option<&'static AtomicU32>);

impl Counted {
    /// It counts all the time, or nobody counts it.
    pub(crate) const NONE: Self = Self(None);

    /// The thread sleeps, and whoever wakes it knows this count.
    pub(crate) fn sleeps(self) {
        if let Some(count) = self.0 {
            // SeqCst: one order with the other counts of what may move.
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// It is about to be woken.
    pub(crate) fn wakes(self) {
        if let Some(count) = self.0 {
            // SeqCst: the same.
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

std::thread_local! {
    static COUNT: Cell<Option<&'static AtomicU32>> = const { Cell::new(None) };
}
