//! Checkouts of an array: copies of elements that a rank works on as plain memory.

use super::array::{Units, with_units};
use super::code::{code_of, of_array, of_failure};
use super::object::{end, given, live, make, object, refuse};
use super::{TSUMUGI_ERROR_VALUE, tsumugi_array};
use std::ffi::{c_int, c_void};
use std::fmt;
use std::ops::Range;
use tsumugi::array::{ArrayError, Checkout, Read, ReadWrite, Write};
use tsumugi::{GlobalArray, Plain};

/// The elements are read.
pub const TSUMUGI_CHECKOUT_READ: c_int = 0;
/// All elements are written. Their old values are not fetched: an element that the
/// program does not write then has an arbitrary value, in the array, too.
pub const TSUMUGI_CHECKOUT_WRITE: c_int = 1;
/// The elements are read and written.
pub const TSUMUGI_CHECKOUT_READ_WRITE: c_int = 2;

/// Elements that are lent to the program until `tsumugi_checkin`. It belongs to no
/// thread.
pub struct tsumugi_checkout(#[allow(dead_code, reason = "held until dropped")] CheckedOut);

/// A checkout by the size of the array's units.
#[allow(dead_code, reason = "held until dropped")]
enum CheckedOut {
    One(CheckoutBy<u8>),
    Two(CheckoutBy<u16>),
    Four(CheckoutBy<u32>),
    Eight(CheckoutBy<u64>),
}

/// A checkout by its use.
#[allow(dead_code, reason = "held until dropped")]
enum CheckoutBy<T: Plain> {
    Read(Checkout<T, Read>),
    Write(Checkout<T, Write>),
    ReadWrite(Checkout<T, ReadWrite>),
}

/// Lends `count` elements from `index` on, for a use of them (`TSUMUGI_CHECKOUT_*`), and
/// writes the address of their copies to `elements`. At one rank, an element is lent to
/// one writer or to any number of readers at a time. Copies stay in this rank's cache,
/// so the next checkout of the same elements needs no access to another rank until
/// `tsumugi_array_acquire`. Blocks.
///
/// Errors: HELD (a checkout of this rank has some of the elements, and either writes),
/// MEMORY (`cached_bytes` are lent already), RANGE, LENGTH, VALUE (of `mode`), LOST,
/// ENDED, NULL.
///
/// # Safety
///
/// `array` is an array; `elements` and `out` are valid for a write. The program uses the
/// elements as `mode` says, and not after `tsumugi_checkin`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_checkout(
    array: *const tsumugi_array,
    index: usize,
    count: usize,
    mode: c_int,
    elements: *mut *mut c_void,
    out: *mut *mut tsumugi_checkout,
) -> c_int {
    let checkout = || {
        // SAFETY: the caller's.
        let (of, out) = unsafe { (live(array)?, given(out, "out")?) };
        let elements = given(elements, "elements")?;
        let (at, bytes) = of.range(index, count)?;
        let units = at..at + bytes / of.unit_bytes();
        let (lent, start) = match &of.units {
            Units::One(array) => lend(array, units, mode, CheckedOut::One),
            Units::Two(array) => lend(array, units, mode, CheckedOut::Two),
            Units::Four(array) => lend(array, units, mode, CheckedOut::Four),
            Units::Eight(array) => lend(array, units, mode, CheckedOut::Eight),
        }?;
        // SAFETY: the caller's.
        unsafe {
            elements.write(start);
            make(out, tsumugi_checkout(lent));
        }
        Ok(())
    };
    code_of(checkout())
}

/// Gives the elements back. Elements that were lent for writing are written to the array
/// by the next `tsumugi_array_release`, or earlier. Blocks only on the lock of this
/// rank's cache.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `checkout` is a checkout; no thread uses its elements any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_checkin(checkout: *mut tsumugi_checkout) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { end(checkout) }.map(drop))
}

/// Writes back the elements that were lent for writing and have been checked in: a rank
/// that acquires after this sees them. Blocks.
///
/// Errors: LOST (elements that the dead rank owned are lost; all others are written),
/// ENDED, NULL.
///
/// # Safety
///
/// `array` is an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_release(array: *const tsumugi_array) -> c_int {
    let release = || {
        // SAFETY: the caller's.
        let of = unsafe { live(array) }?;
        with_units!(&of.units, |array| array.release()).map_err(of_array)
    };
    code_of(release())
}

/// Discards the copies that are not lent, so that later checkouts see what other ranks
/// have released before.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `array` is an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_acquire(array: *const tsumugi_array) -> c_int {
    let acquire = || {
        // SAFETY: the caller's.
        let of = unsafe { live(array) }?;
        with_units!(&of.units, |array| array.acquire());
        Ok(())
    };
    code_of(acquire())
}

/// A release by every rank, followed by an acquire by every rank. All ranks must call
/// it. Blocks.
///
/// Errors: those of `tsumugi_array_release`; LOST, JOB.
///
/// # Safety
///
/// `array` is an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_fence(array: *const tsumugi_array) -> c_int {
    let fence = || {
        // SAFETY: the caller's.
        let of = unsafe { live(array) }?;
        with_units!(&of.units, |array| array.fence()).map_err(of_failure)
    };
    code_of(fence())
}

/// Lends units; returns the checkout and the address of its first element.
fn lend<T: Plain>(
    array: &GlobalArray<T>,
    units: Range<usize>,
    mode: c_int,
    keep: impl FnOnce(CheckoutBy<T>) -> CheckedOut,
) -> Result<(CheckedOut, *mut c_void), c_int> {
    let lent: Result<(CheckoutBy<T>, *mut T), ArrayError> = match mode {
        TSUMUGI_CHECKOUT_READ => array.checkout(units, Read).map(|lent| {
            let start = lent.as_ptr().cast_mut();
            (CheckoutBy::Read(lent), start)
        }),
        TSUMUGI_CHECKOUT_WRITE => array.checkout(units, Write).map(|mut lent| {
            let start = lent.as_mut_ptr();
            (CheckoutBy::Write(lent), start)
        }),
        TSUMUGI_CHECKOUT_READ_WRITE => array.checkout(units, ReadWrite).map(|mut lent| {
            let start = lent.as_mut_ptr();
            (CheckoutBy::ReadWrite(lent), start)
        }),
        _ => {
            let reason = format_args!("{mode} is no mode of a checkout");
            return Err(refuse(TSUMUGI_ERROR_VALUE, reason));
        }
    };
    let (lent, start) = lent.map_err(of_array)?;
    Ok((keep(lent), start.cast()))
}

object!(tsumugi_checkout, "checkout");

impl fmt::Debug for tsumugi_checkout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tsumugi_checkout")
    }
}
