//! Handlers by their numbers.

use super::cell::Inline;
use super::outcome::{Answer, HandlerId};
use crate::mem::Rank;
use core::fmt;

/// A request, as its handler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Who sent it.
    pub from: Rank,
    /// For which handler.
    pub handler: HandlerId,
    /// What it brings. Gone when the handler returns.
    pub bytes: &'a [u8],
    /// Whether an answer is waited for.
    pub wants_reply: bool,
}

/// What a handler returns. For a cast it makes no difference.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    /// The answer.
    Now(Answer),
    /// Somebody will answer later.
    Later,
}

/// The functions that requests may call, by their numbers: handler `n` is
/// entry `n`. `C` is what they work on.
pub struct Handlers<'h, C>(pub &'h [Option<Handler<C>>]);

/// One of them. It must not block.
pub type Handler<C> = fn(&mut C, Message<'_>) -> Reply;

impl<C> Handlers<'_, C> {
    /// Calls the handler; an unknown number is answered as such.
    pub fn run(&self, context: &mut C, message: Message<'_>) -> Reply {
        match self.0.get(message.handler.0 as usize) {
            Some(Some(handler)) => handler(context, message),
            _ => Reply::Now(Answer::UnknownHandler),
        }
    }
}

impl Reply {
    /// These bytes.
    pub const fn value(bytes: Inline) -> Self {
        Self::Now(Answer::Value(bytes))
    }

    /// No bytes.
    pub const fn empty() -> Self {
        Self::value(Inline::EMPTY)
    }
}

impl<C> Clone for Handlers<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Handlers<'_, C> {}

impl<C> fmt::Debug for Handlers<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handlers({})", self.0.iter().flatten().count())
    }
}
