//! Mutex and condition variable.
//!
//! The guard of a locked mutex lies in the mutex, where its holder finds it
//! again: C has nowhere else to keep it.

use super::code::{code_of, of_interrupted};
use super::parameter::{borrow, limit, place};
use super::{TSUMUGI_ERROR_BUSY, TSUMUGI_ERROR_NOT_LOCKED};
use std::ffi::c_int;
use std::mem::transmute;
use tsumugi_core::sync::UnsafeCell;
use tsumugi_ult::sync::{Condvar, Mutex, MutexGuard};

/// One at a time; first come, first served. For ULTs, foreign tasks and OS
/// threads alike. It may be unlocked on another OS thread than it was locked
/// on.
pub struct tsumugi_mutex {
    // Before the mutex, whose guard it is.
    held: UnsafeCell<Option<MutexGuard<'static, ()>>>,
    mutex: Mutex<()>,
}

// SAFETY: `held` is the holder's, who is one.
unsafe impl Sync for tsumugi_mutex {}

/// Waiting for a condition under a mutex.
#[derive(Debug)]
pub struct tsumugi_condvar(Condvar);

impl tsumugi_mutex {
    /// The caller has the lock: `guard` shows it.
    fn keep(&self, guard: MutexGuard<'_, ()>) {
        // SAFETY: the guard lies in what it borrows, and a mutex that is locked
        // is not destroyed.
        let guard = unsafe { transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) };
        // SAFETY: we have the lock.
        self.held.with_mut(|held| unsafe { *held = Some(guard) });
    }

    /// The guard of the lock that the caller has.
    fn take(&self) -> Result<MutexGuard<'static, ()>, c_int> {
        // SAFETY: the callers' contract: the caller holds the lock.
        self.held.with_mut(|held| unsafe { (*held).take() }).ok_or(TSUMUGI_ERROR_NOT_LOCKED)
    }
}

/// Makes a mutex.
///
/// Errors: NULL.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_mutex_create(out: *mut *mut tsumugi_mutex) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { place(out) }.map(|out| {
        let made = tsumugi_mutex { held: UnsafeCell::new(None), mutex: Mutex::new(()) };
        // SAFETY: the caller's.
        unsafe { out.write(Box::into_raw(Box::new(made))) };
    }))
}

/// Frees a mutex. NULL is no harm.
///
/// # Safety
///
/// NULL or a live mutex, not locked, which nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_mutex_destroy(mutex: *mut tsumugi_mutex) {
    if !mutex.is_null() {
        // SAFETY: the caller's: made by `tsumugi_mutex_create`.
        drop(unsafe { Box::from_raw(mutex) });
    }
}

/// Locks; the caller sleeps until it is its turn. Blocks; one compare-and-swap
/// where nobody else is.
///
/// Errors: NULL.
///
/// # Safety
///
/// A live mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_mutex_lock(mutex: *mut tsumugi_mutex) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { borrow(mutex) }.map(|mutex| mutex.keep(mutex.mutex.lock())))
}

/// Locks if that takes no waiting. Lock-free.
///
/// Errors: BUSY, NULL.
///
/// # Safety
///
/// A live mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_mutex_try_lock(mutex: *mut tsumugi_mutex) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { borrow(mutex) }.and_then(|mutex| {
        let guard = mutex.mutex.try_lock().ok_or(TSUMUGI_ERROR_BUSY)?;
        mutex.keep(guard);
        Ok(())
    }))
}

/// As `tsumugi_mutex_lock`, within a limit.
///
/// Errors: TIMED_OUT, CANCELLED, NULL.
///
/// # Safety
///
/// A live mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_mutex_lock_within(
    mutex: *mut tsumugi_mutex,
    limit_ns: u64,
    is_cancellable: bool,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { borrow(mutex) }.and_then(|mutex| {
        let locked = mutex.mutex.lock_within(limit(limit_ns, is_cancellable));
        mutex.keep(locked.map_err(of_interrupted)?);
        Ok(())
    }))
}

/// Unlocks; the first of those who wait has it then. Never waits.
///
/// Errors: NOT_LOCKED, NULL.
///
/// # Safety
///
/// A live mutex, which the caller has locked if anybody has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_mutex_unlock(mutex: *mut tsumugi_mutex) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { borrow(mutex) }.and_then(|mutex| mutex.take()).map(drop))
}

/// Makes a condition variable.
///
/// Errors: NULL.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_condvar_create(out: *mut *mut tsumugi_condvar) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { place(out) }.map(|out| {
        let made = Box::new(tsumugi_condvar(Condvar::new()));
        // SAFETY: the caller's.
        unsafe { out.write(Box::into_raw(made)) };
    }))
}

/// Frees a condition variable. NULL is no harm.
///
/// # Safety
///
/// NULL or a live condition variable, which nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_condvar_destroy(condvar: *mut tsumugi_condvar) {
    if !condvar.is_null() {
        // SAFETY: the caller's: made by `tsumugi_condvar_create`.
        drop(unsafe { Box::from_raw(condvar) });
    }
}

/// Unlocks the mutex, sleeps until notified, and locks it again. A notice
/// between the unlock and the sleep is not lost, and there is no return without
/// a notice. Blocks.
///
/// Errors: NOT_LOCKED, NULL.
///
/// # Safety
///
/// A live condition variable and a live mutex, which the caller has locked if
/// anybody has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_condvar_wait(
    condvar: *mut tsumugi_condvar,
    mutex: *mut tsumugi_mutex,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { tsumugi_condvar_wait_within(condvar, mutex, u64::MAX, false) }
}

/// As `tsumugi_condvar_wait`, within a limit. The mutex is locked again in
/// either case, however long that takes.
///
/// Errors: TIMED_OUT and CANCELLED (no notice was used up), NOT_LOCKED, NULL.
///
/// # Safety
///
/// As for `tsumugi_condvar_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_condvar_wait_within(
    condvar: *mut tsumugi_condvar,
    mutex: *mut tsumugi_mutex,
    limit_ns: u64,
    is_cancellable: bool,
) -> c_int {
    let wait = || {
        // SAFETY: the caller's.
        let (condvar, mutex) = unsafe { (borrow(condvar)?, borrow(mutex)?) };
        let mut guard = mutex.take()?;
        let waited = condvar.0.wait_within(&mut guard, limit(limit_ns, is_cancellable));
        mutex.keep(guard);
        waited.map_err(of_interrupted)
    };
    code_of(wait())
}

/// Wakes one that waits, if any. Never waits.
///
/// Errors: NULL.
///
/// # Safety
///
/// A live condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_condvar_notify_one(condvar: *mut tsumugi_condvar) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { borrow(condvar) }.map(|condvar| {
        condvar.0.notify_one();
    }))
}

/// Wakes all that wait. Never waits.
///
/// Errors: NULL.
///
/// # Safety
///
/// A live condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_condvar_notify_all(condvar: *mut tsumugi_condvar) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { borrow(condvar) }.map(|condvar| {
        condvar.0.notify_all();
    }))
}

impl std::fmt::Debug for tsumugi_mutex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.mutex.fmt(f)
    }
}
