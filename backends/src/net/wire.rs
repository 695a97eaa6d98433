//! What a rail asks of a library: one owner, no waiting, no order.
//!
//! ```text
//!  put, get, word, send ─► Answer: 0 │ −EAGAIN: full │ −EINPROGRESS: not yet,
//!                          ask again │ another −errno
//!  ring                 ─► what was posted since goes out
//!  completions          ─► Entry: done │ refused │ gone │ again
//! ```

use core::ffi::{c_int, c_void};
use core::fmt;
use std::os::fd::RawFd;
use tsumugi_core::mem::{Access, Rank};
use tsumugi_core::op::Op;

/// What a data transfer call answers: 0, or the negative of an error.
pub type Answer = isize;

/// See the module. Contexts are numbers below the count that the wire was
/// opened for; each is with the wire once at a time.
#[doc(hidden)]
pub trait Wire: Send + Sized {
    /// The backend's name.
    const NAME: &'static str;

    /// What it says of itself.
    type About: fmt::Debug + fmt::Display + Send + Sync;

    /// The descriptor that becomes readable when something completes.
    fn event(&self) -> Option<RawFd>;

    /// Whether it is all right to sleep on [`event`](Self::event) now.
    fn try_wait(&mut self) -> bool;

    /// Where peers find the endpoint; all of a job's have the same length.
    fn address(&self) -> Result<Vec<u8>, c_int>;

    /// Makes a peer's address known.
    fn insert(&mut self, rank: Rank, address: &[u8]) -> Result<u64, c_int>;

    /// Ends the way to a peer that is lost; what is under way to it may end with
    /// an error. Where packets still go to it, so that it can be told, the peer is
    /// given back.
    fn remove(&mut self, peer: u64) -> Option<u64>;

    /// Registers memory, under `key` if the caller chooses keys.
    ///
    /// # Safety
    ///
    /// The memory stays mapped until [`close_mr`](Self::close_mr), and is
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

    /// A peer's key as the calls want it.
    fn map_key(&mut self, key: &Key, origin: u64) -> Result<u64, c_int>;

    /// Gives a mapped key back.
    fn unmap_key(&mut self, key: u64);

    /// Bytes to a peer. `more`: something will follow in the same breath.
    /// `inject`: they are few enough to be given away.
    ///
    /// # Safety
    ///
    /// `near` is good for `bytes` bytes, and stays until the completion.
    unsafe fn put(
        &mut self,
        near: Near,
        bytes: usize,
        far: Far,
        context: usize,
        more: bool,
        inject: bool,
    ) -> Answer;

    /// Bytes to a peer, which is told of them by a number when they are there:
    /// [`End::Rang`] of one of its buffers for packets. Only of a wire
    /// that was said to do so.
    ///
    /// # Safety
    ///
    /// That of [`put`](Self::put).
    unsafe fn put_ringing(
        &mut self,
        near: Near,
        bytes: usize,
        far: Far,
        context: usize,
        number: u32,
    ) -> Answer {
        let _ = (near, bytes, far, context, number);
        -libc::EOPNOTSUPP as Answer
    }

    /// Bytes from a peer.
    ///
    /// # Safety
    ///
    /// The same.
    unsafe fn get(
        &mut self,
        near: Near,
        bytes: usize,
        far: Far,
        context: usize,
        more: bool,
    ) -> Answer;

    /// A word. `atomics`: a put and a get of it are to be atomics too.
    ///
    /// # Safety
    ///
    /// The same, for all of the nears, which hold what the operation says.
    unsafe fn word(
        &mut self,
        op: &Op,
        nears: Nears,
        far: Far,
        context: usize,
        atomics: bool,
    ) -> Answer;

    /// A packet.
    ///
    /// # Safety
    ///
    /// `near` is good for `bytes` bytes, and stays until the completion.
    unsafe fn send(&mut self, near: Near, bytes: usize, peer: u64, context: usize) -> Answer;

    /// A packet that is read inside the call, and never completes. Of as many
    /// bytes as the wire was said to take so.
    fn give(&mut self, bytes: &[u8], peer: u64) -> Answer {
        let _ = (bytes, peer);
        -libc::EOPNOTSUPP as Answer
    }

    /// A buffer for a packet.
    ///
    /// # Safety
    ///
    /// The same.
    unsafe fn receive(&mut self, near: Near, bytes: usize, context: usize) -> Answer;

    /// The number that the job has got since the wire was opened.
    fn join(&mut self, job: u64) {
        let _ = job;
    }

    /// Sends what the calls before have only written down, if they do that.
    #[inline]
    fn ring(&mut self) {}

    /// Takes completions.
    fn completions(&mut self, entries: &mut [Entry; ENTRIES_MAX]) -> Result<usize, c_int>;

    /// Ends everything: what was in flight is the library's no more. The
    /// registrations end here too.
    fn shut(&mut self, mrs: impl Iterator<Item = Mr>);
}

/// A registration. Not closed on drop: [`Wire::close_mr`].
#[derive(Debug)]
pub struct Mr {
    /// The library's object.
    pub raw: *mut c_void,
    pub desc: *mut c_void,
    pub key: Key,
    /// What an offset is added to.
    pub origin: u64,
}

/// A key as it crosses the network: 64 bits, or a provider's raw bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub bytes: u32,
    pub words: [u64; KEY_WORDS],
}

/// The local end of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    pub at: *mut u8,
    /// What registering it gave.
    pub desc: *mut c_void,
}

/// The words of an operation on a word.
#[derive(Clone, Copy, Debug)]
pub struct Nears {
    pub operand: Near,
    pub compare: Near,
    pub result: Near,
}

/// The remote end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Far {
    pub peer: u64,
    pub addr: u64,
    pub key: u64,
}

/// One completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Of what; a number that nobody has if that is not known.
    pub context: usize,
    pub end: End,
}

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Well; a packet that came has so many bytes.
    Done(usize),
    /// A buffer for packets was used up to say this number.
    Rang(u32),
    /// The device at either end refused it.
    Refused { code: c_int, provider_code: c_int },
    /// Nobody answers: it may have been done or not.
    Gone { code: c_int, provider_code: c_int },
    /// It was not done, for another's fault: post it again.
    Again,
}

impl Key {
    /// A key of 64 bits.
    pub const fn of(key: u64) -> Self {
        let mut words = [0; KEY_WORDS];
        words[0] = key;
        Self { bytes: 8, words }
    }
}

impl Entry {
    pub const EMPTY: Self = Self { context: usize::MAX, end: End::Again };
}

/// Words of the longest raw key.
pub const KEY_WORDS: usize = 10;

/// Bytes of the longest address.
pub const ADDRESS_BYTES_MAX: usize = 256;

/// Completions that are taken at once.
pub const ENTRIES_MAX: usize = 16;
