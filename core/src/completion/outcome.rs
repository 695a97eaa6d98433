//! How an operation ended, or why it was not begun.

use crate::mem::AddrError;
use crate::op::Op;
use core::fmt;

/// How an operation ended, and its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome<B> {
    /// Word operations: the old value. Otherwise 0.
    pub result: Result<u64, AddrError>,
    /// The buffer that the operation owned.
    pub buf: B,
}

/// The operation was not begun: the caller gets the operation and its buffer
/// back.
#[derive(Clone, Copy, Debug)]
pub struct Busy<B> {
    /// The operation that was not begun.
    pub op: Op,
    /// The buffer that the operation would have owned.
    pub buf: B,
    /// The resource that had run out.
    pub why: Why,
}

/// The resource that had run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// All tags are in flight.
    NoTag,
    /// The queue to the device is full.
    RingFull,
    /// The target has no credit left for operations from this rank.
    NoCredit,
    /// No registered memory is left for a bounce buffer.
    NoMemory,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTag => "all tags are in flight",
            Self::RingFull => "the queue to the device is full",
            Self::NoCredit => "the target has no room for another operation of this rank",
            Self::NoMemory => "no registered memory is free",
        })
    }
}

impl<B> fmt::Display for Busy<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} was not begun: {}", self.op.kind, self.op.remote, self.why)
    }
}

impl<B: fmt::Debug> core::error::Error for Busy<B> {}
