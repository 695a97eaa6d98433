//! Accesses to a window by each design, with nested holds, on a network with all faults.

use std::cell::RefCell;
use std::rc::Rc;
use tsumugi_conformance::Seeded;
use tsumugi_core::mem::{Access as MemoryAccess, AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::sim::{
    Actor, Net, NetPartition, Seeds, SimConfig, SimEvent, SimNode, check, few,
};
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;
use tsumugi_core::tag::Tag;
use tsumugi_core::time::Instant;
use tsumugi_gas::lock::{
    AccessRefused, AccessWait, GroupSide, LOCK_BYTES, Lock, LockDesign, LockKind, LockPlan,
    NODE_BYTES, NodeId, NodePool, NodeSlot, NodeTable, RankMembership, StepId, Tree, Vertex,
    VertexStep, Want, WindowAccess,
};

/// The current holders, as an observer sees them.
#[derive(Default)]
struct Held {
    all: u32,
    readers: Vec<u32>,
    writers: Vec<u32>,
}

impl Held {
    fn add(&mut self, rank: Rank, want: Want) {
        let writers: u32 = self.writers.iter().sum();
        match want {
            Want::All => {
                assert_eq!(writers, 0, "{rank} holds all beside a writer");
                self.all += 1;
            }
            Want::Shared(target) => {
                assert_eq!(
                    self.writers[target.0 as usize], 0,
                    "{rank} reads while {target} is written"
                );
                self.readers[target.0 as usize] += 1;
            }
            Want::Exclusive(target) => {
                let others = self.writers[target.0 as usize] + self.readers[target.0 as usize];
                assert_eq!((self.all, others), (0, 0), "{rank} is not alone at {target}");
                self.writers[target.0 as usize] += 1;
            }
        }
    }

    fn remove(&mut self, want: Want) {
        match want {
            Want::All => self.all -= 1,
            Want::Shared(target) => self.readers[target.0 as usize] -= 1,
            Want::Exclusive(target) => self.writers[target.0 as usize] -= 1,
        }
    }
}

/// A rank: at most two accesses at a time, the second to a greater target.
struct Member {
    rank: Rank,
    accesses: [WindowAccess; 2],
    nodes: [NodeId; 2],
    slots: [NodeSlot; 2],
    stages: [Stage; 2],
    membership: RankMembership,
    vertices: Vec<Vertex>,
    held: Rc<RefCell<Held>>,
    draw: Seeded,
    left: u32,
    ranks: u32,
    lost: Option<Rank>,
    ended: Result<(), AddrError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Rest,
    Asking { want: Want, is_pausing: bool },
    Held(Want),
    Going,
}

impl Member {
    fn is_done(&self) -> bool {
        self.left == 0 && self.stages == [Stage::Rest; 2] && self.ended.is_ok()
    }

    fn begin(&mut self, index: usize, want: Want) -> bool {
        let mut pool = NodePool::new(self.rank, &mut self.slots);
        let node = pool.try_take(|_| 0).expect("a node for each access");
        let begun = self.accesses[index].begin(&mut self.membership, want, node);
        self.nodes[index] = node;
        if begun.is_err() {
            pool.release(node, false);
        } else {
            self.stages[index] = Stage::Asking { want, is_pausing: false };
        }
        begun.is_ok()
    }

    fn drive(&mut self, node: &SimNode<'_>) {
        for (index, vertex) in self.vertices.iter_mut().enumerate() {
            let load = |addr: RemoteAddr| node.load(addr.key, addr.offset);
            vertex.handle_words(load).unwrap();
            while let Some((step, op)) = vertex.poll_op() {
                let tag = (index as u64 + 2) << 32 | u64::from(step.to_bits());
                node.post(&op.tagged(Tag::from_bits(tag)));
            }
        }
        while self.ended.is_ok() && self.moves(node) {}
    }

    /// Makes one move, if one is possible.
    fn moves(&mut self, node: &SimNode<'_>) -> bool {
        if self.stages == [Stage::Rest; 2] && self.left > 0 {
            self.left -= 1;
            let target = Rank(self.draw.below(self.ranks.into()) as u32);
            let wants = [Want::All, Want::Shared(target), Want::Exclusive(target)];
            let want = wants[self.draw.below(3) as usize];
            return self.begin(0, want);
        }
        (0..2).any(|index| self.access_moves(node, index))
    }

    fn access_moves(&mut self, node: &SimNode<'_>, index: usize) -> bool {
        let (access, membership) = (&mut self.accesses[index], &mut self.membership);
        let stage = self.stages[index];
        let after = |ns| Instant::from_ns(node.now().as_ns() + ns);
        if matches!(stage, Stage::Rest | Stage::Held(_)) {
            return false;
        }
        if let Some(rank) = self.lost {
            access.handle_lost(membership, rank);
        }
        match access.waits_for(membership) {
            Some(AccessWait::Word(word, until)) => {
                let value = node.load(word.key, word.offset).unwrap();
                if until.holds(value) {
                    access.handle_wake(membership, value);
                }
            }
            Some(AccessWait::Pause(ns)) => {
                if let Stage::Asking { want, is_pausing: false } = stage {
                    self.stages[index] = Stage::Asking { want, is_pausing: true };
                    node.wake_at(after(ns), 2 + index as u64);
                }
            }
            None => {}
        }
        if let Some((step, op)) = access.poll_op(membership) {
            let tag = (index as u64) << 32 | u64::from(step.to_bits());
            node.post(&op.tagged(Tag::from_bits(tag)));
        }
        match (access.poll_done(), stage) {
            (Some(Err(error)), _) => {
                self.ended = Err(error);
                false
            }
            (Some(Ok(())), Stage::Going) => {
                self.stages[index] = Stage::Rest;
                NodePool::new(self.rank, &mut self.slots).release(self.nodes[index], false);
                true
            }
            (Some(Ok(())), Stage::Asking { want, .. }) if access.is_held() => {
                self.stages[index] = Stage::Held(want);
                self.held.borrow_mut().add(node.rank(), want);
                let stay = self.draw.below(5_000);
                node.wake_at(after(stay), index as u64);
                if let (0, Want::Exclusive(target)) = (index, want) {
                    self.nest(target);
                }
                true
            }
            _ => false,
        }
    }

    /// Requests a greater target while it holds one.
    fn nest(&mut self, target: Rank) {
        if self.stages[1] == Stage::Rest && target.0 + 1 < self.ranks && self.draw.below(2) == 0 {
            self.begin(1, Want::Exclusive(Rank(target.0 + 1)));
        }
    }
}

impl Actor for Member {
    fn on_event(&mut self, node: &SimNode<'_>, event: SimEvent) {
        match event {
            SimEvent::Completed(done) => {
                let (who, id) = (done.tag.to_bits() >> 32, done.tag.to_bits() as u32);
                if let Some(access) = self.accesses.get_mut(who as usize) {
                    access.handle_completed(
                        &mut self.membership,
                        StepId::from_bits(id),
                        done.result,
                    );
                } else {
                    let vertex = &mut self.vertices[who as usize - 2];
                    vertex.handle_completed(VertexStep::from_bits(id), done.result);
                }
            }
            SimEvent::Timer(token) if token < 2 => {
                let index = token as usize;
                let Stage::Held(want) = self.stages[index] else { panic!("{token}") };
                self.held.borrow_mut().remove(want);
                self.stages[index] = Stage::Going;
                self.accesses[index].release(&mut self.membership);
            }
            SimEvent::Timer(token) => {
                let index = token as usize - 2;
                if let Stage::Asking { want, .. } = self.stages[index] {
                    self.stages[index] = Stage::Asking { want, is_pausing: false };
                }
                self.accesses[index].handle_wake(&mut self.membership, 0);
            }
            SimEvent::PeerLost(rank) => self.lost = Some(rank),
            _ => {}
        }
        self.drive(node);
    }
}

fn plan(design: LockDesign, ranks: u32, draw: &mut Seeded) -> LockPlan {
    let key = RegionKey::new(0, 1);
    let (per_leaf, arity) = (1 + draw.below(3) as u32, 2 + draw.below(3) as u32);
    let tree = Tree::new(ranks, per_leaf, arity, key, LOCK_BYTES + 2 * NODE_BYTES).unwrap();
    let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
    let nodes = NodeTable { key, offset: LOCK_BYTES };
    let kinds = [LockKind::Readers, LockKind::Neutral, LockKind::Writers];
    LockPlan { design, lock: Lock { home, nodes, kind: kinds[draw.below(3) as usize] }, tree }
}

fn members(net: &Net, plan: LockPlan, seed: u64) -> Vec<Member> {
    let ranks = net.config().nodes;
    let none = vec![0; ranks as usize];
    let held = Held { all: 0, readers: none.clone(), writers: none };
    let held = Rc::new(RefCell::new(held));
    let member = |rank| {
        let bytes = LOCK_BYTES + 2 * NODE_BYTES + plan.tree.bytes_of(rank);
        let region = net.node(rank).allocate(bytes, MemoryAccess::ReadWrite).unwrap();
        assert_eq!(region.key, plan.lock.home.key);
        Member {
            rank,
            accesses: [(); 2].map(|()| WindowAccess::new(plan)),
            nodes: Default::default(),
            slots: Default::default(),
            stages: [Stage::Rest; 2],
            membership: RankMembership::new(&plan, rank),
            vertices: plan.tree.vertices_of(rank).map(|id| Vertex::new(plan.tree, id)).collect(),
            held: Rc::clone(&held),
            draw: Seeded(seed ^ u64::from(rank.0) << 40),
            left: few(ACTS.into()) as u32,
            ranks,
            lost: None,
            ended: Ok(()),
        }
    };
    (0..ranks).map(Rank).map(member).collect()
}

fn all_end(seed: u64) {
    let mut draw = Seeded(seed);
    let design = DESIGNS[draw.below(3) as usize];
    let ranks = 1 + few(draw.below(12)) as u32;
    let plan = plan(design, ranks, &mut draw);
    let net = Net::new(SimConfig { in_flight_max: 64, ..SimConfig::drawn(ranks, seed) });
    let mut members = members(&net, plan, seed);
    net.start(&mut members);
    // A run that takes longer than this never ends.
    net.run_until(Instant::from_ns(1_000_000_000), &mut members);
    for (rank, member) in members.iter().enumerate() {
        assert!(member.is_done(), "{plan:?}: {rank} waits for ever: {:?}", member.stages);
    }
}

#[test]
fn accesses_exclude_each_other_on_any_network() {
    check(SEEDS, all_end);
}

#[cfg(debug_assertions)]
#[test]
fn broken_groups_are_caught_on_a_network_too() {
    use std::panic::catch_unwind;
    let caught = |seed: &u64| catch_unwind(|| all_end(*seed)).is_err();
    for mutant in ["group_last_silent", "group_late_forgotten", "group_want_unsaid"] {
        let found = with_mutant(mutant, || PLANTED.into_iter().find(caught));
        let seed = found.unwrap_or_else(|| panic!("{mutant} was not caught"));
        println!("seed {seed} catches {mutant}");
    }
}

/// A rank dies at any time. All other ranks end, or get an error that names it.
#[test]
fn a_death_ends_every_access() {
    let mut failed = 0;
    let is_own = check(SEEDS, |seed| {
        let mut draw = Seeded(seed);
        let ranks = 2 + few(draw.below(11)) as u32;
        let design = DESIGNS[draw.below(3) as usize];
        let plan = plan(design, ranks, &mut draw);
        let net = Net::new(SimConfig { in_flight_max: 64, ..SimConfig::drawn(ranks, seed) });
        let mut members = members(&net, plan, seed);
        let dead = Rank(draw.below(ranks.into()) as u32);
        net.start(&mut members);
        net.run_until(Instant::from_ns(draw.below(300_000)), &mut members);
        net.kill(dead);
        for stage in members[dead.0 as usize].stages {
            if let Stage::Held(want) = stage {
                members[0].held.borrow_mut().remove(want);
            }
        }
        net.run_until(Instant::from_ns(u64::MAX), &mut members);
        for (rank, member) in members.iter().enumerate() {
            let names_it = member.ended == Err(AddrError::PeerLost { rank: dead });
            failed += u32::from(names_it);
            let ended = rank as u32 == dead.0 || names_it || member.is_done();
            assert!(ended, "{plan:?}: {rank} hangs: {:?}", member.stages);
        }
    });
    println!("{failed} ranks were told of a death");
    assert!(failed > 0 || !is_own);
}

/// The network is cut and heals, and ranks give each other up. All ranks that have not ended
/// then end or learn why not, and no rank is inside together with a rank that excludes it, also
/// not with a live rank that others have given up.
fn parted(seed: u64) -> u32 {
    let mut failed = 0;
    let mut draw = Seeded(seed);
    let ranks = 2 + few(draw.below(9)) as u32;
    let design = DESIGNS[draw.below(3) as usize];
    let plan = plan(design, ranks, &mut draw);
    let net = Net::new(SimConfig { in_flight_max: 64, ..SimConfig::drawn(ranks, seed) });
    let mut members = members(&net, plan, seed);
    let stays = Rank(draw.below(ranks.into()) as u32);
    let parting = NetPartition::drawn(ranks, seed, 200_000, stays);
    net.start(&mut members);
    parting.run(&net, &mut members, |members, ended| {
        for stage in members[ended.0 as usize].stages {
            if let Stage::Held(want) = stage {
                members[0].held.borrow_mut().remove(want);
            }
        }
    });
    net.run_until(Instant::from_ns(1_000_000_000), &mut members);
    for rank in (0..ranks).map(Rank).filter(|rank| !parting.has_ended(*rank)) {
        let member = &members[rank.0 as usize];
        let names_it = matches!(member.ended, Err(AddrError::PeerLost { rank: lost })
                if parting.is_lost(rank, lost));
        failed += u32::from(names_it);
        let ended = names_it || member.is_done();
        assert!(ended, "{plan:?}: {rank} hangs: {:?}, {:?}", member.stages, member.ended);
    }
    failed
}

#[test]
fn a_live_rank_that_is_given_up_is_inside_with_no_other() {
    let mut failed = 0;
    let is_own = check(SEEDS, |seed| failed += parted(seed));
    println!("{failed} ranks were told of a loss");
    assert!(failed > 0 || !is_own);
}

/// A rank that is inside does not enter again, nor on the other side.
#[test]
fn an_access_that_would_wait_for_itself_is_refused() {
    for (design, refused) in [
        (LockDesign::Tree, AccessRefused::OtherSide { side: GroupSide::Exclusive }),
        (LockDesign::Global, AccessRefused::OneLock),
    ] {
        let net = Net::new(SimConfig::calm(1, 1));
        let plan = plan(design, 1, &mut Seeded(1));
        let mut member = members(&net, plan, 1).pop().unwrap();
        (member.left, member.ranks) = (0, 1);
        assert!(member.begin(0, Want::Exclusive(Rank(0))));
        assert_eq!(
            member.accesses[1].begin(&mut member.membership, Want::All, NodeId::NONE),
            Err(refused)
        );
        net.run(&mut [member]);
    }
}

const DESIGNS: [LockDesign; 3] = [LockDesign::Global, LockDesign::TwoLevel, LockDesign::Tree];
/// The seeds that every commit tries anew.
const SEEDS: Seeds = Seeds::new(1_000);
/// The seeds that catch each planted defect: always the same.
#[cfg(debug_assertions)]
const PLANTED: std::ops::Range<u64> = 0..1_000;
const ACTS: u32 = 5;
