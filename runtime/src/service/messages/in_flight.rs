//! Messages in flight that own their buffer, in the rank's host table: their end wakes a
//! task or calls a function.
//!
//! ```text
//!  slot of the host table ◄── begin: reserves it, then begins the request
//!    │ owns the buffer and the number of the request
//!    ▼
//!  the request ends ──► its entry has the tag ──► the slot: waker or callback takes the
//!                                                 result and the buffer
//! ```

use super::Received;
use super::drive::{Messages, Under};
use crate::block_pool::PoolBox;
use crate::engine_call::hint;
use crate::error::MessageError;
use crate::panic;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};
use tsumugi_core::completion::{OnEnd, Ticket, Why};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::msg::{Label, Pattern, RequestId};
use tsumugi_core::tag::Tag;
use tsumugi_ult::Here;

/// A send or a receive that has not begun, with the place of its buffer.
#[derive(Clone, Copy, Debug)]
pub enum MessageCall {
    /// A send of the bytes.
    Send {
        /// The receiver.
        to: Rank,
        /// The label of the message.
        label: Label,
        /// The first byte.
        at: *const u8,
        /// The number of bytes.
        bytes: usize,
    },
    /// A receive.
    Receive {
        /// The messages that match.
        pattern: Pattern<Rank>,
        /// The place of the first byte.
        at: *mut u8,
        /// The room for bytes.
        room: usize,
    },
}

/// The end of a message, and its buffer.
pub type MessageEnd<B> = (Result<Received, MessageError>, B);

/// What a caller makes of the end of a message.
pub trait EndOf<B>: 'static {
    /// The result.
    type Output: Send + 'static;

    /// Makes the result.
    fn of(end: MessageEnd<B>) -> Self::Output;
}

/// The state of a message that has begun.
#[derive(Debug)]
pub enum MessageBegun<'a, B: Send + 'static> {
    /// It has ended inside the call.
    Ended(MessageEnd<B>),
    /// It is in flight.
    InFlight(MessageInFlight<'a, B>),
}

/// A message in flight that owns its buffer. If a receive is dropped, it takes no message
/// that has not begun to arrive; a send that is dropped goes on.
#[must_use = "the result of a message that is dropped is lost"]
pub struct MessageInFlight<'a, B: Send + 'static> {
    messages: &'a Messages,
    under: Under,
    is_receive: bool,
    /// Taken by the calls that consume this.
    ticket: Option<Ticket<'a, PoolBox<OwnedMessage<B>>>>,
}

/// What a message in flight owns.
struct OwnedMessage<B> {
    messages: Arc<Messages>,
    under: Option<Under>,
    /// Always initialized. `MaybeUninit`, so that a reference in the value asserts nothing
    /// about its memory while other threads write there.
    buf: MaybeUninit<B>,
}

/// A message with a callback; lies in its slot.
struct ThenMessage<B, D, F>(PoolBox<(OwnedMessage<B>, F)>, PhantomData<fn() -> D>);

impl Messages {
    /// Begins a message that owns `buf`. Never waits.
    ///
    /// # Errors
    ///
    /// `buf`: there is no room, and nothing happened. Other errors are the end of the
    /// message.
    ///
    /// # Safety
    ///
    /// The bytes of `call` stay where they are, and valid, until `buf` is dropped or given
    /// back, however it is moved; nothing else uses them until then.
    pub unsafe fn begin_owned<B: Send + 'static>(
        self: &Arc<Self>,
        call: MessageCall,
        buf: B,
    ) -> Result<MessageBegun<'_, B>, (B, Why)> {
        let (tables, no_tag) = (self.host().tables(), |buf| (buf, Why::NoTag));
        // SAFETY: the box is in a slot beside the pool, or in a ticket that borrows both.
        let boxed = unsafe { tables.blocks().try_box(hint(), OwnedMessage::new(self, buf)) };
        let boxed = boxed.map_err(|owned| no_tag(owned.into_buffer()))?;
        let ticket = tables.completions().try_begin(hint(), boxed);
        let ticket = ticket.map_err(|boxed| no_tag(boxed.into_inner().into_buffer()))?;
        // SAFETY: the slot has the box, and no other thread knows the tag.
        let place = unsafe { tables.completions().buffer_of(ticket.tag()).as_mut() };
        let place: &mut PoolBox<OwnedMessage<B>> = place;
        // SAFETY: the caller's promise; the place is the message's.
        let begun = unsafe { self.begin_in(call, ticket.tag(), &mut place.under) };
        // SAFETY: no request refers to the tag.
        let back = |ticket: Ticket<'_, _>| unsafe { ticket.retract() };
        match begun {
            Ok(Some(Under::Ended(result))) => {
                let owned: PoolBox<OwnedMessage<B>> = back(ticket);
                Ok(MessageBegun::Ended((result, owned.into_inner().into_buffer())))
            }
            Ok(Some(under)) => {
                let is_receive = matches!(call, MessageCall::Receive { .. });
                let ticket = Some(ticket);
                let messages = &**self;
                Ok(MessageBegun::InFlight(MessageInFlight { messages, under, is_receive, ticket }))
            }
            Ok(None) => Ok(MessageBegun::Ended(back(ticket).into_inner().end())),
            Err(why) => Err((back(ticket).into_inner().into_buffer(), why)),
        }
    }

    /// Begins a message that owns `buf`; `then` gets its end. Never waits.
    ///
    /// # Errors
    ///
    /// Both, as for [`begin_owned`](Self::begin_owned).
    ///
    /// # Safety
    ///
    /// As for [`begin_owned`](Self::begin_owned).
    pub unsafe fn begin_owned_then<B, D, F>(
        self: &Arc<Self>,
        call: MessageCall,
        buf: B,
        then: F,
    ) -> Result<(), (B, F, Why)>
    where
        B: Send + 'static,
        D: EndOf<B>,
        F: FnOnce(D::Output) + Send + 'static,
    {
        let tables = self.host().tables();
        let parts = |(owned, then): (OwnedMessage<B>, F)| (owned.into_buffer(), then);
        let no_tag = |(buf, then)| (buf, then, Why::NoTag);
        // SAFETY: the box is in a slot beside the pool, or with the thread that ends the
        // message, which keeps both.
        let boxed =
            unsafe { tables.blocks().try_box(hint(), (OwnedMessage::new(self, buf), then)) };
        let boxed = boxed.map_err(|both| no_tag(parts(both)))?;
        let tag = tables
            .completions()
            .try_begin_owned(hint(), ThenMessage::<_, D, _>(boxed, PhantomData));
        let tag = tag.map_err(|ThenMessage(boxed, _)| no_tag(parts(boxed.into_inner())))?;
        // SAFETY: the slot has the callback, and no other thread knows the tag.
        let place = unsafe { tables.completions().buffer_of::<ThenMessage<B, D, F>>(tag).as_mut() };
        // SAFETY: the caller's promise; the place is the message's.
        let begun = unsafe { self.begin_in(call, tag, &mut place.0.0.under) };
        if let Ok(Some(Under::Way(..))) = begun {
            return Ok(());
        }
        // SAFETY: no request refers to the tag, and the slot has such a callback.
        let back = unsafe { tables.completions().retract_owned::<ThenMessage<B, D, F>>(tag) };
        let (owned, then) = back.0.into_inner();
        let end = match begun {
            Ok(Some(Under::Ended(result))) => (result, owned.into_buffer()),
            Ok(_) => owned.end(),
            Err(why) => return Err((owned.into_buffer(), then, why)),
        };
        let end = D::of(end);
        panic::call_back(|| then(end));
        Ok(())
    }

    /// Begins a message and lets its end end the operation with this tag. `Ok(None)`: the
    /// request at `place` has ended, and does not refer to the tag.
    ///
    /// # Safety
    ///
    /// As for [`begin_owned`](Self::begin_owned). After `Ok` with a request that is under
    /// way, the caller does not use `place` any more.
    unsafe fn begin_in(
        &self,
        call: MessageCall,
        tag: Tag,
        place: &mut Option<Under>,
    ) -> Result<Option<Under>, Why> {
        // SAFETY: the caller's promise.
        let begun = unsafe {
            match call {
                MessageCall::Send { to, label, at, bytes } => self.try_send(to, label, at, bytes),
                MessageCall::Receive { pattern, at, room } => self.try_receive(pattern, at, room),
            }
        };
        let under = begun?.unwrap_or_else(|error| Under::Ended(Err(error)));
        let Under::Way(request, _) = under else { return Ok(Some(under)) };
        *place = Some(under);
        Ok(self.attach(request, tag).then_some(under))
    }

    fn attach(&self, request: RequestId, tag: Tag) -> bool {
        self.lock().attach(request, tag)
    }
}

impl<B: Send + 'static> MessageInFlight<'_, B> {
    /// Whether the message has ended; makes progress on it if it has not. Never waits.
    pub fn is_done(&self) -> bool {
        let is_done = || self.ticket.as_ref().is_none_or(Ticket::is_done);
        is_done() || {
            self.messages.make_progress();
            is_done()
        }
    }

    /// Waits for the end. Blocking.
    pub fn wait(mut self) -> MessageEnd<B> {
        let ticket = self.ticket.take().expect("a message has a ticket until it has ended");
        ticket.wait(&Here).buf.into_inner().end()
    }

    /// Polls for the end, as a future.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<MessageEnd<B>> {
        if self.ticket.as_ref().is_some_and(|ticket| !ticket.is_done()) {
            self.messages.make_progress();
        }
        let ticket = self.ticket.as_mut().expect("a message is not polled after its end");
        let outcome = std::task::ready!(Pin::new(ticket).poll(context));
        self.ticket = None;
        Poll::Ready(outcome.buf.into_inner().end())
    }
}

impl<B: Send + 'static> Drop for MessageInFlight<'_, B> {
    fn drop(&mut self) {
        if self.is_receive && self.ticket.as_ref().is_some_and(|ticket| !ticket.is_done()) {
            self.messages.cancel(self.under);
        }
    }
}

impl<B> OwnedMessage<B> {
    fn new(messages: &Arc<Messages>, buf: B) -> Self {
        Self { messages: messages.clone(), under: None, buf: MaybeUninit::new(buf) }
    }

    /// The end of a message whose request has ended.
    fn end(mut self) -> MessageEnd<B> {
        let under = self.under.take().expect("the message has begun");
        let result = self.messages.finish(under);
        (result, self.into_buffer())
    }

    /// The buffer of a message without a request.
    fn into_buffer(self) -> B {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the value is not used again, and its parts are taken once.
        unsafe {
            NonNull::from(&mut this.messages).drop_in_place();
            this.buf.assume_init_read()
        }
    }
}

/// The request of a message that was dropped has ended.
impl<B> Drop for OwnedMessage<B> {
    fn drop(&mut self) {
        if let Some(under) = self.under.take() {
            let _ = self.messages.finish(under);
        }
        // SAFETY: initialized, and not used again.
        unsafe { self.buf.assume_init_drop() };
    }
}

impl<B, D, F> OnEnd for ThenMessage<B, D, F>
where
    B: Send + 'static,
    D: EndOf<B>,
    F: FnOnce(D::Output) + Send + 'static,
{
    fn ended(self, _: Result<u64, AddrError>) {
        let (owned, then) = self.0.into_inner();
        let end = D::of(owned.end());
        panic::call_back(|| then(end));
    }
}

impl<B: Send + 'static> fmt::Debug for MessageInFlight<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageInFlight({:?})", self.under)
    }
}
