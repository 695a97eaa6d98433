//! The home, the ranks and their ULTs, and the messages between them: one message or one access
//! at a time.

use super::{Does, Pages, Wrong};
use Does::{Get, Own, Put};
use tsumugi_core::mem::Rank;
use tsumugi_gas::page::DirectoryEntry;
use tsumugi_gas::page::message_directory::{DirectoryMessage, Enter, Home, PageAccess, Requester};

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub home: Home,
    pub ranks: Vec<Member>,
    pub ults: Vec<Ult>,
    /// The messages in the order in which they were sent, if the order matters.
    pub net: Vec<(usize, usize, DirectoryMessage)>,
    /// The value of the last put.
    pub value: u64,
    /// The place of the page: changed by the copy.
    pub place: (usize, u32),
    pub dead: Option<usize>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Member {
    pub requester: Requester,
    /// The contents of the frames, and whether each is taken.
    pub frames: [(u64, bool); 2],
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Ult {
    pub done: usize,
    pub at: At,
    pub may_be: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    Idle,
    Waits,
    /// An access on its way to that place.
    Access(DirectoryEntry),
    Copy(DirectoryEntry, u32),
}

impl Pages {
    pub fn send(&self, world: &mut World, from: usize, to: usize, message: DirectoryMessage) {
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

    /// Begins an access of a ULT.
    pub fn enter(&self, world: &mut World, number: usize) {
        let (rank, does) = self.ults[number];
        let want = match does[world.ults[number].done] {
            Get => PageAccess::Read,
            Put => PageAccess::Write,
            Own => return,
        };
        match world.ranks[rank].requester.enter(want) {
            Enter::Go(entry) => {
                world.ults[number].at = At::Access(entry);
                if self.wrong == Wrong::LocalCompletion && want == PageAccess::Write {
                    self.leave(world, number, want, entry);
                }
            }
            Enter::Ask(query) => self.send(world, rank, 0, query),
            Enter::Wait => {}
        }
    }

    fn leave(&self, world: &mut World, number: usize, want: PageAccess, entry: DirectoryEntry) {
        let rank = self.ults[number].0;
        if let Some(message) = world.ranks[rank].requester.leave(want, entry.epoch) {
            self.send(world, rank, 0, message);
        }
    }

    pub fn perform(&self, world: &mut World, number: usize) -> Result<(), String> {
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
                let want = if does == Put { PageAccess::Write } else { PageAccess::Read };
                if does == Get || self.wrong != Wrong::LocalCompletion {
                    self.leave(world, number, want, entry);
                }
            }
            (At::Copy(entry, frame), _) => {
                let (owner, from) = (entry.owner.0 as usize, entry.frame as usize);
                if world.dead == Some(owner) {
                    world.ranks[rank].frames[frame as usize] = (0, false);
                    self.send(world, rank, 0, DirectoryMessage::Abort);
                } else {
                    world.ranks[rank].frames[frame as usize].0 = world.ranks[owner].frames[from].0;
                    world.place = (rank, frame);
                    let requester = &mut world.ranks[rank].requester;
                    requester.expect();
                    if self.wrong == Wrong::UsedUnheard {
                        requester.expect();
                        let here = entry.moved(Rank(rank as u32), frame);
                        requester.handle(DirectoryMessage::Told(here));
                    }
                    self.send(world, rank, 0, DirectoryMessage::Moved(frame));
                }
            }
            (At::Idle | At::Waits, _) => unreachable!("no access is under way"),
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

    pub fn deliver(&self, world: &mut World, index: usize) -> Result<(), String> {
        let (from, to, message) = world.net.remove(index);
        match message {
            DirectoryMessage::Query(_)
            | DirectoryMessage::Own
            | DirectoryMessage::Stopped { .. }
            | DirectoryMessage::Ended(_)
            | DirectoryMessage::Moved(_)
            | DirectoryMessage::Abort => {
                world.home.handle(Rank(from as u32), message);
                self.home_sends(world);
            }
            DirectoryMessage::Told(_) | DirectoryMessage::Stop(_) => {
                if let Some(answer) = world.ranks[to].requester.handle(message) {
                    self.send(world, to, 0, answer);
                }
                for number in 0..self.ults.len() {
                    let waits = world.ults[number].at == At::Waits;
                    if waits
                        && self.ults[number].0 == to
                        && matches!(message, DirectoryMessage::Told(_))
                    {
                        self.enter(world, number);
                    }
                }
            }
            DirectoryMessage::Yours => {
                let number = self.owner_of(world, to).ok_or("no ULT asked to own the page")?;
                self.end(world, number);
            }
            DirectoryMessage::Permit(entry) => {
                let number = self.owner_of(world, to).ok_or("no ULT asked to own the page")?;
                let frames = &mut world.ranks[to].frames;
                match frames.iter().position(|(_, is_taken)| !is_taken) {
                    Some(frame) => {
                        frames[frame].1 = true;
                        world.ults[number].at = At::Copy(entry, frame as u32);
                    }
                    None => {
                        self.send(world, to, 0, DirectoryMessage::Abort);
                        self.end(world, number);
                    }
                }
            }
            DirectoryMessage::Free(frame) => {
                let frame = &mut world.ranks[to].frames[frame as usize];
                if !frame.1 {
                    return Err("a frame is freed twice".to_owned());
                }
                *frame = (0, false);
            }
        }
        Ok(())
    }

    pub fn die(&self, world: &mut World, rank: usize) -> Result<(), String> {
        world.dead = Some(rank);
        world.net.retain(|(_, to, _)| *to != rank);
        // Messages of the dead rank may arrive or not: here they do not.
        world.net.retain(|(from, ..)| *from != rank);
        if world.place.0 == rank && world.home.entry().owner.0 as usize != rank {
            // The rank had copied the page, and its home has not learned so.
            let entry = world.home.entry();
            world.place = (entry.owner.0 as usize, entry.frame);
            let there = world.ranks[world.place.0].frames[world.place.1 as usize].0;
            if there != world.value {
                let put = world.value;
                return Err(format!("{put} was put and is lost with the mover: {there} is back"));
            }
        }
        for (ult, (of, does)) in world.ults.iter_mut().zip(&self.ults) {
            if *of == rank {
                (ult.at, ult.done) = (At::Idle, does.len());
            }
        }
        world.home.handle_lost(Rank(rank as u32));
        self.home_sends(world);
        Ok(())
    }
}
