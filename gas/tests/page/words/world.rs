//! The words of all ranks and the ULTs that change them, one remote operation at a time.

use super::{Does, Pages};
use crate::asks::{Asks, next};
use Does::{Get, Own, Put};
use tsumugi_core::mem::RemoteAddr;
use tsumugi_core::op::{Kind, Op};
use tsumugi_gas::page::{
    DirectoryEntry, GracePeriod, OptimisticRead, PageAction, PageCopy, PageId, PagePin,
    PageProtocol, PageState, Relocation, RetiredFrame,
};

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// Words of all ranks.
    pub memory: Vec<u64>,
    pub ults: Vec<Ult>,
    /// The value of each page, and whether its bytes were copied and the page has not arrived yet.
    pub pages: Vec<(u64, bool)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Ult {
    pub done: usize,
    pub task: Task,
    pub flights: Vec<Flight>,
    /// The results of a read: bits of a header or another word, and the value.
    pub read: [Option<u64>; 2],
    /// The values that a get may return.
    pub may_be: Vec<u64>,
    /// Whether the ULT waits until a word has changed.
    pub pauses: bool,
    /// Whether another ULT has changed a word since this one began or looked again.
    pub is_late: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Task {
    None,
    Read(OptimisticRead),
    Pin(PagePin),
    Own(Relocation),
    Grace(GracePeriod, RetiredFrame),
    Free,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flight {
    Word {
        kind: u8,
        at: usize,
        operand: u64,
        compare: u64,
    },
    /// The bits of a word that is read in parts.
    Torn(usize, u64),
    Value(usize),
    Copy {
        from: usize,
        to: usize,
    },
    Store {
        entry: DirectoryEntry,
        value: u64,
    },
}

impl Pages {
    pub fn words(&self) -> usize {
        self.layout.shape().bytes().div_ceil(8) as usize
    }

    /// The index of a word; a directory that lies apart comes first here, too.
    pub fn at(&self, addr: RemoteAddr) -> usize {
        let before = match self.layout.directory() {
            Some(directory) if addr.key != directory => self.layout.shape().directory_bytes(),
            _ => 0,
        };
        let offset = before + addr.offset;
        assert!(offset.is_multiple_of(8) && offset < self.layout.shape().bytes());
        addr.rank.0 as usize * self.words() + offset as usize / 8
    }

    fn flight(&self, op: &Op) -> Flight {
        let (operand, compare) = (op.operand(), op.compare());
        Flight::Word { kind: op.kind as u8, at: self.at(op.remote), operand, compare }
    }

    /// Runs the steps of a ULT that no other ULT can see.
    pub fn drive(&self, world: &mut World, number: usize) -> Result<(), String> {
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
                        Get(page) => {
                            Task::Read(OptimisticRead::new(self.layout, rank, PageId(page)))
                        }
                        Put(page) => Task::Pin(PagePin::new(self.layout, rank, PageId(page))),
                        Own(page) => Task::Own(Relocation::new(self.layout, rank, PageId(page))),
                    };
                    continue;
                }
                Task::Read(read) => next(read, Asks::Read),
                Task::Pin(pin) => next(pin, Asks::Pinned),
                Task::Own(own) => next(own, Asks::Copy),
                Task::Grace(grace, _) => next(grace, |never| match never {}),
                Task::Free => PageAction::Over(()),
            };
            match act {
                // Of a device's words only atomics are whole.
                PageAction::Do(op)
                    if op.kind == Kind::GetWord
                        && self.layout.directory() == Some(op.remote.key) =>
                {
                    ult.read = [None; 2];
                    let at = self.at(op.remote);
                    ult.flights.extend([FRAME, !FRAME].map(|bits| Flight::Torn(at, bits)));
                }
                PageAction::Do(op) => ult.flights.push(self.flight(&op)),
                PageAction::Pause(_) if ult.is_late => return Ok(()),
                PageAction::Pause(_) => ult.pauses = true,
                PageAction::Access(Asks::Read(entry)) => {
                    let header = self.at(self.layout.header(entry.owner, entry.frame));
                    ult.read = [None; 2];
                    ult.flights.extend(self.tears.map(|bits| Flight::Torn(header, bits)));
                    ult.flights.push(Flight::Value(header + 1));
                    ult.flights.retain(|flight| !matches!(flight, Flight::Torn(_, 0)));
                }
                PageAction::Access(Asks::Copy(PageCopy { from, to })) => {
                    ult.flights.push(Flight::Copy { from: self.at(from), to: self.at(to) });
                }
                PageAction::Access(Asks::Pinned(entry)) => {
                    let value = 10 * (number as u64 + 1) + ult.done as u64;
                    ult.flights.push(Flight::Store { entry, value });
                }
                PageAction::Failed(error) => return Err(format!("ULT {number}: {error}")),
                PageAction::Over(()) => self.ends(ult, number)?,
            }
        }
    }

    fn ends(&self, ult: &mut Ult, number: usize) -> Result<(), String> {
        ult.task = match &ult.task {
            Task::Own(own) => match own.retired() {
                Some(retired) => Task::Grace(GracePeriod::new(self.layout), retired),
                None => Task::None,
            },
            Task::Grace(_, RetiredFrame { owner, frame }) => {
                let (at, bit) = self.layout.bit(*owner, *frame);
                ult.flights.push(self.flight(&Op::atomic(Kind::FetchAnd, at, !bit)));
                Task::Free
            }
            Task::Read(_) => {
                let value = ult.read[1].expect("the value was read");
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

    pub fn perform(&self, world: &mut World, number: usize, index: usize) -> Result<(), String> {
        let flight = world.ults[number].flights.remove(index);
        let mut answer = 0;
        // A get begins with its first operation.
        let ult = &mut world.ults[number];
        if let (Task::Read(_), Get(page)) = (&ult.task, self.ults[number].1[ult.done])
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
            Flight::Torn(at, bits) => {
                let found = world.memory[at] & bits;
                let [word, _] = &mut world.ults[number].read;
                answer = word.unwrap_or(0) | found;
                *word = Some(answer);
            }
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
            (Task::Read(read), Flight::Torn(..) | Flight::Value(_)) => {
                read.answer(Ok(ult.read[0].expect("both parts have arrived")));
            }
            (Task::Read(read), _) => read.answer(Ok(answer)),
            (Task::Pin(pin), _) => pin.answer(Ok(answer)),
            (Task::Own(own), _) => own.answer(Ok(answer)),
            (Task::Grace(grace, _), _) => grace.answer(Ok(answer)),
            (Task::Free, _) => {
                ult.task = Task::None;
                ult.done += 1;
                ult.is_late = false;
            }
            (Task::None, _) => unreachable!(),
        }
        self.drive(world, number)
    }

    /// Records a put, at the page's place or at an old one.
    fn lands(
        &self,
        world: &mut World,
        page: PageId,
        entry: DirectoryEntry,
        value: u64,
    ) -> Result<(), String> {
        let (owner, frame) =
            match PageState::from_bits(world.memory[self.at(self.layout.entry(page))]) {
                PageState::At(entry) => (entry.owner, entry.frame),
                PageState::Moving { owner, frame, .. } => (owner, frame),
            };
        if (owner, frame) != (entry.owner, entry.frame) {
            return Err(format!("lands at {entry:?}, and the page is at {owner}, {frame}"));
        }
        if world.pages[page.0 as usize].1 {
            return Err(format!("lands at {entry:?} after the copy"));
        }
        let at = self.at(self.layout.bytes(entry));
        world.memory[at] = value;
        world.pages[page.0 as usize].0 = value;
        for (ult, (_, does)) in world.ults.iter_mut().zip(&self.ults) {
            if !ult.may_be.is_empty() && does[ult.done] == Get(page.0) {
                ult.may_be.push(value);
            }
        }
        Ok(())
    }

    /// Marks a page that has arrived.
    fn watch(&self, world: &mut World, at: usize) {
        for page in 0..world.pages.len() {
            if at == self.at(self.layout.entry(PageId(page as u64)))
                && let PageState::At(_) = PageState::from_bits(world.memory[at])
            {
                world.pages[page].1 = false;
            }
        }
    }
}

fn apply(kind: u8, old: u64, operand: u64, compare: u64) -> u64 {
    match kind {
        kind if kind == Kind::GetWord as u8 => old,
        kind if kind == Kind::FetchAdd as u8 => old.wrapping_add(operand),
        kind if kind == Kind::FetchOr as u8 => old | operand,
        kind if kind == Kind::FetchAnd as u8 => old & operand,
        kind if kind == Kind::CompareSwap as u8 && old != compare => old,
        _ => operand,
    }
}

/// The part of an entry that holds the page's frame and its epoch.
const FRAME: u64 = (1 << 42) - 1;
