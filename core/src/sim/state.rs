//! The network: the operations in flight, and their events.
//!
//! ```text
//!   post ─► [Local] ─► Arrive ─► [Rest] ─► Return ─► [Repeat]
//!             │          │ ▲                 │ ▲
//!    completes early     └─┘ cut: again      └─┘ cut: again
//!                        and, after too many tries, Fail
//! ```
//!
//! A put reads its source when it arrives, as late as a device may, or, if it
//! completes early, at its completion. A get reads the remote end when it arrives
//! and writes the local end when it completes. So a test detects a program that
//! touches a buffer in flight.

mod complete;
mod death;
mod give_up;
mod link;
mod queue;
mod suspicion;
mod transit;

use super::config::SimConfig;
use super::cost_model::CostState;
use super::event::SimEvent;
use super::flight::{Calendar, DueAction, Flights};
use super::memory::{REGIONS, RegionBytes, SimMemory};
use super::shrink;
use crate::backend::{LoadStore, TraceLog, TraceRecord, TraceStage, execute, store_bytes};
use crate::mem::{AddrError, LocalAddr, Need, Rank, RegionTable};
use crate::op::{Kind, Op};
use crate::random::SplitMix64;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use link::OrderedLink;
use queue::NodeQueue;
use suspicion::Suspicion;

/// All state that changes.
pub(super) struct NetState {
    pub(super) config: SimConfig,
    pub(super) calendar: Calendar,
    pub(super) flights: Flights,
    pub(super) memory: Vec<RegionBytes>,
    pub(super) log: Option<TraceLog<Vec<TraceRecord>>>,
    draw: SplitMix64,
    /// The first `nodes` queues are the nodes' own, with completions that are
    /// events; the endpoints' queues follow.
    queues: Vec<NodeQueue>,
    nodes: Vec<NodeStatus>,
    /// The links that keep order, by queue and target.
    links: BTreeMap<(u32, u32), OrderedLink>,
    is_cut: bool,
    suspicion: Suspicion,
    /// The costs of operations, if the configuration has a machine.
    pub(super) load: Option<CostState>,
}

#[derive(Clone, Copy)]
struct NodeStatus {
    /// The time of death; `u64::MAX`: the node is alive.
    dead_at: u64,
    /// The side of the cut on which the node is.
    side: bool,
}

pub(super) type RegionTables = [RegionTable<REGIONS>];

impl NetState {
    pub(super) fn new(config: SimConfig) -> Self {
        let queue = |rank| NodeQueue::new(Rank(rank));
        Self {
            config,
            calendar: Calendar::new(),
            flights: Flights::default(),
            memory: Vec::new(),
            log: None,
            draw: SplitMix64::new(config.seed),
            queues: (0..config.nodes).map(queue).collect(),
            nodes: (0..config.nodes)
                .map(|_| NodeStatus { dead_at: u64::MAX, side: false })
                .collect(),
            links: BTreeMap::new(),
            is_cut: false,
            suspicion: Suspicion::default(),
            load: config.machine.map(|machine| CostState::new(machine, config.nodes)),
        }
    }

    /// Posts an operation. False: the queue is full, or its node is dead.
    pub(super) fn post(&mut self, queue: u32, op: &Op) -> bool {
        let NodeQueue { rank, in_flight, .. } = self.queues[queue as usize];
        if in_flight >= self.config.in_flight_max || self.is_dead(rank) {
            return false;
        }
        self.queues[queue as usize].in_flight += 1;
        let draw = SplitMix64::new(self.draw.next());
        let slot = self.flights.add(*op, queue, draw);
        self.record(rank, op, TraceStage::posted(op));
        let (target, nodes) = (op.remote.rank, self.config.nodes);
        if target.0 >= nodes {
            self.fail(slot, AddrError::NoSuchRank { rank: target, size: nodes });
            return true;
        }
        if self.suspicion.has_given_up(rank, target) {
            self.fail(slot, AddrError::PeerLost { rank: target });
            return true;
        }
        let early = target != rank && matches!(op.kind, Kind::Put | Kind::PutWord);
        if early && self.strikes(slot, self.config.early) {
            self.flights.get(slot).early = true;
            let latency = self.flights.get(slot).draw.below(self.config.latency_ns_min);
            let at = self.calendar.now_ns() + latency;
            self.calendar.add(at, DueAction::Local, rank.0, slot);
        }
        self.depart(slot);
        true
    }

    /// Moves time to the next event, and lets the event happen.
    pub(super) fn step(&mut self, tables: &RegionTables) -> Option<(Rank, SimEvent)> {
        let entry = self.calendar.next()?;
        let (slot, rank) = (entry.data, Rank(entry.node));
        let (rank, event) = match entry.due {
            DueAction::Timer => (rank, SimEvent::Timer(entry.data)),
            DueAction::Death => (rank, SimEvent::PeerLost(Rank(entry.data as u32))),
            DueAction::Local => self.complete_early(tables, slot),
            DueAction::Arrive => self.arrive(tables, slot),
            DueAction::Rest => self.land(tables, slot),
            DueAction::Serve => {
                self.serve_next(slot);
                self.land(tables, slot)
            }
            DueAction::Return => self.come_back(tables, slot),
            DueAction::Fail => self.complete(slot, true),
            DueAction::Repeat => self.complete(slot, false),
        };
        Some((rank, if self.is_dead(rank) { SimEvent::Nothing } else { event }))
    }

    fn complete_early(&mut self, tables: &RegionTables, slot: u64) -> (Rank, SimEvent) {
        let from = self.from(slot);
        let flight = self.flights.get(slot);
        if flight.op.kind == Kind::Put {
            let copied = SimMemory { tables, from }.copy_local(&flight.op, &mut flight.payload);
            if copied.is_err() {
                // The local end is invalid: the target's answer will report it.
                flight.early = false;
                return (from, SimEvent::Nothing);
            }
        }
        let (op, queue) = (flight.op, flight.queue);
        self.deliver(queue, &op, Ok(0), true)
    }

    fn arrive(&mut self, tables: &RegionTables, slot: u64) -> (Rank, SimEvent) {
        let (from, now) = (self.from(slot), self.calendar.now_ns());
        let op = self.flights.get(slot).op;
        if !self.has_turn(slot) {
            return (from, SimEvent::Nothing);
        }
        if self.is_apart(from, op.remote.rank) {
            if !self.lose(slot, now) {
                self.calendar.add(now + self.config.retry_ns, DueAction::Arrive, 0, slot);
            }
            return (from, SimEvent::Nothing);
        }
        if self.suspicion.shuts_out(op.remote.rank, from) {
            self.refuse(slot);
            return (from, SimEvent::Nothing);
        }
        if op.kind == Kind::Put && op.bytes() > 8 && self.strikes(slot, self.config.torn) {
            let wire = SimMemory { tables, from };
            let is_valid = wire.resolve(op.remote, op.bytes(), Need::Write).is_ok()
                && wire.local(op.local(), op.bytes()).is_ok();
            if is_valid {
                return self.tear(tables, slot);
            }
        }
        if let Some(load) = &mut self.load {
            if let Some(at) = load.arrives(slot, from, &op, now) {
                self.calendar.add(at, DueAction::Serve, 0, slot);
            }
            return (from, SimEvent::Nothing);
        }
        self.land(tables, slot)
    }

    /// A flight has been carried out: the next operation in the engine's queue has
    /// its turn.
    fn serve_next(&mut self, slot: u64) {
        let (from, now) = (self.from(slot), self.calendar.now_ns());
        let op = self.flights.get(slot).op;
        let next = self.load.as_mut().and_then(|load| load.next(from, &op, now));
        if let Some((slot, at)) = next {
            self.calendar.add(at, DueAction::Serve, 0, slot);
        }
    }

    /// Lands one piece of a put now and the rest later.
    fn tear(&mut self, tables: &RegionTables, slot: u64) -> (Rank, SimEvent) {
        let from = self.from(slot);
        let flight = self.flights.get(slot);
        let bytes = flight.op.bytes();
        // Devices write words as a whole, counted from the start of the put.
        let split = 8 * flight.draw.between(1, (bytes - 1) / 8);
        let front_is_rest = flight.draw.chance(500);
        let now_lands = if front_is_rest { split..bytes } else { 0..split };
        flight.torn = Some((split, front_is_rest));
        let landed = put_piece(&SimMemory { tables, from }, flight, now_lands);
        debug_assert!(landed.is_ok(), "resolved before: {landed:?}");
        let apart = self.flights.get(slot).draw.below(self.config.latency_ns_max.max(2));
        let apart = apart + self.hold_up(slot);
        self.calendar.add(self.calendar.now_ns() + apart, DueAction::Rest, 0, slot);
        (from, SimEvent::Nothing)
    }

    /// Carries a flight out, or the rest of a torn one, and sends the answer.
    fn land(&mut self, tables: &RegionTables, slot: u64) -> (Rank, SimEvent) {
        let wire = SimMemory { tables, from: self.from(slot) };
        let target = self.flights.get(slot).op.remote.rank;
        self.pass(slot);
        if self.is_dead(target) {
            self.lose_peer(slot, target);
            return (wire.from, SimEvent::Nothing);
        }
        if self.suspicion.shuts_out(target, wire.from) {
            self.refuse(slot);
            return (wire.from, SimEvent::Nothing);
        }
        let flight = self.flights.get(slot);
        let (op, early, queue) = (flight.op, flight.early, flight.queue as usize);
        if self.queues[queue].is_cut_off && !self.config.reorder {
            self.lose_peer(slot, wire.from);
            return (wire.from, SimEvent::Nothing);
        }
        let result = match op.kind {
            Kind::Get => wire.copy_remote(&op, &mut flight.payload).map(|()| 0),
            Kind::Put => {
                let rest = match flight.torn {
                    Some((split, true)) => 0..split,
                    Some((split, false)) => split..op.bytes(),
                    None => 0..op.bytes(),
                };
                put_piece(&wire, flight, rest).map(|()| 0)
            }
            _ => execute(&wire, &op),
        };
        flight.result = result;
        self.queues[queue].is_cut_off |= result == Err(AddrError::PeerLost { rank: wire.from });
        self.record(wire.from, &op, TraceStage::Landed);
        if early {
            self.flights.remove(slot);
        } else {
            let bytes = if op.kind == Kind::Get { op.bytes() } else { 0 };
            if let Some(at) = self.send(slot, bytes) {
                self.calendar.add(at, DueAction::Return, 0, slot);
            }
        }
        match result {
            Ok(_) if op.notify => {
                if let Some(load) = &mut self.load {
                    load.wake(op.remote.rank, self.calendar.now_ns());
                }
                (op.remote.rank, SimEvent::Bell(op.remote))
            }
            _ => (op.remote.rank, SimEvent::Nothing),
        }
    }

    fn come_back(&mut self, tables: &RegionTables, slot: u64) -> (Rank, SimEvent) {
        let (from, now) = (self.from(slot), self.calendar.now_ns());
        let target = self.flights.get(slot).op.remote.rank;
        if self.is_apart(from, target) {
            if !self.lose(slot, now) {
                self.calendar.add(now + self.config.retry_ns, DueAction::Return, 0, slot);
            }
            return (from, SimEvent::Nothing);
        }
        let flight = self.flights.get(slot);
        if flight.op.kind == Kind::Get && flight.result.is_ok() && !flight.early {
            let written = SimMemory { tables, from }.write_local(&flight.op, &flight.payload);
            flight.result = written.map(|()| 0);
        }
        self.complete(slot, true)
    }

    /// Ends a flight because `rank` died: it ends when the death is detected.
    fn lose_peer(&mut self, slot: u64, rank: Rank) {
        let noticed = self.nodes[rank.0 as usize].dead_at.saturating_add(self.config.detect_ns);
        let at = noticed.max(self.calendar.now_ns() + self.config.latency_ns_min);
        self.flights.get(slot).result = Err(AddrError::PeerLost { rank });
        self.calendar.add(at, DueAction::Fail, 0, slot);
    }

    fn fail(&mut self, slot: u64, error: AddrError) {
        self.flights.get(slot).result = Err(error);
        let at = self.calendar.now_ns() + self.config.latency_ns_min;
        self.calendar.add(at, DueAction::Fail, 0, slot);
    }

    fn complete(&mut self, slot: u64, is_first: bool) -> (Rank, SimEvent) {
        let flight = self.flights.get(slot);
        let (op, queue, result, early) = (flight.op, flight.queue, flight.result, flight.early);
        if early {
            // The flight was given up after it had completed: no completion is
            // delivered.
            self.flights.remove(slot);
            return (self.queues[queue as usize].rank, SimEvent::Nothing);
        }
        self.flights.get(slot).has_ended = true;
        if is_first && self.strikes(slot, self.config.duplicate) {
            let most = self.config.latency_ns_max.saturating_mul(4);
            let later = self.flights.get(slot).draw.between(1, most);
            self.calendar.add(self.calendar.now_ns() + later, DueAction::Repeat, 0, slot);
        } else {
            self.flights.remove(slot);
        }
        self.deliver(queue, &op, result, is_first)
    }

    /// Whether a fault of this rate strikes the flight.
    fn strikes(&mut self, slot: u64, per_mille: u16) -> bool {
        let flight = self.flights.get(slot);
        if !flight.draw.chance(per_mille) {
            return false;
        }
        let number = flight.number << FAULTS_SHIFT | flight.struck;
        flight.struck += 1;
        shrink::strikes(number)
    }

    fn record(&mut self, by: Rank, op: &Op, stage: TraceStage) {
        if let Some(log) = &mut self.log {
            log.push(TraceRecord { at: self.calendar.now(), by, tag: op.tag, stage });
        }
    }

    fn from(&mut self, slot: u64) -> Rank {
        self.queues[self.flights.get(slot).queue as usize].rank
    }
}

/// Lands this piece of a put.
fn put_piece(
    wire: &SimMemory<'_>,
    flight: &super::flight::FlightState,
    piece: core::ops::Range<u64>,
) -> Result<(), AddrError> {
    let op = &flight.op;
    let (remote, bytes) = (op.remote.add(piece.start), piece.end - piece.start);
    if flight.early {
        return store_bytes(
            wire,
            remote,
            &flight.payload[piece.start as usize..piece.end as usize],
        );
    }
    let local = LocalAddr { offset: op.local().offset + piece.start, ..op.local() };
    execute(wire, &Op::put(local, remote, bytes)).map(|_| ())
}

/// The faults of one operation are numbered in this many bits; more faults than that
/// would share numbers with the next operation's.
const FAULTS_SHIFT: u32 = 10;
