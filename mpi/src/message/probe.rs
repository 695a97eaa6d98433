//! The calls that look for a message, and those that take it out of its queue to be received
//! later by the thread that has found it.

use crate::abi::{self, MPI_Comm, MPI_Datatype, MPI_Message, MPI_Request, MPI_Status};
use crate::call::{call, call_on};
use crate::fault::{Answer, fail, need};
use crate::job::Job;
use crate::message::start::{NO_PROCESS, pattern_of};
use crate::message::status::tell;
use crate::object::communicator::CommRef;
use crate::object::data::Data;
use crate::object::request::Request;
use crate::object::task::{Finished, Matched, Task, Work};
use crate::sized::sized;
use crate::tables::added;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use tsumugi_core::mem::Rank;
use tsumugi_core::msg::Pattern;
use tsumugi_runtime::service::messages::Received;

fn status_of(comm: &CommRef, found: Received) -> MPI_Status {
    MPI_Status::new(comm.place_of(found.source), found.tag as c_int, found.bytes as u64)
}

/// MPI_Probe.
///
/// # Safety
///
/// `status` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Probe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> c_int {
    call_on("MPI_Probe", comm, |job, comm| {
        let found = match pattern_of(comm, source, tag)? {
            None => NO_PROCESS,
            Some(pattern) => status_of(comm, job.messages.probe(pattern)?),
        };
        // SAFETY: the caller's.
        unsafe { tell(found, status) };
        Ok(())
    })
}

/// MPI_Iprobe.
///
/// # Safety
///
/// `flag` is valid for a write, `status` NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Iprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> c_int {
    call_on("MPI_Iprobe", comm, |job, comm| {
        let found = match pattern_of(comm, source, tag)? {
            None => Some(NO_PROCESS),
            Some(pattern) => job.messages.try_probe(pattern).map(|found| status_of(comm, found)),
        };
        // SAFETY: the caller's.
        unsafe {
            flag.write(c_int::from(found.is_some()));
            match found {
                Some(found) => tell(found, status),
                None => job.give_way(),
            }
        }
        Ok(())
    })
}

/// Takes the message that a pattern has found out of its queue; waits for one if there is
/// none. Its bytes move to memory of the library, because the program's buffer is not known
/// yet.
fn take(job: &Job, comm: &CommRef, pattern: Pattern<Rank>) -> Answer<Matched> {
    let mut bytes = Vec::<u8>::new();
    let room_for = |needed: usize| {
        bytes.reserve_exact(needed);
        Ok::<_, tsumugi::MessageError>(bytes.as_mut_ptr())
    };
    // SAFETY: the vector has as many bytes as were reserved, and lives until the end.
    let received = unsafe { job.messages.receive_whole(pattern, room_for) }?;
    // SAFETY: so many bytes have come.
    unsafe { bytes.set_len(received.bytes) };
    Ok(Matched { bytes, status: status_of(comm, received), comm: comm.clone() })
}

fn add(job: &Job, matched: Matched) -> Answer<MPI_Message> {
    Ok(MPI_Message(added(job.matched.add(Arc::new(matched)), "matched messages")?))
}

/// MPI_Mprobe.
///
/// # Safety
///
/// `message` is valid for a write, `status` NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Mprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> c_int {
    call_on("MPI_Mprobe", comm, |job, comm| {
        let (handle, found) = match pattern_of(comm, source, tag)? {
            None => (MPI_Message::NO_PROC, NO_PROCESS),
            Some(pattern) => {
                let matched = take(job, comm, pattern)?;
                let found = matched.status;
                (add(job, matched)?, found)
            }
        };
        // SAFETY: the caller's.
        unsafe {
            message.write(handle);
            tell(found, status);
        }
        Ok(())
    })
}

/// MPI_Improbe.
///
/// # Safety
///
/// `flag` and `message` are valid for a write, `status` NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Improbe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: *mut c_int,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> c_int {
    call_on("MPI_Improbe", comm, |job, comm| {
        let found = match pattern_of(comm, source, tag)? {
            None => Some((MPI_Message::NO_PROC, NO_PROCESS)),
            Some(pattern) => match job.messages.try_probe(pattern) {
                None => None,
                Some(there) => {
                    // Of this source and tag, the next message is that one, or, if another
                    // thread has taken it, the one after it.
                    let (source, tag) = (Some(there.source), Some(there.tag));
                    let exactly = Pattern { source, tag, ..pattern };
                    let matched = take(job, comm, exactly)?;
                    let status = matched.status;
                    Some((add(job, matched)?, status))
                }
            },
        };
        // SAFETY: the caller's.
        unsafe {
            flag.write(c_int::from(found.is_some()));
            match found {
                Some((handle, found)) => {
                    message.write(handle);
                    tell(found, status);
                }
                None => job.give_way(),
            }
        }
        Ok(())
    })
}

/// Gives the bytes of a matched message to the program.
fn deliver(
    job: &Job,
    message: &mut MPI_Message,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Answer<Finished> {
    if *message == MPI_Message::NO_PROC {
        *message = MPI_Message::NULL;
        let status = NO_PROCESS;
        return Ok(Finished { status, result: Ok(()), comm: None });
    }
    need!(*message != MPI_Message::NULL, abi::ERR_REQUEST, "the message is MPI_MESSAGE_NULL");
    let mut data = Data::incoming(buffer, count, job.datatype(datatype)?)?;
    let Some(matched) = job.matched.remove(message.0) else {
        fail!(abi::ERR_REQUEST, "no message has the handle {:#x}", message.0)
    };
    *message = MPI_Message::NULL;
    let (there, room) = (matched.bytes.len(), data.bytes);
    let len = there.min(room);
    if len > 0 {
        // SAFETY: the contract of the receive; both have as many bytes.
        unsafe { data.at().copy_from_nonoverlapping(matched.bytes.as_ptr(), len) };
    }
    data.arrived(len);
    let mut status = matched.status;
    status.set_bytes(len as u64);
    let truncated = || {
        let text = format!("a message of {there} bytes does not fit in a buffer of {room} bytes");
        crate::fault::Fault::new(abi::ERR_TRUNCATE, text)
    };
    let result = if there > room { Err(truncated()) } else { Ok(()) };
    Ok(Finished { status, result, comm: Some(matched.comm.clone()) })
}

sized! {
    /// MPI_Mrecv.
    PMPI_Mrecv, PMPI_Mrecv_c, (
        buffer: *mut c_void, count: N, datatype: MPI_Datatype, message: *mut MPI_Message,
        status: *mut MPI_Status,
    ) {
        call(NAME, |job| {
            // SAFETY: the caller's.
            let message = unsafe { &mut *message };
            let finished = deliver(job, message, buffer, count.into(), datatype)?;
            // SAFETY: the caller's.
            unsafe { tell(finished.status, status) };
            finished.result
        })
    }

    /// MPI_Imrecv.
    PMPI_Imrecv, PMPI_Imrecv_c, (
        buffer: *mut c_void, count: N, datatype: MPI_Datatype, message: *mut MPI_Message,
        request: *mut MPI_Request,
    ) {
        call(NAME, |job| {
            // SAFETY: the caller's.
            let message = unsafe { &mut *message };
            let finished = deliver(job, message, buffer, count.into(), datatype)?;
            let work = match finished.result {
                Ok(()) => Work::Ended(finished.status),
                Err(fault) => Work::Failed(finished.status, fault),
            };
            let comm = finished.comm.unwrap_or(CommRef::Given(&job.own));
            let made = job.add_request(Request::once(Task { work, comm }))?;
            // SAFETY: the caller's.
            unsafe { request.write(made) };
            Ok(())
        })
    }
}
