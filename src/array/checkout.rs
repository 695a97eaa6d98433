//! Elements as slices: copies that a rank caches, under the control of its program.
//!
//! ```
//! use tsumugi::Error;
//! use tsumugi::array::{Read, ReadWrite};
//!
//! tsumugi::run_ranks(2, |rt| {
//!     let array = rt.array::<u64>(1000)?;
//!     let own = if rt.rank().0 == 0 { 0..600 } else { 600..1000 };
//!     for (index, value) in own.clone().zip(array.checkout(own, ReadWrite)?.iter_mut()) {
//!         *value += index as u64;
//!     }
//!     // The writes of all ranks are in the array, and this rank sees them.
//!     array.fence()?;
//!     assert_eq!(array.checkout(590..610, Read)?.iter().sum::<u64>(), 11_990);
//!     rt.barrier()
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! A [`Checkout`] is a slice of a copy. When it is dropped, the elements are
//! checked in. Elements that were lent for writing are then *dirty*: the rank's
//! next [`release`](GlobalArray::release) writes them to the array, or an eviction
//! does so earlier. Copies stay in the cache, so the next checkout of the same
//! elements needs no access to another rank, until the program calls
//! [`acquire`](GlobalArray::acquire). The program must call release and acquire
//! where it orders its accesses, as around a barrier or a message (release
//! consistency). Between them, a rank sees none, some or all of the other ranks'
//! writes, and all writes of its own checkouts. [`get`](GlobalArray::get) and
//! [`put`](GlobalArray::put) go to the array and ignore the copies. Pages may move
//! meanwhile.
//!
//! Only elements that were lent for writing are written back, element by element,
//! so different ranks may write to neighbouring elements of one page. At one rank,
//! an element is lent to one writer or to any number of readers at a time.
//!
//! A checkout belongs to no thread: it may be sent to another thread, and a ULT may
//! keep it while it migrates to another worker. Progress: blocking, on the lock of
//! the rank's cache, and on other ranks for elements that must be fetched or
//! written back.
//!
//! # References
//!
//! S. Shiina and K. Taura: Itoyori, SC 2023 (checkout and checkin, fences).

use super::cache::{Lease, Travel};
use super::{ArrayError, GlobalArray};
use crate::{Error, Plain};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::slice;

/// A slice of elements that are lent as long as this value lives.
#[must_use = "the elements are checked in as soon as the checkout is dropped"]
pub struct Checkout<T: Plain, M: Mode = Read> {
    array: GlobalArray<T>,
    lease: Lease,
    start: NonNull<T>,
    mode: PhantomData<M>,
}

/// The access for which elements are lent.
pub trait Mode: sealed::Mode {}

/// The elements are read.
#[derive(Clone, Copy, Debug)]
pub struct Read;

/// All elements are written. Their old values are not fetched: an element that the
/// program does not write then has an arbitrary value, in the array, too.
#[derive(Clone, Copy, Debug)]
pub struct Write;

/// The elements are read and written.
#[derive(Clone, Copy, Debug)]
pub struct ReadWrite;

mod sealed {
    pub trait Mode {
        const READS: bool;
        const WRITES: bool;
    }

    pub trait Writes: Mode {}
}

impl<T: Plain> GlobalArray<T> {
    /// Lends elements: to [`Read`], to [`Write`] or to [`ReadWrite`] them. A rank
    /// that keeps elements checked out keeps a copy of them; this is useful for
    /// elements that other ranks only read.
    ///
    /// # Errors
    ///
    /// - [`ArrayError::OutOfRange`]: the array does not have all of the elements.
    /// - [`ArrayError::Lent`]: another checkout of this rank has some of the
    ///   elements, and either checkout writes.
    /// - [`ArrayError::NoCopies`]:
    ///   [`ArrayOptions::cached_bytes`](super::ArrayOptions::cached_bytes) are lent already.
    /// - [`ArrayError::NoAddresses`]: this process has no address space for copies
    ///   of all elements.
    /// - [`ArrayError::Addr`]: the owner or the home of a page has died, or a rank
    ///   that was moving a page.
    pub fn checkout<M: Mode>(
        &self,
        range: Range<usize>,
        _mode: M,
    ) -> Result<Checkout<T, M>, ArrayError> {
        const { assert!(align_of::<T>() <= 8, "an element is aligned to at most 8 bytes") };
        let (count, array) = (range.len(), self.clone());
        self.check(range.start, count)?;
        if count == 0 {
            let lease = Lease::none(range.start);
            return Ok(Checkout { array, lease, start: NonNull::dangling(), mode: PhantomData });
        }
        let (lease, start) = self.cache.lend(range, (M::READS, M::WRITES), self)?;
        Ok(Checkout { array, lease, start: start.cast(), mode: PhantomData })
    }

    /// Writes back the elements that were lent for writing and have been checked
    /// in: a rank that acquires after this sees them. Elements that are lent for
    /// writing now are written back by the next release after their checkin.
    ///
    /// # Errors
    ///
    /// [`ArrayError::Addr`] if a rank has died: elements that it owned are lost;
    /// all others are written.
    pub fn release(&self) -> Result<(), ArrayError> {
        self.cache.release(self)
    }

    /// Discards the copies that are not lent, so that later checkouts see what
    /// other ranks have released before. Elements that are lent now stay as they
    /// are until they are checked in, also for other checkouts of them meanwhile.
    pub fn acquire(&self) {
        self.cache.acquire();
    }

    /// A release by every rank, followed by an acquire by every rank. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`release`](Self::release), and of a
    /// [`barrier`](crate::Runtime::barrier).
    pub fn fence(&self) -> Result<(), Error> {
        let released = self.release();
        self.engine.runtime().barrier()?;
        self.acquire();
        Ok(released?)
    }

    /// An upper bound for the bytes that copies take at this rank now.
    pub fn copies_bytes(&self) -> usize {
        self.cache.bytes()
    }
}

impl<T: Plain> Travel for GlobalArray<T> {
    fn fetch(&self, range: Range<usize>, to: NonNull<u8>) -> Result<(), ArrayError> {
        // SAFETY: the copies of these elements are busy, so no other code uses
        // them; any bytes are valid values of a `Plain` type.
        let into = unsafe { slice::from_raw_parts_mut(to.cast().as_ptr(), range.len()) };
        self.get_slice(range.start, into)
    }

    fn write(&self, range: Range<usize>, from: NonNull<u8>) -> Result<(), ArrayError> {
        // SAFETY: the copies of these elements are busy, so no code writes to them.
        let values = unsafe { slice::from_raw_parts(from.cast().as_ptr(), range.len()) };
        self.put_slice(range.start, values)
    }
}

impl<T: Plain, M: Mode> Checkout<T, M> {
    /// The indices of the elements.
    pub fn range(&self) -> Range<usize> {
        self.lease.range.clone()
    }
}

impl<T: Plain, M: Mode> Deref for Checkout<T, M> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the elements are lent to this checkout, so the copies are valid
        // and no other code writes to them.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.lease.range.len()) }
    }
}

impl<T: Plain, M: Mode + sealed::Writes> DerefMut for Checkout<T, M> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the elements are lent for writing to this checkout alone.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.lease.range.len()) }
    }
}

impl<T: Plain, M: Mode> Drop for Checkout<T, M> {
    fn drop(&mut self) {
        if !self.lease.range.is_empty() {
            self.array.cache.take_back(&self.lease);
        }
    }
}

// SAFETY: any thread may use a `Plain` value, and the copies are lent to the
// checkout and not to a thread.
unsafe impl<T: Plain, M: Mode> Send for Checkout<T, M> {}
// SAFETY: as for `Send`; a shared checkout gives only read access.
unsafe impl<T: Plain, M: Mode> Sync for Checkout<T, M> {}

impl<T: Plain, M: Mode> fmt::Debug for Checkout<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checkout({:?})", self.lease.range)
    }
}

impl Mode for Read {}
impl Mode for Write {}
impl Mode for ReadWrite {}

impl sealed::Mode for Read {
    const READS: bool = true;
    const WRITES: bool = false;
}

impl sealed::Mode for Write {
    const READS: bool = false;
    const WRITES: bool = true;
}

impl sealed::Mode for ReadWrite {
    const READS: bool = true;
    const WRITES: bool = true;
}

impl sealed::Writes for Write {}
impl sealed::Writes for ReadWrite {}
