//! Ranks in one thread, and a network that does to puts, gets and atomics all
//! that it may: delays and reorders them, lands a put word by word, says that
//! it has completed before it has landed.

extern crate std;

use crate::am::{Bell, Call, Event, Landing, Machine, Memory, Peer, Shape, Slot, Tables};
use crate::mem::{AddrError, LocalAddr, Rank, RegionKey, RemoteAddr};
use crate::op::{Kind, Op};
use crate::sync::mapped::{AtomicU64, Ordering};
use crate::tag::Tag;
use crate::time::Instant;
use std::boxed::Box;
use std::vec::Vec;

/// splitmix64.
pub(super) struct Seeded(pub(super) u64);

impl Seeded {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(super) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// How large everything is.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) ranks: u32,
    pub(super) cells: u32,
    pub(super) calls: usize,
    pub(super) staging: usize,
    pub(super) landings: usize,
    pub(super) bell: Bell,
}

pub(super) const LANDING_WORDS: usize = 128;
const USER_WORDS: usize = 1024;
const LANES: RegionKey = RegionKey::from_bits(0x1001);
const STAGING: RegionKey = RegionKey::from_bits(0x1002);
const LANDING: RegionKey = RegionKey::from_bits(0x1003);
pub(super) const USER: RegionKey = RegionKey::from_bits(0x1004);

/// What a rank has registered.
pub(super) struct RankMemory {
    pub(super) lanes: Vec<AtomicU64>,
    staging: Vec<AtomicU64>,
    pub(super) landing: Vec<AtomicU64>,
    pub(super) user: Vec<AtomicU64>,
}

/// The machine's tables.
pub(super) struct RankTables {
    peers: Vec<Peer>,
    calls: Vec<Call>,
    slots: Vec<Slot>,
    landings: Vec<Landing>,
}

/// An operation in the network.
pub(super) struct Flight {
    from: usize,
    op: Op,
    /// Words that have left their source and not landed.
    words: Vec<(usize, u64)>,
    step: Step,
    has_completed: bool,
    old: u64,
}

enum Step {
    Posted,
    Landing,
    Landed,
}

/// All ranks, their memory and what is between them.
pub(super) struct World<'m> {
    pub(super) machines: Vec<Machine<'m>>,
    memory: &'m [RankMemory],
    pub(super) flights: Vec<Flight>,
    pub(super) rung: Vec<bool>,
    pub(super) dead: Vec<bool>,
    pub(super) now: Instant,
    bell: Bell,
}

pub(super) fn memory(sizes: Sizes) -> Vec<RankMemory> {
    let words = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
    let shape = Shape { peers: sizes.ranks, cells: sizes.cells };
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
            peers: std::vec![Peer::EMPTY; sizes.ranks as usize],
            calls: std::vec![Call::EMPTY; sizes.calls],
            slots: std::vec![Slot::EMPTY; sizes.staging],
            landings: std::vec![Landing::EMPTY; sizes.landings],
        })
        .collect()
}

impl<'m> World<'m> {
    pub(super) fn new(
        sizes: Sizes,
        memory: &'m [RankMemory],
        tables: &'m mut [RankTables],
        mutant: Option<&'static str>,
    ) -> Self {
        let shape = Shape { peers: sizes.ranks, cells: sizes.cells };
        let at = |key| LocalAddr { key, offset: 0 };
        let machines = memory
            .iter()
            .zip(tables)
            .zip(0..)
            .map(|((memory, tables), rank)| {
                let memory = Memory {
                    lanes: &memory.lanes,
                    staging: &memory.staging,
                    staging_at: at(STAGING),
                    landing_at: at(LANDING),
                    landing_bytes: 8 * LANDING_WORDS as u64,
                };
                let tables = Tables {
                    peers: &mut tables.peers,
                    calls: &mut tables.calls,
                    slots: &mut tables.slots,
                    landings: &mut tables.landings,
                };
                let mut machine =
                    Machine::new(Rank(rank), shape, sizes.bell, memory, tables).unwrap();
                machine.mutant = mutant;
                for peer in 0..sizes.ranks {
                    machine.connect(RemoteAddr { rank: Rank(peer), key: LANES, offset: 0 });
                }
                machine
            })
            .collect();
        let ranks = sizes.ranks as usize;
        Self {
            machines,
            memory,
            flights: Vec::new(),
            rung: std::vec![false; ranks],
            dead: std::vec![false; ranks],
            now: Instant::ZERO,
            bell: sizes.bell,
        }
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

    /// Posts what the machine wants posted.
    pub(super) fn post(&mut self, rank: usize) -> usize {
        let mut posted = 0;
        while let Some(op) = self.machines[rank].poll_op() {
            self.flights.push(Flight {
                from: rank,
                op,
                words: Vec::new(),
                step: Step::Posted,
                has_completed: false,
                old: 0,
            });
            posted += 1;
        }
        posted
    }

    /// Carries out and completes what is in the network, in order.
    pub(super) fn deliver(&mut self) {
        let mut calm = Seeded(0);
        while !self.flights.is_empty() {
            while !self.advance(0, &mut calm, true) {}
        }
    }

    /// One small thing happens to flight `index`. True: it is over.
    pub(super) fn advance(&mut self, index: usize, seeded: &mut Seeded, calm: bool) -> bool {
        let flight = &mut self.flights[index];
        let (from, target) = (flight.from, flight.op.remote.rank.0 as usize);
        let gone = self.dead[target] || self.dead[from];
        match flight.step {
            Step::Posted if gone => {
                flight.step = Step::Landed;
            }
            Step::Posted => match flight.op.kind {
                Kind::Put => {
                    let words = (flight.op.bytes() as usize).div_ceil(8);
                    let source = flight.op.local().offset as usize / 8;
                    let start = flight.op.remote.offset as usize / 8;
                    assert_eq!(flight.op.local().key, STAGING);
                    assert_eq!(flight.op.remote.key, LANES);
                    flight.words = (0..words)
                        .map(|word| {
                            let staging = &self.memory[from].staging[source + word];
                            (start + word, staging.load(Ordering::Relaxed))
                        })
                        .collect();
                    flight.step = Step::Landing;
                }
                Kind::Get => {
                    let words = flight.op.bytes().div_ceil(8) as usize;
                    let start = flight.op.remote.offset as usize / 8;
                    let local = flight.op.local().offset as usize / 8;
                    let source = &self.memory[target].user;
                    if flight.op.remote.key == USER && start + words <= source.len() {
                        for word in 0..words {
                            let value = source[start + word].load(Ordering::Relaxed);
                            self.memory[from].landing[local + word].store(value, Ordering::Relaxed);
                        }
                    } else {
                        flight.old = u64::MAX;
                    }
                    flight.step = Step::Landed;
                }
                kind => {
                    let word = &self.memory[target].lanes[flight.op.remote.offset as usize / 8];
                    let operand = flight.op.operand();
                    flight.old = match kind {
                        Kind::FetchAdd => word.fetch_add(operand, Ordering::Relaxed),
                        Kind::FetchOr => word.fetch_or(operand, Ordering::Relaxed),
                        Kind::Swap => word.swap(operand, Ordering::Relaxed),
                        other => panic!("{other:?} is not used"),
                    };
                    self.rung[target] |= flight.op.notify;
                    flight.step = Step::Landed;
                }
            },
            Step::Landing => {
                let early = self.bell == Bell::WithCell && !flight.has_completed;
                if early && seeded.chance(4) && !calm {
                    self.complete(index);
                    return false;
                }
                if flight.words.is_empty() {
                    flight.step = Step::Landed;
                } else {
                    let word = if calm { 0 } else { seeded.below(flight.words.len()) };
                    let (at, value) = flight.words.swap_remove(word);
                    if !gone {
                        self.memory[target].lanes[at].store(value, Ordering::Relaxed);
                    }
                }
            }
            Step::Landed => {
                if !flight.has_completed {
                    self.complete(index);
                }
                let over =
                    if calm { self.flights.remove(index) } else { self.flights.swap_remove(index) };
                drop(over);
                return true;
            }
        }
        false
    }

    fn complete(&mut self, index: usize) {
        let flight = &mut self.flights[index];
        flight.has_completed = true;
        let (from, tag, remote) = (flight.from, flight.op.tag, flight.op.remote);
        let failed = flight.op.kind == Kind::Get && flight.old == u64::MAX;
        let result = if self.dead[remote.rank.0 as usize] {
            Err(AddrError::PeerLost { rank: remote.rank })
        } else if failed {
            Err(AddrError::StaleKey { addr: remote })
        } else {
            Ok(flight.old)
        };
        if !self.dead[from] {
            let completed = Event::Completed { tag, result };
            self.machines[from].handle(completed, self.now);
            // A device may say it twice.
            self.machines[from].handle(completed, self.now);
            assert_ne!(tag, Tag::NONE);
        }
    }
}
