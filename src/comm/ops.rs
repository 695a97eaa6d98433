//! Messages as [values](crate::deferred).

use super::owned::Owned;
use crate::deferred::{Begin, Begun, Deferred, Flight, Internal};
use crate::{Comm, MessageError, Rank, Received, Source, Tags};
use std::fmt;
use std::marker::PhantomData;
use std::task::{Context, Poll};
use tsumugi_core::completion::Why;
use tsumugi_core::msg::{Label, Pattern};
use tsumugi_runtime::service::messages::{
    EndOf, MessageBegun, MessageCall, MessageEnd, MessageInFlight, pattern,
};

/// The sends and receives of a communicator, each as a [value](crate::deferred).
#[derive(Clone, Copy)]
pub struct CommOps<'a> {
    comm: &'a Comm,
}

/// A send or a receive that owns its buffer; `D` says which: [`Sends`] or [`Receives`].
pub struct OfMessage<'a, B, D> {
    comm: &'a Comm,
    call: Direction,
    buf: B,
    direction: PhantomData<fn() -> D>,
}

/// A send: its result is the buffer.
#[derive(Debug)]
pub struct Sends;

/// A receive: its result is a description of the message, and the buffer.
#[derive(Debug)]
pub struct Receives;

#[derive(Clone, Copy, Debug)]
enum Direction {
    Send { to: Rank, label: Label },
    Receive { pattern: Pattern<Rank> },
}

/// A message in flight.
#[doc(hidden)]
#[derive(Debug)]
pub struct MessageFlight<'a, B: Send + 'static, D>(MessageInFlight<'a, B>, PhantomData<fn() -> D>);

impl Comm {
    /// The messages of this communicator as values, which are waited for, awaited, tried,
    /// or given a function: see [`deferred`](crate::deferred).
    #[inline(always)]
    pub fn ops(&self) -> CommOps<'_> {
        CommOps { comm: self }
    }
}

impl<'a> CommOps<'a> {
    /// Sends `values` to `to`, as [`Comm::send`]. The result is
    /// `Result<B, MessageError>`: the values, when they may be changed again. A send that
    /// is dropped in flight goes on.
    ///
    /// A message that finds no room is [`Busy`](crate::Busy) if it was only to begin.
    pub fn send<B: Owned + Send + 'static>(
        self,
        to: Rank,
        tag: u32,
        values: B,
    ) -> Deferred<OfMessage<'a, B, Sends>> {
        let label = Label { context: self.comm.context(), tag };
        self.deferred(Direction::Send { to, label }, values)
    }

    /// Receives a message that matches into `values`, as [`Comm::recv`]. The result is
    /// `Result<(Received, B), MessageError>`. A receive that is dropped in flight takes no
    /// message that has not begun to arrive.
    ///
    /// A receive that finds no room is [`Busy`](crate::Busy) if it was only to begin.
    pub fn recv<B: Owned + Send + 'static>(
        self,
        source: impl Into<Source>,
        tags: impl Into<Tags>,
        values: B,
    ) -> Deferred<OfMessage<'a, B, Receives>> {
        let pattern = pattern(self.comm.context(), source.into(), tags.into());
        self.deferred(Direction::Receive { pattern }, values)
    }

    fn deferred<B, D>(self, call: Direction, buf: B) -> Deferred<OfMessage<'a, B, D>>
    where
        B: Owned + Send + 'static,
        D: EndOf<B>,
    {
        Deferred::new(OfMessage { comm: self.comm, call, buf, direction: PhantomData })
    }
}

impl<'a, B: Owned + Send + 'static, D: EndOf<B>> OfMessage<'a, B, D> {
    /// The message, with the place of its bytes.
    fn call(&mut self) -> MessageCall {
        match self.call {
            Direction::Send { to, label } => {
                let (at, bytes) = self.buf.bytes();
                MessageCall::Send { to, label, at, bytes }
            }
            Direction::Receive { pattern } => {
                let (at, room) = self.buf.bytes_mut();
                MessageCall::Receive { pattern, at, room }
            }
        }
    }
}

impl<B, D> Internal for OfMessage<'_, B, D> {}

impl<'a, B: Owned + Send + 'static, D: EndOf<B>> Begin for OfMessage<'a, B, D> {
    type Output = D::Output;
    type Flight = MessageFlight<'a, B, D>;

    fn wait(mut self) -> D::Output {
        let messages = self.comm.messages();
        let call = self.call();
        // SAFETY: the buffer is owned here until the message has ended; if the ULT is cut
        // off in the call, its frame stays.
        let result = unsafe {
            match call {
                MessageCall::Send { to, label, at, bytes } => {
                    let sent = messages.send(to, label, at, bytes);
                    sent.map(|()| Received { source: to, tag: label.tag, bytes })
                }
                MessageCall::Receive { pattern, at, room } => messages.receive(pattern, at, room),
            }
        };
        D::of((result, self.buf))
    }

    fn try_begin(mut self) -> Result<Begun<Self>, (Self, Why)> {
        let call = self.call();
        let Self { comm, call: direction, buf, .. } = self;
        // SAFETY: `Keep` promises that the bytes stay where they are when `buf` is moved;
        // only the message uses it until it is given back or dropped.
        match unsafe { comm.messages().begin_owned(call, buf) } {
            Ok(MessageBegun::Ended(end)) => Ok(Begun::Done(D::of(end))),
            Ok(MessageBegun::InFlight(message)) => {
                Ok(Begun::Pending(MessageFlight(message, PhantomData)))
            }
            Err((buf, why)) => {
                Err((Self { comm, call: direction, buf, direction: PhantomData }, why))
            }
        }
    }

    fn then<F>(mut self, then: F) -> Result<(), (Self, F, Why)>
    where
        F: FnOnce(D::Output) + Send + 'static,
    {
        let call = self.call();
        let Self { comm, call: direction, buf, .. } = self;
        // SAFETY: as in `try_begin`.
        let begun = unsafe { comm.messages().begin_owned_then::<B, D, F>(call, buf, then) };
        begun.map_err(|(buf, then, why)| {
            (Self { comm, call: direction, buf, direction: PhantomData }, then, why)
        })
    }

    fn make_room(&self) {
        self.comm.messages().make_progress();
    }
}

impl<B: Send + 'static, D: EndOf<B>> Flight for MessageFlight<'_, B, D> {
    type Output = D::Output;

    fn is_done(&self) -> bool {
        self.0.is_done()
    }

    fn wait(self) -> D::Output {
        D::of(self.0.wait())
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<D::Output> {
        self.0.poll_end(context).map(D::of)
    }
}

impl<B: Send + 'static> EndOf<B> for Sends {
    type Output = Result<B, MessageError>;

    fn of((result, buf): MessageEnd<B>) -> Self::Output {
        result.map(|_| buf)
    }
}

impl<B: Send + 'static> EndOf<B> for Receives {
    type Output = Result<(Received, B), MessageError>;

    fn of((result, buf): MessageEnd<B>) -> Self::Output {
        result.map(|received| (received, buf))
    }
}

impl fmt::Debug for CommOps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommOps({:?})", self.comm)
    }
}

impl<B, D> fmt::Debug for OfMessage<'_, B, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OfMessage({:?})", self.call)
    }
}
