//! Counters and switches of the network layer for tests, and the parts of which a test
//! makes one.

pub use super::device::NetDevice;
pub use super::fault::{FaultClock, Faults};
pub use super::network::{Cards, Network};

use super::layer::NetLayer;
use super::registration::RegistrationCache;
use tsumugi_core::mem::Rank;
use tsumugi_core::sync::Ordering;

impl NetLayer {
    /// How many fetches have succeeded.
    pub fn fetched(&self) -> usize {
        self.fetches().come.load(Ordering::Relaxed)
    }

    /// Makes a heartbeat due, as if the poller had found no room for it.
    pub fn miss_heartbeat(&self) {
        let shared = self.shared();
        shared.heartbeats.round(&shared.member, |_, _| false);
    }

    /// Whether a heartbeat is due that was not sent.
    pub fn owes_heartbeat(&self) -> bool {
        self.shared().heartbeats.is_due()
    }

    /// Declares a rank of another node lost, as if it had been silent for too long.
    pub fn give_up(&self, rank: Rank) {
        assert!(self.shared().member.declare_lost(rank), "{rank} was lost before");
    }

    /// How many packets were refused, or malformed.
    pub fn strays(&self) -> u64 {
        self.shared().strays.load(Ordering::Relaxed)
    }

    /// How many windows of unregistered memory the registration cache has now.
    pub fn pinned(&self) -> usize {
        self.shared().pins.as_ref().map_or(0, RegistrationCache::shown_now)
    }

    /// Whether a caller polls for the end of an operation.
    pub fn is_looked_for(&self) -> bool {
        self.shared().is_looked_for.load(Ordering::Relaxed)
    }

    /// How many operations have a tag.
    pub fn in_flight(&self) -> usize {
        self.engine.completions().in_flight()
    }

    /// Goes on with the faults of another seed.
    pub fn reseed(&self, seed: u64) {
        self.shared().bad.as_ref().expect("it was bad before").reseed(seed);
    }
}
