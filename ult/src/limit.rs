//! How long a call may wait, and whether a cancellation ends it.

use crate::host::Instant;
use core::time::Duration;

/// What may end a wait besides its event: nothing, a point in time, a
/// cancellation of the waiting ULT, or both of these.
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
    /// Waits for as long as it takes.
    pub const NONE: Self = Self { until: None, cancellable: false };

    /// Waits until [`JoinHandle::cancel`](crate::JoinHandle::cancel) asks the
    /// waiting ULT to give up. On a thread that is no ULT, for ever.
    pub const CANCELLABLE: Self = Self { until: None, cancellable: true };

    /// Waits for `duration` at most; one that ends beyond all clocks is none.
    pub fn after(duration: Duration) -> Self {
        Self { until: Instant::now().checked_add(duration), cancellable: false }
    }

    /// Waits until `deadline` at most. With `std` only.
    #[cfg(feature = "std")]
    pub const fn until(deadline: Instant) -> Self {
        Self { until: Some(deadline), cancellable: false }
    }

    /// The same, but a cancellation ends the wait too.
    pub const fn or_cancelled(self) -> Self {
        Self { cancellable: true, ..self }
    }

    /// Whether it ends nothing.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.until.is_none() && !self.cancellable
    }

    /// When it ends, if it has a time.
    #[cfg(feature = "std")]
    pub const fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// When it ends, if it has a time.
    #[cfg(not(feature = "std"))]
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// Whether a cancellation ends it.
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
