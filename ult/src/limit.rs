//! The limit of a wait: a point in time, a cancellation, or both.

use crate::host::Instant;
use core::time::Duration;

/// A limit of a wait. Besides its event, a wait may be ended by nothing, by a point
/// in time, by a cancellation of the waiting ULT, or by both of these.
///
/// ```
/// use std::time::Duration;
/// use tsumugi_ult::{Interrupted, Limit, sync::Semaphore};
///
/// let none = Semaphore::new(0);
/// assert!(none.acquire_within(1, Limit::after(Duration::from_millis(1))).is_err());
/// // A duration alone is a limit too.
/// let refused = none.acquire_within(1, Duration::from_millis(1)).unwrap_err();
/// assert_eq!(refused, Interrupted::TimedOut);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    until: Option<Instant>,
    cancellable: bool,
}

impl Limit {
    /// No limit: the wait lasts until its event.
    pub const NONE: Self = Self { until: None, cancellable: false };

    /// A limit that [`JoinHandle::cancel`](crate::JoinHandle::cancel) of the waiting
    /// ULT ends. On a thread that is no ULT, no limit.
    pub const CANCELLABLE: Self = Self { until: None, cancellable: true };

    /// A limit of `duration` from now; none if that is beyond the clock's range.
    pub fn after(duration: Duration) -> Self {
        Self { until: Instant::now().checked_add(duration), cancellable: false }
    }

    /// A limit at `deadline`. With `std` only.
    #[cfg(feature = "std")]
    pub const fn until(deadline: Instant) -> Self {
        Self { until: Some(deadline), cancellable: false }
    }

    /// The same limit, but a cancellation ends the wait too.
    pub const fn or_cancelled(self) -> Self {
        Self { cancellable: true, ..self }
    }

    /// Whether this is no limit.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.until.is_none() && !self.cancellable
    }

    /// The point in time, if the limit has one.
    #[cfg(feature = "std")]
    pub const fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// The point in time, if the limit has one.
    #[cfg(not(feature = "std"))]
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// Whether a cancellation ends the wait.
    pub const fn is_cancellable(&self) -> bool {
        self.cancellable
    }
}

impl From<Duration> for Limit {
    fn from(duration: Duration) -> Self {
        Self::after(duration)
    }
}

#[cfg(feature = "std")]
impl From<Instant> for Limit {
    fn from(deadline: Instant) -> Self {
        Self::until(deadline)
    }
}
