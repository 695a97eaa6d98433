//! The wakers of sleeping ULTs.

use super::shared::SchedulerShared;
use crate::slab::TaskSlot;
use core::ptr::{self, NonNull};
use tsumugi_core::wait::Waker;

/// Returns the ULT that a waker is for; the waker itself, if it is for anything
/// else.
#[inline]
pub(super) fn sleeper_of(waker: Waker) -> Result<TaskSlot, Waker> {
    let (data, call) = waker.into_raw();
    // The compiler may make two copies of `wake`. A waker with the other copy
    // counts as one for something else, which works as well.
    if ptr::fn_addr_eq(call, wake as unsafe fn(*const ()))
        && let Some(slot) = NonNull::new(data.cast_mut().cast())
    {
        return Ok(slot);
    }
    // SAFETY: the two parts are those of the waker that was taken apart.
    Err(unsafe { Waker::new(data, call) })
}

/// The function of a sleeping ULT's waker.
pub(super) unsafe fn wake(task: *const ()) {
    let slot = NonNull::new(task.cast_mut().cast()).expect("a waker has a task");
    // SAFETY: by the contract of `Waker` this runs once, while the task sleeps.
    unsafe { SchedulerShared::ready(slot) }
}
