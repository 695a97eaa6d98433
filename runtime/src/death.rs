//! The deaths of ranks that a service has not handled yet.

use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_pvas::Member;

/// How far a service has followed the deaths that were declared to its rank.
#[derive(Debug, Default)]
pub(crate) struct DeathWatch {
    /// One more than the rank whose death was handled last; 0: none.
    handled: AtomicU32,
}

impl DeathWatch {
    /// Whether a rank has died since [`take`](Self::take).
    #[inline]
    pub(crate) fn has_news(&self, member: &Member) -> bool {
        self.latest(member).is_some()
    }

    /// Whether a rank has died since the last call. The caller looks at all ranks
    /// afterwards: a death that is declared meanwhile is news again.
    #[inline]
    pub(crate) fn take(&self, member: &Member) -> bool {
        let latest = self.latest(member);
        if let Some(latest) = latest {
            self.handled.store(latest, Ordering::Relaxed);
        }
        latest.is_some()
    }

    #[inline]
    fn latest(&self, member: &Member) -> Option<u32> {
        let latest = member.control().parking_lot().latest_lost()?.0 + 1;
        (latest != self.handled.load(Ordering::Relaxed)).then_some(latest)
    }
}
