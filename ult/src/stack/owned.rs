//! The right to run on a stack.

use super::head::StackHead;
use core::ptr::NonNull;

/// One stack. Its holder may run on it.
#[derive(Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Stack(pub(super) NonNull<StackHead>);

// SAFETY: a stack is memory that is not tied to a thread; each function says which
// thread may touch it.
unsafe impl Send for Stack {}

impl Stack {
    pub(crate) fn head(&self) -> NonNull<StackHead> {
        self.0
    }

    /// The stack that has this head.
    ///
    /// # Safety
    ///
    /// No other code has the stack.
    pub(crate) unsafe fn from_head(head: NonNull<StackHead>) -> Self {
        Self(head)
    }
}
