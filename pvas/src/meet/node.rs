//! The identity of the node that a process is on.

use super::digest::digest;
use crate::config;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// A node, as a number that its ranks share and ranks of other nodes do not have: a
/// digest of the kernel's boot and of the network namespace, in which abstract
/// sockets live; or a digest of `TSUMUGI_NODE`, if the user sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The node of this process.
    pub fn here() -> Self {
        let text = std::env::var(config::NODE).unwrap_or_else(|_| {
            let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
            let network = fs::metadata("/proc/self/ns/net").map_or(0, |network| network.ino());
            format!("{} {network}", boot.trim())
        });
        Self(digest(&text))
    }

    /// This rank's place among the ranks of its node, and the number of those
    /// ranks, from the nodes of all ranks of a job; `None` if there is no such
    /// rank.
    pub fn place(all: &[Self], rank: usize) -> Option<(u32, u32)> {
        let own = *all.get(rank)?;
        let count = |some: &[Self]| some.iter().filter(|node| **node == own).count() as u32;
        Some((count(&all[..rank]), count(all)))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_node_are_counted_in_their_order() {
        let all = [3, 5, 3, 3, 5].map(NodeId);
        let places = (0..6).map(|rank| NodeId::place(&all, rank)).collect::<Vec<_>>();
        let some = [(0, 3), (0, 2), (1, 3), (2, 3), (1, 2)].map(Some);
        assert_eq!(places, [&some[..], &[None]].concat());
    }

    #[test]
    fn a_process_is_always_on_the_same_node() {
        assert_eq!(NodeId::here(), NodeId::here());
    }
}
