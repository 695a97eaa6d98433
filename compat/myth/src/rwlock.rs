//! Reader-writer locks, in 40 bytes.
//!
//! ```text
//!   0        4          8               24       28       32
//!   │ changes│ writers  │ (unused)      │ state  │(unused)│ kind │
//! ```
//!
//! The state is the number of readers, or `WRITER`. A thread that cannot have the lock
//! notes `changes`, looks at the state again, and sleeps until the next change.

use std::ffi::c_int;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_ult::Limit;
use tsumugi_ult::sync::word;

/// A reader-writer lock.
#[repr(C)]
#[derive(Debug)]
pub struct myth_rwlock_t {
    changes: AtomicU32,
    /// Writers that wait.
    writers: AtomicU32,
    _spare: [u64; 2],
    state: AtomicU32,
    _rest: u32,
    kind: c_int,
    _end: u32,
}

/// Attributes of a reader-writer lock: which side comes first.
#[repr(C)]
#[derive(Debug)]
pub struct myth_rwlockattr_t {
    kind: c_int,
}

const PREFER_READER: c_int = 0;
const PREFER_MAX: c_int = 2;
const WRITER: u32 = 1 << 31;

/// Makes a lock that is free.
///
/// # Safety
///
/// `lock` is valid for a write, `attr` is NULL or valid for a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_rwlock_init(
    lock: *mut myth_rwlock_t,
    attr: *const myth_rwlockattr_t,
) -> c_int {
    // SAFETY: the caller's.
    let kind = unsafe { attr.as_ref() }.map_or(PREFER_READER, |attr| attr.kind);
    let made = myth_rwlock_t {
        changes: 0.into(),
        writers: 0.into(),
        _spare: [0; 2],
        state: 0.into(),
        _rest: 0,
        kind,
        _end: 0,
    };
    // SAFETY: the caller's.
    unsafe { lock.write(made) };
    0
}

/// Does nothing: a lock owns nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myth_rwlock_destroy(_lock: *mut myth_rwlock_t) -> c_int {
    0
}

/// Locks for reading.
///
/// # Safety
///
/// `lock` is a reader-writer lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_rwlock_rdlock(lock: *const myth_rwlock_t) -> c_int {
    // SAFETY: the caller's.
    let lock = unsafe { &*lock };
    lock.wait(Limit::NONE, || lock.try_read())
}

/// Locks for reading if that needs no waiting; else returns `EBUSY`.
///
/// # Safety
///
/// `lock` is a reader-writer lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_rwlock_tryrdlock(lock: *const myth_rwlock_t) -> c_int {
    // SAFETY: the caller's.
    if unsafe { &*lock }.try_read() { 0 } else { libc::EBUSY }
}

/// Locks for reading, until a point in time of `CLOCK_REALTIME` at the latest; then
/// returns `ETIMEDOUT`.
///
/// # Safety
///
/// `lock` is a reader-writer lock; `until` is valid for a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_rwlock_timedrdlock(
    lock: *const myth_rwlock_t,
    until: *const libc::timespec,
) -> c_int {
    // SAFETY: the caller's.
    let (lock, limit) = unsafe { (&*lock, crate::thread::limit_until(until)) };
    lock.wait(limit, || lock.try_read())
}

/// Locks for writing.
///
/// # Safety
///
/// `lock` is a reader-writer lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_rwlock_wrlock(lock: *const myth_rwlock_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { &*lock }.write(Limit::NONE)
}

/// Locks for writing if the lock is free; else returns `EBUSY`.
///
/// # Safety
///
/// `lock` is a reader-writer lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_rwlock_trywrlock(lock: *const myth_rwlock_t) -> c_int {
    // SAFETY: the caller's.
    if unsafe { &*lock }.try_write() { 0 } else { libc::EBUSY }
}

/// Locks for writing, until a point in time of `CLOCK_REALTIME` at the latest; then
/// returns `ETIMEDOUT`.
///
/// # Safety
///
/// `lock` is a reader-writer lock; `until` is valid for a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_rwlock_timedwrlock(
    lock: *const myth_rwlock_t,
    until: *const libc::timespec,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { (*lock).write(crate::thread::limit_until(until)) }
}

/// Unlocks, whichever way the caller has locked.
///
/// # Safety
///
/// The caller holds `lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_rwlock_unlock(lock: *const myth_rwlock_t) -> c_int {
    // SAFETY: the caller's.
    let lock = unsafe { &*lock };
    let left = if lock.state.load(Ordering::Relaxed) == WRITER { WRITER } else { 1 };
    // Release: pairs with the Acquire of the next lock; AcqRel so that the last reader
    // hands on what all readers have seen.
    if lock.state.fetch_sub(left, Ordering::AcqRel) == left {
        lock.change();
    }
    0
}

/// Fills in the default attributes: readers come first.
///
/// # Safety
///
/// `attr` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_rwlockattr_init(attr: *mut myth_rwlockattr_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { attr.write(myth_rwlockattr_t { kind: PREFER_READER }) };
    0
}

/// Does nothing: attributes own nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myth_rwlockattr_destroy(_attr: *mut myth_rwlockattr_t) -> c_int {
    0
}

/// Reads which side comes first.
///
/// # Safety
///
/// `attr` is valid for a read, `kind` for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_rwlockattr_getkind(
    attr: *const myth_rwlockattr_t,
    kind: *mut c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { kind.write((*attr).kind) };
    0
}

/// Sets which side comes first. Returns `EINVAL` if there is no such kind.
///
/// # Safety
///
/// `attr` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_rwlockattr_setkind(
    attr: *mut myth_rwlockattr_t,
    kind: c_int,
) -> c_int {
    if !(PREFER_READER..=PREFER_MAX).contains(&kind) {
        return libc::EINVAL;
    }
    // SAFETY: the caller's.
    unsafe { (*attr).kind = kind };
    0
}

impl myth_rwlock_t {
    fn try_read(&self) -> bool {
        let behind = self.kind != PREFER_READER && self.writers.load(Ordering::Relaxed) > 0;
        let more = |state: u32| (state != WRITER).then_some(state + 1);
        // Acquire: pairs with the Release of the unlock.
        !behind && self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).is_ok()
    }

    fn try_write(&self) -> bool {
        // Acquire: pairs with the Release of the unlock.
        self.state.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn write(&self, limit: Limit) -> c_int {
        if self.try_write() {
            return 0;
        }
        self.writers.fetch_add(1, Ordering::Relaxed);
        let outcome = self.wait(limit, || self.try_write());
        self.writers.fetch_sub(1, Ordering::Relaxed);
        if outcome != 0 {
            // Readers may have waited for this writer.
            self.change();
        }
        outcome
    }

    fn wait(&self, limit: Limit, take: impl Fn() -> bool) -> c_int {
        loop {
            // Acquire: a change that is seen comes with the state before it; one that is
            // not seen ends the sleep.
            let seen = self.changes.load(Ordering::Acquire);
            if take() {
                return 0;
            }
            // SAFETY: the caller's lock is there until the caller has it.
            if unsafe { word::wait(&self.changes, seen, limit) }.is_err() {
                return libc::ETIMEDOUT;
            }
        }
    }

    fn change(&self) {
        let changes = &raw const self.changes;
        // Release: after the state; pairs with the load in `wait`.
        self.changes.fetch_add(1, Ordering::Release);
        word::wake(changes, usize::MAX);
    }
}

const _: () = assert!(size_of::<myth_rwlock_t>() == 40);
