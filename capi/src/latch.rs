//! Latches: waiting until a number of events have happened.

use super::TSUMUGI_ERROR_VALUE;
use super::code::{code_of, of_interrupted, remember};
use super::object::{create, end, live, object};
use super::parameter::limit;
use std::ffi::c_int;
use tsumugi_ult::sync::Latch;

/// A latch: a count that goes down to 0, once.
#[derive(Debug)]
pub struct tsumugi_latch(Latch);

/// Makes a latch for `count` events.
///
/// Errors: NULL.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_latch_create(count: usize, out: *mut *mut tsumugi_latch) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { create(out, || tsumugi_latch(Latch::new(count))) })
}

/// Frees a latch. NULL is allowed.
///
/// # Safety
///
/// `latch` is NULL or a live latch; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_latch_destroy(latch: *mut tsumugi_latch) {
    if !latch.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { end(latch) });
    }
}

/// Counts `by` events; at 0 all waiters continue. Never waits.
///
/// Errors: VALUE (`by` is more than the count, which stays as it is), NULL.
///
/// # Safety
///
/// `latch` is a live latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_latch_count_down(latch: *const tsumugi_latch, by: usize) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(latch) }.and_then(|latch| {
        latch.0.try_count_down(by).map_err(|left| {
            let reason = format_args!("a latch with {left} left cannot count {by} events");
            remember(TSUMUGI_ERROR_VALUE, reason)
        })
    }))
}

/// Waits until the count is 0, within a time limit. Blocks.
///
/// Errors: TIMED_OUT, CANCELLED, NULL.
///
/// # Safety
///
/// `latch` is a live latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_latch_wait_within(
    latch: *const tsumugi_latch,
    limit_ns: u64,
    is_cancellable: bool,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(latch) }.and_then(|latch| {
        latch.0.wait_within(limit(limit_ns, is_cancellable)).map_err(of_interrupted)
    }))
}

/// Waits until the count is 0. Blocks.
///
/// Errors: NULL.
///
/// # Safety
///
/// `latch` is a live latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_latch_wait(latch: *const tsumugi_latch) -> c_int {
    // SAFETY: the caller's.
    unsafe { tsumugi_latch_wait_within(latch, u64::MAX, false) }
}

object!(tsumugi_latch, "latch");
