//! The handle of a global array: making one, and its accesses.

use super::cache::Cache;
use super::page_engine::PageEngine;
use super::table::ArrayHandle;
use super::{ArrayError, ArrayOptions, Distribution, PageId};
use crate::lock::Words;
use crate::ops::load_value;
use crate::{AddrError, Agent, Error, Plain, Remote, Runtime};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::backend::copy_bytes;

/// An array over all ranks. This is a handle: cheap to clone, and to send to other
/// threads of the rank.
pub struct GlobalArray<T: Plain> {
    pub(super) engine: Arc<PageEngine>,
    pub(super) cache: Arc<Cache>,
    /// Which rank had which page at first.
    pub(super) first: Distribution,
    pub(super) len: usize,
    pub(super) page_len: usize,
    /// The base-2 logarithm of `page_len`, if that is a power of two, so that an
    /// access needs no division.
    pub(super) page_shift: Option<u32>,
    pub(super) of: PhantomData<fn() -> T>,
}

impl Runtime {
    /// Makes an array of `len` zero values, distributed in blocks: the first pages
    /// go to rank 0. Collective: every rank calls it with the same `len`, in the
    /// same order.
    ///
    /// # Errors
    ///
    /// Those of [`share`](Self::share). [`Error::Program`] with a [`ShapeError`] if
    /// there are no elements or too many pages, and with
    /// [`ArrayError::NoAddresses`] if the elements have more bytes than an address
    /// space.
    ///
    /// [`ShapeError`]: super::ShapeError
    pub fn array<T: Plain>(&self, len: usize) -> Result<GlobalArray<T>, Error> {
        ArrayOptions::new().create(self, len)
    }
}

impl ArrayOptions {
    /// Makes an array with these options. Collective, as
    /// [`Runtime::array`]: every rank calls it with the same `len` and the same options.
    ///
    /// # Errors
    ///
    /// Those of [`Runtime::array`]. [`Error::Program`] with
    /// [`ArrayError::Full`] if [`room`](Self::room) is less than the number of pages
    /// that a rank has at first, with [`ArrayError::NoSuchRank`] if the function of
    /// [`Distribution::By`] returns a rank that does not exist, and with a
    /// [`ShapeError`] if [`Directory::Messages`] is given in a job of more than 64
    /// ranks.
    ///
    /// [`ShapeError`]: super::ShapeError
    /// [`Directory::Messages`]: super::Directory::Messages
    pub fn create<T: Plain>(&self, rt: &Runtime, len: usize) -> Result<GlobalArray<T>, Error> {
        let (page_len, shape) = self.shape(rt.size(), len, size_of::<T>());
        shape.check()?;
        check_bytes::<T>(len)?;
        if let Some((page, rank)) = shape.homes.stray(self.distribution) {
            return Err(ArrayError::NoSuchRank { page, rank, size: rt.size() }.into());
        }
        let engine = PageEngine::new(rt, shape, self)?;
        engine.deal(rt.rank(), self.distribution)?;
        // No rank may look up a page before all pages are distributed.
        rt.barrier()?;
        Ok(GlobalArray::of(engine, self, len, page_len))
    }
}

impl<T: Plain> GlobalArray<T> {
    pub(super) fn of(
        engine: PageEngine,
        options: &ArrayOptions,
        len: usize,
        page_len: usize,
    ) -> Self {
        const { assert!(size_of::<T>() > 0, "an element has at least 1 byte") };
        const { assert!(align_of::<T>() <= 8, "an element is aligned to at most 8 bytes") };
        Self {
            engine: Arc::new(engine),
            cache: Arc::new(Cache::new(len, page_len, size_of::<T>(), options.copies_bytes())),
            first: options.distribution,
            len,
            page_len,
            page_shift: page_len.is_power_of_two().then(|| page_len.trailing_zeros()),
            of: PhantomData,
        }
    }

    /// The handle by which other ranks open the array, if one rank has made it
    /// alone.
    pub fn handle(&self) -> Option<ArrayHandle> {
        self.engine.handle()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of elements in a page.
    pub fn page_len(&self) -> usize {
        self.page_len
    }

    /// The number of protocol messages that this rank has sent to others for this
    /// array, if its directory is [`Directory::Messages`](super::Directory::Messages).
    pub fn letters(&self) -> u64 {
        self.engine.letters()
    }

    /// The agent that reads and changes the words of the directory: the ranks'
    /// processors, or the network device for a [`Directory::Device`] where there is
    /// such a device.
    ///
    /// [`Directory::Device`]: super::Directory::Device
    pub fn agent(&self) -> Agent {
        self.engine.agent()
    }

    /// Bytes of directory and location cache that this rank has for the array,
    /// without the pages themselves.
    pub fn metadata_bytes(&self) -> u64 {
        self.engine.metadata_bytes()
    }

    /// The page of an element.
    pub fn page(&self, index: usize) -> PageId {
        self.place(index).0
    }

    /// Reads an element.
    ///
    /// # Errors
    ///
    /// [`ArrayError::OutOfRange`] if the array has no such element;
    /// [`ArrayError::Addr`] if the owner or the home of its page has died, or a rank
    /// that was moving the page.
    #[inline]
    pub fn get(&self, index: usize) -> Result<T, ArrayError> {
        self.check(index, 1)?;
        let (page, first) = self.place(index);
        // SAFETY: `hit` has resolved that many bytes; an element has the alignment
        // of the page, or is aligned to its own size.
        let load = |at| unsafe { load_value::<T>(at) };
        if let Some(value) = self.engine.hit(page, first, size_of::<T>() as u64, load) {
            return Ok(value);
        }
        self.get_remote(index)
    }

    /// Reads `into.len()` elements from `index` on.
    ///
    /// # Errors
    ///
    /// [`ArrayError::OutOfRange`] if the array does not have all of the elements;
    /// [`ArrayError::Addr`] if the owner or the home of one of their pages has
    /// died, or a rank that was moving one: then some of `into` may have been
    /// overwritten.
    pub fn get_slice(&self, index: usize, into: &mut [T]) -> Result<(), ArrayError> {
        // SAFETY: the slice is borrowed, and any bytes are values of a `Plain` type.
        unsafe { self.load(index, into.as_mut_ptr(), into.len()) }
    }

    /// Reads `count` elements from `index` on. The memory at `into` need not be aligned nor
    /// initialized, and is written only after the range was found. For the C interface.
    ///
    /// # Errors
    ///
    /// Those of [`get_slice`](Self::get_slice).
    ///
    /// # Safety
    ///
    /// `into` is valid for a write of as many elements, and is no memory of the array's
    /// pages, until this returns, and for ever if it does not return because its ULT is
    /// cut off.
    #[doc(hidden)]
    pub unsafe fn load(&self, index: usize, into: *mut T, count: usize) -> Result<(), ArrayError> {
        self.check(index, count)?;
        let mut done = 0;
        while done < count {
            let (index, to) = (index + done, into.wrapping_add(done));
            let part = (count - done).min(self.left_in_page(index));
            let (page, first) = self.place(index);
            let bytes = part * size_of::<T>();
            // SAFETY: `hit` has resolved that many bytes; `into` is the caller's.
            let load = |at: NonNull<u8>| unsafe { copy_bytes(at.as_ptr(), to.cast(), bytes) };
            if self.engine.hit(page, first, bytes as u64, load).is_none() {
                // SAFETY: the caller's.
                unsafe { self.engine.read(page, first, to, part)? };
            }
            done += part;
        }
        Ok(())
    }

    /// Writes an element.
    ///
    /// # Errors
    ///
    /// [`ArrayError::OutOfRange`] if the array has no such element;
    /// [`ArrayError::Addr`] if the owner or the home of its page has died, or a rank
    /// that was moving the page. If a rank died during the call, the element may have
    /// been written.
    #[inline]
    pub fn put(&self, index: usize, value: T) -> Result<(), ArrayError> {
        self.held(index, |runtime, at| runtime.put(at, value))
    }

    /// Writes all of `values` from `index` on.
    ///
    /// # Errors
    ///
    /// [`ArrayError::OutOfRange`] if the array does not have all of the elements:
    /// then nothing was written. [`ArrayError::Addr`] if the owner or the home of
    /// one of their pages has died, or a rank that was moving one: then some of the
    /// elements may have been written.
    pub fn put_slice(&self, index: usize, values: &[T]) -> Result<(), ArrayError> {
        self.check(index, values.len())?;
        let (mut index, mut rest) = (index, values);
        while !rest.is_empty() {
            let (part, later) = rest.split_at(rest.len().min(self.left_in_page(index)));
            self.held(index, |runtime, at| runtime.put_slice(at, part))?;
            (index, rest) = (index + part.len(), later);
        }
        Ok(())
    }

    /// Reads an element of a page that is not in reach or has moved.
    #[inline(never)]
    fn get_remote(&self, index: usize) -> Result<T, ArrayError> {
        let (page, first) = self.place(index);
        Ok(self.engine.read_one(page, first)?)
    }

    /// The page of an element, and the element's byte offset in it.
    #[inline(always)]
    pub(super) fn place(&self, index: usize) -> (PageId, u64) {
        let (page, at) = self.cut(index);
        (PageId(page as u64), (at * size_of::<T>()) as u64)
    }

    /// The page of an element, and the element's index in it.
    #[inline(always)]
    pub(super) fn cut(&self, index: usize) -> (usize, usize) {
        match self.page_shift {
            Some(shift) => (index >> shift, index & (self.page_len - 1)),
            None => (index / self.page_len, index % self.page_len),
        }
    }

    /// Changes the element at `index`, or several from it on, while their page is
    /// pinned.
    #[inline]
    pub(super) fn held<R>(
        &self,
        index: usize,
        call: impl FnOnce(&Runtime, Remote<T>) -> Result<R, AddrError>,
    ) -> Result<R, ArrayError> {
        self.check(index, 1)?;
        let (page, first) = self.place(index);
        Ok(self.engine.held(page, |runtime, at| call(runtime, Words::remote(at.add(first))))?)
    }

    pub(super) fn left_in_page(&self, index: usize) -> usize {
        self.page_len - self.cut(index).1
    }

    #[inline]
    pub(super) fn check(&self, index: usize, count: usize) -> Result<(), ArrayError> {
        let len = self.len;
        match index.checked_add(count) {
            Some(end) if end <= len => Ok(()),
            _ => Err(ArrayError::OutOfRange { index, count, len }),
        }
    }
}

/// Checks that the process can have an address for each element, for the copies of
/// a checkout.
pub(super) fn check_bytes<T>(len: usize) -> Result<(), ArrayError> {
    match len.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        bytes => Err(ArrayError::NoAddresses { bytes: bytes.unwrap_or(usize::MAX) }),
    }
}

impl<T: Plain> Clone for GlobalArray<T> {
    fn clone(&self) -> Self {
        Self { engine: self.engine.clone(), cache: self.cache.clone(), ..*self }
    }
}

impl<T: Plain> fmt::Debug for GlobalArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalArray({} elements, {} a page)", self.len, self.page_len)
    }
}
