//! The error of a window.

use std::fmt;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_gas::lock::AccessRefused;

/// Why a target was not locked, an epoch not begun, or a private copy not
/// synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowError {
    /// An operation on the locks failed.
    Addr(AddrError),
    /// A lock that the guard holds excludes the new one.
    Refused(AccessRefused),
    /// The guard holds the target already.
    Held {
        /// That target.
        target: Rank,
    },
    /// A value was changed in the private copy and in the public one.
    Conflict {
        /// The index in this rank's array.
        index: usize,
    },
}

impl From<AddrError> for WindowError {
    fn from(error: AddrError) -> Self {
        Self::Addr(error)
    }
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(error) => error.fmt(f),
            Self::Refused(error) => error.fmt(f),
            Self::Held { target } => write!(
                f,
                "this guard holds the lock of {target} already; release it before another hold"
            ),
            Self::Conflict { index } => write!(
                f,
                "value {index} was changed both in the private copy and in the public copy"
            ),
        }
    }
}

impl std::error::Error for WindowError {}
