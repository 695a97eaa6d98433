//! Requests: messages and collectives that were begun by one call and are waited for by
//! another.

use super::code::{code_of, of_failure, of_message};
use super::comm::{source_of, tags_of, tell_received};
use super::object::{end, given, list_at, live, make, null, object, refuse, tell};
use super::{TSUMUGI_ERROR_NULL, TSUMUGI_ERROR_VALUE, tsumugi_comm, tsumugi_received};
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::time::Duration;
use tsumugi::comm::{Keep, Message, Owned, Receiving, Sending};
use tsumugi::group::StartedCollective;
use tsumugi::{Comm, Rank, Received};

/// A message or a collective that was begun; the handle lives until a wait or a test ends
/// it.
pub struct tsumugi_request(Begun);

/// What was begun. A message is declared before the communicator, which it borrows.
enum Begun {
    Send(Sending<'static, Memory>, Received, Comm),
    Receive(Receiving<'static, Memory>, Comm),
    Collective(StartedCollective),
}

/// Memory of the program: its address and its length.
#[derive(Clone, Copy)]
struct Memory(*mut u8, usize);

// SAFETY: by the contract of the functions that begin a message, the program leaves the
// bytes where they are and alone until the message has ended.
unsafe impl Keep for Memory {
    fn keep(self) -> Option<Box<dyn Any + Send>> {
        None
    }
}

impl Owned for Memory {
    fn bytes(&self) -> (*const u8, usize) {
        (self.0, self.1)
    }

    fn bytes_mut(&mut self) -> (*mut u8, usize) {
        (self.0, self.1)
    }
}

// SAFETY: a request belongs to no thread; the bytes are the program's, which may use
// them on any thread.
unsafe impl Send for tsumugi_request {}
// SAFETY: as for `Send`; the calls of a shared request are those of `Message`, which
// lock the rank's messages, and those of a collective, which has a lock of its own.
unsafe impl Sync for tsumugi_request {}

/// Begins to send `bytes` bytes to the rank `to`; the program must not change them
/// before the request has ended. Waits only for room in the rank's tables.
///
/// Errors: RANK, LOST, CROWDED, ENDED, NULL; the wait returns errors that occur later.
///
/// # Safety
///
/// `comm` is a communicator; `from` is valid for a read of `bytes` bytes until the
/// request has ended; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_isend(
    comm: *const tsumugi_comm,
    to: u32,
    tag: u32,
    from: *const c_void,
    bytes: usize,
    out: *mut *mut tsumugi_request,
) -> c_int {
    let begin = || {
        // SAFETY: the caller's.
        let (comm, out) = unsafe { (live(comm)?, given(out, "out")?) };
        let memory = memory_at(from.cast_mut(), bytes, "from")?;
        let comm = comm.0.clone();
        let sending = comm.isend(Rank(to), tag, memory).map_err(of_message)?;
        // SAFETY: the request keeps a clone of the communicator, and with it the rank's
        // messages, which the handle borrows; it drops the handle first.
        let sending = unsafe { transmute::<Sending<'_, _>, Sending<'static, _>>(sending) };
        let sent = Received { source: Rank(to), tag, bytes };
        // SAFETY: the caller's.
        unsafe { make(out, tsumugi_request(Begun::Send(sending, sent, comm))) };
        Ok(())
    };
    code_of(begin())
}

/// Begins to receive a message into `room` bytes at `into`, as `tsumugi_recv` does; the
/// program must not use them before the request has ended. Waits only for room in the
/// rank's tables.
///
/// Errors: RANK, VALUE (of `tag`), LOST, CROWDED, ENDED, NULL; the wait returns errors
/// that occur later.
///
/// # Safety
///
/// `comm` is a communicator; `into` is valid for a write of `room` bytes until the
/// request has ended; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_irecv(
    comm: *const tsumugi_comm,
    source: i64,
    tag: i64,
    into: *mut c_void,
    room: usize,
    out: *mut *mut tsumugi_request,
) -> c_int {
    let begin = || {
        // SAFETY: the caller's.
        let (comm, out) = unsafe { (live(comm)?, given(out, "out")?) };
        let memory = memory_at(into, room, "into")?;
        let (source, tags) = (source_of(source)?, tags_of(tag)?);
        let comm = comm.0.clone();
        let receiving = comm.irecv(source, tags, memory).map_err(of_message)?;
        // SAFETY: as in `tsumugi_isend`.
        let receiving = unsafe { transmute::<Receiving<'_, _>, Receiving<'static, _>>(receiving) };
        // SAFETY: the caller's.
        unsafe { make(out, tsumugi_request(Begun::Receive(receiving, comm))) };
        Ok(())
    };
    code_of(begin())
}

/// Waits until the message or the collective has ended, and ends the request. Writes what
/// has come to `received`, unless that is NULL; of a send, the receiver, the tag and the
/// length; of a collective, zeroes. That a send has ended need not mean that the message
/// was received. Blocks.
///
/// Errors: TRUNCATED, LOST, CANCELLED, FAILED and ENDED of the message, and those of the
/// collective (the request has ended then, too); NULL, and ENDED of a request that a call
/// has ended before.
///
/// # Safety
///
/// `request` is a request; no other thread ends it; `received` is NULL or valid for a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_request_wait(
    request: *mut tsumugi_request,
    received: *mut tsumugi_received,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { end(request).and_then(|request| request.finish(received)) })
}

/// Writes to `is_done` whether the message or the collective has ended. If it has, ends
/// the request, as `tsumugi_request_wait` does. Never waits.
///
/// Errors: those of `tsumugi_request_wait`; for an error of the message or the collective
/// `is_done` is true.
///
/// # Safety
///
/// As for `tsumugi_request_wait`; `is_done` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_request_test(
    request: *mut tsumugi_request,
    is_done: *mut bool,
    received: *mut tsumugi_received,
) -> c_int {
    let test = || {
        // SAFETY: the caller's.
        let (of, is_done) = unsafe { (live(request)?, given(is_done, "is_done")?) };
        let done = of.is_done();
        // SAFETY: the caller's.
        unsafe { is_done.write(done) };
        if !done {
            return Ok(());
        }
        // SAFETY: the caller's.
        unsafe { end(request)?.finish(received) }
    };
    code_of(test())
}

/// Waits until one of `count` messages and collectives has ended, writes its index to
/// `index`, and ends its request, as `tsumugi_request_wait` does; the entry in `requests`
/// becomes NULL. Entries that are NULL are left out. Blocks; while there are both messages
/// and collectives, the caller looks at them every 100 us.
///
/// Errors: those of `tsumugi_request_wait`, of the request at `index`; NULL also if all
/// entries are NULL.
///
/// # Safety
///
/// `requests` is valid for reads and writes of `count` entries, each of which is NULL or
/// a request; no other thread ends one of them; `index` is valid for a write; `received`
/// is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_request_wait_any(
    requests: *mut *mut tsumugi_request,
    count: usize,
    index: *mut usize,
    received: *mut tsumugi_received,
) -> c_int {
    let wait = || {
        let index = given(index, "index")?;
        // SAFETY: the caller's.
        let list = unsafe { requests_at(requests, count)? };
        let at = wait_any(list.clone()).ok_or_else(|| {
            let reason = format_args!("all {count} entries of requests are NULL");
            refuse(TSUMUGI_ERROR_NULL, reason)
        })?;
        // SAFETY: the caller's; the entry is a request.
        unsafe {
            index.write(at);
            let request = requests.add(at).replace(ptr::null_mut());
            end(request)?.finish(received)
        }
    };
    code_of(wait())
}

/// Waits until all of `count` messages and collectives have ended, and ends their requests;
/// the entries in `requests` become NULL. Entries that are NULL are left out. Writes what
/// has come to `received`, unless that is NULL, and the code of each request to `codes`,
/// unless that is NULL: entry by entry. The code of an entry that is NULL is `TSUMUGI_OK`.
/// Blocks.
///
/// Errors: the code of the first request that has failed; NULL and ENDED, as for
/// `tsumugi_request_wait`: then no request was ended.
///
/// # Safety
///
/// `requests` is valid for reads and writes of `count` entries, each of which is NULL or
/// a request; no other thread ends one of them; `received` and `codes` are NULL or valid
/// for writes of `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_request_wait_all(
    requests: *mut *mut tsumugi_request,
    count: usize,
    received: *mut tsumugi_received,
    codes: *mut c_int,
) -> c_int {
    let wait = || {
        // SAFETY: the caller's.
        let list = unsafe { requests_at(requests, count)? };
        if !codes.is_null() {
            // SAFETY: the caller's; zero is TSUMUGI_OK, the code of an entry that is NULL.
            unsafe { codes.write_bytes(0, count) };
        }
        if let Some(comm) = list.clone().find_map(|(_, request)| request.comm()) {
            comm.wait_all_of(messages_of(list.clone()));
        }
        let mut first = Ok(());
        for (at, _) in list {
            let place = if received.is_null() { received } else { received.wrapping_add(at) };
            // SAFETY: the caller's; the entry is a request.
            let ended = unsafe {
                let request = requests.add(at).replace(ptr::null_mut());
                end(request).and_then(|request| request.finish(place))
            };
            if !codes.is_null() {
                // SAFETY: the caller's.
                unsafe { codes.add(at).write(code_of(ended)) };
            }
            first = first.and(ended);
        }
        first
    };
    code_of(wait())
}

/// Asks that the receive take no message any more. The wait then returns CANCELLED, or
/// a message that was arriving already; no message is lost. A send and a collective are not
/// cancelled. Never waits.
///
/// Errors: VALUE (the request is not a receive), ENDED, NULL.
///
/// # Safety
///
/// `request` is a request; no other thread ends it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_request_cancel(request: *const tsumugi_request) -> c_int {
    let cancel = || {
        // SAFETY: the caller's.
        let what = match unsafe { &live(request)?.0 } {
            Begun::Receive(receiving, _) => {
                receiving.cancel();
                return Ok(());
            }
            Begun::Send(..) => "send",
            Begun::Collective(_) => "collective",
        };
        let reason = format_args!("the request at {request:p} is a {what}");
        Err(refuse(TSUMUGI_ERROR_VALUE, reason))
    };
    code_of(cancel())
}

impl tsumugi_request {
    fn message(&self) -> Option<&dyn Message> {
        match &self.0 {
            Begun::Send(sending, ..) => Some(sending),
            Begun::Receive(receiving, _) => Some(receiving),
            Begun::Collective(_) => None,
        }
    }

    fn comm(&self) -> Option<&Comm> {
        match &self.0 {
            Begun::Send(.., comm) | Begun::Receive(_, comm) => Some(comm),
            Begun::Collective(_) => None,
        }
    }

    fn is_done(&self) -> bool {
        match &self.0 {
            Begun::Send(sending, ..) => sending.is_done(),
            Begun::Receive(receiving, _) => receiving.is_done(),
            Begun::Collective(collective) => collective.is_done(),
        }
    }

    /// Waits for the end, and writes what has come.
    ///
    /// # Safety
    ///
    /// `received` is null or valid for a write.
    unsafe fn finish(self, received: *mut tsumugi_received) -> Result<(), c_int> {
        // The communicator lives until the message has ended.
        let (came, _comm) = match self.0 {
            Begun::Send(sending, sent, comm) => (sending.wait().map(|_| sent), comm),
            Begun::Receive(receiving, comm) => (receiving.wait().map(|(came, _)| came), comm),
            Begun::Collective(collective) => {
                collective.wait().map_err(of_failure)?;
                // SAFETY: the caller's.
                unsafe { tell(received, tsumugi_received::default()) };
                return Ok(());
            }
        };
        // SAFETY: the caller's.
        unsafe { tell_received(received, came) }
    }
}

impl From<StartedCollective> for tsumugi_request {
    fn from(collective: StartedCollective) -> Self {
        Self(Begun::Collective(collective))
    }
}

object!(tsumugi_request, "request");

impl std::fmt::Debug for tsumugi_request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Begun::Send(sending, ..) => write!(f, "tsumugi_request({sending:?})"),
            Begun::Receive(receiving, _) => write!(f, "tsumugi_request({receiving:?})"),
            Begun::Collective(collective) => write!(f, "tsumugi_request({collective:?})"),
        }
    }
}

fn memory_at(at: *mut c_void, bytes: usize, name: &str) -> Result<Memory, c_int> {
    match (at.is_null(), bytes) {
        (true, 0) => Ok(Memory(ptr::dangling_mut(), 0)),
        (true, _) => Err(null(name)),
        _ => Ok(Memory(at.cast(), bytes)),
    }
}

/// The requests of a list, with their indices; all are live.
///
/// # Safety
///
/// `requests` is null or valid for a read of `count` entries, each of which is null or a
/// request, as long as the iterator lives.
unsafe fn requests_at<'a>(
    requests: *mut *mut tsumugi_request,
    count: usize,
) -> Result<impl Iterator<Item = (usize, &'a tsumugi_request)> + Clone, c_int> {
    // SAFETY: the caller's.
    let list = unsafe { list_at(requests, count, "requests")? };
    let entries = list.iter().enumerate().filter(|(_, request)| !request.is_null());
    for (_, request) in entries.clone() {
        // SAFETY: the caller's.
        unsafe { live(request.cast_const())? };
    }
    // SAFETY: the request is live, and the caller ends none while the iterator lives.
    Ok(entries.map(|(at, request)| (at, unsafe { &**request })))
}

fn messages_of<'a>(
    list: impl Iterator<Item = (usize, &'a tsumugi_request)> + Clone,
) -> impl Iterator<Item = &'a dyn Message> + Clone {
    list.filter_map(|(_, request)| request.message())
}

/// Waits until a request of a list has ended; returns its index, or `None` if the list has
/// no requests.
fn wait_any<'a>(list: impl Iterator<Item = (usize, &'a tsumugi_request)> + Clone) -> Option<usize> {
    let mut all = list.clone();
    let (first, request) = all.next()?;
    if all.next().is_none() && request.message().is_none() {
        // The wait that follows sleeps until the only collective has ended.
        return Some(first);
    }
    if list.clone().all(|(_, request)| request.message().is_some()) {
        let number = request.comm()?.wait_any_of(messages_of(list.clone()));
        return list.clone().nth(number).map(|(at, _)| at);
    }
    // Nothing wakes a thread for several collectives, or for a collective and a message.
    for looks in 0u32.. {
        if let Some((at, _)) = list.clone().find(|(_, request)| request.is_done()) {
            return Some(at);
        }
        match looks < LOOKS {
            true => tsumugi_ult::yield_now(),
            false => tsumugi_ult::sleep(LOOK_AGAIN),
        }
    }
    None
}

/// How often a thread looks at requests before it sleeps in between.
const LOOKS: u32 = 200;
const LOOK_AGAIN: Duration = Duration::from_micros(100);
