//! Time is an argument: the caller passes the time to a protocol, which never reads
//! a clock.
//!
//! [`Clock`] is the interface to the time source: the machine's monotonic clock in
//! real processes, a counter in the simulator.

use core::ops::{Add, Sub};
use core::time::Duration;

/// A point on one rank's monotonic clock, in nanoseconds since the clock's own zero.
/// Points of different ranks cannot be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The clock's zero.
    pub const ZERO: Self = Self(0);

    /// The point `ns` nanoseconds after the clock's zero.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the clock's zero.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this point; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs.as_nanos().min(u64::MAX as u128) as u64))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// A source of time.
pub trait Clock: Sync {
    /// The current time; never less than an earlier result on the same thread.
    fn now(&self) -> Instant;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_instant_is_a_positive_distance_away() {
        let start = Instant::from_ns(40);
        assert_eq!((start + Duration::from_nanos(2)) - start, Duration::from_nanos(2));
        assert_eq!(start - (start + Duration::from_nanos(2)), Duration::ZERO);
    }
}
