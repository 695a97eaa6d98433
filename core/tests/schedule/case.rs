//! One collective with its inputs, and what each rank must get.

use std::fmt;
use tsumugi_core::coll::schedule::{
    AllgatherDesign, AllreduceDesign, Block, Blocks, BroadcastDesign, BufferSpan, CollBuffer,
    CollChoice, CollMember, CollPlan, CollTables, Elements, NodeView, RootView,
};
use tsumugi_core::mem::Rank;

/// Which collective, and how it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Barrier,
    Broadcast(BroadcastDesign),
    Reduce,
    Allreduce(AllreduceDesign),
    Scan {
        exclusive: bool,
    },
    Gather {
        tree: bool,
    },
    Scatter {
        tree: bool,
    },
    Allgather(AllgatherDesign),
    Alltoall {
        short: bool,
    },
    ReduceScatter {
        halve: bool,
    },
    /// By nodes.
    NodeBarrier,
    NodeBroadcast,
    NodeReduce,
    NodeAllreduce,
    NodeAllgather,
    NodeReduceScatter,
    NodeGather,
    NodeScatter,
    NodeAlltoall,
}

pub struct Case {
    pub kind: Kind,
    pub size: u32,
    pub root: u32,
    /// Elements of 8 bytes: of a reduction, or of a block on average.
    pub count: usize,
    /// The operation commutes.
    pub commutes: bool,
    /// The lengths of blocks differ.
    pub uneven: bool,
    /// How plans are chosen.
    pub choice: CollChoice,
    /// The node of each member; several nodes for the kinds by nodes.
    nodes: Nodes,
    sent: Vec<Vec<Block>>,
    received: Vec<Vec<Block>>,
    prefixes: Vec<Vec<u64>>,
}

struct Nodes {
    of: Vec<u32>,
    members: Vec<Vec<u32>>,
    leaders: Vec<u32>,
}

/// How a rank has ended.
#[derive(Debug)]
pub enum Outcome {
    /// With this output; whether all ranks had begun by then.
    Done(Vec<u8>, bool),
    Lost(Rank),
}

impl Case {
    pub fn new(kind: Kind, size: u32, root: u32, count: usize, commutes: bool) -> Self {
        Self::with(kind, size, root, count, commutes, false, 1)
    }

    /// `nodes`: 1, or the members are dealt to so many nodes, in no order.
    pub fn with(
        kind: Kind,
        size: u32,
        root: u32,
        count: usize,
        commutes: bool,
        uneven: bool,
        nodes: u32,
    ) -> Self {
        let mut case = Self {
            kind,
            size,
            root,
            count,
            commutes,
            uneven,
            choice: CollChoice::DEFAULT,
            nodes: Nodes::dealt(size, nodes, commutes),
            sent: Vec::new(),
            received: Vec::new(),
            prefixes: Vec::new(),
        };
        if uneven {
            case.sent = (0..size).map(|me| case.table(|to| case.len(me, to))).collect();
            case.received = (0..size).map(|me| case.table(|from| case.len(from, me))).collect();
        }
        if matches!(
            kind,
            Kind::Reduce
                | Kind::Allreduce(_)
                | Kind::Scan { .. }
                | Kind::ReduceScatter { .. }
                | Kind::NodeReduce
                | Kind::NodeAllreduce
                | Kind::NodeReduceScatter
        ) {
            let mut sum = case.values(0);
            case.prefixes.push(sum.clone());
            for rank in 1..size {
                for (sum, value) in sum.iter_mut().zip(case.values(rank)) {
                    *sum = case.combined(*sum, value);
                }
                case.prefixes.push(sum.clone());
            }
        }
        case
    }

    /// Elements of the block that `from` has for `to`.
    fn len(&self, from: u32, to: u32) -> usize {
        let alltoall = matches!(self.kind, Kind::Alltoall { .. });
        let draw = if alltoall { from * 7 + to * 3 } else { 5 * to + 1 };
        let draw = match self.kind {
            Kind::Gather { .. } | Kind::Allgather(_) => 5 * from + 1,
            _ => draw,
        };
        if self.uneven { draw as usize % (2 * self.count + 1) } else { self.count }
    }

    fn table(&self, len: impl Fn(u32) -> usize) -> Vec<Block> {
        let mut blocks = vec![Block::default(); self.size as usize];
        Block::fill(&mut blocks, (0..self.size).map(|index| 8 * len(index)), None);
        blocks
    }

    fn total(blocks: &[Block]) -> usize {
        blocks.iter().map(|block| block.len).sum()
    }

    fn elements(&self) -> Elements {
        let count = match self.kind {
            Kind::ReduceScatter { .. } if self.uneven => Self::total(&self.sent[0]) / 8,
            Kind::ReduceScatter { .. } | Kind::NodeReduceScatter => self.count * self.size as usize,
            _ => self.count,
        };
        Elements { count, bytes: 8, commutes: self.commutes }
    }

    fn blocks(&self, table: Blocks) -> Blocks {
        if self.uneven { table } else { Blocks::Even { bytes: 8 * self.count } }
    }

    fn view(&self, me: u32) -> Option<NodeView> {
        let node = self.nodes.of[me as usize];
        let members = &self.nodes.members[node as usize];
        Some(NodeView {
            place: members.iter().position(|member| *member == me).unwrap() as u32,
            neighbours: members.len() as u32,
            node,
            nodes: self.nodes.leaders.len() as u32,
            is_ordered: self.nodes.of.is_sorted(),
        })
    }

    fn root(&self) -> RootView {
        let view = self.view(self.root).unwrap();
        RootView { root: self.root, node: view.node, place: view.place }
    }

    pub fn plan(&self, me: u32) -> CollPlan {
        let of = CollMember::of_all(me, self.size);
        let (root, bytes) = (self.root, 8 * self.count);
        let data = BufferSpan::first(CollBuffer::Output, bytes);
        let own_bytes = 8 * self.len(me, me);
        let mut plan = CollPlan::default();
        match self.kind {
            Kind::Barrier => plan.barrier(of),
            Kind::Broadcast(design) => plan.broadcast(of, root, data, design),
            Kind::Reduce => plan.reduce(of, root, self.elements()),
            Kind::Allreduce(design) => plan
                .copy(BufferSpan::first(CollBuffer::Input, bytes), data)
                .allreduce_in_place(of, data, self.elements(), design),
            Kind::Scan { exclusive } => plan.scan(of, self.elements(), exclusive),
            Kind::Gather { tree: true } => plan.rooted_tree(of, root, bytes, false, false),
            Kind::Scatter { tree: true } => plan.rooted_tree(of, root, bytes, true, false),
            Kind::Gather { .. } => {
                plan.rooted_flat(of, root, self.blocks(Blocks::Received), own_bytes, false, false)
            }
            Kind::Scatter { .. } => {
                plan.rooted_flat(of, root, self.blocks(Blocks::Sent), own_bytes, true, false)
            }
            Kind::Allgather(design) => {
                let blocks = self.blocks(Blocks::Received);
                let range = blocks.range(&self.tables(me), me);
                let own = BufferSpan::first(CollBuffer::Input, own_bytes);
                let total = self.output(me).len();
                plan.allgather(of, own, range.start, total, blocks, design)
            }
            Kind::Alltoall { short: true } => plan.alltoall_short(of, bytes),
            Kind::Alltoall { .. } => {
                plan.alltoall(of, self.blocks(Blocks::Sent), self.blocks(Blocks::Received))
            }
            Kind::ReduceScatter { halve } => {
                let blocks = self.blocks(Blocks::Sent);
                let own = blocks.range(&self.tables(me), me);
                plan.reduce_scatter(of, self.elements(), blocks, own, halve)
            }
            _ => {
                self.plan_by_nodes(&mut plan, CollMember { view: self.view(me), ..of });
                &mut plan
            }
        };
        plan
    }

    /// Plans a collective that goes by nodes.
    fn plan_by_nodes(&self, plan: &mut CollPlan, of: CollMember) {
        let (choice, me, bytes) = (&self.choice, of.me, 8 * self.count);
        match self.kind {
            Kind::NodeBarrier => choice.barrier(plan, of, of.view),
            Kind::NodeBroadcast => {
                choice.broadcast(plan, of, of.view, self.root(), bytes);
            }
            Kind::NodeReduce => {
                choice.reduce(plan, of, of.view, self.root(), self.elements());
            }
            Kind::NodeAllreduce => {
                choice.allreduce(plan, of, of.view, self.elements());
            }
            Kind::NodeAllgather => {
                let own = BufferSpan::first(CollBuffer::Input, bytes);
                let (at, total) = (me as usize * bytes, self.size as usize * bytes);
                choice.allgather(plan, of, own, at, total, Blocks::Even { bytes });
            }
            Kind::NodeGather | Kind::NodeScatter => {
                let is_scatter = self.kind == Kind::NodeScatter;
                choice.rooted(plan, of, self.root(), bytes, is_scatter, false);
            }
            Kind::NodeAlltoall => {
                choice.alltoall(plan, of, bytes);
            }
            Kind::NodeReduceScatter => {
                let own = me as usize * bytes..(me as usize + 1) * bytes;
                let blocks = Blocks::Even { bytes };
                choice.reduce_scatter(plan, of, self.elements(), blocks, own);
            }
            _ => unreachable!("{:?} does not go by nodes", self.kind),
        }
    }

    /// The plan that is chosen for members that have rows.
    pub fn published(&self, me: u32) -> CollPlan {
        let of = CollMember { is_near: true, has_rows: true, ..CollMember::of_all(me, self.size) };
        let (root, bytes, elements) = (self.root, 8 * self.count, self.elements());
        let root_view = RootView { root, node: 0, place: 0 };
        let (choice, mut chosen) = (&self.choice, CollPlan::default());
        let plan = &mut chosen;
        match self.kind {
            Kind::Broadcast(_) => choice.broadcast(plan, of, None, root_view, bytes),
            Kind::Reduce => choice.reduce(plan, of, None, root_view, elements),
            Kind::Allreduce(_) => choice.allreduce(plan, of, None, elements),
            Kind::Scan { exclusive } => choice.scan(plan, of, elements, exclusive),
            Kind::Gather { .. } => choice.rooted(plan, of, root_view, bytes, false, false),
            Kind::Scatter { .. } => choice.rooted(plan, of, root_view, bytes, true, false),
            Kind::Allgather(_) => {
                let own = BufferSpan::first(CollBuffer::Input, bytes);
                let total = bytes * self.size as usize;
                choice.allgather(plan, of, own, me as usize * bytes, total, Blocks::Even { bytes })
            }
            Kind::Alltoall { .. } => choice.alltoall(plan, of, bytes),
            Kind::ReduceScatter { .. } => {
                let own = me as usize * bytes..(me as usize + 1) * bytes;
                choice.reduce_scatter(plan, of, elements, Blocks::Even { bytes }, own)
            }
            _ => choice.barrier(plan, of, None),
        }
        chosen
    }

    pub fn tables(&self, me: u32) -> CollTables<'_> {
        let node = self.nodes.of[me as usize];
        CollTables {
            sent: self.sent.get(me as usize).map_or(&[], |table| table),
            received: self.received.get(me as usize).map_or(&[], |table| table),
            neighbours: &self.nodes.members[node as usize],
            leaders: &self.nodes.leaders,
        }
    }

    /// The values that a rank brings to a reduction.
    fn values(&self, rank: u32) -> Vec<u64> {
        (0..self.elements().count as u64).map(|at| value(rank, at)).collect()
    }

    /// The bytes of the block that `from` has for `to`.
    fn block(&self, from: u32, to: u32) -> Vec<u8> {
        let alltoall = matches!(
            self.kind,
            Kind::Alltoall { .. } | Kind::Scatter { .. } | Kind::NodeAlltoall | Kind::NodeScatter
        );
        let of = if alltoall { from * 1000 + to } else { from };
        let values = (0..self.len(from, to) as u64).map(|at| value(of, at));
        values.flat_map(u64::to_ne_bytes).collect()
    }

    pub fn input(&self, me: u32) -> Vec<u8> {
        match self.kind {
            Kind::Barrier | Kind::NodeBarrier | Kind::Broadcast(_) | Kind::NodeBroadcast => {
                Vec::new()
            }
            Kind::Gather { .. } | Kind::NodeGather | Kind::Allgather(_) | Kind::NodeAllgather => {
                self.block(me, me)
            }
            Kind::Scatter { .. } | Kind::NodeScatter if me != self.root => Vec::new(),
            Kind::Scatter { .. }
            | Kind::NodeScatter
            | Kind::Alltoall { .. }
            | Kind::NodeAlltoall => (0..self.size).flat_map(|to| self.block(me, to)).collect(),
            _ => self.values(me).into_iter().flat_map(u64::to_ne_bytes).collect(),
        }
    }

    /// The output at first.
    pub fn output(&self, me: u32) -> Vec<u8> {
        if matches!(self.kind, Kind::Broadcast(_) | Kind::NodeBroadcast) && me == self.root {
            return self.expected(me);
        }
        vec![0xDD; self.expected(me).len()]
    }

    /// The output at the end.
    pub fn expected(&self, me: u32) -> Vec<u8> {
        let bytes = |values: &[u64]| values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        match self.kind {
            Kind::Barrier | Kind::NodeBarrier => Vec::new(),
            Kind::Broadcast(_) | Kind::NodeBroadcast => self.block(self.root, 0),
            Kind::Reduce | Kind::NodeReduce | Kind::Gather { .. } | Kind::NodeGather
                if me != self.root =>
            {
                Vec::new()
            }
            Kind::Reduce | Kind::Allreduce(_) | Kind::NodeReduce | Kind::NodeAllreduce => {
                bytes(&self.prefixes[self.size as usize - 1])
            }
            Kind::Scan { exclusive: false } => bytes(&self.prefixes[me as usize]),
            Kind::Scan { exclusive: true } if me == 0 => vec![0xDD; 8 * self.count],
            Kind::Scan { exclusive: true } => bytes(&self.prefixes[me as usize - 1]),
            Kind::Gather { .. } | Kind::NodeGather | Kind::Allgather(_) | Kind::NodeAllgather => {
                (0..self.size).flat_map(|from| self.block(from, from)).collect()
            }
            Kind::Scatter { .. } | Kind::NodeScatter => self.block(self.root, me),
            Kind::Alltoall { .. } | Kind::NodeAlltoall => {
                (0..self.size).flat_map(|from| self.block(from, me)).collect()
            }
            Kind::ReduceScatter { .. } | Kind::NodeReduceScatter => {
                let own = self.blocks(Blocks::Sent).range(&self.tables(me), me);
                let all = &self.prefixes[self.size as usize - 1];
                bytes(&all[own.start / 8..own.end / 8])
            }
        }
    }

    /// `into = from ∘ into` or the other way round.
    pub fn combine(&self, from: &[u8], into: &mut [u8], from_first: bool) {
        assert_eq!(from.len(), into.len());
        for (from, into) in from.chunks_exact(8).zip(into.chunks_exact_mut(8)) {
            let [a, b] = [from, &*into].map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
            let both = if from_first { self.combined(a, b) } else { self.combined(b, a) };
            into.copy_from_slice(&both.to_ne_bytes());
        }
    }

    /// The sum, or two affine functions one after the other, which do not commute.
    fn combined(&self, a: u64, b: u64) -> u64 {
        if self.commutes {
            return a.wrapping_add(b);
        }
        let [(a1, a0), (b1, b0)] = [a, b].map(|word| ((word >> 32) as u32, word as u32));
        let slope = a1.wrapping_mul(b1);
        let start = a1.wrapping_mul(b0).wrapping_add(a0);
        u64::from(slope) << 32 | u64::from(start)
    }
}

impl Nodes {
    fn dealt(size: u32, nodes: u32, any_order: bool) -> Self {
        let node_of = |member: u32| match any_order {
            true => (member * 7 + member / 5) % nodes,
            false => (u64::from(member) * u64::from(nodes) / u64::from(size)) as u32,
        };
        let mut of: Vec<u32> = (0..size).map(node_of).collect();
        let mut used = of.clone();
        used.sort_unstable();
        used.dedup();
        for node in &mut of {
            *node = used.binary_search(node).unwrap() as u32;
        }
        let mut members = vec![Vec::new(); used.len()];
        for (member, node) in (0..size).zip(&of) {
            members[*node as usize].push(member);
        }
        let leaders = members.iter().map(|members| members[0]).collect();
        Self { of, members, leaders }
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, size, root, count, commutes, uneven, .. } = self;
        write!(f, "{kind:?} of {size}, root {root}, {count} elements")?;
        write!(f, ", commutes: {commutes}, uneven: {uneven}, {} nodes", self.nodes.leaders.len())
    }
}

fn value(rank: u32, at: u64) -> u64 {
    (u64::from(rank) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(at * 0x1_0000_0003) | 1
}
