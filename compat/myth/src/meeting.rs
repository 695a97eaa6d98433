//! Barriers and join counters.

use std::ffi::{c_int, c_uint};
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_ult::Limit;
use tsumugi_ult::sync::word;

/// A barrier, in 32 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct myth_barrier_t {
    members: u64,
    round: AtomicU32,
    arrived: AtomicU32,
    _spare: [u64; 2],
}

/// A join counter, in 64 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct myth_join_counter_t {
    count: AtomicU32,
    /// 1 while the count is not 0.
    open: AtomicU32,
    _spare: [u32; 14],
}

/// Attributes of a barrier or a join counter: there are none.
#[repr(C)]
#[derive(Debug)]
pub struct myth_barrierattr_t {
    _unused: usize,
}

/// What one of the threads that leave a barrier gets.
pub const MYTH_BARRIER_SERIAL_THREAD: c_int = 1;

/// Makes a barrier for `count` threads.
///
/// # Safety
///
/// `barrier` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_barrier_init(
    barrier: *mut myth_barrier_t,
    _attr: *const myth_barrierattr_t,
    count: c_uint,
) -> c_int {
    if count == 0 {
        return libc::EINVAL;
    }
    let made = myth_barrier_t {
        members: u64::from(count),
        round: AtomicU32::new(0),
        arrived: AtomicU32::new(0),
        _spare: [0; 2],
    };
    // SAFETY: the caller's.
    unsafe { barrier.write(made) };
    0
}

/// Does nothing: a barrier owns nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myth_barrier_destroy(_barrier: *mut myth_barrier_t) -> c_int {
    0
}

/// Waits until all threads of the barrier have arrived. One of them gets
/// `MYTH_BARRIER_SERIAL_THREAD`, the others 0.
///
/// # Safety
///
/// `barrier` is a barrier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_barrier_wait(barrier: *const myth_barrier_t) -> c_int {
    // SAFETY: the caller's.
    let barrier = unsafe { &*barrier };
    let round = barrier.round.load(Ordering::Relaxed);
    // AcqRel: the last member sees what all have written, and all see it by the round.
    if u64::from(barrier.arrived.fetch_add(1, Ordering::AcqRel)) + 1 == barrier.members {
        barrier.arrived.store(0, Ordering::Relaxed);
        let word = &raw const barrier.round;
        // Release: pairs with the Acquire below.
        barrier.round.store(round.wrapping_add(1), Ordering::Release);
        word::wake(word, usize::MAX);
        return MYTH_BARRIER_SERIAL_THREAD;
    }
    // Acquire: pairs with the Release above.
    while barrier.round.load(Ordering::Acquire) == round {
        // SAFETY: the barrier is there until the caller has left it.
        let _ = unsafe { word::wait(&barrier.round, round, Limit::NONE) };
    }
    0
}

/// Does nothing: there are no attributes.
#[unsafe(no_mangle)]
pub extern "C" fn myth_barrierattr_init(_attr: *mut myth_barrierattr_t) -> c_int {
    0
}

/// Does nothing: there are no attributes.
#[unsafe(no_mangle)]
pub extern "C" fn myth_barrierattr_destroy(_attr: *mut myth_barrierattr_t) -> c_int {
    0
}

/// Makes a join counter that waits for `count` decrements.
///
/// # Safety
///
/// `counter` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_join_counter_init(
    counter: *mut myth_join_counter_t,
    _attr: *const myth_barrierattr_t,
    count: c_int,
) -> c_int {
    let Ok(count) = u32::try_from(count) else { return libc::EINVAL };
    // SAFETY: the caller's.
    unsafe {
        counter.write(myth_join_counter_t {
            count: count.into(),
            open: u32::from(count > 0).into(),
            _spare: [0; 14],
        });
    }
    0
}

/// Waits until the counter is 0.
///
/// # Safety
///
/// `counter` is a join counter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_join_counter_wait(counter: *const myth_join_counter_t) -> c_int {
    // SAFETY: the caller's.
    let open = unsafe { &(*counter).open };
    // Acquire: pairs with the Release of the last decrement.
    while open.load(Ordering::Acquire) != 0 {
        // SAFETY: the counter is there until the caller has waited.
        let _ = unsafe { word::wait(open, 1, Limit::NONE) };
    }
    0
}

/// Decrements a counter; at 0 all its waiters continue. One decrement too many ends the
/// process.
///
/// # Safety
///
/// `counter` is a join counter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_join_counter_dec(counter: *const myth_join_counter_t) -> c_int {
    // SAFETY: the caller's.
    let counter = unsafe { &*counter };
    let open = &raw const counter.open;
    // AcqRel: the last decrement sees what the others have written.
    match counter.count.fetch_sub(1, Ordering::AcqRel) {
        0 => crate::process::fatal("myth_join_counter_dec: more decrements than the count"),
        1 => {
            // Release: pairs with the Acquire of the wait.
            counter.open.store(0, Ordering::Release);
            word::wake(open, usize::MAX);
        }
        _ => {}
    }
    0
}

/// Does nothing: there are no attributes.
#[unsafe(no_mangle)]
pub extern "C" fn myth_join_counterattr_init(_attr: *mut myth_barrierattr_t) -> c_int {
    0
}

/// Does nothing: there are no attributes.
#[unsafe(no_mangle)]
pub extern "C" fn myth_join_counterattr_destroy(_attr: *mut myth_barrierattr_t) -> c_int {
    0
}

const _: () = assert!(size_of::<myth_barrier_t>() == 32 && size_of::<myth_join_counter_t>() == 64);
