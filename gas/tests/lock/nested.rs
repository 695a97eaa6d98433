//! Accesses to a window by the tree, with one hold inside another: every interleaving of entries,
//! claims and vertices together.

use crate::explore_each;
use crate::search::Model;
#[cfg(debug_assertions)]
use crate::search::explore;
use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind as OpKind, Op};
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;
use tsumugi_gas::lock::{
    AccessWait, LOCK_BYTES, Lock, LockDesign, LockKind, LockPlan, NODE_BYTES, NodeId, NodePool,
    NodeSlot, NodeTable, RankMembership, StepId, Tree, Vertex, VertexStep, Want, WindowAccess,
};

/// The hold of a rank, and the hold inside of it.
#[derive(Clone, Copy, Debug)]
struct Act(Want, Option<Want>);

const ALL: Act = Act(Want::All, None);
const FIRST: Act = Act(Want::Exclusive(Rank(0)), None);
const SECOND: Act = Act(Want::Exclusive(Rank(1)), None);
const BOTH: Act = Act(Want::Exclusive(Rank(0)), Some(Want::Exclusive(Rank(1))));
const ONE_AND_SHARED: Act = Act(Want::Exclusive(Rank(0)), Some(Want::Shared(Rank(1))));
const SHARED_AND_ONE: Act = Act(Want::Shared(Rank(0)), Some(Want::Exclusive(Rank(1))));

#[derive(Clone, Copy, Debug)]
struct Program {
    per_leaf: u32,
    arity: u32,
    ranks: &'static [&'static [Act]],
}

struct Windows {
    program: Program,
    plan: LockPlan,
    /// The index of the first word of each rank.
    starts: Vec<usize>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    memory: Vec<u64>,
    members: Vec<Member>,
    runs: Vec<Run>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Member {
    done: usize,
    accesses: [WindowAccess; 2],
    membership: RankMembership,
    nodes: [NodeId; 2],
    slots: [NodeSlot; 2],
    /// The hold of each access, from the moment at which it is known until the first step out.
    held: [Option<Want>; 2],
    flights: [Option<Flight>; 2],
    /// Whether the inner hold was had, so that the rank leaves.
    is_going: bool,
}

/// A vertex, and the operations that it has posted.
#[derive(Clone)]
struct Run {
    vertex: Vertex,
    flights: Vec<(VertexStep, Flight)>,
    /// A word of its rank has changed.
    is_rung: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Flight {
    kind: u8,
    at: usize,
    operand: u64,
    compare: u64,
    notify: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Access { rank: usize, index: usize },
    Notice { rank: usize, index: usize },
    Vertex { index: usize, flight: usize },
    Look { index: usize },
}

impl Windows {
    fn new(program: Program) -> Self {
        let (ranks, key) = (program.ranks.len() as u32, RegionKey::new(0, 1));
        let tree = Tree::new(ranks, program.per_leaf, program.arity, key, TREE).unwrap();
        let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
        let nodes = NodeTable { key, offset: LOCK_BYTES };
        let lock = Lock { home, nodes, kind: LockKind::Readers };
        let mut starts = vec![0];
        for rank in (0..ranks).map(Rank) {
            starts.push(starts.last().unwrap() + (TREE + tree.bytes_of(rank)) as usize / 8);
        }
        Self { program, plan: LockPlan { design: LockDesign::Tree, lock, tree }, starts }
    }

    fn at(&self, addr: RemoteAddr) -> usize {
        self.starts[addr.rank.0 as usize] + (addr.offset / 8) as usize
    }

    fn flight(&self, op: &Op) -> Flight {
        let (operand, compare) = (op.operand(), op.compare());
        Flight { kind: op.kind as u8, at: self.at(op.remote), operand, compare, notify: op.notify }
    }

    /// Runs the steps of a rank that no other rank can see.
    fn drive(&self, world: &mut World, rank: usize) -> Result<(), String> {
        while self.moves(world, rank)? {}
        Ok(())
    }

    fn moves(&self, world: &mut World, rank: usize) -> Result<bool, String> {
        let member = &mut world.members[rank];
        for index in 0..2 {
            let access = &mut member.accesses[index];
            if member.flights[index].is_none()
                && let Some((_, op)) = access.poll_op(&mut member.membership)
            {
                member.flights[index] = Some(self.flight(&op));
                return Ok(true);
            }
            match access.poll_done() {
                Some(Err(error)) => return Err(format!("{rank}: {error}")),
                Some(Ok(())) => {}
                None => continue,
            }
            let is_held = access.is_held();
            if is_held && member.held[index].is_none() {
                return self.enter(world, rank, index).map(|()| true);
            }
            if !is_held && member.nodes[index] != NodeId::NONE {
                let node = std::mem::take(&mut member.nodes[index]);
                NodePool::new(Rank(rank as u32), &mut member.slots).release(node, false);
                member.held[index] = None;
                // The outer hold ends after the inner one.
                member.is_going = index == 1;
                return Ok(true);
            }
        }
        let member = &mut world.members[rank];
        let acts = self.program.ranks[rank];
        if member.nodes == [NodeId::NONE; 2] {
            let Some(Act(want, _)) = acts.get(member.done) else { return Ok(false) };
            member.done += 1;
            member.begin(rank, 0, *want);
            return Ok(true);
        }
        if member.accesses[0].is_held() && member.held[0].is_some() {
            match acts[member.done - 1].1 {
                Some(inner) if !member.is_going => {
                    if member.nodes[1] != NodeId::NONE {
                        return Ok(false);
                    }
                    member.begin(rank, 1, inner);
                }
                _ => member.release(0),
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Records that a rank has learned that it has a hold.
    fn enter(&self, world: &mut World, rank: usize, index: usize) -> Result<(), String> {
        let Act(outer, inner) = self.program.ranks[rank][world.members[rank].done - 1];
        let want = if index == 0 { outer } else { inner.expect("the inner hold was requested") };
        for (other, member) in world.members.iter().enumerate() {
            let beside = member.held.iter().flatten().find(|held| !are_compatible(**held, want));
            if let Some(held) = beside.filter(|_| other != rank) {
                return Err(format!("{rank} has {want:?} while {other} has {held:?}"));
            }
        }
        let member = &mut world.members[rank];
        member.held[index] = Some(want);
        if index == 1 {
            member.release(1);
        }
        Ok(())
    }

    fn look(&self, world: &mut World, index: usize) {
        let (memory, run) = (&world.memory, &mut world.runs[index]);
        run.is_rung = false;
        let load = |addr| Ok::<u64, AddrError>(memory[self.at(addr)]);
        run.vertex.handle_words(load).expect("the vertex's own words");
        while let Some((step, op)) = run.vertex.poll_op() {
            run.flights.push((step, self.flight(&op)));
        }
        run.flights.sort_by_key(|(_, flight)| flight.at);
    }

    fn land(&self, world: &mut World, flight: Flight) -> u64 {
        let word = &mut world.memory[flight.at];
        let old = *word;
        *word = flight.apply(old);
        if flight.notify {
            let home = self.starts.partition_point(|&start| start <= flight.at) - 1;
            for run in &mut world.runs {
                let mut of_home = self.plan.tree.vertices_of(Rank(home as u32));
                run.is_rung |= of_home.any(|id| id == run.vertex.id());
            }
        }
        old
    }
}

impl Member {
    fn begin(&mut self, rank: usize, index: usize, want: Want) {
        let mut pool = NodePool::new(Rank(rank as u32), &mut self.slots);
        let node = pool.try_take(|_| 0).expect("a node for each access");
        self.nodes[index] = node;
        self.accesses[index].begin(&mut self.membership, want, node).expect("in order");
    }

    fn release(&mut self, index: usize) {
        self.accesses[index].release(&mut self.membership);
        // With nothing to post, the hold is released already.
        if index == 1 {
            self.is_going = true;
        }
    }
}

fn are_compatible(a: Want, b: Want) -> bool {
    match (a, b) {
        (Want::Exclusive(a), Want::Exclusive(b) | Want::Shared(b))
        | (Want::Shared(a), Want::Exclusive(b)) => a != b,
        (Want::All, Want::Exclusive(_)) | (Want::Exclusive(_), Want::All) => false,
        (Want::All | Want::Shared(_), Want::All | Want::Shared(_)) => true,
    }
}

impl Model for Windows {
    type State = World;
    type Step = Step;

    fn start(&self) -> World {
        let ranks = (0..self.program.ranks.len() as u32).map(Rank);
        let member = |rank| Member {
            done: 0,
            accesses: [(); 2].map(|()| WindowAccess::new(self.plan)),
            membership: RankMembership::new(&self.plan, rank),
            nodes: Default::default(),
            slots: Default::default(),
            held: [None; 2],
            flights: [None; 2],
            is_going: false,
        };
        let tree = self.plan.tree;
        let run = |id| Run { vertex: Vertex::new(tree, id), flights: vec![], is_rung: false };
        let mut world = World {
            memory: vec![0; *self.starts.last().unwrap()],
            members: ranks.clone().map(member).collect(),
            runs: ranks.flat_map(|rank| tree.vertices_of(rank)).map(run).collect(),
        };
        for rank in 0..self.program.ranks.len() {
            self.drive(&mut world, rank).expect("no rank is inside yet");
        }
        world
    }

    fn steps(&self, world: &World, steps: &mut Vec<Step>) {
        for (rank, member) in world.members.iter().enumerate() {
            for index in 0..2 {
                if member.flights[index].is_some() {
                    steps.push(Step::Access { rank, index });
                } else if let Some(AccessWait::Word(word, until)) =
                    member.accesses[index].waits_for(&member.membership)
                    && member.nodes[index] != NodeId::NONE
                    && until.holds(world.memory[self.at(word)])
                {
                    steps.push(Step::Notice { rank, index });
                }
            }
        }
        for (index, run) in world.runs.iter().enumerate() {
            steps.extend((0..run.flights.len()).map(|flight| Step::Vertex { index, flight }));
            if run.is_rung {
                steps.push(Step::Look { index });
            }
        }
    }

    fn apply(&self, world: &mut World, step: Step) -> Result<(), String> {
        match step {
            Step::Access { rank, index } => {
                let member = &mut world.members[rank];
                let flight = member.flights[index].take().expect("an operation in flight");
                if !member.accesses[index].is_held() {
                    member.held[index] = None;
                }
                let old = self.land(world, flight);
                let Member { accesses, membership, .. } = &mut world.members[rank];
                let id: StepId = accesses[index]
                    .under_way(membership)
                    .expect("the access waits for this operation");
                accesses[index].handle_completed(membership, id, Ok(old));
                self.drive(world, rank)
            }
            Step::Notice { rank, index } => {
                let Member { accesses, membership, .. } = &mut world.members[rank];
                let Some(AccessWait::Word(word, _)) = accesses[index].waits_for(membership) else {
                    unreachable!("the access waits for a word")
                };
                accesses[index].handle_wake(membership, world.memory[self.at(word)]);
                self.drive(world, rank)
            }
            Step::Vertex { index, flight } => {
                let (id, flight) = world.runs[index].flights.remove(flight);
                let old = self.land(world, flight);
                world.runs[index].vertex.handle_completed(id, Ok(old));
                self.look(world, index);
                Ok(())
            }
            Step::Look { index } => {
                self.look(world, index);
                Ok(())
            }
        }
    }

    fn at_rest(&self, world: &World) -> Result<(), String> {
        for (rank, member) in world.members.iter().enumerate() {
            let is_resting = member.nodes == [NodeId::NONE; 2];
            if !is_resting || member.done < self.program.ranks[rank].len() {
                return Err(format!("{rank} waits for ever: {:?}", member.accesses));
            }
        }
        Ok(())
    }
}

impl Flight {
    fn apply(&self, old: u64) -> u64 {
        match self.kind {
            kind if kind == OpKind::GetWord as u8 => old,
            kind if kind == OpKind::FetchAdd as u8 => old.wrapping_add(self.operand),
            kind if kind == OpKind::CompareSwap as u8 && old != self.compare => old,
            _ => self.operand,
        }
    }
}

impl Run {
    fn state(&self) -> impl Eq + std::hash::Hash + '_ {
        let flights: Vec<Flight> = self.flights.iter().map(|(_, flight)| *flight).collect();
        (&self.vertex, flights, self.is_rung)
    }
}

impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        self.state() == other.state()
    }
}

impl Eq for Run {}

impl std::hash::Hash for Run {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.state().hash(state);
    }
}

/// One to two levels, those with the fewest states first.
const PROGRAMS: &[Program] = &[
    Program { per_leaf: 2, arity: 2, ranks: &[&[BOTH], &[ALL]] },
    Program { per_leaf: 2, arity: 2, ranks: &[&[BOTH], &[SECOND]] },
    Program { per_leaf: 2, arity: 2, ranks: &[&[ONE_AND_SHARED], &[SECOND]] },
    Program { per_leaf: 2, arity: 2, ranks: &[&[SHARED_AND_ONE], &[FIRST]] },
    Program { per_leaf: 2, arity: 2, ranks: &[&[BOTH], &[ALL, SECOND]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[BOTH], &[ALL]] },
];

/// Larger programs: up to minutes in a release build.
const LARGE: &[Program] = &[
    Program { per_leaf: 2, arity: 2, ranks: &[&[BOTH, ALL], &[ALL, BOTH]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[BOTH], &[BOTH]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[BOTH], &[ALL, SECOND]] },
    Program { per_leaf: 3, arity: 2, ranks: &[&[BOTH], &[ALL], &[SECOND]] },
];

#[test]
fn nested_holds_do_not_deadlock() {
    explore_each(PROGRAMS, LARGE, Windows::new, STATES_MAX);
}

#[cfg(debug_assertions)]
#[test]
fn a_rank_that_leaves_while_it_holds_is_caught() {
    use std::panic::catch_unwind;
    let program = PROGRAMS[0];
    let found = with_mutant("group_left_while_held", || {
        // The second time it leaves, it is not inside: that is a panic.
        catch_unwind(|| explore(&Windows::new(program), STATES_MAX))
    });
    match found {
        Ok(Ok(states)) => panic!("not caught in {states} states"),
        Ok(Err(failure)) => println!("{program:?}: {failure:?}"),
        Err(_) => println!("{program:?}: it leaves twice"),
    }
}

const STATES_MAX: usize = 20_000_000;
const TREE: u64 = (LOCK_BYTES + 2 * NODE_BYTES).next_multiple_of(64);
