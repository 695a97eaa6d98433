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
/// [`Buffer`](crate::Buffer). Other types cannot implement this: their bytes have to be
/// those of their values.
pub trait OwnedValues: Owned + Send + sealed::SameBytes + 'static {
    /// The type of one.
    type Item: Plain;

    #[doc(hidden)]
    fn values(&self) -> &[Self::Item];
}

mod sealed {
    /// The bytes are those of the values.
    pub trait SameBytes {}
    impl<T> SameBytes for Vec<T> {}
    impl<T> SameBytes for crate::Buffer<T> {}
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
