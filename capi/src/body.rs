//! The functions of C programs that ULTs run.

use super::parameter::Word;
use std::ffi::c_void;
use tsumugi_ult::call;

/// Runs the function of a ULT. If `pthread_exit` or an exception leaves it, the process is
/// aborted with a sentence.
///
/// # Safety
///
/// `body(arg)` may run on this thread.
pub(super) unsafe fn run_body(body: CBody, arg: Word) -> Word {
    let body = unwinding(body);
    // SAFETY: the caller's.
    call::run(move || unsafe { body(arg.0) })
}

/// The same function, whose exceptions the library sees.
pub(super) fn unwinding(body: CBody) -> call::Body {
    // SAFETY: the two types differ in what an exception does that leaves the body: it
    // aborts the process in both cases.
    unsafe { std::mem::transmute::<CBody, call::Body>(body) }
}

/// The function that a ULT runs.
pub(super) type CBody = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
