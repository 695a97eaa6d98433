//! Segmented buffers: see [`SegmentSource`] and [`SegmentSink`].

use super::acp_unregister_memory;
use super::life::{Life, NOT_A_RANK, Reason, current, note};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tsumugi::Rank;
use tsumugi::global::{GlobalAddr, SegmentSink, SegmentSource};

/// An end of a segmented buffer.
pub struct segbufitem {
    end: Mutex<End>,
    life: Arc<Life>,
    peer: Rank,
    tag: u32,
    key: u64,
    shape: (u64, u64),
    is_source: bool,
}

/// An end of a segmented buffer; NULL is no end.
pub type acp_segbuf_t = *mut segbufitem;

enum End {
    New,
    Source(SegmentSource),
    Sink(SegmentSink),
    Closed,
}

/// Makes the end that sends the `segnum` segments of `segsize` bytes at `buf` to
/// `dst_rank`; returns NULL on failure.
///
/// # Safety
///
/// As for `acp_register_memory`, until the end is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_create_src_segbuf(
    dst_rank: c_int,
    buf: *mut c_void,
    segsize: usize,
    segnum: usize,
) -> acp_segbuf_t {
    // SAFETY: the caller's.
    unsafe { create(dst_rank, buf, (segsize, segnum), true) }
}

/// Makes the end that receives from `dst_rank`, which is the rank of the source.
///
/// # Safety
///
/// As for `acp_register_memory`, until the end is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_create_dst_segbuf(
    dst_rank: c_int,
    buf: *mut c_void,
    segsize: usize,
    segnum: usize,
) -> acp_segbuf_t {
    // SAFETY: the caller's.
    unsafe { create(dst_rank, buf, (segsize, segnum), false) }
}

/// Connects with the other end, and waits for it. Returns 0, or 1 on failure.
///
/// # Safety
///
/// `segbuf` is NULL or an end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_connect_segbuf(segbuf: acp_segbuf_t) -> c_int {
    // SAFETY: the caller's.
    let connected = unsafe { with(segbuf, segbufitem::connect) };
    connected.map_or(1, |()| 0)
}

/// Returns 0 if the end is connected, otherwise 1.
///
/// # Safety
///
/// `segbuf` is NULL or an end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_isconnected_segbuf(segbuf: acp_segbuf_t) -> c_int {
    // SAFETY: the caller's.
    let is_connected =
        unsafe { with(segbuf, |this| Ok(matches!(&*this.end(), End::Source(_) | End::Sink(_)))) };
    no(is_connected)
}

/// At the sink: gives the first segment back, so that the source may overwrite it.
/// Returns 0, or 1 on failure.
///
/// # Safety
///
/// `segbuf` is NULL or an end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_ready_segbuf(segbuf: acp_segbuf_t) -> c_int {
    // SAFETY: the caller's.
    let taken = unsafe {
        with(segbuf, |this| match &mut *this.end() {
            End::Sink(sink) => Ok(sink.take()?),
            _ => Err(WRONG_END.into()),
        })
    };
    no(taken)
}

/// At the source: sends the next segment. Returns 0, or 1 if there is no room for
/// it.
///
/// # Safety
///
/// `segbuf` is NULL or an end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_ack_segbuf(segbuf: acp_segbuf_t) -> c_int {
    // SAFETY: the caller's.
    let sent = unsafe {
        with(segbuf, |this| match &mut *this.end() {
            End::Source(source) => Ok(source.try_send()?),
            _ => Err(WRONG_END.into()),
        })
    };
    no(sent)
}

/// Returns 0 if there is a segment that the source may write and send, otherwise 1.
///
/// # Safety
///
/// `segbuf` is NULL or an end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_isready_segbuf(segbuf: acp_segbuf_t) -> c_int {
    // SAFETY: the caller's.
    let is_ready = unsafe {
        with(segbuf, |this| match &mut *this.end() {
            // The earlier contents of the segment must have been sent.
            End::Source(source) => {
                Ok(source.has_room()? && source.tail() - source.sent() < this.shape.1)
            }
            End::Sink(sink) => Ok(sink.tail()? - sink.head() < this.shape.1),
            _ => Err(NOT_CONNECTED.into()),
        })
    };
    no(is_ready)
}

/// Returns 0 if there is a segment that the sink may read, otherwise 1.
///
/// # Safety
///
/// `segbuf` is NULL or an end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_isacked_segbuf(segbuf: acp_segbuf_t) -> c_int {
    // SAFETY: the caller's.
    let is_acked = unsafe {
        with(segbuf, |this| match &mut *this.end() {
            End::Source(source) => Ok(source.tail() > source.head()?),
            End::Sink(sink) => Ok(sink.tail()? > sink.head()),
            _ => Err(NOT_CONNECTED.into()),
        })
    };
    no(is_acked)
}

/// The number of segments that the sink has given back, or -1.
///
/// # Safety
///
/// `segbuf` is NULL or an end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_query_segbuf_head(segbuf: acp_segbuf_t) -> i64 {
    // SAFETY: the caller's.
    let head = unsafe {
        with(segbuf, |this| match &*this.end() {
            End::Source(source) => Ok(source.head()?),
            End::Sink(sink) => Ok(sink.head()),
            _ => Err(NOT_CONNECTED.into()),
        })
    };
    head.map_or(-1, |count| count as i64)
}

/// The number of segments that the source has sent, or -1.
///
/// # Safety
///
/// `segbuf` is NULL or an end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_query_segbuf_tail(segbuf: acp_segbuf_t) -> i64 {
    // SAFETY: the caller's.
    let tail = unsafe {
        with(segbuf, |this| match &*this.end() {
            End::Source(source) => Ok(source.tail()),
            End::Sink(sink) => Ok(sink.tail()?),
            _ => Err(NOT_CONNECTED.into()),
        })
    };
    tail.map_or(-1, |count| count as i64)
}

/// At the source: the number of segments that have arrived in the sink's memory, so
/// that the source may write to these segments again. Returns -1 on failure.
///
/// # Safety
///
/// `segbuf` is NULL or an end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_query_segbuf_sent(segbuf: acp_segbuf_t) -> i64 {
    // SAFETY: the caller's.
    let sent = unsafe {
        with(segbuf, |this| match &mut *this.end() {
            End::Source(source) => Ok(source.sent()),
            _ => Err(WRONG_END.into()),
        })
    };
    sent.map_or(-1, |count| count as i64)
}

/// Ends the connection, and waits until the other end does so too. Returns 0, or 1
/// on failure.
///
/// # Safety
///
/// `segbuf` is NULL or an end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_disconnect_segbuf(segbuf: acp_segbuf_t) -> c_int {
    // SAFETY: the caller's.
    let closed = unsafe {
        with(segbuf, |this| match std::mem::replace(&mut *this.end(), End::Closed) {
            End::Source(source) => Ok(source.close()?),
            End::Sink(sink) => Ok(sink.close()?),
            _ => Err(NOT_CONNECTED.into()),
        })
    };
    closed.map_or(1, |()| 0)
}

/// Frees an end that is not connected. Returns 0, or 1 on failure.
///
/// # Safety
///
/// `segbuf` is NULL or an end; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_free_segbuf(segbuf: acp_segbuf_t) -> c_int {
    // SAFETY: the caller's.
    if unsafe { acp_isconnected_segbuf(segbuf) } == 0 || segbuf.is_null() {
        return note(1, "the segmented buffer is NULL, or is still connected");
    }
    // SAFETY: the caller's: made by `create`.
    let this = unsafe { Box::from_raw(segbuf) };
    acp_unregister_memory(this.key);
    0
}

/// Makes an end.
///
/// # Safety
///
/// As for `acp_register_memory`.
unsafe fn create(
    peer: c_int,
    buf: *mut c_void,
    (bytes, count): (usize, usize),
    is_source: bool,
) -> acp_segbuf_t {
    let Some(life) = current() else { return note(null_mut(), NOT_A_RANK) };
    let made = || {
        let (own, peer) = (life.runtime.rank(), life.rank_of(peer)?);
        if peer == own || bytes == 0 || count == 0 {
            return Err(Reason(format!(
                "{count} segments of {bytes} bytes: both numbers must be at least 1, and the peer \
                 another rank"
            )));
        }
        // SAFETY: the caller's.
        let key = unsafe { life.register(buf as usize, bytes * count)? };
        let pair = if is_source { (own, peer) } else { (peer, own) };
        // The two directions of a pair have different tags.
        let tag = life.make(SEGMENTS, pair) * 2 + u32::from(pair.0 < pair.1);
        let (end, shape) = (Mutex::new(End::New), (bytes as u64, count as u64));
        Ok(segbufitem { end, life: life.clone(), peer, tag, key, shape, is_source })
    };
    match made() {
        Ok(made) => Box::into_raw(Box::new(made)),
        Err(reason) => note(null_mut(), reason.0),
    }
}

impl segbufitem {
    fn connect(&self) -> Result<(), Reason> {
        let mut end = self.end();
        if !matches!(&*end, End::New) {
            return Err("the segmented buffer was connected before".into());
        }
        let (global, comm) = (&self.life.global, &self.life.comms[SEGMENTS]);
        let own = GlobalAddr::from_bits(self.key);
        let way = (comm, self.peer, self.tag);
        *end = match self.is_source {
            true => End::Source(SegmentSource::connect(global, way, own, self.shape)?),
            false => End::Sink(SegmentSink::connect(global, way, own, self.shape)?),
        };
        Ok(())
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `call` with an end, and stores the reason of a failure.
///
/// # Safety
///
/// `segbuf` is NULL or an end.
unsafe fn with<T>(
    segbuf: acp_segbuf_t,
    call: impl FnOnce(&segbufitem) -> Result<T, Reason>,
) -> Option<T> {
    // SAFETY: the caller's.
    let Some(this) = (unsafe { segbuf.as_ref() }) else {
        return note(None, "the segmented buffer is NULL");
    };
    match call(this) {
        Ok(value) => Some(value),
        Err(reason) => note(None, reason.0),
    }
}

/// ACP returns 0 for yes.
fn no(answer: Option<bool>) -> c_int {
    if answer == Some(true) { 0 } else { 1 }
}

impl std::fmt::Debug for segbufitem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "segbufitem({} with {})", self.tag, self.peer)
    }
}

const SEGMENTS: usize = 1;
const WRONG_END: &str = "the segmented buffer is not connected, or this is its other end";
const NOT_CONNECTED: &str = "the segmented buffer is not connected";
