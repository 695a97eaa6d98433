//! Yields of a worker to the operating system, and when they are skipped because
//! the core is oversubscribed.
//!
//! A worker that finds nothing yields its core a few times before it sleeps. On a
//! core that it shares with another rank, which answers within microseconds, the
//! worker continues before a sleep would have begun. On a core that it shares
//! with a thread that computes, a yield lasts until that thread's time slice is
//! over, which is milliseconds, and a worker that sleeps runs again sooner: as
//! soon as its bell rings. So after one yield that lasted [`LONG`], the worker
//! skips the next [`SKIPPED`] yields.

use crate::futex::os_yield;
use core::cell::Cell;
use core::time::Duration;
use tsumugi_core::time::Instant;

/// The yields of one worker.
pub(super) struct Yields {
    /// The time from which on a yield counts as long.
    long: Duration,
    /// How many more yields are skipped.
    skipped: Cell<u32>,
}

impl Yields {
    pub(super) fn new(long: Duration) -> Self {
        Self { long, skipped: Cell::new(0) }
    }

    /// Lets another OS thread run, and returns true. If the core is crowded,
    /// returns false at once.
    pub(super) fn yield_core(&self, now: impl Fn() -> Instant) -> bool {
        if let Some(fewer) = self.skipped.get().checked_sub(1) {
            self.skipped.set(fewer);
            return false;
        }
        let before = now();
        os_yield();
        if now().since(before) >= self.long {
            self.skipped.set(SKIPPED);
        }
        true
    }
}

/// Shorter than a time slice of Linux (3 ms on many cores, .75 ms at least), and
/// longer than two ranks need to hand a core to each other and back. The yields of
/// the model, and of tests that count them, are all short.
pub(super) const LONG: Duration =
    if cfg!(any(tsumugi_loom, test)) { Duration::MAX } else { Duration::from_micros(500) };
/// After so many skipped yields a worker tries one again.
const SKIPPED: u32 = 64;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    #[test]
    fn yields_are_skipped_after_a_long_one() {
        let (yields, ns) = (Yields::new(Duration::from_nanos(1_000)), Cell::new(0));
        let clock = |by: u64| {
            ns.set(ns.get() + by);
            Instant::from_ns(ns.get())
        };
        let (short, long) = (|| clock(999), || clock(1_000));
        assert!(yields.yield_core(short));
        assert!(yields.yield_core(long), "short yields cause no skip");
        for _ in 0..SKIPPED {
            assert!(!yields.yield_core(long));
        }
        assert!(yields.yield_core(short), "the yield is tried again");
        assert!(yields.yield_core(short));
    }
}
