//! Why an array did not do it.

use super::PageId;
use crate::{AddrError, Error};
use std::fmt;

/// Why an array did not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayError {
    /// A rank that is needed for it has died.
    Addr(AddrError),
    /// Elements that the array does not have.
    OutOfRange {
        /// The first that was asked for.
        index: usize,
        /// And how many.
        count: usize,
        /// How many there are.
        len: usize,
    },
    /// This rank has no room for another page.
    Full {
        /// For how many it has.
        room: u32,
    },
    /// A page that the array does not have.
    NoPage {
        /// Which was asked for.
        page: PageId,
        /// How many there are.
        pages: u64,
    },
    /// By [`Directory::Messages`](super::Directory::Messages) a page comes only
    /// to who asks for it.
    NotByMessages,
    /// Elements that are lent already: to be written, or to others and are now
    /// to be written.
    Lent {
        /// The first that was asked for.
        index: usize,
        /// And how many.
        count: usize,
    },
    /// All copies that this rank may have are lent.
    NoCopies {
        /// Bytes of them.
        bytes: usize,
    },
    /// There is no room for an address of each element in this process.
    NoAddresses {
        /// Bytes that they take.
        bytes: usize,
    },
    /// What one rank makes alone is dealt by [`Distribution::Block`] or
    /// [`Distribution::Cyclic`], and its directory is [`Directory::Atomics`].
    ///
    /// [`Distribution::Block`]: super::Distribution::Block
    /// [`Distribution::Cyclic`]: super::Distribution::Cyclic
    /// [`Directory::Atomics`]: super::Directory::Atomics
    NotAlone,
    /// There is no room for another array that one rank makes alone.
    NoPlace {
        /// Bytes of each rank that it takes.
        bytes: u64,
    },
    /// Every rank that had this array has dropped it, or there never was one.
    Gone,
    /// The array's elements are not of the size that was asked for.
    ElementBytes {
        /// Bytes of one.
        bytes: u64,
        /// Bytes of what was asked for.
        own: u64,
    },
    /// Two lists that belong together are not of one length.
    Lists {
        /// How many indices.
        indices: usize,
        /// How many values.
        values: usize,
    },
}

impl From<AddrError> for ArrayError {
    fn from(error: AddrError) -> Self {
        Self::Addr(error)
    }
}

impl From<ArrayError> for Error {
    fn from(error: ArrayError) -> Self {
        match error {
            ArrayError::Addr(error) => error.into(),
            error => Self::program(error),
        }
    }
}

impl fmt::Display for ArrayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(error) => error.fmt(f),
            Self::OutOfRange { index, count, len } => {
                write!(f, "{count} elements at {index} of an array of {len}")
            }
            Self::NoPage { page, pages } => write!(f, "page {} of {pages}", page.0),
            Self::NotByMessages => {
                f.write_str("by messages a page comes only to the rank that asks for it")
            }
            Self::Lent { index, count } => {
                write!(f, "{count} elements at {index}, of which some are lent")
            }
            Self::NoCopies { bytes } => write!(f, "all {bytes} bytes of copies are lent"),
            Self::NoAddresses { bytes } => write!(f, "no addresses for {bytes} bytes of copies"),
            Self::NotAlone => f.write_str(
                "an array that one rank makes alone is dealt in blocks or in turns, and its \
                 directory works by atomics",
            ),
            Self::NoPlace { bytes } => {
                write!(f, "no room for another array, of {bytes} bytes on each rank")
            }
            Self::Gone => f.write_str("no rank has this array any more"),
            Self::ElementBytes { bytes, own } => {
                write!(f, "an array of elements of {bytes} bytes, opened as one of {own}")
            }
            Self::Lists { indices, values } => {
                write!(f, "{indices} indices and {values} values")
            }
            Self::Full { room } => write!(f, "this rank has room for {room} pages and no more"),
        }
    }
}

impl std::error::Error for ArrayError {}
