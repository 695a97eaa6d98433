//! The paper's directory: every interleaving of small programs, and of their
//! messages, which come in any order.
//!
//! The nine defects of the model that this was made from: seven are planted in
//! the machines, two in the driver, whose duty it is not to do that.

#[cfg(debug_assertions)]
use crate::search::Failure;
use crate::search::{Model, explore};
use tsumugi_core::mem::Rank;
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;
use tsumugi_gas::page::Entry;
use tsumugi_gas::page::message::{Enter, Home, Message, Requester, Want};

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
    /// A rank that may die.
    mortal: Option<usize>,
    wrong: Wrong,
}

/// What a driver may get wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// It takes a put for done when its source may be written again.
    LocalCompletion,
    /// It leaves what has to wait in the home's queue.
    InlineDefer,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    home: Home,
    ranks: Vec<Member>,
    ults: Vec<Ult>,
    /// In the order in which they were sent, if that matters.
    net: Vec<(usize, usize, Message)>,
    /// What was put last.
    value: u64,
    /// Where the page is: as of the copy.
    place: (usize, u32),
    dead: Option<usize>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Member {
    requester: Requester,
    /// What is in its frames, and whether they are taken.
    frames: [(u64, bool); 2],
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Ult {
    done: usize,
    at: At,
    may_be: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Idle,
    Waits,
    /// On its way there.
    Access(Entry),
    Copy(Entry, u32),
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

    fn send(&self, world: &mut World, from: usize, to: usize, message: Message) {
        if world.dead != Some(to) {
            world.net.push((from, to, message));
        }
        if self.wrong != Wrong::InlineDefer {
            world.net.sort_unstable();
        }
    }

    fn home_sends(&self, world: &mut World) {
        while let Some((rank, message)) = world.home.poll() {
            self.send(world, 0, rank.0 as usize, message);
        }
    }

    /// An access of a ULT that has begun.
    fn enter(&self, world: &mut World, number: usize) {
        let (rank, does) = self.ults[number];
        let want = match does[world.ults[number].done] {
            Get => Want::Read,
            Put => Want::Write,
            Own => return,
        };
        match world.ranks[rank].requester.enter(want) {
            Enter::Go(entry) => {
                world.ults[number].at = At::Access(entry);
                if self.wrong == Wrong::LocalCompletion && want == Want::Write {
                    self.leave(world, number, want, entry);
                }
            }
            Enter::Ask(query) => self.send(world, rank, 0, query),
            Enter::Wait => {}
        }
    }

    fn leave(&self, world: &mut World, number: usize, want: Want, entry: Entry) {
        let rank = self.ults[number].0;
        if let Some(message) = world.ranks[rank].requester.leave(want, entry.epoch) {
            self.send(world, rank, 0, message);
        }
    }

    fn perform(&self, world: &mut World, number: usize) -> Result<(), String> {
        let (rank, does) = self.ults[number];
        let value = 10 * (number as u64 + 1) + world.ults[number].done as u64;
        match (world.ults[number].at, does[world.ults[number].done]) {
            (At::Access(entry), does) => {
                let (owner, frame) = (entry.owner.0 as usize, entry.frame as usize);
                let there = world.ranks[owner].frames[frame].0;
                let is_lost = world.dead == Some(owner);
                if does == Put {
                    if !is_lost && world.place != (owner, entry.frame) {
                        let place = world.place;
                        return Err(format!("a put lands at {entry:?}; the page is at {place:?}"));
                    }
                    world.ranks[owner].frames[frame].0 = value;
                    world.value = value;
                    for (other, ult) in world.ults.iter_mut().enumerate() {
                        if ult.at != At::Idle && self.ults[other].1[ult.done] == Get {
                            ult.may_be.push(value);
                        }
                    }
                } else if !is_lost && !world.ults[number].may_be.contains(&there) {
                    let may_be = &world.ults[number].may_be;
                    return Err(format!("ULT {number} got {there}, not one of {may_be:?}"));
                }
                let want = if does == Put { Want::Write } else { Want::Read };
                if does == Get || self.wrong != Wrong::LocalCompletion {
                    self.leave(world, number, want, entry);
                }
            }
            (At::Copy(entry, frame), _) => {
                let (owner, from) = (entry.owner.0 as usize, entry.frame as usize);
                if world.dead == Some(owner) {
                    world.ranks[rank].frames[frame as usize] = (0, false);
                    self.send(world, rank, 0, Message::Abort);
                } else {
                    world.ranks[rank].frames[frame as usize].0 = world.ranks[owner].frames[from].0;
                    world.place = (rank, frame);
                    let here = entry.moved(Rank(rank as u32), frame);
                    world.ranks[rank].requester.arrive(here);
                    self.send(world, rank, 0, Message::Moved(frame));
                }
            }
            (At::Idle | At::Waits, _) => unreachable!("nothing is under way"),
        }
        self.end(world, number);
        Ok(())
    }

    fn end(&self, world: &mut World, number: usize) {
        let ult = &mut world.ults[number];
        (ult.at, ult.done) = (At::Idle, ult.done + 1);
        ult.may_be.clear();
    }

    /// The ULT of a rank that waits to own the page.
    fn owner_of(&self, world: &World, rank: usize) -> Option<usize> {
        (0..self.ults.len()).find(|&number| {
            let (of, does) = self.ults[number];
            let ult = &world.ults[number];
            of == rank && ult.at == At::Waits && does[ult.done] == Own
        })
    }

    fn deliver(&self, world: &mut World, index: usize) -> Result<(), String> {
        let (from, to, message) = world.net.remove(index);
        match message {
            Message::Query(_)
            | Message::Own
            | Message::Stopped { .. }
            | Message::Ended(_)
            | Message::Moved(_)
            | Message::Abort => {
                world.home.handle(Rank(from as u32), message);
                self.home_sends(world);
            }
            Message::Told(_) | Message::Stop(_) => {
                if let Some(answer) = world.ranks[to].requester.handle(message) {
                    self.send(world, to, 0, answer);
                }
                for number in 0..self.ults.len() {
                    let waits = world.ults[number].at == At::Waits;
                    if waits && self.ults[number].0 == to && matches!(message, Message::Told(_)) {
                        self.enter(world, number);
                    }
                }
            }
            Message::Yours => {
                let number = self.owner_of(world, to).ok_or("nobody asked to own it")?;
                self.end(world, number);
            }
            Message::Permit(entry) => {
                let number = self.owner_of(world, to).ok_or("nobody asked to own it")?;
                let frames = &mut world.ranks[to].frames;
                match frames.iter().position(|(_, is_taken)| !is_taken) {
                    Some(frame) => {
                        frames[frame].1 = true;
                        world.ults[number].at = At::Copy(entry, frame as u32);
                    }
                    None => {
                        self.send(world, to, 0, Message::Abort);
                        self.end(world, number);
                    }
                }
            }
            Message::Free(frame) => {
                let frame = &mut world.ranks[to].frames[frame as usize];
                if !frame.1 {
                    return Err("a frame is freed twice".to_owned());
                }
                *frame = (0, false);
            }
        }
        Ok(())
    }

    fn die(&self, world: &mut World, rank: usize) {
        world.dead = Some(rank);
        world.net.retain(|(_, to, _)| *to != rank);
        // What it had sent may come, or not: here it does not.
        world.net.retain(|(from, ..)| *from != rank);
        if world.place.0 == rank && world.home.entry().owner.0 as usize != rank {
            // It had copied the page and told nobody.
            let entry = world.home.entry();
            world.place = (entry.owner.0 as usize, entry.frame);
            world.value = world.ranks[world.place.0].frames[world.place.1 as usize].0;
            for (ult, (_, does)) in world.ults.iter_mut().zip(&self.ults) {
                if ult.at != At::Idle && does.get(ult.done) == Some(&Get) {
                    ult.may_be.push(world.value);
                }
            }
        }
        for (ult, (of, does)) in world.ults.iter_mut().zip(&self.ults) {
            if *of == rank {
                (ult.at, ult.done) = (At::Idle, does.len());
            }
        }
        world.home.handle_lost(Rank(rank as u32));
        self.home_sends(world);
    }
}

impl Model for Pages {
    type State = World;
    type Step = Step;

    fn start(&self) -> World {
        let entry = Entry { owner: self.owner, frame: 0, epoch: 0 };
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
                let same = |(of, at, _): &(usize, usize, Message)| (of, at) == (from, to);
                let is_first = !world.net[..index].iter().any(same);
                let stays = matches!(message, Message::Query(_)) && world.home.is_moving();
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
                    self.send(world, rank, 0, Message::Own);
                }
                self.enter(world, number);
                Ok(())
            }
            Step::Perform(number) => self.perform(world, number),
            Step::Deliver(index) => self.deliver(world, index),
            Step::Die => {
                self.die(world, self.mortal.expect("it may"));
                Ok(())
            }
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

/// Small programs, by the roles that fall together.
fn programs() -> Vec<Pages> {
    vec![
        // Home, owner, requester and new owner apart.
        Pages::new(4, 1, &[(2, &[Put, Put, Put]), (3, &[Own])]),
        Pages::new(4, 1, &[(2, &[Get, Put]), (3, &[Own])]),
        Pages::new(4, 1, &[(2, &[Get, Get]), (3, &[Own, Put])]),
        Pages::new(4, 1, &[(2, &[Put, Get]), (3, &[Own, Get])]),
        // The home is the owner, the requester, the new owner.
        Pages::new(3, 0, &[(1, &[Put, Get]), (2, &[Own])]),
        Pages::new(3, 1, &[(0, &[Put, Put]), (2, &[Own])]),
        Pages::new(3, 1, &[(2, &[Get, Put]), (0, &[Own])]),
        // The owner and the new owner use it themselves.
        Pages::new(3, 1, &[(1, &[Put, Get]), (2, &[Own])]),
        Pages::new(3, 1, &[(2, &[Put, Put]), (2, &[Own])]),
        Pages::new(2, 0, &[(0, &[Put, Own]), (1, &[Own, Put])]),
        // Several own it, and it comes back.
        Pages::new(3, 0, &[(1, &[Own]), (2, &[Own]), (0, &[Put])]),
        Pages::new(3, 0, &[(1, &[Own]), (0, &[Own]), (2, &[Get])]),
        Pages::new(2, 0, &[(1, &[Own, Own]), (0, &[Own, Own]), (0, &[Get, Put])]),
        Pages::new(3, 1, &[(2, &[Get]), (2, &[Get, Put]), (0, &[Own])]),
        // A requester, a mover, an owner dies.
        Pages::new(4, 1, &[(2, &[Put, Get]), (3, &[Own, Put])]).lives(2),
        Pages::new(4, 1, &[(2, &[Put, Get]), (3, &[Own, Put])]).lives(3),
        Pages::new(4, 1, &[(2, &[Put, Get]), (3, &[Own, Put])]).lives(1),
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
}

/// As the model has them: dekker, unordered, ack_early, free_no_get_drain,
/// interest_after_read, readers_not_listed, no_defer.
#[cfg(debug_assertions)]
const MUTANTS: [&str; 7] = [
    "page_write_uncounted",
    "page_stop_forgotten",
    "page_stopped_early",
    "page_freed_early",
    "page_told_unlisted",
    "page_readers_unlisted",
    "page_told_while_moving",
];
const FIRST: u64 = 1_000;
const STATES_MAX: usize = 4_000_000;
