//! The nodes that have given up other nodes, and the flights that these refused.

use crate::mem::Rank;
use crate::mutate;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The pairs of nodes of which one has given the other up; see
/// `give_up`.
#[derive(Default)]
pub(super) struct Suspicion {
    /// Pairs of a node and a node that it has given up.
    pub(super) pairs: BTreeSet<(Rank, Rank)>,
    /// Flights that were refused, without an answer to the nodes that posted them.
    pub(super) unanswered: Vec<u64>,
}

impl Suspicion {
    pub(super) fn has_given_up(&self, by: Rank, whom: Rank) -> bool {
        self.pairs.contains(&(by, whom))
    }

    /// Whether node `at` accepts nothing from node `from`.
    pub(super) fn shuts_out(&self, at: Rank, from: Rank) -> bool {
        mutate!("sim_given_up_let_in": self.has_given_up(at, from) => false)
    }
}
