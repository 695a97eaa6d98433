//! Which algorithm a collective takes, by lengths, members and nodes, unless one is forced.

use super::blocks::Blocks;
use super::forced::{CollAlgorithm, CollForced, CollKind};
use super::peers::{NodeView, Subset};
use super::plan::{
    AllgatherDesign, AllreduceDesign, BroadcastDesign, CollMember, CollPlan, Elements,
};
use super::step::{BufferSpan, CollBuffer};
use super::threshold::CollThresholds;
use crate::coll::row::CellRow;
use core::ops::Range;

/// How a job chooses algorithms: the same at all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollChoice {
    near: CollThresholds,
    far: CollThresholds,
    forced: CollForced,
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

impl CollChoice {
    /// Nothing is forced.
    pub const DEFAULT: Self = Self::new(CollForced::NONE, false);

    /// The measured thresholds, except for what is forced; of a node that has more workers than
    /// cores if `is_crowded`.
    pub const fn new(forced: CollForced, is_crowded: bool) -> Self {
        let near = if is_crowded { CollThresholds::CROWDED } else { CollThresholds::NEAR };
        Self { near, far: CollThresholds::FAR, forced }
    }

    /// The same thresholds, except for what is forced.
    pub fn forcing(&self, forced: CollForced) -> Self {
        Self { forced, ..self.clone() }
    }

    /// The thresholds of members that share memory, or that do not.
    const fn of(&self, of: CollMember) -> &CollThresholds {
        if of.is_near { &self.near } else { &self.far }
    }

    const fn forced(&self, kind: CollKind, of: CollMember) -> Option<CollAlgorithm> {
        self.forced.algorithm(kind, of.is_near)
    }

    /// The view of a member whose collective goes by nodes.
    fn by_nodes(&self, kind: CollKind, view: Option<NodeView>) -> Option<NodeView> {
        view.filter(|_| self.forced.goes_by_nodes(kind) != Some(false))
    }

    /// Whether values of `bytes` bytes, of which a member takes up to `taken`, go through
    /// rows.
    const fn publishes(&self, kind: CollKind, of: CollMember, bytes: usize, taken: usize) -> bool {
        if !of.has_rows || bytes > CellRow::VALUE_BYTES {
            return false;
        }
        match self.forced(kind, of) {
            None => taken <= self.of(of).published_max,
            Some(algorithm) => {
                matches!(algorithm, CollAlgorithm::Rows | CollAlgorithm::RootedRows)
            }
        }
    }

    /// Whether one member reads the values of all, where all need the same of them.
    const fn has_rooted_rows(&self, kind: CollKind, of: CollMember) -> bool {
        match self.forced(kind, of) {
            None => of.size > self.of(of).published_members_max,
            Some(algorithm) => matches!(algorithm, CollAlgorithm::RootedRows),
        }
    }

    /// Plans a barrier.
    pub fn barrier(&self, plan: &mut CollPlan, of: CollMember, view: Option<NodeView>) {
        let view = self.by_nodes(CollKind::Barrier, view);
        match view.map(|view| levels(of.me, view, None)) {
            None if self.publishes(CollKind::Barrier, of, 0, 0) => {
                match self.has_rooted_rows(CollKind::Barrier, of) {
                    true => plan.rooted_rows_barrier(of),
                    false => plan.published_barrier(of),
                }
            }
            None => plan.barrier(of),
            Some(Levels { inner, outer, is_leader, .. }) => {
                plan.reduce_in_place(inner, 0, BufferSpan::EMPTY);
                if is_leader {
                    plan.barrier(outer);
                }
                plan.broadcast(inner, 0, BufferSpan::EMPTY, BroadcastDesign::Tree)
            }
        };
    }

    /// Plans a broadcast of `len` bytes, which are the output of all.
    pub fn broadcast(
        &self,
        plan: &mut CollPlan,
        of: CollMember,
        view: Option<NodeView>,
        root: RootView,
        len: usize,
    ) {
        let data = BufferSpan::first(CollBuffer::Output, len);
        let view = self.by_nodes(CollKind::Broadcast, view);
        match view.map(|view| levels(of.me, view, Some(root))) {
            None if self.publishes(CollKind::Broadcast, of, len, len) => {
                plan.published_broadcast(of, root.root, data)
            }
            None => plan.broadcast(of, root.root, data, self.broadcast_of(of, len)),
            Some(Levels { inner, head, outer, is_leader }) => {
                if is_leader {
                    plan.broadcast(outer, root.node, data, self.broadcast_of(outer, len));
                }
                plan.broadcast(inner, head, data, self.broadcast_of(inner, len))
            }
        };
    }

    fn broadcast_of(&self, of: CollMember, len: usize) -> BroadcastDesign {
        let thresholds = self.of(of);
        let chain = BroadcastDesign::Chain(thresholds.broadcast_piece);
        match self.forced(CollKind::Broadcast, of) {
            Some(CollAlgorithm::Tree) => return BroadcastDesign::Tree,
            Some(CollAlgorithm::Flat) => return BroadcastDesign::Flat,
            Some(CollAlgorithm::Chain) => return chain,
            Some(CollAlgorithm::Spread) => return BroadcastDesign::Spread,
            _ => {}
        }
        let pieces = len.div_ceil(thresholds.broadcast_piece);
        let fills = pieces.saturating_mul(thresholds.broadcast_members_per_piece);
        if len >= thresholds.broadcast_flat_from {
            BroadcastDesign::Flat
        } else if of.size <= thresholds.broadcast_tree_members_max {
            BroadcastDesign::Tree
        } else if thresholds.broadcast_chain.contains(&len) && fills >= of.size as usize {
            chain
        } else if len >= thresholds.broadcast_spread_from {
            BroadcastDesign::Spread
        } else {
            BroadcastDesign::Tree
        }
    }

    /// Plans a reduction of the inputs to the output of the root.
    pub fn reduce(
        &self,
        plan: &mut CollPlan,
        of: CollMember,
        view: Option<NodeView>,
        root: RootView,
        elements: Elements,
    ) {
        if self.publishes(CollKind::Reduce, of, elements.total(), elements.total()) {
            let from = if of.me == root.root { 0..of.size } else { 0..0 };
            plan.published_reduce(of, elements, from);
            return;
        }
        let view = self.by_nodes(CollKind::Reduce, view).filter(|_| elements.commutes);
        match view.map(|view| levels(of.me, view, Some(root))) {
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
                plan
            }
        };
    }

    /// Plans an allreduce of the inputs to the outputs of all.
    pub fn allreduce(
        &self,
        plan: &mut CollPlan,
        of: CollMember,
        view: Option<NodeView>,
        elements: Elements,
    ) {
        let input = BufferSpan::first(CollBuffer::Input, elements.total());
        let data = BufferSpan::first(CollBuffer::Output, elements.total());
        if self.publishes(CollKind::Allreduce, of, elements.total(), elements.total()) {
            match self.has_rooted_rows(CollKind::Allreduce, of) {
                true => plan.rooted_rows_allreduce(of, elements),
                false => plan.published_reduce(of, elements, 0..of.size),
            };
            return;
        }
        plan.copy(input, data);
        let view = self
            .by_nodes(CollKind::Allreduce, view)
            .filter(|view| elements.commutes || view.is_ordered);
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
    }

    fn allreduce_of(&self, of: CollMember, elements: Elements) -> AllreduceDesign {
        let (len, is_divided) = (elements.total(), elements.count >= of.size as usize);
        let thresholds = self.of(of);
        let ring_from = match of.size.is_power_of_two() {
            true => thresholds.allreduce_ring_from,
            false => thresholds.allreduce_uneven_ring_from,
        };
        match self.forced(CollKind::Allreduce, of) {
            _ if !elements.commutes || !is_divided => AllreduceDesign::Doubling,
            Some(CollAlgorithm::Doubling) => AllreduceDesign::Doubling,
            Some(CollAlgorithm::Halving) => AllreduceDesign::Halving,
            Some(CollAlgorithm::Ring) => AllreduceDesign::Ring,
            _ if len < thresholds.allreduce_halving_from => AllreduceDesign::Doubling,
            _ if len < ring_from => AllreduceDesign::Halving,
            _ => AllreduceDesign::Ring,
        }
    }

    /// Plans a scan.
    pub fn scan(&self, plan: &mut CollPlan, of: CollMember, elements: Elements, exclusive: bool) {
        if self.publishes(CollKind::Scan, of, elements.total(), elements.total()) {
            plan.published_reduce(of, elements, 0..of.me + u32::from(!exclusive));
        } else {
            plan.scan(of, elements, exclusive);
        }
    }

    /// Plans a gather, or a scatter, of blocks of `bytes` bytes.
    pub fn rooted(
        &self,
        plan: &mut CollPlan,
        of: CollMember,
        at: RootView,
        bytes: usize,
        is_scatter: bool,
        in_place: bool,
    ) {
        let (root, blocks) = (at.root, Blocks::Even { bytes });
        let (kind, thresholds) = (CollKind::Rooted, self.of(of));
        let takes_tree = match self.forced(kind, of) {
            Some(CollAlgorithm::Tree) => true,
            Some(CollAlgorithm::Flat) => false,
            _ => {
                of.size > thresholds.rooted_flat_members_max
                    && bytes <= thresholds.rooted_tree_block_max
            }
        };
        let goes_by_nodes = self.forced.goes_by_nodes(kind);
        if is_scatter && self.publishes(kind, of, bytes.saturating_mul(of.size as usize), bytes) {
            plan.published_scatter(of, root, bytes, in_place);
        } else if !is_scatter && self.publishes(kind, of, bytes, bytes) {
            let own = BufferSpan::first(CollBuffer::Input, bytes);
            let except = in_place.then_some(root);
            plan.published_gather(of, own, blocks, (of.me == root, except));
        } else if goes_by_nodes.unwrap_or(bytes <= thresholds.rooted_nodes_block_max)
            && !in_place
            && let Some((view, bytes)) = in_order(of, blocks)
        {
            rooted_by_nodes(plan, of, view, at, (bytes, is_scatter));
        } else if takes_tree {
            plan.rooted_tree(of, root, bytes, is_scatter, in_place);
        } else {
            plan.rooted_flat(of, root, blocks, bytes, is_scatter, in_place);
        }
    }

    /// Plans an allgather: `own` is this member's block, which goes to `own_at`
    /// of `total` bytes.
    pub fn allgather(
        &self,
        plan: &mut CollPlan,
        of: CollMember,
        own: BufferSpan,
        own_at: usize,
        total: usize,
        blocks: Blocks,
    ) {
        let is_even = matches!(blocks, Blocks::Even { .. });
        let kind = CollKind::Allgather;
        let design = self.allgather_of(of, total, is_even);
        // The result of all is as long, so all choose the same.
        let is_short = match blocks {
            Blocks::Even { bytes } => self.publishes(kind, of, bytes, bytes),
            _ => self.publishes(kind, of, total, total),
        };
        if is_short {
            plan.published_gather(of, own, blocks, (true, None));
            return;
        }
        if self.forced.goes_by_nodes(kind) != Some(false)
            && let Some((view, bytes)) = in_order(of, blocks)
            && own == BufferSpan::first(CollBuffer::Input, bytes)
        {
            let Levels { inner, outer, is_leader, .. } = levels(of.me, view, None);
            let here = blocks_of_node(of, view, bytes);
            let all = BufferSpan::first(CollBuffer::Output, total);
            plan.within_node(inner, 0, (here, bytes), false);
            if is_leader {
                let design = self.allgather_of(outer, total, false);
                let blocks = Blocks::Nodes { bytes, size: of.size };
                plan.allgather(outer, here, here.at, total, blocks, design);
            }
            plan.broadcast(inner, 0, all, self.broadcast_of(inner, total));
            return;
        }
        plan.allgather(of, own, own_at, total, blocks, design);
    }

    fn allgather_of(&self, of: CollMember, total: usize, is_even: bool) -> AllgatherDesign {
        let is_long = total / of.size as usize > self.of(of).allgather_short_block_max;
        let doubles = of.size.is_power_of_two() && is_even;
        match self.forced(CollKind::Allgather, of) {
            Some(CollAlgorithm::Ring) => AllgatherDesign::Ring,
            Some(CollAlgorithm::Bruck) => AllgatherDesign::Bruck,
            Some(CollAlgorithm::Doubling) if doubles => AllgatherDesign::Doubling,
            _ if is_long => AllgatherDesign::Ring,
            _ if doubles => AllgatherDesign::Doubling,
            _ => AllgatherDesign::Bruck,
        }
    }

    /// Plans an alltoall with blocks of one length.
    pub fn alltoall(&self, plan: &mut CollPlan, of: CollMember, bytes: usize) {
        let (kind, thresholds) = (CollKind::Alltoall, self.of(of));
        let is_short = match self.forced(kind, of) {
            Some(CollAlgorithm::Bruck) => true,
            Some(CollAlgorithm::Pairwise) => false,
            _ => bytes <= thresholds.alltoall_short_block_max,
        };
        let goes_by_nodes = self.forced.goes_by_nodes(kind);
        if self.publishes(kind, of, bytes.saturating_mul(of.size as usize), bytes) {
            plan.published_alltoall(of, bytes);
        } else if goes_by_nodes.unwrap_or(bytes <= thresholds.alltoall_nodes_block_max)
            && let Some((view, _)) = in_order(of, Blocks::Even { bytes })
        {
            let Levels { inner, outer, is_leader, .. } = levels(of.me, view, None);
            let whole = of.size as usize * bytes;
            let data = match is_leader {
                true => plan.reserve(view.neighbours as usize * whole),
                false => BufferSpan::EMPTY,
            };
            plan.within_node(inner, 0, (data, whole), false);
            if is_leader {
                plan.alltoall_nodes((outer, view.neighbours, of.size), data, bytes);
            }
            plan.within_node(inner, 0, (data, whole), true);
        } else if is_short && of.size > 2 {
            plan.alltoall_short(of, bytes);
        } else {
            let blocks = Blocks::Even { bytes };
            plan.alltoall(of, blocks, blocks);
        }
    }

    /// Plans a reduce-scatter; the member's block is the bytes `own`. The blocks
    /// follow each other in the input.
    pub fn reduce_scatter(
        &self,
        plan: &mut CollPlan,
        of: CollMember,
        elements: Elements,
        blocks: Blocks,
        own: Range<usize>,
    ) {
        let block = elements.total() / of.size as usize;
        let kind = CollKind::ReduceScatter;
        let is_short = match self.forced(kind, of) {
            Some(CollAlgorithm::Halving) => true,
            Some(CollAlgorithm::Pairwise) => false,
            _ => block <= self.of(of).reduce_scatter_halving_block_max,
        };
        let halve = is_short && elements.commutes && of.size.is_power_of_two();
        if self.publishes(kind, of, elements.total(), block) {
            plan.published_reduce_scatter(of, elements, own);
            return;
        }
        if self.forced.goes_by_nodes(kind) != Some(false)
            && let Some((view, bytes)) = in_order(of, blocks)
        {
            let Levels { inner, outer, is_leader, .. } = levels(of.me, view, None);
            let input = BufferSpan::first(CollBuffer::Input, elements.total());
            let (sum, here) = (plan.reserve(input.len), blocks_of_node(of, view, bytes));
            let here = plan.reserve(here.len);
            plan.copy(input, sum).reduce_in_place(inner, 0, sum);
            if is_leader {
                let blocks = Blocks::Nodes { bytes, size: of.size };
                plan.reduce_scatter_pairwise(outer, sum, blocks, here);
            }
            plan.within_node(inner, 0, (here, bytes), true);
            return;
        }
        plan.reduce_scatter(of, elements, blocks, own, halve);
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
        plan.within_node(inner, head, (here, bytes), is_scatter);
    }
    if is_leader {
        let blocks = Blocks::Nodes { bytes, size: of.size };
        plan.rooted_nodes(outer, root.node, (blocks, all), here, is_scatter);
    }
    if is_scatter {
        plan.within_node(inner, head, (here, bytes), is_scatter);
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
        inner: CollMember {
            subset: Subset::Neighbours,
            is_near: true,
            ..CollMember::of_all(place, neighbours)
        },
        head,
        outer: CollMember { subset: leaders, ..CollMember::of_all(node, nodes) },
        is_leader: here.map_or(place == 0, |root| root.root == me),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The design of a broadcast of so many KiB.
    fn broadcast(size: u32, is_near: bool, kib: usize) -> BroadcastDesign {
        let of = CollMember { is_near, ..CollMember::of_all(0, size) };
        CollChoice::DEFAULT.broadcast_of(of, kib << 10)
    }

    #[test]
    fn a_chain_between_nodes_has_pieces_for_its_members() {
        let chain = BroadcastDesign::Chain(32 << 10);
        for (size, kib, design) in [
            (2, 4096, BroadcastDesign::Tree),
            (4, 63, BroadcastDesign::Tree),
            (4, 64, chain),
            (8, 64, BroadcastDesign::Tree),
            (8, 128, chain),
            (16, 128, BroadcastDesign::Spread),
            (1000, 4096, BroadcastDesign::Spread),
        ] {
            assert_eq!(broadcast(size, false, kib), design, "{size} members, {kib} KiB");
        }
    }

    #[test]
    fn a_chain_on_a_node_is_for_some_lengths() {
        let chain = BroadcastDesign::Chain(4 << 10);
        assert_eq!([15, 16].map(|kib| broadcast(8, true, kib)), [BroadcastDesign::Tree, chain]);
        assert_eq!(broadcast(4, true, 16), BroadcastDesign::Tree);
        assert_eq!(broadcast(8, true, 2048), BroadcastDesign::Spread);
    }

    #[test]
    fn the_root_sends_to_each_member_that_shares_its_core() {
        let (crowded, of) = (CollChoice::new(CollForced::NONE, true), CollMember::of_all(0, 8));
        let of = CollMember { is_near: true, ..of };
        let designs = [16 << 10, 2 << 20].map(|len| crowded.broadcast_of(of, len));
        assert_eq!(designs, [BroadcastDesign::Flat; 2]);
        assert_eq!(crowded.broadcast_of(of, 8 << 10), BroadcastDesign::Tree);
    }

    #[test]
    fn large_groups_publish_a_result() {
        let elements = Elements { count: 1, bytes: 8, commutes: false };
        for (size, turns) in [(2, 1), (16, 1), (17, 2), (64, 2)] {
            let of =
                |me| CollMember { is_near: true, has_rows: true, ..CollMember::of_all(me, size) };
            for me in [0, size - 1] {
                let (mut barrier, mut allreduce) = (CollPlan::default(), CollPlan::default());
                CollChoice::DEFAULT.barrier(&mut barrier, of(me), None);
                CollChoice::DEFAULT.allreduce(&mut allreduce, of(me), None, elements);
                assert_eq!([barrier.row_turns(), allreduce.row_turns()], [turns; 2], "{size}");
            }
        }
    }

    #[test]
    fn a_gather_of_few_members_has_no_tree() {
        let plans_alike = |size: u32, bytes: usize, words: &str| {
            let of = CollMember { is_near: false, ..CollMember::of_all(0, size) };
            let plan = |choice: &CollChoice| {
                let (mut plan, root) =
                    (CollPlan::default(), RootView { root: 0, node: 0, place: 0 });
                choice.rooted(&mut plan, of, root, bytes, false, false);
                std::format!("{plan:?}")
            };
            let forced = CollForced::parse(words).expect("known words");
            plan(&CollChoice::DEFAULT) == plan(&CollChoice { forced, ..CollChoice::DEFAULT })
        };
        assert!(plans_alike(8, 8, "gather=flat"));
        assert!(!plans_alike(8, 8, "gather=tree"));
        assert!(plans_alike(9, 256, "gather=tree"));
        assert!(plans_alike(9, 257, "gather=flat"));
    }
}
