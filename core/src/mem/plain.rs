//! Types that may cross between ranks: every bit pattern is a valid value of them.

use core::marker::PhantomData;
use core::num::Wrapping;

/// A type that can be copied to and from another rank's memory byte by byte.
///
/// `#[derive(tsumugi::Plain)]` proves it for a struct.
///
/// # Safety
///
/// Every bit pattern of the right size is a valid value, the type has no padding,
/// and it contains no pointer, reference or file descriptor, because these would
/// mean something else on the other rank.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be copied to another rank byte by byte",
    label = "is not `Plain`",
    note = "a type is `Plain` if it has no pointer, no padding and no invalid bit pattern: integers, \
            floats, arrays of them, and structs with `#[derive(Clone, Copy, tsumugi::Plain)]` and \
            `#[repr(C)]`"
)]
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

/// A [`Plain`] type that remote atomics work on: an integer of 4 or 8 bytes.
pub trait Word: Plain + sealed::Sealed {
    /// 4 or 8 bytes.
    const WIDTH: Width;
    /// The value in the low bits of a `u64`.
    fn to_bits(self) -> u64;
    /// The value from the low bits of a `u64`.
    fn from_bits(bits: u64) -> Self;
}

/// The number of bytes that a word operation touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Width {
    /// 1 byte.
    W1 = 1,
    /// 2 bytes.
    W2 = 2,
    /// 4 bytes.
    W4 = 4,
    /// 8 bytes.
    W8 = 8,
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        // SAFETY: integers and floats have neither padding nor invalid values.
        unsafe impl Plain for $type {}
    )*};
}

macro_rules! word {
    ($($type:ty => $bits:ty),*) => {$(
        impl sealed::Sealed for $type {}
        impl Word for $type {
            const WIDTH: Width = if size_of::<$type>() == 4 { Width::W4 } else { Width::W8 };
            #[inline(always)]
            fn to_bits(self) -> u64 { self as $bits as u64 }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self { bits as $type }
        }
    )*};
}

plain!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);
word!(u32 => u32, i32 => u32, u64 => u64, i64 => u64, usize => u64, isize => u64);

// SAFETY: an array has no padding of its own.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

// SAFETY: the wrapper has the layout of its number, and all of its values.
unsafe impl<T: Plain> Plain for Wrapping<T> {}
// SAFETY: it has no bytes.
unsafe impl<T: Send + Sync + 'static> Plain for PhantomData<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_words_survive_the_round_trip() {
        assert_eq!(i32::from_bits((-7i32).to_bits()), -7);
        assert_eq!((-7i32).to_bits(), 0xffff_fff9);
        assert_eq!(i64::from_bits((-7i64).to_bits()), -7);
    }
}
