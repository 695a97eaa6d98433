//! The network that joins the endpoints of one process, and its faults.

use super::station::{Station, lock};
use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use tsumugi_core::random::SplitMix64;
use tsumugi_core::sync::{AtomicBool, AtomicU64, Ordering};

/// The network. This is a handle, cheap to clone.
#[derive(Clone)]
pub struct Hub(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub stations: Mutex<Vec<Arc<Station>>>,
    pub plan: Mutex<FaultPlan>,
    /// How often the plan has changed.
    pub changes: AtomicU64,
    /// Whether no peer can be reached.
    pub is_cut: AtomicBool,
}

/// The rates of faults, per mille.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// The seed of all random choices.
    pub seed: u64,
    /// Posts for which there is no room, or no connection yet.
    pub refuse: u16,
    /// Operations and packets that come back undone.
    pub again: u16,
    /// Operations and packets that wait for some polls before they are carried out.
    pub late: u16,
    /// The largest number of such polls.
    pub late_polls_max: u32,
}

impl FaultPlan {
    /// A mix drawn from the seed; each seed exaggerates another fault.
    pub const fn drawn(seed: u64) -> Self {
        let mut draw = SplitMix64::new(seed);
        Self {
            refuse: draw.below(400) as u16,
            again: draw.below(200) as u16,
            late: draw.below(800) as u16,
            late_polls_max: 1 + draw.below(20) as u32,
            seed: draw.next(),
        }
    }
}

impl Hub {
    /// Makes a hub without devices.
    pub fn new(plan: FaultPlan) -> Self {
        let (plan, changes) = (Mutex::new(plan), AtomicU64::new(0));
        let is_cut = AtomicBool::new(false);
        Self(Arc::new(Inner { stations: Mutex::default(), plan, changes, is_cut }))
    }

    /// Continues with the faults of another plan.
    pub fn replan(&self, plan: FaultPlan) {
        *lock(&self.0.plan) = plan;
        // Release: pairs with the Acquire of the thread that polls.
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    /// Cuts the network, as a link that goes down: no post reaches a peer. With
    /// false, posts reach their peers again.
    pub fn cut(&self, is_cut: bool) {
        self.0.is_cut.store(is_cut, Ordering::Relaxed);
    }

    pub(super) fn plan(&self) -> FaultPlan {
        *lock(&self.0.plan)
    }

    pub(super) fn stations(&self) -> MutexGuard<'_, Vec<Arc<Station>>> {
        lock(&self.0.stations)
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hub({} stations, {:?})", self.stations().len(), self.plan())
    }
}
