//! ULTs: waiting for them to end, their numbers, and turns among them.

use super::code::{code_of, of_interrupted};
use super::parameter::{Word, limit, place};
use super::{TSUMUGI_ERROR_ENDED, TSUMUGI_ERROR_NO_ULT, TSUMUGI_ERROR_NULL};
use ::tsumugi_ult::{self as ults, JoinHandle, call};
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// The right to join a ULT, once.
#[derive(Debug)]
pub struct tsumugi_ult {
    _opaque: [u8; 0],
}

/// The number of a ULT: unique among the live ULTs of its scheduler.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tsumugi_id {
    /// The number of the ULT's descriptor.
    pub slot: u32,
    /// How many ULTs have used the descriptor before.
    pub generation: u32,
}

/// Waits until the ULT has ended, and ends the handle. Writes the return value of
/// its body to `value`, unless `value` is NULL. The caller may be a ULT, a foreign
/// task or an OS thread. Blocks.
///
/// Errors: ENDED (the handle has ended too), NULL.
///
/// # Safety
///
/// `ult` is a live handle; `value` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_join(ult: *mut tsumugi_ult, value: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's.
    let Ok(handle) = (unsafe { handle(ult) }) else { return TSUMUGI_ERROR_NULL };
    let Ok(answer) = call::join(ManuallyDrop::into_inner(handle)) else {
        return TSUMUGI_ERROR_ENDED;
    };
    if !value.is_null() {
        // SAFETY: the caller's.
        unsafe { value.write(answer.0) };
    }
    super::TSUMUGI_OK
}

/// Joins as `tsumugi_join` does, within a time limit; `TSUMUGI_FOREVER` is no
/// limit. If `is_cancellable` is true, a cancellation of the caller also ends the
/// wait. When the wait ends early, the handle stays live.
///
/// Errors: TIMED_OUT and CANCELLED, ENDED (the handle has ended too), NULL.
///
/// # Safety
///
/// As for `tsumugi_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_join_within(
    ult: *mut tsumugi_ult,
    limit_ns: u64,
    is_cancellable: bool,
    value: *mut *mut c_void,
) -> c_int {
    let join = || {
        // SAFETY: the caller's.
        let handle = ManuallyDrop::into_inner(unsafe { handle(ult) }?);
        let outcome = match (limit_ns, is_cancellable) {
            (u64::MAX, false) => handle.join(),
            _ => handle.join_within(limit(limit_ns, is_cancellable)).map_err(|(handle, why)| {
                // The handle stays the caller's.
                let _ = handle.into_raw();
                of_interrupted(why)
            })?,
        };
        // The body cannot unwind, so an error means that the ULT was cut off.
        let answer = outcome.map_err(|_| TSUMUGI_ERROR_ENDED)?;
        if !value.is_null() {
            // SAFETY: the caller's.
            unsafe { value.write(answer.0) };
        }
        Ok(())
    };
    code_of(join())
}

/// Detaches the ULT and ends the handle. Wait-free.
///
/// Errors: NULL.
///
/// # Safety
///
/// `ult` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_detach(ult: *mut tsumugi_ult) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { handle(ult) }.map(|handle| drop(ManuallyDrop::into_inner(handle))))
}

/// Requests that the ULT give up. The ULT goes on until it checks for the request,
/// or until a wait that a cancellation can end.
///
/// Errors: NULL.
///
/// # Safety
///
/// `ult` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_cancel(ult: *mut tsumugi_ult) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { handle(ult) }.map(|handle| handle.cancel()))
}

/// Whether the ULT has ended, so that a join would not wait. Wait-free.
///
/// # Safety
///
/// `ult` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_is_finished(ult: *const tsumugi_ult) -> bool {
    // SAFETY: the caller's.
    unsafe { handle(ult.cast_mut()) }.is_ok_and(|handle| handle.is_finished())
}

/// The number of a ULT.
///
/// Errors: NULL.
///
/// # Safety
///
/// `ult` is a live handle; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_id_of(ult: *const tsumugi_ult, out: *mut tsumugi_id) -> c_int {
    // SAFETY: the caller's.
    let id = unsafe { handle(ult.cast_mut()) }.map(|handle| handle.id());
    // SAFETY: the caller's.
    code_of(id.and_then(|id| unsafe { write_id(id, out) }))
}

/// The number of the calling ULT.
///
/// Errors: NO_ULT, NULL.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_self(out: *mut tsumugi_id) -> c_int {
    let id = ults::id().ok_or(TSUMUGI_ERROR_NO_ULT);
    // SAFETY: the caller's.
    code_of(id.and_then(|id| unsafe { write_id(id, out) }))
}

/// Whether the calling ULT was requested to give up, by `tsumugi_cancel`.
/// Wait-free.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_is_cancelled() -> bool {
    ults::is_cancelled()
}

/// Lets other ULTs run; in a foreign task or on an OS thread, other tasks or
/// threads. Suspends a ULT.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_yield() {
    ults::yield_now();
}

/// Lets other ULTs run, and `ult` first if it is ready and in reach of this worker.
/// Suspends a ULT.
///
/// Errors: NULL.
///
/// # Safety
///
/// `ult` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_yield_to(ult: *const tsumugi_ult) -> c_int {
    // SAFETY: the caller's.
    let handle = unsafe { handle(ult.cast_mut()) };
    code_of(handle.map(|handle| {
        ults::yield_to(&handle);
    }))
}

/// Runs `call(arg)` on the worker's own stack, which is the stack of an OS thread:
/// for a function that forks, or that needs more stack than a ULT has. The function
/// must not block by calls of this library.
///
/// Errors: NULL.
///
/// # Safety
///
/// `call(arg)` is sound on this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_on_os_stack(
    call: Option<unsafe extern "C" fn(*mut c_void)>,
    arg: *mut c_void,
) -> c_int {
    let Some(call) = call else { return TSUMUGI_ERROR_NULL };
    struct Arg(*mut c_void);
    // SAFETY: the caller of `tsumugi_on_os_stack` promises that the call is sound on
    // this thread, and waits for it here.
    unsafe impl Send for Arg {}
    let arg = Arg(arg);
    ults::on_os_stack(move || {
        // The whole of `arg` moves in, not its field.
        let arg = arg;
        // SAFETY: the caller's.
        unsafe { call(arg.0) }
    });
    super::TSUMUGI_OK
}

/// The handle behind a pointer; the caller still owns it.
///
/// # Safety
///
/// `ult` is NULL or a live handle.
unsafe fn handle(ult: *mut tsumugi_ult) -> Result<ManuallyDrop<JoinHandle<Word>>, c_int> {
    let raw = NonNull::new(ult.cast::<()>()).ok_or(TSUMUGI_ERROR_NULL)?;
    // SAFETY: the caller's contract; `tsumugi_spawn` made the handle, and its ULTs
    // return a `Word`.
    Ok(ManuallyDrop::new(unsafe { JoinHandle::from_raw(raw) }))
}

/// Writes a ULT's number to `out`.
///
/// # Safety
///
/// `out` is null or valid for a write.
unsafe fn write_id(id: ults::UltId, out: *mut tsumugi_id) -> Result<(), c_int> {
    // SAFETY: the caller's.
    let out = unsafe { place(out) }?;
    // SAFETY: the caller's.
    unsafe { out.write(tsumugi_id { slot: id.slot, generation: id.generation }) };
    Ok(())
}
