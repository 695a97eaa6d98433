//! The rank that failed first and so ended a job on several nodes (the *first
//! failure*), as the launcher reports it.
//!
//! ```text
//!           suspects()                     tell(rank)
//!  nothing ───────────► waits for a word ──────────────► known
//!                        └── 1 s without one: as if no launcher were there
//! ```
//!
//! Only the launcher sees all ends, so it knows which end came first. When a
//! connection to a rank of another node closes, that rank may have ended because a
//! third rank died: a thread that sees the closed connection asks here before it
//! names a rank.
//!
//! In the other direction, a node reports each rank that it declares lost to the
//! launcher through a pipe, before any rank of the node learns of the loss: so the
//! launcher has the report before it sees the end of a rank that ends because of
//! the loss.
//!
//! Progress: a short lock; [`wait`](FirstFailure::wait) blocks for at most 1 s in all.

use std::io::{PipeWriter, Write};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tsumugi_core::mem::Rank;

/// The launcher's report of the rank that failed first, for the threads of one
/// rank. See the module.
#[derive(Debug, Default)]
pub struct FirstFailure {
    state: Mutex<FailureReport>,
    told: Condvar,
    /// The pipe to the launcher, for losses.
    losses: OnceLock<PipeWriter>,
}

#[derive(Clone, Copy, Debug, Default)]
struct FailureReport {
    /// The launcher names a rank within this time after the first suspicion; zero:
    /// there is no launcher that does.
    within: Duration,
    known: Option<(Rank, Instant)>,
    /// When the wait for the launcher's report began.
    since: Option<Instant>,
}

impl FirstFailure {
    /// Notes that a launcher is there and will report which rank has died.
    pub fn expect(&self) {
        self.expect_within(WORD_WITHIN);
    }

    /// As [`expect`](Self::expect), for a launcher that takes at most `limit`.
    pub fn expect_within(&self, limit: Duration) {
        self.lock().within = limit;
    }

    /// Sets the pipe for reports of losses to the launcher; a write to it must not
    /// block.
    pub(crate) fn tell_of(&self, losses: PipeWriter) {
        // The first pipe that is set is the launcher's; later ones are dropped.
        let _ = self.losses.set(losses);
    }

    /// Reports to the launcher that this rank is about to declare `rank` lost.
    pub(crate) fn declares(&self, rank: Rank) {
        if let Some(mut losses) = self.losses.get() {
            // The write fails if the pipe is full or the launcher is gone; then the
            // launcher does not learn which rank ended first.
            let _ = losses.write(&rank.0.to_le_bytes());
        }
    }

    /// Sets the rank that the launcher reports; only the first report counts.
    /// Returns whether this is the first one.
    pub fn tell(&self, rank: Rank) -> bool {
        let mut state = self.lock();
        let is_first = state.known.is_none();
        state.known.get_or_insert((rank, Instant::now()));
        self.told.notify_all();
        is_first
    }

    /// The rank, if the launcher has named it.
    pub fn rank(&self) -> Option<Rank> {
        self.lock().known.map(|(rank, _)| rank)
    }

    /// A rank seems to be lost: returns whether the launcher may still report which
    /// rank has died.
    pub fn is_awaited(&self) -> bool {
        !self.lock().left().is_zero()
    }

    /// Waits for the rank that the launcher names; `None` if it names none in time.
    /// Blocking.
    pub fn wait(&self) -> Option<Rank> {
        let mut state = self.lock();
        while state.known.is_none() {
            let left = state.left();
            if left.is_zero() {
                return None;
            }
            let waited = self.told.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.known.map(|(rank, _)| rank)
    }

    /// Sleeps until the launcher's report, if one is due, is so old that all nodes
    /// have had time to act on it. Blocking.
    pub fn outlive(&self) {
        if self.wait().is_some()
            && let Some((_, at)) = self.lock().known
        {
            std::thread::sleep((at + HEARD_WITHIN).saturating_duration_since(Instant::now()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, FailureReport> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FailureReport {
    /// How long the launcher's report may still take.
    fn left(&mut self) -> Duration {
        if self.within.is_zero() || self.known.is_some() {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        (since + self.within).saturating_duration_since(now)
    }
}

/// The limit from the first suspicion on. For a part of this time the launcher
/// itself waits for a better answer.
const WORD_WITHIN: Duration = Duration::from_secs(1);
/// In this time the programs of all nodes learn of a death while the ranks that end
/// because of it are still there.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn without_a_launcher_the_first_failure_is_not_awaited() {
        let first_failure = FirstFailure::default();
        assert!(!first_failure.is_awaited());
        assert_eq!(first_failure.wait(), None);
        first_failure.outlive();
    }

    #[test]
    fn the_first_report_counts_and_ends_the_wait() {
        let first_failure = FirstFailure::default();
        first_failure.expect();
        assert!(first_failure.is_awaited());
        thread::scope(|scope| {
            let waits = scope.spawn(|| first_failure.wait());
            assert!(first_failure.tell(Rank(3)));
            assert_eq!(waits.join().unwrap(), Some(Rank(3)));
        });
        assert!(!first_failure.tell(Rank(1)));
        assert_eq!((first_failure.rank(), first_failure.is_awaited()), (Some(Rank(3)), false));
    }

    #[test]
    fn a_missing_report_is_awaited_once() {
        let first_failure = FirstFailure::default();
        first_failure.expect();
        assert_eq!(first_failure.wait(), None);
        assert!(!first_failure.is_awaited());
        assert_eq!((first_failure.wait(), first_failure.rank()), (None, None));
    }
}
