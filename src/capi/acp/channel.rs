//! Channels: messages from one rank to one other, in order. Each is a tag of
//! the job's messages; the n-th channel that a pair of ranks makes is the same
//! at both.

use super::job::{Life, current, note, with};
use crate::comm::{Keep, Owned, Receiving, Sending};
use crate::{Comm, MessageError, Rank};
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::Arc;

/// An end of a channel.
pub struct chitem {
    life: Arc<Life>,
    peer: Rank,
    tag: u32,
    is_sender: bool,
}

/// A send, a receive or a free that was begun.
pub struct chreqitem {
    under: Under,
    // After what uses its communicator.
    _life: Arc<Life>,
}

/// An end of a channel; NULL is none.
pub type acp_ch_t = *mut chitem;
/// What was begun on a channel, until it is waited for; NULL is none.
pub type acp_request_t = *mut chreqitem;

enum Under {
    Sends(Sending<'static, Bytes>),
    Receives(Receiving<'static, Bytes>, usize),
    Done,
}

/// Bytes that the program keeps until it has waited.
struct Bytes(*mut u8, usize);

// SAFETY: the program's, which leaves them alone until it has waited.
unsafe impl Send for Bytes {}

// SAFETY: the same; they stay where they are.
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

/// This rank's end of a channel from `sender` to `receiver`, or NULL. It waits
/// for nobody.
#[unsafe(no_mangle)]
pub extern "C" fn acp_create_ch(sender: c_int, receiver: c_int) -> acp_ch_t {
    let Some(life) = current() else { return note(null_mut(), "this process is no rank") };
    with(null_mut(), |_| {
        let (from, to) = (life.rank_of(sender)?, life.rank_of(receiver)?);
        let own = life.runtime.rank();
        if from == to || (from != own && to != own) {
            return Err("a channel leads from or to this rank, and to another".into());
        }
        let tag = life.make(CHANNELS, (from, to));
        let is_sender = from == own;
        let peer = if is_sender { to } else { from };
        Ok(Box::into_raw(Box::new(chitem { life: life.clone(), peer, tag, is_sender })))
    })
}

/// Ends a channel, on which nothing is under way. 0, or -1.
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

/// The same, to be waited for.
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

/// Begins to send the `size` bytes at `buf`, which must not change before it was
/// waited for.
///
/// # Safety
///
/// `ch` is NULL or an end of a channel; `buf` is readable until then.
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
    // SAFETY: the request keeps the life, and so the communicator.
    let comm = unsafe { lasting(&ch.life) };
    match comm.isend(ch.peer, ch.tag, Bytes(buf.cast(), size)) {
        Ok(sending) => request(ch.life.clone(), Under::Sends(sending)),
        Err(error) => note(null_mut(), error),
    }
}

/// Begins to receive a message into the `size` bytes at `buf`; what has no room
/// there is lost.
///
/// # Safety
///
/// `ch` is NULL or an end of a channel; `buf` is writable, and nobody else
/// uses it, until it was waited for.
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
    // SAFETY: the request keeps the life, and so the communicator.
    let comm = unsafe { lasting(&ch.life) };
    match comm.irecv(ch.peer, ch.tag, Bytes(buf.cast(), size)) {
        Ok(receiving) => request(ch.life.clone(), Under::Receives(receiving, size)),
        Err(error) => note(null_mut(), error),
    }
}

/// Waits for what was begun; of a receive, how many bytes are in the buffer.
/// Otherwise 0, or `(size_t)-1`. The request is over.
///
/// # Safety
///
/// `request` is NULL or a request that was not waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_wait_ch(request: acp_request_t) -> usize {
    if request.is_null() {
        return note(usize::MAX, "there is no request");
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

/// Waits for `count` requests; what `acp_wait_ch` answers for each goes to
/// `sizes`, unless that is NULL. 0, or -1 if one failed.
///
/// # Safety
///
/// There are `count` requests, as for `acp_wait_ch`, and room for as many
/// sizes.
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

/// The communicator of all channels, for as long as its life is kept.
///
/// # Safety
///
/// Whoever uses it keeps the life.
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
const NO_CHANNEL: &str = "there is no channel, or this is its other end";
