//! The errors of a channel's ends. Their enums are exhaustive, as those of `std::sync::mpsc` are.

use core::fmt;
use tsumugi_core::wait::Interrupted;

/// All receivers are gone. The error has the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// Why a value was not sent at once. The error has the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room in the channel.
    Full(T),
    /// All receivers are gone.
    Disconnected(T),
}

/// Why a value was not sent within a limit. The error has the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendWithinError<T> {
    /// There was no room before the limit ended the wait.
    Interrupted(Interrupted, T),
    /// All receivers are gone.
    Disconnected(T),
}

/// All senders are gone, and the channel is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

/// Why `try_recv` returned no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// The channel is empty.
    Empty,
    /// The channel is empty for good: all senders are gone.
    Disconnected,
}

/// Why there was no value within a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvWithinError {
    /// No value came before the limit ended the wait.
    Interrupted(Interrupted),
    /// The channel is empty for good: all senders are gone.
    Disconnected,
}

impl<T> TrySendError<T> {
    /// Returns the value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Disconnected(value) => value,
        }
    }
}

impl<T> SendWithinError<T> {
    /// Returns the value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Interrupted(_, value) | Self::Disconnected(value) => value,
        }
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NO_RECEIVERS)
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the channel is full",
            Self::Disconnected(_) => NO_RECEIVERS,
        })
    }
}

impl<T> fmt::Display for SendWithinError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted(why, _) => write!(f, "the channel is full: {why}"),
            Self::Disconnected(_) => f.write_str(NO_RECEIVERS),
        }
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NO_SENDERS)
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the channel is empty",
            Self::Disconnected => NO_SENDERS,
        })
    }
}

impl fmt::Display for RecvWithinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted(why) => write!(f, "the channel is empty: {why}"),
            Self::Disconnected => f.write_str(NO_SENDERS),
        }
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError")
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full",
            Self::Disconnected(_) => "Disconnected",
        })
    }
}

impl<T> fmt::Debug for SendWithinError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted(why, _) => write!(f, "Interrupted({why:?})"),
            Self::Disconnected(_) => f.write_str("Disconnected"),
        }
    }
}

impl<T> core::error::Error for SendError<T> {}
impl<T> core::error::Error for TrySendError<T> {}
impl<T> core::error::Error for SendWithinError<T> {}
impl core::error::Error for RecvError {}
impl core::error::Error for TryRecvError {}
impl core::error::Error for RecvWithinError {}

const NO_RECEIVERS: &str = "all receivers are gone";
const NO_SENDERS: &str = "all senders are gone";
