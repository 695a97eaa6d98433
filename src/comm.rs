//! Messages between ranks: sent and received by source and tag.
//!
//! | | |
//! |---|---|
//! | [`Comm::send`], [`Comm::recv`], [`Comm::recv_vec`], [`Comm::send_recv`] | wait |
//! | [`Comm::scope`]: [`Scope::isend`], [`Scope::irecv`] | begin, with borrowed buffers |
//! | [`Comm::isend`], [`Comm::irecv`] | begin, with buffers of their own |
//! | [`Comm::probe`], [`Comm::try_probe`] | look |
//!
//! What the memory of a rank's partition holds (its [`Buffer`]s, what lies on
//! ULT stacks, and all of its heap where the program has taken
//! ours for its global allocator) is copied once, by one of the two ranks. All
//! else works, too: it is copied twice.
//!
//! ```
//! use tsumugi::{Error, Rank, Source, Tags};
//!
//! fn main() -> Result<(), Error> {
//!     tsumugi::run(|rt| {
//!         let comm = rt.comm();
//!         comm.send(Rank(0), 7, &[f64::from(rt.rank().0)])?;
//!         if rt.rank() == Rank(0) {
//!             for _ in rt.ranks() {
//!                 let mut value = [0.0];
//!                 let received = comm.recv(Source::Any, Tags::Is(7), &mut value)?;
//!                 println!("{} from {}", value[0], received.source);
//!             }
//!         }
//!         Ok(())
//!     })
//! }
//! ```
//!
//! Progress: while a ULT of the rank waits for a message, or a worker has
//! nothing else to do, messages move. Long ones also do when all workers
//! compute.

mod request;
mod scope;

pub use request::{Keep, Message, Receiving, Sending};
pub use scope::Scope;

use crate::msg::{Messages, Under, pattern};
use crate::{Buffer, Error, MessageError, Plain, Rank, Received, Runtime, Source, Tags};
use std::fmt;
use std::sync::Arc;
use tsumugi_core::msg::{Counts, Label};

/// A number that keeps the messages of one part of a program from those of
/// another: what is sent through one is received through the same.
///
/// Messages of one rank to another, through one communicator, are received in
/// the order in which they were sent, as far as the receives fit them. Any ULT
/// or OS thread may call; what blocks puts it to sleep.
#[derive(Clone)]
pub struct Comm {
    runtime: Runtime,
    context: u16,
}

impl Runtime {
    /// The communicator that is there from the start.
    pub fn comm(&self) -> Comm {
        Comm { runtime: self.clone(), context: 0 }
    }
}

impl Comm {
    /// A communicator of its own for part of the program. Collective.
    ///
    /// # Errors
    ///
    /// [`MessageError::NoContext`] after 65,535 of them; [`Error::Coll`].
    pub fn duplicate(&self) -> Result<Self, Error> {
        let context = self.messages().next_context()?;
        self.runtime.barrier()?;
        Ok(Self { runtime: self.runtime.clone(), context })
    }

    /// Sends `values` to `to`. Returns when they may be changed again: short
    /// messages at once, long ones when the other rank has taken them.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// [`MessageError::NoSuchRank`], [`MessageError::PeerLost`],
    /// [`MessageError::TooMany`].
    pub fn send<T: Plain>(&self, to: Rank, tag: u32, values: &[T]) -> Result<(), MessageError> {
        let label = Label { context: self.context, tag };
        // SAFETY: the values are borrowed until it returns, or for good if its
        // ULT is cut off: no scope ends under a ULT.
        unsafe { self.messages().send(to, label, values.as_ptr().cast(), size_of_val(values)) }
    }

    /// Waits for a message that fits and copies it to the beginning of
    /// `values`. Blocking.
    ///
    /// Of a ULT that the [end of its scheduler](crate::ult::Scheduler#the-end) cuts
    /// off in this call, what has not begun to come by then is for the next receive
    /// that it fits. What has is in `values` already, and lost.
    ///
    /// # Errors
    ///
    /// [`MessageError`].
    pub fn recv<T: Plain>(
        &self,
        source: impl Into<Source>,
        tags: impl Into<Tags>,
        values: &mut [T],
    ) -> Result<Received, MessageError> {
        let pattern = pattern(self.context, source.into(), tags.into());
        let (at, room) = (values.as_mut_ptr().cast(), size_of_val(values));
        // SAFETY: the values are borrowed exclusively until it returns, or for
        // good if its ULT is cut off: no scope ends under a ULT. Any bytes are
        // values of a `Plain` type.
        unsafe { self.messages().receive(pattern, at, room) }
    }

    /// Waits for a message that fits, whatever its length. Blocking. Cut off, as
    /// [`recv`](Self::recv).
    ///
    /// # Errors
    ///
    /// [`MessageError`]; [`MessageError::Uneven`], and the message is gone.
    pub fn recv_vec<T: Plain>(
        &self,
        source: impl Into<Source>,
        tags: impl Into<Tags>,
    ) -> Result<(Received, Vec<T>), MessageError> {
        let pattern = pattern(self.context, source.into(), tags.into());
        let mut values = Vec::<T>::new();
        // Values of no size take no bytes, but a message may have some.
        let mut odd = Vec::<u8>::new();
        let value_bytes = size_of::<T>();
        let room_for = |bytes: usize| match (value_bytes > 0).then(|| bytes.div_ceil(value_bytes)) {
            Some(count) => {
                values.reserve_exact(count);
                values.as_mut_ptr().cast()
            }
            None => {
                odd.reserve_exact(bytes);
                odd.as_mut_ptr()
            }
        };
        // SAFETY: as many bytes as were reserved; both vectors are ours.
        let received = unsafe { self.messages().receive_whole(pattern, room_for) }?;
        let Received { source, tag, bytes } = received;
        let len = received.values::<T>();
        let len = len.ok_or(MessageError::Uneven { source, tag, bytes, value_bytes })?;
        // SAFETY: as many were received, and any bytes are values.
        unsafe { values.set_len(len) };
        Ok((received, values))
    }

    /// Sends and receives, in whatever order the others need it. Blocking.
    ///
    /// # Errors
    ///
    /// Those of [`send`](Self::send) and of [`recv`](Self::recv); both have
    /// ended.
    pub fn send_recv<T: Plain, U: Plain>(
        &self,
        to: Rank,
        tag: u32,
        values: &[T],
        source: impl Into<Source>,
        tags: impl Into<Tags>,
        into: &mut [U],
    ) -> Result<Received, MessageError> {
        // Before a message has what this waits for.
        tsumugi_ult::assert_may_block("message");
        // SAFETY: both are borrowed until it returns, and waited for.
        let receiving = unsafe { self.begin_receive(source.into(), tags.into(), into) }?;
        let sent = self.send(to, tag, values);
        if sent.is_err() {
            self.messages().cancel(receiving);
        }
        let received = self.messages().finish(receiving);
        sent.and(received)
    }

    /// Begins to send what `values` hold, which the handle owns until then.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    #[inline(always)]
    pub fn isend<B: Owned>(
        &self,
        to: Rank,
        tag: u32,
        values: B,
    ) -> Result<Sending<'_, B>, MessageError> {
        let (at, bytes) = values.bytes();
        let label = Label { context: self.context, tag };
        // SAFETY: the handle, or what it leaves behind, keeps the bytes.
        let under = unsafe { self.messages().begin_send(to, label, at, bytes) }?;
        Ok(Sending::new(self.messages(), under, values))
    }

    /// Begins to receive into `values`, which the handle owns until then.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    #[inline(always)]
    pub fn irecv<B: Owned>(
        &self,
        source: impl Into<Source>,
        tags: impl Into<Tags>,
        mut values: B,
    ) -> Result<Receiving<'_, B>, MessageError> {
        let (at, bytes) = values.bytes_mut();
        let pattern = pattern(self.context, source.into(), tags.into());
        // SAFETY: the handle, or what it leaves behind, keeps the bytes.
        let under = unsafe { self.messages().begin_receive(pattern, at, bytes) }?;
        Ok(Receiving::new(self.messages(), under, values))
    }

    /// Waits until one of `messages` has ended, and answers which. Blocking.
    ///
    /// # Panics
    ///
    /// If there are none, or if one is another rank's.
    pub fn wait_any(&self, messages: &[&dyn Message]) -> usize {
        assert!(!messages.is_empty(), "no message to wait for");
        self.assert_own(messages);
        self.messages().wait_any(messages.iter().map(|message| message.under()))
    }

    /// Waits until all of `messages` have ended; their results are then to be
    /// had without waiting. Blocking.
    ///
    /// # Panics
    ///
    /// If one is another rank's.
    pub fn wait_all(&self, messages: &[&dyn Message]) {
        self.assert_own(messages);
        self.messages().wait_all(messages.iter().map(|message| message.under()));
    }

    /// Waits until there is a message that fits, and leaves it there. Another
    /// thread may receive it. Blocking.
    ///
    /// # Errors
    ///
    /// [`MessageError::PeerLost`], [`MessageError::NoSuchRank`].
    pub fn probe(
        &self,
        source: impl Into<Source>,
        tags: impl Into<Tags>,
    ) -> Result<Received, MessageError> {
        self.messages().probe(pattern(self.context, source.into(), tags.into()))
    }

    /// A message that fits, if there is one. Never waits.
    pub fn try_probe(&self, source: impl Into<Source>, tags: impl Into<Tags>) -> Option<Received> {
        self.messages().try_probe(pattern(self.context, source.into(), tags.into()))
    }

    /// What this rank has sent so far, through all communicators: which way,
    /// and how long.
    pub fn counts(&self) -> Counts {
        self.messages().counts()
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.runtime.rank()
    }

    /// Ranks of the communicator: all of the job.
    pub fn size(&self) -> u32 {
        self.runtime.size()
    }

    /// # Safety
    ///
    /// The values stay as they are until the send was finished.
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

    /// # Safety
    ///
    /// Nobody uses the values until the receive was finished.
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

    fn assert_own(&self, messages: &[&dyn Message]) {
        let other = messages.iter().position(|message| !message.is_of(self.messages()));
        assert!(other.is_none(), "message {other:?} is not of {}", self.rank());
    }

    pub(super) fn messages(&self) -> &Arc<Messages> {
        self.runtime.messages()
    }
}

/// Values that a message under way can own.
pub trait Owned: Keep {
    #[doc(hidden)]
    fn bytes(&self) -> (*const u8, usize);
    #[doc(hidden)]
    fn bytes_mut(&mut self) -> (*mut u8, usize);
}

impl<T: Plain> Owned for Vec<T> {
    fn bytes(&self) -> (*const u8, usize) {
        (self.as_ptr().cast(), size_of_val(&**self))
    }

    fn bytes_mut(&mut self) -> (*mut u8, usize) {
        (self.as_mut_ptr().cast(), size_of_val(&**self))
    }
}

impl<T: Plain> Owned for Buffer<T> {
    fn bytes(&self) -> (*const u8, usize) {
        (self.as_ptr().cast(), size_of_val(&**self))
    }

    fn bytes_mut(&mut self) -> (*mut u8, usize) {
        (self.as_mut_ptr().cast(), size_of_val(&**self))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Comm({} of {}, {})", self.context, self.size(), self.rank())
    }
}
