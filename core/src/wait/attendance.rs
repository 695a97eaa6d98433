//! Which threads of a rank look for work all the time: at most one worker without a ULT,
//! the *attendant*, and a caller that waits for a message, the *watcher*.
//!
//! ```text
//!                  take                                  watch
//!   no attendant ─────────► worker w       not watched ─────────► watched
//!       ▲                      │               ▲                     │
//!       └──── leave, look ─────┘               └── unwatch, look ────┘
//! ```
//!
//! The attendant looks for all work, the watcher for messages. The workers without a ULT that
//! are neither only read these words, which change when a role changes hands. So the locks
//! of the rank's services stay in one cache.
//!
//! A thread that makes work for the rank wakes nobody while another thread attends:
//!
//! ```text
//!   sender                         attendant or watcher
//!   publish the work               role := nobody
//!   fence                          fence
//!   does anybody attend?           look for work once more
//! ```
//!
//! At least one of the two sees the other's write, so the work is seen by the sender's
//! target, or the sender wakes a worker. A role that is free is taken by the next worker
//! that has no ULT: one that looks at these words already, or one that a sender wakes.
//!
//! Progress: all calls are wait-free.

use crate::mutate;
use crate::sync::{AtomicU32, Ordering, edge};

/// The attendant and the watcher of a rank. Lives in memory that peers can access; all zeroes:
/// nobody attends.
#[derive(Debug)]
#[repr(C)]
pub struct Attendance {
    /// The attendant's number and one; 0: there is none. The thread that writes 0 looks for
    /// work after that.
    attendant: AtomicU32,
    /// 1 while a caller looks for messages. The thread that writes 0 looks after that.
    watched: AtomicU32,
}

impl Attendance {
    /// Nobody attends.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self { attendant: AtomicU32::new(0), watched: AtomicU32::new(0) }
    }

    /// Nobody attends.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self { attendant: AtomicU32::new(0), watched: AtomicU32::new(0) }
    }

    /// Whether `worker` is the attendant from here on: it was already, or there was none. A
    /// new attendant looks for work after this call.
    #[inline]
    pub fn take(&self, worker: usize) -> bool {
        let name = worker as u32 + 1;
        // Relaxed: the word names no data.
        match self.attendant.load(Ordering::Relaxed) {
            0 => {
                // Relaxed: what comes before the next look is seen by it, and what a sender
                // publishes after it has seen this name is seen at the latest when the
                // attendant leaves.
                let taken = || {
                    self.attendant.compare_exchange(0, name, Ordering::Relaxed, Ordering::Relaxed)
                };
                mutate!("attendance_take_unchecked": taken().is_ok() => {
                    self.attendant.store(name, Ordering::Relaxed);
                    true
                })
            }
            attendant => attendant == name,
        }
    }

    /// `worker` is the attendant no longer. Returns whether it was: then it must look for work
    /// once more.
    #[inline]
    #[must_use = "on true the caller must look for work once more"]
    pub fn leave(&self, worker: usize) -> bool {
        if self.attendant.load(Ordering::Relaxed) != worker as u32 + 1 {
            return false;
        }
        // SeqCst: before the look for work that follows; pairs with the sender's fence.
        self.attendant.swap(0, Ordering::SeqCst);
        edge("attendance_leave_unordered");
        true
    }

    /// A caller looks for messages from here on.
    #[inline]
    pub fn watch(&self) {
        // Relaxed: a sender that sees this late wakes a worker in vain.
        self.watched.store(1, Ordering::Relaxed);
    }

    /// The caller looks no longer. It must look at all messages once more after this call.
    #[inline]
    pub fn unwatch(&self) {
        // SeqCst: before the look that follows; pairs with the sender's fence.
        self.watched.swap(0, Ordering::SeqCst);
        edge("attendance_unwatch_unordered");
    }

    /// Whether a caller looks for messages.
    #[inline]
    pub fn is_watched(&self) -> bool {
        // Relaxed: a worker that sees this late looks for messages in vain, or a round later.
        self.watched.load(Ordering::Relaxed) != 0
    }

    /// Whether there is an attendant. The calling thread has published work, and executed a
    /// sequentially consistent fence after that.
    #[inline]
    pub fn has_attendant(&self) -> bool {
        // SeqCst: after the publication; pairs with `leave`.
        self.attendant.load(Ordering::SeqCst) != 0
    }

    /// Whether any thread looks for messages. As for [`has_attendant`](Self::has_attendant).
    #[inline]
    pub fn sees_messages(&self) -> bool {
        // SeqCst: after the publication; pairs with `unwatch`.
        self.has_attendant() || self.watched.load(Ordering::SeqCst) != 0
    }
}

impl Default for Attendance {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_worker_is_the_attendant_until_it_leaves() {
        let attendance = Attendance::new();
        assert!(!attendance.leave(0), "there is no attendant");
        assert!(attendance.take(3) && attendance.take(3));
        assert!(!attendance.take(0), "worker 3 is the attendant");
        assert!(!attendance.leave(0) && attendance.has_attendant());
        assert!(attendance.leave(3) && !attendance.has_attendant());
        assert!(attendance.take(0));
    }

    #[test]
    fn messages_are_seen_by_the_attendant_and_by_a_watcher() {
        let attendance = Attendance::new();
        assert!(!attendance.sees_messages());
        attendance.watch();
        assert!(attendance.sees_messages() && !attendance.has_attendant());
        attendance.unwatch();
        assert!(!attendance.sees_messages() && attendance.take(1));
        assert!(attendance.sees_messages() && !attendance.is_watched());
    }
}
