//! What becomes of a ULT that made a request, and of a joiner that waits for the ULT
//! that ran in its place.

use super::thread::Worker;
use crate::sched::waker::wake;
use crate::stack::Left;
use crate::task::Follow;
use tsumugi_core::stats::Counter;
use tsumugi_core::wait::{Reason, Waker};

/// What became of a ULT that made a request.
pub(super) enum Served {
    /// The ULT has left.
    Gone,
    /// The ULT goes on.
    Stays,
    /// The ULT ran in the place of its joiner, which sleeps now. The ULT has left
    /// its own stack, with this request.
    Followed(Left),
}

impl Worker {
    /// Makes the joiner wait for a ULT that it ran in its place and that has left.
    ///
    /// # Safety
    ///
    /// Both ULTs are suspended on this worker, and no other thread has been told so.
    #[cold]
    pub(super) unsafe fn follow(&self, follow: &Follow) -> Served {
        self.count(Counter::Parks);
        // SAFETY: by the caller's contract the child is suspended, so it is alive.
        let child = unsafe { follow.child.as_ref() };
        // SAFETY: the joiner is suspended, too: its request is on its stack.
        let head = unsafe { follow.joiner.as_ref().head().unwrap_unchecked() };
        self.check_canary(follow.joiner, head);
        head.set_reason(&Reason { what: "join", at: child.slot().into(), wanted: 0 });
        self.put_to_sleep(follow.joiner, head);
        // SAFETY: as in `serve`.
        let waker = unsafe { Waker::new(follow.joiner.as_ptr().cast(), wake) };
        let left = follow.left;
        // SAFETY: the node stays until the joiner is woken by the child's end.
        // The child is suspended, so it has not ended.
        let joined = unsafe { child.join(follow.node, waker) };
        debug_assert!(joined, "a suspended ULT has not ended");
        Served::Followed(left)
    }
}
