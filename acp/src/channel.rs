//! Channels: messages from one rank to one other rank, in order. Each channel is a
//! tag of the job's messages; the n-th channel that a pair of ranks makes is the
//! same channel at both.

use super::life::{Life, NOT_A_RANK, current, note, with};
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::Arc;
use tsumugi::comm::{Keep, Owned, Receiving, Sending};
use tsumugi::{Comm, MessageError, Rank};

/// An end of a channel.
pub struct chitem {
    life: Arc<Life>,
    peer: Rank,
    tag: u32,
    is_sender: bool,
}

/// A send, a receive or a free that was begun on a channel.
pub struct chreqitem {
    under: Under,
    // Declared last: the operation in `under` uses the communicator of the life.
    _life: Arc<Life>,
}

/// An end of a channel; NULL is no channel.
pub type acp_ch_t = *mut chitem;
/// A request, that is, an operation that was begun on a channel; it lives until it
/// is waited for. NULL is no request.
pub type acp_request_t = *mut chreqitem;

enum Under {
    Sends(Sending<'static, Bytes>),
    Receives(Receiving<'static, Bytes>, usize),
    Done,
}

/// A buffer of the program, which stays valid until the program has waited.
struct Bytes(*mut u8, usize);

// SAFETY: the program owns the bytes and leaves them alone until it has waited, so
// any thread may use them.
unsafe impl Send for Bytes {}

// SAFETY: as for `Send`; and the bytes stay where they are.
unsafe impl Keep for Bytes {
    fn keep(self) -> Option<Box<dyn Any + Send>> {
        None
    }
}

impl Owned for Bytes {
    fn bytes(&self) -> (*const u8, usize) {
        (self.0, self.1)
    }

    fn bytes_mut(&mut self) -> (*mut u8, usize) {
        (self.0, self.1)
    }
}

/// Makes this rank's end of a channel from `sender` to `receiver`, or returns NULL.
/// It does not wait for the other rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_create_ch(sender: c_int, receiver: c_int) -> acp_ch_t {
    let Some(life) = current() else { return note(null_mut(), NOT_A_RANK) };
    with(null_mut(), |_| {
        let (from, to) = (life.rank_of(sender)?, life.rank_of(receiver)?);
        let own = life.runtime.rank();
        if from == to || (from != own && to != own) {
            let ends = format!("a channel from rank {sender} to rank {receiver}");
            return Err(format!("{ends} does not connect this rank with another one").into());
        }
        let tag = life.make(CHANNELS, (from, to));
        let is_sender = from == own;
        let peer = if is_sender { to } else { from };
        Ok(Box::into_raw(Box::new(chitem { life: life.clone(), peer, tag, is_sender })))
    })
}

/// Ends a channel on which no operation is in progress. Returns 0, or -1 on failure.
///
/// # Safety
///
/// `ch` is NULL or an end of a channel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_free_ch(ch: acp_ch_t) -> c_int {
    if ch.is_null() {
        return note(-1, NO_CHANNEL);
    }
    // SAFETY: the caller's: made by `acp_create_ch`.
    drop(unsafe { Box::from_raw(ch) });
    0
}

/// Ends a channel as `acp_free_ch` does, with a request to be waited for.
///
/// # Safety
///
/// `ch` is NULL or an end of a channel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_nbfree_ch(ch: acp_ch_t) -> acp_request_t {
    if ch.is_null() {
        return note(null_mut(), NO_CHANNEL);
    }
    // SAFETY: the caller's: made by `acp_create_ch`.
    let ch = unsafe { Box::from_raw(ch) };
    request(ch.life, Under::Done)
}

/// Begins to send the `size` bytes at `buf`. They must not change until the request
/// has been waited for.
///
/// # Safety
///
/// `ch` is NULL or an end of a channel; `buf` is readable until the request has
/// been waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_nbsend_ch(
    ch: acp_ch_t,
    buf: *mut c_void,
    size: usize,
) -> acp_request_t {
    // SAFETY: the caller's.
    let Some(ch) = (unsafe { ch.as_ref() }).filter(|ch| ch.is_sender) else {
        return note(null_mut(), NO_CHANNEL);
    };
    // SAFETY: the request keeps the life, and so the communicator, alive.
    let comm = unsafe { lasting(&ch.life) };
    match comm.isend(ch.peer, ch.tag, Bytes(buf.cast(), size)) {
        Ok(sending) => request(ch.life.clone(), Under::Sends(sending)),
        Err(error) => note(null_mut(), error),
    }
}

/// Begins to receive a message into the `size` bytes at `buf`. The bytes of the
/// message for which there is no room are lost.
///
/// # Safety
///
/// `ch` is NULL or an end of a channel; until the request has been waited for,
/// `buf` is writable and no other code uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_nbrecv_ch(
    ch: acp_ch_t,
    buf: *mut c_void,
    size: usize,
) -> acp_request_t {
    // SAFETY: the caller's.
    let Some(ch) = (unsafe { ch.as_ref() }).filter(|ch| !ch.is_sender) else {
        return note(null_mut(), NO_CHANNEL);
    };
    // SAFETY: the request keeps the life, and so the communicator, alive.
    let comm = unsafe { lasting(&ch.life) };
    match comm.irecv(ch.peer, ch.tag, Bytes(buf.cast(), size)) {
        Ok(receiving) => request(ch.life.clone(), Under::Receives(receiving, size)),
        Err(error) => note(null_mut(), error),
    }
}

/// Waits for a request and frees it. Returns the number of bytes in the buffer for
/// a receive, 0 for other requests, or `(size_t)-1` on failure.
///
/// # Safety
///
/// `request` is NULL or a request that has not been waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_wait_ch(request: acp_request_t) -> usize {
    if request.is_null() {
        return note(usize::MAX, "the request is NULL");
    }
    // SAFETY: the caller's: made by `request`.
    let request = unsafe { Box::from_raw(request) };
    match request.under {
        Under::Done => 0,
        Under::Sends(sending) => match sending.wait() {
            Ok(_) => 0,
            Err(error) => note(usize::MAX, error),
        },
        Under::Receives(receiving, room) => match receiving.wait() {
            Ok((received, _)) => received.bytes,
            Err(MessageError::Truncated { .. }) => room,
            Err(error) => note(usize::MAX, error),
        },
    }
}

/// Waits for `count` requests. Writes the result of `acp_wait_ch` for each to
/// `sizes`, unless `sizes` is NULL. Returns 0, or -1 if a request failed.
///
/// # Safety
///
/// `request` is valid for a read of `count` requests, each as for `acp_wait_ch`;
/// `sizes` is NULL or valid for a write of `count` sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_waitall_ch(
    request: *mut acp_request_t,
    count: c_int,
    sizes: *mut usize,
) -> c_int {
    let mut answer = 0;
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller's.
        let size = unsafe { acp_wait_ch(*request.add(at)) };
        if size == usize::MAX {
            answer = -1;
        }
        if !sizes.is_null() {
            // SAFETY: the caller's.
            unsafe { *sizes.add(at) = size };
        }
    }
    answer
}

fn request(life: Arc<Life>, under: Under) -> acp_request_t {
    Box::into_raw(Box::new(chreqitem { under, _life: life }))
}

/// The communicator of all channels, with a lifetime that the compiler does not
/// check.
///
/// # Safety
///
/// The caller keeps `life` as long as it uses the communicator.
unsafe fn lasting(life: &Arc<Life>) -> &'static Comm {
    // SAFETY: the caller's.
    unsafe { transmute::<&Comm, &'static Comm>(&life.comms[CHANNELS]) }
}

impl std::fmt::Debug for chitem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "chitem({} with {})", self.tag, self.peer)
    }
}

impl std::fmt::Debug for chreqitem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("chreqitem")
    }
}

const CHANNELS: usize = 0;
const NO_CHANNEL: &str = "the channel is NULL, or this is its other end";
