//! The calls that start requests, cancel them, and let them go.

use crate::abi::{self, MPI_Request};
use crate::arguments::list;
use crate::call::call;
use crate::fault::{Answer, fail};
use crate::job::Job;
use crate::object::held_request::FoundRequest;
use std::ffi::c_int;

/// MPI_Start.
///
/// # Safety
///
/// `request` is valid for a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Start(request: *mut MPI_Request) -> c_int {
    // SAFETY: the caller's.
    call("MPI_Start", |job| started(job, unsafe { request.read() }))
}

/// MPI_Startall.
///
/// # Safety
///
/// `requests` is valid for reads of `count` requests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Startall(count: c_int, requests: *mut MPI_Request) -> c_int {
    call("MPI_Startall", |job| {
        // SAFETY: the caller's.
        for &request in unsafe { list(requests, count, "requests") }? {
            started(job, request)?;
        }
        Ok(())
    })
}

fn started(job: &Job, handle: MPI_Request) -> Answer {
    match job.request(handle)? {
        FoundRequest::Shared(request) => request.start(),
        FoundRequest::Nothing => fail!(abi::ERR_REQUEST, "the request is MPI_REQUEST_NULL"),
        _ => fail!(abi::ERR_REQUEST, "the request is not a persistent one"),
    }
}

/// MPI_Request_free. The operation goes on to its end.
///
/// # Safety
///
/// `request` is valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Request_free(request: *mut MPI_Request) -> c_int {
    call("MPI_Request_free", |job| {
        // SAFETY: the caller's.
        let handle = unsafe { &mut *request };
        if *handle == MPI_Request::NULL {
            fail!(abi::ERR_REQUEST, "the request is MPI_REQUEST_NULL");
        }
        let found = job.request(*handle)?;
        let freed = std::mem::replace(handle, MPI_Request::NULL);
        job.free_request(freed, &found)
    })
}

/// MPI_Cancel. A receive that has no message yet is cancelled; a generalized request is told.
///
/// # Safety
///
/// `request` is valid for a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Cancel(request: *mut MPI_Request) -> c_int {
    call("MPI_Cancel", |job| {
        // SAFETY: the caller's.
        let handle = unsafe { request.read() };
        if handle == MPI_Request::NULL {
            fail!(abi::ERR_REQUEST, "the request is MPI_REQUEST_NULL");
        }
        job.request(handle)?.cancel(&job.messages)?;
        Ok(())
    })
}
