//! Sleeping until somebody says so, or for a while.

use super::code::{code_of, of_interrupted};
use super::parameter::{borrow, limit, place};
use std::ffi::c_int;
use tsumugi_ult::{Unparker, park_within, sleep_within};

/// A limit that never comes.
pub const TSUMUGI_FOREVER: u64 = u64::MAX;

/// The right to unpark one ULT, foreign task or OS thread. It may outlive whom
/// it stands for: then nothing happens, or somebody else parks in vain once.
#[derive(Debug)]
pub struct tsumugi_unparker(Unparker);

/// Sleeps until somebody unparks the caller. An unpark that came before is
/// kept, several are one. May return without a reason. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_park() {
    tsumugi_ult::park();
}

/// As `tsumugi_park`, within a limit. Blocks.
///
/// Errors: TIMED_OUT, CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_park_within(limit_ns: u64, is_cancellable: bool) -> c_int {
    code_of(park_within(limit(limit_ns, is_cancellable)).map_err(of_interrupted))
}

/// Makes the right to unpark the caller.
///
/// Errors: NULL.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_unparker_create(out: *mut *mut tsumugi_unparker) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { place(out) }.map(|out| {
        let made = Box::new(tsumugi_unparker(tsumugi_ult::unparker()));
        // SAFETY: the caller's.
        unsafe { out.write(Box::into_raw(made)) };
    }))
}

/// Ends the present park, or the next, of whom it stands for. From any thread.
/// Lock-free; as good as a foreign scheduler's own `unpark` where that is who
/// wakes.
///
/// Errors: NULL.
///
/// # Safety
///
/// A live unparker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_unpark(unparker: *const tsumugi_unparker) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { borrow(unparker) }.map(|unparker| unparker.0.unpark()))
}

/// Frees an unparker. NULL is no harm.
///
/// # Safety
///
/// NULL or a live unparker, which nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_unparker_destroy(unparker: *mut tsumugi_unparker) {
    if !unparker.is_null() {
        // SAFETY: the caller's: made by `tsumugi_unparker_create`.
        drop(unsafe { Box::from_raw(unparker) });
    }
}

/// Sleeps for so long, and leaves the worker to others. Answers what ended it.
/// Blocks.
///
/// Errors: TIMED_OUT, that is, it slept; CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_sleep_within(limit_ns: u64, is_cancellable: bool) -> c_int {
    of_interrupted(sleep_within(limit(limit_ns, is_cancellable)))
}

/// Sleeps for so long, and leaves the worker to others. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_sleep(ns: u64) {
    let _ = sleep_within(limit(ns, false));
}
