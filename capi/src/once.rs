//! An initialization that one thread does, once.

use super::code::code_of;
use super::parameter::borrow;
use super::{TSUMUGI_ERROR_NULL, TSUMUGI_OK};
use std::ffi::{c_int, c_void};
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_ult::Limit;
use tsumugi_ult::sync::word;

/// Whether an initialization was done. All bytes zero: it was not.
#[repr(C)]
#[derive(Debug)]
pub struct tsumugi_once {
    /// The library's own.
    pub state: u32,
}

/// Calls `init(arg)` if no thread has by this `once`, and returns when such a call is
/// over. Blocks.
///
/// Errors: NULL.
///
/// # Safety
///
/// `once` is zero at first, and used by this function only; `init(arg)` may be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_once_call(
    once: *mut tsumugi_once,
    init: Option<unsafe extern "C" fn(*mut c_void)>,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the caller's: an atomic has the layout of its value.
    let Ok(state) = (unsafe { borrow(once.cast::<AtomicU32>()) }) else {
        return TSUMUGI_ERROR_NULL;
    };
    // Acquire: pairs with the Release of the thread that has called.
    if state.load(Ordering::Acquire) == DONE {
        return TSUMUGI_OK;
    }
    let call = || {
        let init = init.ok_or(TSUMUGI_ERROR_NULL)?;
        // Acquire: as above.
        if state.compare_exchange(NEW, CALLS, Ordering::Acquire, Ordering::Acquire).is_ok() {
            // SAFETY: the caller's.
            unsafe { init(arg) };
            // Release: pairs with the Acquire of the others.
            state.store(DONE, Ordering::Release);
            word::wake(state, usize::MAX);
        }
        while state.load(Ordering::Acquire) != DONE {
            // SAFETY: the caller's: `once` stays.
            let _ = unsafe { word::wait(state, CALLS, Limit::NONE) };
        }
        Ok(())
    };
    code_of(call())
}

const NEW: u32 = 0;
const CALLS: u32 = 1;
const DONE: u32 = 2;
