//! The ranks of this node, and their places on it, which number the node's lanes.
//!
//! As a rule a launcher puts ranks with consecutive numbers onto a node: the place
//! of such a rank is found by a subtraction. Other ranks of the node are found by a
//! search.

use tsumugi_core::mem::LocalRank;
use tsumugi_core::mem::Rank;
use tsumugi_pvas::Member;

/// The ranks of this node, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRanks {
    /// The run of consecutive numbers that contains this rank's: its first number,
    /// its length, and how many ranks of the node come before it.
    first: u32,
    len: u32,
    before: u32,
    ranks: Box<[Rank]>,
}

impl NodeRanks {
    /// The neighbours of a rank.
    pub(crate) fn of(member: &Member) -> Self {
        Self::new(member.rank(), member.neighbours())
    }

    /// Makes the table; `ranks` are in their order, and `own` is one of them.
    pub fn new(own: Rank, ranks: impl IntoIterator<Item = Rank>) -> Self {
        let ranks: Box<[Rank]> = ranks.into_iter().collect();
        let at = ranks.binary_search(&own).expect("a rank is one of its node");
        let follows = |pair: &[Rank]| pair[0].0 + 1 == pair[1].0;
        let before =
            ranks[..=at].windows(2).rposition(|pair| !follows(pair)).map_or(0, |at| at + 1);
        let after = ranks[at..].windows(2).position(|pair| !follows(pair));
        let end = after.map_or(ranks.len(), |after| at + after + 1);
        Self { first: ranks[before].0, len: (end - before) as u32, before: before as u32, ranks }
    }

    /// How many ranks the node has.
    pub(crate) fn count(&self) -> u32 {
        self.ranks.len() as u32
    }

    pub(crate) fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        self.ranks.iter().copied()
    }

    /// The rank at that place.
    pub(crate) fn rank(&self, local: LocalRank) -> Rank {
        self.ranks[local.0 as usize]
    }

    /// The place of a rank on the node. `None`: it is on another node.
    #[inline(always)]
    pub(crate) fn local(&self, rank: Rank) -> Option<LocalRank> {
        let at = rank.0.wrapping_sub(self.first);
        if at < self.len { Some(LocalRank(self.before + at)) } else { self.search(rank) }
    }

    #[cold]
    fn search(&self, rank: Rank) -> Option<LocalRank> {
        self.ranks.binary_search(&rank).ok().map(|at| LocalRank(at as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_the_order_of_ranks() {
        for (ranks, own) in [
            (&[0, 1, 2, 3][..], 2),
            (&[4, 5, 6], 4),
            (&[0, 2, 4], 2),
            (&[1, 2, 5, 6, 7, 9], 6),
            (&[1, 2, 5, 6, 7, 9], 9),
            (&[3], 3),
        ] {
            let neighbours = NodeRanks::new(Rank(own), ranks.iter().copied().map(Rank));
            for rank in 0..12 {
                let place = ranks.iter().position(|other| *other == rank);
                let found = neighbours.local(Rank(rank)).map(|local| local.0 as usize);
                assert_eq!(found, place, "rank {rank} beside {own} of {ranks:?}");
            }
        }
    }
}
