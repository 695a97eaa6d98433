//! Condition variables, in 32 bytes: a word that each signal changes.

use crate::mutex::myth_mutex_t;
use std::ffi::c_int;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_ult::Limit;
use tsumugi_ult::sync::word;

/// A condition variable.
#[repr(C)]
#[derive(Debug)]
pub struct myth_cond_t {
    signals: AtomicU32,
    _spare: [u32; 7],
}

/// Attributes of a condition variable: there are none.
#[repr(C)]
#[derive(Debug)]
pub struct myth_condattr_t {
    _unused: usize,
}

/// Makes a condition variable without waiters.
///
/// # Safety
///
/// `cond` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_cond_init(
    cond: *mut myth_cond_t,
    _attr: *const myth_condattr_t,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { cond.write(myth_cond_t::new()) };
    0
}

/// Does nothing: a condition variable owns nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myth_cond_destroy(_cond: *mut myth_cond_t) -> c_int {
    0
}

/// Wakes a waiter, if there is one.
///
/// # Safety
///
/// `cond` is a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_cond_signal(cond: *const myth_cond_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { &*cond }.notify(1);
    0
}

/// Wakes all waiters.
///
/// # Safety
///
/// `cond` is a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_cond_broadcast(cond: *const myth_cond_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { &*cond }.notify(usize::MAX);
    0
}

/// Unlocks the mutex, sleeps until a signal, and locks the mutex again. May return
/// without a signal.
///
/// # Safety
///
/// `cond` is a condition variable; the caller holds `mutex`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_cond_wait(
    cond: *const myth_cond_t,
    mutex: *const myth_mutex_t,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { (*cond).wait(&*mutex, Limit::NONE) }
}

/// Waits as `myth_cond_wait`, until a point in time of `CLOCK_REALTIME` at the latest;
/// then returns `ETIMEDOUT`, with the mutex locked.
///
/// # Safety
///
/// As for [`myth_cond_wait`]; `until` is valid for a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_cond_timedwait(
    cond: *const myth_cond_t,
    mutex: *const myth_mutex_t,
    until: *const libc::timespec,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { (*cond).wait(&*mutex, crate::thread::limit_until(until)) }
}

/// Does nothing: there are no attributes.
#[unsafe(no_mangle)]
pub extern "C" fn myth_condattr_init(_attr: *mut myth_condattr_t) -> c_int {
    0
}

/// Does nothing: there are no attributes.
#[unsafe(no_mangle)]
pub extern "C" fn myth_condattr_destroy(_attr: *mut myth_condattr_t) -> c_int {
    0
}

impl myth_cond_t {
    /// A condition variable without waiters.
    pub(crate) fn new() -> Self {
        Self { signals: AtomicU32::new(0), _spare: [0; 7] }
    }

    pub(crate) fn wait(&self, mutex: &myth_mutex_t, limit: Limit) -> c_int {
        let seen = self.signals.load(Ordering::Relaxed);
        let refused = mutex.unlock();
        if refused != 0 {
            return refused;
        }
        // A signal after the unlock changes the word, so the wait returns. The variable
        // may be gone after that.
        // SAFETY: the caller waits on the variable, so it is there until then.
        let outcome = unsafe { word::wait(&self.signals, seen, limit) };
        mutex.lock(Limit::NONE);
        if outcome.is_ok() { 0 } else { libc::ETIMEDOUT }
    }

    pub(crate) fn notify(&self, count: usize) {
        let signals = &raw const self.signals;
        // Relaxed: the lock of the table, or the mutex, orders it.
        self.signals.fetch_add(1, Ordering::Relaxed);
        word::wake(signals, count);
    }
}

const _: () = assert!(size_of::<myth_cond_t>() == 32);
