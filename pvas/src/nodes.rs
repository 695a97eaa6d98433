//! Which rank is on which node: some bytes for each run of neighbours, not for
//! each rank.

use std::collections::HashMap;
use std::ops::Range;
use tsumugi_core::mem::Rank;

/// The nodes of a job, numbered in the order of their first ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// Neighbouring ranks of one node: the first of them, the node, and how
    /// many of that node came before.
    runs: Vec<Run>,
    /// Ranks of each node.
    sizes: Vec<u32>,
    ranks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u32,
    node: u32,
    before: u32,
}

impl Nodes {
    /// What a node costs whose ranks are next to each other.
    pub const NODE_BYTES: usize = size_of::<Run>() + size_of::<u32>();

    /// From the node of each rank, in their order: any numbers that are equal
    /// for ranks of the same node.
    pub fn new(ids: impl IntoIterator<Item = u64>) -> Self {
        let (mut nodes, mut known) = (Self::default(), HashMap::new());
        for id in ids {
            let next = known.len() as u32;
            let node = *known.entry(id).or_insert(next);
            if node == next {
                nodes.sizes.push(0);
            }
            let size = &mut nodes.sizes[node as usize];
            let before = *size;
            *size += 1;
            if nodes.runs.last().is_none_or(|run| run.node != node) {
                nodes.runs.push(Run { first: nodes.ranks, node, before });
            }
            nodes.ranks += 1;
        }
        nodes
    }

    /// `ranks` ranks of one node.
    pub fn one(ranks: u32) -> Self {
        let run = Run { first: 0, node: 0, before: 0 };
        Self { runs: vec![run], sizes: vec![ranks], ranks }
    }

    /// How many nodes there are.
    pub fn count(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The node of `rank`, its place among the ranks of that node, and how many
    /// these are; `None` if there is no such rank.
    pub fn place(&self, rank: Rank) -> Option<Place> {
        if rank.0 >= self.ranks {
            return None;
        }
        let run = self.runs[self.run_of(rank)];
        let size = self.sizes[run.node as usize];
        Some(Place { node: run.node, local: run.before + rank.0 - run.first, size })
    }

    /// The first rank of each node, in the order of the nodes.
    pub fn firsts(&self) -> impl Iterator<Item = Rank> + '_ {
        self.runs.iter().filter(|run| run.before == 0).map(|run| Rank(run.first))
    }

    /// The ranks of a node, in the order of their places there.
    pub fn ranks_of(&self, node: u32) -> impl Iterator<Item = Rank> + '_ {
        let own = move |at: &usize| self.runs[*at].node == node;
        (0..self.runs.len()).filter(own).flat_map(|at| self.range(at)).map(Rank)
    }

    /// The ranks next to `rank` that are on its node without a gap.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub(crate) fn neighbours(&self, rank: Rank) -> Range<u32> {
        assert!(rank.0 < self.ranks, "{rank} of {}", self.ranks);
        self.range(self.run_of(rank))
    }

    fn run_of(&self, rank: Rank) -> usize {
        self.runs.partition_point(|run| run.first <= rank.0) - 1
    }

    fn range(&self, run: usize) -> Range<u32> {
        let end = self.runs.get(run + 1).map_or(self.ranks, |next| next.first);
        self.runs[run].first..end
    }
}

/// Where a rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its node.
    pub node: u32,
    /// Which one of that node's ranks it is.
    pub local: u32,
    /// How many these are.
    pub size: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(ids: &[u64]) -> Vec<(u32, u32, u32)> {
        let nodes = Nodes::new(ids.iter().copied());
        let place = |rank| nodes.place(Rank(rank)).map(|p| (p.node, p.local, p.size));
        assert_eq!(place(ids.len() as u32), None);
        (0..ids.len() as u32).map(|rank| place(rank).unwrap()).collect()
    }

    #[test]
    fn every_rank_has_a_place_on_its_node() {
        assert_eq!(places(&[7]), [(0, 0, 1)]);
        let blocks = [(0, 0, 2), (0, 1, 2), (1, 0, 1)];
        assert_eq!(places(&[9, 9, 3]), blocks);
        let mixed = [(0, 0, 3), (1, 0, 2), (0, 1, 3), (0, 2, 3), (1, 1, 2)];
        assert_eq!(places(&[3, 5, 3, 3, 5]), mixed);
    }

    #[test]
    fn every_node_has_its_ranks() {
        let nodes = Nodes::new([3, 5, 3, 3, 5]);
        let ranks_of = |node| nodes.ranks_of(node).map(|rank| rank.0).collect::<Vec<_>>();
        assert_eq!((ranks_of(0), ranks_of(1), ranks_of(2)), (vec![0, 2, 3], vec![1, 4], vec![]));
        assert_eq!(nodes.firsts().collect::<Vec<_>>(), [Rank(0), Rank(1)]);
        assert_eq!((nodes.neighbours(Rank(3)), nodes.neighbours(Rank(4))), (2..4, 4..5));
        assert_eq!(Nodes::one(3), Nodes::new([7, 7, 7]));
    }

    #[test]
    fn blocks_cost_by_the_node() {
        let nodes = Nodes::new((0..10_000).map(|rank| rank / 100));
        assert_eq!((nodes.count(), nodes.ranks(), nodes.runs.len()), (100, 10_000, 100));
    }
}
