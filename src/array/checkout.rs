//! Elements as slices: copies that a rank keeps under its program's control.
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
//!     // What was written is everywhere, and what others wrote is seen.
//!     array.fence()?;
//!     assert_eq!(array.checkout(590..610, Read)?.iter().sum::<u64>(), 11_990);
//!     rt.barrier()
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! A [`Checkout`] is a slice of a copy. When it is dropped the elements are
//! checked in: those that were lent to be written are *dirty*, and written to
//! the array by the rank's next [`release`](GlobalArray::release), or earlier.
//! Copies stay, so the next checkout of the same elements costs no access to
//! another rank, until [`acquire`](GlobalArray::acquire) says that others have
//! written: release and acquire are to be where the program orders its
//! accesses, as around a barrier or a message. In between, a rank sees of
//! others' writes none, some or all; of its own checkouts' writes all.
//! [`get`](GlobalArray::get) and [`put`](GlobalArray::put) go to the array, past
//! the copies. Pages may move meanwhile.
//!
//! Only what was lent to be written is written back, element by element, so
//! that neighbours of one page may be written by different ranks. Of one rank,
//! elements are lent to one writer or to any number of readers at a time.
//!
//! A checkout belongs to no thread: it may be sent to another, and kept by a
//! ULT that goes on on another worker. Progress: blocking, on the lock of the
//! rank's copies; and on other ranks for what has to be fetched or written back.
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

/// Elements that are lent, as long as this lives.
#[must_use = "what is checked out is checked in when it is dropped"]
pub struct Checkout<T: Plain, M: Mode = Read> {
    array: GlobalArray<T>,
    lease: Lease,
    start: NonNull<T>,
    mode: PhantomData<M>,
}

/// What is done with elements that are lent.
pub trait Mode: sealed::Mode {}

/// They are read.
#[derive(Clone, Copy, Debug)]
pub struct Read;

/// They are all written. What they had is not fetched: an element that is not
/// written after all has any value then, also in the array.
#[derive(Clone, Copy, Debug)]
pub struct Write;

/// They are read, and written.
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
    /// Lends elements: to [`Read`], to [`Write`] or to [`ReadWrite`] them. To
    /// have what others will only read close at hand, a rank keeps it checked
    /// out.
    ///
    /// # Errors
    ///
    /// [`ArrayError`]: [`ArrayError::Lent`] if another checkout of this rank's
    /// has some of them and either writes; [`ArrayError::NoCopies`] if
    /// [`Dealt::cached_bytes`](super::Dealt::cached_bytes) are lent.
    pub fn checkout<M: Mode>(
        &self,
        range: Range<usize>,
        _mode: M,
    ) -> Result<Checkout<T, M>, ArrayError> {
        const { assert!(align_of::<T>() <= 8, "copies lie as pages do") };
        let (count, array) = (range.len(), self.clone());
        self.check(range.start, count)?;
        if count == 0 {
            let lease = Lease::none(range.start);
            return Ok(Checkout { array, lease, start: NonNull::dangling(), mode: PhantomData });
        }
        let (lease, start) = self.cache.lend(range, (M::READS, M::WRITES), self)?;
        Ok(Checkout { array, lease, start: start.cast(), mode: PhantomData })
    }

    /// Writes back what was lent to be written and has been checked in: who
    /// acquires after this sees it. What is lent to be written now is left to
    /// the release after its checkin.
    ///
    /// # Errors
    ///
    /// [`ArrayError`]: what a dead rank had is lost; all the rest is written.
    pub fn release(&self) -> Result<(), ArrayError> {
        self.cache.release(self)
    }

    /// Forgets the copies that are not lent: what others have released before
    /// is seen. What is lent stays as it is until it is checked in, also for
    /// whoever checks it out meanwhile.
    pub fn acquire(&self) {
        self.cache.acquire();
    }

    /// A release of every rank, before an acquire of every rank. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`release`](Self::release), and of a barrier.
    pub fn fence(&self) -> Result<(), Error> {
        let released = self.release();
        self.way.runtime().barrier()?;
        self.acquire();
        Ok(released?)
    }

    /// Bytes that copies take at this rank now, at most.
    pub fn copies_bytes(&self) -> usize {
        self.cache.bytes()
    }
}

impl<T: Plain> Travel for GlobalArray<T> {
    fn fetch(&self, range: Range<usize>, to: NonNull<u8>) -> Result<(), ArrayError> {
        // SAFETY: copies of these elements, which are busy: nobody else uses
        // them; any bytes are values of a `Plain` type.
        let into = unsafe { slice::from_raw_parts_mut(to.cast().as_ptr(), range.len()) };
        self.get_slice(range.start, into)
    }

    fn write(&self, range: Range<usize>, from: NonNull<u8>) -> Result<(), ArrayError> {
        // SAFETY: copies of these elements, which are busy, so that nobody
        // writes to them.
        let values = unsafe { slice::from_raw_parts(from.cast().as_ptr(), range.len()) };
        self.put_slice(range.start, values)
    }
}

impl<T: Plain, M: Mode> Checkout<T, M> {
    /// Which elements.
    pub fn range(&self) -> Range<usize> {
        self.lease.range.clone()
    }
}

impl<T: Plain, M: Mode> Deref for Checkout<T, M> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: they are lent: the copies are there, and nobody else writes.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.lease.range.len()) }
    }
}

impl<T: Plain, M: Mode + sealed::Writes> DerefMut for Checkout<T, M> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: they are lent to this alone.
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

// SAFETY: a `Plain` value may be used by any thread, and the copies are lent to
// this, whoever has it.
unsafe impl<T: Plain, M: Mode> Send for Checkout<T, M> {}
// SAFETY: the same; shared, it only shows them.
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
