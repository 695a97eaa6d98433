//! Buffers that a message in progress can own.

use super::request::Keep;
use crate::{Buffer, Plain};

/// Values that a message in progress can own.
pub trait Owned: Keep {
    #[doc(hidden)]
    fn bytes(&self) -> (*const u8, usize);
    #[doc(hidden)]
    fn bytes_mut(&mut self) -> (*mut u8, usize);
}

/// Values of one type that an operation in progress can own: a vector, or a
/// [`Buffer`](crate::Buffer).
pub trait OwnedValues: Owned + Send + 'static {
    /// The type of one.
    type Item: Plain;

    #[doc(hidden)]
    fn values(&self) -> &[Self::Item];
}

impl<T: Plain> OwnedValues for Vec<T> {
    type Item = T;

    fn values(&self) -> &[T] {
        self
    }
}

impl<T: Plain> OwnedValues for Buffer<T> {
    type Item = T;

    fn values(&self) -> &[T] {
        self
    }
}

impl<T: Plain> Owned for Vec<T> {
    fn bytes(&self) -> (*const u8, usize) {
        (self.as_ptr().cast(), size_of_val(&**self))
    }

    fn bytes_mut(&mut self) -> (*mut u8, usize) {
        (self.as_mut_ptr().cast(), size_of_val(&**self))
    }
}

impl<T: Plain> Owned for Buffer<T> {
    fn bytes(&self) -> (*const u8, usize) {
        (self.as_ptr().cast(), size_of_val(&**self))
    }

    fn bytes_mut(&mut self) -> (*mut u8, usize) {
        (self.as_mut_ptr().cast(), size_of_val(&**self))
    }
}
