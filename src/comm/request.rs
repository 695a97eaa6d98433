//! Messages under way, as their owner holds them.
//!
//! | handle | its buffer | dropped early |
//! |---|---|---|
//! | of a [`Scope`](super::Scope) | is borrowed | the scope waits for it |
//! | of [`Comm::isend`](crate::Comm::isend), [`Comm::irecv`](crate::Comm::irecv) | is owned | the message goes on, and the buffer lives as long as that |

use crate::msg::{Messages, Under};
use crate::{Buffer, MessageError, Plain, Received};
use std::any::Any;
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};

/// A message that is being sent; it ends when the buffer may be used again,
/// which need not mean that it was received.
pub struct Sending<'a, B: Keep> {
    under: UnderWay<'a, B>,
}

/// A receive that waits for its message.
pub struct Receiving<'a, B: Keep> {
    under: UnderWay<'a, B>,
}

/// What can hold the bytes of a message under way.
///
/// # Safety
///
/// The bytes stay where they are when the value is moved or boxed, and nobody
/// uses them in a way that the message forbids until it has ended.
pub unsafe trait Keep: Sized {
    /// What keeps the bytes alive when the handle goes first; `None` if
    /// somebody else does.
    fn keep(self) -> Option<Box<dyn Any + Send>>;
}

/// Either kind, for [`wait_any`](crate::Comm::wait_any).
pub trait Message {
    /// Whether it has ended; lets it go on if it has not. Never waits.
    fn is_done(&self) -> bool;

    #[doc(hidden)]
    fn under(&self) -> Under;

    #[doc(hidden)]
    fn is_of(&self, messages: &Messages) -> bool;
}

struct UnderWay<'a, B: Keep> {
    messages: &'a Messages,
    under: Under,
    /// Always there; only that a reference in it says nothing about its
    /// memory while others write there.
    buf: MaybeUninit<B>,
}

impl<B: Keep> UnderWay<'_, B> {
    /// Waits for the end.
    #[inline(always)]
    fn finish(self) -> (Result<Received, MessageError>, B) {
        let this = ManuallyDrop::new(self);
        let result = this.messages.finish(this.under);
        // SAFETY: `this` is not dropped, and it is taken once.
        (result, unsafe { this.buf.assume_init_read() })
    }
}

impl<B: Keep> Drop for UnderWay<'_, B> {
    fn drop(&mut self) {
        // SAFETY: taken once. What keeps the bytes alive does not touch them.
        match unsafe { self.buf.assume_init_read() }.keep() {
            Some(kept) => self.messages.abandon(self.under, kept),
            None => self.messages.orphan(self.under),
        }
    }
}

impl<'a, B: Keep> Sending<'a, B> {
    #[inline(always)]
    pub(super) fn new(messages: &'a Messages, under: Under, buf: B) -> Self {
        Self { under: UnderWay { messages, under, buf: MaybeUninit::new(buf) } }
    }

    /// Waits until the buffer may be used again, and gives it back. Blocking.
    ///
    /// # Errors
    ///
    /// [`MessageError::PeerLost`].
    #[inline(always)]
    pub fn wait(self) -> Result<B, MessageError> {
        let (result, buf) = self.under.finish();
        result.map(|_| buf)
    }
}

impl<'a, B: Keep> Receiving<'a, B> {
    #[inline(always)]
    pub(super) fn new(messages: &'a Messages, under: Under, buf: B) -> Self {
        Self { under: UnderWay { messages, under, buf: MaybeUninit::new(buf) } }
    }

    /// Waits for the message, and gives the buffer back. Blocking.
    ///
    /// # Errors
    ///
    /// [`MessageError`].
    #[inline(always)]
    pub fn wait(self) -> Result<(Received, B), MessageError> {
        let (result, buf) = self.under.finish();
        result.map(|received| (received, buf))
    }

    /// Asks that no message be taken any more. [`wait`](Self::wait) then ends
    /// with [`MessageError::Cancelled`], or with a message that was under way
    /// already: one of the two, and no message is lost.
    pub fn cancel(&self) {
        self.under.messages.cancel(self.under.under);
    }
}

impl<B: Keep> Message for Sending<'_, B> {
    fn is_done(&self) -> bool {
        self.under.messages.is_done(self.under.under)
    }

    fn under(&self) -> Under {
        self.under.under
    }

    fn is_of(&self, messages: &Messages) -> bool {
        std::ptr::eq(self.under.messages, messages)
    }
}

impl<B: Keep> Message for Receiving<'_, B> {
    fn is_done(&self) -> bool {
        self.under.messages.is_done(self.under.under)
    }

    fn under(&self) -> Under {
        self.under.under
    }

    fn is_of(&self, messages: &Messages) -> bool {
        std::ptr::eq(self.under.messages, messages)
    }
}

// SAFETY: borrowed for as long as the scope, which waits.
unsafe impl<T: Plain> Keep for &[T] {
    fn keep(self) -> Option<Box<dyn Any + Send>> {
        None
    }
}

// SAFETY: borrowed exclusively for as long as the scope, which waits.
unsafe impl<T: Plain> Keep for &mut [T] {
    fn keep(self) -> Option<Box<dyn Any + Send>> {
        None
    }
}

// SAFETY: the values lie on the heap, and are the handle's until it is gone.
unsafe impl<T: Plain> Keep for Vec<T> {
    fn keep(self) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(self))
    }
}

// SAFETY: the values lie in the partition's heap, and are the handle's.
unsafe impl<T: Plain> Keep for Buffer<T> {
    fn keep(self) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(self))
    }
}

impl<B: Keep> fmt::Debug for Sending<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sending({:?})", self.under.under)
    }
}

impl<B: Keep> fmt::Debug for Receiving<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiving({:?})", self.under.under)
    }
}
