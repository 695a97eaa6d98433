//! How much of a space was populated, and of which pages it consists.

use super::mapped::Space;
use super::windows::{WINDOW_BYTES, windows_bytes};
use crate::config::Populate;
use crate::populate::{Need, Populated};
use std::fs;
use std::ops::Range;
use std::ptr::NonNull;
use tsumugi_core::mem::LocalRank;
use tsumugi_core::sync::{AtomicU64, Ordering};

/// The pages of a range of a partition, as the system counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Bytes that this process has mapped to memory.
    pub resident_bytes: u64,
    /// How many of these bytes lie in pages of 2 MiB.
    pub huge_bytes: u64,
}

impl Space {
    /// Maps the pages of these bytes of `rank`'s partition in this process, if the
    /// job's policy says so: called before the first use of memory that its owner
    /// uses already. Wait-free, except for the kernel's work at a window's first
    /// use.
    #[inline]
    pub fn reach(&self, rank: LocalRank, at: NonNull<u8>, bytes: u64) {
        if self.policy().populate == Populate::Peers && self.own_of(rank).is_none() {
            self.reach_windows(rank, at, bytes);
        }
    }

    /// The amount that `rank`'s allocators have populated, if the rank is in this
    /// process and the job's policy populates its pages.
    pub fn populated(&self, rank: LocalRank) -> Option<Populated> {
        Some(self.own_of(rank)?.tally?.populated())
    }

    /// The amount that [`reach`](Self::reach) has populated so far.
    pub fn populated_of_peers(&self) -> Populated {
        self.views.tally.populated()
    }

    /// The pages of `rank`'s partition in this process; `None` where the system
    /// does not report them.
    pub fn pages(&self, rank: LocalRank) -> Option<Pages> {
        let (shape, start) = (self.shape(), self.shape().start(rank));
        let smaps = fs::read_to_string("/proc/self/smaps").ok()?;
        Some(pages_in(&smaps, start..start + shape.bytes()))
    }

    #[cold]
    fn reach_windows(&self, rank: LocalRank, at: NonNull<u8>, bytes: u64) {
        let Some((_, offset)) = self.place_of(at, bytes).filter(|(owner, _)| *owner == rank) else {
            return;
        };
        let shape = self.shape();
        let windows = self.views.windows[rank.0 as usize].get_or_init(|| {
            (0..windows_bytes(shape.bytes()) / 8).map(|_| AtomicU64::new(0)).collect()
        });
        let last = (offset + bytes.max(1) - 1) as usize / WINDOW_BYTES;
        for window in offset as usize / WINDOW_BYTES..=last {
            let (word, bit) = (&windows[window / 64], 1 << (window % 64));
            // Relaxed: if two threads populate a window at once, that does no harm.
            if word.load(Ordering::Relaxed) & bit != 0 {
                continue;
            }
            word.fetch_or(bit, Ordering::Relaxed);
            let first = shape.start(rank) + window * WINDOW_BYTES;
            let end = (first + WINDOW_BYTES).min(shape.start(rank) + shape.bytes());
            // SAFETY: the range is of a partition that stays mapped, and is only
            // read.
            unsafe { self.views.tally.populate(first..end, Need::Read) };
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
        if !is_inside {
            continue;
        }
        let kib = || rest.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0);
        match name {
            "Rss:" => pages.resident_bytes += kib() << 10,
            "ShmemPmdMapped:" => pages.huge_bytes += kib() << 10,
            // Pages of the pool are counted separately, and not as resident.
            "Shared_Hugetlb:" | "Private_Hugetlb:" => {
                pages.resident_bytes += kib() << 10;
                pages.huge_bytes += kib() << 10;
            }
            _ => {}
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

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
