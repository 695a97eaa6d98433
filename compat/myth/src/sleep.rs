//! Sleeping, and requests to give up.

use crate::process;
use crate::thread::myth_thread_t;
use std::ffi::{c_int, c_uint};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::time::Duration;
use tsumugi_ult::JoinHandle;
use tsumugi_ult::call::{self, Word};

/// Sleeps for so many seconds, while other threads use the worker. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn myth_sleep(seconds: c_uint) -> c_uint {
    pause(Duration::from_secs(u64::from(seconds)));
    0
}

/// Sleeps for so many microseconds. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn myth_usleep(microseconds: c_uint) -> c_int {
    pause(Duration::from_micros(u64::from(microseconds)));
    0
}

/// Sleeps for the requested time. Returns 0, or `EINVAL`; nothing is left in `rest`.
///
/// # Safety
///
/// `request` is valid for a read; `rest` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_nanosleep(
    request: *const libc::timespec,
    rest: *mut libc::timespec,
) -> c_int {
    // SAFETY: the caller's.
    let request = unsafe { *request };
    let (Ok(seconds), Ok(ns)) = (u64::try_from(request.tv_sec), u32::try_from(request.tv_nsec))
    else {
        return libc::EINVAL;
    };
    if ns >= 1_000_000_000 {
        return libc::EINVAL;
    }
    pause(Duration::new(seconds, ns));
    if !rest.is_null() {
        // SAFETY: the caller's.
        unsafe { rest.write(libc::timespec { tv_sec: 0, tv_nsec: 0 }) };
    }
    0
}

/// Does nothing: a thread gives up at `myth_testcancel` alone.
///
/// # Safety
///
/// `before` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_setcancelstate(_state: c_int, before: *mut c_int) -> c_int {
    if !before.is_null() {
        // SAFETY: the caller's.
        unsafe { before.write(CANCEL_ENABLE) };
    }
    0
}

/// Does nothing: a thread gives up at `myth_testcancel` alone.
///
/// # Safety
///
/// `before` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_setcanceltype(_kind: c_int, before: *mut c_int) -> c_int {
    if !before.is_null() {
        // SAFETY: the caller's.
        unsafe { before.write(CANCEL_DEFERRED) };
    }
    0
}

/// Requests that a thread give up at its next `myth_testcancel`.
///
/// # Safety
///
/// The thread is neither joined nor detached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_cancel(thread: myth_thread_t) -> c_int {
    let Some(raw) = NonNull::new(thread.cast::<()>()) else { return libc::ESRCH };
    // SAFETY: the caller's: `myth_create` made the handle, which stays the caller's.
    ManuallyDrop::new(unsafe { JoinHandle::<Word>::from_raw(raw) }).cancel();
    0
}

/// Ends the calling thread, with the result `PTHREAD_CANCELED`, if that was requested.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn myth_testcancel() {
    if tsumugi_ult::is_cancelled() {
        // PTHREAD_CANCELED.
        call::exit(std::ptr::without_provenance_mut(usize::MAX))
    }
}

fn pause(duration: Duration) {
    process::ensure();
    tsumugi_ult::sleep(duration);
}

/// Of `pthread.h`.
const CANCEL_ENABLE: c_int = 0;
const CANCEL_DEFERRED: c_int = 0;
