//! Gets, puts and owns by remote atomics alone: every interleaving of small
//! programs. A put must land where the page is, a get must return what the page
//! had at some moment of it, and in the end everything is given back.

#[cfg(debug_assertions)]
use crate::search::Failure;
use crate::search::{Model, explore};
use std::env;
use tsumugi_core::mem::{Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind as OpKind, Op};
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;
use tsumugi_gas::page::{
    Act, Book, Distribution, Entry, Glance, Hold, Homes, PageId, Relocation, Retired, Shape, State,
    Sweep,
};

/// What a ULT does with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Does {
    Get(u64),
    Put(u64),
    Own(u64),
}

use Does::{Get, Own, Put};

/// ULTs, by the rank that they run on.
struct Pages {
    book: Book,
    ults: Vec<(Rank, &'static [Does])>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    /// Words of all ranks.
    memory: Vec<u64>,
    ults: Vec<Ult>,
    /// What each page has, and whether its bytes were copied and it is not
    /// there yet.
    pages: Vec<(u64, bool)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Ult {
    done: usize,
    task: Task,
    flights: Vec<Flight>,
    /// What came of a read: header and value.
    read: [Option<u64>; 2],
    /// What a get may return.
    may_be: Vec<u64>,
    /// Waits until something has changed.
    pauses: bool,
    /// Another has changed something since it began, or looked again.
    is_late: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Task {
    None,
    Glance(Glance),
    Hold(Hold),
    Own(Relocation),
    Sweep(Sweep, Retired),
    Free,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Flight {
    Word { kind: u8, at: usize, operand: u64, compare: u64 },
    Header(usize),
    Value(usize),
    Copy { from: usize, to: usize },
    Store { entry: Entry, value: u64 },
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Perform { ult: usize, index: usize },
    Retry { ult: usize },
}

impl Pages {
    fn new(ranks: u32, pages: u64, frames: u32, ults: &[(u32, &'static [Does])]) -> Self {
        let homes = Homes::new(ranks, pages, Distribution::Block);
        let shape = Shape { homes, page_bytes: 8, slots: 1, frames };
        let book = Book::new(shape, RegionKey::new(0, 1), 0).unwrap();
        let ults = ults.iter().map(|&(rank, does)| (Rank(rank), does)).collect();
        Self { book, ults }
    }

    fn words(&self) -> usize {
        self.book.shape().bytes().div_ceil(8) as usize
    }

    fn at(&self, addr: RemoteAddr) -> usize {
        assert!(addr.offset.is_multiple_of(8) && addr.offset < self.book.shape().bytes());
        addr.rank.0 as usize * self.words() + addr.offset as usize / 8
    }

    fn flight(&self, op: &Op) -> Flight {
        let (operand, compare) = (op.operand(), op.compare());
        Flight::Word { kind: op.kind as u8, at: self.at(op.remote), operand, compare }
    }

    /// Lets a ULT do what nobody sees.
    fn drive(&self, world: &mut World, number: usize) -> Result<(), String> {
        let (rank, does) = self.ults[number];
        loop {
            let ult = &mut world.ults[number];
            if !ult.flights.is_empty() || ult.pauses {
                return Ok(());
            }
            let act = match &ult.task {
                Task::None => {
                    let Some(next) = does.get(ult.done) else { return Ok(()) };
                    ult.task = match *next {
                        Get(page) => Task::Glance(Glance::new(self.book, rank, PageId(page))),
                        Put(page) => Task::Hold(Hold::new(self.book, rank, PageId(page))),
                        Own(page) => Task::Own(Relocation::new(self.book, rank, PageId(page))),
                    };
                    continue;
                }
                Task::Glance(glance) => glance.act(),
                Task::Hold(hold) => hold.act(),
                Task::Own(own) => own.act(),
                Task::Sweep(sweep, _) => sweep.act(),
                Task::Free => Act::Over,
            };
            match act {
                Act::Do(op) => ult.flights.push(self.flight(&op)),
                Act::Pause(_) if ult.is_late => return Ok(()),
                Act::Pause(_) => ult.pauses = true,
                Act::Read(entry) => {
                    let header = self.at(self.book.header(entry.owner, entry.frame));
                    ult.read = [None; 2];
                    ult.flights.extend([Flight::Header(header), Flight::Value(header + 1)]);
                }
                Act::Copy { from, to } => {
                    ult.flights.push(Flight::Copy { from: self.at(from), to: self.at(to) });
                }
                Act::Ready(entry) => {
                    let value = 10 * (number as u64 + 1) + ult.done as u64;
                    ult.flights.push(Flight::Store { entry, value });
                }
                // What left has not been freed yet.
                Act::Full => self.ends(ult, number)?,
                Act::Failed(error) => return Err(format!("ULT {number}: {error}")),
                Act::Over => self.ends(ult, number)?,
            }
        }
    }

    fn ends(&self, ult: &mut Ult, number: usize) -> Result<(), String> {
        ult.task = match &ult.task {
            Task::Own(own) => match own.retired() {
                Some(retired) => Task::Sweep(Sweep::new(self.book), retired),
                None => Task::None,
            },
            Task::Sweep(_, Retired { owner, frame }) => {
                let (at, bit) = self.book.bit(*owner, *frame);
                ult.flights.push(self.flight(&Op::atomic(OpKind::FetchAnd, at, !bit)));
                Task::Free
            }
            Task::Glance(_) => {
                let value = ult.read[1].expect("it has read");
                if !ult.may_be.contains(&value) {
                    return Err(format!("ULT {number} got {value}, not one of {:?}", ult.may_be));
                }
                ult.may_be.clear();
                ult.read = [None; 2];
                Task::None
            }
            _ => Task::None,
        };
        if ult.task == Task::None {
            ult.done += 1;
            ult.is_late = false;
        }
        Ok(())
    }

    fn perform(&self, world: &mut World, number: usize, index: usize) -> Result<(), String> {
        let flight = world.ults[number].flights.remove(index);
        let mut answer = 0;
        // A get begins when it does something for the first time.
        let ult = &mut world.ults[number];
        if let (Task::Glance(_), Get(page)) = (&ult.task, self.ults[number].1[ult.done])
            && ult.may_be.is_empty()
        {
            ult.may_be.push(world.pages[page as usize].0);
        }
        let before = world.memory.clone();
        match flight {
            Flight::Word { kind, at, operand, compare } => {
                answer = world.memory[at];
                world.memory[at] = apply(kind, answer, operand, compare);
                self.watch(world, at);
            }
            Flight::Header(at) => world.ults[number].read[0] = Some(world.memory[at]),
            Flight::Value(at) => world.ults[number].read[1] = Some(world.memory[at]),
            Flight::Copy { from, to } => {
                world.memory[to] = world.memory[from];
                let Task::Own(_) = world.ults[number].task else { unreachable!() };
                let Own(page) = self.ults[number].1[world.ults[number].done] else {
                    unreachable!()
                };
                world.pages[page as usize].1 = true;
            }
            Flight::Store { entry, value } => {
                let Put(page) = self.ults[number].1[world.ults[number].done] else {
                    unreachable!()
                };
                self.lands(world, PageId(page), entry, value)
                    .map_err(|what| format!("the put of ULT {number} {what}"))?;
            }
        }
        if world.memory != before {
            for (other, ult) in world.ults.iter_mut().enumerate() {
                ult.is_late |= other != number;
                ult.pauses &= other == number;
            }
        }
        let ult = &mut world.ults[number];
        if !ult.flights.is_empty() {
            return Ok(());
        }
        match (&mut ult.task, flight) {
            (Task::Hold(hold), Flight::Store { .. }) => hold.release(),
            (Task::Glance(glance), Flight::Header(_) | Flight::Value(_)) => {
                glance.answer(Ok(ult.read[0].expect("both have come")));
            }
            (Task::Glance(glance), _) => glance.answer(Ok(answer)),
            (Task::Hold(hold), _) => hold.answer(Ok(answer)),
            (Task::Own(own), _) => own.answer(Ok(answer)),
            (Task::Sweep(sweep, _), _) => sweep.answer(Ok(answer)),
            (Task::Free, _) => {
                ult.task = Task::None;
                ult.done += 1;
                ult.is_late = false;
            }
            (Task::None, _) => unreachable!(),
        }
        self.drive(world, number)
    }

    /// A put, where the page is or is no longer.
    fn lands(
        &self,
        world: &mut World,
        page: PageId,
        entry: Entry,
        value: u64,
    ) -> Result<(), String> {
        let (owner, frame) = match State::from_bits(world.memory[self.at(self.book.entry(page))]) {
            State::At(entry) => (entry.owner, entry.frame),
            State::Moving { owner, frame, .. } => (owner, frame),
        };
        if (owner, frame) != (entry.owner, entry.frame) {
            return Err(format!("lands at {entry:?}, and the page is at {owner}, {frame}"));
        }
        if world.pages[page.0 as usize].1 {
            return Err(format!("lands at {entry:?} after the copy"));
        }
        let at = self.at(self.book.bytes(entry));
        world.memory[at] = value;
        world.pages[page.0 as usize].0 = value;
        for (ult, (_, does)) in world.ults.iter_mut().zip(&self.ults) {
            if !ult.may_be.is_empty() && does[ult.done] == Get(page.0) {
                ult.may_be.push(value);
            }
        }
        Ok(())
    }

    /// A page that has arrived is no longer between copies.
    fn watch(&self, world: &mut World, at: usize) {
        for page in 0..world.pages.len() {
            if at == self.at(self.book.entry(PageId(page as u64)))
                && let State::At(_) = State::from_bits(world.memory[at])
            {
                world.pages[page].1 = false;
            }
        }
    }
}

impl Model for Pages {
    type State = World;
    type Step = Step;

    fn start(&self) -> World {
        let homes = self.book.shape().homes;
        let mut memory = vec![0; homes.ranks() as usize * self.words()];
        let mut pages = Vec::new();
        for rank in (0..homes.ranks()).map(Rank) {
            for (frame, page) in homes.first_of(rank, Distribution::Block).enumerate() {
                let entry = Entry { owner: rank, frame: frame as u32, epoch: 0 };
                let (bits, bit) = self.book.bit(rank, frame as u32);
                memory[self.at(self.book.entry(page))] = entry.to_bits();
                memory[self.at(self.book.header(rank, frame as u32))] = entry.header(page);
                memory[self.at(self.book.bytes(entry))] = 1_000 + page.0;
                memory[self.at(bits)] |= bit;
            }
        }
        for page in 0..homes.pages() {
            pages.push((1_000 + page, false));
        }
        let ult = Ult {
            done: 0,
            task: Task::None,
            flights: Vec::new(),
            read: [None; 2],
            may_be: Vec::new(),
            pauses: false,
            is_late: false,
        };
        let mut world = World { memory, ults: vec![ult; self.ults.len()], pages };
        for number in 0..self.ults.len() {
            self.drive(&mut world, number).expect("nothing has happened yet");
        }
        world
    }

    fn steps(&self, world: &World, steps: &mut Vec<Step>) {
        for (number, ult) in world.ults.iter().enumerate() {
            for index in 0..ult.flights.len() {
                steps.push(Step::Perform { ult: number, index });
            }
            let is_between = ult.flights.is_empty() && !ult.pauses && ult.task != Task::None;
            if is_between {
                steps.push(Step::Retry { ult: number });
            }
        }
    }

    fn apply(&self, world: &mut World, step: Step) -> Result<(), String> {
        match step {
            Step::Perform { ult, index } => self.perform(world, ult, index),
            Step::Retry { ult: number } => {
                world.ults[number].is_late = false;
                match &mut world.ults[number].task {
                    Task::Glance(glance) => glance.answer(Ok(0)),
                    Task::Hold(hold) => hold.answer(Ok(0)),
                    Task::Own(own) => own.answer(Ok(0)),
                    Task::Sweep(sweep, _) => sweep.answer(Ok(0)),
                    Task::None | Task::Free => unreachable!("it does not pause"),
                }
                self.drive(world, number)
            }
        }
    }

    fn at_rest(&self, world: &World) -> Result<(), String> {
        for (number, (ult, (_, does))) in world.ults.iter().zip(&self.ults).enumerate() {
            if ult.done < does.len() {
                return Err(format!("ULT {number} waits for ever at {}", ult.done));
            }
        }
        let homes = self.book.shape().homes;
        let mut taken = 0;
        for rank in (0..homes.ranks()).map(Rank) {
            taken += world.memory[self.at(self.book.bit(rank, 0).0)].count_ones();
        }
        if u64::from(taken) != homes.pages() {
            return Err(format!("{taken} frames are taken by {} pages", homes.pages()));
        }
        for (page, (value, _)) in world.pages.iter().enumerate() {
            let page = PageId(page as u64);
            let bits = world.memory[self.at(self.book.entry(page))];
            let State::At(entry) = State::from_bits(bits) else {
                return Err(format!("{page:?} is left locked"));
            };
            let there = world.memory[self.at(self.book.bytes(entry))];
            if there != *value {
                return Err(format!("{page:?} has {there}, and {value} was put"));
            }
        }
        Ok(())
    }

    fn tell(&self, world: &World, step: Step) -> String {
        match step {
            Step::Perform { ult, index } => {
                let flight = match world.ults[ult].flights[index] {
                    Flight::Word { at, operand, compare, .. } => {
                        format!("word {at} of {:x}: {operand:x}, {compare:x}", world.memory[at])
                    }
                    Flight::Header(at) => format!("header {at} is {:x}", world.memory[at]),
                    Flight::Value(at) => format!("value {at} is {}", world.memory[at]),
                    Flight::Copy { from, to } => format!("copy {from} to {to}"),
                    Flight::Store { entry, value } => format!("{value} to {entry:?}"),
                };
                format!("ULT {ult}, rank {}: {flight}", self.ults[ult].0.0)
            }
            Step::Retry { ult } => format!("ULT {ult} looks again"),
        }
    }
}

fn apply(kind: u8, old: u64, operand: u64, compare: u64) -> u64 {
    match kind {
        kind if kind == OpKind::GetWord as u8 => old,
        kind if kind == OpKind::FetchAdd as u8 => old.wrapping_add(operand),
        kind if kind == OpKind::FetchOr as u8 => old | operand,
        kind if kind == OpKind::FetchAnd as u8 => old & operand,
        kind if kind == OpKind::CompareSwap as u8 && old != compare => old,
        _ => operand,
    }
}

/// Small programs, those with the fewest states first.
fn programs() -> Vec<Pages> {
    vec![
        Pages::new(2, 1, 2, &[(0, &[Put(0), Put(0)]), (1, &[Own(0)])]),
        Pages::new(2, 1, 2, &[(0, &[Get(0), Get(0)]), (1, &[Own(0)])]),
        Pages::new(2, 1, 2, &[(1, &[Put(0), Put(0)]), (1, &[Own(0)])]),
        Pages::new(2, 1, 2, &[(0, &[Get(0), Get(0)]), (1, &[Own(0), Put(0)])]),
        Pages::new(2, 1, 2, &[(0, &[Put(0), Get(0)]), (1, &[Own(0), Put(0)])]),
        Pages::new(2, 1, 2, &[(0, &[Own(0)]), (1, &[Own(0), Own(0)])]),
        Pages::new(2, 1, 2, &[(0, &[Own(0), Own(0)]), (1, &[Own(0), Own(0)])]),
        Pages::new(2, 1, 2, &[(0, &[Own(0)]), (1, &[Own(0)]), (1, &[Get(0)])]),
        Pages::new(2, 1, 1, &[(0, &[Own(0)]), (1, &[Get(0), Own(0), Get(0)])]),
        Pages::new(2, 1, 2, &[(0, &[Put(0)]), (0, &[Put(0)]), (1, &[Own(0)])]),
        Pages::new(2, 1, 2, &[(0, &[Get(0)]), (0, &[Put(0)]), (1, &[Own(0)])]),
        Pages::new(2, 1, 2, &[(0, &[Put(0)]), (1, &[Put(0)]), (1, &[Own(0)])]),
        // Another page takes the frame, and the slot.
        Pages::new(2, 2, 2, &[(0, &[Own(1)]), (1, &[Own(0), Own(1)]), (0, &[Get(0)])]),
        Pages::new(2, 2, 2, &[(0, &[Put(0), Put(1)]), (0, &[Put(1)]), (1, &[Own(0)])]),
    ]
}

/// What takes longer: half a minute in a debug build.
fn large() -> Vec<Pages> {
    vec![
        Pages::new(2, 1, 2, &[(0, &[Get(0), Get(0)]), (1, &[Own(0)]), (1, &[Put(0)])]),
        // A page comes back into the frame that a reader remembers.
        Pages::new(2, 1, 1, &[(0, &[Get(0), Get(0)]), (1, &[Own(0), Put(0)]), (0, &[Own(0)])]),
    ]
}

#[test]
fn every_interleaving_of_small_programs() {
    let is_large = env::var_os("TSUMUGI_LARGE").is_some();
    let large = large().into_iter().take(if is_large { usize::MAX } else { 0 });
    for (number, program) in programs().iter().chain(&large.collect::<Vec<_>>()).enumerate() {
        match explore(program, STATES_MAX) {
            Ok(states) => println!("program {number}: {states} states"),
            Err(failure) => panic!("program {number}: {failure:?}"),
        }
    }
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_are_caught() {
    for (mutant, program) in MUTANTS {
        let program = programs().into_iter().chain(large()).nth(program).expect("a program");
        let found = with_mutant(mutant, || explore(&program, STATES_MAX).err());
        let failure: Failure = found.unwrap_or_else(|| panic!("{mutant} was not caught"));
        println!("{mutant}: {failure:?}");
    }
}

/// And the first program that catches it.
#[cfg(debug_assertions)]
const MUTANTS: [(&str, usize); 9] = [
    ("page_count_apart", 0),
    ("page_install_blind", 0),
    ("page_listed_late", 0),
    ("page_drain_skipped", 0),
    ("page_left_unmarked", 3),
    ("page_header_unread", 3),
    ("page_sweep_blind", 12),
    ("page_marked_late", 14),
    ("page_epoch_unread", 15),
];
const STATES_MAX: usize = 4_000_000;
