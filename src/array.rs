//! Arrays of all ranks whose pages move to where they are used.
//!
//! ```
//! use tsumugi::Error;
//!
//! tsumugi::run_ranks(2, |rt| {
//!     let array = rt.array::<u64>(1000)?;
//!     if rt.rank().0 == 0 {
//!         array.put_slice(0, &(0..1000).collect::<Vec<_>>())?;
//!     }
//!     rt.barrier()?;
//!     // Half of it is brought here, and stays until somebody else wants it.
//!     let half = if rt.rank().0 == 0 { 500..1000 } else { 0..500 };
//!     array.own(half.clone())?;
//!     let mut values = vec![0; 500];
//!     array.get_slice(half.start, &mut values)?;
//!     assert_eq!(values[7], half.start as u64 + 7);
//!     rt.barrier()
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! | | | on a hit |
//! |---|---|---|
//! | [`GlobalArray::get`], [`GlobalArray::get_slice`] | read | one read, of the owner's memory |
//! | [`GlobalArray::put`], [`GlobalArray::put_slice`] | write | one write |
//! | [`GlobalArray::fetch_add`] and its neighbours | change an element | one atomic |
//! | [`GlobalArray::gather`], [`GlobalArray::scatter`] | elements of a list | as many |
//! | [`GlobalArray::own`] | brings pages here | |
//! | [`GlobalArray::relocate`] | brings pages to any rank | |
//! | [`GlobalArray::owner`], [`GlobalArray::entry`] | says where a page is | asks its home |
//! | [`GlobalArray::uses`], [`GlobalArray::return_home`] | moves pages to where they are used, or back | |
//! | [`GlobalArray::checkout`] | lends a copy of elements as a slice | nothing |
//!
//! The array is cut into pages of a fixed number of elements. Where a page is
//! its home knows, a rank that never changes; ranks remember what they were
//! told for as many pages as [`Dealt::known`] says. No rank's program takes part
//! in what another does: all of it is remote reads, writes and atomics.
//!
//! All ranks make an array together ([`Runtime::array`]), or one makes it alone
//! and others open it by a word ([`Runtime::arrays`]).
//!
//! # What is seen
//!
//! Each access to one element is as if nothing ever moved: gets, puts and
//! atomics of it take effect one after the other, each between the call and its
//! return, whoever owns it meanwhile; so a ULT sees its own puts, before and
//! after an own of its or another's. Accesses to several elements are not
//! atomic: others may see some of a put's and not yet the rest. An element
//! larger than 8 bytes, or whose size is no power of two, may itself be seen
//! half written. An own of a range is one own of each page after the other, and
//! moves the neighbours that share its first and its last page, too.
//!
//! # When a rank dies
//!
//! The pages that it had are lost, and where a page is that it was home to
//! nobody can ask any more: such calls end with [`AddrError::PeerLost`]. All
//! others go on.
//!
//! Progress: a get is lock-free, and wait-free between ranks of a node while the
//! page stays where it is; all else is blocking.
//!
//! Paper: W. Endo and K. Taura, on a PGAS with relocation and a cache of
//! metadata; see [`tsumugi_gas::page`] for the protocol and what differs.

mod alone;
mod area;
mod atomic;
mod balance;
mod cache;
mod checkout;
mod dealt;
mod error;
mod list;
mod place;
mod post;
mod ranges;
mod way;

pub use alone::{ArrayHandle, Arrays};
pub use balance::{Use, Uses};
pub use checkout::{Checkout, Mode, Read, ReadWrite, Write};
pub use dealt::{Dealt, Directory};
pub use error::ArrayError;
pub use tsumugi_gas::page::{Distribution, Entry, PageId, ShapeError};

use crate::lock::Words;
use crate::ops::load_value;
use crate::{AddrError, Agent, Error, Plain, Remote, Runtime};
use cache::Cache;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::backend::copy_bytes;
use way::Way;

/// An array of all ranks. A handle: cheap to clone, and to send to other
/// threads of the rank.
pub struct GlobalArray<T: Plain> {
    way: Arc<Way>,
    cache: Arc<Cache>,
    /// Who had which page at first.
    first: Distribution,
    len: usize,
    page_len: usize,
    /// Of which power of two that is, if it is one: no division then.
    page_shift: Option<u32>,
    of: PhantomData<fn() -> T>,
}

impl Runtime {
    /// Makes an array of `len` zero values, dealt in blocks: the first pages to
    /// rank 0. Collective: every rank calls it with the same `len`, in the same
    /// order.
    ///
    /// # Errors
    ///
    /// Those of [`share`](Self::share); [`Error::Program`] with a
    /// [`ShapeError`] if there are no elements or too many pages.
    pub fn array<T: Plain>(&self, len: usize) -> Result<GlobalArray<T>, Error> {
        self.array_by(len, Dealt::default())
    }

    /// The same, cut and dealt as said.
    ///
    /// # Errors
    ///
    /// Those of [`array`](Self::array).
    pub fn array_by<T: Plain>(&self, len: usize, dealt: Dealt) -> Result<GlobalArray<T>, Error> {
        let (page_len, shape) = dealt.shape(self.size(), len, size_of::<T>());
        shape.check().map_err(Error::program)?;
        check_bytes::<T>(len)?;
        let way = Way::new(self, shape, &dealt)?;
        way.deal(self.rank(), dealt.first)?;
        // Nobody looks for a page before all are dealt.
        self.barrier()?;
        Ok(GlobalArray::of(way, &dealt, len, page_len))
    }
}

impl<T: Plain> GlobalArray<T> {
    fn of(way: Way, dealt: &Dealt, len: usize, page_len: usize) -> Self {
        const { assert!(size_of::<T>() > 0, "elements of 1 byte at least") };
        const { assert!(align_of::<T>() <= 8, "elements lie as pages do") };
        Self {
            way: Arc::new(way),
            cache: Arc::new(Cache::new(len, page_len, size_of::<T>(), dealt.copies_bytes())),
            first: dealt.first,
            len,
            page_len,
            page_shift: page_len.is_power_of_two().then(|| page_len.trailing_zeros()),
            of: PhantomData,
        }
    }

    /// What other ranks open it by, if one rank has made it alone.
    pub fn handle(&self) -> Option<ArrayHandle> {
        self.way.handle()
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Elements of a page.
    pub fn page_len(&self) -> usize {
        self.page_len
    }

    /// Letters that this rank has sent to others on account of the array, where
    /// its directory is [`Directory::Messages`].
    pub fn letters(&self) -> u64 {
        self.way.letters()
    }

    /// Who looks at the directory's words and changes them: the ranks'
    /// processors, or, of a [`Directory::Device`] where there is one, the
    /// network's device.
    pub fn agent(&self) -> Agent {
        self.way.agent()
    }

    /// Bytes of directory and of what is known of pages that this rank gives to
    /// the array, without the pages themselves.
    pub fn books_bytes(&self) -> u64 {
        self.way.books_bytes()
    }

    /// The page of an element.
    pub fn page(&self, index: usize) -> PageId {
        self.place(index).0
    }

    /// Reads an element.
    ///
    /// # Errors
    ///
    /// [`ArrayError`].
    #[inline]
    pub fn get(&self, index: usize) -> Result<T, ArrayError> {
        self.check(index, 1)?;
        let (page, first) = self.place(index);
        // SAFETY: `hit` has resolved as many bytes; an element is aligned as the
        // page is, or by its own size.
        let load = |at| unsafe { load_value::<T>(at) };
        if let Some(value) = self.way.hit(page, first, size_of::<T>() as u64, load) {
            return Ok(value);
        }
        self.get_far(index)
    }

    /// Reads elements from `index` on.
    ///
    /// # Errors
    ///
    /// [`ArrayError`].
    pub fn get_slice(&self, index: usize, into: &mut [T]) -> Result<(), ArrayError> {
        self.check(index, into.len())?;
        let (mut index, mut rest) = (index, into);
        while !rest.is_empty() {
            let count = rest.len().min(self.left_in_page(index));
            let (part, later) = rest.split_at_mut(count);
            let (page, first) = self.place(index);
            let (to, bytes) = (part.as_mut_ptr().cast(), size_of_val(part));
            // SAFETY: `hit` has resolved as many bytes, and `part` has room for
            // them; any bytes are values of a `Plain` type.
            let load = |at: NonNull<u8>| unsafe { copy_bytes(at.as_ptr(), to, bytes) };
            if self.way.hit(page, first, bytes as u64, load).is_none() {
                self.way.read(page, first, part)?;
            }
            (index, rest) = (index + count, later);
        }
        Ok(())
    }

    /// Writes an element.
    ///
    /// # Errors
    ///
    /// [`ArrayError`]. Of a rank that died meanwhile: it may be written.
    #[inline]
    pub fn put(&self, index: usize, value: T) -> Result<(), ArrayError> {
        self.held(index, |runtime, at| runtime.put(at, value))
    }

    /// Writes elements from `index` on.
    ///
    /// # Errors
    ///
    /// [`ArrayError`]; some may be written then.
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

    /// Reads an element that is not at hand, or not where it was.
    #[inline(never)]
    fn get_far(&self, index: usize) -> Result<T, ArrayError> {
        let (page, first) = self.place(index);
        Ok(self.way.read_one(page, first)?)
    }

    /// The page of an element, and at which of its bytes that begins.
    #[inline(always)]
    fn place(&self, index: usize) -> (PageId, u64) {
        let (page, at) = self.cut(index);
        (PageId(page as u64), (at * size_of::<T>()) as u64)
    }

    /// The page of an element, and which of its elements that is.
    #[inline(always)]
    fn cut(&self, index: usize) -> (usize, usize) {
        match self.page_shift {
            Some(shift) => (index >> shift, index & (self.page_len - 1)),
            None => (index / self.page_len, index % self.page_len),
        }
    }

    /// Changes an element, or some from it on, where they are.
    #[inline]
    fn held<R>(
        &self,
        index: usize,
        call: impl FnOnce(&Runtime, Remote<T>) -> Result<R, AddrError>,
    ) -> Result<R, ArrayError> {
        self.check(index, 1)?;
        let (page, first) = self.place(index);
        Ok(self.way.held(page, |runtime, at| call(runtime, Words::remote(at.add(first))))?)
    }

    fn left_in_page(&self, index: usize) -> usize {
        self.page_len - self.cut(index).1
    }

    #[inline]
    fn check(&self, index: usize, count: usize) -> Result<(), ArrayError> {
        let len = self.len;
        match index.checked_add(count) {
            Some(end) if end <= len => Ok(()),
            _ => Err(ArrayError::OutOfRange { index, count, len }),
        }
    }
}

/// Each element has an address of its own where copies lie.
fn check_bytes<T>(len: usize) -> Result<(), ArrayError> {
    match len.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        bytes => Err(ArrayError::NoAddresses { bytes: bytes.unwrap_or(usize::MAX) }),
    }
}

impl<T: Plain> Clone for GlobalArray<T> {
    fn clone(&self) -> Self {
        Self { way: self.way.clone(), cache: self.cache.clone(), ..*self }
    }
}

impl<T: Plain> fmt::Debug for GlobalArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalArray({} elements, {} a page)", self.len, self.page_len)
    }
}
