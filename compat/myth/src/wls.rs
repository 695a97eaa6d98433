//! Worker-specific data: data of the OS thread, by the keys of pthreads.

use std::ffi::{c_int, c_void};

/// A key.
pub type myth_wls_key_t = libc::pthread_key_t;

/// Makes a key. The destructor is called with the value of each worker that ends.
///
/// # Safety
///
/// `key` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_wls_key_create(
    key: *mut myth_wls_key_t,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { libc::pthread_key_create(key, destructor) }
}

/// Deletes a key.
///
/// # Safety
///
/// The key was made, and no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_wls_key_delete(key: myth_wls_key_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { libc::pthread_key_delete(key) }
}

/// Sets the value of the caller's worker.
///
/// # Safety
///
/// The key was made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_wls_setspecific(key: myth_wls_key_t, value: *const c_void) -> c_int {
    // SAFETY: the caller's.
    unsafe { libc::pthread_setspecific(key, value) }
}

/// The value of the caller's worker; NULL if there is none.
///
/// # Safety
///
/// The key was made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_wls_getspecific(key: myth_wls_key_t) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { libc::pthread_getspecific(key) }
}
