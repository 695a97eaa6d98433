//! Once, the uncondition variable, the spin lock: objects of one word or two.

use std::ffi::c_int;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_ult::Limit;
use tsumugi_ult::sync::word;

/// An initialization that one thread does, once. Zero is its first state.
#[repr(C)]
#[derive(Debug)]
pub struct myth_once_t {
    state: AtomicU32,
}

/// A place where one thread sleeps until another one wakes it.
#[repr(C, align(8))]
#[derive(Debug)]
pub struct myth_uncond_t {
    waits: AtomicU32,
    turn: AtomicU32,
}

/// A lock whose waiters let other threads run, and do not sleep.
#[repr(C)]
#[derive(Debug)]
pub struct myth_spinlock_t {
    locked: AtomicU32,
}

const DONE: u32 = 2;

/// Calls `init` if no thread has; returns when the call is over.
///
/// # Safety
///
/// `once` is zero at first; `init` may be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_once(
    once: *const myth_once_t,
    init: Option<unsafe extern "C" fn()>,
) -> c_int {
    // SAFETY: the caller's.
    let state = unsafe { &(*once).state };
    // Acquire: pairs with the Release below.
    if state.load(Ordering::Acquire) == DONE {
        return 0;
    }
    let Some(init) = init else { return libc::EINVAL };
    if state.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
        // SAFETY: the caller's.
        unsafe { init() };
        // Release: pairs with the Acquire of the others.
        state.store(DONE, Ordering::Release);
        word::wake(state, usize::MAX);
    }
    while state.load(Ordering::Acquire) != DONE {
        // SAFETY: the caller's: `once` stays.
        let _ = unsafe { word::wait(state, 1, Limit::NONE) };
    }
    0
}

/// Makes an uncondition variable on which no thread sleeps.
///
/// # Safety
///
/// `uncond` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_uncond_init(uncond: *mut myth_uncond_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { uncond.write(myth_uncond_t { waits: 0.into(), turn: 0.into() }) };
    0
}

/// Does nothing: the variable owns nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myth_uncond_destroy(_uncond: *mut myth_uncond_t) -> c_int {
    0
}

/// Sleeps until another thread signals. One thread at a time may wait.
///
/// # Safety
///
/// `uncond` is an uncondition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_uncond_wait(uncond: *const myth_uncond_t) -> c_int {
    // SAFETY: the caller's.
    let uncond = unsafe { &*uncond };
    let turn = uncond.turn.load(Ordering::Relaxed);
    // Release: pairs with the Acquire of the signal.
    uncond.waits.store(1, Ordering::Release);
    // SAFETY: the caller's: the variable stays until the signal.
    let _ = unsafe { word::wait(&uncond.turn, turn, Limit::NONE) };
    0
}

/// Wakes the thread that sleeps on the variable; waits for such a thread if there is
/// none yet.
///
/// # Safety
///
/// `uncond` is an uncondition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_uncond_signal(uncond: *const myth_uncond_t) -> c_int {
    // SAFETY: the caller's.
    let uncond = unsafe { &*uncond };
    // Acquire: pairs with the Release of the wait.
    while uncond.waits.compare_exchange(1, 0, Ordering::Acquire, Ordering::Relaxed).is_err() {
        tsumugi_ult::yield_now();
    }
    let turn = &raw const uncond.turn;
    // Relaxed: the lock of the table orders it.
    uncond.turn.fetch_add(1, Ordering::Relaxed);
    word::wake(turn, 1);
    0
}

/// Makes a spin lock that is free.
///
/// # Safety
///
/// `lock` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_spin_init(lock: *mut myth_spinlock_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { lock.write(myth_spinlock_t { locked: 0.into() }) };
    0
}

/// Does nothing: a spin lock owns nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myth_spin_destroy(_lock: *mut myth_spinlock_t) -> c_int {
    0
}

/// Locks a spin lock; lets other threads run meanwhile.
///
/// # Safety
///
/// `lock` is a spin lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_spin_lock(lock: *const myth_spinlock_t) -> c_int {
    // SAFETY: the caller's.
    while unsafe { myth_spin_trylock(lock) } == 0 {
        tsumugi_ult::yield_now();
    }
    0
}

/// Locks a spin lock if it is free. Returns 1 if it was, else 0.
///
/// # Safety
///
/// `lock` is a spin lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_spin_trylock(lock: *const myth_spinlock_t) -> c_int {
    // SAFETY: the caller's.
    let locked = unsafe { &(*lock).locked };
    // Acquire: pairs with the Release of the unlock.
    c_int::from(locked.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok())
}

/// Unlocks a spin lock.
///
/// # Safety
///
/// The caller holds `lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_spin_unlock(lock: *const myth_spinlock_t) -> c_int {
    // Release: pairs with the Acquire of the lock. SAFETY: the caller's.
    unsafe { (*lock).locked.store(0, Ordering::Release) };
    0
}
