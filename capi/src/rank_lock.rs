//! Locks of all ranks.
//!
//! The guards of a lock lie in the lock itself, where the unlock finds them. Shared
//! guards of a rank are alike, so an unlock takes any of them.

use super::code::{code_of, of_addr, of_failure};
use super::job::job;
use super::object::{end, given, live, make, object, refuse};
use super::{TSUMUGI_ERROR_BUSY, TSUMUGI_ERROR_NOT_LOCKED, TSUMUGI_ERROR_TIMED_OUT};
use super::{TSUMUGI_ERROR_VALUE, tsumugi_job};
use std::ffi::c_int;
use std::fmt;
use std::mem::transmute;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tsumugi::lock::{LockGuard, LockKind, LockMode, SharedLock};
use tsumugi::{AddrError, Rank};

/// Each hold excludes all others, first come, first served.
pub const TSUMUGI_RANK_LOCK_MUTEX: c_int = 0;
/// Readers wait for a writer that holds the lock, writers for all readers. Writers may
/// starve.
pub const TSUMUGI_RANK_LOCK_READERS: c_int = 1;
/// Phases: a reader waits for one writer at most, a writer for the readers that came
/// before it and for the writers before it.
pub const TSUMUGI_RANK_LOCK_NEUTRAL: c_int = 2;
/// A writer that waits behind another has the lock before any reader. Readers may
/// starve.
pub const TSUMUGI_RANK_LOCK_WRITERS: c_int = 3;

/// Together with other shared holds; of a `TSUMUGI_RANK_LOCK_MUTEX` exclusively.
pub const TSUMUGI_SHARED: c_int = 0;
/// Alone.
pub const TSUMUGI_EXCLUSIVE: c_int = 1;

/// A lock for the threads and ULTs of all ranks. Without contention a shared hold is
/// one fetch-and-add, and its end another. A waiter sleeps until the holder in front
/// of it writes a word of the waiter's own memory.
pub struct tsumugi_rank_lock {
    // Declared before `lock`, which the guards borrow.
    held: Mutex<Vec<LockGuard<'static>>>,
    lock: SharedLock,
}

/// Makes a lock of the given kind (`TSUMUGI_RANK_LOCK_*`) with its words in the memory
/// of the rank `home`. All ranks must call it, with the same `home` and `kind`, in the
/// same order. Blocks.
///
/// Errors: RANK, VALUE (of `kind`), MEMORY, CROWDED, LOST, JOB, NULL.
///
/// # Safety
///
/// `job` is a live job; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rank_lock_create(
    job: *const tsumugi_job,
    home: u32,
    kind: c_int,
    out: *mut *mut tsumugi_rank_lock,
) -> c_int {
    let create = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (self::job(job)?, given(out, "out")?) };
        let kind = match kind {
            TSUMUGI_RANK_LOCK_MUTEX => LockKind::Mutex,
            TSUMUGI_RANK_LOCK_READERS => LockKind::Readers,
            TSUMUGI_RANK_LOCK_NEUTRAL => LockKind::Neutral,
            TSUMUGI_RANK_LOCK_WRITERS => LockKind::Writers,
            _ => {
                return Err(refuse(TSUMUGI_ERROR_VALUE, format_args!("{kind} is no kind of lock")));
            }
        };
        let lock = job.runtime.share_lock(Rank(home), kind);
        let lock = lock.map_err(of_failure)?;
        // SAFETY: the caller's.
        unsafe { make(out, tsumugi_rank_lock { held: Mutex::default(), lock }) };
        Ok(())
    };
    code_of(create())
}

/// Ends the handle of a lock; holds of this rank are given back. The words are freed at
/// the next barrier, so all ranks must have ended their use of the lock before it.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `lock` is a rank lock; no thread of this process uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rank_lock_destroy(lock: *mut tsumugi_rank_lock) -> c_int {
    let destroy = || {
        // SAFETY: the caller's.
        let of = unsafe { live(lock) }?;
        // Before the lock moves, because they borrow it.
        drop(std::mem::take(&mut *of.held()));
        // SAFETY: the caller's.
        unsafe { end(lock) }.map(drop)
    };
    code_of(destroy())
}

/// Takes the lock, shared or exclusively (`TSUMUGI_SHARED`, `TSUMUGI_EXCLUSIVE`); the
/// caller sleeps until it is its turn. Blocks.
///
/// Errors: LOST (a rank has died; the reason names it), VALUE (of `mode`), ENDED, NULL.
///
/// # Safety
///
/// `lock` is a rank lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rank_lock_lock(
    lock: *const tsumugi_rank_lock,
    mode: c_int,
) -> c_int {
    let take = || {
        // SAFETY: the caller's.
        let (lock, mode) = (unsafe { live(lock) }?, mode_of(mode)?);
        lock.keep(lock.lock.lock(mode).map(Some)).map(drop)
    };
    code_of(take())
}

/// Takes the lock if that needs no waiting for another holder. Lock-free.
///
/// Errors: BUSY, and those of `tsumugi_rank_lock_lock`.
///
/// # Safety
///
/// `lock` is a rank lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rank_lock_try_lock(
    lock: *const tsumugi_rank_lock,
    mode: c_int,
) -> c_int {
    let take = || {
        // SAFETY: the caller's.
        let (lock, mode) = (unsafe { live(lock) }?, mode_of(mode)?);
        let taken = lock.keep(lock.lock.try_lock(mode))?;
        let busy = || refuse(TSUMUGI_ERROR_BUSY, format_args!("{:?} is held", lock.lock));
        if taken { Ok(()) } else { Err(busy()) }
    };
    code_of(take())
}

/// Takes the lock as `tsumugi_rank_lock_lock` does, and waits for it for `limit_ns`
/// nanoseconds at most (`TSUMUGI_FOREVER`: no limit).
///
/// Errors: TIMED_OUT, and those of `tsumugi_rank_lock_lock`.
///
/// # Safety
///
/// `lock` is a rank lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rank_lock_lock_within(
    lock: *const tsumugi_rank_lock,
    mode: c_int,
    limit_ns: u64,
) -> c_int {
    let take = || {
        // SAFETY: the caller's.
        let (lock, mode) = (unsafe { live(lock) }?, mode_of(mode)?);
        let taken = match limit_ns {
            u64::MAX => lock.lock.lock(mode).map(Some),
            ns => lock.lock.lock_timeout(mode, Duration::from_nanos(ns)),
        };
        let late = || {
            let reason = format_args!("{:?} was not free within {limit_ns} ns", lock.lock);
            refuse(TSUMUGI_ERROR_TIMED_OUT, reason)
        };
        if lock.keep(taken)? { Ok(()) } else { Err(late()) }
    };
    code_of(take())
}

/// Gives back one hold of this rank; any thread may do so. Blocking operations under
/// the lock are complete then; operations that were only begun must have ended before.
/// Lock-free.
///
/// Errors: NOT_LOCKED (this rank does not hold the lock), LOST, ENDED, NULL.
///
/// # Safety
///
/// `lock` is a rank lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rank_lock_unlock(lock: *const tsumugi_rank_lock) -> c_int {
    let give_back = || {
        // SAFETY: the caller's.
        let lock = unsafe { live(lock) }?;
        let guard = lock.held().pop();
        let guard = guard.ok_or_else(|| {
            let reason = format_args!("this rank does not hold {:?}", lock.lock);
            refuse(TSUMUGI_ERROR_NOT_LOCKED, reason)
        })?;
        guard.release().map_err(of_addr)
    };
    code_of(give_back())
}

impl tsumugi_rank_lock {
    fn held(&self) -> MutexGuard<'_, Vec<LockGuard<'static>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a guard, if there is one, and returns whether there was.
    fn keep(&self, taken: Result<Option<LockGuard<'_>>, AddrError>) -> Result<bool, c_int> {
        let Some(guard) = taken.map_err(of_addr)? else { return Ok(false) };
        // SAFETY: the guard borrows the lock beside it, which is dropped later and does
        // not move while it has guards.
        let guard = unsafe { transmute::<LockGuard<'_>, LockGuard<'static>>(guard) };
        self.held().push(guard);
        Ok(true)
    }
}

object!(tsumugi_rank_lock, "lock");

impl fmt::Debug for tsumugi_rank_lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tsumugi_rank_lock({:?})", self.lock)
    }
}

pub(super) fn mode_of(mode: c_int) -> Result<LockMode, c_int> {
    match mode {
        TSUMUGI_SHARED => Ok(LockMode::Shared),
        TSUMUGI_EXCLUSIVE => Ok(LockMode::Exclusive),
        _ => Err(refuse(TSUMUGI_ERROR_VALUE, format_args!("{mode} is no mode of a lock"))),
    }
}
