//! Random programs on a network with all faults: claims of every kind, claims that give up, and
//! ranks that die.

use std::cell::RefCell;
use std::rc::Rc;
use tsumugi_conformance::Seeded;
use tsumugi_core::mem::{Access, AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::sim::{
    Actor, Net, NetPartition, Seeds, SimConfig, SimEvent, SimNode, check, few,
};
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;
use tsumugi_core::tag::Tag;
use tsumugi_core::time::Instant;
use tsumugi_gas::lock::{
    ClaimEnd, ClaimStatus, LOCK_BYTES, Lock, LockClaim, LockKind, LockMode, NODE_BYTES, NodeId,
    NodePool, NodeSlot, NodeTable, StepId,
};

/// The ranks that are inside, as an observer sees them.
#[derive(Default)]
struct Inside {
    readers: u32,
    writers: u32,
    entries: u32,
}

/// A rank that claims a lock again and again.
struct Claimant {
    lock: Lock,
    inside: Rc<RefCell<Inside>>,
    claim: LockClaim,
    slots: [NodeSlot; SLOTS],
    draw: Seeded,
    left: u32,
    /// The number of the claim, by which completions of earlier claims are recognized.
    number: u64,
    mode: LockMode,
    is_inside: bool,
    may_leave: bool,
    lost: Option<Rank>,
    ended: Result<(), AddrError>,
}

impl Claimant {
    fn new(lock: Lock, rank: Rank, seed: u64, inside: &Rc<RefCell<Inside>>) -> Self {
        Self {
            lock,
            inside: Rc::clone(inside),
            claim: LockClaim::new(lock, NodeId::NONE),
            slots: Default::default(),
            draw: Seeded(seed ^ u64::from(rank.0) << 32),
            left: few(ACTS.into()) as u32,
            number: 0,
            mode: LockMode::Shared,
            is_inside: false,
            may_leave: false,
            lost: None,
            ended: Ok(()),
        }
    }

    fn is_done(&self) -> bool {
        self.ended.is_ok() && self.left == 0 && !self.is_inside
    }

    fn begin(&mut self, node: &SimNode<'_>) {
        self.left -= 1;
        self.number += 1;
        let (key, offset) = (self.lock.nodes.key, self.lock.nodes.offset);
        let load = |slot: usize| node.load(key, offset + slot as u64 * NODE_BYTES).unwrap();
        let mut pool = NodePool::new(node.rank(), &mut self.slots);
        // Abandoned nodes may be in queues for long: then the rank claims nothing this time.
        let Some(own) = pool.try_take(load) else { return };
        self.claim = LockClaim::new(self.lock, own);
        let writes = self.draw.below(1_000) < 400 || self.lock.kind == LockKind::Mutex;
        self.mode = if writes { LockMode::Exclusive } else { LockMode::Shared };
        if self.draw.below(1_000) < 200 {
            self.claim.begin_try(self.mode);
        } else {
            self.claim.begin(self.mode);
            self.may_leave = self.draw.below(1_000) < 300;
        }
    }

    fn enter(&mut self, node: &SimNode<'_>) {
        let mut inside = self.inside.borrow_mut();
        let alone = self.mode == LockMode::Exclusive;
        assert!(inside.writers == 0, "{} goes in to a writer", node.rank());
        assert!(!alone || inside.readers == 0, "the writer {} goes in to readers", node.rank());
        if alone {
            inside.writers += 1;
        } else {
            inside.readers += 1;
        }
        inside.entries += 1;
        self.is_inside = true;
        let stay = self.draw.below(3_000);
        node.wake_at(Instant::from_ns(node.now().as_ns() + stay), self.number << 1);
    }

    fn exit(&mut self) {
        let mut inside = self.inside.borrow_mut();
        if self.mode == LockMode::Exclusive {
            inside.writers -= 1;
        } else {
            inside.readers -= 1;
        }
        self.is_inside = false;
    }

    fn drive(&mut self, node: &SimNode<'_>) {
        loop {
            if let Some(rank) = self.lost {
                self.claim.handle_lost(rank);
            }
            if let Some((word, until)) = self.claim.waits_for() {
                let value = node.load(word.key, word.offset).unwrap();
                if until.holds(value) {
                    self.claim.handle_word(value);
                } else if core::mem::take(&mut self.may_leave) {
                    let patience = self.draw.below(20_000);
                    let at = Instant::from_ns(node.now().as_ns() + patience);
                    node.wake_at(at, self.number << 1 | 1);
                }
            }
            if let Some((id, op)) = self.claim.poll_op() {
                let tag = Tag::from_bits(self.number << 32 | u64::from(id.to_bits()));
                node.post(&op.tagged(tag));
            }
            match self.claim.standing() {
                ClaimStatus::Held if !self.is_inside => return self.enter(node),
                ClaimStatus::Held | ClaimStatus::Asking | ClaimStatus::Going => return,
                ClaimStatus::Failed(error) => {
                    self.ended = Err(error);
                    return;
                }
                ClaimStatus::Resting(ended) => {
                    if self.claim.node() != NodeId::NONE {
                        let left = ended == ClaimEnd::Left { in_queue: true };
                        let own = self.claim.node();
                        NodePool::new(node.rank(), &mut self.slots).release(own, left);
                        self.claim = LockClaim::new(self.lock, NodeId::NONE);
                    }
                    if self.left == 0 {
                        return;
                    }
                    self.begin(node);
                }
            }
        }
    }
}

impl Actor for Claimant {
    fn on_event(&mut self, node: &SimNode<'_>, event: SimEvent) {
        match event {
            SimEvent::Completed(done) if done.tag.to_bits() >> 32 == self.number => {
                let id = StepId::from_bits(done.tag.to_bits() as u32);
                self.claim.handle_completed(id, done.result);
            }
            SimEvent::Timer(token) if token == self.number << 1 && self.is_inside => {
                self.exit();
                self.claim.release();
            }
            SimEvent::Timer(token) if token == self.number << 1 | 1 => {
                self.claim.leave();
            }
            SimEvent::PeerLost(rank) => self.lost = Some(rank),
            _ => {}
        }
        self.drive(node);
    }
}

fn claimants(net: &Net, kind: LockKind, seed: u64) -> (Lock, Vec<Claimant>, Rc<RefCell<Inside>>) {
    let inside = Rc::default();
    let key = RegionKey::new(0, 1);
    let nodes = NodeTable { key, offset: EPOCHS * LOCK_BYTES };
    let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
    let lock = Lock { home, nodes, kind };
    let claimants = (0..net.config().nodes).map(Rank).map(|rank| {
        let bytes = EPOCHS * LOCK_BYTES + SLOTS as u64 * NODE_BYTES;
        let region = net.node(rank).allocate(bytes, Access::ReadWrite).unwrap();
        assert_eq!(region.key, key);
        Claimant::new(lock, rank, seed, &inside)
    });
    let claimants = claimants.collect();
    (lock, claimants, inside)
}

fn all_end(seed: u64) {
    let mut draw = Seeded(seed);
    let nodes = 2 + few(draw.below(7)) as u32;
    let kind = KINDS[draw.below(4) as usize];
    let net = Net::new(SimConfig::drawn(nodes, seed));
    let (_, mut claimants, inside) = claimants(&net, kind, seed);
    net.run(&mut claimants);
    for (rank, claimant) in claimants.iter().enumerate() {
        assert!(claimant.is_done(), "{kind:?}: {rank} waits for ever: {:?}", claimant.claim);
    }
    assert!(inside.borrow().entries > 0, "no rank was inside");
}

#[test]
fn claims_exclude_each_other_on_any_network() {
    check(SEEDS, all_end);
}

#[cfg(debug_assertions)]
#[test]
fn broken_claims_are_caught_on_a_network_too() {
    use std::panic::catch_unwind;
    let caught = |seed: &u64| catch_unwind(|| all_end(*seed)).is_err();
    for mutant in ["lock_hand_over_unchecked", "lock_left_unnoticed", "lock_recheck_skipped"] {
        let found = with_mutant(mutant, || PLANTED.into_iter().find(caught));
        let seed = found.unwrap_or_else(|| panic!("{mutant} was not caught"));
        println!("seed {seed} catches {mutant}");
    }
}

/// The network is cut and heals, and ranks give each other up. All ranks that have not ended
/// then enter or learn why not, no rank is inside with a writer, also not with a live rank that
/// others have given up; and at the home of the lock the next epoch is free, whatever arrives
/// late.
fn parted(seed: u64) -> u32 {
    let mut failed = 0;
    let mut draw = Seeded(seed);
    let nodes = 2 + few(draw.below(6)) as u32;
    let kind = KINDS[draw.below(4) as usize];
    let net = Net::new(SimConfig::drawn(nodes, seed));
    let (lock, mut ranks, inside) = claimants(&net, kind, seed);
    let parting = NetPartition::drawn(nodes, seed, 200_000, Rank(0));
    net.start(&mut ranks);
    parting.run(&net, &mut ranks, |ranks, ended| {
        let claimant = &mut ranks[ended.0 as usize];
        if claimant.is_inside {
            claimant.exit();
        }
    });
    net.run_until(Instant::from_ns(u64::MAX), &mut ranks);
    let living = || (0..nodes).map(Rank).filter(|rank| !parting.has_ended(*rank));
    for rank in living() {
        let claimant = &ranks[rank.0 as usize];
        let names_it = matches!(claimant.ended, Err(AddrError::PeerLost { rank: lost })
                if parting.is_lost(rank, lost));
        failed += u32::from(names_it);
        let ended = names_it || claimant.is_done();
        assert!(ended, "{kind:?}: {rank} hangs: {:?}", claimant.claim);
    }
    *inside.borrow_mut() = Inside::default();
    let with_home = || living().filter(|rank| !parting.parts(*rank, Rank(0)));
    for rank in with_home() {
        let claimant = &mut ranks[rank.0 as usize];
        let (number, slots) = (claimant.number + 1, claimant.slots);
        *claimant = Claimant::new(lock.epoch(1), rank, seed, &inside);
        (claimant.number, claimant.slots) = (number, slots);
        claimant.drive(&net.node(rank));
    }
    net.run_until(Instant::from_ns(u64::MAX), &mut ranks);
    for rank in with_home() {
        let claimant = &ranks[rank.0 as usize];
        assert!(claimant.is_done(), "{kind:?}: {rank}, second epoch: {:?}", claimant.claim);
    }
    failed
}

#[test]
fn a_live_rank_that_is_given_up_holds_nothing_of_the_next_epoch() {
    let mut failed = 0;
    let is_own = check(SEEDS, |seed| failed += parted(seed));
    println!("{failed} ranks were told of a loss");
    assert!(failed > 0 || !is_own);
}

/// A rank other than the lock's home dies, at any place and time. All other ranks end, or get an
/// error that names it; and when they have, the lock of the next epoch is free.
#[test]
fn a_death_ends_every_claim_and_the_next_epoch_is_free() {
    let mut failed = 0;
    let is_own = check(SEEDS, |seed| {
        let mut draw = Seeded(seed);
        let nodes = 3 + few(draw.below(5)) as u32;
        let kind = KINDS[draw.below(4) as usize];
        let net = Net::new(SimConfig::drawn(nodes, seed));
        let (lock, mut ranks, inside) = claimants(&net, kind, seed);
        let dead = Rank(1 + draw.below(u64::from(nodes) - 1) as u32);
        net.start(&mut ranks);
        net.run_until(Instant::from_ns(draw.below(200_000)), &mut ranks);
        net.kill(dead);
        if ranks[dead.0 as usize].is_inside {
            ranks[dead.0 as usize].exit();
        }
        net.run_until(Instant::from_ns(u64::MAX), &mut ranks);
        let living = || (0..nodes).map(Rank).filter(|&rank| rank != dead);
        for rank in living() {
            let claimant = &ranks[rank.0 as usize];
            let names_it = claimant.ended == Err(AddrError::PeerLost { rank: dead });
            failed += u32::from(names_it);
            let ended = names_it || claimant.is_done();
            assert!(ended, "{kind:?}: {rank} hangs: {:?}", claimant.claim);
        }
        // The living ranks agree on the next epoch and continue.
        *inside.borrow_mut() = Inside::default();
        for rank in living() {
            let claimant = &mut ranks[rank.0 as usize];
            let (number, slots) = (claimant.number + 1, claimant.slots);
            *claimant = Claimant::new(lock.epoch(1), rank, seed, &inside);
            (claimant.number, claimant.slots) = (number, slots);
            claimant.drive(&net.node(rank));
        }
        net.run_until(Instant::from_ns(u64::MAX), &mut ranks);
        for rank in living() {
            let claimant = &ranks[rank.0 as usize];
            assert!(claimant.is_done(), "{kind:?}: {rank}, second epoch: {:?}", claimant.claim);
        }
    });
    println!("{failed} ranks were told of a death");
    assert!(failed > 0 || !is_own);
}

const KINDS: [LockKind; 4] =
    [LockKind::Mutex, LockKind::Readers, LockKind::Neutral, LockKind::Writers];
/// The seeds that every commit tries anew.
const SEEDS: Seeds = Seeds::new(1_000);
/// The seeds that catch each planted defect: always the same.
#[cfg(debug_assertions)]
const PLANTED: std::ops::Range<u64> = 0..1_000;
const ACTS: u32 = 6;
const SLOTS: usize = 8;
const EPOCHS: u64 = 2;
