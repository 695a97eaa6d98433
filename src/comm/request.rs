//! Handles of messages in progress.
//!
//! | handle | its buffer | when it is dropped early |
//! |---|---|---|
//! | of a [`Scope`](super::Scope) | is borrowed | the scope waits for it |
//! | of [`Comm::isend`](crate::Comm::isend), [`Comm::irecv`](crate::Comm::irecv) | is owned | the message goes on, and the buffer lives as long as the message |

use crate::{Buffer, MessageError, Plain, Received};
use std::any::Any;
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use tsumugi_runtime::service::messages::{Messages, Under};

/// A message that is being sent. It ends when the buffer may be used again, which
/// need not mean that the message was received.
pub struct Sending<'a, B: Keep> {
    under: UnderWay<'a, B>,
}

/// A receive that waits for its message.
pub struct Receiving<'a, B: Keep> {
    under: UnderWay<'a, B>,
}

/// A buffer that can hold the bytes of a message in progress.
///
/// # Safety
///
/// The bytes stay where they are when the value is moved or boxed, and until the
/// message has ended no code uses them in a way that the message forbids.
pub unsafe trait Keep: Sized {
    /// A box that keeps the bytes alive when the handle is dropped first; `None` if
    /// they stay alive without it.
    fn keep(self) -> Option<Box<dyn Any + Send>>;
}

/// A send or a receive, for [`wait_any`](crate::Comm::wait_any).
pub trait Message {
    /// Whether the message has ended; makes progress on it if it has not. Never
    /// waits.
    fn is_done(&self) -> bool;

    #[doc(hidden)]
    fn under(&self) -> Under;

    #[doc(hidden)]
    fn is_of(&self, messages: &Messages) -> bool;
}

struct UnderWay<'a, B: Keep> {
    messages: &'a Messages,
    under: Under,
    /// Always initialized. `MaybeUninit`, so that a reference in the value asserts
    /// nothing about its memory while other threads write there.
    buf: MaybeUninit<B>,
}

impl<B: Keep> UnderWay<'_, B> {
    /// Waits for the end of the message and returns the buffer.
    #[inline(always)]
    fn finish(self) -> (Result<Received, MessageError>, B) {
        let this = ManuallyDrop::new(self);
        let result = this.messages.finish(this.under);
        // SAFETY: `this` is not dropped, and the buffer is taken once.
        (result, unsafe { this.buf.assume_init_read() })
    }
}

impl<B: Keep> Drop for UnderWay<'_, B> {
    fn drop(&mut self) {
        // SAFETY: the buffer is taken once. The value that keeps the bytes alive
        // does not access them.
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

    /// Waits until the buffer may be used again, and returns it. Blocking.
    ///
    /// # Errors
    ///
    /// [`MessageError::PeerLost`] if the receiver has died before it took the
    /// message; [`MessageError::Ended`] if this rank has ended before that;
    /// [`MessageError::Failed`] if the bytes could not be moved.
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

    /// Waits for the message, and returns the buffer with it. Blocking.
    ///
    /// # Errors
    ///
    /// - [`MessageError::Truncated`]: the message is longer than the buffer, which
    ///   has its beginning; the rest is lost.
    /// - [`MessageError::PeerLost`]: the source of the receive, or the sender of
    ///   the message, has died.
    /// - [`MessageError::Failed`]: the bytes could not be moved; the content of the
    ///   buffer is undefined.
    /// - [`MessageError::Ended`]: this rank has ended before the message came.
    /// - [`MessageError::Cancelled`]: the receive was [cancelled](Self::cancel)
    ///   before a message came.
    #[inline(always)]
    pub fn wait(self) -> Result<(Received, B), MessageError> {
        let (result, buf) = self.under.finish();
        result.map(|received| (received, buf))
    }

    /// Requests that the receive take no message any more. [`wait`](Self::wait)
    /// then ends with [`MessageError::Cancelled`], or with a message that was
    /// arriving already. No message is lost.
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

// SAFETY: the slice is borrowed for as long as the scope, which waits for the
// message.
unsafe impl<T: Plain> Keep for &[T] {
    fn keep(self) -> Option<Box<dyn Any + Send>> {
        None
    }
}

// SAFETY: the slice is borrowed exclusively for as long as the scope, which waits
// for the message.
unsafe impl<T: Plain> Keep for &mut [T] {
    fn keep(self) -> Option<Box<dyn Any + Send>> {
        None
    }
}

// SAFETY: the values lie on the heap, and only the handle uses them until it is
// dropped.
unsafe impl<T: Plain> Keep for Vec<T> {
    fn keep(self) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(self))
    }
}

// SAFETY: the values lie in the partition's heap, and only the handle uses them.
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
