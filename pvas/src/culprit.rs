//! Whose death ended a job on several nodes, as its launcher says.
//!
//! ```text
//!           suspects()                     tell(rank)
//!  nothing ───────────► waits for a word ──────────────► known
//!                        └── 1 s without one: as if no launcher were there
//! ```
//!
//! The launcher alone sees all ends, so it knows which came first. A rank of
//! another node whose connection closes may end because of a third one: whoever
//! sees that asks here before it names a rank.
//!
//! The launcher in turn is told through a pipe whom this node declares lost, before
//! any rank of the node hears of it: a rank that ends because of it then ends later
//! than the launcher can know it.
//!
//! Progress: a short lock; [`wait`](Culprit::wait) blocks for 1 s at most in all.

use std::io::{PipeWriter, Write};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tsumugi_core::mem::Rank;

/// See the module.
#[derive(Debug, Default)]
pub struct Culprit {
    state: Mutex<State>,
    told: Condvar,
    /// To the launcher.
    losses: OnceLock<PipeWriter>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// A launcher will say it, so soon after the first suspicion.
    within: Duration,
    known: Option<(Rank, Instant)>,
    /// Since when the word is waited for.
    since: Option<Instant>,
}

impl Culprit {
    /// A launcher is there that will say who has died.
    pub fn expect(&self) {
        self.expect_within(WORD_WITHIN);
    }

    /// The same of one that takes no longer than that.
    pub fn expect_within(&self, limit: Duration) {
        self.lock().within = limit;
    }

    /// The launcher is to be told of losses through `losses`, which does not block.
    pub(crate) fn tell_of(&self, losses: PipeWriter) {
        // The first one is the launcher's.
        let _ = self.losses.set(losses);
    }

    /// This rank is about to declare `rank` lost.
    pub(crate) fn declares(&self, rank: Rank) {
        if let Some(mut losses) = self.losses.get() {
            // Full, or without a launcher: whose end came first is not known then.
            let _ = losses.write(&rank.0.to_le_bytes());
        }
    }

    /// The launcher's word; the first one counts. Whether it is that.
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

    /// A rank seems to be lost: whether the launcher may still say which one it
    /// is that has died.
    pub fn is_awaited(&self) -> bool {
        !self.lock().left().is_zero()
    }

    /// The rank that the launcher names, now or soon. Blocking.
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

    /// Sleeps until the launcher's word, if one is due, is so old that all nodes
    /// have had time to act on it. Blocking.
    pub fn outlive(&self) {
        if self.wait().is_some()
            && let Some((_, at)) = self.lock().known
        {
            std::thread::sleep((at + HEARD_WITHIN).saturating_duration_since(Instant::now()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How long the word may still take.
    fn left(&mut self) -> Duration {
        if self.within.is_zero() || self.known.is_some() {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        (since + self.within).saturating_duration_since(now)
    }
}

/// From the first suspicion on: the launcher waits for a better answer for a
/// part of it.
const WORD_WITHIN: Duration = Duration::from_secs(1);
/// Programs of all nodes hear of a death while the ranks that it ends are there.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn without_a_launcher_no_word_is_waited_for() {
        let culprit = Culprit::default();
        assert!(!culprit.is_awaited());
        assert_eq!(culprit.wait(), None);
        culprit.outlive();
    }

    #[test]
    fn the_first_word_counts_and_ends_the_wait() {
        let culprit = Culprit::default();
        culprit.expect();
        assert!(culprit.is_awaited());
        thread::scope(|scope| {
            let waits = scope.spawn(|| culprit.wait());
            assert!(culprit.tell(Rank(3)));
            assert_eq!(waits.join().unwrap(), Some(Rank(3)));
        });
        assert!(!culprit.tell(Rank(1)));
        assert_eq!((culprit.rank(), culprit.is_awaited()), (Some(Rank(3)), false));
    }

    #[test]
    fn a_word_that_does_not_come_is_waited_for_once() {
        let culprit = Culprit::default();
        culprit.expect();
        assert_eq!(culprit.wait(), None);
        assert!(!culprit.is_awaited());
        assert_eq!((culprit.wait(), culprit.rank()), (None, None));
    }
}
