//! Atomics on the elements of an array, carried out at the owner.

use super::array::Units;
use super::code::{code_of, of_array};
use super::object::{live, refuse, tell};
use super::{
    TSUMUGI_ATOMIC_ADD, TSUMUGI_ATOMIC_AND, TSUMUGI_ATOMIC_OR, TSUMUGI_ATOMIC_SWAP,
    TSUMUGI_ATOMIC_XOR, TSUMUGI_ERROR_VALUE, tsumugi_array,
};
use std::ffi::c_int;
use tsumugi::{GlobalArray, Word};

/// Changes an element of 4 bytes with `operand`, by the atomic operation `what`
/// (`TSUMUGI_ATOMIC_*`), at its owner, and writes the old value to `old`, unless that is
/// NULL. Blocks.
///
/// Errors: RANGE, VALUE (of `what`, or the elements have another size), LOST, ENDED,
/// NULL.
///
/// # Safety
///
/// `array` is an array; `old` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_atomic4(
    array: *const tsumugi_array,
    what: c_int,
    index: usize,
    operand: u32,
    old: *mut u32,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        on_units(array, tsumugi_array::fours, old, |units| change(units, what, index, operand))
    }
}

/// Does the same as `tsumugi_array_atomic4` on an element of 8 bytes.
///
/// # Safety
///
/// As for `tsumugi_array_atomic4`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_atomic8(
    array: *const tsumugi_array,
    what: c_int,
    index: usize,
    operand: u64,
    old: *mut u64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        on_units(array, tsumugi_array::eights, old, |units| change(units, what, index, operand))
    }
}

/// Stores `desired` in an element of 4 bytes if it is `expected`, and writes the old value
/// to `old`, unless that is NULL. Blocks.
///
/// Errors: RANGE, VALUE (the elements have another size), LOST, ENDED, NULL.
///
/// # Safety
///
/// `array` is an array; `old` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_compare_swap4(
    array: *const tsumugi_array,
    index: usize,
    expected: u32,
    desired: u32,
    old: *mut u32,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        on_units(array, tsumugi_array::fours, old, |units| {
            units.compare_swap(index, expected, desired).map_err(of_array)
        })
    }
}

/// Does the same as `tsumugi_array_compare_swap4` on an element of 8 bytes.
///
/// # Safety
///
/// As for `tsumugi_array_compare_swap4`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_compare_swap8(
    array: *const tsumugi_array,
    index: usize,
    expected: u64,
    desired: u64,
    old: *mut u64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        on_units(array, tsumugi_array::eights, old, |units| {
            units.compare_swap(index, expected, desired).map_err(of_array)
        })
    }
}

impl tsumugi_array {
    fn fours(&self) -> Result<&GlobalArray<u32>, c_int> {
        match &self.units {
            Units::Four(array) if self.element_bytes == 4 => Ok(array),
            _ => Err(self.not_of(4)),
        }
    }

    fn eights(&self) -> Result<&GlobalArray<u64>, c_int> {
        match &self.units {
            Units::Eight(array) if self.element_bytes == 8 => Ok(array),
            _ => Err(self.not_of(8)),
        }
    }

    fn not_of(&self, bytes: usize) -> c_int {
        let own = self.element_bytes;
        let reason = format_args!("the elements have {own} bytes, and the operation {bytes}");
        refuse(TSUMUGI_ERROR_VALUE, reason)
    }
}

/// Carries out an operation on the units of an array, and writes the old value to `old`.
///
/// # Safety
///
/// `array` is null or an array; `old` is null or valid for a write.
unsafe fn on_units<T: Word>(
    array: *const tsumugi_array,
    units: impl FnOnce(&tsumugi_array) -> Result<&GlobalArray<T>, c_int>,
    old: *mut T,
    operation: impl FnOnce(&GlobalArray<T>) -> Result<T, c_int>,
) -> c_int {
    let run = || {
        // SAFETY: the caller's.
        let was = operation(units(unsafe { live(array) }?)?)?;
        // SAFETY: the caller's.
        unsafe { tell(old, was) };
        Ok(())
    };
    code_of(run())
}

fn change<T: Word>(
    array: &GlobalArray<T>,
    what: c_int,
    index: usize,
    operand: T,
) -> Result<T, c_int> {
    let was = match what {
        TSUMUGI_ATOMIC_ADD => array.fetch_add(index, operand),
        TSUMUGI_ATOMIC_AND => array.fetch_and(index, operand),
        TSUMUGI_ATOMIC_OR => array.fetch_or(index, operand),
        TSUMUGI_ATOMIC_XOR => array.fetch_xor(index, operand),
        TSUMUGI_ATOMIC_SWAP => array.swap(index, operand),
        _ => {
            let reason = format_args!("{what} is no atomic operation");
            return Err(refuse(TSUMUGI_ERROR_VALUE, reason));
        }
    };
    was.map_err(of_array)
}
