//! Atomic operations on elements, carried out at the owner.

use super::{ArrayError, GlobalArray};
use crate::Word;

impl<T: Word> GlobalArray<T> {
    /// Adds `value`, wrapping, and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put); after [`ArrayError::Addr`] the element may have
    /// been changed.
    #[inline]
    pub fn fetch_add(&self, index: usize, value: T) -> Result<T, ArrayError> {
        self.held(index, |runtime, at| runtime.fetch_add(at, value))
    }

    /// Keeps only the bits of `mask` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put); after [`ArrayError::Addr`] the element may have
    /// been changed.
    #[inline]
    pub fn fetch_and(&self, index: usize, mask: T) -> Result<T, ArrayError> {
        self.held(index, |runtime, at| runtime.fetch_and(at, mask))
    }

    /// Sets the bits of `mask` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put); after [`ArrayError::Addr`] the element may have
    /// been changed.
    #[inline]
    pub fn fetch_or(&self, index: usize, mask: T) -> Result<T, ArrayError> {
        self.held(index, |runtime, at| runtime.fetch_or(at, mask))
    }

    /// Flips the bits of `mask` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put); after [`ArrayError::Addr`] the element may have
    /// been changed.
    #[inline]
    pub fn fetch_xor(&self, index: usize, mask: T) -> Result<T, ArrayError> {
        self.held(index, |runtime, at| runtime.fetch_xor(at, mask))
    }

    /// Writes `value` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put); after [`ArrayError::Addr`] the element may have
    /// been changed.
    #[inline]
    pub fn swap(&self, index: usize, value: T) -> Result<T, ArrayError> {
        self.held(index, |runtime, at| runtime.swap(at, value))
    }

    /// Writes `new` if the element is `expected`, and returns the old value: the
    /// swap took place if that is `expected`.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put); after [`ArrayError::Addr`] the element may have
    /// been changed.
    #[inline]
    pub fn compare_swap(&self, index: usize, expected: T, new: T) -> Result<T, ArrayError> {
        self.held(index, |runtime, at| runtime.compare_swap(at, expected, new))
    }
}
