//! Claims to one lock, every interleaving of them.

#[cfg(debug_assertions)]
use crate::search::Failure;
use crate::search::{Model, explore};
use std::env;
use tsumugi_core::mem::{Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind as OpKind, Op};
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;
use tsumugi_gas::lock::{
    ClaimEnd, ClaimStatus, Lock, LockClaim, LockKind, LockMode, NODE_BYTES, NodePool, NodeSlot,
    NodeTable,
};

/// The program of a rank: claims, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Act {
    mode: LockMode,
    is_try: bool,
    /// Whether the rank may give up at any time.
    is_impatient: bool,
}

const READ: Act = Act { mode: LockMode::Shared, is_try: false, is_impatient: false };
const WRITE: Act = Act { mode: LockMode::Exclusive, ..READ };
const TRY_READ: Act = Act { is_try: true, ..READ };
const TRY_WRITE: Act = Act { is_try: true, ..WRITE };
const READ_FOR_A_WHILE: Act = Act { is_impatient: true, ..READ };
const WRITE_FOR_A_WHILE: Act = Act { is_impatient: true, ..WRITE };

struct Claims {
    kind: LockKind,
    acts: Vec<Vec<Act>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    /// The lock's words, and then two for each node.
    memory: Vec<u64>,
    ranks: Vec<Member>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Member {
    claim: LockClaim,
    slots: [NodeSlot; SLOTS],
    done: usize,
    /// The posted operations, and whether the claim waits for the end of each.
    flights: Vec<(Flight, bool)>,
    /// Whether the rank has the lock: from the moment at which it learns so until the first step of
    /// its release.
    is_inside: bool,
    /// The number of writers that entered since the rank began to wait.
    overtaken: u8,
    /// Whether its writer was the next one when the last writer entered.
    is_due: bool,
    /// The rank behind whose writer its own writer is next.
    next_to: Option<usize>,
}

/// An operation, reduced to what matters for the state.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Flight {
    kind: u8,
    at: usize,
    operand: u64,
    compare: u64,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// An operation takes effect, and its end is known.
    Perform { rank: usize, index: usize },
    /// A claim sees that its word has changed.
    Notice { rank: usize },
    /// A claim gives up.
    Leave { rank: usize },
}

impl Claims {
    fn new(kind: LockKind, acts: &[&[Act]]) -> Self {
        Self { kind, acts: acts.iter().map(|acts| acts.to_vec()).collect() }
    }

    fn lock(&self) -> Lock {
        let nodes = NodeTable { key: RegionKey::new(1, 1), offset: 0 };
        let home = RemoteAddr { rank: Rank(0), key: RegionKey::new(0, 1), offset: 0 };
        Lock { home, nodes, kind: self.kind }
    }

    /// Runs the steps of a rank that no other rank can see: begin, continue, post.
    fn drive(&self, world: &mut World, rank: usize) -> Result<(), String> {
        loop {
            let member = &mut world.ranks[rank];
            if let ClaimStatus::Resting(ended) = member.claim.standing()
                && member.claim.node().to_bits() != 0
            {
                let left = matches!(ended, ClaimEnd::Left { in_queue: true });
                let node = member.claim.node();
                NodePool::new(Rank(rank as u32), &mut member.slots).release(node, left);
                member.claim = LockClaim::new(self.lock(), Default::default());
            }
            match member.claim.standing() {
                ClaimStatus::Resting(_) if member.done < self.acts[rank].len() => {
                    if member.claim.under_way().is_some() || !member.flights.is_empty() {
                        return Ok(());
                    }
                    let act = self.acts[rank][member.done];
                    member.done += 1;
                    let load = |slot: usize| world.memory[node_word(rank, slot)];
                    let mut pool = NodePool::new(Rank(rank as u32), &mut member.slots);
                    let Some(node) = pool.try_take(load) else {
                        // All nodes are still in queues: the claim has no node.
                        continue;
                    };
                    member.claim = LockClaim::new(self.lock(), node);
                    match act.is_try {
                        true => member.claim.begin_try(act.mode),
                        false => member.claim.begin(act.mode),
                    }
                }
                ClaimStatus::Held => {
                    self.enter(world, rank)?;
                    world.ranks[rank].claim.release();
                }
                _ => {}
            }
            let member = &mut world.ranks[rank];
            if let Some((id, op)) = member.claim.poll_op() {
                let is_waited_for = member.claim.under_way() == Some(id);
                member.flights.push((Flight::of(&op), is_waited_for));
                if !is_waited_for {
                    continue;
                }
            }
            return Ok(());
        }
    }

    /// Records that a rank has learned that it has the lock.
    fn enter(&self, world: &mut World, rank: usize) -> Result<(), String> {
        let writes = self.acts[rank][world.ranks[rank].done - 1].mode == LockMode::Exclusive;
        let alone = writes || self.kind == LockKind::Mutex;
        for (other, member) in world.ranks.iter().enumerate() {
            let other_writes =
                member.done > 0 && self.acts[other][member.done - 1].mode == LockMode::Exclusive;
            if member.is_inside && (alone || other_writes) {
                return Err(format!("{rank} is inside with {other}"));
            }
        }
        if writes {
            for member in &mut world.ranks {
                member.overtaken += 1;
                member.is_due = member.next_to == Some(rank);
            }
            world.ranks[rank].is_due = false;
            world.ranks[rank].next_to = None;
        } else if self.kind != LockKind::Mutex {
            if self.kind != LockKind::Writers && world.ranks[rank].overtaken > 1 {
                let times = world.ranks[rank].overtaken;
                return Err(format!("{times} writers passed the reader {rank}"));
            }
            let due = world.ranks.iter().position(|member| member.is_due);
            if let (LockKind::Writers, Some(writer)) = (self.kind, due) {
                return Err(format!("the reader {rank} passed the writer {writer}"));
            }
        }
        world.ranks[rank].is_inside = true;
        Ok(())
    }

    fn perform(&self, world: &mut World, rank: usize, index: usize) -> Result<(), String> {
        let (flight, is_waited_for) = world.ranks[rank].flights.remove(index);
        let word = &mut world.memory[flight.at];
        let old = *word;
        *word = flight.apply(old);
        let is_node = flight.at >= LOCK_WORDS;
        let is_state = is_node && (flight.at - LOCK_WORDS).is_multiple_of(2);
        let is_cas = flight.kind == OpKind::CompareSwap as u8;
        let gives_up = flight.operand & 0xff == u64::from(LEFT);
        if is_cas && is_state && old != flight.compare && !gives_up && old & 0xff != LEFT.into() {
            return Err(format!("{rank} wakes a claim that does not wait: {old:#x}"));
        }
        let member = &mut world.ranks[rank];
        if is_cas && is_node && !is_state && old == flight.compare {
            member.next_to = Some((flight.at - LOCK_WORDS) / 2 / SLOTS);
        }
        if flight.at == 0 && flight.kind == OpKind::FetchAdd as u8 && !member.is_inside {
            member.overtaken = 0;
        }
        if is_cas && is_state && gives_up && old == flight.compare {
            (member.next_to, member.is_due) = (None, false);
        }
        member.is_inside = false;
        if is_waited_for {
            let id = member.claim.under_way().expect("the claim waits for this operation");
            member.claim.handle_completed(id, Ok(old));
        }
        self.drive(world, rank)
    }
}

impl Model for Claims {
    type State = World;
    type Step = Step;

    fn start(&self) -> World {
        let ranks = self.acts.len();
        let member = Member {
            claim: LockClaim::new(self.lock(), Default::default()),
            slots: Default::default(),
            done: 0,
            flights: Vec::new(),
            is_inside: false,
            overtaken: 0,
            is_due: false,
            next_to: None,
        };
        let memory = vec![0; LOCK_WORDS + ranks * SLOTS * 2];
        let mut world = World { memory, ranks: vec![member; ranks] };
        for rank in 0..ranks {
            self.drive(&mut world, rank).expect("no rank is inside yet");
        }
        world
    }

    fn steps(&self, world: &World, steps: &mut Vec<Step>) {
        for (rank, member) in world.ranks.iter().enumerate() {
            for index in 0..member.flights.len() {
                steps.push(Step::Perform { rank, index });
            }
            if let Some((word, until)) = member.claim.waits_for() {
                if until.holds(world.memory[address(word)]) {
                    steps.push(Step::Notice { rank });
                }
                if self.acts[rank][member.done - 1].is_impatient {
                    steps.push(Step::Leave { rank });
                }
            }
        }
    }

    fn apply(&self, world: &mut World, step: Step) -> Result<(), String> {
        match step {
            Step::Perform { rank, index } => self.perform(world, rank, index),
            Step::Notice { rank } => {
                let claim = &mut world.ranks[rank].claim;
                let (word, _) = claim.waits_for().expect("the claim waits");
                claim.handle_word(world.memory[address(word)]);
                self.drive(world, rank)
            }
            Step::Leave { rank } => {
                assert!(world.ranks[rank].claim.leave());
                self.drive(world, rank)
            }
        }
    }

    fn at_rest(&self, world: &World) -> Result<(), String> {
        for (rank, member) in world.ranks.iter().enumerate() {
            let is_resting = matches!(member.claim.standing(), ClaimStatus::Resting(_));
            if !is_resting || member.done < self.acts[rank].len() {
                return Err(format!("{rank} waits for ever: {:?}", member.claim));
            }
            for (slot, state) in member.slots.iter().enumerate() {
                let word = world.memory[node_word(rank, slot)];
                let mut pool = [*state];
                let is_free = NodePool::new(Rank(0), &mut pool).try_take(|_| word).is_some();
                if !is_free {
                    return Err(format!("node {slot} of {rank} is lost"));
                }
            }
        }
        let [count, tail, _, readers, others, ..] = world.memory[..] else { unreachable!() };
        // The counts of readers that have left remain, and so does the phase.
        let phases = matches!(self.kind, LockKind::Neutral | LockKind::Writers);
        let rest = if phases { count & 0x1_ffff_fffb } else { count };
        match rest | tail | readers | others {
            0 => Ok(()),
            _ => Err(format!("the lock is left at {:x?}", &world.memory[..5])),
        }
    }

    fn tell(&self, world: &World, step: Step) -> String {
        let (rank, what) = match step {
            Step::Perform { rank, index } => {
                let flight = world.ranks[rank].flights[index].0;
                let word = world.memory[flight.at];
                (rank, format!("word {} of {word:#x}: {flight:x?}", flight.at))
            }
            Step::Notice { rank } => (rank, "its word".to_owned()),
            Step::Leave { rank } => (rank, "gives up".to_owned()),
        };
        format!("{rank}: {what}")
    }
}

impl Flight {
    fn of(op: &Op) -> Self {
        let (operand, compare) = (op.operand(), op.compare());
        Self { kind: op.kind as u8, at: address(op.remote), operand, compare }
    }

    fn apply(&self, old: u64) -> u64 {
        match self.kind {
            kind if kind == OpKind::GetWord as u8 => old,
            kind if kind == OpKind::FetchAdd as u8 => old.wrapping_add(self.operand),
            kind if kind == OpKind::CompareSwap as u8 && old != self.compare => old,
            _ => self.operand,
        }
    }
}

impl std::fmt::Debug for Flight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = [OpKind::PutWord, OpKind::GetWord, OpKind::FetchAdd, OpKind::Swap];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == self.kind);
        write!(f, "{:?} {:x}", kind.unwrap_or(OpKind::CompareSwap), self.operand)?;
        if kind.is_none() { write!(f, " if {:x}", self.compare) } else { Ok(()) }
    }
}

const fn node_word(rank: usize, slot: usize) -> usize {
    LOCK_WORDS + (rank * SLOTS + slot) * 2
}

fn address(remote: RemoteAddr) -> usize {
    let word = (remote.offset / 8) as usize;
    match remote.key.index() {
        0 => word,
        _ => node_word(remote.rank.0 as usize, 0) + word,
    }
}

const LOCK_WORDS: usize = 8;
const SLOTS: usize = 2;
const LEFT: u8 = 4;
const STATES_MAX: usize = 40_000_000;
const _: () = assert!(NODE_BYTES == 16);

const KINDS: [LockKind; 4] =
    [LockKind::Mutex, LockKind::Readers, LockKind::Neutral, LockKind::Writers];

/// Small programs, those with the fewest states first.
fn programs() -> Vec<Vec<&'static [Act]>> {
    vec![
        vec![&[WRITE], &[WRITE]],
        vec![&[READ, WRITE], &[WRITE, READ]],
        vec![&[WRITE, WRITE], &[WRITE, WRITE]],
        vec![&[READ], &[READ], &[WRITE]],
        vec![&[READ], &[WRITE], &[WRITE]],
        vec![&[WRITE], &[WRITE], &[WRITE]],
        vec![&[TRY_READ, READ], &[WRITE, TRY_WRITE]],
        vec![&[READ], &[READ], &[WRITE, WRITE]],
        vec![&[TRY_READ], &[TRY_WRITE], &[WRITE]],
        vec![&[READ_FOR_A_WHILE, READ], &[WRITE, WRITE]],
        vec![&[WRITE_FOR_A_WHILE, WRITE], &[WRITE, READ]],
        vec![&[READ_FOR_A_WHILE], &[READ_FOR_A_WHILE], &[WRITE]],
        vec![&[WRITE_FOR_A_WHILE], &[WRITE_FOR_A_WHILE], &[WRITE]],
        vec![&[WRITE_FOR_A_WHILE], &[READ], &[WRITE]],
        vec![&[WRITE_FOR_A_WHILE], &[READ_FOR_A_WHILE], &[WRITE]],
        vec![&[READ, WRITE], &[WRITE, READ], &[WRITE]],
    ]
}

/// Larger programs: seconds to minutes in a release build.
fn large() -> Vec<Vec<&'static [Act]>> {
    vec![
        vec![&[READ, READ], &[WRITE, WRITE], &[READ, WRITE]],
        vec![&[READ], &[READ], &[WRITE], &[WRITE]],
        vec![&[READ], &[WRITE], &[WRITE], &[WRITE]],
        vec![&[READ, READ], &[READ], &[WRITE], &[WRITE]],
        vec![&[WRITE_FOR_A_WHILE], &[READ_FOR_A_WHILE], &[WRITE], &[READ]],
        vec![&[WRITE_FOR_A_WHILE, READ], &[READ_FOR_A_WHILE, WRITE], &[WRITE, READ]],
        vec![&[WRITE_FOR_A_WHILE], &[WRITE_FOR_A_WHILE], &[READ_FOR_A_WHILE], &[WRITE]],
    ]
}

#[test]
fn claims_exclude_each_other_and_all_end() {
    let mut programs = programs();
    if env::var_os("TSUMUGI_TEST_LARGE").is_some() {
        programs.extend(large());
    }
    for kind in KINDS {
        let mut states = 0;
        for acts in &programs {
            let found = explore(&Claims::new(kind, acts), STATES_MAX);
            states += found.unwrap_or_else(|failure| panic!("{kind:?}, {acts:?}: {failure:?}"));
        }
        println!("{kind:?}: {} programs, {states} states", programs.len());
    }
}

#[cfg(debug_assertions)]
#[test]
fn claims_with_a_rule_broken_are_caught() {
    for mutant in MUTANTS {
        let found: Option<(LockKind, &[&[Act]], Failure)> = with_mutant(mutant, || {
            let programs = programs().leak();
            programs.iter().find_map(|acts| {
                KINDS.iter().find_map(|&kind| {
                    let failure = explore(&Claims::new(kind, acts), STATES_MAX).err()?;
                    Some((kind, &acts[..], failure))
                })
            })
        });
        let found = found.unwrap_or_else(|| panic!("{mutant} was not caught"));
        let (kind, acts, failure) = found;
        println!("{mutant}: {kind:?}, {acts:?}: {failure:?}");
    }
}

#[cfg(debug_assertions)]
const MUTANTS: [&str; 19] = [
    "lock_cas_as_boolean",
    "lock_drain_unasked",
    "lock_hand_over_unchecked",
    "lock_head_unflushed",
    "lock_left_counted",
    "lock_left_unnoticed",
    "lock_link_lost",
    "lock_new_value_tested",
    "lock_next_before_wait",
    "lock_next_not_reset",
    "lock_own_next_woken",
    "lock_phase_ignored",
    "lock_preference_lost",
    "lock_readers_not_woken",
    "lock_recheck_early",
    "lock_recheck_skipped",
    "lock_state_late",
    "lock_sweep_unguarded",
    "lock_take_unchecked",
];
