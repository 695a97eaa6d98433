//! The request with which a ULT leaves its worker.

use super::descriptor::Task;
use super::join_word::Joiner;
use crate::stack::Left;
use core::ptr::NonNull;
use tsumugi_core::wait::Waker;

/// The request of a ULT to its worker when it leaves. The worker carries it out after
/// the switch, when the ULT is no longer running.
pub(crate) enum SuspendRequest {
    Sleep(*mut (dyn FnMut(Waker) -> bool + 'static)),
    OnOsStack(*mut (dyn FnMut() + 'static)),
    /// Run this new ULT now; the requester is continued or stolen later.
    RunFirst(NonNull<Task>),
    /// The requester waits for a child that it ran, and that has left before its end.
    Follow(Follow),
}

/// A joiner and the child that it ran, after the child has left the worker.
pub(crate) struct Follow {
    pub(crate) joiner: NonNull<Task>,
    pub(crate) child: NonNull<Task>,
    /// The joiner's node for the join word, on the joiner's stack.
    pub(crate) node: *const Joiner,
    /// The message with which the child left.
    pub(crate) left: Left,
}

impl Task {
    /// Leaves the worker with a request.
    ///
    /// # Safety
    ///
    /// As for [`suspend`](Self::suspend).
    #[inline(always)]
    pub(crate) unsafe fn ask(&self, mut request: SuspendRequest) {
        // SAFETY: the caller runs as this ULT; the request stays until the ULT is
        // resumed.
        unsafe { self.suspend(Left::request(&raw mut request)) }
    }
}
