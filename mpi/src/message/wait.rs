//! The calls that wait for requests, and that test them.

use crate::abi::{self, MPI_Request, MPI_Status};
use crate::call::failed;
use crate::fault::Fault;
use crate::job::{Job, job};
use crate::message::request_list::{ActiveRequests, Failed, RequestList, end_whole};
use crate::message::status::tell;
use crate::object::task::Finished;
use std::ffi::c_int;

/// Runs a call on requests: the handler of the communicator of a request that has failed
/// gets its error.
pub(super) fn call_for(name: &str, body: impl FnOnce(&'static Job) -> Result<(), Failed>) -> c_int {
    let job = match job() {
        Ok(job) => job,
        Err(fault) => return failed(name, None, &fault),
    };
    match body(job) {
        Ok(()) => abi::SUCCESS,
        Err((finished, fault)) => failed(name, finished.comm.as_deref(), &fault),
    }
}

/// An error of the call, which is of no request.
pub(super) fn plain(fault: Fault) -> Failed {
    (Finished::EMPTY, fault)
}

/// Runs a call on a list of requests.
///
/// # Safety
///
/// That of [`RequestList::of`].
pub(super) unsafe fn call_for_list(
    name: &str,
    count: c_int,
    handles: *mut MPI_Request,
    body: impl FnOnce(RequestList) -> Result<(), Failed>,
) -> c_int {
    // SAFETY: the caller's.
    call_for(name, |job| body(unsafe { RequestList::of(job, handles, count) }.map_err(plain)?))
}

/// The error of a request, with its communicator.
pub(super) fn outcome(mut finished: Finished) -> Result<(), Failed> {
    match std::mem::replace(&mut finished.result, Ok(())) {
        Ok(()) => Ok(()),
        Err(fault) => Err((finished, fault)),
    }
}

/// MPI_Wait.
///
/// # Safety
///
/// `request` is valid for reads and writes, `status` NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) -> c_int {
    call_for("MPI_Wait", |job| {
        // SAFETY: the caller's.
        let handle = unsafe { &mut *request };
        if let Some(whole) = job.end_whole(handle) {
            // SAFETY: the caller's.
            unsafe { tell(whole, status) };
            return Ok(());
        }
        let found = job.request(*handle).map_err(plain)?;
        let finished = job.end(handle, &found);
        // SAFETY: the caller's.
        unsafe { tell(finished.status, status) };
        outcome(finished)
    })
}

/// MPI_Test.
///
/// # Safety
///
/// `request` is valid for reads and writes, `flag` for a write, `status` is NULL or valid for
/// a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Test(
    request: *mut MPI_Request,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> c_int {
    call_for("MPI_Test", |job| {
        // SAFETY: the caller's.
        let handle = unsafe { &mut *request };
        let found = job.request(*handle).map_err(plain)?;
        let is_done = found.is_done(&job.messages);
        // SAFETY: the caller's.
        unsafe { flag.write(c_int::from(is_done)) };
        if !is_done {
            job.give_way();
            return Ok(());
        }
        let finished = job.end(handle, &found);
        // SAFETY: the caller's.
        unsafe { tell(finished.status, status) };
        outcome(finished)
    })
}

/// MPI_Waitall.
///
/// # Safety
///
/// `at` is valid for reads and writes of `count` requests, `statuses` is NULL or valid for
/// a write of as many statuses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Waitall(
    count: c_int,
    at: *mut MPI_Request,
    statuses: *mut MPI_Status,
) -> c_int {
    call_for("MPI_Waitall", |job| {
        // SAFETY: the caller's.
        unsafe {
            let whole = end_whole(job, at, count, statuses).map_err(plain)?;
            if whole > 0 && whole == count as usize {
                return Ok(());
            }
            let rest = count - whole as c_int;
            let requests = RequestList::of(job, at.wrapping_add(whole), rest).map_err(plain)?;
            requests.wait();
            let at_rest = if statuses.is_null() { statuses } else { statuses.add(whole) };
            let ended = requests.end_all(at_rest);
            if let Err((_, fault)) = &ended
                && fault.class == abi::ERR_IN_STATUS
            {
                (0..whole).for_each(|at| (*statuses.add(at)).error = abi::SUCCESS);
            }
            ended
        }
    })
}

/// MPI_Testall.
///
/// # Safety
///
/// As for [`PMPI_Waitall`]; `flag` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Testall(
    count: c_int,
    at: *mut MPI_Request,
    flag: *mut c_int,
    statuses: *mut MPI_Status,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        call_for_list("MPI_Testall", count, at, |requests| {
            let is_done = requests.is_done();
            flag.write(is_done.into());
            if !is_done {
                requests.give_way();
                return Ok(());
            }
            requests.end_all(statuses)
        })
    }
}

/// Ends one request, or says that none is active.
///
/// # Safety
///
/// `index` is valid for a write, `status` NULL or valid for a write.
unsafe fn end_one(
    requests: &RequestList,
    ended: Option<usize>,
    index: *mut c_int,
    status: *mut MPI_Status,
) -> Result<(), Failed> {
    let finished = ended.map_or(Finished::EMPTY, |at| requests.end(at));
    // SAFETY: the caller's.
    unsafe {
        index.write(ended.map_or(abi::UNDEFINED, |at| at as c_int));
        tell(finished.status, status);
    }
    outcome(finished)
}

/// MPI_Waitany.
///
/// # Safety
///
/// `at` is valid for reads and writes of `count` requests, `index` for a write, `status` is
/// NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Waitany(
    count: c_int,
    at: *mut MPI_Request,
    index: *mut c_int,
    status: *mut MPI_Status,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        call_for_list("MPI_Waitany", count, at, |requests| {
            end_one(&requests, requests.wait_any(), index, status)
        })
    }
}

/// MPI_Testany.
///
/// # Safety
///
/// As for [`PMPI_Waitany`]; `flag` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Testany(
    count: c_int,
    at: *mut MPI_Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        call_for_list("MPI_Testany", count, at, |requests| {
            let active = requests.active();
            flag.write((active != ActiveRequests::Pending).into());
            let ended = match active {
                ActiveRequests::Pending => {
                    index.write(abi::UNDEFINED);
                    requests.give_way();
                    return Ok(());
                }
                ActiveRequests::None => None,
                ActiveRequests::Ended(at) => Some(at),
            };
            end_one(&requests, ended, index, status)
        })
    }
}

/// MPI_Waitsome.
///
/// # Safety
///
/// `at` is valid for reads and writes of `incount` requests, `outcount` for a write,
/// `indices` and `statuses`, unless NULL, for a write of as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Waitsome(
    incount: c_int,
    at: *mut MPI_Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        call_for_list("MPI_Waitsome", incount, at, |requests| {
            if requests.wait_any().is_none() {
                outcount.write(abi::UNDEFINED);
                return Ok(());
            }
            requests.end_some((outcount, indices, statuses))
        })
    }
}

/// MPI_Testsome.
///
/// # Safety
///
/// As for [`PMPI_Waitsome`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Testsome(
    incount: c_int,
    at: *mut MPI_Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        call_for_list("MPI_Testsome", incount, at, |requests| {
            match requests.active() {
                ActiveRequests::None => outcount.write(abi::UNDEFINED),
                ActiveRequests::Pending => {
                    outcount.write(0);
                    requests.give_way();
                }
                ActiveRequests::Ended(_) => {
                    return requests.end_some((outcount, indices, statuses));
                }
            }
            Ok(())
        })
    }
}
