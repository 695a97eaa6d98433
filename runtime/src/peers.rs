//! The peers of a rank: the ranks with which it communicates, each with an index. A
//! table has an entry for each peer, and none for the other ranks of the job.
//!
//! The ranks of the node have the first indices, in their order; in a job of one node
//! the index of a peer is its rank. A rank of another node gets the next index at the
//! first communication in either direction, and keeps it. Indices are local: two ranks
//! may have different indices for the same rank.

use crate::node_ranks::NodeRanks;
use std::collections::HashMap;
use tsumugi_core::mem::Rank;
use tsumugi_core::mem::{LocalRank, PeerIndex};

/// The mapping between ranks and peers.
#[derive(Debug)]
pub(crate) struct Peers {
    neighbours: NodeRanks,
    /// The peers that are ranks of other nodes; and those ranks, from the first such
    /// peer on.
    remote: HashMap<Rank, PeerIndex>,
    ranks: Vec<Rank>,
}

impl Peers {
    /// Makes the neighbours peers, and no other rank.
    pub(crate) fn new(neighbours: NodeRanks) -> Self {
        Self { neighbours, remote: HashMap::new(), ranks: Vec::new() }
    }

    /// How many peers there are.
    pub(crate) fn count(&self) -> u32 {
        self.neighbours.count() + self.ranks.len() as u32
    }

    /// All peers.
    pub(crate) fn all(&self) -> impl Iterator<Item = PeerIndex> + use<> {
        (0..self.count()).map(PeerIndex)
    }

    /// The place of a peer on this node. `None`: it is on another node.
    #[inline(always)]
    pub(crate) fn local(&self, peer: PeerIndex) -> Option<LocalRank> {
        (peer.0 < self.neighbours.count()).then_some(LocalRank(peer.0))
    }

    /// The peer that is a rank, if it is one.
    pub(crate) fn find(&self, rank: Rank) -> Option<PeerIndex> {
        let near = self.neighbours.local(rank).map(near);
        near.or_else(|| self.remote.get(&rank).copied())
    }

    /// The peer that is a rank, which may become one now.
    pub(crate) fn take(&mut self, rank: Rank) -> PeerIndex {
        if let Some(local) = self.neighbours.local(rank) {
            return near(local);
        }
        let next = PeerIndex(self.count());
        let peer = *self.remote.entry(rank).or_insert(next);
        if peer == next {
            self.ranks.push(rank);
        }
        peer
    }

    /// The rank of a peer that was taken.
    pub(crate) fn rank(&self, peer: PeerIndex) -> Rank {
        match self.local(peer) {
            Some(local) => self.neighbours.rank(local),
            None => self.ranks[(peer.0 - self.neighbours.count()) as usize],
        }
    }
}

/// The peer at a place of this node: the ranks of the node are the first peers.
#[inline(always)]
pub(crate) const fn near(local: LocalRank) -> PeerIndex {
    PeerIndex(local.0)
}

/// Bytes for each rank of another node that is a peer, with the empty part of a hash
/// table.
pub(crate) const PEER_BYTES: usize = size_of::<Rank>() + 2 * (size_of::<(Rank, PeerIndex)>() + 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_the_first_peers_and_others_follow_in_order() {
        let near = [4, 5, 9].map(Rank);
        let mut peers = Peers::new(NodeRanks::new(Rank(5), near));
        assert_eq!(peers.find(Rank(7)), None);
        let taken = [9, 7, 4, 1_000_000, 7, 0].map(|rank| peers.take(Rank(rank)).0);
        assert_eq!(taken, [2, 3, 0, 4, 3, 5]);
        assert_eq!(peers.count(), 6);
        for (peer, rank) in peers.all().zip([4, 5, 9, 7, 1_000_000, 0].map(Rank)) {
            assert_eq!((peers.rank(peer), peers.find(rank)), (rank, Some(peer)));
            let local = near.iter().position(|near| *near == rank);
            assert_eq!(peers.local(peer), local.map(|local| LocalRank(local as u32)));
        }
    }
}
