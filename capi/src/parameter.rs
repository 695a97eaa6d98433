//! Parameters from callers: structs that may be older or newer than the library,
//! time limits, places for results.

use super::{TSUMUGI_ERROR_NULL, TSUMUGI_ERROR_SIZE, remember};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::time::Duration;
use tsumugi_ult::Limit;
pub(super) use tsumugi_ult::call::Word;

/// A struct of numbers and pointers that begins with its own size; a value with all
/// bytes zero is valid.
///
/// # Safety
///
/// The first member is the size, of type `usize`; all zeroes are a valid value;
/// there is no padding.
pub(super) unsafe trait Versioned: Copy {}

/// Reads a struct that may be shorter than the library's, or longer if the members
/// that the library does not have are zero.
///
/// # Safety
///
/// `from` is null, or valid for a read of as many bytes as its first member states.
pub(super) unsafe fn read<T: Versioned>(from: *const T) -> Result<T, c_int> {
    if from.is_null() {
        return Err(TSUMUGI_ERROR_NULL);
    }
    // SAFETY: `from` is not null, so by the caller's contract it is valid; the
    // first member is the size by the contract of the trait.
    let size = unsafe { from.cast::<usize>().read() };
    if size < size_of::<usize>() {
        let reason =
            format_args!("the size of a struct is {size}, and its member size has 8 bytes");
        return Err(remember(TSUMUGI_ERROR_SIZE, reason));
    }
    let (from, own) = (from.cast::<u8>(), size_of::<T>());
    // SAFETY: the caller's.
    let is_unknown = |at: usize| unsafe { from.add(at).read() } != 0;
    if (own..size).any(is_unknown) {
        let reason = format_args!("a struct of {size} bytes says more than the {own} known ones");
        return Err(remember(TSUMUGI_ERROR_SIZE, reason));
    }
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: both are valid for that many bytes; zeroes are a valid value.
    unsafe {
        value.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from, size.min(own));
        Ok(value.assume_init())
    }
}

/// Checks a place for a result; null is an error.
///
/// # Safety
///
/// `out` is null or valid for a write.
pub(super) unsafe fn place<T>(out: *mut T) -> Result<*mut T, c_int> {
    if out.is_null() { Err(TSUMUGI_ERROR_NULL) } else { Ok(out) }
}

/// Borrows a handle; null is an error.
///
/// # Safety
///
/// `handle` is null or a live handle.
pub(super) unsafe fn borrow<'a, T>(handle: *const T) -> Result<&'a T, c_int> {
    // SAFETY: the caller's.
    unsafe { handle.as_ref() }.ok_or(TSUMUGI_ERROR_NULL)
}

/// The limit for `limit_ns` nanoseconds; `u64::MAX` is no limit.
pub(super) fn limit(limit_ns: u64, is_cancellable: bool) -> Limit {
    let limit = match limit_ns {
        u64::MAX => Limit::NONE,
        ns => Limit::after(Duration::from_nanos(ns)),
    };
    if is_cancellable { limit.or_cancelled() } else { limit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct New {
        size: usize,
        a: u64,
        b: u64,
    }

    // SAFETY: all members are words, and the first is the size.
    unsafe impl Versioned for New {}

    #[test]
    fn older_and_newer_structs_are_read() {
        let old = [16usize, 5, 77];
        // SAFETY: the array is as long as its first word states.
        let read_old = unsafe { read(old.as_ptr().cast::<New>()) };
        assert_eq!(read_old, Ok(New { size: 16, a: 5, b: 0 }), "only 16 bytes are read");
        let newer = [32usize, 5, 6, 0];
        // SAFETY: the same.
        let read_newer = unsafe { read(newer.as_ptr().cast::<New>()) };
        assert_eq!(read_newer, Ok(New { size: 32, a: 5, b: 6 }));
        let unknown = [32usize, 5, 6, 1];
        // SAFETY: the same.
        let refused = unsafe { read(unknown.as_ptr().cast::<New>()) };
        assert_eq!(refused, Err(TSUMUGI_ERROR_SIZE));
        // SAFETY: the same.
        let empty = unsafe { read([4usize].as_ptr().cast::<New>()) };
        assert_eq!(empty, Err(TSUMUGI_ERROR_SIZE));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read(std::ptr::null::<New>()) }, Err(TSUMUGI_ERROR_NULL));
    }
}
