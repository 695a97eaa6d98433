//! One machine, and the memory that its peers write to.

extern crate std;

use crate::am::cell::{CellKind, Defect, Inline, LaneCell};
use crate::am::lanes::AmLane;
use crate::am::op_tag::INDEX_MASK;
use crate::am::{
    AmEvent, AmMachine, AmMemory, AmOutput, AmPeer, AmShape, AmTables, CallPayload, DoorbellOrder,
    HandlerId, Incoming, LandingBuffer, PendingCall, SendError, StagingCell, Token, has_rung,
};
use crate::completion::Why;
use crate::mem::{AddrError, LocalAddr, PeerIndex, Rank, RegionKey, RemoteAddr};
use crate::op::Op;
use crate::sync::mapped::{AtomicU64, Ordering};
use crate::time::Instant;
use std::vec;
use std::vec::Vec;

pub(super) const SHAPE: AmShape = AmShape { peers: 3, cells: 4, later_cells: 2 };
pub(super) const STAGING: LocalAddr = LocalAddr { key: RegionKey::from_bits(0x1002), offset: 64 };
pub(super) const LANDING: LocalAddr = LocalAddr { key: RegionKey::from_bits(0x1003), offset: 128 };
pub(super) const LANDING_BYTES: u64 = 1000;
pub(super) const PEER: PeerIndex = PeerIndex(1);
pub(super) const OTHER: PeerIndex = PeerIndex(2);

/// A machine of rank 0, and the memory that its peers write to.
pub(super) struct Alone {
    pub(super) machine: AmMachine<'static>,
    pub(super) lanes: &'static [AtomicU64],
    pub(super) shape: AmShape,
    /// Cells that each peer has written to each lane.
    written: Vec<[u32; 2]>,
}

pub(super) fn words(bytes: usize) -> &'static [AtomicU64] {
    Vec::leak((0..bytes / 8).map(|_| AtomicU64::new(0)).collect())
}

pub(super) fn tables(
    peers: usize,
    calls: usize,
    slots: usize,
    landings: usize,
) -> AmTables<'static> {
    AmTables {
        peers: Vec::leak(vec![AmPeer::EMPTY; peers]),
        calls: Vec::leak(vec![PendingCall::EMPTY; calls]),
        slots: Vec::leak(vec![StagingCell::EMPTY; slots]),
        landings: Vec::leak(vec![LandingBuffer::EMPTY; landings]),
    }
}

pub(super) fn memory(shape: AmShape, slots: usize) -> AmMemory<'static> {
    AmMemory {
        lanes: words(shape.memory_size()),
        staging: words(slots * 256),
        staging_at: STAGING,
        landing_at: LANDING,
        landing_bytes: LANDING_BYTES,
    }
}

/// The rank of a peer, which is not its index.
pub(super) fn rank(peer: PeerIndex) -> Rank {
    Rank(40 + peer.0)
}

/// The address of rank 0's lanes at a peer.
pub(super) fn lanes_at(rank: Rank) -> RemoteAddr {
    RemoteAddr { rank, key: RegionKey::from_bits(0x1001), offset: 0x1_0000 }
}

impl Alone {
    pub(super) fn new() -> Self {
        Self::with(SHAPE, DoorbellOrder::WithCell, 4, 6, 2)
    }

    pub(super) fn with(
        shape: AmShape,
        bell: DoorbellOrder,
        calls: usize,
        slots: usize,
        landings: usize,
    ) -> Self {
        let memory = memory(shape, slots);
        let tables = tables(shape.peers as usize, calls, slots, landings);
        let lanes = memory.lanes;
        let mut machine = AmMachine::new(PeerIndex(0), shape, bell, memory, tables).unwrap();
        for peer in 0..shape.peers {
            machine.connect(PeerIndex(peer), lanes_at(rank(PeerIndex(peer))), PeerIndex(0));
        }
        machine.take_room();
        Self { machine, lanes, shape, written: vec![[0; 2]; shape.peers as usize] }
    }

    /// Lands the next cell of a peer, and rings its bell.
    pub(super) fn arrives(&mut self, from: PeerIndex, cell: LaneCell) {
        let lane = if cell.kind == CellKind::Reply as u8 { AmLane::Reply } else { AmLane::Request };
        let number = &mut self.written[from.0 as usize][usize::from(lane == AmLane::Reply)];
        let at = self.shape.cell(lane, from, *number) / 8;
        cell.write(&self.lanes[at..at + 32], *number, Defect::None);
        *number += 1;
        self.rings(from, 1);
    }

    pub(super) fn rings(&mut self, from: PeerIndex, count: u64) {
        let (at, one) = self.shape.arrival(from);
        self.lanes[at / 8].fetch_add(one * count, Ordering::Relaxed);
        assert!(has_rung(self.lanes, self.shape));
        self.machine.handle(AmEvent::Rang, Instant::ZERO);
        assert!(!has_rung(self.lanes, self.shape));
    }

    /// Lands a peer's count of the requests that it has taken from rank 0.
    pub(super) fn notices(&mut self, from: PeerIndex, taken: u64) {
        self.lanes[self.shape.credit(from) / 8].store(taken, Ordering::Relaxed);
        let (at, bit) = self.shape.notice(from);
        self.lanes[at / 8].fetch_or(bit, Ordering::Relaxed);
        assert!(has_rung(self.lanes, self.shape));
        self.machine.handle(AmEvent::Rang, Instant::ZERO);
        assert!(!has_rung(self.lanes, self.shape));
    }

    pub(super) fn ops(&mut self) -> Vec<Op> {
        core::iter::from_fn(|| self.machine.poll_op()).collect()
    }

    pub(super) fn op(&mut self) -> Op {
        let ops = self.ops();
        assert_eq!(ops.len(), 1, "{ops:?}");
        ops[0]
    }

    pub(super) fn completes(&mut self, op: &Op, result: Result<u64, AddrError>) {
        self.machine.handle(AmEvent::Completed { tag: op.tag, result }, Instant::ZERO);
    }

    /// Completes all posted operations, until no more are posted.
    pub(super) fn drain(&mut self) -> Vec<Op> {
        let mut all = Vec::new();
        loop {
            let ops = self.ops();
            if ops.is_empty() {
                return all;
            }
            ops.iter().for_each(|op| self.completes(op, Ok(0)));
            all.extend(ops);
        }
    }

    pub(super) fn runs(&mut self) -> Incoming {
        match self.machine.poll() {
            Some(AmOutput::Run(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn cast(&mut self, to: PeerIndex) -> Result<(), SendError> {
        self.machine.cast(to, HandlerId(1), b"c")
    }

    pub(super) fn call(&mut self, to: PeerIndex) -> Result<Token, SendError> {
        self.machine.call(to, HandlerId(1), CallPayload::Inline(b"q"), None)
    }

    pub(super) fn call_long(
        &mut self,
        to: PeerIndex,
        deadline: Option<Instant>,
    ) -> Result<Token, SendError> {
        let from = LocalAddr { key: RegionKey::from_bits(0x2001), offset: 40 };
        self.machine.call(to, HandlerId(1), CallPayload::Long { from, bytes: 64 }, deadline)
    }

    /// The cell that a put brings.
    pub(super) fn cell_of(&self, put: &Op, number: u32) -> LaneCell {
        let at = (put.local().offset - STAGING.offset) as usize / 8;
        LaneCell::read(&self.machine.memory.staging[at..at + 32], number, Defect::None).unwrap()
    }
}

pub(super) fn cell(kind: CellKind, body: &[u8]) -> LaneCell {
    LaneCell::new(kind, Inline::new(body).unwrap()).handler(1)
}

/// A call from a peer, with this token.
pub(super) fn call(token: u64) -> LaneCell {
    cell(CellKind::Call, b"q").token(token)
}

/// A call from a peer that keeps its payload in its own memory.
pub(super) fn long(token: u64, words: &[u64]) -> LaneCell {
    let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    cell(CellKind::LongCall, &body).token(token)
}

pub(super) fn reply(token: u64) -> LaneCell {
    LaneCell::new(CellKind::Reply, Inline::EMPTY).token(token)
}

/// The kind of an operation and the index of its table entry, from its tag.
pub(super) fn kind_and_index(op: &Op) -> (usize, usize) {
    (op.tag.index() >> 22, op.tag.index() & INDEX_MASK)
}

pub(super) fn busy<T>(why: Why) -> Result<T, SendError> {
    Err(SendError::Busy(why))
}

pub(super) fn lost<T>(peer: PeerIndex) -> Result<T, SendError> {
    Err(SendError::PeerLost { peer })
}
