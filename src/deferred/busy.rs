//! The refusal of an operation that found no room.

use crate::Error;
use std::fmt;
use tsumugi_core::completion::Why;

/// The operation was not begun, because there is no room for it now: the caller gets it
/// back, and the function of [`then`](super::Deferred::then) with it.
pub struct Busy<T> {
    /// What was not begun.
    pub operation: T,
    /// The resource that had run out.
    pub why: Why,
}

impl<T> fmt::Debug for Busy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Busy({:?})", self.why)
    }
}

impl<T> fmt::Display for Busy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the operation was not begun: {}", self.why)
    }
}

impl<T> std::error::Error for Busy<T> {}

/// Drops the operation, which a program that goes on takes out of the [`Busy`] before.
impl<T> From<Busy<T>> for Error {
    fn from(busy: Busy<T>) -> Self {
        Self::Busy(busy.why)
    }
}
