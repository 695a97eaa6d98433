//! Reads and writes of the elements of an array: of some that follow each other, and of a
//! list.

use super::array::with_units;
use super::code::{code_of, of_array};
use super::object::{bytes_at, bytes_of, list_at, live, room_at};
use super::tsumugi_array;
use std::ffi::{c_int, c_void};
use std::slice;
use tsumugi::{GlobalArray, Plain};

/// Reads `count` elements from `index` on. Lock-free; wait-free between ranks of a node
/// while their pages stay where they are.
///
/// Errors: RANGE, LOST, ENDED, NULL.
///
/// # Safety
///
/// `array` is an array; `into` is valid for a write of `count` elements, and is no memory
/// of the array's pages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_get(
    array: *const tsumugi_array,
    index: usize,
    into: *mut c_void,
    count: usize,
) -> c_int {
    let get = || {
        // SAFETY: the caller's.
        let of = unsafe { live(array) }?;
        let (at, bytes) = of.range(index, count)?;
        let into = room_at(into, bytes, "into")?;
        // SAFETY: the caller's; the place holds as many bytes as the elements have.
        with_units!(&of.units, |units| unsafe { load(units, at, into, bytes) })
    };
    code_of(get())
}

/// Writes `count` elements from `index` on. Blocks.
///
/// Errors: RANGE, LOST, ENDED, NULL.
///
/// # Safety
///
/// `array` is an array; `from` is valid for a read of `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_put(
    array: *const tsumugi_array,
    index: usize,
    from: *const c_void,
    count: usize,
) -> c_int {
    let put = || {
        // SAFETY: the caller's.
        let of = unsafe { live(array) }?;
        let (at, bytes) = of.range(index, count)?;
        // SAFETY: the caller's.
        let from = unsafe { bytes_at(from, bytes, "from") }?;
        with_units!(&of.units, |units| store(units, at, from))
    };
    code_of(put())
}

/// Reads `count` elements, those of `indices`, to `into`, one after the other. The indices
/// may be in any order and may repeat. Elements on other nodes are read by several ULTs at
/// once. Blocks; wait-free between ranks of a node while the pages stay where they are.
///
/// Errors: RANGE, LENGTH (no memory has so many bytes), LOST (some elements may have been
/// read then), ENDED, NULL.
///
/// # Safety
///
/// `array` is an array; `indices` is valid for a read of `count` numbers, `into` for a write
/// of `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_gather(
    array: *const tsumugi_array,
    indices: *const usize,
    count: usize,
    into: *mut c_void,
) -> c_int {
    let gather = || {
        // SAFETY: the caller's.
        let (of, indices) = unsafe { (live(array)?, list_at(indices, count, "indices")?) };
        let into = room_at(into, of.bytes_of(indices)?, "into")?;
        // SAFETY: the caller's; the place holds the elements.
        with_units!(&of.units, |units| unsafe { of.gather(units, indices, into) })
    };
    code_of(gather())
}

/// Writes `count` elements, those of `indices`, from `from`, one after the other. If an
/// index repeats, any of its values may be the last. Elements on other nodes are written by
/// several ULTs at once. Blocks.
///
/// Errors: RANGE, LENGTH (no memory has so many bytes; nothing was written in both cases),
/// LOST (some elements may have been written), ENDED, NULL.
///
/// # Safety
///
/// `array` is an array; `indices` is valid for a read of `count` numbers, `from` for a read
/// of `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_scatter(
    array: *const tsumugi_array,
    indices: *const usize,
    count: usize,
    from: *const c_void,
) -> c_int {
    let scatter = || {
        // SAFETY: the caller's.
        let (of, indices) = unsafe { (live(array)?, list_at(indices, count, "indices")?) };
        // SAFETY: the caller's.
        let from = unsafe { bytes_at(from, of.bytes_of(indices)?, "from") }?;
        with_units!(&of.units, |units| of.scatter(units, indices, from))
    };
    code_of(scatter())
}

impl tsumugi_array {
    /// The bytes of the elements of a list, which the array has.
    fn bytes_of(&self, indices: &[usize]) -> Result<usize, c_int> {
        indices.iter().try_for_each(|index| self.range(*index, 1).map(drop))?;
        bytes_of(indices.len(), self.element_bytes)
    }

    /// Reads elements to `into`.
    ///
    /// # Safety
    ///
    /// `into` is valid for a write of the elements.
    unsafe fn gather<T: Plain>(
        &self,
        array: &GlobalArray<T>,
        indices: &[usize],
        into: *mut u8,
    ) -> Result<(), c_int> {
        let each = self.each();
        let mut into = into.cast::<T>();
        if each == 1 {
            // SAFETY: the caller's.
            return unsafe { array.load_list(indices, into) }.map_err(of_array);
        }
        self.by_parts(indices, |first, units| {
            // SAFETY: the caller's; the places of the parts follow each other.
            let count = unsafe {
                match units {
                    None => array.load(first, into, each).map(|()| each),
                    Some(units) => array.load_list(units, into).map(|()| units.len()),
                }
            };
            into = into.wrapping_add(count.map_err(of_array)?);
            Ok(())
        })
    }

    /// Writes elements.
    fn scatter<T: Plain>(
        &self,
        array: &GlobalArray<T>,
        indices: &[usize],
        from: &[u8],
    ) -> Result<(), c_int> {
        let each = self.each();
        let values = from.as_ptr().cast::<T>();
        if each == 1 && values.is_aligned() {
            // SAFETY: the bytes are borrowed, and are values of a `Plain` type.
            let values = unsafe { slice::from_raw_parts(values, indices.len()) };
            return array.scatter(indices, values).map_err(of_array);
        }
        let (mut part, bytes) = (Part::new(), each * size_of::<T>());
        let mut from = from;
        self.by_parts(indices, |first, units| {
            let own;
            match units {
                None => {
                    (own, from) = from.split_at(bytes);
                    store(array, first, own)
                }
                Some(units) => {
                    let values = part.values(units.len());
                    (own, from) = from.split_at(size_of_val(values));
                    copy_in(values, own);
                    array.scatter(units, values).map_err(of_array)
                }
            }
        })
    }

    /// Calls `once` with the units of the elements of a list, part by part: with the first
    /// unit alone if an element has too many for a part.
    fn by_parts(
        &self,
        indices: &[usize],
        mut once: impl FnMut(usize, Option<&[usize]>) -> Result<(), c_int>,
    ) -> Result<(), c_int> {
        let each = self.each();
        if each > UNITS_MAX {
            return indices.iter().try_for_each(|index| once(index * each, None));
        }
        let mut units = [0; UNITS_MAX];
        indices.chunks(UNITS_MAX / each).try_for_each(|part| {
            for (place, unit) in units.iter_mut().enumerate().take(part.len() * each) {
                *unit = part[place / each] * each + place % each;
            }
            once(units[0], Some(&units[..part.len() * each]))
        })
    }

    /// The units of an element.
    fn each(&self) -> usize {
        self.element_bytes / self.unit_bytes()
    }
}

/// Memory for some units, aligned for them.
struct Part([u64; UNITS_MAX]);

impl Part {
    fn new() -> Self {
        Self([0; UNITS_MAX])
    }

    /// `count` units, with any values.
    fn values<T: Plain>(&mut self, count: usize) -> &mut [T] {
        const { assert!(size_of::<T>() <= size_of::<u64>()) };
        assert!(count <= UNITS_MAX, "{count} units in a part");
        // SAFETY: there is room, and any bytes are values of a `Plain` type.
        unsafe { slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), count) }
    }
}

/// Copies bytes that may be unaligned to as many bytes of values.
fn copy_in<T: Plain>(values: &mut [T], from: &[u8]) {
    assert_eq!(size_of_val(values), from.len());
    // SAFETY: the lengths are the same; any bytes are values of a `Plain` type.
    unsafe { values.as_mut_ptr().cast::<u8>().copy_from(from.as_ptr(), from.len()) };
}

/// Reads units from `at` on.
///
/// # Safety
///
/// `into` is valid for a write of `bytes` bytes, a multiple of the unit.
unsafe fn load<T: Plain>(
    array: &GlobalArray<T>,
    at: usize,
    into: *mut u8,
    bytes: usize,
) -> Result<(), c_int> {
    let (into, count) = (into.cast::<T>(), bytes / size_of::<T>());
    if count == 1 {
        let value = array.get(at).map_err(of_array)?;
        // SAFETY: the caller's.
        unsafe { into.write_unaligned(value) };
        return Ok(());
    }
    // SAFETY: the caller's.
    unsafe { array.load(at, into, count) }.map_err(of_array)
}

/// Writes units from `at` on.
fn store<T: Plain>(array: &GlobalArray<T>, at: usize, from: &[u8]) -> Result<(), c_int> {
    let (count, values) = (from.len() / size_of::<T>(), from.as_ptr().cast::<T>());
    if count == 1 {
        // SAFETY: the bytes are a value of a `Plain` type, which may be unaligned.
        let value = unsafe { values.read_unaligned() };
        return array.put(at, value).map_err(of_array);
    }
    if values.is_aligned() {
        // SAFETY: the bytes are borrowed, and are values of a `Plain` type.
        let values = unsafe { slice::from_raw_parts(values, count) };
        return array.put_slice(at, values).map_err(of_array);
    }
    let mut part = Part::new();
    from.chunks(UNITS_MAX * size_of::<T>()).enumerate().try_for_each(|(number, from)| {
        let values = part.values::<T>(from.len() / size_of::<T>());
        copy_in(values, from);
        array.put_slice(at + number * UNITS_MAX, values).map_err(of_array)
    })
}

/// The most units that are copied at once: the elements of a list that have several, and
/// those of memory that is not aligned.
const UNITS_MAX: usize = 128;
