//! Informs all ranks of a node that one of them is gone.

use super::{ControlBlock, RankState};
use crate::futex::SharedFutex;
use tsumugi_core::mem::{LocalRank, Rank};
use tsumugi_core::sync::Ordering;
use tsumugi_core::wait::Futex;

/// Marks in the barriers of the start that a rank is gone: a rank that waits there
/// for it, now or later, gets an error. `controls` are the heads of all ranks.
pub fn declare_gone<'c>(controls: impl Iterator<Item = &'c ControlBlock>) {
    for control in controls {
        let (_, phase) = control.boot_words();
        // SeqCst: after the store of the state from which the gone rank is found.
        phase.fetch_or(BOOT_GONE, Ordering::SeqCst);
        SharedFutex.wake(phase, u32::MAX);
    }
}

/// Declares `rank` dead to all ranks: its keys are removed, so that every operation
/// on it returns `PeerLost`, and every wait for a signal ends. `controls` are the
/// heads of all ranks of a job of one node, in order.
pub fn declare_lost<'c>(rank: Rank, controls: impl Iterator<Item = &'c ControlBlock> + Clone) {
    declare_lost_as(LocalRank(rank.0), rank, controls);
}

/// The same in a job of several nodes, where the rank with the local number `local`
/// on this node has the number `rank`.
pub(crate) fn declare_lost_as<'c>(
    local: LocalRank,
    rank: Rank,
    controls: impl Iterator<Item = &'c ControlBlock> + Clone,
) {
    if let Some(dead) = controls.clone().nth(local.0 as usize) {
        dead.set_state(RankState::Failed);
        dead.regions().mark_dead();
    }
    break_off(rank, controls.clone());
    declare_gone(controls);
}

/// Ends the waits for a signal at all these ranks, because `rank` has died.
pub(crate) fn break_off<'c>(rank: Rank, controls: impl Iterator<Item = &'c ControlBlock> + Clone) {
    // All ranks know before one of them is woken, which may end and free its memory.
    for control in controls.clone() {
        control.parking_lot().break_off(rank);
    }
    for control in controls {
        control.bells().ring_after_death(&SharedFutex);
    }
}

/// Set in the phase of the barriers of the start when a rank is gone.
pub(crate) const BOOT_GONE: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::control::tests::zeroed;

    #[test]
    fn a_death_is_declared_to_all_ranks() {
        let controls = [zeroed(), zeroed()];
        declare_lost(Rank(1), controls.iter().map(|control| &**control));
        assert_eq!(controls[1].state(), RankState::Failed);
        assert!(controls[0].is_alive() && !controls[1].is_alive());
        assert!(controls[0].parking_lot().lost() == Some(Rank(1)));
        declare_lost(Rank(0), controls.iter().map(|control| &**control));
        let parking_lot = controls[0].parking_lot();
        assert_eq!((parking_lot.lost(), parking_lot.latest_lost()), (Some(Rank(1)), Some(Rank(0))));
        assert_ne!(controls[0].boot_words().1.load(Ordering::Relaxed) & BOOT_GONE, 0);
    }
}
