//! Which rank is on which node. The tables need some bytes for a sequence of nodes
//! of equal size, not for each node, nor for each rank.

use std::collections::HashMap;
use std::ops::Range;
use tsumugi_core::mem::{LocalRank, Rank};

/// The nodes of a job, numbered in the order of their first ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    stretches: Vec<Stretch>,
    sizes: Vec<Sizes>,
    count: u32,
    ranks: u32,
}

/// A sequence of nodes with as many ranks each, where the nodes and their ranks are
/// numbered without a gap; the last node may have fewer. A stretch ends where the
/// next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    first: u32,
    /// The node of the first rank.
    node: u32,
    before: u32,
    /// The number of ranks on each node; never 0.
    each: u32,
}

/// The nodes from `node` on have `size` ranks each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    node: u32,
    size: u32,
}

impl Nodes {
    /// The bytes that a sequence of equal nodes takes, however many they are.
    pub const STRETCH_BYTES: usize = size_of::<Stretch>() + size_of::<Sizes>();

    /// Makes the table from the node of each rank, in the order of the ranks: any
    /// numbers that are equal for ranks of the same node.
    pub fn new(ids: impl IntoIterator<Item = u64>) -> Self {
        let (mut nodes, mut known) = (Self::default(), HashMap::new());
        let mut sizes: Vec<u32> = Vec::new();
        // Adjacent ranks of one node, while they are counted: a stretch of this
        // node alone.
        let mut run: Option<Stretch> = None;
        for id in ids {
            let next = sizes.len() as u32;
            let node = *known.entry(id).or_insert(next);
            if node == next {
                sizes.push(0);
            }
            let before = sizes[node as usize];
            sizes[node as usize] += 1;
            match &mut run {
                Some(run) if run.node == node => run.each += 1,
                run => {
                    let new = Stretch { first: nodes.ranks, node, before, each: 1 };
                    nodes.add(run.replace(new));
                }
            }
            nodes.ranks += 1;
        }
        nodes.add(run);
        nodes.count = sizes.len() as u32;
        for (node, size) in (0..).zip(sizes) {
            if nodes.sizes.last().is_none_or(|last| last.size != size) {
                nodes.sizes.push(Sizes { node, size });
            }
        }
        nodes.stretches.shrink_to_fit();
        nodes.sizes.shrink_to_fit();
        nodes
    }

    /// Adds adjacent ranks of one node: they extend the last stretch, or become a
    /// new one.
    fn add(&mut self, run: Option<Stretch>) {
        let Some(run) = run else { return };
        let goes_on = self.stretches.last().is_some_and(|last| {
            let ranks = run.first - last.first;
            ranks.is_multiple_of(last.each)
                && run.node == last.node + ranks / last.each
                && run.before == last.before
                && run.each <= last.each
        });
        if !goes_on {
            self.stretches.push(run);
        }
    }

    /// A table with `ranks` ranks of one node.
    pub fn one(ranks: u32) -> Self {
        let stretch = Stretch { first: 0, node: 0, before: 0, each: ranks.max(1) };
        Self {
            stretches: vec![stretch],
            sizes: vec![Sizes { node: 0, size: ranks }],
            count: 1,
            ranks,
        }
    }

    /// The number of nodes.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The node of `rank`, its place among the ranks of that node, and the number
    /// of those ranks; `None` if there is no such rank.
    pub fn place(&self, rank: Rank) -> Option<NodePlacement> {
        if rank.0 >= self.ranks {
            return None;
        }
        let stretch = self.stretches[self.stretch_of(rank)];
        let at = rank.0 - stretch.first;
        let node = stretch.node + at / stretch.each;
        let sizes = self.sizes.partition_point(|sizes| sizes.node <= node) - 1;
        Some(NodePlacement {
            node,
            local: LocalRank(stretch.before + at % stretch.each),
            size: self.sizes[sizes].size,
        })
    }

    /// The first rank of each node, in the order of the nodes.
    pub fn firsts(&self) -> impl Iterator<Item = Rank> + '_ {
        let begin = |at: &usize| self.stretches[*at].before == 0;
        let firsts = |at: usize| self.range(at).step_by(self.stretches[at].each as usize);
        (0..self.stretches.len()).filter(begin).flat_map(firsts).map(Rank)
    }

    /// The ranks of a node, in the order of their places there.
    pub fn ranks_of(&self, node: u32) -> impl Iterator<Item = Rank> + '_ {
        let own = move |at: usize| {
            let stretch = self.stretches[at];
            let nodes = u64::from(node.checked_sub(stretch.node)?);
            let first = u64::from(stretch.first) + nodes * u64::from(stretch.each);
            let range = self.range(at);
            (first < u64::from(range.end)).then(|| self.neighbours(Rank(first as u32)))
        };
        (0..self.stretches.len()).filter_map(own).flatten().map(Rank)
    }

    /// The ranks of `rank`'s node with numbers that adjoin `rank` without a gap, `rank`
    /// included.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub(crate) fn neighbours(&self, rank: Rank) -> Range<u32> {
        assert!(rank.0 < self.ranks, "{rank} does not exist: the job has {} ranks", self.ranks);
        let at = self.stretch_of(rank);
        let Stretch { first, each, .. } = self.stretches[at];
        let start = rank.0 - (rank.0 - first) % each;
        start..self.range(at).end.min(start.saturating_add(each))
    }

    fn stretch_of(&self, rank: Rank) -> usize {
        self.stretches.partition_point(|stretch| stretch.first <= rank.0) - 1
    }

    fn range(&self, stretch: usize) -> Range<u32> {
        let end = self.stretches.get(stretch + 1).map_or(self.ranks, |next| next.first);
        self.stretches[stretch].first..end
    }
}

/// The place of a rank on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePlacement {
    /// Its node.
    pub node: u32,
    /// The place of the rank among that node's ranks.
    pub local: LocalRank,
    /// The number of that node's ranks.
    pub size: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(ids: &[u64]) -> Vec<(u32, u32, u32)> {
        let nodes = Nodes::new(ids.iter().copied());
        let place = |rank| nodes.place(Rank(rank)).map(|p| (p.node, p.local.0, p.size));
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
    fn equal_nodes_cost_as_much_as_one() {
        let cost = |ids: &mut dyn Iterator<Item = u64>| {
            let nodes = Nodes::new(ids);
            (nodes.count(), nodes.stretches.len(), nodes.sizes.len())
        };
        assert_eq!(cost(&mut (0..1_000_000).map(|rank| rank / 32)), (31_250, 1, 1));
        // The last node has fewer ranks; round robin; one of the nodes has fewer.
        assert_eq!(cost(&mut (0..1_000).map(|rank| rank / 32)), (32, 1, 2));
        assert_eq!(cost(&mut (0..3_200).map(|rank| rank % 100)), (100, 32, 1));
        assert_eq!(cost(&mut (0..320).filter(|r| *r != 100).map(|rank| rank / 32)), (10, 2, 3));
    }

    /// Compares with a count rank by rank, in all orders of up to seven ranks on up to four nodes.
    #[test]
    fn places_equal_a_count_rank_by_rank() {
        for (ranks, case) in (1..=7).flat_map(|n| (0..4_u64.pow(n)).map(move |case| (n, case))) {
            let ids: Vec<u64> = (0..ranks).map(|at| case / 4_u64.pow(at) % 4).collect();
            let nodes = Nodes::new(ids.iter().copied());
            let mut order: Vec<u64> = Vec::new();
            for id in &ids {
                if !order.contains(id) {
                    order.push(*id);
                }
            }
            assert_eq!((nodes.count(), nodes.ranks()), (order.len() as u32, ranks));
            let first = |id: &u64| Rank(ids.iter().position(|other| other == id).unwrap() as u32);
            assert!(nodes.firsts().eq(order.iter().map(first)), "{ids:?}");
            for (node, id) in (0..).zip(&order) {
                let own: Vec<u32> = (0..ranks).filter(|at| ids[*at as usize] == *id).collect();
                assert!(nodes.ranks_of(node).eq(own.iter().copied().map(Rank)), "{ids:?}");
                for (local, rank) in (0..).zip(&own) {
                    let (local, size) = (LocalRank(local), own.len() as u32);
                    let place = NodePlacement { node, local, size };
                    assert_eq!(nodes.place(Rank(*rank)), Some(place), "{ids:?}");
                    let near = nodes.neighbours(Rank(*rank));
                    let is_own = |rank: u32| own.contains(&rank);
                    assert!(near.contains(rank) && near.clone().all(is_own), "{ids:?}");
                    let before = near.start.checked_sub(1).is_some_and(is_own);
                    assert!(!before && !is_own(near.end), "{ids:?}");
                }
            }
            assert_eq!(nodes.ranks_of(order.len() as u32).count(), 0);
        }
    }
}
