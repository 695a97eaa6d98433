//! The tree of a group lock: its vertices, and the places of their words.
//!
//! ```text
//!  level 2                    (2, 0)                      the root
//!                    ┌──────────┴──────────┐              `arity` below each
//!  level 1         (1, 0)                (1, 1)
//!              ┌─────┼─────┐           ┌───┴───┐
//!  level 0   (0, 0) ...  (0, 15)    (0, 16)  (0, 17)      leaves
//!            ranks 0..8                     ranks 136..   of one machine each
//!
//!  words of a rank, 8 bytes each       words of a block
//!    0          grant to the rank        0         from the vertex above
//!    8 ..       a block for each         1         leavers that were last
//!    64 ..      level, up to the         8, 16     come, gone: all
//!               highest that it runs     24, 32    come, gone: exclusive
//!               a vertex of              40 .. 56  from below
//! ```
//!
//! The counts of arrivals and of departures at a leaf lie in different cache lines,
//! so that ranks that enter do not slow down ranks that leave.
//!
//! The first rank of a leaf runs the leaf. A vertex above is run by the second rank
//! of a leaf below it; each level uses another leaf, so that no machine receives the
//! writes of all levels.

use tsumugi_core::mem::{Rank, RegionKey, RemoteAddr};

/// The tree over all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tree {
    ranks: u32,
    per_leaf: u32,
    arity: u32,
    levels: u32,
    key: RegionKey,
    offset: u64,
}

/// A vertex of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VertexId {
    /// The level of the vertex. 0: a leaf.
    pub level: u32,
    /// The index of the vertex in its level, from the left.
    pub index: u32,
}

/// Why a tree is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeError {
    /// A job has 1 rank or more.
    NoRanks,
    /// A leaf has 1 to [`FAN_MAX`] ranks.
    PerLeaf(u32),
    /// A vertex has 2 to [`FAN_MAX`] children.
    Arity(u32),
}

#[derive(Clone, Copy)]
pub(super) enum BlockWord {
    Down = 0,
    Quiet = 1,
    Come = 8,
    Gone = 16,
    Below = 40,
}

impl Tree {
    /// A tree over `ranks` ranks. Each run of `per_leaf` ranks shares memory and is
    /// a leaf; each vertex has `arity` children. Every rank must give
    /// [`bytes_of`](Self::bytes_of) zero bytes under `key`, from `offset` on;
    /// `offset` should be a multiple of 64.
    ///
    /// # Errors
    ///
    /// - [`TreeError::NoRanks`]: `ranks` is 0.
    /// - [`TreeError::PerLeaf`]: `per_leaf` is not from 1 to [`FAN_MAX`].
    /// - [`TreeError::Arity`]: `arity` is not from 2 to [`FAN_MAX`].
    pub const fn new(
        ranks: u32,
        per_leaf: u32,
        arity: u32,
        key: RegionKey,
        offset: u64,
    ) -> Result<Self, TreeError> {
        if ranks == 0 {
            return Err(TreeError::NoRanks);
        }
        if per_leaf == 0 || per_leaf > FAN_MAX {
            return Err(TreeError::PerLeaf(per_leaf));
        }
        if arity < 2 || arity > FAN_MAX {
            return Err(TreeError::Arity(arity));
        }
        let (mut levels, mut count) = (1, ranks.div_ceil(per_leaf));
        while count > 1 {
            (levels, count) = (levels + 1, count.div_ceil(arity));
        }
        Ok(Self { ranks, per_leaf, arity, levels, key, offset })
    }

    /// The number of levels.
    pub const fn levels(&self) -> u32 {
        self.levels
    }

    /// The number of bytes that `rank` must give.
    pub fn bytes_of(&self, rank: Rank) -> u64 {
        let blocks = self.vertices_of(rank).map(|id| id.level + 1).max();
        LINE + u64::from(blocks.unwrap_or(0)) * BLOCK_BYTES
    }

    /// The vertices that `rank` runs.
    pub fn vertices_of(&self, rank: Rank) -> impl Iterator<Item = VertexId> + use<> {
        let (tree, leaf) = (*self, rank.0 / self.per_leaf);
        (0..self.levels)
            .map(move |level| VertexId { level, index: leaf / tree.span(level) })
            .filter(move |&id| tree.home(id) == rank)
    }

    /// The number of children of a vertex, or of ranks of a leaf.
    pub const fn below(&self, id: VertexId) -> u32 {
        let (mut count, mut of, mut level) = (self.ranks, self.per_leaf, 0);
        while level < id.level {
            count = count.div_ceil(of);
            of = self.arity;
            level += 1;
        }
        let rest = count - id.index * of;
        if rest < of { rest } else { of }
    }

    pub(super) const fn is_root(&self, id: VertexId) -> bool {
        id.level + 1 == self.levels
    }

    /// The vertex above, and the index of this vertex among the children of that
    /// vertex.
    pub(super) const fn above(&self, id: VertexId) -> (VertexId, u32) {
        let above = VertexId { level: id.level + 1, index: id.index / self.arity };
        (above, id.index % self.arity)
    }

    /// A child of a vertex.
    pub(super) const fn child(&self, id: VertexId, child: u32) -> VertexId {
        VertexId { level: id.level - 1, index: id.index * self.arity + child }
    }

    /// The leaf to which `rank` belongs, and the index of `rank` in it.
    pub(super) const fn leaf_of(&self, rank: Rank) -> (VertexId, u32) {
        (VertexId { level: 0, index: rank.0 / self.per_leaf }, rank.0 % self.per_leaf)
    }

    /// One of the ranks of a leaf.
    pub(super) const fn rank_of(&self, leaf: VertexId, index: u32) -> Rank {
        Rank(leaf.index * self.per_leaf + index)
    }

    /// The word that shows `rank` that it was let in.
    pub(super) const fn granted(&self, rank: Rank) -> RemoteAddr {
        RemoteAddr { rank, key: self.key, offset: self.offset }
    }

    pub(super) const fn word(&self, id: VertexId, word: BlockWord, index: u32) -> RemoteAddr {
        let (rank, block) = (self.home(id), id.level);
        let word = word as u64 + index as u64;
        let offset = self.offset + LINE + block as u64 * BLOCK_BYTES + word * 8;
        RemoteAddr { rank, key: self.key, offset }
    }

    /// The rank that runs a vertex.
    const fn home(&self, id: VertexId) -> Rank {
        let last = (self.ranks - 1) / self.per_leaf;
        // As many leaves from the left as there are levels below, so that no machine
        // runs vertices of two levels, as far as there are enough leaves.
        let (first, span) = (id.index * self.span(id.level), self.span(id.level));
        let from_left = if id.level < span { id.level } else { span - 1 };
        let leaf = if last - first < from_left { last } else { first + from_left };
        let rank = leaf * self.per_leaf;
        let is_inner = id.level > 0 && self.per_leaf > 1 && rank + 1 < self.ranks;
        Rank(if is_inner { rank + 1 } else { rank })
    }

    /// The number of leaves below a vertex of this level.
    const fn span(&self, level: u32) -> u32 {
        self.arity.saturating_pow(level)
    }
}

impl core::fmt::Display for TreeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoRanks => f.write_str("a tree over 0 ranks: it needs at least one"),
            Self::PerLeaf(ranks) => write!(f, "{ranks} ranks per leaf: must be 1 to {FAN_MAX}"),
            Self::Arity(arity) => write!(f, "{arity} children per vertex: must be 2 to {FAN_MAX}"),
        }
    }
}

impl core::error::Error for TreeError {}

/// The distance in words from the counts of one side of a group to the counts of the
/// other side.
pub(super) const SIDE_WORDS: u32 = 16;

/// The largest number of vertices or ranks below a vertex.
pub const FAN_MAX: u32 = 16;

const LINE: u64 = 64;
const BLOCK_BYTES: u64 = (BlockWord::Below as u64 + FAN_MAX as u64) * 8;

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::collections::HashSet;

    /// Every vertex has one home, words of its own, and one place above.
    #[test]
    fn every_vertex_has_a_home_and_words_of_its_own() {
        let key = RegionKey::new(0, 1);
        for (ranks, per_leaf, arity) in
            [(1, 8, 16), (9, 8, 16), (17, 1, 2), (1000, 3, 4), (137, 8, 16), (40, 2, 3)]
        {
            let tree = Tree::new(ranks, per_leaf, arity, key, 0).unwrap();
            let (mut words, mut below, mut roots) = (HashSet::new(), 0, 0);
            for rank in (0..ranks).map(Rank) {
                for id in tree.vertices_of(rank) {
                    let at = tree.word(id, BlockWord::Down, 0);
                    assert_eq!(at.rank, rank);
                    let last = tree.word(id, BlockWord::Below, FAN_MAX - 1);
                    assert!(last.offset + 8 <= tree.bytes_of(rank));
                    assert!(words.insert((rank, at.offset)), "{id:?} has no words of its own");
                    below += tree.below(id);
                    roots += u32::from(tree.is_root(id));
                    if id.level > 0 {
                        let child = tree.child(id, tree.below(id) - 1);
                        assert_eq!(tree.above(child), (id, tree.below(id) - 1));
                    }
                }
            }
            // All ranks, and all vertices but the root, are below one.
            assert_eq!((roots, below as usize), (1, ranks as usize + words.len() - 1));
        }
    }
}
