//! The numbers by which an algorithm names the members that take part in it.

use super::blocks::CollTables;

/// A part of the group that runs one stage of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subset {
    /// All members.
    All,
    /// Those of this rank's node.
    Neighbours,
    /// One of each node; the member `as_leader` leads the node number `node`.
    Leaders {
        /// A node with another leader than its first member.
        node: u32,
        /// That leader.
        as_leader: u32,
    },
}

/// How the members of a group lie on nodes, as one of them sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Its place among the members of its node.
    pub place: u32,
    /// How many those are.
    pub neighbours: u32,
    /// The number of its node.
    pub node: u32,
    /// How many nodes have members.
    pub nodes: u32,
    /// The members of each node follow each other, and so do the nodes.
    pub is_ordered: bool,
}

/// Maps the numbers of an algorithm to places in the group: the algorithm's numbers
/// are first unfolded, then rotated, then looked up in a subset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerMap {
    /// Number of pairs of which only the second member takes part.
    pub(super) pairs: u32,
    /// The number 0 is this one.
    pub(super) root: u32,
    /// How many members the subset has.
    pub(super) size: u32,
    pub(super) subset: Subset,
}

impl NodeView {
    /// The view of members that lie on several nodes, and not each on its own: others
    /// gain nothing by stages.
    pub fn of_several(self, size: u32) -> Option<Self> {
        (self.nodes > 1 && self.nodes < size).then_some(self)
    }
}

impl PeerMap {
    /// `size` members, which an algorithm numbers from `root` on.
    pub const fn new(size: u32, root: u32, subset: Subset) -> Self {
        Self { pairs: 0, root, size, subset }
    }

    /// The place in the group of the algorithm's number `peer`.
    pub(super) fn place(&self, tables: &CollTables<'_>, peer: u32) -> u32 {
        let peer = if peer < self.pairs { 2 * peer + 1 } else { peer + self.pairs };
        let peer = plus(peer, self.root, self.size);
        match self.subset {
            Subset::All => peer,
            Subset::Neighbours => tables.neighbours[peer as usize],
            Subset::Leaders { node, as_leader } if node == peer => as_leader,
            Subset::Leaders { .. } => tables.leaders[peer as usize],
        }
    }
}

/// `number + by` of `size` numbers in a ring.
pub(super) const fn plus(number: u32, by: u32, size: u32) -> u32 {
    ((number as u64 + by as u64) % size as u64) as u32
}

/// `number - by` of `size` numbers in a ring; `by` is at most `size`.
pub(super) const fn minus(number: u32, by: u32, size: u32) -> u32 {
    ((number as u64 + size as u64 - by as u64) % size as u64) as u32
}

/// The rounds of an algorithm in which each rank knows twice as many after each round.
pub(super) const fn log2_ceil(size: u32) -> u32 {
    if size <= 1 { 0 } else { 32 - (size - 1).leading_zeros() }
}

/// A place in a binomial tree: the parent has the lowest bit of the number cleared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binomial {
    pub(super) number: u32,
    pub(super) size: u32,
}

impl Binomial {
    /// The first power of two that is not the distance of a child.
    pub(super) const fn reach(self) -> u32 {
        if self.number == 0 { 1 << log2_ceil(self.size) } else { 1 << self.number.trailing_zeros() }
    }

    pub(super) const fn parent(self) -> Option<u32> {
        if self.number == 0 { None } else { Some(self.number & (self.number - 1)) }
    }

    /// The number of its children: those at the distances 1, 2, 4, ...
    pub(super) const fn children(self) -> u32 {
        let most = self.reach().trailing_zeros();
        let left = self.size - 1 - self.number;
        let fit = if left == 0 { 0 } else { 32 - left.leading_zeros() };
        if most < fit { most } else { fit }
    }

    pub(super) const fn child(self, index: u32) -> u32 {
        self.number + (1 << index)
    }

    /// The members of the subtree: from its own number to this one.
    pub(super) const fn end(self) -> u32 {
        let end = self.number as u64 + self.reach() as u64;
        if end < self.size as u64 { end as u32 } else { self.size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binomial_tree_reaches_each_number_once() {
        for size in 1..70 {
            for number in 0..size {
                let place = Binomial { number, size };
                let subtree: u32 = (0..place.children())
                    .map(|child| Binomial { number: place.child(child), size })
                    .inspect(|child| assert_eq!(child.parent(), Some(number)))
                    .map(|child| child.end() - child.number)
                    .sum();
                assert_eq!(subtree + 1, place.end() - number, "{number} of {size}");
            }
        }
    }

    #[test]
    fn logarithms_are_rounded_up() {
        let logs = [1, 2, 3, 4, 5, 8, 9, 100_000].map(log2_ceil);
        assert_eq!(logs, [0, 1, 2, 2, 3, 3, 4, 17]);
    }
}
