//! Notices, from the copies of messages themselves, that two ranks are no longer as
//! far from each other as they were at the start, because a hypervisor moves the
//! cores of a job.
//!
//! ```text
//!  every 16th copy:  ├─ 128 bytes of 16 lines, fence ─┤├─ all, as asked ─── ...
//!                    └─ how long? ─► line cost ─► near or far, if it is so twice
//! ```
//!
//! The first kilobyte shows what a line from the other core's cache costs: tens of
//! nanoseconds in all where the caches are shared, hundreds where they are not; the
//! start of a job measures how many ([`Bounds`]). The kilobyte is written by single
//! stores, more than a processor has under way at once: the C library copies by
//! string instructions that fetch no line, and a few stores would fetch all their
//! lines together. Two readings of the clock in sixteen copies of 4 KiB or more do
//! not matter beside the copies.

use crate::copy::{CopyMode, copy};
use crate::distance::Distance;
use std::ptr::NonNull;
use std::time::Instant;
use tsumugi_core::sync::{AtomicU32, Ordering, fence};

/// The limits by which a reading is a near or a far one, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// A reading below this is near.
    pub near_below: u64,
    /// A reading from here on is far; a reading in between shows nothing.
    pub far_from: u64,
}

impl Bounds {
    /// The bounds that follow from a reading of two near cores and one of two far
    /// cores, if there are such.
    pub fn of(near_ns: Option<u64>, far_ns: Option<u64>) -> Self {
        let Self { near_below, far_from } = Self::UNMEASURED;
        match (near_ns, far_ns) {
            (None, None) => Self::UNMEASURED,
            (Some(near), None) => {
                let near_below = near_below.max(near + near / 2);
                Self { near_below, far_from: far_from.max(2 * near) }
            }
            (None, Some(far)) => {
                let far_from = far_from.min(far / 4 * 3);
                Self { near_below: near_below.min(far / 2), far_from }
            }
            (Some(near), Some(far)) => {
                let middle = near.midpoint(far.max(near));
                Self { near_below: middle, far_from: middle.max(1) }
            }
        }
    }

    /// Between the 100 ns of shared caches and the 400 ns of others; a copy from
    /// memory lies in the middle.
    const UNMEASURED: Self = Self { near_below: 150, far_from: 250 };
}

/// How far one other rank seems to be. Each rank has one for each other rank.
#[derive(Debug)]
pub struct DistanceProbe {
    /// The number of copies so far; its low bits choose the copies that are timed.
    copies: AtomicU32,
    /// A [`Distance`], the number of readings in a row that differ, and a bit that
    /// is set when the distance changes and cleared by [`changed`](Self::changed).
    state: AtomicU32,
    bounds: Bounds,
}

impl DistanceProbe {
    /// Makes a probe that starts with the distance that was measured at the start
    /// of the job.
    pub fn new(distance: Distance, bounds: Bounds) -> Self {
        Self { copies: AtomicU32::new(0), state: AtomicU32::new(distance as u32), bounds }
    }

    /// How far the other rank seems to be. Wait-free.
    #[inline]
    pub fn distance(&self) -> Distance {
        Distance::ALL[(self.state.load(Ordering::Relaxed) & 3) as usize]
    }

    /// The distance now, if it has changed since the last call of this function.
    /// Wait-free.
    #[inline]
    pub fn changed(&self) -> Option<Distance> {
        if self.state.load(Ordering::Relaxed) & CHANGED == 0 {
            return None;
        }
        self.state.fetch_and(!CHANGED, Ordering::Relaxed);
        Some(self.distance())
    }

    /// [`copy`], timed now and then. Wait-free.
    ///
    /// # Safety
    ///
    /// That of [`copy`].
    #[inline]
    pub unsafe fn copy(&self, mode: CopyMode, from: NonNull<u8>, to: NonNull<u8>, bytes: usize) {
        if bytes < TIMED_MIN || !self.is_due() {
            // SAFETY: the caller's.
            return unsafe { copy(mode, from, to, bytes) };
        }
        // SAFETY: the caller's.
        unsafe { self.timed(mode, from, to, bytes) };
    }

    /// # Safety
    ///
    /// That of [`copy`], for at least [`SAMPLE_BYTES`].
    #[cold]
    unsafe fn timed(&self, mode: CopyMode, from: NonNull<u8>, to: NonNull<u8>, bytes: usize) {
        // SAFETY: the same; longer than a reading.
        self.observe(unsafe { sample(from, to) });
        // SAFETY: the caller's.
        unsafe { copy(mode, from, to, bytes) };
    }

    /// Whether this copy must be timed.
    #[inline]
    fn is_due(&self) -> bool {
        let copies = self.copies.load(Ordering::Relaxed);
        // If two threads count their copies as one, copies are still timed often
        // enough.
        self.copies.store(copies.wrapping_add(1), Ordering::Relaxed);
        copies.is_multiple_of(EVERY)
    }

    /// Takes a reading, the time of a sample. Ranks that share a core stay at
    /// [`Distance::SameCore`]: their readings show only that core.
    fn observe(&self, sample_ns: u64) {
        let seen = match sample_ns {
            ns if ns < self.bounds.near_below => Distance::Near,
            ns if ns >= self.bounds.far_from => Distance::Far,
            // The lines have left the other core's cache.
            _ => return,
        };
        let state = self.state.load(Ordering::Relaxed);
        let (distance, differing) = (self.distance(), (state & !CHANGED) >> 2);
        if distance == Distance::SameCore || sample_ns > DISTURBED_NS {
            return;
        }
        let next = match (seen == distance, differing + 1) {
            (true, _) => distance as u32 | state & CHANGED,
            (false, DIFFERING) => seen as u32 | CHANGED,
            (false, differing) => distance as u32 | differing << 2 | state & CHANGED,
        };
        self.state.store(next, Ordering::Relaxed);
    }
}

/// Takes a reading: copies the first [`SAMPLE_BYTES`] of two buffers by single
/// stores and returns how long that took, in nanoseconds.
///
/// # Safety
///
/// That of [`copy`], for so many bytes.
pub(crate) unsafe fn sample(from: NonNull<u8>, to: NonNull<u8>) -> u64 {
    let begin = Instant::now();
    for at in (0..SAMPLE_BYTES).step_by(SAMPLE_STEP) {
        // SAFETY: the caller's range.
        unsafe { to.add(at).write_volatile(from.add(at).read()) };
    }
    // SeqCst: nothing is published here; the fence makes the stores leave the core
    // before the clock is read, and no weaker fence waits for that.
    fence(Ordering::SeqCst);
    begin.elapsed().as_nanos() as u64
}

/// The least size of a copy that is timed.
const TIMED_MIN: usize = 4 << 10;
/// One copy in this many is timed.
const EVERY: u32 = 16;
/// 16 lines, which the processor fetches several at a time.
pub(crate) const SAMPLE_BYTES: usize = 1 << 10;
const SAMPLE_STEP: usize = 8;
/// No distance takes this long: another thread had the core.
const DISTURBED_NS: u64 = 4000;
const CHANGED: u32 = 1 << 31;
/// The number of differing readings in a row after which the distance changes.
const DIFFERING: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_readings_in_a_row_change_the_distance() {
        let probe = DistanceProbe::new(Distance::Near, Bounds::UNMEASURED);
        for (ns, after) in [
            (500, Distance::Near),
            (100, Distance::Near),
            (500, Distance::Near),
            (9000, Distance::Near),
            (200, Distance::Near),
            (500, Distance::Far),
            (600, Distance::Far),
            (90, Distance::Far),
            (200, Distance::Far),
            (90, Distance::Near),
        ] {
            let before = probe.distance();
            probe.observe(ns);
            assert_eq!(probe.distance(), after, "{ns}");
            assert_eq!(probe.changed(), (before != after).then_some(after), "{ns}");
            assert_eq!(probe.changed(), None, "a change is reported once");
        }
    }

    #[test]
    fn a_reading_is_compared_with_those_of_the_start() {
        let of = |near, far| {
            let Bounds { near_below, far_from } = Bounds::of(near, far);
            (near_below, far_from)
        };
        assert_eq!(of(None, None), (150, 250));
        // Far cores between which a kilobyte takes 160 ns; near cores between which it takes as
        // long.
        assert_eq!(of(None, Some(160)), (80, 120));
        assert_eq!(of(Some(160), None), (240, 320));
        assert_eq!(of(Some(90), Some(400)), (245, 245));
        assert_eq!(of(Some(90), Some(80)), (90, 90), "times in the wrong order give one threshold");
    }

    #[test]
    fn a_shared_core_stays_shared() {
        let probe = DistanceProbe::new(Distance::SameCore, Bounds::UNMEASURED);
        (0..4).for_each(|_| probe.observe(500));
        assert_eq!(probe.distance(), Distance::SameCore);
    }

    #[test]
    fn a_copy_is_whole_whether_it_is_timed_or_not() {
        let probe = DistanceProbe::new(Distance::Far, Bounds::UNMEASURED);
        for bytes in [0, 100, TIMED_MIN - 1, TIMED_MIN, TIMED_MIN + 77] {
            for mode in [CopyMode::Plain, CopyMode::Streaming] {
                for round in 0..EVERY as usize + 1 {
                    let from: Vec<u8> = (0..bytes).map(|at| (at * 3 + round) as u8).collect();
                    let mut to = vec![0; bytes];
                    let ends = (NonNull::from(&from[..]).cast(), NonNull::from(&mut to[..]).cast());
                    // SAFETY: two vectors of that length.
                    unsafe { probe.copy(mode, ends.0, ends.1, bytes) };
                    assert!(to == from, "{bytes} bytes, round {round}");
                }
            }
        }
    }
}
