//! Accesses to elements of an array as [values](crate::deferred).

use super::{ArrayError, GlobalArray};
use crate::deferred::{Carried, Deferred, OfRank, Steps, carry_out};
use crate::lock::Words;
use crate::ops::load_value;
use crate::{AddrError, Plain, Remote, RemoteAddr, Runtime, Word};
use std::fmt;
use std::marker::PhantomData;
use tsumugi_core::op::{Kind, Op};

/// The accesses to an array, each as a [value](crate::deferred).
pub struct ArrayOps<'a, T: Plain> {
    array: &'a GlobalArray<T>,
}

/// A read of an element.
#[derive(Debug)]
pub struct GetAt<T> {
    index: usize,
    of: PhantomData<fn() -> T>,
}

/// A write of an element.
#[derive(Debug)]
pub struct PutAt<T> {
    index: usize,
    value: T,
}

/// An atomic operation on an element.
#[derive(Debug)]
pub struct AtomicAt<T> {
    index: usize,
    kind: Kind,
    value: T,
    /// For a compare-and-swap.
    expected: T,
}

impl<T: Plain> GlobalArray<T> {
    /// The accesses to this array as values, which are waited for, awaited, tried, or
    /// given a function: see [`deferred`](crate::deferred).
    #[inline(always)]
    pub fn ops(&self) -> ArrayOps<'_, T> {
        ArrayOps { array: self }
    }
}

impl<'a, T: Plain> ArrayOps<'a, T> {
    /// Reads an element, as [`GlobalArray::get`]. The result is `Result<T, ArrayError>`.
    /// It is done at once if the page is in reach.
    #[inline(always)]
    pub fn get(self, index: usize) -> Deferred<Carried<'a, GlobalArray<T>, GetAt<T>>> {
        carry_out(self.array, GetAt { index, of: PhantomData })
    }

    /// Writes an element, as [`GlobalArray::put`]. The result is `Result<(), ArrayError>`.
    /// It is done at once if the page is in reach.
    #[inline(always)]
    pub fn put(self, index: usize, value: T) -> Deferred<Carried<'a, GlobalArray<T>, PutAt<T>>> {
        carry_out(self.array, PutAt { index, value })
    }
}

impl<'a, T: Word> ArrayOps<'a, T> {
    /// Adds `value`, wrapping, as [`GlobalArray::fetch_add`]. The result is
    /// `Result<T, ArrayError>`: the old value.
    #[inline(always)]
    pub fn fetch_add(self, index: usize, value: T) -> Deferred<AtomicOn<'a, T>> {
        self.atomic(Kind::FetchAdd, index, value)
    }

    /// Keeps the bits of `mask`, as [`GlobalArray::fetch_and`]. The result is the old value.
    #[inline(always)]
    pub fn fetch_and(self, index: usize, mask: T) -> Deferred<AtomicOn<'a, T>> {
        self.atomic(Kind::FetchAnd, index, mask)
    }

    /// Sets the bits of `mask`, as [`GlobalArray::fetch_or`]. The result is the old value.
    #[inline(always)]
    pub fn fetch_or(self, index: usize, mask: T) -> Deferred<AtomicOn<'a, T>> {
        self.atomic(Kind::FetchOr, index, mask)
    }

    /// Flips the bits of `mask`, as [`GlobalArray::fetch_xor`]. The result is the old value.
    #[inline(always)]
    pub fn fetch_xor(self, index: usize, mask: T) -> Deferred<AtomicOn<'a, T>> {
        self.atomic(Kind::FetchXor, index, mask)
    }

    /// Writes `value`, as [`GlobalArray::swap`]. The result is the old value.
    #[inline(always)]
    pub fn swap(self, index: usize, value: T) -> Deferred<AtomicOn<'a, T>> {
        self.atomic(Kind::Swap, index, value)
    }

    /// Writes `new` if the old value is `expected`, as [`GlobalArray::compare_swap`]. The
    /// result is the old value.
    #[inline(always)]
    pub fn compare_swap(self, index: usize, expected: T, new: T) -> Deferred<AtomicOn<'a, T>> {
        let kind = Kind::CompareSwap;
        carry_out(self.array, AtomicAt { index, kind, value: new, expected })
    }

    #[inline(always)]
    fn atomic(self, kind: Kind, index: usize, value: T) -> Deferred<AtomicOn<'a, T>> {
        carry_out(self.array, AtomicAt { index, kind, value, expected: value })
    }
}

/// An atomic operation on an array that is carried out at once, or by a ULT.
type AtomicOn<'a, T> = Carried<'a, GlobalArray<T>, AtomicAt<T>>;

impl<T: Plain> GlobalArray<T> {
    /// Reads an element, if its page is in reach.
    #[inline]
    fn get_at_hand(&self, index: usize) -> Result<Option<T>, ArrayError> {
        self.check(index, 1)?;
        let (page, first) = self.place(index);
        // SAFETY: `hit` has resolved that many bytes; an element has the alignment of the
        // page, or is aligned to its own size.
        let load = |at| unsafe { load_value::<T>(at) };
        Ok(self.engine.hit(page, first, size_of::<T>() as u64, load))
    }

    /// Changes an element, if its page is in reach.
    #[inline]
    fn change_at_hand<R>(
        &self,
        index: usize,
        call: impl FnOnce(&Runtime, Remote<T>) -> Result<R, AddrError>,
    ) -> Result<Option<R>, ArrayError> {
        self.check(index, 1)?;
        let (page, first) = self.place(index);
        let call = |runtime: &Runtime, at: RemoteAddr| call(runtime, Words::remote(at.add(first)));
        Ok(self.engine.held_at_hand(page, call).transpose()?)
    }
}

impl<T: Plain> OfRank for GlobalArray<T> {
    type Kept = Self;

    fn of_rank(&self) -> &Runtime {
        self.engine.runtime()
    }

    fn keep(&self) -> Self {
        self.clone()
    }

    fn with_kept<R>(kept: &Self, call: impl FnOnce(&Self) -> R) -> R {
        call(kept)
    }
}

impl<T: Plain> Steps<GlobalArray<T>> for GetAt<T> {
    type Output = Result<T, ArrayError>;

    #[inline]
    fn at_once(self, on: &GlobalArray<T>) -> Result<Self::Output, Self> {
        on.get_at_hand(self.index).transpose().ok_or(self)
    }

    #[inline(always)]
    fn carry(&mut self, on: &GlobalArray<T>) -> Self::Output {
        on.get(self.index)
    }

    fn cut_off(&mut self) -> Self::Output {
        Err(ENDED)
    }
}

impl<T: Plain> Steps<GlobalArray<T>> for PutAt<T> {
    type Output = Result<(), ArrayError>;

    #[inline]
    fn at_once(self, on: &GlobalArray<T>) -> Result<Self::Output, Self> {
        let put = |runtime: &Runtime, at| runtime.put(at, self.value);
        on.change_at_hand(self.index, put).transpose().ok_or(self)
    }

    #[inline(always)]
    fn carry(&mut self, on: &GlobalArray<T>) -> Self::Output {
        on.put(self.index, self.value)
    }

    fn cut_off(&mut self) -> Self::Output {
        Err(ENDED)
    }
}

impl<T: Word> AtomicAt<T> {
    fn change(&self, runtime: &Runtime, at: Remote<T>) -> Result<T, AddrError> {
        let op = match self.kind {
            Kind::CompareSwap => Op::compare_swap(at.addr(), self.expected, self.value),
            kind => Op::atomic(kind, at.addr(), self.value),
        };
        runtime.handle().carry(&op).map(T::from_bits)
    }
}

impl<T: Word> Steps<GlobalArray<T>> for AtomicAt<T> {
    type Output = Result<T, ArrayError>;

    #[inline]
    fn at_once(self, on: &GlobalArray<T>) -> Result<Self::Output, Self> {
        let change = |runtime: &Runtime, at| self.change(runtime, at);
        on.change_at_hand(self.index, change).transpose().ok_or(self)
    }

    #[inline(always)]
    fn carry(&mut self, on: &GlobalArray<T>) -> Self::Output {
        on.held(self.index, |runtime, at| self.change(runtime, at))
    }

    fn cut_off(&mut self) -> Self::Output {
        Err(ENDED)
    }
}

/// The error of an access that the rank has not ended before its own end.
const ENDED: ArrayError = ArrayError::Addr(AddrError::Ended);

impl<T: Plain> Clone for ArrayOps<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Plain> Copy for ArrayOps<'_, T> {}

impl<T: Plain> fmt::Debug for ArrayOps<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArrayOps({:?})", self.array)
    }
}
