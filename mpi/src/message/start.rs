//! Sends and receives: what their arguments say, and how they begin.

use crate::abi::{self, MPI_Datatype, MPI_Request, MPI_Status};
use crate::fault::{Answer, fail, need};
use crate::job::Job;
use crate::object::communicator::CommRef;
use crate::object::data::Data;
use crate::object::task::{Task, Work};
use std::ffi::{c_int, c_void};
use tsumugi_core::mem::Rank;
use tsumugi_core::msg::{Label, Pattern};
use tsumugi_runtime::service::messages::{
    Received, SendMode, ShortReceive, Source, Tags, Under, pattern,
};

/// The arguments of a send or a receive.
pub(crate) struct Start {
    pub(crate) way: Way,
    pub(crate) buffer: *mut c_void,
    pub(crate) count: i64,
    pub(crate) datatype: MPI_Datatype,
    pub(crate) peer: c_int,
    pub(crate) tag: c_int,
    pub(crate) comm: CommRef,
}

// SAFETY: the buffer is the program's, which leaves it alone while the operation is active.
unsafe impl Send for Start {}

/// The direction, and the mode of a send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Standard,
    Buffered,
    Synchronous,
    Ready,
    Receive,
}

impl Start {
    /// Checks the arguments as far as they can be without a buffer.
    pub(crate) fn check(&self, job: &Job) -> Answer {
        job.datatype(self.datatype)?.committed()?;
        need!(self.count >= 0, abi::ERR_COUNT, "{} elements: the number is negative", self.count);
        if self.way == Way::Receive {
            pattern_of(&self.comm, self.peer, self.tag).map(drop)
        } else {
            target_of(&self.comm, self.peer, self.tag).map(drop)
        }
    }

    /// Begins the operation.
    pub(crate) fn begin(&self, job: &Job) -> Answer<Task> {
        let Self { way, buffer, count, datatype, peer, tag, ref comm } = *self;
        let work = if way == Way::Receive {
            // SAFETY: the contract of the call that the arguments are of.
            unsafe { begin_receive(job, comm, buffer, count, datatype, (peer, tag)) }?
        } else {
            // SAFETY: the same.
            unsafe { begin_send(job, comm, way, buffer, count, datatype, (peer, tag)) }?
        };
        Ok(Task { work, comm: comm.clone() })
    }
}

/// The rank and the label of a message. `None`: it goes nowhere.
#[inline(always)]
pub(crate) fn target_of(comm: &CommRef, peer: c_int, tag: c_int) -> Answer<Option<(Rank, Label)>> {
    need!(tag != abi::ANY_TAG, abi::ERR_TAG, "the tag of a send is MPI_ANY_TAG");
    need!(tag >= 0, abi::ERR_TAG, "tag {tag} of a send is negative");
    if peer == abi::PROC_NULL {
        return Ok(None);
    }
    Ok(Some((comm.rank_of(peer)?, Label { context: comm.context(), tag: tag as u32 })))
}

/// The messages that a receive takes. `None`: it takes none.
#[inline(always)]
pub(crate) fn pattern_of(comm: &CommRef, peer: c_int, tag: c_int) -> Answer<Option<Pattern<Rank>>> {
    let tags = match tag {
        abi::ANY_TAG => Tags::Any,
        tag if tag >= 0 => Tags::Is(tag as u32),
        tag => fail!(abi::ERR_TAG, "tag {tag} of a receive is negative"),
    };
    let source = match peer {
        abi::PROC_NULL => return Ok(None),
        abi::ANY_SOURCE => Source::Any,
        peer => Source::Is(comm.rank_of(peer)?),
    };
    Ok(Some(pattern(comm.context(), source, tags)))
}

/// The status of a receive from MPI_PROC_NULL.
pub(crate) const NO_PROCESS: MPI_Status =
    MPI_Status { source: abi::PROC_NULL, ..MPI_Status::EMPTY };

/// The data that a call sends.
///
/// # Safety
///
/// The elements are valid for reads.
#[inline(always)]
pub(crate) unsafe fn outgoing(
    job: &Job,
    buffer: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Answer<Data> {
    match Data::plain(buffer.cast_mut(), count, datatype) {
        Some(data) => Ok(data),
        // SAFETY: the caller's.
        None => unsafe { Data::outgoing(buffer, count, job.datatype(datatype)?) },
    }
}

/// Memory for the data that a call receives.
#[inline(always)]
pub(crate) fn incoming(
    job: &Job,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Answer<Data> {
    match Data::plain(buffer, count, datatype) {
        Some(data) => Ok(data),
        None => Data::incoming(buffer, count, job.datatype(datatype)?),
    }
}

/// Sends a short message of plain data at once, if there is room, as most programs do most often.
/// Returns whether it is sent; if not, nothing has happened, and errors are not found.
///
/// # Safety
///
/// The elements are valid for reads.
#[inline(always)]
pub(crate) unsafe fn send_at_once(
    job: &Job,
    comm: &CommRef,
    buffer: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    (peer, tag): (c_int, c_int),
) -> bool {
    let Some(mut data) = Data::plain(buffer.cast_mut(), count, datatype) else { return false };
    let Ok(Some((to, label))) = target_of(comm, peer, tag) else { return false };
    // SAFETY: the caller's.
    unsafe { job.messages.send_short(to, label, data.at(), data.bytes) }
}

/// Begins a send.
///
/// # Safety
///
/// The elements are valid for reads until it has ended.
#[inline]
pub(crate) unsafe fn begin_send(
    job: &Job,
    comm: &CommRef,
    way: Way,
    buffer: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    (peer, tag): (c_int, c_int),
) -> Answer<Work> {
    // SAFETY: the caller's.
    let mut data = unsafe { outgoing(job, buffer, count, datatype) }?;
    let Some((to, label)) = target_of(comm, peer, tag)? else {
        return Ok(Work::Send(nowhere(), Data::NOTHING));
    };
    let (at, bytes) = (data.at().cast_const(), data.bytes);
    // SAFETY: the caller's; the task keeps a copy of the data, if there is one.
    let under = unsafe {
        match way {
            Way::Buffered => {
                job.with_buffer_of(comm, |buffer| {
                    buffer.send(&job.messages, data.kept(), |at, bytes| {
                        job.begin(|| job.messages.begin_send(to, label, at, bytes))
                    })
                })?;
                return Ok(Work::Send(nowhere(), Data::NOTHING));
            }
            Way::Synchronous => {
                let mode = SendMode::Synchronous;
                job.begin(|| job.messages.begin_send_as(mode, to, label, at, bytes))?
            }
            _ => job.begin(|| job.messages.begin_send(to, label, at, bytes))?,
        }
    };
    Ok(Work::Send(under, data))
}

/// A send that has ended.
fn nowhere() -> Under {
    Under::Ended(Ok(Received { source: Rank(0), tag: 0, bytes: 0 }))
}

/// Begins a receive of a short message of plain data from one rank, which may be here already,
/// and returns its request. `None`: the case is another, and nothing has happened.
///
/// # Safety
///
/// The elements are valid for writes until it has ended.
#[inline(always)]
pub(crate) unsafe fn receive_at_once(
    job: &Job,
    comm: &CommRef,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    (peer, tag): (c_int, c_int),
) -> Option<Answer<MPI_Request>> {
    let mut data = Data::plain(buffer, count, datatype)?;
    let Ok(Some(pattern)) = pattern_of(comm, peer, tag) else { return None };
    let (source, room) = (pattern.source?, data.bytes);
    let label = Label { context: pattern.context, tag: pattern.tag.unwrap_or(0) };
    let (messages, is_any_tag) = (&job.messages, pattern.tag.is_none());
    // SAFETY: the caller's.
    match unsafe { messages.post_short(source, label, is_any_tag, data.at(), room) } {
        ShortReceive::Received { tag, bytes } if bytes as usize <= room => {
            Some(job.add_arrived(Received { source, tag, bytes: bytes as usize }, comm))
        }
        short => Some(job.add_receive(short.under(source, room)?, data, comm)),
    }
}

/// Begins a receive.
///
/// # Safety
///
/// The elements are valid for writes until it has ended.
#[inline]
pub(crate) unsafe fn begin_receive(
    job: &Job,
    comm: &CommRef,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    (peer, tag): (c_int, c_int),
) -> Answer<Work> {
    let mut data = incoming(job, buffer, count, datatype)?;
    let Some(pattern) = pattern_of(comm, peer, tag)? else {
        return Ok(Work::Ended(NO_PROCESS));
    };
    let (at, bytes) = (data.at(), data.bytes);
    // SAFETY: the caller's; the task keeps the memory of a copy, if there is one.
    let begin = || unsafe { job.messages.begin_receive(pattern, at, bytes) };
    let under = job.begin(begin)?;
    Ok(Work::Receive(under, data))
}
