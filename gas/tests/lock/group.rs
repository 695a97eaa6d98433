//! A group lock on a tree: every interleaving of ranks that enter and leave.

use crate::explore_each;
use crate::search::Model;
#[cfg(debug_assertions)]
use crate::search::explore;
use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind as OpKind, Op};
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;
use tsumugi_gas::lock::{GroupMember, GroupSide, MemberPlace, StepId, Tree, Vertex, VertexStep};

const A: GroupSide = GroupSide::All;
const X: GroupSide = GroupSide::Exclusive;

/// A tree, and the program of each rank.
#[derive(Clone, Copy, Debug)]
struct Program {
    per_leaf: u32,
    arity: u32,
    ranks: &'static [&'static [GroupSide]],
}

struct Group {
    program: Program,
    tree: Tree,
    /// The index of the first word of each rank.
    starts: Vec<usize>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    memory: Vec<u64>,
    members: Vec<Member>,
    vertices: Vec<Run>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Member {
    entry: GroupMember,
    done: usize,
    flight: Option<Flight>,
    is_inside: bool,
    /// The number of times that its leaf was opened for the other side since its request.
    passed: u8,
}

/// A vertex, and the operations that it has posted.
#[derive(Clone)]
struct Run {
    vertex: Vertex,
    flights: Vec<(VertexStep, Flight)>,
    /// A word of its rank has changed.
    is_rung: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flight {
    adds: bool,
    at: usize,
    operand: u64,
    notify: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Member { rank: usize },
    Notice { rank: usize },
    Vertex { index: usize, flight: usize },
    Look { index: usize },
}

impl Group {
    fn new(program: Program) -> Self {
        let ranks = program.ranks.len() as u32;
        let key = RegionKey::new(0, 1);
        let tree = Tree::new(ranks, program.per_leaf, program.arity, key, 0).unwrap();
        let mut starts = vec![0];
        for rank in (0..ranks).map(Rank) {
            starts.push(starts.last().unwrap() + tree.bytes_of(rank) as usize / 8);
        }
        Self { program, tree, starts }
    }

    fn at(&self, addr: RemoteAddr) -> usize {
        self.starts[addr.rank.0 as usize] + (addr.offset / 8) as usize
    }

    fn flight(&self, op: &Op) -> Flight {
        let (adds, operand) = (op.kind == OpKind::FetchAdd, op.operand());
        Flight { adds, at: self.at(op.remote), operand, notify: op.notify }
    }

    /// Runs the steps of a rank that no other rank can see.
    fn drive(&self, world: &mut World, rank: usize) -> Result<(), String> {
        loop {
            let member = &mut world.members[rank];
            match member.entry.place() {
                MemberPlace::Out if member.done < self.program.ranks[rank].len() => {
                    member.entry.enter(self.program.ranks[rank][member.done]);
                    member.done += 1;
                }
                MemberPlace::In => {
                    let side = member.entry.side();
                    member.is_inside = true;
                    member.entry.leave();
                    let other = |member: &Member| member.is_inside && member.entry.side() != side;
                    if let Some(other) = world.members.iter().position(other) {
                        return Err(format!("{rank} is inside with {other}"));
                    }
                }
                _ => {}
            }
            let member = &mut world.members[rank];
            if let Some((_, op)) = member.entry.poll_op() {
                member.flight = Some(self.flight(&op));
            }
            if member.entry.place() != MemberPlace::In {
                return Ok(());
            }
        }
    }

    fn look(&self, world: &mut World, index: usize) {
        let (memory, run) = (&world.memory, &mut world.vertices[index]);
        run.is_rung = false;
        let load = |addr| Ok::<u64, AddrError>(memory[self.at(addr)]);
        run.vertex.handle_words(load).expect("the vertex's own words");
        while let Some((step, op)) = run.vertex.poll_op() {
            run.flights.push((step, self.flight(&op)));
        }
        run.flights.sort_by_key(|(_, flight)| flight.at);
    }

    /// Checks that a leaf which has opened a side passes no waiting rank of the other side more
    /// often than by the present turn and the next.
    fn opens(&self, world: &mut World, index: usize, flight: Flight) -> Result<(), String> {
        let id = world.vertices[index].vertex.id();
        let first = id.index * self.program.per_leaf;
        let word = flight.at - self.starts[first as usize].min(flight.at);
        let side = match word {
            COME_ALL => A,
            COME_EXCLUSIVE => X,
            _ => return Ok(()),
        };
        if id.level > 0 || !flight.adds || flight.operand != OPEN {
            return Ok(());
        }
        let ranks = first..(first + self.program.per_leaf).min(world.members.len() as u32);
        for rank in ranks {
            let member = &mut world.members[rank as usize];
            if member.entry.waits_for().is_some() && member.entry.side() != side {
                member.passed += 1;
                if member.passed > PASSED_MAX {
                    return Err(format!("{rank} was passed {} times", member.passed));
                }
            }
        }
        Ok(())
    }

    fn land(&self, world: &mut World, flight: Flight) -> u64 {
        let word = &mut world.memory[flight.at];
        let old = *word;
        *word = if flight.adds { old.wrapping_add(flight.operand) } else { flight.operand };
        if flight.notify {
            let home = self.starts.partition_point(|&start| start <= flight.at) - 1;
            for run in &mut world.vertices {
                if self.tree.vertices_of(Rank(home as u32)).any(|id| id == run.vertex.id()) {
                    run.is_rung = true;
                }
            }
        }
        old
    }
}

impl Model for Group {
    type State = World;
    type Step = Step;

    fn start(&self) -> World {
        let ranks = (0..self.program.ranks.len() as u32).map(Rank);
        let member = |rank| Member {
            entry: GroupMember::new(self.tree, rank),
            done: 0,
            flight: None,
            is_inside: false,
            passed: 0,
        };
        let run = |id| Run { vertex: Vertex::new(self.tree, id), flights: vec![], is_rung: false };
        let mut world = World {
            memory: vec![0; *self.starts.last().unwrap()],
            members: ranks.clone().map(member).collect(),
            vertices: ranks.flat_map(|rank| self.tree.vertices_of(rank)).map(run).collect(),
        };
        for rank in 0..self.program.ranks.len() {
            self.drive(&mut world, rank).expect("no rank is inside yet");
        }
        world
    }

    fn steps(&self, world: &World, steps: &mut Vec<Step>) {
        for (rank, member) in world.members.iter().enumerate() {
            if member.flight.is_some() {
                steps.push(Step::Member { rank });
            }
            if let Some((word, until)) = member.entry.waits_for()
                && until.holds(world.memory[self.at(word)])
            {
                steps.push(Step::Notice { rank });
            }
        }
        for (index, run) in world.vertices.iter().enumerate() {
            steps.extend((0..run.flights.len()).map(|flight| Step::Vertex { index, flight }));
            if run.is_rung {
                steps.push(Step::Look { index });
            }
        }
    }

    fn apply(&self, world: &mut World, step: Step) -> Result<(), String> {
        match step {
            Step::Member { rank } => {
                let member = &mut world.members[rank];
                let flight = member.flight.take().expect("an operation in flight");
                member.is_inside = false;
                let old = self.land(world, flight);
                let member = &mut world.members[rank];
                let id: StepId =
                    member.entry.under_way().expect("the entry waits for this operation");
                member.entry.handle_completed(id, Ok(old));
                if member.entry.waits_for().is_some() {
                    member.passed = 0;
                }
                self.drive(world, rank)
            }
            Step::Notice { rank } => {
                let entry = &mut world.members[rank].entry;
                let (word, _) = entry.waits_for().expect("the entry waits");
                entry.handle_word(world.memory[self.at(word)]);
                self.drive(world, rank)
            }
            Step::Vertex { index, flight } => {
                let (id, flight) = world.vertices[index].flights.remove(flight);
                let old = self.land(world, flight);
                world.vertices[index].vertex.handle_completed(id, Ok(old));
                self.opens(world, index, flight)?;
                self.look(world, index);
                let turns = self.program.ranks.iter().map(|sides| sides.len()).sum::<usize>() + 1;
                if !flight.adds && flight.operand >> 8 > turns as u64 {
                    return Err("the turns repeat, and no rank enters".to_owned());
                }
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
            let is_out = member.entry.place() == MemberPlace::Out;
            if !is_out || member.done < self.program.ranks[rank].len() {
                return Err(format!("{rank} waits for ever: {:?}", member.entry));
            }
        }
        Ok(())
    }
}

impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        let flights =
            |run: &Self| run.flights.iter().map(|(_, flight)| *flight).collect::<Vec<_>>();
        self.vertex == other.vertex
            && self.is_rung == other.is_rung
            && flights(self) == flights(other)
    }
}

impl Eq for Run {}

impl std::hash::Hash for Run {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.vertex.hash(state);
        self.is_rung.hash(state);
        self.flights.iter().for_each(|(_, flight)| flight.hash(state));
    }
}

const STATES_MAX: usize = 20_000_000;
/// The number of turns of the other side at a leaf while a rank waits there.
const PASSED_MAX: u8 = 1;
/// The word in which the ranks of a leaf count themselves; a change of it opens a side.
const COME_ALL: usize = 16;
const COME_EXCLUSIVE: usize = 32;
const OPEN: u64 = 1;

/// Trees of one to four levels, those with the fewest states first.
const PROGRAMS: &[Program] = &[
    Program { per_leaf: 2, arity: 2, ranks: &[&[A], &[X]] },
    Program { per_leaf: 2, arity: 2, ranks: &[&[A, X], &[X, A]] },
    Program { per_leaf: 2, arity: 2, ranks: &[&[A, A], &[X, X]] },
    Program { per_leaf: 2, arity: 2, ranks: &[&[A, A, A, A], &[X]] },
    Program { per_leaf: 3, arity: 2, ranks: &[&[A], &[X], &[A]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[A], &[A]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[A], &[X]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[A, X], &[X]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[], &[], &[], &[A, X]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[], &[X], &[], &[A]] },
];

/// Larger programs: minutes in a release build.
const LARGE: &[Program] = &[
    Program { per_leaf: 2, arity: 2, ranks: &[&[A], &[X], &[A]] },
    Program { per_leaf: 2, arity: 2, ranks: &[&[A], &[A], &[X]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[A, X], &[X, A]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[A, A, A], &[X]] },
    Program { per_leaf: 1, arity: 3, ranks: &[&[A], &[X], &[A]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[A], &[X], &[A]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[X], &[], &[], &[A, X]] },
    Program { per_leaf: 1, arity: 2, ranks: &[&[A], &[], &[], &[], &[X]] },
];

#[test]
fn sides_exclude_each_other_and_all_end() {
    explore_each(PROGRAMS, LARGE, Group::new, STATES_MAX);
}

#[cfg(debug_assertions)]
#[test]
fn groups_with_a_rule_broken_are_caught() {
    for mutant in MUTANTS {
        let found = with_mutant(mutant, || {
            PROGRAMS.iter().find_map(|&program| {
                Some((program, explore(&Group::new(program), STATES_MAX).err()?))
            })
        });
        let (program, failure) = found.unwrap_or_else(|| panic!("{mutant} was not caught"));
        println!("{mutant}: {program:?}: {failure:?}");
    }
}

#[cfg(debug_assertions)]
const MUTANTS: [&str; 6] = [
    "group_grant_undrained",
    "group_last_silent",
    "group_late_forgotten",
    "group_revoked_unserved",
    "group_turn_kept",
    "group_want_unsaid",
];
