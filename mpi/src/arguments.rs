//! Arguments of the program: counts, lists and strings.

use crate::abi;
use crate::fault::{Answer, fail, need};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::slice;

/// A count of the program, which is not negative.
pub(crate) fn count(count: i64, what: &str) -> Answer<usize> {
    match usize::try_from(count) {
        Ok(count) => Ok(count),
        Err(_) => fail!(abi::ERR_COUNT, "{count} {what}: the number is negative"),
    }
}

/// The `count` elements at `at`; none are needed if there are none.
///
/// # Safety
///
/// They are valid for reads.
pub(crate) unsafe fn list<'a, T>(
    at: *const T,
    count: impl Into<i64>,
    what: &str,
) -> Answer<&'a [T]> {
    let count = count.into();
    need!(count >= 0, abi::ERR_ARG, "{count} {what}: the number is negative");
    if count == 0 {
        return Ok(&[]);
    }
    need!(!at.is_null(), abi::ERR_ARG, "the list of {count} {what} is NULL");
    // SAFETY: the caller's.
    Ok(unsafe { slice::from_raw_parts(at, count as usize) })
}

/// A string of the program, of at most `max` bytes with its end.
///
/// # Safety
///
/// `at` is NULL or a string of C.
pub(crate) unsafe fn text(at: *const c_char, what: &str) -> Answer<String> {
    need!(!at.is_null(), abi::ERR_ARG, "the {what} is NULL");
    // SAFETY: the caller's.
    Ok(unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}

/// Writes a string with its end, of which at most `room` bytes; returns its length.
///
/// # Safety
///
/// `at` is valid for a write of `room` bytes.
pub(crate) unsafe fn write_text(text: &str, at: *mut c_char, room: usize) -> c_int {
    let len = text.len().min(room.saturating_sub(1));
    if room > 0 {
        // SAFETY: the caller's.
        unsafe {
            at.copy_from_nonoverlapping(text.as_ptr().cast(), len);
            at.add(len).write(0);
        }
    }
    len as c_int
}

/// Whether the input of this member lies where its output goes.
pub(crate) fn is_in_place(buffer: *const c_void) -> bool {
    buffer.addr() == abi::IN_PLACE.addr()
}
