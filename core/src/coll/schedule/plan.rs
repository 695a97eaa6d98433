//! The plan of one collective: the stages that one member runs one after the other,
//! each an algorithm on a part of the group. A plan is computed from the place of the
//! member, the size of the group and the lengths; it has no table and no pointer.

use super::algorithm::Algorithm;
use super::allgather::{BruckGather, DoublingGather, RingGather};
use super::alltoall::{BruckExchange, PairwiseExchange};
use super::barrier::Dissemination;
use super::blocks::{Blocks, CollTables};
use super::broadcast::{ChainBroadcast, FlatBroadcast, TreeBroadcast, TreeSpread};
use super::peers::{Binomial, NodeView, PeerMap, Subset, minus};
use super::prefix::PrefixScan;
use super::published::Published;
use super::reduction::{Doubling, Halving, Pairing, PairwiseReduce, RingReduce, TreeReduce};
use super::rooted::{RootedFlat, RootedTree};
use super::step::{BufferSpan, CollBuffer, CollStep};
use core::ops::Range;
use heapless::Vec;

/// The elements of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements {
    /// How many each member brings.
    pub count: usize,
    /// Bytes of one.
    pub bytes: usize,
    /// Whether the operation commutes; then results may be in any order.
    pub commutes: bool,
}

/// A member of a group, or of a part of it, in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollMember {
    /// Its number.
    pub me: u32,
    /// How many there are.
    pub size: u32,
    /// How the numbers become places in the group.
    pub subset: Subset,
    /// The members share memory.
    pub is_near: bool,
    /// The members have rows in shared memory for short values.
    pub has_rows: bool,
    /// How the members lie on nodes, if a collective should take stages.
    pub view: Option<NodeView>,
}

/// How a broadcast is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastDesign {
    /// A binomial tree.
    Tree,
    /// From the root to each member.
    Flat,
    /// A chain, in pieces of so many bytes.
    Chain(usize),
    /// A tree spreads the blocks, and a ring gathers them.
    Spread,
}

/// How an allreduce is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllreduceDesign {
    /// Recursive doubling.
    Doubling,
    /// Recursive halving, then recursive doubling of the blocks; only for operations
    /// that commute.
    Halving,
    /// A ring in both directions of the sum; only for operations that commute.
    Ring,
}

/// How an allgather is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllgatherDesign {
    /// Recursive doubling; only for a power of two of members, and blocks that follow
    /// each other.
    Doubling,
    /// Bruck's algorithm.
    Bruck,
    /// A ring.
    Ring,
}

/// The stages of one member's part in a collective.
#[derive(Clone, Debug, Default)]
pub struct CollPlan {
    stages: Vec<Stage, STAGES_MAX>,
    scratch_bytes: usize,
    name: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
struct Stage {
    algorithm: Algorithm,
    peers: PeerMap,
}

impl CollMember {
    /// A member of the whole group.
    pub const fn of_all(me: u32, size: u32) -> Self {
        Self { me, size, subset: Subset::All, is_near: false, has_rows: false, view: None }
    }

    pub(super) const fn peers(&self, root: u32) -> PeerMap {
        PeerMap::new(self.size, root, self.subset)
    }

    /// Its place in a tree from `root`.
    const fn from(&self, root: u32) -> Binomial {
        Binomial { number: minus(self.me, root, self.size), size: self.size }
    }
}

impl CollPlan {
    /// Gives the plan a name for reports, such as `in gather`.
    pub const fn set_name(&mut self, name: &'static str) {
        self.name = Some(name);
    }

    /// The name, for reports.
    pub const fn name(&self) -> &'static str {
        match self.name {
            Some(name) => name,
            None => "in collective",
        }
    }

    /// Bytes of the scratch buffer.
    pub const fn scratch_bytes(&self) -> usize {
        self.scratch_bytes
    }

    /// How many collectives in the rows of its group the plan has.
    pub fn row_turns(&self) -> u64 {
        let is_one = |stage: &&Stage| matches!(stage.algorithm, Algorithm::Published(_));
        self.stages.iter().filter(is_one).count() as u64
    }

    /// The stages, if there are some and all of them go through the rows of the group.
    pub fn as_published(&self) -> Option<impl Iterator<Item = &Published>> {
        fn published(stage: &Stage) -> Option<&Published> {
            match &stage.algorithm {
                Algorithm::Published(published) => Some(published),
                _ => None,
            }
        }
        let stages = self.stages.as_slice();
        let is_one = |stage| published(stage).is_some();
        let is_so = !stages.is_empty() && stages.iter().all(is_one);
        is_so.then(|| stages.iter().filter_map(published))
    }

    /// The number of stages.
    pub(super) fn stages(&self) -> usize {
        self.stages.len()
    }

    pub(super) fn rounds(&self, stage: usize) -> u32 {
        self.stages[stage].algorithm.rounds()
    }

    /// The step number `index` of a round, with places in the group.
    pub(super) fn step(
        &self,
        tables: &CollTables<'_>,
        stage: usize,
        round: u32,
        index: u32,
    ) -> Option<CollStep> {
        let Stage { algorithm, peers } = &self.stages[stage];
        Some(match algorithm.step(tables, round, index)? {
            CollStep::Send { to, from } => CollStep::Send { to: peers.place(tables, to), from },
            CollStep::Receive { from, into } => {
                CollStep::Receive { from: peers.place(tables, from), into }
            }
            local => local,
        })
    }

    pub(super) fn then(&mut self, algorithm: Algorithm, peers: PeerMap) -> &mut Self {
        if algorithm.rounds() > 0 {
            let pushed = self.stages.push(Stage { algorithm, peers });
            debug_assert!(pushed.is_ok(), "a plan has at most {STAGES_MAX} stages");
        }
        self
    }

    /// Reserves scratch memory behind all that was reserved before.
    pub(super) const fn reserve(&mut self, len: usize) -> BufferSpan {
        let at = self.scratch_bytes.next_multiple_of(SCRATCH_ALIGN);
        self.scratch_bytes = at + len;
        BufferSpan { buffer: CollBuffer::Scratch, at, len }
    }

    /// Copies this member's own bytes, unless they are there already.
    pub fn copy(&mut self, from: BufferSpan, to: BufferSpan) -> &mut Self {
        let nowhere = PeerMap::new(1, 0, Subset::All);
        if from == to { self } else { self.then(Algorithm::Copy(from, to), nowhere) }
    }

    /// Waits for all members.
    pub fn barrier(&mut self, of: CollMember) -> &mut Self {
        let algorithm = Algorithm::Dissemination(Dissemination { me: of.me, size: of.size });
        self.then(algorithm, of.peers(0))
    }

    /// Brings the bytes `data` of the member `root` to all.
    pub fn broadcast(
        &mut self,
        of: CollMember,
        root: u32,
        data: BufferSpan,
        design: BroadcastDesign,
    ) -> &mut Self {
        let (at, peers) = (of.from(root), of.peers(root));
        match design {
            BroadcastDesign::Tree => {
                self.then(Algorithm::TreeBroadcast(TreeBroadcast { at, data }), peers)
            }
            BroadcastDesign::Flat => {
                let flat = FlatBroadcast { me: at.number, size: at.size, data };
                self.then(Algorithm::FlatBroadcast(flat), peers)
            }
            BroadcastDesign::Chain(piece) => {
                let (me, size, piece) = (at.number, at.size, piece.max(1));
                let chain = ChainBroadcast { me, size, data, piece };
                self.then(Algorithm::ChainBroadcast(chain), peers)
            }
            BroadcastDesign::Spread => {
                let blocks = Blocks::Split { units: data.len, unit_bytes: 1, parts: of.size };
                let ring = RingGather { me: at.number, size: of.size, data, blocks, ahead: 0 };
                self.then(Algorithm::TreeSpread(TreeSpread { at, data, blocks }), peers)
                    .then(Algorithm::RingGather(ring), peers)
            }
        }
    }

    /// Combines the bytes `data` of all members, to those of the member `root`; the
    /// others' bytes are changed, too. Keeps the order if `root` is 0.
    pub fn reduce_in_place(&mut self, of: CollMember, root: u32, data: BufferSpan) -> &mut Self {
        let (at, temp) = (of.from(root), self.reserve(data.len));
        self.then(Algorithm::TreeReduce(TreeReduce { at, data, temp }), of.peers(root))
    }

    /// Combines the inputs of all members to the output of the member `root`.
    pub fn reduce(&mut self, of: CollMember, root: u32, elements: Elements) -> &mut Self {
        let input = BufferSpan::first(CollBuffer::Input, elements.total());
        let output = BufferSpan::first(CollBuffer::Output, elements.total());
        // Only from the first member on, a tree keeps the order.
        let top = if elements.commutes { root } else { 0 };
        let data = if of.me == root { output } else { self.reserve(input.len) };
        self.copy(input, data).reduce_in_place(of, top, data).pass(of, top, root, data, output)
    }

    /// Sends the bytes `sent` of the member `from` to the bytes `received` of `to`.
    pub fn pass(
        &mut self,
        of: CollMember,
        from: u32,
        to: u32,
        sent: BufferSpan,
        received: BufferSpan,
    ) -> &mut Self {
        if from == to || of.me != from && of.me != to {
            return self;
        }
        let pass = Algorithm::Pass { me: of.me, from, to, sent, received };
        self.then(pass, of.peers(0))
    }

    /// Combines the bytes `data` of all members, in place, for all.
    pub fn allreduce_in_place(
        &mut self,
        of: CollMember,
        data: BufferSpan,
        elements: Elements,
        design: AllreduceDesign,
    ) -> &mut Self {
        if of.size == 1 {
            return self;
        }
        let temp = self.reserve(data.len);
        let (units, unit_bytes) = (elements.count, elements.bytes);
        let blocks = |parts| Blocks::Split { units, unit_bytes, parts };
        if design == AllreduceDesign::Ring {
            let CollMember { me, size, .. } = of;
            let (peers, blocks) = (of.peers(0), blocks(size));
            let ring = RingReduce { me, size, data, temp, blocks };
            let gather = RingGather { me, size, data, blocks, ahead: 1 };
            return self
                .then(Algorithm::RingReduce(ring), peers)
                .then(Algorithm::RingGather(gather), peers);
        }
        let size = 1u32 << of.size.ilog2();
        let pairs = of.size - size;
        let pairing = |is_end| Algorithm::Pairing(Pairing { me: of.me, pairs, data, temp, is_end });
        self.then(pairing(false), of.peers(0));
        let takes_part = of.me >= 2 * pairs || of.me % 2 == 1;
        if takes_part {
            let me = if of.me < 2 * pairs { of.me / 2 } else { of.me - pairs };
            let peers = PeerMap { pairs, ..of.peers(0) };
            if design == AllreduceDesign::Doubling {
                self.then(Algorithm::Doubling(Doubling { me, size, data, temp }), peers);
            } else {
                let blocks = blocks(size);
                let halving = Halving { me, size, data, temp, blocks };
                let gather = DoublingGather { me, size, data, blocks };
                self.then(Algorithm::Halving(halving), peers)
                    .then(Algorithm::DoublingGather(gather), peers);
            }
        }
        self.then(pairing(true), of.peers(0))
    }

    /// Combines the inputs of the lower members and, unless `exclusive`, of this one.
    /// The output of the first member is not written in an exclusive scan.
    pub fn scan(&mut self, of: CollMember, elements: Elements, exclusive: bool) -> &mut Self {
        let input = BufferSpan::first(CollBuffer::Input, elements.total());
        let output = BufferSpan::first(CollBuffer::Output, elements.total());
        let data = if exclusive { self.reserve(input.len) } else { output };
        let (temp, lower) = (self.reserve(input.len), exclusive.then_some(output));
        let scan = PrefixScan { me: of.me, size: of.size, data, temp, lower };
        self.copy(input, data).then(Algorithm::PrefixScan(scan), of.peers(0))
    }

    /// Gathers blocks of one length, or scatters them, by a tree. `in_place`: the
    /// root's own block is where it belongs.
    pub fn rooted_tree(
        &mut self,
        of: CollMember,
        root: u32,
        bytes: usize,
        is_scatter: bool,
        in_place: bool,
    ) -> &mut Self {
        let tree = RootedTree { at: of.from(root), root, bytes, is_scatter, in_place };
        self.reserve(tree.scratch_bytes());
        self.then(Algorithm::RootedTree(tree), of.peers(root))
    }

    /// Gathers any blocks, or scatters them, from or to each member by itself.
    pub fn rooted_flat(
        &mut self,
        of: CollMember,
        root: u32,
        blocks: Blocks,
        own_bytes: usize,
        is_scatter: bool,
        in_place: bool,
    ) -> &mut Self {
        let CollMember { me, size, .. } = of;
        let (at, own) = (None, None);
        let flat = RootedFlat { me, root, size, blocks, own_bytes, is_scatter, in_place, at, own };
        self.then(Algorithm::RootedFlat(flat), of.peers(0))
    }

    /// Gathers the block `own` of each member at all; `total` bytes.
    pub fn allgather(
        &mut self,
        of: CollMember,
        own: BufferSpan,
        own_at: usize,
        total: usize,
        blocks: Blocks,
        design: AllgatherDesign,
    ) -> &mut Self {
        let (CollMember { me, size, .. }, peers) = (of, of.peers(0));
        let data = BufferSpan::first(CollBuffer::Output, total);
        let place = BufferSpan { buffer: CollBuffer::Output, at: own_at, len: own.len };
        match design {
            AllgatherDesign::Bruck => {
                self.reserve(total);
                let bruck = BruckGather { me, size, own, data, blocks };
                self.then(Algorithm::BruckGather(bruck), peers)
            }
            AllgatherDesign::Ring => {
                let ring = RingGather { me, size, data, blocks, ahead: 0 };
                self.copy(own, place).then(Algorithm::RingGather(ring), peers)
            }
            AllgatherDesign::Doubling => {
                let doubling = DoublingGather { me, size, data, blocks };
                self.copy(own, place).then(Algorithm::DoublingGather(doubling), peers)
            }
        }
    }

    /// Exchanges any blocks of all members with all.
    pub fn alltoall(&mut self, of: CollMember, sent: Blocks, received: Blocks) -> &mut Self {
        let CollMember { me, size, .. } = of;
        let from = BufferSpan::first(CollBuffer::Input, 0);
        let into = BufferSpan::first(CollBuffer::Output, 0);
        let exchange = PairwiseExchange { me, size, sent, received, from, into };
        self.then(Algorithm::PairwiseExchange(exchange), of.peers(0))
    }

    /// Exchanges blocks of `bytes` bytes in log2 P rounds.
    pub fn alltoall_short(&mut self, of: CollMember, bytes: usize) -> &mut Self {
        let exchange = BruckExchange { me: of.me, size: of.size, bytes };
        self.reserve(exchange.scratch_bytes());
        self.then(Algorithm::BruckExchange(exchange), of.peers(0))
    }

    /// Combines the inputs of all members, and gives each its block. `halve`: in log2 P
    /// rounds; only for a power of two of members, operations that commute, and blocks
    /// that follow each other.
    pub fn reduce_scatter(
        &mut self,
        of: CollMember,
        elements: Elements,
        blocks: Blocks,
        own: Range<usize>,
        halve: bool,
    ) -> &mut Self {
        let (CollMember { me, size, .. }, peers) = (of, of.peers(0));
        let input = BufferSpan::first(CollBuffer::Input, elements.total());
        let result = BufferSpan::first(CollBuffer::Output, own.len());
        if halve {
            let (data, temp) = (self.reserve(input.len), self.reserve(input.len));
            let halving = Halving { me, size, data, temp, blocks };
            return self
                .copy(input, data)
                .then(Algorithm::Halving(halving), peers)
                .copy(data.part(own), result);
        }
        self.reduce_scatter_pairwise(of, input, blocks, result)
    }

    /// Combines the bytes `input` of all members, and gives each its block.
    pub(super) fn reduce_scatter_pairwise(
        &mut self,
        of: CollMember,
        input: BufferSpan,
        blocks: Blocks,
        result: BufferSpan,
    ) -> &mut Self {
        let CollMember { me, size, .. } = of;
        let (temp, high) = (self.reserve(result.len), self.reserve(result.len));
        let pairwise = PairwiseReduce { me, size, input, blocks, result, temp, high };
        self.then(Algorithm::PairwiseReduce(pairwise), of.peers(0))
    }
}

impl Elements {
    /// Bytes of all elements of a member.
    pub const fn total(&self) -> usize {
        self.count * self.bytes
    }
}

/// A hierarchical allreduce has the most: copy, to the leader, five among leaders, and
/// from the leader.
const STAGES_MAX: usize = 8;
/// The alignment of the parts of the scratch buffer, for elements of any type.
pub const SCRATCH_ALIGN: usize = 64;
