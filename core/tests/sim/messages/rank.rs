//! A rank: the machine, its memory on a node, and its driver.
//!
//! ```text
//!   Event ─► machine.handle ─► poll ─► Story (handlers, ends of calls)
//!                                 └──► poll_op ─► node.try_post
//!                                                   └ refused: kept, until
//!                                                     something completes
//! ```
//!
//! Between the network and the machine there may be one more layer, as there is above a device:
//! it reports completions late and in any order, also after a death, and keeps refused
//! operations while others overtake them.
//!
//! A rank acts on events and at no other time, so that a lost wake-up is a call that never ends.
//! Now and then it computes for a while and looks at nothing.

use super::super::at;
use super::story::Story;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;
use tsumugi_conformance::Seeded;
use tsumugi_core::am::{
    AmEvent, AmMachine, AmMemory, AmOutput, AmPeer, AmShape, AmTables, BLOCK_PEERS, DoorbellOrder,
    LandingBuffer, LaneBlock, PendingCall, StagingCell, has_rung,
};
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{Access, LocalAddr, PeerIndex, Rank, Region, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::sim::{self, Actor, Net, SimNode};
use tsumugi_core::sync::mapped::AtomicU64;
use tsumugi_core::time::Instant;

/// The sizes of all parts.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    /// Ranks that communicate with each other. A network of more nodes has several such groups.
    pub(crate) ranks: u32,
    /// The first `apart` ranks have lanes for each other from the start, and so do the rest; ranks
    /// of the other part are connected later. 0: all ranks are connected from the start.
    pub(crate) apart: u32,
    pub(crate) cells: u32,
    pub(crate) calls: usize,
    pub(crate) staging: usize,
    pub(crate) landings: usize,
    /// The number of ranks that a rank sends to: itself and those that follow.
    pub(crate) fan: u32,
    /// The number of messages that each rank sends.
    pub(crate) messages: u32,
    pub(crate) time_limits: bool,
    pub(crate) looks_again: bool,
    pub(crate) bell: DoorbellOrder,
    /// Whether completions are reported late, and refused operations are overtaken.
    pub(crate) layered: bool,
}

/// The machines' tables.
pub(crate) struct Rooms<'m>(Vec<Room<'m>>);

struct Room<'m> {
    peers: Vec<AmPeer>,
    /// The peers, including those that are connected later.
    grown: Vec<AmPeer>,
    block: [LaneBlock<'m>; 1],
    calls: Vec<PendingCall>,
    slots: Vec<StagingCell>,
    landings: Vec<LandingBuffer>,
}

/// All ranks of a network.
pub(crate) struct Actors<'m> {
    pub(crate) ranks: Vec<Driven<'m>>,
}

/// One of the ranks.
pub(crate) struct Driven<'m> {
    machine: AmMachine<'m>,
    /// The peer index of each rank.
    seats: Vec<u32>,
    /// Unconnected peers: index, address of this rank's lanes there, this rank's index there.
    unmet: Vec<(PeerIndex, RemoteAddr, PeerIndex)>,
    sizes: Sizes,
    /// The node of its group's rank 0.
    base: u32,
    lanes: Vec<(&'m [AtomicU64], AmShape)>,
    story: Story<'m>,
    seeded: Seeded,
    /// Operations that found the queue full.
    refused: VecDeque<Op>,
    /// Completions that the machine gets later, and when.
    late: Vec<(Instant, AmEvent)>,
    /// Tags of operations that have not completed.
    posted: BTreeSet<u64>,
    rung: bool,
    busy_until: Instant,
    alarm: Option<Instant>,
    will_look: bool,
}

impl Rooms<'_> {
    pub(crate) fn new(sizes: Sizes, nodes: u32) -> Self {
        let room = |node| Room {
            peers: vec![AmPeer::EMPTY; sizes.near(node % sizes.ranks).len()],
            grown: vec![AmPeer::EMPTY; sizes.near(node % sizes.ranks).len() + BLOCK_PEERS as usize],
            block: [LaneBlock::EMPTY],
            calls: vec![PendingCall::EMPTY; sizes.calls],
            slots: vec![StagingCell::EMPTY; sizes.staging],
            landings: vec![LandingBuffer::EMPTY; sizes.landings],
        };
        Self((0..nodes).map(room).collect())
    }
}

impl<'m> Actors<'m> {
    pub(crate) fn new(net: &'m Net, sizes: Sizes, rooms: &'m mut Rooms<'m>, seed: u64) -> Self {
        let mut drawn = Seeded(seed ^ 0x5ea7);
        let seats: Vec<Vec<u32>> =
            (0..sizes.ranks).map(|own| sizes.seats(own, &mut drawn)).collect();
        let nodes = (0..net.config().nodes).map(|node| net.node(Rank(node)));
        let allocate = |node: SimNode<'_>, bytes: usize, access| {
            node.allocate(bytes as u64, access).expect("four regions a node")
        };
        let lanes: Vec<Region> = nodes
            .clone()
            .map(|node| {
                let shape = sizes.shape(node.rank().0 % sizes.ranks);
                allocate(node, shape.memory_size(), Access::ReadWrite)
            })
            .collect();
        let block = sizes.shape(0).block();
        let met = nodes.clone().filter(|_| sizes.apart > 0);
        let blocks: Vec<Region> =
            met.map(|node| allocate(node, block.memory_size(), Access::ReadWrite)).collect();
        let ranks = nodes.zip(&mut rooms.0).map(|(node, room)| {
            let (own, base) =
                (node.rank().0 % sizes.ranks, node.rank().0 / sizes.ranks * sizes.ranks);
            let staging = allocate(node, sizes.staging * CELL_BYTES, Access::Local);
            let landing = allocate(node, sizes.landings * LANDING_BYTES, Access::Local);
            let user = allocate(node, Story::USER_BYTES, Access::Read);
            let own_lanes = words(node, &lanes[node.rank().0 as usize]);
            let memory = AmMemory {
                lanes: own_lanes,
                staging: words(node, &staging),
                staging_at: LocalAddr { key: staging.key, offset: 0 },
                landing_at: LocalAddr { key: landing.key, offset: 0 },
                landing_bytes: LANDING_BYTES as u64,
            };
            let tables = AmTables {
                peers: &mut room.peers,
                calls: &mut room.calls,
                slots: &mut room.slots,
                landings: &mut room.landings,
            };
            let (shape, near) = (sizes.shape(own), sizes.near(own));
            let seat = PeerIndex(own - near.start);
            let mut machine = AmMachine::new(seat, shape, sizes.bell, memory, tables).unwrap();
            let mut own_lanes = vec![(own_lanes, shape)];
            if let Some(region) = blocks.get(node.rank().0 as usize) {
                let more = words(node, region);
                machine.grow(more, &mut room.grown, &mut room.block).unwrap();
                own_lanes.push((more, block));
            }
            let seats_here = seats[own as usize].clone();
            let mut unmet = Vec::new();
            for peer in 0..sizes.ranks {
                let of_all = if near.contains(&peer) { &lanes } else { &blocks };
                let there = at(peer, &of_all[(base + peer) as usize], 0);
                let first = if near.contains(&peer) { 0 } else { sizes.near(peer).len() as u32 };
                let seat_there = PeerIndex(seats[peer as usize][own as usize] - first);
                let seat = PeerIndex(seats_here[peer as usize]);
                if near.contains(&peer) {
                    machine.connect(seat, there, seat_there);
                } else {
                    unmet.push((seat, there, seat_there));
                }
            }
            let (landing, user_at) =
                (words(node, &landing), LocalAddr { key: user.key, offset: 0 });
            Driven {
                machine,
                seats: seats_here.clone(),
                unmet,
                sizes,
                base,
                lanes: own_lanes,
                story: Story::new(own, seats_here, sizes, landing, words(node, &user), user_at),
                seeded: Seeded(!seed ^ u64::from(node.rank().0) << 32),
                refused: VecDeque::new(),
                late: Vec::new(),
                posted: BTreeSet::new(),
                rung: false,
                busy_until: Instant::ZERO,
                alarm: None,
                will_look: false,
            }
        });
        Self { ranks: ranks.collect() }
    }

    /// Checks at the end that everything has ended that had to end.
    pub(crate) fn check_end(&self, net: &Net) {
        assert_eq!((net.in_flight(), net.next_due()), (0, None));
        let is_dead = |node: u32| net.is_dead(Rank(node));
        // Also a live rank that the other has given up.
        let parted =
            |a: u32, b: u32| net.is_lost(Rank(a), Rank(b)) || net.is_lost(Rank(b), Rank(a));
        for (node, rank) in (0..).zip(&self.ranks).filter(|(node, _)| !is_dead(*node)) {
            let machine = &rank.machine;
            rank.story.check_end();
            assert_eq!((machine.calls(), machine.wants_poll()), (0, false), "rank {node}");
            let open = (rank.refused.len(), rank.posted.len(), rank.late.len());
            assert_eq!(open, (0, 0, 0), "rank {node} has operations");
            let is_rung = rank.lanes.iter().any(|(lanes, shape)| has_rung(lanes, *shape));
            assert!(!machine.is_landing() && !is_rung, "rank {node} was rung");
            let is_parted = |peer: &u32| parted(node, rank.base + peer);
            for peer in (0..rank.sizes.ranks).filter(|peer| !is_parted(peer)) {
                let (to, other) = (Rank(peer), &self.ranks[(rank.base + peer) as usize]);
                let room = machine.check_room(PeerIndex(rank.seats[to.0 as usize]), true);
                assert_eq!(room, Ok(()), "room from rank {node} to its peer {peer}");
                let own = node - rank.base;
                let (sent, handled) = (rank.story.sent(peer), other.story.handled(own));
                assert_eq!(sent, handled, "requests from rank {node} to its peer {peer}");
            }
            let nobody_waited = machine.dropped() == 0;
            let may_drop =
                rank.sizes.time_limits || (0..rank.sizes.ranks).any(|peer| is_parted(&peer));
            assert!(nobody_waited || may_drop, "rank {node} dropped {}", machine.dropped());
        }
        for rank in &self.ranks {
            for peer in 0..rank.sizes.ranks {
                let other = &self.ranks[(rank.base + peer) as usize];
                let own = rank.story.rank();
                assert!(other.story.handled(own) <= rank.story.sent(peer), "a request came twice");
            }
        }
    }
}

impl Driven<'_> {
    fn drive(&mut self, node: &SimNode<'_>) {
        let now = node.now();
        self.complete_late(now);
        let rung = std::mem::take(&mut self.rung);
        self.machine.handle(if rung { AmEvent::Rang } else { AmEvent::Tick }, now);
        // Each rank connects its peers at a time of its own.
        while !self.unmet.is_empty() && self.seeded.below(3) > 0 {
            let (seat, there, own) = self.unmet.swap_remove(0);
            self.machine.connect(seat, there, own);
        }
        if !self.unmet.is_empty() {
            node.wake_at(now + Duration::from_nanos(self.seeded.below(5_000)), LOOK);
        }
        let base = self.base;
        let is_dead = |rank: u32| node.net().is_lost(node.rank(), Rank(base + rank));
        loop {
            while let Some(out) = self.machine.poll() {
                match out {
                    AmOutput::Run(request) => {
                        let later = self.story.serve(&mut self.machine, request, now, is_dead);
                        if let Some(later) = later {
                            node.wake_at(later, LOOK);
                        }
                    }
                    AmOutput::Done { token, result } => self.story.end(token, result, now, is_dead),
                    AmOutput::Released { token } => self.story.release(token),
                }
            }
            self.story.answer(&mut self.machine, now);
            self.story.send(&mut self.machine, &mut self.seeded, now);
            self.post(node);
            let has_room = self.machine.take_room();
            self.story.is_stuck &= !has_room;
            if !self.machine.wants_poll() && !has_room {
                break;
            }
        }
        self.set_timers(node);
    }

    fn post(&mut self, node: &SimNode<'_>) {
        let operations_max =
            2 * self.sizes.staging + self.sizes.landings + self.sizes.ranks as usize;
        let mut left = self.refused.len();
        loop {
            let again = left.checked_sub(1).and_then(|less| {
                left = less;
                self.refused.pop_front()
            });
            let is_new = again.is_none();
            let Some(op) = again.or_else(|| {
                let mut op = self.machine.poll_op()?;
                op.remote.rank.0 += self.base;
                Some(op)
            }) else {
                return;
            };
            if is_new {
                let is_new = self.posted.insert(op.tag.to_bits());
                assert!(is_new, "{}: a tag of two operations: {op:?}", node.rank());
                let count = self.posted.len();
                assert!(count <= operations_max, "{}: {count} operations", node.rank());
            }
            if !node.try_post(&op) {
                if self.sizes.layered {
                    self.refused.push_back(op);
                    left = 0;
                } else {
                    self.refused.push_front(op);
                    return;
                }
            }
        }
    }

    /// Delivers a completion to the machine.
    fn complete(&mut self, event: AmEvent, now: Instant) {
        if let AmEvent::Completed { tag, .. } = event {
            self.posted.remove(&tag.to_bits());
        }
        self.machine.handle(event, now);
    }

    /// Delivers the completions that were held back.
    fn complete_late(&mut self, now: Instant) {
        while let Some(at) = self.late.iter().position(|(due, _)| *due <= now) {
            let (_, event) = self.late.swap_remove(at);
            self.complete(event, now);
        }
    }

    fn set_timers(&mut self, node: &SimNode<'_>) {
        let now = node.now();
        if let Some(deadline) = self.machine.next_deadline()
            && self.alarm.is_none_or(|alarm| deadline < alarm)
        {
            self.alarm = Some(deadline);
            node.wake_at(deadline, ALARM);
        }
        if self.machine.is_landing() && self.sizes.looks_again && !self.will_look {
            self.will_look = true;
            node.wake_at(now + LANDING, LAND);
        }
        if self.story.has_more() && self.seeded.below(6) == 0 {
            self.busy_until = now + Duration::from_nanos(self.seeded.below(20_000));
            node.wake_at(self.busy_until, LOOK);
        }
    }
}

impl Actor for Driven<'_> {
    fn on_event(&mut self, node: &SimNode<'_>, event: sim::SimEvent) {
        let now = node.now();
        match event {
            sim::SimEvent::Completed(done) => {
                let event = AmEvent::Completed { tag: done.tag, result: done.result };
                if self.sizes.layered && self.seeded.below(3) == 0 {
                    let due = now + Duration::from_nanos(self.seeded.below(50_000));
                    self.late.push((due, event));
                    node.wake_at(due, LOOK);
                } else {
                    self.complete(event, now);
                }
            }
            sim::SimEvent::Bell(_) => self.rung = true,
            sim::SimEvent::PeerLost(lost) => {
                let peer = lost.0.wrapping_sub(self.base);
                if peer < self.sizes.ranks {
                    let seat = self.seats[peer as usize];
                    self.machine.handle(AmEvent::Lost(PeerIndex(seat)), now);
                }
            }
            sim::SimEvent::Timer(ALARM) => self.alarm = None,
            sim::SimEvent::Timer(LAND) => self.will_look = false,
            _ => {}
        }
        if self.busy_until <= now {
            self.drive(node);
        }
    }
}

impl Sizes {
    /// The shape of a rank's lanes for the ranks that it knows from the start.
    fn shape(self, own: u32) -> AmShape {
        let (cells, later_cells) = (self.cells, (self.cells / 2).max(1));
        AmShape { peers: self.near(own).len() as u32, cells, later_cells }
    }

    /// The range of those ranks, which contains the rank itself.
    fn near(self, own: u32) -> Range<u32> {
        if own < self.apart { 0..self.apart } else { self.apart..self.ranks }
    }

    /// The peer index that a rank's machine uses for each rank: ranks that it connects to later
    /// have their indices in any order.
    fn seats(self, own: u32, drawn: &mut Seeded) -> Vec<u32> {
        let near = self.near(own);
        let mut left: Vec<u32> = (near.len() as u32..self.ranks).collect();
        let seat = |peer: u32| match near.contains(&peer) {
            true => peer - near.start,
            false => left.swap_remove(drawn.below(left.len() as u64) as usize),
        };
        (0..self.ranks).map(seat).collect()
    }
}

/// A region as its owner reads it.
fn words<'n>(node: SimNode<'n>, region: &Region) -> &'n [AtomicU64] {
    let addr = LocalAddr { key: region.key, offset: 0 };
    let base = node.local(addr, region.bytes).expect("registered");
    // SAFETY: zero bytes that live as long as the network, aligned like a
    // cache line, and reached in its one thread alone.
    unsafe { std::slice::from_raw_parts(base.cast().as_ptr(), region.bytes as usize / 8) }
}

pub(super) const LANDING_BYTES: usize = 512;
const CELL_BYTES: usize = tsumugi_core::am::CELL_BYTES;
const LANDING: Duration = Duration::from_nanos(300);
/// The kinds of timers.
const LOOK: u64 = 0;
const ALARM: u64 = 1;
const LAND: u64 = 2;
