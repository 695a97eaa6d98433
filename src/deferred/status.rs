//! The state of an operation after an attempt to begin it.

use super::begin::{Begin, Deferred, InFlight};
use std::fmt;
use tsumugi_core::completion::Why;

/// The state of an operation that has begun.
#[must_use = "wait for the operation in flight, or drop it on purpose"]
pub enum Status<C: Begin> {
    /// The operation has ended inside the call.
    Done(C::Output),
    /// The operation is in flight.
    Pending(InFlight<C>),
}

/// The operation was not begun, because there is no room for it now: the caller gets it
/// back, and the function of [`then`](Deferred::then) with it.
pub struct Busy<T> {
    /// What was not begun.
    pub operation: T,
    /// The resource that had run out.
    pub why: Why,
}

impl<C: Begin> Status<C> {
    /// The result; waits for it if the operation is in flight. Blocking.
    pub fn wait(self) -> C::Output {
        match self {
            Self::Done(output) => output,
            Self::Pending(in_flight) => in_flight.wait(),
        }
    }
}

impl<C: Begin> Busy<Deferred<C>> {
    pub(super) fn of(call: C, why: Why) -> Self {
        Self { operation: Deferred::new(call), why }
    }
}

impl<C: Begin> fmt::Debug for Status<C>
where
    C::Output: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(output) => f.debug_tuple("Done").field(output).finish(),
            Self::Pending(in_flight) => f.debug_tuple("Pending").field(in_flight).finish(),
        }
    }
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
