//! Ranks in one thread, and a network under the control of a test: all operations
//! in order, or one small disturbance of one operation. Networks with all kinds
//! of faults are in `tests/sim/messages.rs`.

extern crate std;

use crate::am::{
    AmEvent, AmMachine, AmMemory, AmPeer, AmShape, AmTables, DoorbellOrder, LandingBuffer,
    PendingCall, StagingCell,
};
use crate::mem::{AddrError, LocalAddr, PeerIndex, Rank, RegionKey, RemoteAddr};
use crate::op::{Kind, Op};
use crate::sync::mapped::{AtomicU64, Ordering};
use crate::time::Instant;
use std::boxed::Box;
use std::vec::Vec;

/// The sizes of all tables.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) ranks: u32,
    pub(super) cells: u32,
    pub(super) calls: usize,
    pub(super) staging: usize,
    pub(super) landings: usize,
}

const LANDING_WORDS: usize = 128;
const USER_WORDS: usize = 1024;
const LANES: RegionKey = RegionKey::from_bits(0x1001);
const STAGING: RegionKey = RegionKey::from_bits(0x1002);
const LANDING: RegionKey = RegionKey::from_bits(0x1003);
pub(super) const USER: RegionKey = RegionKey::from_bits(0x1004);

/// The registered memory of a rank.
pub(super) struct RankMemory {
    pub(super) lanes: Vec<AtomicU64>,
    staging: Vec<AtomicU64>,
    landing: Vec<AtomicU64>,
    user: Vec<AtomicU64>,
}

/// The machine's tables.
pub(super) struct RankTables {
    peers: Vec<AmPeer>,
    calls: Vec<PendingCall>,
    slots: Vec<StagingCell>,
    landings: Vec<LandingBuffer>,
}

/// An operation in the network.
pub(super) struct Flight {
    from: usize,
    op: Op,
    /// Words of a put that have landed.
    landed: usize,
}

/// All ranks, their memory and the network between them.
pub(super) struct World<'m> {
    pub(super) machines: Vec<AmMachine<'m>>,
    memory: &'m [RankMemory],
    pub(super) flights: Vec<Flight>,
    pub(super) now: Instant,
}

pub(super) fn memory(sizes: Sizes) -> Vec<RankMemory> {
    let words = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
    let shape = AmShape { peers: sizes.ranks, cells: sizes.cells, later_cells: 1 };
    (0..sizes.ranks)
        .map(|_| RankMemory {
            lanes: words(shape.memory_size() / 8),
            staging: words(sizes.staging * 32),
            landing: words(sizes.landings * LANDING_WORDS),
            user: words(USER_WORDS),
        })
        .collect()
}

pub(super) fn tables(sizes: Sizes) -> Vec<RankTables> {
    (0..sizes.ranks)
        .map(|_| RankTables {
            peers: std::vec![AmPeer::EMPTY; sizes.ranks as usize],
            calls: std::vec![PendingCall::EMPTY; sizes.calls],
            slots: std::vec![StagingCell::EMPTY; sizes.staging],
            landings: std::vec![LandingBuffer::EMPTY; sizes.landings],
        })
        .collect()
}

impl<'m> World<'m> {
    pub(super) fn new(
        sizes: Sizes,
        memory: &'m [RankMemory],
        tables: &'m mut [RankTables],
    ) -> Self {
        let shape = AmShape { peers: sizes.ranks, cells: sizes.cells, later_cells: 1 };
        let at = |key| LocalAddr { key, offset: 0 };
        let machines = memory
            .iter()
            .zip(tables)
            .zip(0..)
            .map(|((memory, tables), rank)| {
                let memory = AmMemory {
                    lanes: &memory.lanes,
                    staging: &memory.staging,
                    staging_at: at(STAGING),
                    landing_at: at(LANDING),
                    landing_bytes: 8 * LANDING_WORDS as u64,
                };
                let tables = AmTables {
                    peers: &mut tables.peers,
                    calls: &mut tables.calls,
                    slots: &mut tables.slots,
                    landings: &mut tables.landings,
                };
                let mut machine =
                    AmMachine::new(PeerIndex(rank), shape, DoorbellOrder::WithCell, memory, tables)
                        .unwrap();
                for peer in 0..sizes.ranks {
                    let lanes = RemoteAddr { rank: Rank(peer), key: LANES, offset: 0 };
                    machine.connect(PeerIndex(peer), lanes, PeerIndex(rank));
                }
                machine
            })
            .collect();
        Self { machines, memory, flights: Vec::new(), now: Instant::ZERO }
    }

    pub(super) fn user(&self, rank: usize) -> &'m [AtomicU64] {
        &self.memory[rank].user
    }

    /// The bytes of a landing buffer.
    pub(super) fn landing(&self, rank: usize, index: usize, bytes: u64) -> Box<[u8]> {
        let words = &self.memory[rank].landing[index * LANDING_WORDS..][..LANDING_WORDS];
        let all = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        all.take(bytes as usize).collect()
    }

    /// Posts the operations of the machine.
    pub(super) fn post(&mut self, rank: usize) -> usize {
        let before = self.flights.len();
        while let Some(op) = self.machines[rank].poll_op() {
            self.flights.push(Flight { from: rank, op, landed: 0 });
        }
        self.flights.len() - before
    }

    /// Carries out and completes the operations in the network, in order.
    pub(super) fn deliver(&mut self) {
        while !self.flights.is_empty() {
            while !self.advance(0) {}
        }
    }

    /// Lands one word of a put, or all of another operation. True: the operation
    /// has landed and has completed.
    pub(super) fn advance(&mut self, index: usize) -> bool {
        let flight = &mut self.flights[index];
        let (from, op) = (flight.from, flight.op);
        let (target, remote) = (op.remote.rank.0 as usize, op.remote.offset as usize / 8);
        let result = match op.kind {
            Kind::Put => {
                assert_eq!((op.local().key, op.remote.key), (STAGING, LANES));
                let word = flight.landed;
                let source = &self.memory[from].staging[op.local().offset as usize / 8 + word];
                let value = source.load(Ordering::Relaxed);
                self.memory[target].lanes[remote + word].store(value, Ordering::Relaxed);
                flight.landed += 1;
                if flight.landed < op.bytes().div_ceil(8) as usize {
                    return false;
                }
                Ok(0)
            }
            Kind::Get => self.fetch(from, &op),
            kind => {
                let word = &self.memory[target].lanes[remote];
                Ok(match kind {
                    Kind::FetchAdd => word.fetch_add(op.operand(), Ordering::Relaxed),
                    Kind::FetchOr => word.fetch_or(op.operand(), Ordering::Relaxed),
                    Kind::Swap => word.swap(op.operand(), Ordering::Relaxed),
                    other => panic!("{other:?} is not used"),
                })
            }
        };
        self.flights.remove(index);
        self.machines[from].handle(AmEvent::Completed { tag: op.tag, result }, self.now);
        true
    }

    fn fetch(&self, from: usize, op: &Op) -> Result<u64, AddrError> {
        let words = op.bytes().div_ceil(8) as usize;
        let source = &self.memory[op.remote.rank.0 as usize].user;
        let start = op.remote.offset as usize / 8;
        if op.remote.key != USER || start + words > source.len() {
            return Err(AddrError::StaleKey { addr: op.remote });
        }
        let target = &self.memory[from].landing[op.local().offset as usize / 8..];
        for (word, target) in source[start..start + words].iter().zip(target) {
            target.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        Ok(0)
    }
}
