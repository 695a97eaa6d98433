//! The number of the caller's worker, and of all workers.

use super::code::code_of;
use super::parameter::place;
use super::{TSUMUGI_ERROR_NO_ULT, tsumugi_scheduler};
use std::ffi::c_int;

/// The number of the worker that the calling ULT is on, from 0. It may be another one
/// after each call that suspends the ULT, unless the ULT is pinned. Wait-free.
///
/// Errors: NO_ULT, NULL.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_worker_number(out: *mut usize) -> c_int {
    let found = || {
        // SAFETY: the caller's.
        let out = unsafe { place(out) }?;
        let (worker, _) = tsumugi_ult::worker().ok_or(TSUMUGI_ERROR_NO_ULT)?;
        // SAFETY: the caller's.
        unsafe { out.write(worker) };
        Ok(())
    };
    code_of(found())
}

/// How many workers a scheduler has, or the caller's scheduler if that is NULL; 0 if the
/// caller is no ULT. Wait-free.
///
/// # Safety
///
/// `scheduler` is NULL or a live scheduler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_worker_count(scheduler: *const tsumugi_scheduler) -> usize {
    // SAFETY: the caller's.
    match unsafe { scheduler.as_ref() } {
        Some(scheduler) => scheduler.spawner.workers(),
        None => tsumugi_ult::worker().map_or(0, |(_, workers)| workers),
    }
}
