//! Calling functions of other ranks.
//!
//! | | |
//! |---|---|
//! | [`Runtime::handler`] | registers a function that does not block for messages with a number |
//! | [`Runtime::service`] | the same for a function that may block: each message runs on a ULT |
//! | [`Runtime::call`] | sends bytes and waits for the answer |
//! | [`Runtime::call_timeout`] | the same, with a time limit |
//! | [`Runtime::call_buffer`] | the same, without a copy at the caller: the other rank reads the buffer |
//! | [`Runtime::cast`] | sends bytes and does not wait for an answer |
//!
//! Handlers for messages from one rank to another start in the order in which the
//! messages were sent. A handler runs on any thread of the rank that polls: an idle
//! worker, a worker that switches between ULTs, or, when all workers compute, the
//! progress thread of the rank. One handler runs at a time; a call in a handler
//! that would sleep panics. Between ranks of a node there is no other rule.
//!
//! Up to 224 bytes travel in the message itself. The other rank reads longer data,
//! up to 256 KiB, from the caller's memory, and the handler runs when the data has
//! arrived. Answers have at most 224 bytes.

use crate::{Buffer, Error, Rank, Runtime};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tsumugi_core::am::{
    CallPayload, HandlerAnswer, HandlerId, INLINE_BYTES_MAX, Inline, Message, ReplyTo,
};
use tsumugi_core::mem::{Access, LocalAddr, Region};
use tsumugi_runtime::service::am::{Am, Function};

/// A buffer that other ranks may read as long as this value lives.
struct Published {
    registration: PublishedRegion,
    buf: Buffer<u8>,
}

/// The registration of the buffer, which ends when this value is dropped.
struct PublishedRegion {
    runtime: Runtime,
    region: Region,
}

impl Runtime {
    /// Runs `handle` for each message to `id` from now on, from any rank; its
    /// result, at most 224 bytes, is the answer. `handle` must not block or take
    /// long, because the next message waits meanwhile. A call in it that would
    /// sleep panics. If the result is longer, or if `handle` panics, the caller
    /// gets [`CallError::Failed`](crate::CallError::Failed); a panic is also
    /// reported on this rank's standard error, and later messages are still
    /// handled.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> Result<(), tsumugi::Error> {
    /// # tsumugi::run(|rt| {
    /// rt.handler(1, |message| message.bytes.iter().rev().copied().collect::<Vec<u8>>());
    /// rt.barrier()?;
    /// assert_eq!(rt.call(rt.rank(), 1, b"silk")?, b"klis");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn handler<R: AsRef<[u8]>>(
        &self,
        id: u32,
        handle: impl Fn(Message<'_>) -> R + Send + Sync + 'static,
    ) {
        let handle = move |message: Message<'_>| answer_of(handle(message).as_ref());
        self.handle().am().set(HandlerId(id), Function::Here(Box::new(handle)));
    }

    /// Runs `serve` for each message to `id`, on a ULT of its own, so `serve` may
    /// block. ULTs start in any order. A panic of `serve` has the effect of a panic
    /// in a handler.
    pub fn service<R: AsRef<[u8]>>(
        &self,
        id: u32,
        serve: impl Fn(&Runtime, Rank, &[u8]) -> R + Send + Sync + 'static,
    ) {
        let (runtime, serve) = (self.clone(), Arc::new(serve));
        let start = move |from: Rank, bytes: Box<[u8]>, reply_to: Option<ReplyTo>| {
            // The side that takes `reply_to` must answer: the ULT, or this function
            // if the spawn fails.
            let duty = Arc::new(Mutex::new(reply_to));
            let (theirs, serve, own) = (duty.clone(), serve.clone(), runtime.clone());
            let started = runtime.ults().try_spawn(move || {
                let serve = || answer_of(serve(&own, from, &bytes).as_ref());
                let answer = own.handle().am().contain(HandlerId(id), serve);
                settle(own.handle().am(), &theirs, &answer.unwrap_or(HandlerAnswer::Failed));
            });
            if started.is_err() {
                settle(runtime.handle().am(), &duty, &HandlerAnswer::Failed);
            }
        };
        self.handle().am().set(HandlerId(id), Function::Elsewhere(Box::new(start)));
    }

    /// Sends `bytes` to handler `id` of `to` and waits for the answer; a ULT is
    /// suspended meanwhile. Blocking; this includes the wait for room for another
    /// call to that rank.
    ///
    /// # Errors
    ///
    /// - [`Error::Addr`]: the job does not have the rank `to`.
    /// - [`Error::Send`]: `bytes` is longer than a call can carry.
    /// - [`Error::OutOfMemory`], [`Error::Register`]: more than 224 bytes are
    ///   copied to a buffer of the heap first, and this rank has no heap or no
    ///   region for it.
    /// - [`Error::Call`]: with [`CallError::PeerLost`](crate::CallError::PeerLost)
    ///   if `to` has died, [`UnknownHandler`](crate::CallError::UnknownHandler) if
    ///   it has no handler `id`, [`Failed`](crate::CallError::Failed) if the
    ///   handler has panicked, [`BadPayload`](crate::CallError::BadPayload) if `to`
    ///   could not read the bytes, and [`Ended`](crate::CallError::Ended) if this
    ///   rank has ended.
    pub fn call(&self, to: Rank, id: u32, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        self.call_bytes(to, id, bytes, None)
    }

    /// Calls as [`call`](Self::call) does, for at most `limit` from the moment when
    /// there is room; then it returns
    /// [`CallError::Timeout`](crate::CallError::Timeout).
    ///
    /// # Errors
    ///
    /// Those of [`call`](Self::call), and
    /// [`CallError::Timeout`](crate::CallError::Timeout) if the limit has passed.
    pub fn call_timeout(
        &self,
        to: Rank,
        id: u32,
        bytes: &[u8],
        limit: Duration,
    ) -> Result<Vec<u8>, Error> {
        self.call_bytes(to, id, bytes, Some(limit))
    }

    /// Calls as [`call`](Self::call) does, with all of `buf`, which the other rank
    /// reads in place. The buffer is returned with the answer.
    ///
    /// # Errors
    ///
    /// Those of [`call`](Self::call); then the buffer is dropped.
    ///
    /// # Panics
    ///
    /// If the buffer belongs to another rank or another job.
    pub fn call_buffer(
        &self,
        to: Rank,
        id: u32,
        buf: Buffer<u8>,
    ) -> Result<(Buffer<u8>, Vec<u8>), Error> {
        buf.assert_of(self);
        let published = Published::new(self, buf)?;
        let answer = self.handle().am().call(to, HandlerId(id), published.payload(), None, None)?;
        Ok((published.take_back(), answer.to_vec()))
    }

    /// Sends `bytes` to handler `id` of `to`, without an answer. Waits only for
    /// room, and, with more than 224 bytes, until they have been read.
    ///
    /// # Errors
    ///
    /// Those of [`call`](Self::call). Up to 224 bytes are not answered, so no error
    /// of the handler is returned for them.
    pub fn cast(&self, to: Rank, id: u32, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() > INLINE_BYTES_MAX {
            return self.call(to, id, bytes).map(|_| ());
        }
        self.handle().am().cast(to, HandlerId(id), bytes)
    }

    fn call_bytes(
        &self,
        to: Rank,
        id: u32,
        bytes: &[u8],
        limit: Option<Duration>,
    ) -> Result<Vec<u8>, Error> {
        let id = HandlerId(id);
        if bytes.len() <= INLINE_BYTES_MAX {
            let answer =
                self.handle().am().call(to, id, CallPayload::Inline(bytes), None, limit)?;
            return Ok(answer.to_vec());
        }
        // Before there is a copy of the bytes.
        self.handle().am().check_long(bytes.len() as u64)?;
        let mut buf = self.buffer::<u8>(bytes.len())?;
        buf.copy_from_slice(bytes);
        let published = Published::new(self, buf)?;
        let payload = published.payload();
        // After the time limit has passed, the other rank may still read the
        // buffer.
        let kept: Box<dyn Any + Send> = Box::new(published);
        Ok(self.handle().am().call(to, id, payload, Some(kept), limit)?.to_vec())
    }
}

impl Published {
    fn new(runtime: &Runtime, mut buf: Buffer<u8>) -> Result<Self, Error> {
        let (base, bytes) = (NonNull::from(&mut buf[..]).cast(), buf.len() as u64);
        // SAFETY: the memory is in the partition's heap, holds plain bytes, and is
        // not freed before the registration has ended.
        let region = unsafe { runtime.handle().direct().register(base, bytes, Access::Read)? };
        let registration = PublishedRegion { runtime: runtime.clone(), region };
        if let Some(net) = runtime.handle().net() {
            net.register(&region)?;
        }
        Ok(Self { registration, buf })
    }

    fn payload(&self) -> CallPayload<'static> {
        let Region { key, bytes, .. } = self.registration.region;
        CallPayload::Long { from: LocalAddr { key, offset: 0 }, bytes }
    }

    fn take_back(self) -> Buffer<u8> {
        drop(self.registration);
        self.buf
    }
}

impl Drop for PublishedRegion {
    fn drop(&mut self) {
        if let Some(net) = self.runtime.handle().net() {
            net.unregister(self.region.key);
        }
        self.runtime.handle().direct().unregister(self.region.key);
    }
}

fn answer_of(bytes: &[u8]) -> HandlerAnswer {
    Inline::new(bytes).map_or(HandlerAnswer::Failed, HandlerAnswer::Value)
}

/// Sends the answer, if none was sent yet.
fn settle(am: &Am, duty: &Mutex<Option<ReplyTo>>, answer: &HandlerAnswer) {
    let reply_to = duty.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(reply_to) = reply_to {
        am.answer(reply_to, answer);
    }
}
