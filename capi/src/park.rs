//! Parking: sleeping until an unpark or until a time limit.

use super::code::{code_of, of_interrupted};
use super::object::{create, end, live, object};
use super::parameter::limit;
use std::ffi::c_int;
use tsumugi_ult::{Unparker, park_within, sleep_within};

/// The time limit that never passes.
pub const TSUMUGI_FOREVER: u64 = u64::MAX;

/// The right to unpark one ULT, foreign task or OS thread. It may outlive that
/// thread: then an unpark has no effect, or another thread returns from one park
/// without a reason.
#[derive(Debug)]
pub struct tsumugi_unparker(Unparker);

/// Sleeps until another thread unparks the caller. An unpark that came before the
/// park is kept, and several unparks count as one. May return without a reason.
/// Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_park() {
    tsumugi_ult::park();
}

/// Parks as `tsumugi_park` does, within a time limit. Blocks.
///
/// Errors: TIMED_OUT, CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_park_within(limit_ns: u64, is_cancellable: bool) -> c_int {
    code_of(park_within(limit(limit_ns, is_cancellable)).map_err(of_interrupted))
}

/// Makes the right to unpark the caller.
///
/// Errors: NULL.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_unparker_create(out: *mut *mut tsumugi_unparker) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { create(out, || tsumugi_unparker(tsumugi_ult::unparker())) })
}

/// Ends the present park of the thread that the unparker stands for, or its next
/// park. May be called from any thread. Lock-free, unless the thread is a task of a
/// foreign scheduler: then as good as the `unpark` of that scheduler.
///
/// Errors: NULL.
///
/// # Safety
///
/// `unparker` is a live unparker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_unpark(unparker: *const tsumugi_unparker) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(unparker) }.map(|unparker| unparker.0.unpark()))
}

/// Frees an unparker. NULL is allowed.
///
/// # Safety
///
/// `unparker` is NULL or a live unparker; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_unparker_destroy(unparker: *mut tsumugi_unparker) {
    if !unparker.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { end(unparker) });
    }
}

/// Sleeps for `limit_ns` nanoseconds, while other ULTs use the worker. Returns what
/// ended the sleep. Blocks.
///
/// Errors: TIMED_OUT if the whole time has passed; CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_sleep_within(limit_ns: u64, is_cancellable: bool) -> c_int {
    of_interrupted(sleep_within(limit(limit_ns, is_cancellable)))
}

/// Sleeps for `ns` nanoseconds, while other ULTs use the worker. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_sleep(ns: u64) {
    let _ = sleep_within(limit(ns, false));
}

object!(tsumugi_unparker, "unparker");
