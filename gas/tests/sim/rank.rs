//! One rank of a simulated job: the machine, its memory and its driver.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::slice;
use tsumugi_core::backend::{Completion, Domain, LoadStore, load_bytes};
use tsumugi_core::mem::{Access, AddrError, LocalAddr, Need, Rank, Region, RegionKey, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::sim::{Net, SimEvent as Told, SimNode};
use tsumugi_core::sync::mapped::AtomicU64;
use tsumugi_core::tag::Tag;
use tsumugi_gas::address::{GlobalAddr, REGIONS, Split};
use tsumugi_gas::cache::{CacheSlot, Fetch, HazardPointers};
use tsumugi_gas::control::ControlShape;
use tsumugi_gas::machine::{
    GlobalMachine, InFlightOp, MachineEvent, MachineOutput, MachineSetup, MachineTables, PendingOp,
    SentCommand,
};
use tsumugi_gas::order::{Edge, Issued};
use tsumugi_gas::table::{Agent, NameRecord, Starter};

/// The sizes of all parts.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub shape: ControlShape,
    pub split: Split,
    pub part_bytes_max: u64,
    /// Whether each rank loads and stores the memory of all ranks.
    pub near: bool,
    /// Whether the network keeps the order of each queue.
    pub keeps_order: bool,
    /// Where the order is not kept: the longest put that goes as one with the operation posted
    /// behind it.
    pub joined_bytes_max: u64,
    /// The longest copy between two far ranks that the caller carries.
    pub carried_bytes_max: u64,
}

/// A rank's tables; the machine borrows them.
pub struct Room {
    near: Vec<Rank>,
    slots: Vec<CacheSlot>,
    hazards: [HazardPointers; 1],
    records: Vec<NameRecord>,
    awaited: Vec<u64>,
    told: Vec<u64>,
    fetches: Vec<Fetch>,
    issued: Vec<Issued>,
    edges: Vec<Edge>,
    jobs: Vec<PendingOp>,
    commands: Vec<SentCommand>,
    flights: Vec<InFlightOp>,
}

/// A machine on a node, and the operations that it has posted.
pub struct Party<'n> {
    net: &'n Net,
    pub node: SimNode<'n>,
    pub machine: GlobalMachine<'n>,
    pub control: RegionKey,
    /// Operations that a full queue has refused.
    held: VecDeque<Op>,
    joined_bytes_max: u64,
    /// Operations that go when the put of that tag has landed.
    joined: Vec<(Tag, Op)>,
    /// Puts whose bytes are being fetched to a place here.
    carried: Vec<Option<Op>>,
    places: Region,
    carried_bytes_max: u64,
    /// Outputs of the machine that the driver has not taken.
    pub outs: VecDeque<MachineOutput>,
    /// Ranks that have died.
    pub lost: Vec<Rank>,
    woken: u64,
}

/// A bit in the tag of a get whose bytes are then put to another rank.
const FETCHES: u64 = 1 << 63;
pub const STARTER_BYTES: u64 = 4096;

impl Sizes {
    pub fn new(ranks: u32) -> Self {
        let shape = ControlShape {
            notes: 16,
            commands: 8,
            own_jobs: 32,
            remote_jobs: 4,
            copies: 8,
            fetches: 2,
            flights: 16,
            conditions: 64,
            ..ControlShape::of(ranks, 1)
        };
        let split = Split::fit(ranks, 1, 1 << 20).unwrap();
        Self {
            shape,
            split,
            part_bytes_max: 100,
            near: false,
            keeps_order: false,
            joined_bytes_max: 0,
            carried_bytes_max: 0,
        }
    }
}

impl Room {
    pub fn new(sizes: &Sizes) -> Self {
        let Sizes { shape, .. } = *sizes;
        Self {
            near: (0..if sizes.near { shape.ranks } else { 0 }).map(Rank).collect(),
            slots: (0..shape.copies).map(|_| CacheSlot::new()).collect(),
            hazards: [HazardPointers::new()],
            records: vec![NameRecord::FREE; shape.colors as usize * REGIONS],
            awaited: vec![0; shape.bitmap_words()],
            told: vec![0; shape.bitmap_words()],
            fetches: vec![Fetch::FREE; shape.fetches as usize],
            issued: vec![Issued::FREE; shape.own_jobs as usize],
            edges: vec![Edge::FREE; shape.conditions as usize],
            jobs: vec![PendingOp::FREE; shape.jobs()],
            commands: vec![SentCommand::FREE; shape.commands as usize],
            flights: vec![InFlightOp::FREE; shape.flights as usize],
        }
    }

    /// Prepares the room for another machine; tables that need not be cleared stay as they are.
    pub fn empty(&mut self) {
        self.slots.fill_with(CacheSlot::new);
        self.hazards = [HazardPointers::new()];
    }
}

impl<'n> Party<'n> {
    pub fn new(net: &'n Net, rank: u32, sizes: &Sizes, room: &'n mut Room) -> Self {
        let node = net.node(Rank(rank));
        let words = sizes.shape.words();
        let control = node.allocate(8 * words as u64, Access::ReadWrite).unwrap();
        let starter = node.allocate(STARTER_BYTES, Access::ReadWrite).unwrap();
        let base = control.base.cast::<AtomicU64>();
        let tables = MachineTables {
            // SAFETY: the network's, as long as it; only ever atomics and bytes.
            words: unsafe { slice::from_raw_parts(base.as_ptr(), words) },
            slots: &room.slots,
            hazards: &room.hazards,
            records: &mut room.records,
            awaited: &mut room.awaited,
            told: &mut room.told,
            fetches: &mut room.fetches,
            issued: &mut room.issued,
            edges: &mut room.edges,
            jobs: &mut room.jobs,
            commands: &mut room.commands,
            flights: &mut room.flights,
        };
        let setup = MachineSetup {
            rank: Rank(rank),
            near: &room.near,
            split: sizes.split,
            shape: sizes.shape,
            control: control.key,
            starter: Starter { key: starter.key, bytes: STARTER_BYTES, agent: Agent::Cpu },
            remote_completion: node.capabilities().remote_completion,
            ordered_bytes_max: if sizes.keeps_order { u64::MAX } else { sizes.joined_bytes_max },
            carried_bytes_max: sizes.carried_bytes_max,
            part_bytes_max: sizes.part_bytes_max,
            barrier: None,
        };
        let machine = GlobalMachine::new(setup, tables);
        let flights = sizes.shape.flights as usize;
        let bytes = flights as u64 * sizes.carried_bytes_max;
        let places = node.allocate(bytes.max(8), Access::Local).unwrap();
        let control = control.key;
        let (outs, lost) = (VecDeque::new(), Vec::new());
        Self {
            net,
            node,
            machine,
            control,
            held: VecDeque::new(),
            joined_bytes_max: sizes.joined_bytes_max,
            joined: Vec::new(),
            carried: vec![None; flights],
            places,
            carried_bytes_max: sizes.carried_bytes_max,
            outs,
            lost,
            woken: 0,
        }
    }

    /// Registers a region with the device and names it.
    pub fn open(&mut self, bytes: u64) -> (Region, GlobalAddr) {
        let region = self.node.allocate(bytes, Access::ReadWrite).unwrap();
        (region, self.machine.register(0, &region, Agent::Cpu).unwrap())
    }

    /// Passes an event to the machine, and carries out its operations.
    pub fn on_event(&mut self, event: Told) {
        let now = self.node.now();
        let event = match event {
            Told::Completed(Completion { tag, result }) => {
                self.check_device(result);
                self.post_joined(tag, result);
                let tag = match self.fetched(tag, result) {
                    Some(tag) => tag,
                    None => return self.pump(),
                };
                MachineEvent::Completed { tag, result }
            }
            Told::Bell(addr) if addr.key == self.control => MachineEvent::Rang,
            Told::Timer(_) => MachineEvent::Tick,
            Told::PeerLost(rank) => {
                self.lost.push(rank);
                MachineEvent::Lost(rank)
            }
            _ => return,
        };
        self.machine.handle(event, now);
        self.pump();
    }

    /// Posts the operations of the machine until there are none.
    pub fn pump(&mut self) {
        while let Some(op) = self.held.front() {
            if !self.node.try_post(op) {
                return;
            }
            self.held.pop_front();
        }
        loop {
            let mut is_idle = true;
            while let Some(mut out) = self.machine.poll_op() {
                is_idle = false;
                match out.source {
                    Some(source) if self.carried_bytes_max > 0 => {
                        out.op = self.fetch(source, &out.op);
                    }
                    Some(source) => {
                        let (tag, result) = (out.op.tag, self.carry_over(source, &out.op));
                        self.machine
                            .handle(MachineEvent::Completed { tag, result }, self.node.now());
                        continue;
                    }
                    None => {}
                }
                let is_posted = self.node.try_post(&out.op);
                if let Some(then) = out.then
                    && !(is_posted && self.post_behind(&out.op, then))
                {
                    self.machine.handle(MachineEvent::NotPosted(then.tag), self.node.now());
                }
                if !is_posted {
                    self.held.push_back(out.op);
                    break;
                }
            }
            while let Some(out) = self.machine.poll() {
                is_idle = false;
                if let MachineOutput::Retired(retired) = out {
                    assert!(self.node.unregister(retired.key), "{retired:?}");
                }
                self.outs.push_back(out);
            }
            if is_idle || !self.held.is_empty() {
                break;
            }
        }
        if let Some(at) = self.machine.next_deadline()
            && at.as_ns() != self.woken
        {
            self.woken = at.as_ns();
            self.node.wake_at(at, 0);
        }
    }

    /// Posts the operation behind a put; returns whether it goes.
    fn post_behind(&mut self, put: &Op, then: Op) -> bool {
        if put.bytes() > self.joined_bytes_max {
            return self.node.try_post(&then);
        }
        self.joined.push((put.tag, then));
        true
    }

    fn post_joined(&mut self, tag: Tag, result: Result<u64, AddrError>) {
        let Some(at) = self.joined.iter().position(|(put, _)| *put == tag) else { return };
        let (_, then) = self.joined.swap_remove(at);
        if result.is_err() || !self.node.try_post(&then) {
            self.machine.handle(MachineEvent::NotPosted(then.tag), self.node.now());
        }
    }

    /// The get that precedes a put of another rank's bytes.
    fn fetch(&mut self, source: RemoteAddr, put: &Op) -> Op {
        let place = put.tag.index();
        let offset = place as u64 * self.carried_bytes_max;
        let at = LocalAddr { key: self.places.key, offset };
        self.carried[place] = Some(Op::put(at, put.remote, put.bytes()).tagged(put.tag));
        Op::get(source, at, put.bytes()).tagged(Tag::from_bits(put.tag.to_bits() | FETCHES))
    }

    /// Posts the put of fetched bytes; otherwise returns the tag of the operation that has ended.
    fn fetched(&mut self, tag: Tag, result: Result<u64, AddrError>) -> Option<Tag> {
        if tag.to_bits() & FETCHES == 0 {
            return Some(tag);
        }
        let tag = Tag::from_bits(tag.to_bits() & !FETCHES);
        let put = self.carried[tag.index()].take_if(|put| put.tag == tag)?;
        if result.is_err() {
            return Some(tag);
        }
        self.held.push_back(put);
        None
    }

    /// A put of the bytes of a near rank.
    fn carry_over(&self, source: RemoteAddr, op: &Op) -> Result<u64, AddrError> {
        let [from, to] = [source.rank, op.remote.rank].map(|rank| self.net.node(rank));
        let at = to.resolve(op.remote, op.bytes(), Need::Write)?;
        // SAFETY: as many bytes of the network's memory, and one thread.
        unsafe { load_bytes(&from, source, at.as_ptr(), op.bytes() as usize) }.map(|()| 0)
    }

    /// On some devices a stale key breaks the connection: while all ranks live, no operation
    /// reaches a device with one.
    fn check_device(&self, result: Result<u64, AddrError>) {
        if let Err(error) = result {
            let is_death = matches!(error, AddrError::PeerLost { .. });
            assert!(is_death || !self.lost.is_empty(), "a device was asked for {error}");
        }
    }
}

/// A word of a region, as its owner sees it.
pub fn peek(region: Region, word: u64) -> u64 {
    // SAFETY: the network's memory, and one thread.
    unsafe { word_of(region, word).read() }
}

pub fn poke(region: Region, word: u64, value: u64) {
    // SAFETY: the same.
    unsafe { word_of(region, word).write(value) };
}

fn word_of(region: Region, word: u64) -> NonNull<u64> {
    assert!(word < region.bytes / 8);
    // SAFETY: inside the region.
    unsafe { region.base.cast::<u64>().add(word as usize) }
}
