//! Nonblocking operations: begun by one call, waited for by another.

use super::access::atomic;
use super::code::{code_of, of_access};
use super::parameter::borrow;
use super::{
    TSUMUGI_ERROR_NOWHERE, TSUMUGI_ERROR_NULL, TSUMUGI_ERROR_REACH, tsumugi_addr, tsumugi_job,
};
use std::ffi::{c_int, c_void};
use tsumugi::Rank;
use tsumugi::global::{After, Change, Copy, GlobalAddr, GlobalRequest, Operation};

/// An operation that was begun; the handle lives until a wait or a let-go ends it.
#[derive(Debug)]
pub struct tsumugi_operation(Operation);

/// Begins to copy `bytes` bytes from `src` to `dst`, each in any rank's memory. The
/// copy starts when `after` has ended, at once if `after` is NULL. The caller
/// sleeps only while there is no room for one more operation. The handle is written
/// to `out`; if `out` is NULL, the operation runs without a handle, and
/// `tsumugi_flush` still waits for it.
///
/// Errors: NULL; `tsumugi_operation_wait` returns the errors of the copy itself.
///
/// # Safety
///
/// `job` is a live job; `after` is NULL or a live operation; `out` is NULL or valid
/// for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_begin_copy(
    job: *const tsumugi_job,
    dst: tsumugi_addr,
    src: tsumugi_addr,
    bytes: usize,
    after: *const tsumugi_operation,
    out: *mut *mut tsumugi_operation,
) -> c_int {
    let (dst, src) = (GlobalAddr::from_bits(dst), GlobalAddr::from_bits(src));
    // SAFETY: the caller's.
    code_of(unsafe { begin(job, Copy::new(dst, src, bytes as u64).into(), after, out) })
}

/// Begins to write the `bytes` bytes at `from` to `to`. `from` is memory of this
/// rank that has a global address, and the program must not change it before the
/// operation has ended. The rest is as for `tsumugi_begin_copy`.
///
/// Errors: REACH (`from` has no global address), NULL.
///
/// # Safety
///
/// As for `tsumugi_begin_copy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_begin_put(
    job: *const tsumugi_job,
    to: tsumugi_addr,
    from: *const c_void,
    bytes: usize,
    after: *const tsumugi_operation,
    out: *mut *mut tsumugi_operation,
) -> c_int {
    // SAFETY: the caller's.
    match unsafe { own_addr(job, from) } {
        // SAFETY: the caller's.
        Ok(own) => unsafe { tsumugi_begin_copy(job, to, own, bytes, after, out) },
        Err(code) => code,
    }
}

/// Begins to read `bytes` bytes at `from` to `into`, which is memory of this rank
/// that has a global address. The rest is as for `tsumugi_begin_copy`.
///
/// Errors: REACH (`into` has no global address), NULL.
///
/// # Safety
///
/// As for `tsumugi_begin_copy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_begin_get(
    job: *const tsumugi_job,
    into: *mut c_void,
    from: tsumugi_addr,
    bytes: usize,
    after: *const tsumugi_operation,
    out: *mut *mut tsumugi_operation,
) -> c_int {
    // SAFETY: the caller's.
    match unsafe { own_addr(job, into) } {
        // SAFETY: the caller's.
        Ok(own) => unsafe { tsumugi_begin_copy(job, own, from, bytes, after, out) },
        Err(code) => code,
    }
}

/// Begins to change the 4 bytes at `at`, as `tsumugi_atomic4` does. The rest is as
/// for `tsumugi_begin_copy`.
///
/// Errors: FLAGS, NULL.
///
/// # Safety
///
/// As for `tsumugi_begin_copy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_begin_atomic4(
    job: *const tsumugi_job,
    what: c_int,
    at: tsumugi_addr,
    operand: u32,
    after: *const tsumugi_operation,
    out: *mut *mut tsumugi_operation,
) -> c_int {
    // SAFETY: the caller's.
    let begin = |word: Change| unsafe { begin(job, word.into(), after, out) };
    code_of(atomic(what, at, operand).and_then(begin))
}

/// Does the same as `tsumugi_begin_atomic4` on 8 bytes.
///
/// Errors: FLAGS, NULL.
///
/// # Safety
///
/// As for `tsumugi_begin_copy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_begin_atomic8(
    job: *const tsumugi_job,
    what: c_int,
    at: tsumugi_addr,
    operand: u64,
    after: *const tsumugi_operation,
    out: *mut *mut tsumugi_operation,
) -> c_int {
    // SAFETY: the caller's.
    let begin = |word: Change| unsafe { begin(job, word.into(), after, out) };
    code_of(atomic(what, at, operand).and_then(begin))
}

/// Whether an operation has ended, so that a wait for it would not sleep; true if
/// `operation` is NULL. Never waits.
///
/// # Safety
///
/// `operation` is NULL or a live operation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_operation_test(operation: *const tsumugi_operation) -> bool {
    // SAFETY: the caller's.
    unsafe { operation.as_ref() }.is_none_or(|operation| operation.0.has_ended())
}

/// Waits until an operation has ended, that is, its bytes are in the destination,
/// and ends the handle. For an atomic operation, the old value is written to `old`,
/// unless `old` is NULL. Blocks.
///
/// Errors: those of `tsumugi_put` and `tsumugi_atomic4`; after an error, a part of
/// the operation may have been done.
///
/// # Safety
///
/// `operation` is a live operation; `old` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_operation_wait(
    operation: *mut tsumugi_operation,
    old: *mut u64,
) -> c_int {
    let wait = || {
        if operation.is_null() {
            return Err(TSUMUGI_ERROR_NULL);
        }
        // SAFETY: the caller's: made by `begin`.
        let operation = unsafe { Box::from_raw(operation) };
        let was = operation.0.wait().map_err(of_access)?;
        if !old.is_null() {
            // SAFETY: the caller's.
            unsafe { old.write(was) };
        }
        Ok(())
    };
    code_of(wait())
}

/// Ends the handle; the operation goes on without it. NULL is allowed. Never waits.
///
/// # Safety
///
/// `operation` is NULL or a live operation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_operation_let_go(operation: *mut tsumugi_operation) {
    if !operation.is_null() {
        // SAFETY: the caller's: made by `begin`.
        drop(unsafe { Box::from_raw(operation) });
    }
}

/// Waits until all operations that this rank has begun so far and that touch memory
/// of `rank` have ended. Blocks.
///
/// Errors: NOWHERE, NULL.
///
/// # Safety
///
/// `job` is a live job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_flush(job: *const tsumugi_job, rank: u32) -> c_int {
    let flush = || {
        // SAFETY: the caller's.
        let job = unsafe { borrow(job) }?;
        if rank >= job.runtime.size() {
            return Err(TSUMUGI_ERROR_NOWHERE);
        }
        job.global.flush(Rank(rank)).wait().map(drop).map_err(of_access)
    };
    code_of(flush())
}

/// Waits until all operations that this rank has begun so far have ended. Blocks.
///
/// Errors: NULL.
///
/// # Safety
///
/// `job` is a live job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_flush_all(job: *const tsumugi_job) -> c_int {
    // SAFETY: the caller's.
    let job = unsafe { borrow(job) };
    code_of(job.and_then(|job| job.global.flush_all().wait().map(drop).map_err(of_access)))
}

/// The global address of memory of this rank.
///
/// # Safety
///
/// `job` is a live job or NULL.
unsafe fn own_addr(job: *const tsumugi_job, at: *const c_void) -> Result<tsumugi_addr, c_int> {
    // SAFETY: the caller's.
    unsafe { borrow(job) }?.addr_of(at).ok_or(TSUMUGI_ERROR_REACH)
}

/// Begins `request` after `after`, and writes the handle to `out` if that is not
/// NULL.
///
/// # Safety
///
/// As for `tsumugi_begin_copy`.
unsafe fn begin(
    job: *const tsumugi_job,
    request: GlobalRequest,
    after: *const tsumugi_operation,
    out: *mut *mut tsumugi_operation,
) -> Result<(), c_int> {
    // SAFETY: the caller's.
    let (job, after) = unsafe { (borrow(job)?, after.as_ref()) };
    let after = after.map_or(After::Nothing, |after| After::One(after.0.handle()));
    let operation = job.global.begin_after(request, after);
    if out.is_null() {
        drop(operation);
    } else {
        // SAFETY: the caller's.
        unsafe { out.write(Box::into_raw(Box::new(tsumugi_operation(operation)))) };
    }
    Ok(())
}
