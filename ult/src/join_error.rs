//! Why a ULT has no value for its joiner.

use crate::host::PanicPayload;
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

/// Why a joined ULT has returned no value: it has panicked, or its scheduler ended first.
///
/// Its message has the message of the panic, if that is a text, as that of `panic!` is.
pub struct JoinError {
    payload: PanicPayload,
}

// SAFETY: through a shared reference the payload is only asked for its type and read as a
// text or as `Cancelled`, which all are `Sync`.
unsafe impl Sync for JoinError {}

/// The panic payload of a ULT that did not end before its scheduler did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl JoinError {
    #[inline(always)]
    pub(crate) fn of_panic(payload: PanicPayload) -> Self {
        Self { payload }
    }

    #[cold]
    pub(crate) fn cut_off() -> Self {
        Self { payload: Box::new(Cancelled) }
    }

    /// Whether the scheduler ended before the ULT did, and cut it off.
    pub fn is_cancelled(&self) -> bool {
        self.payload.is::<Cancelled>()
    }

    /// Whether the ULT has panicked.
    pub fn is_panic(&self) -> bool {
        !self.is_cancelled()
    }

    /// The message of the panic; `None` if the payload is no text.
    pub fn message(&self) -> Option<&str> {
        let owned = || self.payload.downcast_ref::<String>().map(String::as_str);
        self.payload.downcast_ref::<&'static str>().copied().or_else(owned)
    }

    /// The payload of the panic, for `std::panic::resume_unwind` or a downcast; after a
    /// cut it is a [`Cancelled`].
    pub fn into_panic(self) -> Box<dyn core::any::Any + Send + 'static> {
        self.payload
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message() {
            Some(message) => write!(f, "a thread has panicked: {message}"),
            None if self.is_cancelled() => Cancelled.fmt(f),
            None => f.write_str("a thread has panicked"),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message() {
            _ if self.is_cancelled() => f.write_str("JoinError::Cancelled"),
            Some(message) => write!(f, "JoinError::Panic({message:?})"),
            None => f.write_str("JoinError::Panic(..)"),
        }
    }
}

impl core::error::Error for JoinError {}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the scheduler ended before the ULT")
    }
}

impl core::error::Error for Cancelled {}
