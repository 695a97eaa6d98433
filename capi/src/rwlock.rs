//! Reader-writer locks.

use super::code::{code_of, of_interrupted};
use super::object::{create, end, live, object};
use super::parameter::limit;
use super::{TSUMUGI_ERROR_BUSY, TSUMUGI_ERROR_NOT_LOCKED};
use std::ffi::c_int;
use std::mem::forget;
use tsumugi_ult::sync::RwLock;

/// A lock that many threads may have for reading, or one for writing; first come, first
/// served.
#[derive(Debug)]
pub struct tsumugi_rwlock(RwLock<()>);

/// Makes a reader-writer lock that is free.
///
/// Errors: NULL.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rwlock_create(out: *mut *mut tsumugi_rwlock) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { create(out, || tsumugi_rwlock(RwLock::new(()))) })
}

/// Frees a reader-writer lock. NULL is allowed.
///
/// # Safety
///
/// `rwlock` is NULL or a live reader-writer lock; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rwlock_destroy(rwlock: *mut tsumugi_rwlock) {
    if !rwlock.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { end(rwlock) });
    }
}

/// Locks for reading. Blocks.
///
/// Errors: NULL.
///
/// # Safety
///
/// `rwlock` is a live reader-writer lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rwlock_read(rwlock: *const tsumugi_rwlock) -> c_int {
    // SAFETY: the caller's.
    unsafe { tsumugi_rwlock_read_within(rwlock, u64::MAX, false) }
}

/// Locks for reading, within a time limit. Blocks.
///
/// Errors: TIMED_OUT, CANCELLED, NULL.
///
/// # Safety
///
/// `rwlock` is a live reader-writer lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rwlock_read_within(
    rwlock: *const tsumugi_rwlock,
    limit_ns: u64,
    is_cancellable: bool,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(rwlock) }.and_then(|rwlock| {
        let locked = rwlock.0.read_within(limit(limit_ns, is_cancellable));
        locked.map(forget).map_err(of_interrupted)
    }))
}

/// Locks for reading if that needs no waiting. Never waits.
///
/// Errors: BUSY, NULL.
///
/// # Safety
///
/// `rwlock` is a live reader-writer lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rwlock_try_read(rwlock: *const tsumugi_rwlock) -> c_int {
    // SAFETY: the caller's.
    code_of(
        unsafe { live(rwlock) }
            .and_then(|rwlock| rwlock.0.try_read().map(forget).ok_or(TSUMUGI_ERROR_BUSY)),
    )
}

/// Unlocks a lock that the caller has for reading. Never waits.
///
/// Errors: NOT_LOCKED (no thread has the lock for reading), NULL.
///
/// # Safety
///
/// `rwlock` is a live reader-writer lock; if a thread has it for reading, the caller does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rwlock_unlock_read(rwlock: *const tsumugi_rwlock) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(rwlock) }.and_then(|rwlock| {
        // SAFETY: the caller's: its guard was forgotten.
        let was_locked = unsafe { rwlock.0.unlock_read() };
        was_locked.then_some(()).ok_or(TSUMUGI_ERROR_NOT_LOCKED)
    }))
}

/// Locks for writing. Blocks.
///
/// Errors: NULL.
///
/// # Safety
///
/// `rwlock` is a live reader-writer lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rwlock_write(rwlock: *const tsumugi_rwlock) -> c_int {
    // SAFETY: the caller's.
    unsafe { tsumugi_rwlock_write_within(rwlock, u64::MAX, false) }
}

/// Locks for writing, within a time limit. Blocks.
///
/// Errors: TIMED_OUT, CANCELLED, NULL.
///
/// # Safety
///
/// `rwlock` is a live reader-writer lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rwlock_write_within(
    rwlock: *const tsumugi_rwlock,
    limit_ns: u64,
    is_cancellable: bool,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(rwlock) }.and_then(|rwlock| {
        let locked = rwlock.0.write_within(limit(limit_ns, is_cancellable));
        locked.map(forget).map_err(of_interrupted)
    }))
}

/// Locks for writing if that needs no waiting. Never waits.
///
/// Errors: BUSY, NULL.
///
/// # Safety
///
/// `rwlock` is a live reader-writer lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rwlock_try_write(rwlock: *const tsumugi_rwlock) -> c_int {
    // SAFETY: the caller's.
    code_of(
        unsafe { live(rwlock) }
            .and_then(|rwlock| rwlock.0.try_write().map(forget).ok_or(TSUMUGI_ERROR_BUSY)),
    )
}

/// Unlocks a lock that the caller has for writing. Never waits.
///
/// Errors: NOT_LOCKED (no thread has the lock for writing), NULL.
///
/// # Safety
///
/// `rwlock` is a live reader-writer lock; if a thread has it for writing, the caller does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rwlock_unlock_write(rwlock: *const tsumugi_rwlock) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(rwlock) }.and_then(|rwlock| {
        // SAFETY: the caller's: its guard was forgotten.
        let was_locked = unsafe { rwlock.0.unlock_write() };
        was_locked.then_some(()).ok_or(TSUMUGI_ERROR_NOT_LOCKED)
    }))
}

object!(tsumugi_rwlock, "reader-writer lock");
