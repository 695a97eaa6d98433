//! Mutex and condition variable.
//!
//! The guard of a locked mutex lies in the mutex itself, where the unlock finds it,
//! because a C program has no other place for it.

use super::code::{code_of, of_interrupted};
use super::object::{create, end, live, object};
use super::parameter::limit;
use super::{TSUMUGI_ERROR_BUSY, TSUMUGI_ERROR_NOT_LOCKED};
use std::ffi::c_int;
use std::mem::transmute;
use tsumugi_core::sync::UnsafeCell;
use tsumugi_ult::sync::{Condvar, Mutex, MutexGuard};

/// A mutual exclusion lock, first come, first served, for ULTs, foreign tasks and
/// OS threads alike. It may be unlocked on another OS thread than it was locked on.
pub struct tsumugi_mutex {
    // Declared before `mutex`, so that the guard is dropped before the mutex that
    // it borrows.
    held: UnsafeCell<Option<MutexGuard<'static, ()>>>,
    mutex: Mutex<()>,
}

// SAFETY: only the holder of the lock accesses `held`, and there is at most one
// holder.
unsafe impl Sync for tsumugi_mutex {}

/// A condition variable, used with a mutex.
#[derive(Debug)]
pub struct tsumugi_condvar(Condvar);

impl tsumugi_mutex {
    /// Stores `guard`, which shows that the caller has the lock.
    fn keep(&self, guard: MutexGuard<'_, ()>) {
        // SAFETY: the guard lies in the mutex that it borrows, and a locked mutex
        // is not destroyed, so the borrow outlives the guard.
        let guard = unsafe { transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) };
        // SAFETY: the caller has the lock, so no other thread accesses `held`.
        self.held.with_mut(|held| unsafe { *held = Some(guard) });
    }

    /// Takes the guard out; the caller must hold the lock.
    fn take(&self) -> Result<MutexGuard<'static, ()>, c_int> {
        // SAFETY: by the contract of the callers, the calling thread holds the lock
        // if the mutex is locked, so no other thread accesses `held`.
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
    let made = || tsumugi_mutex { held: UnsafeCell::new(None), mutex: Mutex::new(()) };
    // SAFETY: the caller's.
    code_of(unsafe { create(out, made) })
}

/// Frees a mutex. NULL is allowed.
///
/// # Safety
///
/// `mutex` is NULL or a live mutex that is not locked; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_mutex_destroy(mutex: *mut tsumugi_mutex) {
    if !mutex.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { end(mutex) });
    }
}

/// Locks the mutex; the caller sleeps until it is its turn. Blocks; one
/// compare-and-swap when the mutex is free.
///
/// Errors: NULL.
///
/// # Safety
///
/// `mutex` is a live mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_mutex_lock(mutex: *mut tsumugi_mutex) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(mutex) }.map(|mutex| mutex.keep(mutex.mutex.lock())))
}

/// Locks the mutex if that needs no waiting. Lock-free.
///
/// Errors: BUSY, NULL.
///
/// # Safety
///
/// `mutex` is a live mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_mutex_try_lock(mutex: *mut tsumugi_mutex) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(mutex) }.and_then(|mutex| {
        let guard = mutex.mutex.try_lock().ok_or(TSUMUGI_ERROR_BUSY)?;
        mutex.keep(guard);
        Ok(())
    }))
}

/// Locks as `tsumugi_mutex_lock` does, within a time limit.
///
/// Errors: TIMED_OUT, CANCELLED, NULL.
///
/// # Safety
///
/// `mutex` is a live mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_mutex_lock_within(
    mutex: *mut tsumugi_mutex,
    limit_ns: u64,
    is_cancellable: bool,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(mutex) }.and_then(|mutex| {
        let locked = mutex.mutex.lock_within(limit(limit_ns, is_cancellable));
        mutex.keep(locked.map_err(of_interrupted)?);
        Ok(())
    }))
}

/// Unlocks the mutex; the first waiter gets it. Never waits.
///
/// Errors: NOT_LOCKED, NULL.
///
/// # Safety
///
/// `mutex` is a live mutex; if it is locked, the caller holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_mutex_unlock(mutex: *mut tsumugi_mutex) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(mutex) }.and_then(|mutex| mutex.take()).map(drop))
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
    code_of(unsafe { create(out, || tsumugi_condvar(Condvar::new())) })
}

/// Frees a condition variable. NULL is allowed.
///
/// # Safety
///
/// `condvar` is NULL or a live condition variable; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_condvar_destroy(condvar: *mut tsumugi_condvar) {
    if !condvar.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { end(condvar) });
    }
}

/// Unlocks the mutex, sleeps until notified, and locks the mutex again. A
/// notification between the unlock and the sleep is not lost, and the call does not
/// return without a notification. Blocks.
///
/// Errors: NOT_LOCKED, NULL.
///
/// # Safety
///
/// `condvar` is a live condition variable and `mutex` a live mutex; if the mutex is
/// locked, the caller holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_condvar_wait(
    condvar: *mut tsumugi_condvar,
    mutex: *mut tsumugi_mutex,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { tsumugi_condvar_wait_within(condvar, mutex, u64::MAX, false) }
}

/// Waits as `tsumugi_condvar_wait` does, within a time limit. In either case the
/// mutex is locked again, however long that takes.
///
/// Errors: TIMED_OUT and CANCELLED (no notification was consumed), NOT_LOCKED,
/// NULL.
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
        let (condvar, mutex) = unsafe { (live(condvar)?, live(mutex)?) };
        let mut guard = mutex.take()?;
        let waited = condvar.0.wait_within(&mut guard, limit(limit_ns, is_cancellable));
        mutex.keep(guard);
        waited.map_err(of_interrupted)
    };
    code_of(wait())
}

/// Wakes one waiter, if there is one. Never waits.
///
/// Errors: NULL.
///
/// # Safety
///
/// `condvar` is a live condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_condvar_notify_one(condvar: *mut tsumugi_condvar) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(condvar) }.map(|condvar| {
        condvar.0.notify_one();
    }))
}

/// Wakes all waiters. Never waits.
///
/// Errors: NULL.
///
/// # Safety
///
/// `condvar` is a live condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_condvar_notify_all(condvar: *mut tsumugi_condvar) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(condvar) }.map(|condvar| {
        condvar.0.notify_all();
    }))
}

impl std::fmt::Debug for tsumugi_mutex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.mutex.fmt(f)
    }
}

object!(tsumugi_mutex, "mutex");
object!(tsumugi_condvar, "condition variable");
