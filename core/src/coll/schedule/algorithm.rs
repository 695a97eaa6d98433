//! The algorithms, as one type: a stage of a collective runs one of them.

use super::allgather::{BruckGather, DoublingGather, RingGather};
use super::alltoall::{BruckExchange, PairwiseExchange};
use super::barrier::Dissemination;
use super::blocks::CollTables;
use super::broadcast::{ChainBroadcast, FlatBroadcast, TreeBroadcast, TreeSpread};
use super::interleave::Interleave;
use super::prefix::PrefixScan;
use super::published::Published;
use super::reduction::{Doubling, Halving, Pairing, PairwiseReduce, RingReduce, TreeReduce};
use super::rooted::{RootedFlat, RootedTree};
use super::step::{BufferSpan, CollStep};

/// One algorithm, as one member runs it. In a round, local steps come first; then all
/// messages of the round are under way together.
#[derive(Clone, Copy, Debug)]
pub(super) enum Algorithm {
    /// A copy of this member's own bytes.
    Copy(BufferSpan, BufferSpan),
    /// One message from the first number to the second.
    Pass {
        me: u32,
        from: u32,
        to: u32,
        sent: BufferSpan,
        received: BufferSpan,
    },
    Dissemination(Dissemination),
    TreeBroadcast(TreeBroadcast),
    FlatBroadcast(FlatBroadcast),
    ChainBroadcast(ChainBroadcast),
    TreeSpread(TreeSpread),
    TreeReduce(TreeReduce),
    Pairing(Pairing),
    Doubling(Doubling),
    Halving(Halving),
    RingReduce(RingReduce),
    PairwiseReduce(PairwiseReduce),
    PrefixScan(PrefixScan),
    RootedTree(RootedTree),
    RootedFlat(RootedFlat),
    RingGather(RingGather),
    DoublingGather(DoublingGather),
    BruckGather(BruckGather),
    PairwiseExchange(PairwiseExchange),
    BruckExchange(BruckExchange),
    Interleave(Interleave),
    Published(Published),
}

impl Algorithm {
    pub(super) const fn rounds(&self) -> u32 {
        match self {
            Self::Copy(..) | Self::Pass { .. } => 1,
            Self::Dissemination(of) => of.rounds(),
            Self::TreeBroadcast(of) => of.rounds(),
            Self::FlatBroadcast(of) => of.rounds(),
            Self::ChainBroadcast(of) => of.rounds(),
            Self::TreeSpread(of) => of.rounds(),
            Self::TreeReduce(of) => of.rounds(),
            Self::Pairing(of) => of.rounds(),
            Self::Doubling(of) => of.rounds(),
            Self::Halving(of) => of.rounds(),
            Self::RingReduce(of) => of.rounds(),
            Self::PairwiseReduce(of) => of.rounds(),
            Self::PrefixScan(of) => of.rounds(),
            Self::RootedTree(of) => of.rounds(),
            Self::RootedFlat(of) => of.rounds(),
            Self::RingGather(of) => of.rounds(),
            Self::DoublingGather(of) => of.rounds(),
            Self::BruckGather(of) => of.rounds(),
            Self::PairwiseExchange(of) => of.rounds(),
            Self::BruckExchange(of) => of.rounds(),
            Self::Interleave(of) => of.rounds(),
            Self::Published(of) => of.rounds(),
        }
    }

    pub(super) fn step(&self, tables: &CollTables<'_>, round: u32, index: u32) -> Option<CollStep> {
        match self {
            Self::Copy(from, to) => (index == 0).then_some(CollStep::Copy { from: *from, to: *to }),
            Self::Pass { me, from, to, .. }
                if from == to || index > 0 || me != from && me != to =>
            {
                None
            }
            Self::Pass { me, from, to, sent, .. } if me == from => {
                Some(CollStep::Send { to: *to, from: *sent })
            }
            Self::Pass { from, received, .. } => {
                Some(CollStep::Receive { from: *from, into: *received })
            }
            Self::Dissemination(of) => of.step(round, index),
            Self::TreeBroadcast(of) => of.step(round, index),
            Self::FlatBroadcast(of) => of.step(round, index),
            Self::ChainBroadcast(of) => of.step(round, index),
            Self::TreeSpread(of) => of.step(tables, round, index),
            Self::TreeReduce(of) => of.step(round, index),
            Self::Pairing(of) => of.step(round, index),
            Self::Doubling(of) => of.step(round, index),
            Self::Halving(of) => of.step(tables, round, index),
            Self::RingReduce(of) => of.step(tables, round, index),
            Self::PairwiseReduce(of) => of.step(tables, round, index),
            Self::PrefixScan(of) => of.step(round, index),
            Self::RootedTree(of) => of.step(round, index),
            Self::RootedFlat(of) => of.step(tables, round, index),
            Self::RingGather(of) => of.step(tables, round, index),
            Self::DoublingGather(of) => of.step(tables, round, index),
            Self::BruckGather(of) => of.step(tables, round, index),
            Self::PairwiseExchange(of) => of.step(tables, round, index),
            Self::BruckExchange(of) => of.step(round, index),
            Self::Interleave(of) => of.step(tables, index),
            Self::Published(of) => of.step(tables, index),
        }
    }
}
