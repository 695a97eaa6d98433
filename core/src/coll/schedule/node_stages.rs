//! The stages of a collective that goes by nodes: within a node, and among the leaders of nodes.

use super::algorithm::Algorithm;
use super::alltoall::PairwiseExchange;
use super::blocks::Blocks;
use super::interleave::Interleave;
use super::plan::{CollMember, CollPlan};
use super::rooted::RootedFlat;
use super::step::BufferSpan;

impl CollPlan {
    /// Gathers the inputs of all members, `bytes` bytes of each, to the bytes `at` of the root, or
    /// scatters those to the outputs.
    pub(super) fn within_node(
        &mut self,
        of: CollMember,
        root: u32,
        (at, bytes): (BufferSpan, usize),
        is_scatter: bool,
    ) -> &mut Self {
        self.rooted_at(of, root, (Blocks::Even { bytes }, at), (bytes, None), is_scatter)
    }

    /// Gathers the bytes `own` of each leader in the bytes `at` of the root, or scatters those;
    /// the bytes of the root are in their place.
    pub(super) fn rooted_nodes(
        &mut self,
        of: CollMember,
        root: u32,
        (blocks, at): (Blocks, BufferSpan),
        own: BufferSpan,
        is_scatter: bool,
    ) -> &mut Self {
        self.rooted_at(of, root, (blocks, at), (own.len, Some(own)), is_scatter)
    }

    fn rooted_at(
        &mut self,
        of: CollMember,
        root: u32,
        (blocks, at): (Blocks, BufferSpan),
        (own_bytes, own): (usize, Option<BufferSpan>),
        is_scatter: bool,
    ) -> &mut Self {
        let (CollMember { me, size, .. }, at, in_place) = (of, Some(at), own.is_some());
        let flat = RootedFlat { me, root, size, blocks, own_bytes, is_scatter, in_place, at, own };
        self.then(Algorithm::RootedFlat(flat), of.peers(0))
    }

    /// Exchanges at the leader of a node the blocks of `bytes` bytes that its neighbours have sent,
    /// in `data`, for those that they receive, in the order of the members.
    pub(super) fn alltoall_nodes(
        &mut self,
        (leaders, neighbours, size): (CollMember, u32, u32),
        data: BufferSpan,
        bytes: usize,
    ) -> &mut Self {
        let (from, into) = (self.reserve(data.len), self.reserve(data.len));
        let blocks = Blocks::Nodes { bytes: bytes * neighbours as usize, size };
        let (me, nodes, sent, received) = (leaders.me, leaders.size, blocks, blocks);
        let pack =
            Interleave { size, neighbours, nodes, bytes, from: data, to: from, is_pack: true };
        let unpack = Interleave { from: into, to: data, is_pack: false, ..pack };
        let exchange = PairwiseExchange { me, size: nodes, sent, received, from, into };
        self.then(Algorithm::Interleave(pack), leaders.peers(0))
            .then(Algorithm::PairwiseExchange(exchange), leaders.peers(0))
            .then(Algorithm::Interleave(unpack), leaders.peers(0))
    }
}
