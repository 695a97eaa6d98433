//! What tests ask of the way to other nodes.

use super::Far;
use super::pin::Pins;
use crate::Rank;
use tsumugi_core::sync::Ordering;

impl Far {
    /// Fetches that have ended well.
    pub(crate) fn fetched(&self) -> usize {
        self.fetches().come.load(Ordering::Relaxed)
    }

    /// As if the watch had found no room for a beat.
    pub(crate) fn miss_beat(&self) {
        let shared = self.shared();
        shared.beats.round(&shared.member, |_, _| false);
    }

    /// Whether a beat is due that was not sent.
    pub(crate) fn owes_beat(&self) -> bool {
        self.shared().beats.is_due()
    }

    /// As if nothing had been heard of a rank of another node for too long.
    pub(crate) fn give_up(&self, rank: Rank) {
        assert!(self.shared().member.declare_lost(rank), "{rank} was lost before");
    }

    /// What has come and was not let in.
    pub(crate) fn strays(&self) -> u64 {
        self.shared().strays.load(Ordering::Relaxed)
    }

    /// Windows of memory that nobody has registered, and the device is shown.
    pub(crate) fn pinned(&self) -> usize {
        self.shared().pins.as_ref().map_or(0, Pins::shown_now)
    }

    /// Whether one looks for the end of an operation.
    pub(crate) fn is_looked_for(&self) -> bool {
        self.shared().is_looked_for.load(Ordering::Relaxed)
    }

    /// Operations that have a tag.
    pub(crate) fn in_flight(&self) -> usize {
        self.engine.completions().in_flight()
    }

    /// Goes on with the faults of another seed.
    pub(crate) fn reseed(&self, seed: u64) {
        self.shared().bad.as_ref().expect("it was bad before").reseed(seed);
    }
}
