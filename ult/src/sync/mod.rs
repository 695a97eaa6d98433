//! Locks and meeting points for ULTs and OS threads alike.
//!
//! Whoever has to wait sleeps through [`Here`](crate::Here) and leaves its
//! worker to others. Waiters are served first-in first-out. Nothing is
//! poisoned: a panic that unwinds out of a critical section just unlocks.
//!
//! Progress: an uncontended lock or unlock is one compare-and-swap; everything
//! else is blocking.

mod barrier;
mod condvar;
mod mutex;
mod queue;

pub use barrier::Barrier;
pub use condvar::Condvar;
pub use mutex::{Mutex, MutexGuard};
