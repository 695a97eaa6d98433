//! Communicators, and messages that are complete when a call returns.

use super::code::{code_of, of_failure, of_message};
use super::job::job;
use super::object::{bytes_at, end, given, live, make, object, refuse, room_at, tell};
use super::{
    TSUMUGI_ERROR_MEMORY, TSUMUGI_ERROR_RANK, TSUMUGI_ERROR_VALUE, tsumugi_free, tsumugi_job,
    tsumugi_malloc,
};
use std::ffi::{c_int, c_void};
use std::ptr;
use tsumugi::{Comm, MessageError, Rank, Received, Source, Tags};

/// In place of a source: a message from any rank.
pub const TSUMUGI_ANY_SOURCE: i64 = -1;
/// In place of a tag: a message with any tag.
pub const TSUMUGI_ANY_TAG: i64 = -1;

/// A communicator: a message that is sent through it can only be received through the
/// same communicator of another rank, so the messages of one part of a program do not
/// mix with those of another. Messages from one rank to another through one
/// communicator are received in the order in which they were sent, as far as they match
/// the receives. Any thread and any ULT may use it.
#[derive(Debug)]
pub struct tsumugi_comm(pub(super) Comm);

/// A message that has come.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tsumugi_received {
    /// The rank that sent it.
    pub source: u32,
    /// Its tag.
    pub tag: u32,
    /// Its length, also where that is more than the room for it.
    pub bytes: usize,
}

/// The communicator that exists from the start. Wait-free.
///
/// Errors: NULL.
///
/// # Safety
///
/// `job` is a live job; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_comm_open(
    job: *const tsumugi_job,
    out: *mut *mut tsumugi_comm,
) -> c_int {
    let open = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (self::job(job)?, given(out, "out")?) };
        // SAFETY: the caller's.
        unsafe { make(out, tsumugi_comm(job.runtime.comm())) };
        Ok(())
    };
    code_of(open())
}

/// Makes a new communicator for a part of the program. All ranks must call it. Blocks.
///
/// Errors: CROWDED (the job has 65,534 groups and communicators),
/// LOST, JOB, ENDED, NULL.
///
/// # Safety
///
/// `comm` is a communicator; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_comm_duplicate(
    comm: *const tsumugi_comm,
    out: *mut *mut tsumugi_comm,
) -> c_int {
    let duplicate = || {
        // SAFETY: the caller's.
        let (comm, out) = unsafe { (live(comm)?, given(out, "out")?) };
        let new = comm.0.duplicate().map_err(of_failure)?;
        // SAFETY: the caller's.
        unsafe { make(out, tsumugi_comm(new)) };
        Ok(())
    };
    code_of(duplicate())
}

/// Ends the handle of a communicator; requests that were begun through it go on. Never
/// waits.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `comm` is a communicator; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_comm_close(comm: *mut tsumugi_comm) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { end(comm) }.map(drop))
}

/// Sends `bytes` bytes to the rank `to`. Returns when the bytes may be changed again:
/// at once for short messages, and for long ones when the other rank has taken them.
/// Blocks.
///
/// Errors: RANK, LENGTH (no memory has so many bytes), LOST, CROWDED (this rank has 1,048,576
/// messages in progress), FAILED, ENDED, NULL.
///
/// # Safety
///
/// `comm` is a communicator; `from` is valid for a read of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_send(
    comm: *const tsumugi_comm,
    to: u32,
    tag: u32,
    from: *const c_void,
    bytes: usize,
) -> c_int {
    let send = || {
        // SAFETY: the caller's.
        let (comm, values) = unsafe { (live(comm)?, bytes_at(from, bytes, "from")?) };
        comm.0.send(Rank(to), tag, values).map_err(of_message)
    };
    code_of(send())
}

/// Waits for a message from `source` (a rank, or `TSUMUGI_ANY_SOURCE`) with `tag` (a
/// tag of 32 bits, or `TSUMUGI_ANY_TAG`), and copies it to `into`, which has room for
/// `room` bytes. Writes what has come to `received`, unless that is NULL. Blocks.
///
/// Errors: TRUNCATED (the message is longer than the room, which has its beginning; the
/// rest is lost; `received` is written), RANK, VALUE (of `tag`), LOST (the source of the
/// receive, or the sender of the message, has died), CROWDED, FAILED, ENDED, NULL.
///
/// # Safety
///
/// `comm` is a communicator; `into` is valid for a write of `room` bytes; `received` is
/// NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_recv(
    comm: *const tsumugi_comm,
    source: i64,
    tag: i64,
    into: *mut c_void,
    room: usize,
    received: *mut tsumugi_received,
) -> c_int {
    let receive = || {
        // SAFETY: the caller's.
        let comm = unsafe { live(comm) }?;
        let (source, tags) = (source_of(source)?, tags_of(tag)?);
        let at = (room_at(into, room, "into")?, room);
        // SAFETY: the caller's, in both calls.
        unsafe { tell_received(received, comm.0.recv_at(source, tags, at)) }
    };
    code_of(receive())
}

/// Waits for a message of any length, as `tsumugi_recv` does, and writes the address of
/// its bytes to `data`: a block that `tsumugi_free` frees, also if the message has no
/// bytes. Blocks.
///
/// Errors: MEMORY (the message stays), and those of `tsumugi_recv` but TRUNCATED.
///
/// # Safety
///
/// `comm` is a communicator; `data` is valid for a write; `received` is NULL or valid
/// for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_recv_whole(
    comm: *const tsumugi_comm,
    source: i64,
    tag: i64,
    data: *mut *mut c_void,
    received: *mut tsumugi_received,
) -> c_int {
    let receive = || {
        // SAFETY: the caller's.
        let (comm, data) = unsafe { (live(comm)?, given(data, "data")?) };
        let (source, tags) = (source_of(source)?, tags_of(tag)?);
        let mut block = ptr::null_mut();
        let room_for = |bytes| {
            // SAFETY: null, or the block of the call before, which was too short.
            unsafe { tsumugi_free(block) };
            block = tsumugi_malloc(bytes);
            if block.is_null() { Err(NotReceived::NoMemory(bytes)) } else { Ok(block.cast()) }
        };
        // SAFETY: the blocks are local to this function.
        let told = match unsafe { comm.0.recv_whole(source, tags, room_for) } {
            Err(NotReceived::NoMemory(bytes)) => {
                let reason = format_args!("no memory for a message of {bytes} bytes");
                Err(refuse(TSUMUGI_ERROR_MEMORY, reason))
            }
            Err(NotReceived::Message(error)) => Err(of_message(error)),
            // SAFETY: the caller's.
            Ok(got) => unsafe { tell_received(received, Ok(got)) },
        };
        match told {
            // SAFETY: the caller's.
            Ok(()) => unsafe { data.write(block) },
            // SAFETY: no message is in the block.
            Err(_) => unsafe { tsumugi_free(block) },
        }
        told
    };
    code_of(receive())
}

/// Sends and receives at the same time, as `tsumugi_send` and `tsumugi_recv` do, so that
/// ranks that exchange messages cannot deadlock. Blocks.
///
/// Errors: those of `tsumugi_send` and of `tsumugi_recv`; both have ended then.
///
/// # Safety
///
/// As for `tsumugi_send` and `tsumugi_recv`; the two memories do not overlap.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "those of a send and of a receive")]
pub unsafe extern "C" fn tsumugi_send_recv(
    comm: *const tsumugi_comm,
    to: u32,
    send_tag: u32,
    from: *const c_void,
    bytes: usize,
    source: i64,
    recv_tag: i64,
    into: *mut c_void,
    room: usize,
    received: *mut tsumugi_received,
) -> c_int {
    let exchange = || {
        // SAFETY: the caller's.
        let (comm, values) = unsafe { (live(comm)?, bytes_at(from, bytes, "from")?) };
        let pattern = (source_of(source)?, tags_of(recv_tag)?);
        let at = (room_at(into, room, "into")?, room);
        // SAFETY: the caller's.
        let got = unsafe { comm.0.send_recv_at((Rank(to), send_tag, values), pattern, at) };
        // SAFETY: the caller's.
        unsafe { tell_received(received, got) }
    };
    code_of(exchange())
}

/// Waits until there is a message that matches, as for `tsumugi_recv`, and writes its
/// source, tag and length to `found`, without receiving it. Another thread may receive
/// it. Blocks.
///
/// Errors: RANK, VALUE (of `tag`), LOST, ENDED, NULL.
///
/// # Safety
///
/// `comm` is a communicator; `found` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_probe(
    comm: *const tsumugi_comm,
    source: i64,
    tag: i64,
    found: *mut tsumugi_received,
) -> c_int {
    let probe = || {
        // SAFETY: the caller's.
        let comm = unsafe { live(comm) }?;
        let (source, tags) = (source_of(source)?, tags_of(tag)?);
        // SAFETY: the caller's.
        unsafe { tell_received(found, comm.0.probe(source, tags)) }
    };
    code_of(probe())
}

/// Writes to `is_there` whether there is a message that matches, as for `tsumugi_recv`,
/// and its source, tag and length to `found` if there is one. Never waits.
///
/// Errors: RANK, VALUE (of `tag`), ENDED, NULL.
///
/// # Safety
///
/// `comm` is a communicator; `is_there` is valid for a write; `found` is NULL or valid
/// for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_try_probe(
    comm: *const tsumugi_comm,
    source: i64,
    tag: i64,
    is_there: *mut bool,
    found: *mut tsumugi_received,
) -> c_int {
    let probe = || {
        // SAFETY: the caller's.
        let (comm, is_there) = unsafe { (live(comm)?, given(is_there, "is_there")?) };
        let (source, tags) = (source_of(source)?, tags_of(tag)?);
        if let Source::Is(rank) = source {
            let size = comm.0.size();
            if rank.0 >= size {
                let reason = format_args!("{rank} does not exist: the job has {size} ranks");
                return Err(refuse(TSUMUGI_ERROR_RANK, reason));
            }
        }
        let message = comm.0.try_probe(source, tags);
        // SAFETY: the caller's.
        unsafe {
            is_there.write(message.is_some());
            if let Some(message) = message {
                tell(found, tsumugi_received::of(message));
            }
        }
        Ok(())
    };
    code_of(probe())
}

/// Why a message of any length was not received.
enum NotReceived {
    Message(MessageError),
    /// There is no memory for this number of bytes.
    NoMemory(usize),
}

impl From<MessageError> for NotReceived {
    fn from(error: MessageError) -> Self {
        Self::Message(error)
    }
}

impl tsumugi_received {
    pub(super) fn of(received: Received) -> Self {
        Self { source: received.source.0, tag: received.tag, bytes: received.bytes }
    }
}

object!(tsumugi_comm, "comm");

/// Writes what has come, also if it was too long, and returns the code.
///
/// # Safety
///
/// `out` is null or valid for a write.
pub(super) unsafe fn tell_received(
    out: *mut tsumugi_received,
    result: Result<Received, MessageError>,
) -> Result<(), c_int> {
    let came = match result {
        Ok(received) => Some(received),
        Err(MessageError::Truncated { source, tag, bytes, .. }) => {
            Some(Received { source, tag, bytes })
        }
        Err(_) => None,
    };
    if let Some(came) = came {
        // SAFETY: the caller's.
        unsafe { tell(out, tsumugi_received::of(came)) };
    }
    result.map(drop).map_err(of_message)
}

/// The source of a receive.
pub(super) fn source_of(source: i64) -> Result<Source, c_int> {
    match (source, u32::try_from(source)) {
        (TSUMUGI_ANY_SOURCE, _) => Ok(Source::Any),
        (_, Ok(rank)) => Ok(Source::Is(Rank(rank))),
        _ => Err(refuse(TSUMUGI_ERROR_RANK, format_args!("{source} is no rank"))),
    }
}

/// The tags of a receive.
pub(super) fn tags_of(tag: i64) -> Result<Tags, c_int> {
    match (tag, u32::try_from(tag)) {
        (TSUMUGI_ANY_TAG, _) => Ok(Tags::Any),
        (_, Ok(tag)) => Ok(Tags::Is(tag)),
        _ => Err(refuse(TSUMUGI_ERROR_VALUE, format_args!("{tag} is no tag of 32 bits"))),
    }
}
