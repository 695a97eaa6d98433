//! Populates pages before their first use: in the kernel, many at once, instead of
//! one at each fault.
//!
//! ```text
//!  owner   heap and exposed memory    MADV_POPULATE_WRITE   what an allocator
//!          lend for the first time                          lends, whole pages
//!  peer    Space::reach(at, len)      MADV_POPULATE_READ    windows of 256 KiB
//!                                                           that hold the bytes
//! ```
//!
//! Where the kernel is older than these calls, a page is populated by an addition
//! of 0 to a word in it (the owner) or by a load (a peer). The process that
//! populates a page touches it first, so the page lies near that process's core.

use crate::sys;
use std::fmt;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;
use tsumugi_core::sync::mapped;
use tsumugi_core::sync::{AtomicBool, AtomicU64, Ordering};

/// How pages are populated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopulateMethod {
    /// The kernel, a range with one call.
    Kernel,
    /// This process, a page at a time.
    Touch,
}

/// The amount that was populated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Populated {
    /// The number of bytes.
    pub bytes: u64,
    /// How long it took, in nanoseconds.
    pub ns: u64,
    /// The way in which the pages were populated.
    pub by: PopulateMethod,
}

/// Populates pages, and counts them.
#[derive(Default)]
pub struct Tally {
    bytes: AtomicU64,
    ns: AtomicU64,
    touches: AtomicBool,
}

/// The access for which pages are populated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The pages become mapped, for reads.
    Read,
    /// The pages become mapped, for writes of the caller.
    Write,
}

impl Tally {
    /// Populates the whole pages that contain the range. A page that the system
    /// refuses is allocated, or fails, at its first touch.
    ///
    /// # Safety
    ///
    /// The pages are mapped, and with [`Need::Write`] this process's own.
    #[cold]
    pub unsafe fn populate(&self, range: Range<usize>, need: Need) {
        let start = Instant::now();
        let first = range.start / PAGE_BYTES * PAGE_BYTES;
        let range = first..range.end.next_multiple_of(PAGE_BYTES);
        // SAFETY: the caller's contract is the same, and the range is whole pages.
        if unsafe { populate(range.clone(), need) } == PopulateMethod::Touch {
            self.touches.store(true, Ordering::Relaxed);
        }
        self.bytes.fetch_add(range.len() as u64, Ordering::Relaxed);
        self.ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// The amount that was populated so far.
    pub fn populated(&self) -> Populated {
        let by = if self.touches.load(Ordering::Relaxed) {
            PopulateMethod::Touch
        } else {
            PopulateMethod::Kernel
        };
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Populated { bytes: load(&self.bytes), ns: load(&self.ns), by }
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.populated().fmt(f)
    }
}

/// # Safety
///
/// As [`Tally::populate`]; the range is whole pages.
unsafe fn populate(range: Range<usize>, need: Need) -> PopulateMethod {
    let advice = match need {
        Need::Read => libc::MADV_POPULATE_READ,
        Need::Write => libc::MADV_POPULATE_WRITE,
    };
    // SAFETY: the caller's contract holds for the range, and the advice changes no
    // byte.
    match unsafe { sys::advise(range.start, range.len(), advice) } {
        // Linux before 5.14 has neither advice.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            // SAFETY: the caller's contract is the same.
            unsafe { touch(range, need) };
            PopulateMethod::Touch
        }
        _ => PopulateMethod::Kernel,
    }
}

/// As [`populate`], a page at a time.
///
/// # Safety
///
/// As `populate`.
unsafe fn touch(range: Range<usize>, need: Need) {
    for at in range.step_by(PAGE_BYTES) {
        // SAFETY: the word is mapped and aligned; an addition of 0 does not disturb
        // stores of other threads to it.
        let word = unsafe { &*(at as *const mapped::AtomicU64) };
        // Without `black_box` the compiler drops a load without a use of its value.
        black_box(match need {
            Need::Read => word.load(mapped::Ordering::Relaxed),
            Need::Write => word.fetch_add(0, mapped::Ordering::Relaxed),
        });
    }
}

const PAGE_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    const BYTES: usize = 1 << 20;

    /// The bytes of mapped pages of the process in the range from `at`.
    fn resident(at: usize) -> usize {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let from = smaps.find(&format!("{at:x}-")).unwrap();
        let line = smaps[from..].lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 4
    }

    #[test]
    fn both_ways_populate_pages_and_change_no_byte() {
        for by_kernel in [true, false] {
            let file = sys::memory_file(BYTES).unwrap();
            let at = sys::map(file.as_fd(), None, BYTES).unwrap().as_ptr() as usize;
            // SAFETY: fresh and ours.
            unsafe { ((at + 4096) as *mut u64).write(7) };
            let ranges = [at..at + BYTES / 2, at + BYTES / 2..at + BYTES];
            for (range, need) in ranges.into_iter().zip([Need::Write, Need::Read]) {
                if by_kernel {
                    // SAFETY: the same.
                    assert_eq!(unsafe { populate(range, need) }, PopulateMethod::Kernel);
                } else {
                    // SAFETY: the same.
                    unsafe { touch(range, need) };
                }
            }
            assert_eq!(resident(at), BYTES / 4096);
            // SAFETY: the same.
            assert_eq!(unsafe { ((at + 4096) as *const u64).read() }, 7);
        }
    }

    #[test]
    fn whole_pages_are_counted() {
        let (file, tally) = (sys::memory_file(BYTES).unwrap(), Tally::default());
        let at = sys::map(file.as_fd(), None, BYTES).unwrap().as_ptr() as usize;
        // SAFETY: fresh and ours.
        unsafe { tally.populate(at + 4000..at + 4100, Need::Write) };
        assert_eq!((tally.populated().bytes, resident(at)), (8192, 2));
    }
}
