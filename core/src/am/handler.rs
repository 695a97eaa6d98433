//! Handlers, addressed by their numbers.

use super::cell::Inline;
use super::outcome::{HandlerAnswer, HandlerId};
use crate::mem::Rank;
use core::fmt;

/// A request, as its handler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The rank that sent the request.
    pub from: Rank,
    /// The number of the handler.
    pub handler: HandlerId,
    /// The payload. It is gone when the handler returns.
    pub bytes: &'a [u8],
    /// Whether the sender waits for an answer.
    pub wants_reply: bool,
}

/// What a handler returns. For a cast it is ignored.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    /// The handler's answer.
    Now(HandlerAnswer),
    /// The answer comes later, from another part of the program.
    Later,
}

/// The functions that requests may call, by their numbers: handler `n` is entry
/// `n`. `C` is the data that they work on.
pub struct HandlerTable<'h, C>(pub &'h [Option<HandlerFn<C>>]);

/// A function that handles requests. It must not block.
pub type HandlerFn<C> = fn(&mut C, Message<'_>) -> Reply;

impl<C> HandlerTable<'_, C> {
    /// Calls the handler; the answer for an unknown number is `UnknownHandler`.
    pub fn run(&self, context: &mut C, message: Message<'_>) -> Reply {
        match self.0.get(message.handler.0 as usize) {
            Some(Some(handler)) => handler(context, message),
            _ => Reply::Now(HandlerAnswer::UnknownHandler),
        }
    }
}

impl Reply {
    /// Answers with these bytes.
    pub const fn value(bytes: Inline) -> Self {
        Self::Now(HandlerAnswer::Value(bytes))
    }

    /// Answers with no bytes.
    pub const fn empty() -> Self {
        Self::value(Inline::EMPTY)
    }
}

impl<C> Clone for HandlerTable<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for HandlerTable<'_, C> {}

impl<C> fmt::Debug for HandlerTable<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandlerTable({})", self.0.iter().flatten().count())
    }
}
