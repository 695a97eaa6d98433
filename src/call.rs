//! Calling functions of other ranks.
//!
//! | | |
//! |---|---|
//! | [`Runtime::handler`] | gives messages of a number a function that does not block |
//! | [`Runtime::service`] | the same, but each message is a ULT, which may |
//! | [`Runtime::call`] | sends bytes and waits for the answer |
//! | [`Runtime::call_within`] | the same, with a time limit |
//! | [`Runtime::call_buffer`] | the same, without a copy here: the buffer is read by the other rank |
//! | [`Runtime::cast`] | sends bytes and goes on |
//!
//! Handlers for messages of one rank to another start in the order in which
//! those were sent. They run on whatever thread of the rank polls: an idle
//! worker, one that changes ULTs, or, when all workers compute, a helper thread
//! of the rank. One runs at a time; a call in it that would sleep panics.
//! Between ranks of a node there is no other rule.
//!
//! Up to 224 bytes travel in the message. What is longer, up to 256 KiB, is
//! read by the other rank from memory of this one, and the handler runs once
//! it is there. Answers are of up to 224 bytes.

use crate::am::{Am, Function};
use crate::{Buffer, Error, Rank, Runtime};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tsumugi_core::am::{Answer, HandlerId, INLINE_BYTES_MAX, Inline, Message, Payload, ReplyTo};
use tsumugi_core::mem::{Access, LocalAddr, Region};

/// A buffer that other ranks may read as long as this lives.
struct Published {
    registration: Registration,
    buf: Buffer<u8>,
}

/// Ends when it is dropped.
struct Registration {
    runtime: Runtime,
    region: Region,
}

impl Runtime {
    /// Runs `handle` for each message to `id` from now on, whoever sends it;
    /// its result, up to 224 bytes, is the answer. It must not block, nor take
    /// long: the next message waits. A call that would put it to sleep panics.
    /// Longer answers and panics are answered with
    /// [`CallError::Failed`](crate::CallError::Failed); a panic is also reported
    /// on this rank's standard error, and messages go on being handled.
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
        self.am().set(HandlerId(id), Function::Here(Box::new(handle)));
    }

    /// The same for what may block: each message becomes a ULT of its own.
    /// ULTs start in any order. A panic of `serve` is that of a handler.
    pub fn service<R: AsRef<[u8]>>(
        &self,
        id: u32,
        serve: impl Fn(&Runtime, Rank, &[u8]) -> R + Send + Sync + 'static,
    ) {
        let (runtime, serve) = (self.clone(), Arc::new(serve));
        let start = move |from: Rank, bytes: Box<[u8]>, reply_to: Option<ReplyTo>| {
            // The duty to answer is whoever's takes it: the ULT's, or ours.
            let duty = Arc::new(Mutex::new(reply_to));
            let (theirs, serve, own) = (duty.clone(), serve.clone(), runtime.clone());
            let started = runtime.ults().try_spawn(move || {
                let serve = || answer_of(serve(&own, from, &bytes).as_ref());
                let answer = own.am().contain(HandlerId(id), serve);
                settle(own.am(), &theirs, &answer.unwrap_or(Answer::Failed));
            });
            if started.is_err() {
                settle(runtime.am(), &duty, &Answer::Failed);
            }
        };
        self.am().set(HandlerId(id), Function::Elsewhere(Box::new(start)));
    }

    /// Sends `bytes` to handler `id` of `to` and waits for the answer; a ULT
    /// sleeps meanwhile. Blocking; also while there is no room for more calls
    /// to that rank.
    ///
    /// # Errors
    ///
    /// [`Error::Call`]; [`Error::Send`] for what is too long;
    /// [`Error::Addr`] for a rank that does not exist. When this rank has ended,
    /// [`CallError::Ended`](crate::CallError::Ended).
    pub fn call(&self, to: Rank, id: u32, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        self.call_bytes(to, id, bytes, None)
    }

    /// The same, for at most `limit` from when there is room: then
    /// [`CallError::Timeout`](crate::CallError::Timeout).
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn call_within(
        &self,
        to: Rank,
        id: u32,
        bytes: &[u8],
        limit: Duration,
    ) -> Result<Vec<u8>, Error> {
        self.call_bytes(to, id, bytes, Some(limit))
    }

    /// As [`call`](Self::call), with all of `buf`, which the other rank reads
    /// where it is. It comes back with the answer.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call). The buffer is dropped then.
    pub fn call_buffer(
        &self,
        to: Rank,
        id: u32,
        buf: Buffer<u8>,
    ) -> Result<(Buffer<u8>, Vec<u8>), Error> {
        let published = Published::new(self, buf)?;
        let answer = self.am().call(to, HandlerId(id), published.payload(), None, None)?;
        Ok((published.take_back(), answer.to_vec()))
    }

    /// Sends `bytes` to handler `id` of `to`, whose answer nobody wants. Waits
    /// only for room, and, with more than 224 bytes, until they are read.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn cast(&self, to: Rank, id: u32, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() > INLINE_BYTES_MAX {
            return self.call(to, id, bytes).map(|_| ());
        }
        self.am().cast(to, HandlerId(id), bytes)
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
            let answer = self.am().call(to, id, Payload::Inline(bytes), None, limit)?;
            return Ok(answer.to_vec());
        }
        let mut buf = self.buffer::<u8>(bytes.len())?;
        buf.copy_from_slice(bytes);
        let published = Published::new(self, buf)?;
        let payload = published.payload();
        // Past the time limit the other rank may still read it.
        let kept: Box<dyn Any + Send> = Box::new(published);
        Ok(self.am().call(to, id, payload, Some(kept), limit)?.to_vec())
    }
}

impl Published {
    fn new(runtime: &Runtime, mut buf: Buffer<u8>) -> Result<Self, Error> {
        let (base, bytes) = (NonNull::from(&mut buf[..]).cast(), buf.len() as u64);
        // SAFETY: memory of the partition's heap, which holds plain bytes and
        // is not given back before the registration has ended.
        let region = unsafe { runtime.direct.register(base, bytes, Access::Read)? };
        let registration = Registration { runtime: runtime.clone(), region };
        if let Some(far) = &runtime.far {
            far.register(&region)?;
        }
        Ok(Self { registration, buf })
    }

    fn payload(&self) -> Payload<'static> {
        let Region { key, bytes, .. } = self.registration.region;
        Payload::Long { from: LocalAddr { key, offset: 0 }, bytes }
    }

    fn take_back(self) -> Buffer<u8> {
        drop(self.registration);
        self.buf
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(far) = &self.runtime.far {
            far.unregister(self.region.key);
        }
        self.runtime.direct.unregister(self.region.key);
    }
}

fn answer_of(bytes: &[u8]) -> Answer {
    Inline::new(bytes).map_or(Answer::Failed, Answer::Value)
}

/// Answers, if nobody has.
fn settle(am: &Am, duty: &Mutex<Option<ReplyTo>>, answer: &Answer) {
    let reply_to = duty.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(reply_to) = reply_to {
        am.answer(reply_to, answer);
    }
}
