//! The lengths at which collectives change their algorithm.

use core::ops::Range;

/// From which length on, or up to which, an algorithm is the fastest. A length is that
/// of the whole buffer of a member, in bytes, unless the name says `block`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollThresholds {
    /// Members that have rows, and of which each takes so many bytes of another one or less,
    /// go through them.
    pub published_max: usize,
    /// In groups of so many members or fewer, each member reads the values of all in a barrier
    /// or an allreduce through rows. In larger groups the first member reads them and publishes
    /// the result.
    pub published_members_max: u32,
    /// Broadcasts from here on go from the root to each member.
    pub broadcast_flat_from: usize,
    /// Broadcasts of these lengths go through a chain, if it has pieces enough; others through a
    /// tree, or are spread.
    pub broadcast_chain: Range<usize>,
    /// Bytes of a piece in a chain.
    pub broadcast_piece: usize,
    /// A chain has a piece for each so many members, or more pieces: in one with fewer, most
    /// members wait for the first piece.
    pub broadcast_members_per_piece: usize,
    /// Groups of so many members or fewer take a tree for every broadcast.
    pub broadcast_tree_members_max: u32,
    /// Broadcasts from here on that take no chain are spread by a tree and gathered by a ring.
    pub broadcast_spread_from: usize,
    /// Allreduces from here on halve.
    pub allreduce_halving_from: usize,
    /// Allreduces from here on go in a ring, if the members are no power of two.
    pub allreduce_uneven_ring_from: usize,
    /// Allreduces from here on go in a ring.
    pub allreduce_ring_from: usize,
    /// Gathers and scatters of blocks up to this length go through a tree.
    pub rooted_tree_block_max: usize,
    /// In groups of so many members or fewer, each block of a gather or scatter goes directly
    /// between the root and its member.
    pub rooted_flat_members_max: u32,
    /// Gathers and scatters of blocks up to this length go first within the nodes, if there are
    /// several.
    pub rooted_nodes_block_max: usize,
    /// Allgathers of blocks up to this length take log2 P rounds.
    pub allgather_short_block_max: usize,
    /// Alltoalls of 3 members or more with blocks up to this length take log2 P rounds.
    pub alltoall_short_block_max: usize,
    /// Alltoalls with blocks up to this length go through one leader of each node, if there are
    /// several.
    pub alltoall_nodes_block_max: usize,
    /// Reduce-scatters of blocks up to this length take log2 P rounds, if the members are a power
    /// of two and the operation commutes.
    pub reduce_scatter_halving_block_max: usize,
}

impl CollThresholds {
    /// Among members that share memory. `docs/measuring.md` has the commands that measure these,
    /// and those of [`FAR`](Self::FAR), and some of the results.
    pub const NEAR: Self = Self {
        published_max: 256,
        published_members_max: 16,
        broadcast_flat_from: usize::MAX,
        broadcast_chain: 16 << 10..96 << 10,
        broadcast_piece: 4 << 10,
        broadcast_members_per_piece: usize::MAX,
        broadcast_tree_members_max: 4,
        broadcast_spread_from: 1 << 20,
        allreduce_halving_from: 8 << 10,
        allreduce_uneven_ring_from: 32 << 10,
        allreduce_ring_from: 4 << 20,
        rooted_tree_block_max: 256,
        rooted_flat_members_max: 8,
        rooted_nodes_block_max: 0,
        allgather_short_block_max: 128 << 10,
        alltoall_short_block_max: 256,
        alltoall_nodes_block_max: 0,
        reduce_scatter_halving_block_max: 128 << 10,
    };

    /// Among members that share memory, and cores: what counts is how often a member waits for
    /// another one, because each wait gives a core away.
    pub const CROWDED: Self = Self { broadcast_flat_from: 16 << 10, ..Self::NEAR };

    /// Among members on several nodes, and among leaders of nodes.
    pub const FAR: Self = Self {
        published_max: 0,
        broadcast_chain: 64 << 10..usize::MAX,
        broadcast_piece: 32 << 10,
        broadcast_members_per_piece: 2,
        broadcast_tree_members_max: 2,
        broadcast_spread_from: 128 << 10,
        allreduce_halving_from: 32 << 10,
        rooted_nodes_block_max: 16 << 10,
        alltoall_nodes_block_max: 256,
        ..Self::NEAR
    };
}
