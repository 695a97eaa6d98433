//! The elements of a ring that leads to the thread that works an endpoint.

use crate::op::Op;
use core::fmt;

/// One element: an operation or a call.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// An operation to be posted.
    Op(Op),
    /// A function to be called: one that no other thread may run while the
    /// endpoint is worked, or that must run on the thread that owns the endpoint.
    Call(DeferredCall),
}

/// A foreign call: a function and its argument.
#[derive(Clone, Copy)]
pub struct DeferredCall {
    run: unsafe fn(*mut ()),
    data: *mut (),
}

// SAFETY: `new` demands that the call be sound on any thread.
unsafe impl Send for DeferredCall {}

impl DeferredCall {
    /// Makes a call of `run(data)`, which is made once.
    ///
    /// # Safety
    ///
    /// The call must be sound on any thread and at any time. Operations wait
    /// while it runs.
    pub const unsafe fn new(run: unsafe fn(*mut ()), data: *mut ()) -> Self {
        Self { run, data }
    }

    pub(super) fn make(self) {
        // SAFETY: the caller of `new` promised that the call is sound; a ring
        // hands each element out once.
        unsafe { (self.run)(self.data) }
    }
}

impl fmt::Debug for DeferredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeferredCall({:p})", self.data)
    }
}

impl From<Op> for Work {
    #[inline(always)]
    fn from(op: Op) -> Self {
        Self::Op(op)
    }
}

/// An element and the sequence number of its slot fill one cache line.
const _: () = assert!(size_of::<Work>() <= 56);
