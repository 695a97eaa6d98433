//! Communicators with a topology: how they are made, and which topology one has.

use crate::abi::{self, MPI_Comm};
use crate::agreement::give;
use crate::call::call_on;
use crate::comm::split;
use crate::fault::{Answer, need};
use crate::job::Job;
use crate::object::communicator::CommRef;
use crate::object::shape::Shape;
use crate::object::topology::Topology;
use crate::object::verification::verify;
use std::ffi::c_int;

/// Writes numbers, of which there is room for `room`.
///
/// # Safety
///
/// `at` is valid for a write of as many.
pub(super) unsafe fn write(numbers: &[c_int], at: *mut c_int, room: c_int) -> Answer {
    let has_room = usize::try_from(room).is_ok_and(|room| room >= numbers.len());
    need!(has_room, abi::ERR_ARG, "there is room for {room} of {} numbers", numbers.len());
    if !numbers.is_empty() {
        // SAFETY: the caller's.
        unsafe { at.copy_from_nonoverlapping(numbers.as_ptr(), numbers.len()) };
    }
    Ok(())
}

/// In the checking mode compares the call, with its arguments, with those of the other members.
pub(super) fn checked(
    name: &str,
    job: &Job,
    comm: &CommRef,
    shape: impl FnOnce() -> Shape,
) -> Answer {
    if job.checks && comm.remote.is_none() {
        verify(name, comm, &shape())?;
    }
    Ok(())
}

/// A communicator of the first ranks of another one, with a topology. Collective.
///
/// # Safety
///
/// `out` is valid for a write.
pub(super) unsafe fn arrange(
    job: &Job,
    comm: &CommRef,
    size: i64,
    topology: Topology,
    out: *mut MPI_Comm,
) -> Answer {
    need!(
        size <= i64::from(comm.size()),
        abi::ERR_DIMS,
        "{size} places for the {} ranks of {}",
        comm.size(),
        &**comm
    );
    let is_in = i64::from(comm.rank()) < size;
    let made = split(comm, is_in.then_some(0), comm.rank().into())?;
    let made = made.map(|made| made.arranged(Some(topology)));
    // SAFETY: the caller's.
    unsafe { give(job, comm, made, out) }
}

/// MPI_Topo_test.
///
/// # Safety
///
/// `status` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Topo_test(comm: MPI_Comm, status: *mut c_int) -> c_int {
    call_on("MPI_Topo_test", comm, |_, comm| {
        let kind = match comm.topology {
            None => abi::UNDEFINED,
            Some(Topology::Cart(_)) => abi::CART,
            Some(Topology::Graph { .. }) => abi::GRAPH,
            Some(Topology::Adjacent(_)) => abi::DIST_GRAPH,
        };
        // SAFETY: the caller's.
        unsafe { status.write(kind) };
        Ok(())
    })
}
