//! Barriers.

use crate::abi::{self, MPI_Comm, MPI_Request};
use crate::call::call_on;
use crate::collective::between;
use crate::collective::prepared::{Prepared, begin, prepare_for};
use crate::fault::Answer;
use crate::job::Job;
use crate::object::communicator::CommRef;
use crate::object::shape::Shape;
use crate::object::verification::verify;
use std::ffi::c_int;

/// A barrier has no count, so its functions exist once.
fn barrier<'a>(_: &Job, comm: &'a CommRef) -> Answer<Prepared<'a>> {
    match &comm.remote {
        Some(remote) => Ok(between::barrier(remote)),
        None => Ok(Prepared::of(comm.group.raw_barrier()?)),
    }
}

/// MPI_Barrier.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Barrier(comm: MPI_Comm) -> c_int {
    call_on("MPI_Barrier", comm, |job, comm| {
        if comm.remote.is_some() {
            return barrier(job, comm)?.run("MPI_Barrier", job, comm);
        }
        if job.checks {
            verify("MPI_Barrier", comm, &Shape::default())?;
        }
        Ok(comm.group.barrier()?)
    })
}

/// MPI_Ibarrier.
///
/// # Safety
///
/// `request` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Ibarrier(comm: MPI_Comm, request: *mut MPI_Request) -> c_int {
    // SAFETY: the caller's.
    unsafe { begin("MPI_Ibarrier", comm, request, barrier) }
}

/// MPI_Barrier_init.
///
/// # Safety
///
/// `request` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Barrier_init(
    comm: MPI_Comm,
    _info: abi::MPI_Info,
    request: *mut MPI_Request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { prepare_for("MPI_Barrier_init", comm, request, barrier) }
}
