//! The pages of an array, and the ranks that own them.

use super::array::with_units;
use super::code::{code_of, of_array, of_failure};
use super::object::{given, live, tell};
use super::tsumugi_array;
use std::ffi::c_int;
use tsumugi::Rank;
use tsumugi::array::ArrayError;

/// Brings the pages of `count` elements from `index` on to this rank, and writes how many
/// have moved to `moved`, unless that is NULL. Blocks.
///
/// Errors: RANGE, MEMORY (this rank has no room for the pages), LOST, ENDED, NULL.
///
/// # Safety
///
/// `array` is an array; `moved` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_own(
    array: *const tsumugi_array,
    index: usize,
    count: usize,
    moved: *mut usize,
) -> c_int {
    let own = || {
        // SAFETY: the caller's.
        let of = unsafe { live(array) }?;
        let (at, bytes) = of.range(index, count)?;
        let units = bytes / of.unit_bytes();
        let brought = with_units!(&of.units, |array| array.own(at..at + units));
        // SAFETY: the caller's.
        unsafe { tell(moved, brought.map_err(of_array)?) };
        Ok(())
    };
    code_of(own())
}

/// Writes the rank that has the page of an element to `owner`; the page may move at any
/// time. Blocks.
///
/// Errors: RANGE, LOST, ENDED, NULL.
///
/// # Safety
///
/// `array` is an array; `owner` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_owner(
    array: *const tsumugi_array,
    index: usize,
    owner: *mut u32,
) -> c_int {
    let find = || {
        // SAFETY: the caller's.
        let (of, owner) = unsafe { (live(array)?, given(owner, "owner")?) };
        let (at, _) = of.range(index, 1)?;
        let found: Result<Rank, ArrayError> = with_units!(&of.units, |array| array.owner(at));
        // SAFETY: the caller's.
        unsafe { owner.write(found.map_err(of_array)?.0) };
        Ok(())
    };
    code_of(find())
}

/// Brings every page back to the rank that had it at first. All ranks must call it.
/// Blocks.
///
/// Errors: MEMORY, LOST, JOB, ENDED, NULL.
///
/// # Safety
///
/// `array` is an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_return_home(array: *const tsumugi_array) -> c_int {
    let bring = || {
        // SAFETY: the caller's.
        let of = unsafe { live(array) }?;
        let moved = with_units!(&of.units, |array| array.return_home());
        moved.map(drop).map_err(of_failure)
    };
    code_of(bring())
}
