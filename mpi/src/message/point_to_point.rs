//! The calls that send and receive.

use crate::abi::{self, MPI_Comm, MPI_Datatype, MPI_Request, MPI_Status};
use crate::call::call_on;
use crate::fault::Answer;
use crate::job::Job;
use crate::message::start::{
    NO_PROCESS, Start, Way, begin_receive, begin_send, incoming, outgoing, pattern_of,
    receive_at_once, send_at_once, target_of,
};
use crate::message::status::tell;
use crate::object::communicator::CommRef;
use crate::object::data::Data;
use crate::object::held_request::SENT;
use crate::object::receipt::received;
use crate::object::request::Request;
use crate::object::task::{Task, Work};
use crate::sized::sized;
use std::ffi::{c_int, c_void};

/// Sends, and waits until the buffer may be used again.
///
/// # Safety
///
/// The elements are valid for reads.
#[inline]
unsafe fn send(
    job: &Job,
    comm: &CommRef,
    way: Way,
    buffer: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    (peer, tag): (c_int, c_int),
) -> Answer {
    if matches!(way, Way::Standard | Way::Ready) {
        // SAFETY: the caller's.
        let mut data = unsafe { outgoing(job, buffer, count, datatype) }?;
        let Some((to, label)) = target_of(comm, peer, tag)? else { return Ok(()) };
        // SAFETY: the caller's.
        return Ok(job.begin(|| unsafe { job.messages.send(to, label, data.at(), data.bytes) })?);
    }
    // SAFETY: the caller's.
    let work = unsafe { begin_send(job, comm, way, buffer, count, datatype, (peer, tag)) }?;
    Task { work, comm: comm.clone() }.finish(&job.messages).result
}

/// Receives.
///
/// # Safety
///
/// The elements are valid for writes.
#[inline]
unsafe fn receive(
    job: &Job,
    comm: &CommRef,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    (peer, tag): (c_int, c_int),
) -> (MPI_Status, Answer) {
    let receive = || {
        let mut data = incoming(job, buffer, count, datatype)?;
        let Some(pattern) = pattern_of(comm, peer, tag)? else {
            return Ok((NO_PROCESS, Ok(())));
        };
        // SAFETY: the caller's.
        match job.begin(|| unsafe { job.messages.receive(pattern, data.at(), data.bytes) }) {
            Ok(received) => {
                data.arrived(received.bytes);
                let source = comm.place_of(received.source);
                let (tag, bytes) = (received.tag as c_int, received.bytes as u64);
                Ok((MPI_Status::new(source, tag, bytes), Ok(())))
            }
            Err(error) => {
                let ended = tsumugi_runtime::service::messages::Under::Ended(Err(error));
                Ok(received(&job.messages, comm, ended, data))
            }
        }
    };
    receive().unwrap_or_else(|fault| (MPI_Status::EMPTY, Err(fault)))
}

/// Begins a send, and returns its request.
///
/// # Safety
///
/// The elements are valid for reads until it has ended.
#[inline(always)]
unsafe fn sending(
    job: &Job,
    comm: &CommRef,
    way: Way,
    buffer: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    at: (c_int, c_int),
) -> Answer<MPI_Request> {
    // SAFETY: the caller's.
    unsafe {
        if matches!(way, Way::Standard | Way::Ready)
            && send_at_once(job, comm, buffer, count, datatype, at)
        {
            return Ok(SENT);
        }
        job.add_work(begin_send(job, comm, way, buffer, count, datatype, at)?, comm)
    }
}

/// Begins a receive, and returns its request.
///
/// # Safety
///
/// The elements are valid for writes until it has ended.
#[inline(always)]
unsafe fn receiving(
    job: &Job,
    comm: &CommRef,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    at: (c_int, c_int),
) -> Answer<MPI_Request> {
    // SAFETY: the caller's.
    unsafe {
        if let Some(request) = receive_at_once(job, comm, buffer, count, datatype, at) {
            return request;
        }
        job.add_work(begin_receive(job, comm, buffer, count, datatype, at)?, comm)
    }
}

/// Makes a persistent request, and writes it.
///
/// # Safety
///
/// `request` is valid for a write.
unsafe fn prepare(
    name: &str,
    comm: MPI_Comm,
    request: *mut MPI_Request,
    start: impl FnOnce(CommRef) -> Start,
) -> c_int {
    call_on(name, comm, |job, comm| {
        let start = start(comm.clone());
        start.check(job)?;
        // SAFETY: the caller's.
        unsafe {
            request.write(job.add_request(Request::persistent(Box::new(move || start.begin(job))))?)
        };
        Ok(())
    })
}

/// The sends of a mode: blocking, begun, and persistent.
macro_rules! sends {
    ($($way:ident: $send:ident, $send_c:ident, $sent:literal; $begin:ident, $begin_c:ident,
        $begun:literal; $init:ident, $init_c:ident, $prepared:literal;)*) => {
        sized! { $(
            #[doc = $sent]
            $send, $send_c, (
                buffer: *const c_void, count: N, datatype: MPI_Datatype, peer: c_int, tag: c_int,
                comm: MPI_Comm,
            ) {
                call_on(NAME, comm, |job, comm| {
                    let count = count.into();
                    // SAFETY: the caller's.
                    unsafe { send(job, comm, Way::$way, buffer, count, datatype, (peer, tag)) }
                })
            }

            #[doc = $begun]
            $begin, $begin_c, (
                buffer: *const c_void, count: N, datatype: MPI_Datatype, peer: c_int, tag: c_int,
                comm: MPI_Comm, request: *mut MPI_Request,
            ) {
                call_on(NAME, comm, |job, comm| {
                    let (way, count, at) = (Way::$way, count.into(), (peer, tag));
                    // SAFETY: the caller's.
                    unsafe {
                        request.write(sending(job, comm, way, buffer, count, datatype, at)?);
                    }
                    Ok(())
                })
            }

            #[doc = $prepared]
            $init, $init_c, (
                buffer: *const c_void, count: N, datatype: MPI_Datatype, peer: c_int, tag: c_int,
                comm: MPI_Comm, request: *mut MPI_Request,
            ) {
                let (buffer, count) = (buffer.cast_mut(), count.into());
                let start = |comm| Start { way: Way::$way, buffer, count, datatype, peer, tag, comm };
                // SAFETY: the caller's.
                unsafe { prepare(NAME, comm, request, start) }
            }
        )* }
    };
}

sends! {
    Standard: PMPI_Send, PMPI_Send_c, "MPI_Send"; PMPI_Isend, PMPI_Isend_c, "MPI_Isend";
        PMPI_Send_init, PMPI_Send_init_c, "MPI_Send_init";
    Buffered: PMPI_Bsend, PMPI_Bsend_c, "MPI_Bsend"; PMPI_Ibsend, PMPI_Ibsend_c, "MPI_Ibsend";
        PMPI_Bsend_init, PMPI_Bsend_init_c, "MPI_Bsend_init";
    Synchronous: PMPI_Ssend, PMPI_Ssend_c, "MPI_Ssend"; PMPI_Issend, PMPI_Issend_c, "MPI_Issend";
        PMPI_Ssend_init, PMPI_Ssend_init_c, "MPI_Ssend_init";
    Ready: PMPI_Rsend, PMPI_Rsend_c, "MPI_Rsend"; PMPI_Irsend, PMPI_Irsend_c, "MPI_Irsend";
        PMPI_Rsend_init, PMPI_Rsend_init_c, "MPI_Rsend_init";
}

sized! {
    /// MPI_Recv.
    PMPI_Recv, PMPI_Recv_c, (
        buffer: *mut c_void, count: N, datatype: MPI_Datatype, peer: c_int, tag: c_int,
        comm: MPI_Comm, status: *mut MPI_Status,
    ) {
        call_on(NAME, comm, |job, comm| {
            let count = count.into();
            // SAFETY: the caller's.
            unsafe {
                let (found, result) = receive(job, comm, buffer, count, datatype, (peer, tag));
                tell(found, status);
                result
            }
        })
    }

    /// MPI_Irecv.
    PMPI_Irecv, PMPI_Irecv_c, (
        buffer: *mut c_void, count: N, datatype: MPI_Datatype, peer: c_int, tag: c_int,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) {
        call_on(NAME, comm, |job, comm| {
            let (count, at) = (count.into(), (peer, tag));
            // SAFETY: the caller's.
            unsafe { request.write(receiving(job, comm, buffer, count, datatype, at)?) };
            Ok(())
        })
    }

    /// MPI_Recv_init.
    PMPI_Recv_init, PMPI_Recv_init_c, (
        buffer: *mut c_void, count: N, datatype: MPI_Datatype, peer: c_int, tag: c_int,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) {
        let (way, count) = (Way::Receive, count.into());
        let start = |comm| Start { way, buffer, count, datatype, peer, tag, comm };
        // SAFETY: the caller's.
        unsafe { prepare(NAME, comm, request, start) }
    }

    /// MPI_Sendrecv.
    PMPI_Sendrecv, PMPI_Sendrecv_c, (
        sent: *const c_void, sent_count: N, sent_type: MPI_Datatype, dest: c_int,
        sent_tag: c_int, into: *mut c_void, room: N, into_type: MPI_Datatype, source: c_int,
        tag: c_int, comm: MPI_Comm, status: *mut MPI_Status,
    ) {
        call_on(NAME, comm, |job, comm| {
            // SAFETY: the caller's.
            unsafe {
                let from = (sent, sent_count.into(), sent_type, (dest, sent_tag));
                let into = (into, room.into(), into_type, (source, tag));
                let (found, result) = exchange(job, comm, from, into);
                tell(found, status);
                result
            }
        })
    }

    /// MPI_Isendrecv.
    PMPI_Isendrecv, PMPI_Isendrecv_c, (
        sent: *const c_void, sent_count: N, sent_type: MPI_Datatype, dest: c_int,
        sent_tag: c_int, into: *mut c_void, room: N, into_type: MPI_Datatype, source: c_int,
        tag: c_int, comm: MPI_Comm, request: *mut MPI_Request,
    ) {
        call_on(NAME, comm, |job, comm| {
            // SAFETY: the caller's.
            unsafe {
                let from = (sent, sent_count.into(), sent_type, (dest, sent_tag));
                let into = (into, room.into(), into_type, (source, tag));
                let work = Work::Both(Box::new(begin_both(job, comm, from, into)?));
                request.write(job.add_task(Task { work, comm: comm.clone() })?);
            }
            Ok(())
        })
    }

    /// MPI_Isendrecv_replace.
    PMPI_Isendrecv_replace, PMPI_Isendrecv_replace_c, (
        buffer: *mut c_void, count: N, datatype: MPI_Datatype, dest: c_int, sent_tag: c_int,
        source: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request,
    ) {
        call_on(NAME, comm, |job, comm| {
            let count = count.into();
            // SAFETY: the caller's; the task keeps the copy.
            unsafe {
                let mut copy = Data::outgoing(buffer, count, job.datatype(datatype)?)?.copied();
                let from = (copy.at().cast_const().cast(), copy.bytes as i64, MPI_Datatype::BYTE,
                    (dest, sent_tag));
                let into = (buffer, count, datatype, (source, tag));
                let [receive, mut send] = begin_both(job, comm, from, into)?;
                if let Work::Send(_, data) = &mut send.work {
                    *data = copy;
                }
                let work = Work::Both(Box::new([receive, send]));
                request.write(job.add_task(Task { work, comm: comm.clone() })?);
            }
            Ok(())
        })
    }

    /// MPI_Sendrecv_replace.
    PMPI_Sendrecv_replace, PMPI_Sendrecv_replace_c, (
        buffer: *mut c_void, count: N, datatype: MPI_Datatype, dest: c_int, sent_tag: c_int,
        source: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status,
    ) {
        call_on(NAME, comm, |job, comm| {
            let count = count.into();
            // SAFETY: the caller's.
            unsafe {
                let mut data = Data::outgoing(buffer, count, job.datatype(datatype)?)?;
                let copy = data.kept();
                let from = (copy.as_ptr().cast(), copy.len() as i64, MPI_Datatype::BYTE,
                    (dest, sent_tag));
                let (found, result) =
                    exchange(job, comm, from, (buffer, count, datatype, (source, tag)));
                tell(found, status);
                result
            }
        })
    }
}

/// Begins a send and a receive at the same time: the receive comes first.
///
/// # Safety
///
/// The elements are valid for a read, or for a write, until both have ended.
unsafe fn begin_both(
    job: &Job,
    comm: &CommRef,
    (sent, sent_count, sent_type, target): Sent,
    (into, room, into_type, source): Into,
) -> Answer<[Task; 2]> {
    let task = |work| Task { work, comm: comm.clone() };
    // SAFETY: the caller's.
    unsafe {
        // Before the receive can refer to its buffer.
        let goes_somewhere = target_of(comm, target.0, target.1)?.is_some();
        if goes_somewhere && source.0 != abi::PROC_NULL {
            job.check_apart((sent, sent_count, sent_type), (into, room, into_type))?;
        }
        let receive = begin_receive(job, comm, into, room, into_type, source)?;
        match begin_send(job, comm, Way::Standard, sent, sent_count, sent_type, target) {
            Ok(send) => Ok([task(receive), task(send)]),
            Err(fault) => {
                if let Work::Receive(under, _) = &receive {
                    job.messages.cancel(*under);
                }
                task(receive).finish(&job.messages);
                Err(fault)
            }
        }
    }
}

/// Elements that are sent, with the target and the tag.
type Sent = (*const c_void, i64, MPI_Datatype, (c_int, c_int));
/// Room for elements, with the source and the tag.
type Into = (*mut c_void, i64, MPI_Datatype, (c_int, c_int));

/// Sends and receives at the same time.
///
/// # Safety
///
/// The elements are valid for a read, or for a write.
unsafe fn exchange(job: &Job, comm: &CommRef, from: Sent, into: Into) -> (MPI_Status, Answer) {
    // SAFETY: the caller's; both have ended when this returns.
    match unsafe { begin_both(job, comm, from, into) } {
        Ok(both) => {
            let task = Task { work: Work::Both(Box::new(both)), comm: comm.clone() };
            let ended = task.finish(&job.messages);
            (ended.status, ended.result)
        }
        Err(fault) => (MPI_Status::EMPTY, Err(fault)),
    }
}
