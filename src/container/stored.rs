//! Types of which a container stores the bytes.

use crate::Plain;
use crate::ops::bytes_of;
use std::mem::MaybeUninit;
use tsumugi_gas::container::ContainerError;

/// A type of keys, values or elements: a [`Plain`](trait@Plain) type, `str` or `[u8]`. It is
/// sealed.
pub trait Stored: sealed::Sealed + 'static {
    /// The form in which a call takes a value: a `Plain` value itself, `&str`, `&[u8]`.
    type Arg<'a>: Copy;
    /// The form in which a call returns a value: a `Plain` value itself, `String`,
    /// `Vec<u8>`.
    type Owned;
    /// The code of the type, which all ranks must have in common: the number of bytes, or
    /// one of the two types of any length.
    #[doc(hidden)]
    const CODE: u64;

    /// The bytes of a value.
    #[doc(hidden)]
    fn bytes<'a>(value: &'a Self::Arg<'_>) -> &'a [u8];

    /// A value of `bytes` bytes, which `read` writes.
    ///
    /// # Errors
    ///
    /// Those of `read`; [`ContainerError::OutOfRange`] if the type has another number of
    /// bytes.
    #[doc(hidden)]
    fn fetch(
        bytes: u64,
        read: impl FnOnce(&mut [u8]) -> Result<(), ContainerError>,
    ) -> Result<Self::Owned, ContainerError>;

    /// A returned value as a value to be given.
    #[doc(hidden)]
    fn arg(value: &Self::Owned) -> Self::Arg<'_>;
}

mod sealed {
    pub trait Sealed {}
    impl<T: crate::Plain> Sealed for T {}
    impl Sealed for str {}
    impl Sealed for [u8] {}
}

impl<T: Plain> Stored for T {
    type Arg<'a> = T;
    type Owned = T;
    const CODE: u64 = size_of::<T>() as u64;

    #[inline]
    fn bytes(value: &T) -> &[u8] {
        bytes_of(std::slice::from_ref(value))
    }

    #[inline]
    fn fetch(
        bytes: u64,
        read: impl FnOnce(&mut [u8]) -> Result<(), ContainerError>,
    ) -> Result<T, ContainerError> {
        let size = size_of::<T>() as u64;
        if bytes != size {
            return Err(ContainerError::OutOfRange { at: 0, bytes: size, size: bytes });
        }
        let mut value = [zeroes()];
        read(bytes_of_mut(&mut value))?;
        Ok(value[0])
    }

    fn arg(value: &T) -> T {
        *value
    }
}

impl Stored for [u8] {
    type Arg<'a> = &'a [u8];
    type Owned = Vec<u8>;
    const CODE: u64 = u64::MAX;

    fn bytes<'a>(value: &'a &[u8]) -> &'a [u8] {
        value
    }

    fn fetch(
        bytes: u64,
        read: impl FnOnce(&mut [u8]) -> Result<(), ContainerError>,
    ) -> Result<Vec<u8>, ContainerError> {
        let mut value = vec![0; bytes as usize];
        read(&mut value)?;
        Ok(value)
    }

    fn arg(value: &Vec<u8>) -> &[u8] {
        value
    }
}

/// Bytes that are no UTF-8, which only a stray write of some rank leaves, are replaced.
impl Stored for str {
    type Arg<'a> = &'a str;
    type Owned = String;
    const CODE: u64 = u64::MAX - 1;

    fn bytes<'a>(value: &'a &str) -> &'a [u8] {
        value.as_bytes()
    }

    fn fetch(
        bytes: u64,
        read: impl FnOnce(&mut [u8]) -> Result<(), ContainerError>,
    ) -> Result<String, ContainerError> {
        let value = <[u8] as Stored>::fetch(bytes, read)?;
        Ok(String::from_utf8(value)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn arg(value: &String) -> &str {
        value
    }
}

/// The value of which all bytes are zero.
pub(super) fn zeroes<T: Plain>() -> T {
    // SAFETY: any bytes are a value of a `Plain` type.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// The bytes of values, which may be overwritten.
pub(super) fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: a `Plain` type has no padding, and any bytes are a value of it.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}
