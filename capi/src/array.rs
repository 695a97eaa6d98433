//! Arrays over all ranks, with pages that move to the rank that uses them.
//!
//! The size of an element is known at run time only, so an array consists of *units*: the
//! largest of the words of 8, 4, 2 and 1 bytes that divides the element. A page has whole
//! elements, so an element lies on one page.

use super::code::{code_of, of_array, of_failure};
use super::job::job;
use super::object::{end, given, make, object, refuse};
use super::parameter::{self, read};
use super::{TSUMUGI_ERROR_LENGTH, TSUMUGI_ERROR_VALUE, tsumugi_job};
use std::ffi::c_int;
use tsumugi::array::{ArrayError, ArrayOptions, Directory, Distribution};
use tsumugi::{Error, GlobalArray, Plain, Runtime};

/// Contiguous runs of pages: rank 0 has the first run.
pub const TSUMUGI_ARRAY_BLOCK: u32 = 0;
/// One page after the other, rank by rank.
pub const TSUMUGI_ARRAY_CYCLIC: u32 = 1;

/// Ranks find pages by remote reads, writes and atomics alone.
pub const TSUMUGI_ARRAY_ATOMICS: u32 = 0;
/// The same, by the network device, where there is one that can.
pub const TSUMUGI_ARRAY_DEVICE: u32 = 1;
/// The home of a page answers messages; for comparison, and for up to 64 ranks.
pub const TSUMUGI_ARRAY_MESSAGES: u32 = 2;

/// The shape of an array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tsumugi_array_options {
    /// `sizeof(struct tsumugi_array_options)`.
    pub size: usize,
    /// The number of elements.
    pub len: usize,
    /// The bytes of an element.
    pub element_bytes: usize,
    /// The number of elements in a page; 0: as many as fit in 4 KiB.
    pub page_len: usize,
    /// Bytes of the pages of which a rank keeps copies for checkouts; 0: 16 MiB.
    pub cached_bytes: usize,
    /// The number of pages of which a rank knows the owners; 0: 1,024.
    pub known: u32,
    /// The number of pages that a rank can own at a time; 0: all of them.
    pub room: u32,
    /// Which rank has which page at first: `TSUMUGI_ARRAY_BLOCK`, `TSUMUGI_ARRAY_CYCLIC`.
    pub first: u32,
    /// How ranks find pages: `TSUMUGI_ARRAY_ATOMICS` and the others.
    pub directory: u32,
}

// SAFETY: all members are words and halves of words that fill words, and the first is
// the size.
unsafe impl parameter::Versioned for tsumugi_array_options {}

/// An array over all ranks. Accesses to one element of 1, 2, 4 or 8 bytes are
/// linearizable, whichever rank owns its page; a larger element may be seen half
/// written. Any thread and any ULT may use it.
#[derive(Debug)]
pub struct tsumugi_array {
    pub(super) units: Units,
    len: usize,
    pub(super) element_bytes: usize,
}

/// The array by the size of its units.
#[derive(Debug)]
pub(super) enum Units {
    One(GlobalArray<u8>),
    Two(GlobalArray<u16>),
    Four(GlobalArray<u32>),
    Eight(GlobalArray<u64>),
}

/// Runs code with the array, which has another type for each size of its units.
macro_rules! with_units {
    ($units:expr, |$array:ident| $body:expr) => {
        match $units {
            $crate::array::Units::One($array) => $body,
            $crate::array::Units::Two($array) => $body,
            $crate::array::Units::Four($array) => $body,
            $crate::array::Units::Eight($array) => $body,
        }
    };
}
pub(super) use with_units;

/// Makes an array of zeroes. All ranks must call it, with the same options, in the same
/// order. Blocks.
///
/// Errors: VALUE (no elements, elements without bytes, too many pages, `first` or
/// `directory`), LENGTH (the bytes are more than an address space, or another rank gives
/// other options), MEMORY, CROWDED, LOST, JOB, SIZE, NULL.
///
/// # Safety
///
/// `job` is a live job; `options` is valid for a read of as many bytes as its `size`
/// states; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_create(
    job: *const tsumugi_job,
    options: *const tsumugi_array_options,
    out: *mut *mut tsumugi_array,
) -> c_int {
    let create = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (self::job(job)?, given(out, "out")?) };
        given(options.cast_mut(), "options")?;
        // SAFETY: the caller's.
        let of = unsafe { read(options) }?;
        let array = tsumugi_array::new(&job.runtime, of)?;
        // SAFETY: the caller's.
        unsafe { make(out, array) };
        Ok(())
    };
    code_of(create())
}

/// Ends the handle of an array; checkouts keep what they have. The memory is freed at the
/// next barrier, so all ranks must have ended their accesses before it.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `array` is an array; no thread of this process uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_array_destroy(array: *mut tsumugi_array) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { end(array) }.map(drop))
}

impl tsumugi_array {
    fn new(runtime: &Runtime, of: tsumugi_array_options) -> Result<Self, c_int> {
        let wrong = |what, value: u64| {
            refuse(TSUMUGI_ERROR_VALUE, format_args!("{value} is no {what} of an array"))
        };
        let first = match of.first {
            TSUMUGI_ARRAY_BLOCK => Distribution::Block,
            TSUMUGI_ARRAY_CYCLIC => Distribution::Cyclic,
            first => return Err(wrong("distribution", first.into())),
        };
        let directory = match of.directory {
            TSUMUGI_ARRAY_ATOMICS => Directory::Atomics,
            TSUMUGI_ARRAY_DEVICE => Directory::Device,
            TSUMUGI_ARRAY_MESSAGES => Directory::Messages,
            directory => return Err(wrong("directory", directory.into())),
        };
        if of.element_bytes == 0 {
            return Err(wrong("size of the elements", 0));
        }
        let unit = 1 << of.element_bytes.trailing_zeros().min(3);
        let each = of.element_bytes / unit;
        let too_long = || {
            let (len, bytes) = (of.len, of.element_bytes);
            let reason = format_args!("{len} elements of {bytes} bytes exceed an address space");
            refuse(TSUMUGI_ERROR_LENGTH, reason)
        };
        let page_len =
            if of.page_len == 0 { (PAGE_BYTES / of.element_bytes).max(1) } else { of.page_len };
        let (Some(len), Some(page_len)) = (of.len.checked_mul(each), page_len.checked_mul(each))
        else {
            return Err(too_long());
        };
        let mut options =
            ArrayOptions::new().distribution(first).page_len(page_len).directory(directory);
        // In C a field of 0 is one that the program has not set.
        if of.known > 0 {
            options = options.known(of.known);
        }
        if of.room > 0 {
            options = options.room(of.room);
        }
        if of.cached_bytes > 0 {
            options = options.cached_bytes(of.cached_bytes);
        }
        let units = match unit {
            1 => options.create(runtime, len).map(Units::One),
            2 => options.create(runtime, len).map(Units::Two),
            4 => options.create(runtime, len).map(Units::Four),
            _ => options.create(runtime, len).map(Units::Eight),
        };
        // The shape of the pages is what else can be wrong.
        let units = units.map_err(|error| match error {
            Error::Other(error) => refuse(TSUMUGI_ERROR_VALUE, error),
            error => of_failure(error),
        })?;
        Ok(Self { units, len: of.len, element_bytes: of.element_bytes })
    }

    /// The first unit of some elements, and their bytes.
    pub(super) fn range(&self, index: usize, count: usize) -> Result<(usize, usize), c_int> {
        match index.checked_add(count) {
            Some(end) if end <= self.len => {
                let each = self.element_bytes / self.unit_bytes();
                Ok((index * each, count * self.element_bytes))
            }
            _ => Err(of_array(ArrayError::OutOfRange { index, count, len: self.len })),
        }
    }

    pub(super) fn unit_bytes(&self) -> usize {
        with_units!(&self.units, |array| unit_bytes(array))
    }
}

object!(tsumugi_array, "array");

fn unit_bytes<T: Plain>(_: &GlobalArray<T>) -> usize {
    size_of::<T>()
}

/// The default size of a page.
const PAGE_BYTES: usize = 4096;
