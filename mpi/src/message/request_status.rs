//! The calls that look at requests, and leave them as they are.

use crate::abi::{self, MPI_Request, MPI_Status};
use crate::message::request_list::{ActiveRequests, RequestResults, seen};
use crate::message::status::tell;
use crate::message::wait::{call_for, call_for_list, outcome, plain};
use std::ffi::c_int;

/// MPI_Request_get_status.
///
/// # Safety
///
/// `flag` is valid for a write, `status` NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Request_get_status(
    request: MPI_Request,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> c_int {
    call_for("MPI_Request_get_status", |job| {
        let found = job.request(request).map_err(plain)?;
        let is_done = found.is_done(&job.messages);
        // SAFETY: the caller's.
        unsafe { flag.write(c_int::from(is_done)) };
        if !is_done {
            job.give_way();
            return Ok(());
        }
        let seen = seen(job, request, found);
        // SAFETY: the caller's.
        unsafe { tell(seen.status, status) };
        outcome(seen)
    })
}

/// MPI_Request_get_status_all.
///
/// # Safety
///
/// `at` is valid for reads of `count` requests, `flag` for a write, `statuses` is NULL or valid
/// for a write of as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Request_get_status_all(
    count: c_int,
    at: *const MPI_Request,
    flag: *mut c_int,
    statuses: *mut MPI_Status,
) -> c_int {
    // SAFETY: the caller's; no request is ended.
    unsafe {
        call_for_list("MPI_Request_get_status_all", count, at.cast_mut(), |requests| {
            let is_done = requests.is_done();
            flag.write(is_done.into());
            if !is_done {
                requests.give_way();
                return Ok(());
            }
            let mut results = RequestResults::default();
            for at in 0..count as usize {
                results.add(requests.seen(at), statuses);
            }
            results.end(statuses)
        })
    }
}

/// MPI_Request_get_status_any.
///
/// # Safety
///
/// As for [`PMPI_Request_get_status_all`]; `index` is valid for a write, `status` NULL or valid
/// for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Request_get_status_any(
    count: c_int,
    at: *const MPI_Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> c_int {
    // SAFETY: the caller's; no request is ended.
    unsafe {
        call_for_list("MPI_Request_get_status_any", count, at.cast_mut(), |requests| {
            let active = requests.active();
            flag.write((active != ActiveRequests::Pending).into());
            match active {
                ActiveRequests::None if status.is_null() => {}
                ActiveRequests::None => status.write(MPI_Status::EMPTY),
                ActiveRequests::Pending => requests.give_way(),
                ActiveRequests::Ended(at) => {
                    let seen = requests.seen(at);
                    index.write(at as c_int);
                    tell(seen.status, status);
                    return outcome(seen);
                }
            }
            index.write(abi::UNDEFINED);
            Ok(())
        })
    }
}

/// MPI_Request_get_status_some.
///
/// # Safety
///
/// As for [`PMPI_Request_get_status_all`]; `outcount` is valid for a write, `indices` for a
/// write of as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Request_get_status_some(
    count: c_int,
    at: *const MPI_Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
) -> c_int {
    // SAFETY: the caller's; no request is ended.
    unsafe {
        call_for_list("MPI_Request_get_status_some", count, at.cast_mut(), |requests| {
            if requests.active() == ActiveRequests::None {
                outcount.write(abi::UNDEFINED);
                return Ok(());
            }
            let mut results = RequestResults::default();
            for at in requests.ended() {
                indices.add(results.count).write(at as c_int);
                results.add(requests.seen(at), statuses);
            }
            outcount.write(results.count as c_int);
            if results.count == 0 {
                requests.give_way();
            }
            results.end(statuses)
        })
    }
}
