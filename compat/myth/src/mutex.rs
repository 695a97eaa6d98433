//! Mutexes, in the 40 bytes that MassiveThreads gives them.
//!
//! ```text
//!   0      4      8      12         16        24       32        40
//!   │ magic│ kind │ lock │ (unused) │ owner   │ depth  │ (unused)│
//! ```
//!
//! The lock is 0 (free), 1 (held), or 2 (held, and others may wait); see Drepper,
//! Futexes Are Tricky, 2011.

use std::ffi::c_int;
use std::ptr;
use tsumugi_core::sync::{AtomicU32, AtomicUsize, Ordering};
use tsumugi_ult::sync::word;
use tsumugi_ult::{Limit, call};

/// A mutex.
#[repr(C)]
#[derive(Debug)]
pub struct myth_mutex_t {
    magic: c_int,
    kind: c_int,
    lock: AtomicU32,
    _spare: u32,
    owner: AtomicUsize,
    depth: AtomicUsize,
    _state: usize,
}

/// Attributes of a mutex: what a second lock by the holder does.
#[repr(C)]
#[derive(Debug)]
pub struct myth_mutexattr_t {
    kind: c_int,
}

const NORMAL: c_int = 0;
const ERRORCHECK: c_int = 1;
const RECURSIVE: c_int = 2;

const FREE: u32 = 0;
const HELD: u32 = 1;
const AWAITED: u32 = 2;

/// Makes a mutex that is free; NULL for `attr` stands for an ordinary one.
///
/// # Safety
///
/// `mutex` is valid for a write, `attr` is NULL or valid for a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_mutex_init(
    mutex: *mut myth_mutex_t,
    attr: *const myth_mutexattr_t,
) -> c_int {
    // SAFETY: the caller's.
    let kind = unsafe { attr.as_ref() }.map_or(NORMAL, |attr| attr.kind);
    if !(NORMAL..=RECURSIVE).contains(&kind) {
        return libc::EINVAL;
    }
    // SAFETY: the caller's.
    unsafe { mutex.write(myth_mutex_t::new(kind)) };
    0
}

/// Does nothing: a mutex owns nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myth_mutex_destroy(_mutex: *mut myth_mutex_t) -> c_int {
    0
}

/// Locks a mutex; the caller sleeps while another thread holds it. Returns `EDEADLK`
/// if the caller holds it and its kind is `MYTH_MUTEX_ERRORCHECK`.
///
/// # Safety
///
/// `mutex` is a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_mutex_lock(mutex: *const myth_mutex_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { &*mutex }.lock(Limit::NONE)
}

/// Locks a mutex, until a point in time of `CLOCK_REALTIME` at the latest; then returns
/// `ETIMEDOUT`.
///
/// # Safety
///
/// `mutex` is a mutex; `until` is valid for a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_mutex_timedlock(
    mutex: *const myth_mutex_t,
    until: *const libc::timespec,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { (*mutex).lock(crate::thread::limit_until(until)) }
}

/// Locks a mutex if it is free; else returns `EBUSY`.
///
/// # Safety
///
/// `mutex` is a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_mutex_trylock(mutex: *const myth_mutex_t) -> c_int {
    // SAFETY: the caller's.
    let mutex = unsafe { &*mutex };
    if mutex.is_again() {
        return if mutex.kind == RECURSIVE {
            mutex.deeper();
            0
        } else {
            libc::EBUSY
        };
    }
    if !mutex.try_raw() {
        return libc::EBUSY;
    }
    mutex.take_over();
    0
}

/// Unlocks a mutex. Returns `EPERM` if the kind is not `MYTH_MUTEX_NORMAL` and the
/// caller does not hold it.
///
/// # Safety
///
/// `mutex` is a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_mutex_unlock(mutex: *const myth_mutex_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { &*mutex }.unlock()
}

/// Fills in attributes of an ordinary mutex.
///
/// # Safety
///
/// `attr` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_mutexattr_init(attr: *mut myth_mutexattr_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { attr.write(myth_mutexattr_t { kind: NORMAL }) };
    0
}

/// Does nothing: attributes own nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myth_mutexattr_destroy(_attr: *mut myth_mutexattr_t) -> c_int {
    0
}

/// Reads the kind.
///
/// # Safety
///
/// `attr` is valid for a read, `kind` for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_mutexattr_gettype(
    attr: *const myth_mutexattr_t,
    kind: *mut c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { kind.write((*attr).kind) };
    0
}

/// Sets the kind. Returns `EINVAL` if there is no such kind.
///
/// # Safety
///
/// `attr` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_mutexattr_settype(attr: *mut myth_mutexattr_t, kind: c_int) -> c_int {
    if !(NORMAL..=RECURSIVE).contains(&kind) {
        return libc::EINVAL;
    }
    // SAFETY: the caller's.
    unsafe { (*attr).kind = kind };
    0
}

impl myth_mutex_t {
    /// A mutex that is free.
    pub(crate) fn new(kind: c_int) -> Self {
        Self {
            magic: MAGIC,
            kind,
            lock: AtomicU32::new(FREE),
            _spare: 0,
            owner: AtomicUsize::new(0),
            depth: AtomicUsize::new(0),
            _state: 0,
        }
    }

    pub(crate) fn lock(&self, limit: Limit) -> c_int {
        if self.is_again() {
            if self.kind == ERRORCHECK {
                return libc::EDEADLK;
            }
            self.deeper();
            return 0;
        }
        if !self.try_raw() {
            // Acquire: pairs with the Release of the unlock.
            while self.lock.swap(AWAITED, Ordering::Acquire) != FREE {
                // SAFETY: the caller's mutex is there until the caller has it.
                if unsafe { word::wait(&self.lock, AWAITED, limit) }.is_err() {
                    return libc::ETIMEDOUT;
                }
            }
        }
        self.take_over();
        0
    }

    pub(crate) fn unlock(&self) -> c_int {
        if self.kind != NORMAL {
            if self.owner.load(Ordering::Relaxed) != caller() {
                return libc::EPERM;
            }
            let depth = self.depth.load(Ordering::Relaxed);
            if depth > 0 {
                self.depth.store(depth - 1, Ordering::Relaxed);
                return 0;
            }
            self.owner.store(0, Ordering::Relaxed);
        }
        let lock = &raw const self.lock;
        // Release: pairs with the Acquire of the next lock. The mutex may be gone after
        // this; its address alone is used.
        if self.lock.swap(FREE, Ordering::Release) == AWAITED {
            word::wake(lock, 1);
        }
        0
    }

    #[inline]
    fn try_raw(&self) -> bool {
        // Acquire: pairs with the Release of the unlock.
        self.lock.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Whether the caller holds the mutex, which is of a kind that notes its holder.
    fn is_again(&self) -> bool {
        self.kind != NORMAL && self.owner.load(Ordering::Relaxed) == caller()
    }

    fn deeper(&self) {
        self.depth.store(self.depth.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn take_over(&self) {
        if self.kind != NORMAL {
            self.owner.store(caller(), Ordering::Relaxed);
        }
    }
}

/// A number of the calling ULT or OS thread, which no other has while it lives.
fn caller() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    match call::running() {
        Some(raw) => raw.addr().get(),
        None => PLACE.with(|place| ptr::from_ref(place).addr()),
    }
}

const MAGIC: i32 = 123_456_789;
const _: () = assert!(size_of::<myth_mutex_t>() == 40);
