//! The calls of partitioned communication.

use crate::abi::{self, MPI_Comm, MPI_Datatype, MPI_Info, MPI_Request};
use crate::arguments::list;
use crate::call::{call, call_on};
use crate::fault::{Answer, fail, need};
use crate::job::Job;
use crate::message::start::{pattern_of, target_of};
use crate::object::communicator::CommRef;
use crate::object::partitioned::{Elements, Partitioned};
use crate::object::request::Request;
use crate::object::task::{Task, Work};
use crate::sized::sized;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// The arguments of both sides.
struct Given {
    buffer: *mut c_void,
    partitions: c_int,
    count: i64,
    datatype: MPI_Datatype,
    peer: c_int,
    tag: c_int,
}

/// Makes one side.
fn make(job: &'static Job, comm: &CommRef, given: Given, is_send: bool) -> Answer<Request> {
    let Given { buffer, partitions, count, datatype, peer, tag } = given;
    let datatype = job.datatype(datatype)?;
    datatype.committed()?;
    need!(partitions > 0, abi::ERR_ARG, "{partitions} partitions");
    need!(count >= 0, abi::ERR_COUNT, "{count} elements: the number is negative");
    let Some(all) = count.checked_mul(partitions.into()) else {
        fail!(abi::ERR_COUNT, "{partitions} partitions of {count} elements")
    };
    let rank = match is_send {
        true => target_of(comm, peer, tag)?.map(|(rank, _)| rank),
        false => {
            let of = pattern_of(comm, peer, tag)?;
            let is_one = of.is_none_or(|of| of.source.is_some() && of.tag.is_some());
            need!(is_one, abi::ERR_ARG, "a partitioned receive has one source and one tag");
            of.and_then(|of| of.source)
        }
    };
    let elements = Elements { buffer, count: all, datatype };
    let (how, partitions) = ((rank, tag, is_send), partitions as usize);
    let agreements = job.agreements;
    let side =
        Partitioned::new(elements, partitions, how, comm.clone(), agreements, &job.messages)?;
    let comm = comm.clone();
    Ok(Request::persistent(Box::new(move || {
        side.restart();
        side.advance(&job.messages)?;
        Ok(Task { work: Work::Partitioned(side.clone()), comm: comm.clone() })
    })))
}

sized! {
    /// MPI_Psend_init.
    PMPI_Psend_init, PMPI_Psend_init_c, (
        buffer: *const c_void, partitions: c_int, count: N, datatype: MPI_Datatype,
        peer: c_int, tag: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) {
        call_on(NAME, comm, |job, comm| {
            let _ = info;
            let (buffer, count) = (buffer.cast_mut(), count.into());
            let given = Given { buffer, partitions, count, datatype, peer, tag };
            // SAFETY: the caller's.
            unsafe { request.write(job.add_request(make(job, comm, given, true)?)?) };
            Ok(())
        })
    }

    /// MPI_Precv_init.
    PMPI_Precv_init, PMPI_Precv_init_c, (
        buffer: *mut c_void, partitions: c_int, count: N, datatype: MPI_Datatype,
        peer: c_int, tag: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) {
        call_on(NAME, comm, |job, comm| {
            let _ = info;
            let count = count.into();
            let given = Given { buffer, partitions, count, datatype, peer, tag };
            // SAFETY: the caller's.
            unsafe { request.write(job.add_request(make(job, comm, given, false)?)?) };
            Ok(())
        })
    }
}

/// The partitioned message of a request that was started. `None`: it was not, or has ended.
fn started(job: &Job, request: MPI_Request) -> Answer<Option<Arc<Partitioned>>> {
    let found = job.request(request)?;
    need!(request != MPI_Request::NULL, abi::ERR_REQUEST, "the request is MPI_REQUEST_NULL");
    Ok(found.look(Task::partitioned))
}

fn ready(job: &Job, request: MPI_Request, partitions: impl Iterator<Item = c_int>) -> Answer {
    let Some(side) = started(job, request)? else {
        fail!(abi::ERR_REQUEST, "the request is no partitioned send that was started")
    };
    for partition in partitions {
        side.ready(&job.messages, partition)?;
    }
    Ok(())
}

/// MPI_Pready.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Pready(partition: c_int, request: MPI_Request) -> c_int {
    call("MPI_Pready", |job| ready(job, request, std::iter::once(partition)))
}

/// MPI_Pready_range.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Pready_range(low: c_int, high: c_int, request: MPI_Request) -> c_int {
    call("MPI_Pready_range", |job| ready(job, request, low..=high))
}

/// MPI_Pready_list.
///
/// # Safety
///
/// `partitions` has `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Pready_list(
    length: c_int,
    partitions: *const c_int,
    request: MPI_Request,
) -> c_int {
    call("MPI_Pready_list", |job| {
        // SAFETY: the caller's.
        let partitions = unsafe { list(partitions, length, "partitions") }?;
        ready(job, request, partitions.iter().copied())
    })
}

/// MPI_Parrived. All partitions arrive together.
///
/// # Safety
///
/// `flag` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Parrived(
    request: MPI_Request,
    partition: c_int,
    flag: *mut c_int,
) -> c_int {
    call("MPI_Parrived", |job| {
        let has_arrived = match started(job, request)? {
            None => true,
            Some(side) => {
                need!(!side.is_send, abi::ERR_REQUEST, "the request is a send");
                let is_one = usize::try_from(partition).is_ok_and(|at| at < side.partitions);
                need!(is_one, abi::ERR_ARG, "partition {partition} of {}", side.partitions);
                side.is_done(&job.messages)
            }
        };
        // SAFETY: the caller's.
        unsafe { flag.write(has_arrived.into()) };
        if !has_arrived {
            job.give_way();
        }
        Ok(())
    })
}
