//! Barriers among threads of one process. A barrier of all ranks is `tsumugi_barrier`.

use super::code::{code_of, of_interrupted};
use super::object::{create, end, live, object};
use super::parameter::limit;
use std::ffi::c_int;
use tsumugi_ult::sync::Barrier;

/// A meeting point of a fixed number of ULTs or OS threads, for repeated use.
#[derive(Debug)]
pub struct tsumugi_meeting(Barrier);

/// Makes a meeting point for `members`; 0 counts as 1.
///
/// Errors: NULL.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_meeting_create(
    members: usize,
    out: *mut *mut tsumugi_meeting,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { create(out, || tsumugi_meeting(Barrier::new(members))) })
}

/// Frees a meeting point. NULL is allowed.
///
/// # Safety
///
/// `meeting` is NULL or a live meeting point; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_meeting_destroy(meeting: *mut tsumugi_meeting) {
    if !meeting.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { end(meeting) });
    }
}

/// Waits until all members have arrived. Writes to `is_last`, unless it is NULL, whether
/// the caller arrived last, which one member did. Blocks.
///
/// Errors: NULL.
///
/// # Safety
///
/// `meeting` is a live meeting point; `is_last` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_meeting_wait(
    meeting: *const tsumugi_meeting,
    is_last: *mut bool,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { tsumugi_meeting_wait_within(meeting, u64::MAX, false, is_last) }
}

/// Waits as `tsumugi_meeting_wait`, within a time limit.
///
/// Errors: TIMED_OUT, CANCELLED (the caller has not arrived), NULL.
///
/// # Safety
///
/// As for `tsumugi_meeting_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_meeting_wait_within(
    meeting: *const tsumugi_meeting,
    limit_ns: u64,
    is_cancellable: bool,
    is_last: *mut bool,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(meeting) }.and_then(|meeting| {
        let limit = limit(limit_ns, is_cancellable);
        let last = meeting.0.wait_within(limit).map_err(of_interrupted)?;
        if !is_last.is_null() {
            // SAFETY: the caller's.
            unsafe { is_last.write(last) };
        }
        Ok(())
    }))
}

object!(tsumugi_meeting, "meeting");
