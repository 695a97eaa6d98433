//! What a ring carries to whoever works an endpoint.

use crate::op::Op;
use core::fmt;

/// One thing to do.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// To be posted.
    Op(Op),
    /// To be called: something that no other thread may do while the endpoint
    /// is worked, or that must come from the thread that owns it.
    Call(Call),
}

/// A foreign call: a function and what it is called with.
#[derive(Clone, Copy)]
pub struct Call {
    run: unsafe fn(*mut ()),
    data: *mut (),
}

// SAFETY: `new` demands that the call be sound on any thread.
unsafe impl Send for Call {}

impl Call {
    /// Calls `run(data)` once.
    ///
    /// # Safety
    ///
    /// The call must be sound on any thread, whenever it comes. Operations
    /// wait meanwhile.
    pub const unsafe fn new(run: unsafe fn(*mut ()), data: *mut ()) -> Self {
        Self { run, data }
    }

    pub(super) fn make(self) {
        // SAFETY: the contract of `new`; a ring hands each element out once.
        unsafe { (self.run)(self.data) }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({:p})", self.data)
    }
}

impl From<Op> for Work {
    #[inline(always)]
    fn from(op: Op) -> Self {
        Self::Op(op)
    }
}

/// Work and its slot's sequence are one cache line.
const _: () = assert!(size_of::<Work>() <= 56);
