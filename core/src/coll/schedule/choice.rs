//! Which algorithm a collective takes, by lengths, members and nodes.

use super::blocks::Blocks;
use super::peers::{NodeView, Subset};
use super::plan::{
    AllgatherDesign, AllreduceDesign, BroadcastDesign, CollMember, CollPlan, Elements,
};
use super::step::{BufferSpan, CollBuffer};
use crate::coll::row::CellRow;
use core::ops::Range;

/// From which length on, or up to which, an algorithm is the fastest. A length is that
/// of the whole buffer of a member, in bytes, unless the name says `block`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollThresholds {
    /// Where the members share memory, and each takes so many bytes of another one or less,
    /// they go through rows.
    pub published_max: usize,
    /// Broadcasts of these lengths go through a chain where the members share memory; shorter
    /// and longer ones through a tree.
    pub broadcast_chain: Range<usize>,
    /// Bytes of a piece in a chain.
    pub broadcast_piece: usize,
    /// Broadcasts from here on are spread by a tree and gathered by a ring.
    pub broadcast_spread_from: usize,
    /// The same for members without rows, which may be on several nodes.
    pub broadcast_far_spread_from: usize,
    /// Allreduces from here on halve.
    pub allreduce_halving_from: usize,
    /// Allreduces from here on go in a ring, if the members are no power of two.
    pub allreduce_uneven_ring_from: usize,
    /// Allreduces from here on go in a ring.
    pub allreduce_ring_from: usize,
    /// Gathers and scatters of blocks up to this length go through a tree.
    pub rooted_tree_block_max: usize,
    /// Between nodes, gathers and scatters of blocks up to this length go first within the nodes.
    pub rooted_nodes_block_max: usize,
    /// Allgathers of blocks up to this length take log2 P rounds.
    pub allgather_short_block_max: usize,
    /// Alltoalls with blocks up to this length take log2 P rounds.
    pub alltoall_short_block_max: usize,
    /// Between nodes, alltoalls with blocks up to this length go through one leader of each.
    pub alltoall_nodes_block_max: usize,
    /// Reduce-scatters of blocks up to this length take log2 P rounds.
    pub reduce_scatter_halving_block_max: usize,
}

/// Where the root of a collective is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootView {
    /// Its place in the group.
    pub root: u32,
    /// The number of its node.
    pub node: u32,
    /// Its place among the members of that node; of no matter elsewhere.
    pub place: u32,
}

/// A member as one of its node, and as the leader of its node, if it is that.
#[derive(Clone, Copy)]
struct Levels {
    inner: CollMember,
    /// The place of the leader among the members of the node.
    head: u32,
    outer: CollMember,
    is_leader: bool,
}

impl CollThresholds {
    /// Thresholds for ranks of one node, measured with 3 to 16 ranks of one worker, each on a
    /// core of its own, by forcing each algorithm at each length. Between nodes they were not
    /// measured.
    pub const DEFAULT: Self = Self {
        published_max: 256,
        broadcast_chain: 16 << 10..96 << 10,
        broadcast_piece: 4 << 10,
        broadcast_spread_from: 1 << 20,
        broadcast_far_spread_from: 64 << 10,
        allreduce_halving_from: 8 << 10,
        allreduce_uneven_ring_from: 32 << 10,
        allreduce_ring_from: 4 << 20,
        rooted_tree_block_max: 1 << 10,
        rooted_nodes_block_max: 16 << 10,
        allgather_short_block_max: 128 << 10,
        alltoall_short_block_max: 256,
        alltoall_nodes_block_max: 256,
        reduce_scatter_halving_block_max: 128 << 10,
    };

    /// Groups of fewer members take a tree for every broadcast.
    const CHAIN_MEMBERS_MIN: u32 = 5;

    /// Whether values of `bytes` bytes, of which a member takes up to `taken`, go through
    /// rows.
    const fn publishes(&self, of: CollMember, bytes: usize, taken: usize) -> bool {
        of.has_rows && bytes <= CellRow::VALUE_BYTES && taken <= self.published_max
    }

    /// The plan of a barrier.
    pub fn barrier(&self, of: CollMember, view: Option<NodeView>) -> CollPlan {
        let mut plan = CollPlan::default();
        match view.map(|view| levels(of.me, view, None)) {
            None if self.publishes(of, 0, 0) => plan.published_barrier(of),
            None => plan.barrier(of),
            Some(Levels { inner, outer, is_leader, .. }) => {
                plan.reduce_in_place(inner, 0, BufferSpan::EMPTY);
                if is_leader {
                    plan.barrier(outer);
                }
                plan.broadcast(inner, 0, BufferSpan::EMPTY, BroadcastDesign::Tree)
            }
        };
        plan
    }

    /// The plan of a broadcast of `len` bytes, which are the output of all.
    pub fn broadcast(
        &self,
        of: CollMember,
        view: Option<NodeView>,
        root: RootView,
        len: usize,
    ) -> CollPlan {
        let data = BufferSpan::first(CollBuffer::Output, len);
        let mut plan = CollPlan::default();
        match view.map(|view| levels(of.me, view, Some(root))) {
            None if self.publishes(of, len, len) => plan.published_broadcast(of, root.root, data),
            None => plan.broadcast(of, root.root, data, self.broadcast_of(of, len)),
            Some(Levels { inner, head, outer, is_leader }) => {
                if is_leader {
                    plan.broadcast(outer, root.node, data, self.broadcast_of(outer, len));
                }
                plan.broadcast(inner, head, data, self.broadcast_of(inner, len))
            }
        };
        plan
    }

    fn broadcast_of(&self, of: CollMember, len: usize) -> BroadcastDesign {
        let spread_from = match of.has_rows {
            true => self.broadcast_spread_from,
            false => self.broadcast_far_spread_from,
        };
        if of.size < Self::CHAIN_MEMBERS_MIN {
            BroadcastDesign::Tree
        } else if len >= spread_from {
            BroadcastDesign::Spread
        } else if of.has_rows && self.broadcast_chain.contains(&len) {
            BroadcastDesign::Chain(self.broadcast_piece)
        } else {
            BroadcastDesign::Tree
        }
    }

    /// The plan of a reduction of the inputs to the output of the root.
    pub fn reduce(
        &self,
        of: CollMember,
        view: Option<NodeView>,
        root: RootView,
        elements: Elements,
    ) -> CollPlan {
        let mut plan = CollPlan::default();
        if self.publishes(of, elements.total(), elements.total()) {
            let from = if of.me == root.root { 0..of.size } else { 0..0 };
            plan.published_reduce(of, elements, from);
            return plan;
        }
        match view.filter(|_| elements.commutes).map(|view| levels(of.me, view, Some(root))) {
            None => plan.reduce(of, root.root, elements),
            Some(Levels { inner, head, outer, is_leader }) => {
                let input = BufferSpan::first(CollBuffer::Input, elements.total());
                let data = match of.me == root.root {
                    true => BufferSpan::first(CollBuffer::Output, elements.total()),
                    false => plan.reserve(elements.total()),
                };
                plan.copy(input, data).reduce_in_place(inner, head, data);
                if is_leader {
                    plan.reduce_in_place(outer, root.node, data);
                }
                &mut plan
            }
        };
        plan
    }

    /// The plan of an allreduce of the inputs to the outputs of all.
    pub fn allreduce(
        &self,
        of: CollMember,
        view: Option<NodeView>,
        elements: Elements,
    ) -> CollPlan {
        let mut plan = CollPlan::default();
        let input = BufferSpan::first(CollBuffer::Input, elements.total());
        let data = BufferSpan::first(CollBuffer::Output, elements.total());
        if self.publishes(of, elements.total(), elements.total()) {
            plan.published_reduce(of, elements, 0..of.size);
            return plan;
        }
        plan.copy(input, data);
        let view = view.filter(|view| elements.commutes || view.is_ordered);
        match view.map(|view| levels(of.me, view, None)) {
            None => plan.allreduce_in_place(of, data, elements, self.allreduce_of(of, elements)),
            Some(Levels { inner, outer, is_leader, .. }) => {
                plan.reduce_in_place(inner, 0, data);
                if is_leader {
                    let design = self.allreduce_of(outer, elements);
                    plan.allreduce_in_place(outer, data, elements, design);
                }
                plan.broadcast(inner, 0, data, self.broadcast_of(inner, data.len))
            }
        };
        plan
    }

    fn allreduce_of(&self, of: CollMember, elements: Elements) -> AllreduceDesign {
        let (len, is_divided) = (elements.total(), elements.count >= of.size as usize);
        let ring_from = match of.size.is_power_of_two() {
            true => self.allreduce_ring_from,
            false => self.allreduce_uneven_ring_from,
        };
        if !elements.commutes || !is_divided || len < self.allreduce_halving_from {
            AllreduceDesign::Doubling
        } else if len < ring_from {
            AllreduceDesign::Halving
        } else {
            AllreduceDesign::Ring
        }
    }

    /// The plan of a scan.
    pub fn scan(&self, of: CollMember, elements: Elements, exclusive: bool) -> CollPlan {
        let mut plan = CollPlan::default();
        if self.publishes(of, elements.total(), elements.total()) {
            plan.published_reduce(of, elements, 0..of.me + u32::from(!exclusive));
        } else {
            plan.scan(of, elements, exclusive);
        }
        plan
    }

    /// The plan of a gather, or of a scatter, of blocks of `bytes` bytes.
    pub fn rooted(
        &self,
        of: CollMember,
        at: RootView,
        bytes: usize,
        is_scatter: bool,
        in_place: bool,
    ) -> CollPlan {
        let (root, blocks) = (at.root, Blocks::Even { bytes });
        let mut plan = CollPlan::default();
        if is_scatter && self.publishes(of, bytes.saturating_mul(of.size as usize), bytes) {
            plan.published_scatter(of, root, bytes, in_place);
        } else if !is_scatter && self.publishes(of, bytes, bytes) {
            let own = BufferSpan::first(CollBuffer::Input, bytes);
            let except = in_place.then_some(root);
            plan.published_gather(of, own, blocks, (of.me == root, except));
        } else if bytes <= self.rooted_nodes_block_max
            && !in_place
            && let Some((view, bytes)) = in_order(of, blocks)
        {
            rooted_by_nodes(&mut plan, of, view, at, (bytes, is_scatter));
        } else if bytes <= self.rooted_tree_block_max {
            plan.rooted_tree(of, root, bytes, is_scatter, in_place);
        } else {
            plan.rooted_flat(of, root, blocks, bytes, is_scatter, in_place);
        }
        plan
    }

    /// The plan of an allgather: `own` is this member's block, which goes to `own_at`
    /// of `total` bytes.
    pub fn allgather(
        &self,
        of: CollMember,
        own: BufferSpan,
        own_at: usize,
        total: usize,
        blocks: Blocks,
    ) -> CollPlan {
        let is_even = matches!(blocks, Blocks::Even { .. });
        let is_long = total / of.size as usize > self.allgather_short_block_max;
        let design = if is_long {
            AllgatherDesign::Ring
        } else if of.size.is_power_of_two() && is_even {
            AllgatherDesign::Doubling
        } else {
            AllgatherDesign::Bruck
        };
        let mut plan = CollPlan::default();
        // The result of all is as long, so all choose the same.
        let is_short = match blocks {
            Blocks::Even { bytes } => self.publishes(of, bytes, bytes),
            _ => self.publishes(of, total, total),
        };
        if is_short {
            plan.published_gather(of, own, blocks, (true, None));
            return plan;
        }
        if let Some((view, bytes)) = in_order(of, blocks)
            && own == BufferSpan::first(CollBuffer::Input, bytes)
        {
            let Levels { inner, outer, is_leader, .. } = levels(of.me, view, None);
            let here = blocks_of_node(of, view, bytes);
            let all = BufferSpan::first(CollBuffer::Output, total);
            plan.gather_at(inner, 0, here, bytes);
            if is_leader {
                let is_long = total / outer.size as usize > self.allgather_short_block_max;
                let design = if is_long { AllgatherDesign::Ring } else { AllgatherDesign::Bruck };
                let blocks = Blocks::Nodes { bytes, size: of.size };
                plan.allgather(outer, here, here.at, total, blocks, design);
            }
            plan.broadcast(inner, 0, all, self.broadcast_of(inner, total));
            return plan;
        }
        plan.allgather(of, own, own_at, total, blocks, design);
        plan
    }

    /// The plan of an alltoall with blocks of one length.
    pub fn alltoall(&self, of: CollMember, bytes: usize) -> CollPlan {
        let mut plan = CollPlan::default();
        if self.publishes(of, bytes.saturating_mul(of.size as usize), bytes) {
            plan.published_alltoall(of, bytes);
        } else if bytes <= self.alltoall_nodes_block_max
            && let Some((view, _)) = in_order(of, Blocks::Even { bytes })
        {
            let Levels { inner, outer, is_leader, .. } = levels(of.me, view, None);
            let whole = of.size as usize * bytes;
            let data = match is_leader {
                true => plan.reserve(view.neighbours as usize * whole),
                false => BufferSpan::EMPTY,
            };
            plan.gather_at(inner, 0, data, whole);
            if is_leader {
                plan.alltoall_nodes((outer, view.neighbours, of.size), data, bytes);
            }
            plan.scatter_from(inner, 0, data, whole);
        } else if bytes <= self.alltoall_short_block_max && of.size > 2 {
            plan.alltoall_short(of, bytes);
        } else {
            let blocks = Blocks::Even { bytes };
            plan.alltoall(of, blocks, blocks);
        }
        plan
    }

    /// The plan of a reduce-scatter; the member's block is the bytes `own`. The blocks
    /// follow each other in the input.
    pub fn reduce_scatter(
        &self,
        of: CollMember,
        elements: Elements,
        blocks: Blocks,
        own: Range<usize>,
    ) -> CollPlan {
        let block = elements.total() / of.size as usize;
        let is_short = block <= self.reduce_scatter_halving_block_max;
        let halve = is_short && elements.commutes && of.size.is_power_of_two();
        let mut plan = CollPlan::default();
        if self.publishes(of, elements.total(), block) {
            plan.published_reduce_scatter(of, elements, own);
            return plan;
        }
        if let Some((view, bytes)) = in_order(of, blocks) {
            let Levels { inner, outer, is_leader, .. } = levels(of.me, view, None);
            let input = BufferSpan::first(CollBuffer::Input, elements.total());
            let (sum, here) = (plan.reserve(input.len), blocks_of_node(of, view, bytes));
            let here = plan.reserve(here.len);
            plan.copy(input, sum).reduce_in_place(inner, 0, sum);
            if is_leader {
                let blocks = Blocks::Nodes { bytes, size: of.size };
                plan.reduce_scatter_pairwise(outer, sum, blocks, here);
            }
            plan.scatter_from(inner, 0, here, bytes);
            return plan;
        }
        plan.reduce_scatter(of, elements, blocks, own, halve);
        plan
    }
}

/// The stages of a gather, or of a scatter: within the nodes, and between their leaders, of which
/// the root is one.
fn rooted_by_nodes(
    plan: &mut CollPlan,
    of: CollMember,
    view: NodeView,
    root: RootView,
    (bytes, is_scatter): (usize, bool),
) {
    let Levels { inner, head, outer, is_leader } = levels(of.me, view, Some(root));
    let buffer = if is_scatter { CollBuffer::Input } else { CollBuffer::Output };
    let all = BufferSpan::first(buffer, of.size as usize * bytes);
    let here = blocks_of_node(of, view, bytes);
    let here = match is_leader {
        true if of.me == root.root => BufferSpan { buffer, ..here },
        true => plan.reserve(here.len),
        false => BufferSpan::EMPTY,
    };
    if !is_scatter {
        plan.gather_at(inner, head, here, bytes);
    }
    if is_leader {
        let blocks = Blocks::Nodes { bytes, size: of.size };
        plan.rooted_nodes(outer, root.node, (blocks, all), here, is_scatter);
    }
    if is_scatter {
        plan.scatter_from(inner, head, here, bytes);
    }
}

/// The view of a member whose collective goes by nodes, and the bytes of a block: the
/// blocks of each node are one range then.
fn in_order(of: CollMember, blocks: Blocks) -> Option<(NodeView, usize)> {
    match (of.view, blocks) {
        (Some(view), Blocks::Even { bytes }) if view.is_ordered => Some((view, bytes)),
        _ => None,
    }
}

/// The blocks of the members of this node among those of all.
fn blocks_of_node(of: CollMember, view: NodeView, bytes: usize) -> BufferSpan {
    let (first, count) = ((of.me - view.place) as usize, view.neighbours as usize);
    BufferSpan { buffer: CollBuffer::Output, at: first * bytes, len: count * bytes }
}

/// Both levels of a member; the root leads its node.
fn levels(me: u32, view: NodeView, root: Option<RootView>) -> Levels {
    let NodeView { place, neighbours, node, nodes, .. } = view;
    let here = root.filter(|root| root.node == node);
    let head = here.map_or(0, |root| root.place);
    let (at_node, as_leader) = root.map_or((u32::MAX, 0), |root| (root.node, root.root));
    let leaders = Subset::Leaders { node: at_node, as_leader };
    Levels {
        inner: CollMember { subset: Subset::Neighbours, ..CollMember::of_all(place, neighbours) },
        head,
        outer: CollMember { subset: leaders, ..CollMember::of_all(node, nodes) },
        is_leader: here.map_or(place == 0, |root| root.root == me),
    }
}
