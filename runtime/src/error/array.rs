//! Errors of arrays.

use std::fmt;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_gas::page::PageId;

/// Why an operation on an array has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArrayError {
    /// A rank that the operation needs has died.
    Addr(AddrError),
    /// The array does not have all of the elements.
    OutOfRange {
        /// The first index of the request.
        index: usize,
        /// The number of elements of the request.
        count: usize,
        /// The number of elements of the array.
        len: usize,
    },
    /// The rank to which the page was to go has no room for another page.
    Full {
        /// The number of pages for which each rank has room.
        room: u32,
    },
    /// The array does not have the page.
    NoPage {
        /// The page of the request.
        page: PageId,
        /// The number of pages of the array.
        pages: u64,
    },
    /// The function of `Distribution::By` gives a page to a rank that does not
    /// exist.
    NoSuchRank {
        /// The first such page.
        page: PageId,
        /// The rank that the function has returned for it.
        rank: Rank,
        /// The number of ranks of the job.
        size: u32,
    },
    /// With `Directory::Messages`, a page can only be
    /// moved by the rank to which it goes.
    NotByMessages,
    /// Some of the elements are lent already, and either loan is for writing.
    Lent {
        /// The first index of the request.
        index: usize,
        /// The number of elements of the request.
        count: usize,
    },
    /// All copies that this rank may have are lent.
    NoCopies {
        /// The maximum size of the copies in bytes.
        bytes: usize,
    },
    /// The address space of this process has no room for an address of each
    /// element.
    NoAddresses {
        /// The bytes of address space that the elements need.
        bytes: usize,
    },
    /// An array that one rank makes alone must be distributed by
    /// `Distribution::Block` or `Distribution::Cyclic`, and its directory must
    /// be `Directory::Atomics`.
    NotAlone,
    /// The memory for arrays that one rank makes alone has no free range of this
    /// length, or has 100 arrays already.
    NoPlace {
        /// The bytes of each rank that the array needs.
        bytes: u64,
    },
    /// Every rank that had this array has dropped it, or there never was such an
    /// array.
    Gone,
    /// The elements of the array do not have the size of the type by which it is
    /// opened.
    ElementBytes {
        /// The size of an element of the array.
        bytes: u64,
        /// The size of the type.
        own: u64,
    },
    /// Two lists that belong together have different lengths.
    Lists {
        /// The number of indices.
        indices: usize,
        /// The number of values.
        values: usize,
    },
}

impl From<AddrError> for ArrayError {
    fn from(error: AddrError) -> Self {
        Self::Addr(error)
    }
}

impl fmt::Display for ArrayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(error) => error.fmt(f),
            Self::OutOfRange { index, count: 1, len } => {
                write!(f, "element {index} does not exist: the array has {len} elements")
            }
            Self::OutOfRange { index, count, len } => {
                write!(f, "{count} elements from index {index} on do not fit in an array of {len}")
            }
            Self::NoPage { page, pages } => {
                write!(f, "page {} does not exist: the array has {pages} pages", page.0)
            }
            Self::NoSuchRank { page, rank, size } => write!(
                f,
                "the function of Distribution::By gives page {} to {rank}, which does not exist: \
                 the job has {size} ranks",
                page.0
            ),
            Self::NotByMessages => f.write_str(
                "with Directory::Messages only the rank to which a page goes can move it: call \
                 `own` on that rank",
            ),
            Self::Lent { index, count } => write!(
                f,
                "some of the {count} elements from index {index} on are checked out already, and \
                 a checkout that writes excludes all others"
            ),
            Self::NoCopies { bytes } => write!(
                f,
                "all {bytes} bytes for copies are checked out: drop a checkout, or set a larger \
                 ArrayOptions::cached_bytes"
            ),
            Self::NoAddresses { bytes } => write!(
                f,
                "this process has no {bytes} bytes of address space for copies of all elements"
            ),
            Self::NotAlone => f.write_str(
                "an array that one rank makes alone needs Distribution::Block or \
                 Distribution::Cyclic, and Directory::Atomics",
            ),
            Self::NoPlace { bytes } => write!(
                f,
                "no room for another array of {bytes} bytes on each rank: drop an array, or \
                 reserve more by Runtime::arrays"
            ),
            Self::Gone => f.write_str(
                "the handle names no array: all ranks have dropped it, or it never existed",
            ),
            Self::ElementBytes { bytes, own } => write!(
                f,
                "the array has elements of {bytes} bytes, but is opened with a type of {own} bytes"
            ),
            Self::Lists { indices, values } => write!(
                f,
                "{indices} indices and {values} values: both lists must have the same length"
            ),
            Self::Full { room } => write!(
                f,
                "the rank to which the page was to go has no room: it can own {room} pages \
                 (ArrayOptions::room)"
            ),
        }
    }
}

impl std::error::Error for ArrayError {}
