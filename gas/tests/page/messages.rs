//! The paper's directory: every interleaving of small programs and of their messages, which
//! arrive in any order.
//!
//! Of the nine defects of the model that this was made from, seven are planted in the machines
//! and two in the driver, which must not have them; one more is a defect of a driver, and two
//! are defects that the machines have had.

#[cfg(debug_assertions)]
use crate::search::Failure;
use crate::search::{Model, explore};
use tsumugi_core::mem::Rank;
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;
use tsumugi_gas::page::DirectoryEntry;
use tsumugi_gas::page::message_directory::{DirectoryMessage, Home, Requester};

mod world;

use world::{At, Member, Ult, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Does {
    Get,
    Put,
    Own,
}

use Does::{Get, Own, Put};

/// ULTs, by rank. Rank 0 is the page's home.
struct Pages {
    ranks: usize,
    owner: Rank,
    ults: Vec<(usize, &'static [Does])>,
    /// The rank that may die.
    mortal: Option<usize>,
    wrong: Wrong,
}

/// The possible errors of a driver.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// The driver takes a put for done when its source may be written again.
    LocalCompletion,
    /// The driver leaves a message that has to wait in the home's queue.
    InlineDefer,
    /// The driver uses a page that has arrived before the home has learned so.
    UsedUnheard,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin(usize),
    Perform(usize),
    Deliver(usize),
    Die,
}

impl Pages {
    fn new(ranks: usize, owner: u32, ults: &[(usize, &'static [Does])]) -> Self {
        let (ults, wrong) = (ults.to_vec(), Wrong::Nothing);
        Self { ranks, owner: Rank(owner), ults, mortal: None, wrong }
    }

    fn lives(self, rank: usize) -> Self {
        Self { mortal: Some(rank), ..self }
    }
}

impl Model for Pages {
    type State = World;
    type Step = Step;

    fn start(&self) -> World {
        let entry = DirectoryEntry { owner: self.owner, frame: 0, epoch: 0 };
        let member = Member { requester: Requester::default(), frames: [(0, false); 2] };
        let mut ranks = vec![member; self.ranks];
        ranks[self.owner.0 as usize].frames[0] = (FIRST, true);
        let ult = Ult { done: 0, at: At::Idle, may_be: vec![] };
        World {
            home: Home::new(entry),
            ranks,
            ults: vec![ult; self.ults.len()],
            net: vec![],
            value: FIRST,
            place: (self.owner.0 as usize, 0),
            dead: None,
        }
    }

    fn steps(&self, world: &World, steps: &mut Vec<Step>) {
        for (number, ult) in world.ults.iter().enumerate() {
            match ult.at {
                At::Idle if ult.done < self.ults[number].1.len() => steps.push(Step::Begin(number)),
                At::Access(_) | At::Copy(..) => steps.push(Step::Perform(number)),
                At::Idle | At::Waits => {}
            }
        }
        for (index, (from, to, message)) in world.net.iter().enumerate() {
            if self.wrong == Wrong::InlineDefer {
                let same = |(of, at, _): &(usize, usize, DirectoryMessage)| (of, at) == (from, to);
                let is_first = !world.net[..index].iter().any(same);
                let stays = matches!(message, DirectoryMessage::Query(_)) && world.home.is_moving();
                if !is_first || stays {
                    continue;
                }
            }
            steps.push(Step::Deliver(index));
        }
        if self.mortal.is_some() && world.dead.is_none() {
            steps.push(Step::Die);
        }
    }

    fn apply(&self, world: &mut World, step: Step) -> Result<(), String> {
        match step {
            Step::Begin(number) => {
                let (rank, does) = self.ults[number];
                world.ults[number].at = At::Waits;
                if does[world.ults[number].done] == Get {
                    world.ults[number].may_be.push(world.value);
                }
                if does[world.ults[number].done] == Own {
                    self.send(world, rank, 0, DirectoryMessage::Own);
                }
                self.enter(world, number);
                Ok(())
            }
            Step::Perform(number) => self.perform(world, number),
            Step::Deliver(index) => self.deliver(world, index),
            Step::Die => self.die(world, self.mortal.expect("the rank may die")),
        }
    }

    fn at_rest(&self, world: &World) -> Result<(), String> {
        for (number, (ult, (_, does))) in world.ults.iter().zip(&self.ults).enumerate() {
            if ult.done < does.len() {
                return Err(format!("ULT {number} waits for ever at {}", ult.done));
            }
        }
        if world.home.is_moving() {
            return Err("the page is left locked".to_owned());
        }
        if world.dead.is_some() {
            return Ok(());
        }
        let entry = world.home.entry();
        let there = world.ranks[entry.owner.0 as usize].frames[entry.frame as usize];
        if there != (world.value, true) {
            return Err(format!("the page has {there:?}, and {} was put", world.value));
        }
        let taken = world.ranks.iter().flat_map(|rank| rank.frames).filter(|(_, taken)| *taken);
        match taken.count() {
            1 => Ok(()),
            count => Err(format!("{count} frames are taken by one page")),
        }
    }

    fn tell(&self, world: &World, step: Step) -> String {
        match step {
            Step::Deliver(index) => {
                let (from, to, message) = world.net[index];
                format!("{from} to {to}: {message:?}")
            }
            Step::Begin(ult) => {
                let (rank, does) = self.ults[ult];
                format!("rank {rank}, ULT {ult} begins to {:?}", does[world.ults[ult].done])
            }
            Step::Perform(ult) => format!("ULT {ult}: {:?}", world.ults[ult].at),
            Step::Die => "a rank dies".to_owned(),
        }
    }
}

/// Small programs, by the roles that one rank has.
fn programs() -> Vec<Pages> {
    vec![
        // Home, owner, requester and new owner are different ranks.
        Pages::new(4, 1, &[(2, &[Put, Put, Put]), (3, &[Own])]),
        Pages::new(4, 1, &[(2, &[Get, Put]), (3, &[Own])]),
        Pages::new(4, 1, &[(2, &[Get, Get]), (3, &[Own, Put])]),
        Pages::new(4, 1, &[(2, &[Put, Get]), (3, &[Own, Get])]),
        // The home is the owner, the requester or the new owner.
        Pages::new(3, 0, &[(1, &[Put, Get]), (2, &[Own])]),
        Pages::new(3, 1, &[(0, &[Put, Put]), (2, &[Own])]),
        Pages::new(3, 1, &[(2, &[Get, Put]), (0, &[Own])]),
        // The owner and the new owner access the page themselves.
        Pages::new(3, 1, &[(1, &[Put, Get]), (2, &[Own])]),
        Pages::new(3, 1, &[(2, &[Put, Put]), (2, &[Own])]),
        Pages::new(2, 0, &[(0, &[Put, Own]), (1, &[Own, Put])]),
        // Several ranks own the page, and it comes back.
        Pages::new(3, 0, &[(1, &[Own]), (2, &[Own]), (0, &[Put])]),
        Pages::new(3, 0, &[(1, &[Own]), (0, &[Own]), (2, &[Get])]),
        Pages::new(2, 0, &[(1, &[Own, Own]), (0, &[Own, Own]), (0, &[Get, Put])]),
        Pages::new(3, 1, &[(2, &[Get]), (2, &[Get, Put]), (0, &[Own])]),
        // A requester, a mover or an owner dies.
        Pages::new(4, 1, &[(2, &[Put, Get]), (3, &[Own, Put])]).lives(2),
        Pages::new(4, 1, &[(2, &[Put, Get]), (3, &[Own, Put])]).lives(3),
        Pages::new(4, 1, &[(2, &[Put, Get]), (3, &[Own, Put])]).lives(1),
        // A mover dies before its stop has come to a rank that is told the next epoch.
        Pages::new(3, 0, &[(1, &[Own]), (1, &[Put]), (2, &[Own]), (0, &[Own])]).lives(2),
        // A mover dies, and the end of the reads that it has stopped comes during the next move.
        Pages::new(4, 0, &[(1, &[Get, Get]), (2, &[Own]), (3, &[Own])]).lives(2),
    ]
}

#[test]
fn every_interleaving_of_small_programs() {
    for (number, program) in programs().iter().enumerate() {
        match explore(program, STATES_MAX) {
            Ok(states) => println!("program {number}: {states} states"),
            Err(failure) => panic!("program {number}: {failure:?}"),
        }
    }
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_are_caught() {
    let fails = |wrong: Wrong| {
        let programs = programs().into_iter().map(|program| Pages { wrong, ..program });
        programs.into_iter().find_map(|program| explore(&program, STATES_MAX).err())
    };
    let tell = |mutant: &str, found: Option<Failure>| {
        println!("{mutant}: {:?}", found.unwrap_or_else(|| panic!("{mutant} was not caught")));
    };
    for mutant in MUTANTS {
        tell(mutant, with_mutant(mutant, || fails(Wrong::Nothing)));
    }
    tell("local completion", fails(Wrong::LocalCompletion));
    tell("inline defer", fails(Wrong::InlineDefer));
    tell("used unheard", fails(Wrong::UsedUnheard));
}

/// The names in the model: dekker, unordered, ack_early, free_no_get_drain, interest_after_read,
/// readers_not_listed, no_defer;
/// and the defects that the machines have had.
#[cfg(debug_assertions)]
const MUTANTS: [&str; 9] = [
    "page_write_uncounted",
    "page_stop_forgotten",
    "page_stopped_early",
    "page_freed_early",
    "page_told_unlisted",
    "page_readers_unlisted",
    "page_told_while_moving",
    "page_entry_replaced",
    "page_end_of_another_epoch",
];
const FIRST: u64 = 1_000;
const STATES_MAX: usize = 4_000_000;
