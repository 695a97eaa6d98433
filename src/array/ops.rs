//! Accesses to elements of an array as [values](crate::deferred).

use super::{ArrayError, GlobalArray};
use crate::deferred::{Carried, Deferred, OfRank, Steps, carry_out};
use crate::lock::Words;
use crate::ops::load_value;
use crate::{Plain, RemoteAddr, Runtime};
use std::fmt;
use std::marker::PhantomData;

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

    /// Writes an element, if its page is in reach. Returns whether it was.
    #[inline]
    fn put_at_hand(&self, index: usize, value: T) -> Result<bool, ArrayError> {
        self.check(index, 1)?;
        let (page, first) = self.place(index);
        let put = |runtime: &Runtime, at: RemoteAddr| {
            runtime.put(Words::remote::<T>(at.add(first)), value)
        };
        Ok(self.engine.held_at_hand(page, put).transpose()?.is_some())
    }
}

impl<T: Plain> OfRank for GlobalArray<T> {
    fn of_rank(&self) -> &Runtime {
        self.engine.runtime()
    }
}

impl<T: Plain> Steps<GlobalArray<T>> for GetAt<T> {
    type Output = Result<T, ArrayError>;

    #[inline]
    fn at_once(self, on: &GlobalArray<T>) -> Result<Self::Output, Self> {
        match on.get_at_hand(self.index) {
            Ok(Some(value)) => Ok(Ok(value)),
            Ok(None) => Err(self),
            Err(error) => Ok(Err(error)),
        }
    }

    #[inline(always)]
    fn carry(self, on: &GlobalArray<T>) -> Self::Output {
        on.get(self.index)
    }
}

impl<T: Plain> Steps<GlobalArray<T>> for PutAt<T> {
    type Output = Result<(), ArrayError>;

    #[inline]
    fn at_once(self, on: &GlobalArray<T>) -> Result<Self::Output, Self> {
        match on.put_at_hand(self.index, self.value) {
            Ok(true) => Ok(Ok(())),
            Ok(false) => Err(self),
            Err(error) => Ok(Err(error)),
        }
    }

    #[inline(always)]
    fn carry(self, on: &GlobalArray<T>) -> Self::Output {
        on.put(self.index, self.value)
    }
}

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
