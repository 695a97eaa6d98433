//! Gets, puts and owns by remote atomics alone: every interleaving of small programs. A put must
//! land at the page's place, a get must return a value that the page had at some moment of the
//! get, and at the end all gates and frames are released.

#[cfg(debug_assertions)]
use crate::search::Failure;
use crate::search::{Model, explore};
use tsumugi_core::mem::{Rank, RegionKey};
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;
use tsumugi_gas::page::{
    DirectoryEntry, Distribution, Homes, PageId, PageLayout, PageProtocol, PageShape, PageState,
};

mod world;

use world::{Flight, Task, Ult, World};

/// An operation of a ULT on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Does {
    Get(u64),
    Put(u64),
    Own(u64),
}

use Does::{Get, Own, Put};

/// ULTs, by the rank that they run on.
struct Pages {
    layout: PageLayout,
    ults: Vec<(Rank, &'static [Does])>,
    /// The bits of a header that are read at one moment, and those read at another.
    tears: [u64; 2],
    /// The first epoch of the last page.
    epoch: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Perform { ult: usize, index: usize },
    Retry { ult: usize },
}

impl Pages {
    fn new(ranks: u32, pages: u64, frames: u32, ults: &[(u32, &'static [Does])]) -> Self {
        let homes = Homes::new(ranks, pages, Distribution::Block);
        let shape = PageShape { homes, page_bytes: 8, slots: 1, frames };
        let layout = PageLayout::new(shape, RegionKey::new(0, 1), 0).unwrap();
        let ults = ults.iter().map(|&(rank, does)| (Rank(rank), does)).collect();
        Self { layout, ults, tears: [u64::MAX, 0], epoch: 0 }
    }

    /// A network that reads the first byte of a word at another moment than the rest; another page
    /// comes to a frame with just that byte.
    fn torn(self) -> Self {
        Self { tears: [0xff, !0xff], epoch: 127, ..self }
    }

    /// A directory whose words belong to a device: its atomics are whole, its reads come in two
    /// parts.
    fn by_device(self) -> Self {
        let layout =
            PageLayout::apart(self.layout.shape(), RegionKey::new(1, 1), RegionKey::new(0, 1));
        Self { layout: layout.unwrap(), ..self }
    }
}

impl Model for Pages {
    type State = World;
    type Step = Step;

    fn start(&self) -> World {
        let homes = self.layout.shape().homes;
        let mut memory = vec![0; homes.ranks() as usize * self.words()];
        let mut pages = Vec::new();
        for rank in (0..homes.ranks()).map(Rank) {
            for (frame, page) in homes.first_of(rank, Distribution::Block).enumerate() {
                let epoch = if page.0 + 1 == homes.pages() { self.epoch } else { 0 };
                let entry = DirectoryEntry { owner: rank, frame: frame as u32, epoch };
                let (bits, bit) = self.layout.bit(rank, frame as u32);
                memory[self.at(self.layout.entry(page))] = entry.to_bits();
                memory[self.at(self.layout.header(rank, frame as u32))] = entry.header(page);
                memory[self.at(self.layout.bytes(entry))] = 1_000 + page.0;
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
            self.drive(&mut world, number).expect("the first step");
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
                    Task::Read(read) => read.answer(Ok(0)),
                    Task::Pin(pin) => pin.answer(Ok(0)),
                    Task::Own(own) => own.answer(Ok(0)),
                    Task::Grace(grace, _) => grace.answer(Ok(0)),
                    Task::None | Task::Free => unreachable!("the task does not pause"),
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
        let homes = self.layout.shape().homes;
        let mut taken = 0;
        for rank in (0..homes.ranks()).map(Rank) {
            taken += world.memory[self.at(self.layout.bit(rank, 0).0)].count_ones();
        }
        if u64::from(taken) != homes.pages() {
            return Err(format!("{taken} frames are taken by {} pages", homes.pages()));
        }
        for (page, (value, _)) in world.pages.iter().enumerate() {
            let page = PageId(page as u64);
            let bits = world.memory[self.at(self.layout.entry(page))];
            let PageState::At(entry) = PageState::from_bits(bits) else {
                return Err(format!("{page:?} is left locked"));
            };
            let there = world.memory[self.at(self.layout.bytes(entry))];
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
                    Flight::Torn(at, bits) => {
                        format!("word {at} is {:x}, of which {bits:x}", world.memory[at])
                    }
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
        // Another page takes the frame and the slot.
        Pages::new(2, 2, 2, &[(0, &[Own(1)]), (1, &[Own(0), Own(1)]), (0, &[Get(0)])]),
        Pages::new(2, 2, 2, &[(0, &[Put(0), Put(1)]), (0, &[Put(1)]), (1, &[Own(0)])]),
    ]
}

/// Larger programs: they have a test of their own.
fn large() -> Vec<Pages> {
    vec![
        Pages::new(2, 1, 2, &[(0, &[Get(0), Get(0)]), (1, &[Own(0)]), (1, &[Put(0)])]),
        // A page comes back into the frame that a reader has cached.
        Pages::new(2, 1, 1, &[(0, &[Get(0), Get(0)]), (1, &[Own(0), Put(0)]), (0, &[Own(0)])]),
        Pages::new(2, 2, 2, &[(0, &[Get(0), Get(0)]), (1, &[Own(0)]), (0, &[Own(1)])]).torn(),
    ]
}

/// Programs whose directory belongs to a device.
fn by_device() -> Vec<Pages> {
    vec![
        // The page comes to a frame whose number belongs to another page at the old owner.
        Pages::new(2, 2, 2, &[(0, &[Put(0)]), (1, &[Own(0)])]).by_device(),
        Pages::new(2, 1, 2, &[(0, &[Get(0), Get(0)]), (1, &[Own(0), Put(0)])]).by_device(),
        Pages::new(2, 1, 2, &[(0, &[Own(0), Own(0)]), (1, &[Own(0), Own(0)])]).by_device(),
        Pages::new(2, 1, 2, &[(0, &[Put(0)]), (1, &[Put(0)]), (1, &[Own(0)])]).by_device(),
    ]
}

/// Explores every interleaving of each program.
fn explores(programs: &[Pages]) {
    for (number, program) in programs.iter().enumerate() {
        match explore(program, STATES_MAX) {
            Ok(states) => println!("program {number}: {states} states"),
            Err(failure) => panic!("program {number}: {failure:?}"),
        }
    }
}

#[test]
fn every_interleaving_of_small_programs() {
    explores(&programs());
}

#[test]
fn every_interleaving_of_larger_programs() {
    explores(&large());
}

#[test]
fn every_interleaving_with_the_directory_of_a_device() {
    explores(&by_device());
}

/// An entry that is read in parts names a place where the page never was.
#[test]
#[cfg(debug_assertions)]
fn a_plain_read_of_a_devices_word_is_caught() {
    let found = with_mutant("page_entry_read_plainly", || {
        by_device().iter().find_map(|program| explore(program, STATES_MAX).err())
    });
    println!("{:?}", found.expect("page_entry_read_plainly was not caught"));
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

/// Each mutant, and the first program that catches it.
#[cfg(debug_assertions)]
const MUTANTS: [(&str, usize); 10] = [
    ("page_count_apart", 0),
    ("page_install_blind", 0),
    ("page_listed_late", 0),
    ("page_drain_skipped", 0),
    ("page_left_unmarked", 3),
    ("page_header_unread", 3),
    ("page_sweep_blind", 12),
    ("page_marked_late", 14),
    ("page_epoch_unread", 15),
    ("page_live_in_one_byte", 16),
];
const STATES_MAX: usize = 4_000_000;
