//! What the ranks of a node agree on before they meet.

use super::node::NodeId;
use std::time::Duration;
use tsumugi_core::mem::LocalRank;

/// The parameters of a meeting of the ranks of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meeting<'a> {
    /// The name of the job; no other job of this user may have it while this job
    /// starts.
    pub job: &'a str,
    /// The node.
    pub node: NodeId,
    /// This rank's place among the ranks of the node; rank 0 leads.
    pub local: LocalRank,
    /// The number of ranks of the node.
    pub size: u32,
    /// How long a rank waits for the others.
    pub limit: Duration,
}
