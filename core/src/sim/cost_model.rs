//! The costs of operations on a big machine.
//!
//! ```text
//!  rank         its node        wire               target's node
//!  overhead ──► injection ──► latency + hops ──► [ engine: one after the ] ──► back
//!                                                [ other, engine_ns each ]
//!  to a rank of the same node: [ a line of its memory: one after the other, local_ns each ]
//! ```
//!
//! The server at the target models the cost of a hot word: operations of 663,552
//! ranks on one word take 663,552 times as long as one, however many wires there
//! are.

use super::router::{Routers, WaitingOp};
use crate::mem::Rank;
use crate::op::{Kind, Op};
use alloc::vec;
use alloc::vec::Vec;

/// Costs, in nanoseconds. If they are set, the latencies of
/// [`SimConfig`](super::SimConfig) are jitter that is added to each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostModel {
    /// The number of consecutive ranks on one node: they share its memory and its
    /// engines.
    pub node_ranks: u32,
    /// The time that a rank needs for each message that it sends.
    pub overhead_ns: u64,
    /// The time that a rank needs before it reacts to a word that another rank has
    /// written.
    pub wake_ns: u64,
    /// The least time between two messages that a node sends.
    pub inject_ns: u64,
    /// The latency of one way.
    pub latency_ns: u64,
    /// The time that each hop adds.
    pub hop_ns: u64,
    /// The sizes of the torus that the nodes form, row by row; zeroes: all nodes are
    /// equally far from each other.
    pub torus: [u32; 3],
    /// The number of receiving engines of a node; ranks are spread over them.
    pub engines: u32,
    /// The time that an engine needs for one operation.
    pub engine_ns: u64,
    /// The time for which an atomic excludes atomics of all engines of the node.
    pub bus_ns: u64,
    /// The time that a line of the own node's memory needs for one operation.
    pub local_ns: u64,
    /// Whether ranks of a node access each other through its engines, and not
    /// through its memory.
    pub loopback: bool,
    /// Whether links are full when many ranks use one engine: then each router on
    /// the way lets one operation of each side pass in turn. Otherwise operations
    /// are served in the order of arrival.
    pub in_turn: bool,
}

/// For each resource the time at which it is free again. A rank's memory lines count
/// as one if their numbers are equal modulo [`LINES`].
pub(super) struct CostState {
    machine: CostModel,
    ranks: Vec<u64>,
    memory: Vec<u64>,
    injection: Vec<u64>,
    engines: Vec<u64>,
    bus: Vec<u64>,
    routers: Option<Routers>,
}

impl CostModel {
    /// The FX100 on which the paper measures a lock, fitted to the paper's figures:
    /// 254 ns for each atomic on one word.
    pub const FX100: Self = Self {
        node_ranks: 8,
        overhead_ns: 150,
        wake_ns: 150,
        inject_ns: 0,
        latency_ns: 350,
        hop_ns: 0,
        torus: [0; 3],
        engines: 1,
        engine_ns: 254,
        bus_ns: 0,
        local_ns: 30,
        loopback: false,
        in_turn: false,
    };

    const fn node(&self, rank: Rank) -> usize {
        (rank.0 / self.node_ranks) as usize
    }

    /// The number of hops between the nodes of two ranks.
    pub fn hops(&self, from: Rank, to: Rank) -> u32 {
        self.hops_of(self.node(from), self.node(to))
    }

    fn hops_of(&self, from: usize, to: usize) -> u32 {
        let (mut from, mut to, mut hops) = (from as u32, to as u32, 0);
        for size in self.torus.into_iter().filter(|&size| size > 0) {
            let apart = (from % size).abs_diff(to % size);
            hops += apart.min(size - apart);
            (from, to) = (from / size, to / size);
        }
        hops
    }

    /// The latency of one way between two nodes.
    fn wire_ns(&self, from: usize, to: usize) -> u64 {
        self.latency_ns + u64::from(self.hops_of(from, to)) * self.hop_ns
    }
}

impl CostState {
    pub(super) fn new(machine: CostModel, ranks: u32) -> Self {
        let is_valid = machine.node_ranks > 0 && machine.engines > 0;
        assert!(is_valid, "node_ranks and engines must be above zero: {machine:?}");
        let nodes = ranks.div_ceil(machine.node_ranks) as usize;
        Self {
            machine,
            ranks: vec![0; ranks as usize],
            memory: vec![0; ranks as usize * LINES],
            injection: vec![0; nodes],
            engines: vec![0; nodes * machine.engines as usize],
            bus: vec![0; nodes],
            routers: machine.in_turn.then(|| Routers::new(machine.torus, nodes as u32)),
        }
    }

    pub(super) fn is_local(&self, from: Rank, to: Rank) -> bool {
        !self.machine.loopback && self.machine.node(from) == self.machine.node(to)
    }

    /// The time at which a message that `from` sends at `now` leaves its node.
    pub(super) fn send(&mut self, from: Rank, to: Rank, now: u64) -> u64 {
        let is_local = self.is_local(from, to);
        let rank = &mut self.ranks[from.0 as usize];
        *rank = now.max(*rank);
        if is_local {
            return *rank;
        }
        *rank += self.machine.overhead_ns;
        let gate = &mut self.injection[self.machine.node(from)];
        let at = (*gate).max(*rank);
        *gate = at + self.machine.inject_ns;
        at
    }

    /// The latency of one way between two ranks.
    pub(super) fn wire_ns(&self, from: Rank, to: Rank) -> u64 {
        if self.is_local(from, to) {
            return 0;
        }
        self.machine.wire_ns(self.machine.node(from), self.machine.node(to))
    }

    /// An operation reaches its target at `now`; returns the time at which it is
    /// carried out. `None`: it must wait, and a later [`next`](Self::next) returns
    /// it.
    pub(super) fn arrives(&mut self, slot: u64, from: Rank, op: &Op, now: u64) -> Option<u64> {
        if self.is_local(from, op.remote.rank) {
            return Some(self.by_processor(from, op, now));
        }
        let (engine, home) = self.engine_of(from, op);
        let waiting = WaitingOp { slot, is_atomic: is_atomic(op) };
        if let Some(routers) = &mut self.routers
            && !routers.arrives(engine, home, self.machine.node(from), waiting)
        {
            return None;
        }
        Some(self.by_engine(engine, home, waiting.is_atomic, now))
    }

    /// An operation has been carried out at `now`; returns the operation that waits
    /// next at the same engine, if any, and the time at which that operation is
    /// carried out.
    pub(super) fn next(&mut self, from: Rank, op: &Op, now: u64) -> Option<(u64, u64)> {
        if self.is_local(from, op.remote.rank) {
            return None;
        }
        let (engine, home) = self.engine_of(from, op);
        let WaitingOp { slot, is_atomic } = self.routers.as_mut()?.next(engine)?;
        Some((slot, self.by_engine(engine, home, is_atomic, now)))
    }

    /// The time at which the rank's own processor has carried the operation out.
    fn by_processor(&mut self, from: Rank, op: &Op, now: u64) -> u64 {
        let line = (op.remote.offset / 64) as usize % LINES;
        let memory = &mut self.memory[op.remote.rank.0 as usize * LINES + line];
        *memory = now.max(*memory) + self.machine.local_ns;
        let rank = &mut self.ranks[from.0 as usize];
        *rank = (*rank).max(*memory);
        *memory
    }

    /// The time at which an engine of node `home` has carried the operation out.
    fn by_engine(&mut self, engine: usize, home: usize, is_atomic: bool, now: u64) -> u64 {
        let mut start = now.max(self.engines[engine]);
        if is_atomic {
            start = start.max(self.bus[home]);
            self.bus[home] = start + self.machine.bus_ns;
        }
        self.engines[engine] = start + self.machine.engine_ns;
        self.engines[engine]
    }

    /// The engine that serves an operation, and the engine's node.
    fn engine_of(&self, from: Rank, op: &Op) -> (usize, usize) {
        let (node, engines) = (self.machine.node(op.remote.rank), self.machine.engines as usize);
        let which = (from.0 as usize + self.machine.node(from)) % engines;
        (node * engines + which, node)
    }

    /// A rank is woken at `now`.
    pub(super) fn wake(&mut self, rank: Rank, now: u64) {
        let rank = &mut self.ranks[rank.0 as usize];
        *rank = now.max(*rank) + self.machine.wake_ns;
    }

    /// The time until which a rank's processor is busy.
    pub(super) fn busy_until(&self, rank: Rank) -> u64 {
        self.ranks[rank.0 as usize]
    }
}

fn is_atomic(op: &Op) -> bool {
    !matches!(op.kind, Kind::Put | Kind::Get | Kind::PutWord | Kind::GetWord)
}

const LINES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::{RegionKey, RemoteAddr};

    #[test]
    fn a_torus_wraps_around() {
        let machine = CostModel { torus: [4, 3, 2], hop_ns: 100, ..CostModel::FX100 };
        assert_eq!(machine.wire_ns(0, 3), 450, "one hop, the other way round");
        assert_eq!(machine.wire_ns(0, 2 + 4 * 2 + 12), 350 + 100 * (2 + 1 + 1));
    }

    #[test]
    fn the_injection_limit_of_a_node_holds() {
        let machine = CostModel { inject_ns: 400, ..CostModel::FX100 };
        let mut load = CostState::new(machine, 24);
        let mut sends = |from, to| load.send(Rank(from), Rank(to), 1_000);
        assert_eq!(sends(0, 8), 1_150, "the first message has its overhead alone");
        assert_eq!(
            [sends(1, 8), sends(0, 16)],
            [1_550, 1_950],
            "the limit is shared by the ranks of a node"
        );
        assert_eq!(sends(2, 3), 1_000, "messages within a node have no limit");
        assert_eq!(sends(8, 0), 1_150, "each node has a limit of its own");
        let free = load.send(Rank(0), Rank(8), 5_000);
        assert_eq!(free, 5_150, "unused capacity is not saved");
        assert_eq!(load.send(Rank(0), Rank(8), 5_000), 5_550);
    }

    #[test]
    fn a_contended_engine_serves_operations_in_turn() {
        let mut load = CostState::new(CostModel::FX100, 24);
        let word = |offset| RemoteAddr { rank: Rank(0), key: RegionKey::new(0, 1), offset };
        let op = |offset| Op::atomic(Kind::FetchAdd, word(offset), 1u64);
        let served = [8, 16].map(|from| load.arrives(0, Rank(from), &op(0), 1_000));
        assert_eq!(served, [1_254, 1_508].map(Some));
        let local = [0, 8, 64].map(|offset| load.arrives(0, Rank(1), &op(offset), 1_000));
        let expected = [1_030, 1_060, 1_030].map(Some);
        assert_eq!(local, expected, "two of one cache line, and one of another");
    }
}
