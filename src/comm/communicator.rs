//! The communicator: blocking calls, and calls whose handle owns the buffer.

use super::owned::Owned;
use super::request::{Message, Receiving, Sending};
use crate::{Error, MessageError, Plain, Rank, Received, Runtime, Source, Tags};
use std::fmt;
use std::sync::Arc;
use tsumugi_core::msg::{Label, MessageCounts};
use tsumugi_runtime::service::messages::{Messages, Under, pattern};

/// A communicator: a message that is sent through it can only be received through
/// the same communicator, so the messages of one part of a program do not mix with
/// those of another.
///
/// Messages from one rank to another through one communicator are received in the
/// order in which they were sent, as far as they match the receives. Any ULT or OS
/// thread may call; a blocking call suspends it.
#[derive(Clone)]
pub struct Comm {
    runtime: Runtime,
    pub(super) context: u16,
}

impl Runtime {
    /// The communicator that exists from the start.
    pub fn comm(&self) -> Comm {
        Comm { runtime: self.clone(), context: 0 }
    }
}

impl Comm {
    /// Makes a new communicator for a part of the program. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank has died, or the job has 65,534 communicators and
    /// [groups](crate::Group). A communicator's number is not used again.
    pub fn duplicate(&self) -> Result<Self, Error> {
        let context = self.runtime.handle().world().claim_context()?;
        Ok(Self { runtime: self.runtime.clone(), context })
    }

    /// Sends `values` to `to`. Returns when `values` may be changed again: at once
    /// for short messages, and for long ones when the other rank has taken them.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// - [`MessageError::NoSuchRank`]: the job does not have the rank `to`.
    /// - [`MessageError::PeerLost`]: `to` has died.
    /// - [`MessageError::Ended`]: this rank has ended, in this call or before it.
    /// - [`MessageError::TooMany`]: this rank has 1,048,576 messages in progress, or 4,096
    ///   with `TSUMUGI_MESSAGES=locked`.
    /// - [`MessageError::Failed`]: the bytes could not be moved.
    ///
    /// That `to` has returned from its main function is no error: other threads of it
    /// may still receive. If none of them does, this call waits for ever, and so does
    /// the end of the job, which waits for all ranks; `tsumugi run` then reports a
    /// standstill, with the ULT that waits.
    pub fn send<T: Plain>(&self, to: Rank, tag: u32, values: &[T]) -> Result<(), MessageError> {
        let label = Label { context: self.context, tag };
        // SAFETY: the values are borrowed until the call returns, or for ever if
        // its ULT is cut off, because no scope ends under a ULT.
        unsafe { self.messages().send(to, label, values.as_ptr().cast(), size_of_val(values)) }
    }

    /// Waits for a message that matches and copies it to the beginning of `values`.
    /// Blocking.
    ///
    /// If the [end of its scheduler](crate::ult::Scheduler#the-end) cuts a ULT off
    /// in this call, a message that has not begun to arrive by then goes to the
    /// next receive that matches. A message that has begun to arrive is in `values`
    /// already, and is lost.
    ///
    /// # Errors
    ///
    /// - [`MessageError::NoSuchRank`]: the job does not have the rank `source`.
    /// - [`MessageError::Truncated`]: the message is longer than `values`, which
    ///   has its beginning; the rest is lost.
    /// - [`MessageError::PeerLost`]: `source`, or the sender of the message, has
    ///   died. A receive from any source goes on when a rank dies that has sent
    ///   nothing.
    /// - [`MessageError::Ended`]: this rank has ended, in this call or before it: the
    ///   call was made by a thread that is no ULT of the rank.
    /// - [`MessageError::TooMany`]: this rank has 1,048,576 messages in progress, or 4,096
    ///   with `TSUMUGI_MESSAGES=locked`.
    /// - [`MessageError::Failed`]: the bytes could not be moved; the content of
    ///   `values` is undefined.
    pub fn recv<T: Plain>(
        &self,
        source: impl Into<Source>,
        tags: impl Into<Tags>,
        values: &mut [T],
    ) -> Result<Received, MessageError> {
        let pattern = pattern(self.context, source.into(), tags.into());
        let (at, room) = (values.as_mut_ptr().cast(), size_of_val(values));
        // SAFETY: the values are borrowed exclusively until the call returns, or
        // for ever if its ULT is cut off, because no scope ends under a ULT. Any
        // bytes are valid values of a `Plain` type.
        unsafe { self.messages().receive(pattern, at, room) }
    }

    /// Waits for a message that matches, of any length. Blocking. If its ULT is cut
    /// off, the same holds as for [`recv`](Self::recv).
    ///
    /// # Errors
    ///
    /// Those of [`recv`](Self::recv) except [`MessageError::Truncated`];
    /// [`MessageError::Uneven`] if the length of the message is not a multiple of
    /// the size of a `T`: then the message is lost.
    pub fn recv_vec<T: Plain>(
        &self,
        source: impl Into<Source>,
        tags: impl Into<Tags>,
    ) -> Result<(Received, Vec<T>), MessageError> {
        let pattern = pattern(self.context, source.into(), tags.into());
        let mut values = Vec::<T>::new();
        // Values of size zero need no memory, but the message may still have bytes.
        let mut odd = Vec::<u8>::new();
        let value_bytes = size_of::<T>();
        let room_for = |bytes: usize| match (value_bytes > 0).then(|| bytes.div_ceil(value_bytes)) {
            Some(count) => {
                values.reserve_exact(count);
                Ok::<_, MessageError>(values.as_mut_ptr().cast())
            }
            None => {
                odd.reserve_exact(bytes);
                Ok(odd.as_mut_ptr())
            }
        };
        // SAFETY: the memory has as many bytes as were reserved, and both vectors
        // are local to this function.
        let received = unsafe { self.messages().receive_whole(pattern, room_for) }?;
        let Received { source, tag, bytes } = received;
        let len = received.values::<T>();
        let len = len.ok_or(MessageError::Uneven { source, tag, bytes, value_bytes })?;
        // SAFETY: `len` values were received, and any bytes are valid values.
        unsafe { values.set_len(len) };
        Ok((received, values))
    }

    /// Sends and receives at the same time, so that ranks that exchange messages
    /// cannot deadlock. Blocking.
    ///
    /// # Errors
    ///
    /// Those of [`send`](Self::send) and of [`recv`](Self::recv); both operations
    /// have ended then.
    pub fn send_recv<T: Plain, U: Plain>(
        &self,
        to: Rank,
        tag: u32,
        values: &[T],
        source: impl Into<Source>,
        tags: impl Into<Tags>,
        into: &mut [U],
    ) -> Result<Received, MessageError> {
        let (at, room) = (into.as_mut_ptr().cast(), size_of_val(into));
        let (source, tags) = (source.into(), tags.into());
        // SAFETY: the values are borrowed exclusively until the call returns. Any bytes
        // are valid values of a `Plain` type.
        unsafe { self.send_recv_at((to, tag, values), (source, tags), (at, room)) }
    }

    /// Begins to send the values; the handle owns `values` until the send has
    /// ended.
    ///
    /// # Errors
    ///
    /// [`MessageError::NoSuchRank`], [`MessageError::PeerLost`],
    /// [`MessageError::Ended`] and [`MessageError::TooMany`], as for
    /// [`send`](Self::send). Errors that occur
    /// later are returned by [`Sending::wait`].
    #[inline(always)]
    pub fn isend<B: Owned>(
        &self,
        to: Rank,
        tag: u32,
        values: B,
    ) -> Result<Sending<'_, B>, MessageError> {
        let (at, bytes) = values.bytes();
        let label = Label { context: self.context, tag };
        // SAFETY: the handle keeps the bytes, or passes them on to the message when
        // it is dropped.
        let under = unsafe { self.messages().begin_send(to, label, at, bytes) }?;
        Ok(Sending::new(self.messages(), under, values))
    }

    /// Begins to receive into `values`, which the handle owns until the receive has
    /// ended.
    ///
    /// # Errors
    ///
    /// [`MessageError::NoSuchRank`], [`MessageError::PeerLost`],
    /// [`MessageError::Ended`] and [`MessageError::TooMany`], as for
    /// [`recv`](Self::recv). Errors that occur
    /// later are returned by [`Receiving::wait`].
    #[inline(always)]
    pub fn irecv<B: Owned>(
        &self,
        source: impl Into<Source>,
        tags: impl Into<Tags>,
        mut values: B,
    ) -> Result<Receiving<'_, B>, MessageError> {
        let (at, bytes) = values.bytes_mut();
        let pattern = pattern(self.context, source.into(), tags.into());
        // SAFETY: the handle keeps the bytes, or passes them on to the message when
        // it is dropped.
        let under = unsafe { self.messages().begin_receive(pattern, at, bytes) }?;
        Ok(Receiving::new(self.messages(), under, values))
    }

    /// Waits until one of `messages` has ended, and returns its index. Blocking.
    ///
    /// # Panics
    ///
    /// If `messages` is empty, or if one belongs to another rank.
    pub fn wait_any(&self, messages: &[&dyn Message]) -> usize {
        assert!(!messages.is_empty(), "wait_any needs at least one message");
        self.assert_own(messages);
        self.messages().wait_any(messages.iter().map(|message| message.under()))
    }

    /// Waits until all of `messages` have ended; then their results are available
    /// without waiting. Blocking.
    ///
    /// # Panics
    ///
    /// If one belongs to another rank.
    pub fn wait_all(&self, messages: &[&dyn Message]) {
        self.assert_own(messages);
        self.messages().wait_all(messages.iter().map(|message| message.under()));
    }

    /// Waits until there is a message that matches, and does not receive it.
    /// Another thread may receive it. Blocking.
    ///
    /// # Errors
    ///
    /// [`MessageError::NoSuchRank`] if the job does not have the rank `source`;
    /// [`MessageError::PeerLost`] if it has died and no message of it matches;
    /// [`MessageError::Ended`] if this rank has ended.
    pub fn probe(
        &self,
        source: impl Into<Source>,
        tags: impl Into<Tags>,
    ) -> Result<Received, MessageError> {
        self.messages().probe(pattern(self.context, source.into(), tags.into()))
    }

    /// Returns a message that matches, if there is one, without receiving it. Never
    /// waits.
    pub fn try_probe(&self, source: impl Into<Source>, tags: impl Into<Tags>) -> Option<Received> {
        self.messages().try_probe(pattern(self.context, source.into(), tags.into()))
    }

    /// The numbers of messages that this rank has sent so far, through all
    /// communicators, by path and length.
    pub fn counts(&self) -> MessageCounts {
        self.messages().counts()
    }

    /// The rank of the caller.
    pub fn rank(&self) -> Rank {
        self.runtime.rank()
    }

    /// The number of ranks of the communicator, which are all ranks of the job.
    pub fn size(&self) -> u32 {
        self.runtime.size()
    }

    /// Begins to send.
    ///
    /// # Safety
    ///
    /// The values stay where and as they are until the send has been finished.
    pub(super) unsafe fn begin_send<T: Plain>(
        &self,
        to: Rank,
        tag: u32,
        values: &[T],
    ) -> Result<Under, MessageError> {
        let label = Label { context: self.context, tag };
        // SAFETY: the caller's.
        unsafe {
            self.messages().begin_send(to, label, values.as_ptr().cast(), size_of_val(values))
        }
    }

    /// Begins to receive.
    ///
    /// # Safety
    ///
    /// No other code uses the values until the receive has been finished.
    pub(super) unsafe fn begin_receive<T: Plain>(
        &self,
        source: Source,
        tags: Tags,
        values: &mut [T],
    ) -> Result<Under, MessageError> {
        let pattern = pattern(self.context, source, tags);
        let (at, room) = (values.as_mut_ptr().cast(), size_of_val(values));
        // SAFETY: the caller's.
        unsafe { self.messages().begin_receive(pattern, at, room) }
    }

    /// Checks that the communicator belongs to `runtime`.
    ///
    /// # Panics
    ///
    /// If it belongs to another rank, or to another job.
    pub(crate) fn assert_of(&self, runtime: &Runtime) {
        runtime.assert_owns("the communicator", &self.runtime);
    }

    fn assert_own(&self, messages: &[&dyn Message]) {
        let other = messages.iter().position(|message| !message.is_of(self.messages()));
        if let Some(index) = other {
            panic!("message {index} does not belong to {}", self.rank());
        }
    }

    pub(super) fn context(&self) -> u16 {
        self.context
    }

    pub(super) fn messages(&self) -> &Arc<Messages> {
        self.runtime.handle().messages()
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Comm({} of {}, {})", self.context, self.size(), self.rank())
    }
}
