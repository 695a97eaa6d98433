//! The thread that has made its process a rank, counted for the detection of idle
//! ranks.
//!
//! This thread belongs to the program and is no worker: between two calls it
//! computes, and it may wake ULTs at any moment. So it counts as a thread outside
//! of the workers that is awake, except while it sleeps in a call; the launcher
//! does not take the rank for idle while that count is above zero. The library does
//! not track the other threads of the program: while the first one sleeps in a
//! call, they are assumed to sleep too.

use tsumugi::Runtime;
use tsumugi_core::sync::Ordering;
use tsumugi_ult::{AwakeThread, count_while_awake};

/// The count of awake threads outside of the workers; this thread counts in it
/// until [`end`](Self::end).
#[derive(Clone, Copy, Debug)]
pub struct Caller(AwakeThread);

impl Caller {
    /// Counts the thread that waits for this rank to begin; called before that
    /// thread learns that the rank has begun. `caller_of` is
    /// the name of the call in which it waits.
    pub fn of(runtime: &Runtime, caller_of: &'static str) -> Self {
        let outside = runtime.handle().outside();
        // SeqCst: one total order with the steps by which workers fall asleep, as
        // for all accesses to this count.
        outside.fetch_add(1, Ordering::SeqCst);
        Self(AwakeThread { count: outside, caller_of })
    }

    /// Called by the thread that is counted: from now on its sleeps in calls are
    /// left out of the count.
    pub fn begin(self) {
        count_while_awake(Some(self.0));
    }

    /// Called when the rank ends. If another thread ends the rank than began it,
    /// the first thread may be anywhere, so it stays in the count.
    pub fn end(self) {
        let own = self.0.count;
        if count_while_awake(None).is_some_and(|thread| std::ptr::eq(thread.count, own)) {
            // SeqCst: as in `of`.
            own.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
