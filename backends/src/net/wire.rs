//! The interface of a NIC endpoint to a library: one owner at a time, no waiting, no
//! order.
//!
//! ```text
//!  put, get, word, send ─► PostResult: 0 │ −EAGAIN: full │ −EINPROGRESS: not yet,
//!                          ask again │ another −errno
//!  ring_doorbell        ─► what was posted since goes out
//!  completions          ─► CompletionEntry: done │ immediate │ refused │ gone │ again
//! ```
//!
//! What a wire promises:
//!
//! - **Completion.** Each request that was taken (0) ends with one entry with its
//!   context, except [`inject_packet`](NetWire::inject_packet), which has none. Its
//!   buffers are the wire's until then. Whether a put has landed at its completion is
//!   a trait of the domain, found by a trial.
//! - **Order.** None, neither of puts nor of packets.
//! - **Threads.** One call at a time, each from any thread.
//! - **Errors.** `-EAGAIN` and `-EINPROGRESS`: nothing was taken, and the layer above
//!   tries again. `-ENOSYS` and `-EOPNOTSUPP`: the operation is not supported. Errors
//!   of a peer that is not there yet (`first_contact`) are tried again for 3 s. Any
//!   other error of a post, and the entry `gone`, mean that the peer is lost;
//!   `refused` makes the layer above read the peer's directory again.

use core::ffi::{c_int, c_void};
use core::fmt;
use std::os::fd::RawFd;
use tsumugi_core::mem::{Access, Rank};
use tsumugi_core::op::Op;

/// The result of a data transfer call: 0, or the negative of an error.
pub type PostResult = isize;

/// How far a peer that is lost is shut out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutOut {
    /// The connection that was made to the peer. Other ranks on its host may live.
    Rank,
    /// Also the connections that its host has made, and those that it would make: the
    /// ranks there are given up.
    Host,
}

/// The interface; see the module. Contexts are numbers below the count that the
/// wire was opened for; each context can be in use by the wire only once at a time.
pub trait NetWire: Send + Sized {
    /// The backend's name.
    const NAME: &'static str;

    /// The description of the opened device.
    type Description: fmt::Debug + fmt::Display + Send + Sync;

    /// The descriptor that becomes readable when something completes.
    fn event(&self) -> Option<RawFd>;

    /// Prepares a sleep: returns whether the caller may sleep on
    /// [`event`](Self::event) now.
    fn try_wait(&mut self) -> bool;

    /// The address of the endpoint for peers; all addresses of a job have the same
    /// length.
    fn address(&self) -> Result<Vec<u8>, c_int>;

    /// Adds a peer with its address.
    fn insert(&mut self, rank: Rank, address: &[u8]) -> Result<u64, c_int>;

    /// Whether a peer may write here with which this end has never made contact.
    const MEETS_UNKNOWN: bool = false;

    /// Closes the connection to a peer that is lost; operations in flight to it may
    /// end with an error. Nothing that it has sent lands later, as far as the wire can
    /// prevent that. If packets can still be sent to it, so that it can be informed,
    /// its number is returned.
    fn remove(&mut self, peer: u64, shut_out: ShutOut) -> Option<u64>;

    /// Sends a notice to a peer that was removed, by another way than packets take, so
    /// that no connection has to be opened for it. The notice may be lost. Returns
    /// false if there is no such way: then a packet is the notice.
    fn send_notice(&mut self, bytes: &[u8], peer: u64) -> bool {
        let _ = (bytes, peer);
        false
    }

    /// Takes a notice that has come that way, and returns its length; more bytes than
    /// `into` has are cut off. Anyone may have sent it.
    fn take_notice(&mut self, into: &mut [u8]) -> Option<usize> {
        let _ = into;
        None
    }

    /// Registers memory, under `key` if the caller chooses keys.
    ///
    /// # Safety
    ///
    /// The memory must stay mapped until [`close_mr`](Self::close_mr), and must be
    /// nothing but bytes that peers may change as far as `access` says.
    unsafe fn register(
        &mut self,
        base: *mut u8,
        bytes: u64,
        access: Access,
        key: u64,
    ) -> Result<Mr, c_int>;

    /// Ends a registration.
    fn close_mr(&mut self, mr: &Mr);

    /// Makes the key that the calls take of a peer's key.
    fn map_key(&mut self, key: &WireKey, origin: u64) -> Result<u64, c_int>;

    /// Releases a mapped key.
    fn unmap_key(&mut self, key: u64);

    /// Writes bytes to a peer. `more`: a further request follows immediately.
    /// `inject`: the bytes are few enough to be copied inside the call.
    ///
    /// # Safety
    ///
    /// `local` must be valid for `bytes` bytes, and stay so until the completion.
    unsafe fn put(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        more: bool,
        inject: bool,
    ) -> PostResult;

    /// Writes bytes to a peer, which is then notified with a number (immediate data):
    /// [`CompletionStatus::Immediate`] of one of its receive buffers. May be called only
    /// if the wire was reported to support it.
    ///
    /// # Safety
    ///
    /// That of [`put`](Self::put).
    unsafe fn put_with_immediate(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        number: u32,
    ) -> PostResult {
        let _ = (local, bytes, remote, context, number);
        -libc::EOPNOTSUPP as PostResult
    }

    /// Reads bytes from a peer.
    ///
    /// # Safety
    ///
    /// That of [`put`](Self::put).
    unsafe fn get(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        more: bool,
    ) -> PostResult;

    /// Does an operation on a word. `atomics`: a put and a get of it must be
    /// atomics too.
    ///
    /// # Safety
    ///
    /// That of [`put`](Self::put), for all words of `locals`, which must hold the
    /// operands of the operation.
    unsafe fn word(
        &mut self,
        op: &Op,
        locals: WordBuffers,
        remote: RemoteBuffer,
        context: usize,
        atomics: bool,
    ) -> PostResult;

    /// Sends a packet.
    ///
    /// # Safety
    ///
    /// `local` must be valid for `bytes` bytes, and stay so until the completion.
    unsafe fn send(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        peer: u64,
        context: usize,
    ) -> PostResult;

    /// Injects a packet: it is copied inside the call, and never completes. It may
    /// have as many bytes as the wire was reported to support.
    fn inject_packet(&mut self, bytes: &[u8], peer: u64) -> PostResult {
        let _ = (bytes, peer);
        -libc::EOPNOTSUPP as PostResult
    }

    /// Posts a receive buffer for a packet.
    ///
    /// # Safety
    ///
    /// That of [`send`](Self::send).
    unsafe fn receive(&mut self, local: LocalBuffer, bytes: usize, context: usize) -> PostResult;

    /// Sets the number that the job has got since the wire was opened.
    fn join(&mut self, job: u64) {
        let _ = job;
    }

    /// Sends the requests that the calls before have only written down, if the wire
    /// does that.
    #[inline]
    fn ring_doorbell(&mut self) {}

    /// Takes completions.
    fn completions(&mut self, entries: &mut [CompletionEntry; ENTRIES_MAX])
    -> Result<usize, c_int>;

    /// Ends everything: the library does not use operations in flight any more. The
    /// registrations end here too.
    fn shut(&mut self, mrs: impl Iterator<Item = Mr>);
}

/// A registration. Not closed on drop: [`NetWire::close_mr`].
#[derive(Debug)]
pub struct Mr {
    /// The library's object.
    pub raw: *mut c_void,
    /// The descriptor that local ends of transfers pass to the library.
    pub desc: *mut c_void,
    /// The key for peers.
    pub key: WireKey,
    /// The address to which an offset is added.
    pub origin: u64,
}

/// A key as it crosses the network: 64 bits, or a provider's raw bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireKey {
    /// The bytes that are used.
    pub bytes: u32,
    /// The key, in its first bytes.
    pub words: [u64; KEY_WORDS],
}

/// The local end of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct LocalBuffer {
    /// Where the bytes are.
    pub at: *mut u8,
    /// The descriptor that the registration returned.
    pub desc: *mut c_void,
}

/// The words of an operation on a word.
#[derive(Clone, Copy, Debug)]
pub struct WordBuffers {
    /// The operand.
    pub operand: LocalBuffer,
    /// The value with which a compare-and-swap compares.
    pub compare: LocalBuffer,
    /// The place for the old value.
    pub result: LocalBuffer,
}

/// The remote end of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteBuffer {
    /// The number of the peer, from [`NetWire::insert`].
    pub peer: u64,
    /// The address, which is the origin of the registration plus an offset.
    pub addr: u64,
    /// The key, from [`NetWire::map_key`].
    pub key: u64,
}

/// One completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionEntry {
    /// The context of the request; a number that no context has if it is not known.
    pub context: usize,
    /// How the request ended.
    pub end: CompletionStatus,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionStatus {
    /// With success; for a packet that came, the number of its bytes.
    Done(usize),
    /// A receive buffer was used up to deliver this number.
    Immediate(u32),
    /// The device at one of the ends refused the request.
    Refused {
        /// The library's error.
        code: c_int,
        /// The provider's own number for it.
        provider_code: c_int,
    },
    /// There is no answer: the request may have been done or not.
    Gone {
        /// The library's error.
        code: c_int,
        /// The provider's own number for it.
        provider_code: c_int,
    },
    /// The request was not done, because another one failed: it must be posted
    /// again.
    Again,
}

impl WireKey {
    /// A key of 64 bits.
    pub const fn of(key: u64) -> Self {
        let mut words = [0; KEY_WORDS];
        words[0] = key;
        Self { bytes: 8, words }
    }
}

impl CompletionEntry {
    /// No completion.
    pub const EMPTY: Self = Self { context: usize::MAX, end: CompletionStatus::Again };
}

/// Words of the longest raw key.
pub const KEY_WORDS: usize = 10;

/// Bytes of the longest address.
pub const ADDRESS_BYTES_MAX: usize = 256;

/// The number of completions that are taken at once.
pub const ENTRIES_MAX: usize = 16;
