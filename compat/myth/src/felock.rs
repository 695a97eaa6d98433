//! Full/empty locks: a mutex with a status, 0 or 1, that threads wait for.

use crate::cond::myth_cond_t;
use crate::mutex::myth_mutex_t;
use std::ffi::c_int;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_ult::Limit;

/// A full/empty lock, in 120 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct myth_felock_t {
    mutex: myth_mutex_t,
    becomes: [myth_cond_t; 2],
    status: AtomicU32,
    _attr: usize,
}

/// Attributes of a full/empty lock: there are none.
#[repr(C)]
#[derive(Debug)]
pub struct myth_felockattr_t {
    _unused: usize,
}

/// Makes a lock that is free and empty (status 0).
///
/// # Safety
///
/// `lock` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_felock_init(
    lock: *mut myth_felock_t,
    _attr: *const myth_felockattr_t,
) -> c_int {
    let made = myth_felock_t {
        mutex: myth_mutex_t::new(0),
        becomes: [myth_cond_t::new(), myth_cond_t::new()],
        status: AtomicU32::new(0),
        _attr: 0,
    };
    // SAFETY: the caller's.
    unsafe { lock.write(made) };
    0
}

/// Does nothing: the lock owns nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myth_felock_destroy(_lock: *mut myth_felock_t) -> c_int {
    0
}

/// Locks, whatever the status is.
///
/// # Safety
///
/// `lock` is a full/empty lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_felock_lock(lock: *const myth_felock_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { &*lock }.mutex.lock(Limit::NONE)
}

/// Unlocks without a change of the status.
///
/// # Safety
///
/// The caller holds `lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_felock_unlock(lock: *const myth_felock_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { &*lock }.mutex.unlock()
}

/// Waits until the status is this one, and locks. Returns `EINVAL` if there is no such
/// status.
///
/// # Safety
///
/// `lock` is a full/empty lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_felock_wait_and_lock(
    lock: *const myth_felock_t,
    status: c_int,
) -> c_int {
    // SAFETY: the caller's.
    let lock = unsafe { &*lock };
    let Some(becomes) = lock.becomes.get(status as usize) else { return libc::EINVAL };
    lock.mutex.lock(Limit::NONE);
    while lock.status.load(Ordering::Relaxed) != status as u32 {
        becomes.wait(&lock.mutex, Limit::NONE);
    }
    0
}

/// Sets the status, wakes a thread that waits for it, and unlocks. Returns `EINVAL` if
/// there is no such status.
///
/// # Safety
///
/// The caller holds `lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_felock_mark_and_signal(
    lock: *const myth_felock_t,
    status: c_int,
) -> c_int {
    // SAFETY: the caller's.
    let lock = unsafe { &*lock };
    let Some(becomes) = lock.becomes.get(status as usize) else { return libc::EINVAL };
    lock.status.store(status as u32, Ordering::Relaxed);
    becomes.notify(1);
    lock.mutex.unlock()
}

/// The status, 0 or 1.
///
/// # Safety
///
/// `lock` is a full/empty lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_felock_status(lock: *const myth_felock_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { &*lock }.status.load(Ordering::Relaxed) as c_int
}

/// Does nothing: there are no attributes.
#[unsafe(no_mangle)]
pub extern "C" fn myth_felockattr_init(_attr: *mut myth_felockattr_t) -> c_int {
    0
}

/// Does nothing: there are no attributes.
#[unsafe(no_mangle)]
pub extern "C" fn myth_felockattr_destroy(_attr: *mut myth_felockattr_t) -> c_int {
    0
}

const _: () = assert!(size_of::<myth_felock_t>() == 120);
