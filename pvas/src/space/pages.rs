//! Pages before their first use: touched by their owner, mapped by peers.
//!
//! ```text
//!  owner   populate_own     MADV_POPULATE_WRITE   heap and exposed memory, the
//!                                                 first bytes of each
//!  peer    reach(at, len)   MADV_POPULATE_READ    the windows of 256 KiB that
//!                                                 hold these bytes, once each
//! ```
//!
//! Where the kernel is older than these calls, a page is populated by an
//! addition of 0 to a word in it (the owner) or by a load (a peer). What a page
//! costs so, and through a fault, is in `tsumugi info`.

use super::{Space, place};
use crate::config::Populate;
use crate::sys;
use std::fs;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::time::Instant;
use tsumugi_core::mem::Rank;
use tsumugi_core::sync::mapped;
use tsumugi_core::sync::{AtomicU64, Ordering};

/// Who populates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The kernel, a range with one call.
    Kernel,
    /// This process, a page at a time.
    Touch,
}

/// What was populated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Populated {
    /// How much.
    pub bytes: u64,
    /// How long it took.
    pub ns: u64,
    /// By whom.
    pub by: By,
}

/// What a range of a partition is made of, as the system counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Bytes that this process has mapped to memory.
    pub resident_bytes: u64,
    /// Those of them in pages of 2 MiB.
    pub huge_bytes: u64,
}

/// What a process has populated of a space.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// A bit for each window of each partition: populated before.
    windows: Vec<OnceLock<Box<[AtomicU64]>>>,
    peers_bytes: AtomicU64,
    peers_ns: AtomicU64,
}

impl Views {
    pub(super) fn of(size: u32) -> Self {
        Self { windows: (0..size).map(|_| OnceLock::new()).collect(), ..Self::default() }
    }
}

impl Space {
    /// Touches the first pages of `rank`'s heap and exposed memory, if the
    /// job's policy wants it: for a rank of this process, from the core that
    /// it will use them on. What the system refuses comes with first touches.
    pub fn populate_own(&self, rank: Rank) -> Option<Populated> {
        let policy = self.policy();
        if policy.populate == Populate::None || self.own_of(rank).is_none() {
            return None;
        }
        let (shape, start) = (self.shape(), Instant::now());
        let parts = [
            (shape.exposed_offset(), shape.exposed_bytes.min(policy.populate_bytes)),
            (shape.heap_offset(), shape.heap_bytes.min(policy.populate_bytes)),
        ];
        let (mut bytes, mut by) = (0, By::Kernel);
        for (offset, part_bytes) in parts {
            let at = place(shape, rank, offset).as_ptr() as usize;
            // SAFETY: of this rank's own partition, which stays mapped.
            by = unsafe { populate(at..at + part_bytes, true) };
            bytes += part_bytes as u64;
        }
        Some(Populated { bytes, ns: start.elapsed().as_nanos() as u64, by })
    }

    /// Maps the pages of these bytes of `rank`'s partition here, if the job's
    /// policy wants it: before the first use of memory that its owner uses
    /// already. Wait-free, but for the kernel's work with a window's first use.
    #[inline]
    pub fn reach(&self, rank: Rank, at: NonNull<u8>, bytes: u64) {
        if self.policy().populate == Populate::Peers && self.own_of(rank).is_none() {
            self.reach_windows(rank, at, bytes);
        }
    }

    /// What [`reach`](Self::reach) has populated so far.
    pub fn populated_of_peers(&self) -> Populated {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let views = self.views();
        Populated { bytes: load(&views.peers_bytes), ns: load(&views.peers_ns), by: By::Kernel }
    }

    /// What `rank`'s heap and exposed memory are made of in this process;
    /// `None` where the system does not say.
    pub fn pages(&self, rank: Rank) -> Option<Pages> {
        let (shape, start) = (self.shape(), self.shape().start(rank));
        let range = start + shape.exposed_offset()..start + shape.stacks_offset();
        Some(pages_in(&fs::read_to_string("/proc/self/smaps").ok()?, range))
    }

    #[cold]
    fn reach_windows(&self, rank: Rank, at: NonNull<u8>, bytes: u64) {
        let Some((_, offset)) = self.place_of(at, bytes).filter(|(owner, _)| *owner == rank) else {
            return;
        };
        let (shape, views) = (self.shape(), self.views());
        let words = shape.bytes().div_ceil(WINDOW_BYTES).div_ceil(64);
        let windows = views.windows[rank.0 as usize]
            .get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        let last = (offset + bytes.max(1) - 1) as usize / WINDOW_BYTES;
        for window in offset as usize / WINDOW_BYTES..=last {
            let (word, bit) = (&windows[window / 64], 1 << (window % 64));
            // Relaxed: two that populate a window at once do no harm.
            if word.load(Ordering::Relaxed) & bit != 0 {
                continue;
            }
            word.fetch_or(bit, Ordering::Relaxed);
            let start = Instant::now();
            let first = shape.start(rank) + window * WINDOW_BYTES;
            let end = (first + WINDOW_BYTES).min(shape.start(rank) + shape.bytes());
            // SAFETY: of a partition that stays mapped, and only read.
            unsafe { populate(first..end, false) };
            views.peers_bytes.fetch_add((end - first) as u64, Ordering::Relaxed);
            views.peers_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    }
}

/// Populates whole pages, by a write that changes nothing or by a read.
///
/// # Safety
///
/// The range is mapped; with `write`, it is this process's own.
unsafe fn populate(range: Range<usize>, write: bool) -> By {
    let advice = if write { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
    // SAFETY: the caller's, and no byte changes.
    match unsafe { sys::advise(range.start, range.len(), advice) } {
        // Linux before 5.14 knows neither.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            // SAFETY: the caller's.
            unsafe { touch(range, write) };
            By::Touch
        }
        // Memory ran out: the rest comes, or fails, with its first touch.
        _ => By::Kernel,
    }
}

/// As [`populate`], a page at a time.
///
/// # Safety
///
/// As `populate`.
unsafe fn touch(range: Range<usize>, write: bool) {
    for at in range.step_by(PAGE_BYTES) {
        // SAFETY: mapped and aligned; an addition of 0 changes nothing that
        // others may be storing there.
        let word = unsafe { &*(at as *const mapped::AtomicU64) };
        if write {
            word.fetch_add(0, mapped::Ordering::Relaxed);
        } else {
            word.load(mapped::Ordering::Relaxed);
        }
    }
}

/// Sums over the mappings of `smaps` that lie in the range.
fn pages_in(smaps: &str, range: Range<usize>) -> Pages {
    let (mut pages, mut is_inside) = (Pages::default(), false);
    for line in smaps.lines() {
        let Some((name, rest)) = line.split_once(' ') else { continue };
        if let Some((first, last)) = name.split_once('-') {
            let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
            is_inside = number(first) >= range.start && number(last) <= range.end;
            continue;
        }
        let kib = || rest.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or(0);
        if !is_inside {
            continue;
        }
        match name {
            "Rss:" => pages.resident_bytes += kib() << 10,
            "ShmemPmdMapped:" => pages.huge_bytes += kib() << 10,
            // Pages of the pool are counted apart, and not as resident.
            "Shared_Hugetlb:" | "Private_Hugetlb:" => {
                pages.resident_bytes += kib() << 10;
                pages.huge_bytes += kib() << 10;
            }
            _ => {}
        }
    }
    pages
}

/// What one call of a peer populates: 64 small pages.
pub(super) const WINDOW_BYTES: usize = 256 << 10;
const PAGE_BYTES: usize = 4096;

/// Bytes of the book over a peer's windows, kept from its first use on.
pub const fn windows_bytes(partition_bytes: usize) -> usize {
    partition_bytes.div_ceil(WINDOW_BYTES).div_ceil(64) * 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    const BYTES: usize = 1 << 20;

    fn resident(at: usize) -> u64 {
        let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
        pages_in(&smaps, at..at + BYTES).resident_bytes
    }

    #[test]
    fn both_ways_bring_the_pages_and_change_no_byte() {
        for by_kernel in [true, false] {
            let file = sys::memory_file(BYTES).unwrap();
            let at = sys::map(file.as_fd(), None, BYTES).unwrap().as_ptr() as usize;
            // SAFETY: fresh and ours.
            unsafe { ((at + 4096) as *mut u64).write(7) };
            let half = at..at + BYTES / 2;
            for (range, write) in [(half.clone(), true), (at + BYTES / 2..at + BYTES, false)] {
                if by_kernel {
                    // SAFETY: the same.
                    assert_eq!(unsafe { populate(range, write) }, By::Kernel);
                } else {
                    // SAFETY: the same.
                    unsafe { touch(range, write) };
                }
            }
            assert_eq!(resident(at), BYTES as u64);
            // SAFETY: the same.
            assert_eq!(unsafe { ((at + 4096) as *const u64).read() }, 7);
        }
    }

    #[test]
    fn huge_pages_of_both_kinds_are_counted() {
        let smaps = "200000-400000 rw-s 0 00:01 7 /memfd:tsumugi (deleted)\n\
                     Rss:                2048 kB\nShmemPmdMapped:     2048 kB\n\
                     400000-800000 rw-s 0 00:01 8 /memfd:tsumugi (deleted)\n\
                     Rss:                   0 kB\nShared_Hugetlb:     4096 kB\n\
                     VmFlags: rd wr\n\
                     900000-a00000 rw-p 0 00:00 0 \nRss: 4 kB\n";
        let pages = Pages { resident_bytes: 6 << 20, huge_bytes: 6 << 20 };
        assert_eq!(pages_in(smaps, 0x20_0000..0x80_0000), pages);
    }
}
