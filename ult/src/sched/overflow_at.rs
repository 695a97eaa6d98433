//! The overflow of the ULT that runs on this thread.

use super::current;
use crate::overflow::Overflow;

/// Called by `overflow` in a signal handler: returns the overflow if `at` is in
/// the guard page of the ULT that runs on this thread, or on the stack of which a
/// callback runs.
pub(super) fn overflow_at(at: usize) -> Option<Overflow<'static>> {
    // SAFETY: the pointer is this thread's own worker.
    let worker = unsafe { current::worker()?.as_ref() };
    // SAFETY: the thread was stopped in the middle of the worker's ULT, or of a
    // callback on that ULT's stack.
    let task = unsafe { worker.current().or_else(|| worker.stack_owner())?.as_ref() };
    // SAFETY: the task runs.
    let head = unsafe { task.head() }?;
    // SAFETY: as above; the task runs, so it is not cleared.
    let name = unsafe { task.name() };
    let origin = worker.origin();
    head.is_guard(at).then(|| Overflow {
        origin,
        id: task.slot().into(),
        name,
        stack_bytes: head.bytes(),
    })
}
