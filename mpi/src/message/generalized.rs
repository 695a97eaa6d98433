//! The calls that make generalized requests, and that complete them.

use crate::abi::MPI_Request;
use crate::call::call;
use crate::object::communicator::CommRef;
use crate::object::generalized::{CancelFn, FreeFn, Generalized, QueryFn};
use crate::object::request::Request;
use crate::object::task::{Task, Work};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// MPI_Grequest_start.
///
/// # Safety
///
/// The functions are those of this kind; `request` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Grequest_start(
    query: Option<QueryFn>,
    free: Option<FreeFn>,
    cancel: Option<CancelFn>,
    state: *mut c_void,
    request: *mut MPI_Request,
) -> c_int {
    call("MPI_Grequest_start", |job| {
        let operation = Generalized::new((query, free, cancel), state);
        let work = Work::Generalized(Arc::new(operation));
        let made = job.add_request(Request::once(Task { work, comm: CommRef::Given(&job.own) }))?;
        // SAFETY: the caller's.
        unsafe { request.write(made) };
        Ok(())
    })
}

/// MPI_Grequest_complete.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Grequest_complete(request: MPI_Request) -> c_int {
    call("MPI_Grequest_complete", |job| job.complete(request))
}
