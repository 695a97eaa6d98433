//! Semaphores: a number of permits.

use super::code::{code_of, of_interrupted, remember};
use super::object::{create, end, live, object};
use super::parameter::limit;
use super::{TSUMUGI_ERROR_BUSY, TSUMUGI_ERROR_VALUE};
use std::ffi::c_int;
use tsumugi_ult::sync::Semaphore;

/// A number of permits, handed out first come, first served.
#[derive(Debug)]
pub struct tsumugi_semaphore(Semaphore);

/// Makes a semaphore with `permits` free permits.
///
/// Errors: NULL.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_semaphore_create(
    permits: usize,
    out: *mut *mut tsumugi_semaphore,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { create(out, || tsumugi_semaphore(Semaphore::new(permits))) })
}

/// Frees a semaphore. NULL is allowed.
///
/// # Safety
///
/// `semaphore` is NULL or a live semaphore; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_semaphore_destroy(semaphore: *mut tsumugi_semaphore) {
    if !semaphore.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { end(semaphore) });
    }
}

/// Takes `count` permits; the caller sleeps until it is its turn. Blocks.
///
/// Errors: NULL.
///
/// # Safety
///
/// `semaphore` is a live semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_semaphore_acquire(
    semaphore: *const tsumugi_semaphore,
    count: usize,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { tsumugi_semaphore_acquire_within(semaphore, count, u64::MAX, false) }
}

/// Takes `count` permits within a time limit. Blocks.
///
/// Errors: TIMED_OUT, CANCELLED (no permit was taken), NULL.
///
/// # Safety
///
/// `semaphore` is a live semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_semaphore_acquire_within(
    semaphore: *const tsumugi_semaphore,
    count: usize,
    limit_ns: u64,
    is_cancellable: bool,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(semaphore) }.and_then(|semaphore| {
        let limit = limit(limit_ns, is_cancellable);
        semaphore.0.acquire_within(count, limit).map_err(of_interrupted)
    }))
}

/// Takes `count` permits if that needs no waiting. Never waits.
///
/// Errors: BUSY, NULL.
///
/// # Safety
///
/// `semaphore` is a live semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_semaphore_try_acquire(
    semaphore: *const tsumugi_semaphore,
    count: usize,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(semaphore) }.and_then(|semaphore| {
        if semaphore.0.try_acquire(count) { Ok(()) } else { Err(TSUMUGI_ERROR_BUSY) }
    }))
}

/// Gives `count` permits back, or adds new ones. Never waits.
///
/// Errors: VALUE (more than `SIZE_MAX` permits would be free; their number stays as it
/// is), NULL.
///
/// # Safety
///
/// `semaphore` is a live semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_semaphore_release(
    semaphore: *const tsumugi_semaphore,
    count: usize,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(semaphore) }.and_then(|semaphore| {
        if semaphore.0.try_release(count) {
            return Ok(());
        }
        let reason = format_args!("the semaphore has no room for {count} more permits");
        Err(remember(TSUMUGI_ERROR_VALUE, reason))
    }))
}

object!(tsumugi_semaphore, "semaphore");
