//! A rank of a simulated job, whose ULTs use pages.

use crate::asks::{Asks, next};
use crate::post::{Asked, LETTERS, Post};
use crate::ult::{Does, ELEMENTS, Part, Plan, Task, Ult, first, unique};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use tsumugi_conformance::history::{Event as Access, What};
use tsumugi_core::backend::Completion;
use tsumugi_core::mem::{
    Access as Rights, AddrError, LocalAddr, Rank, RegionKey, RemoteAddr, Width,
};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sim::{Actor, Net, SimEvent, SimNode};
use tsumugi_core::tag::Tag;
use tsumugi_core::time::Instant;
use tsumugi_gas::page::{
    DirectoryEntry, Distribution, GracePeriod, PageAction, PageCopy, PageLayout, PageProtocol,
};

/// The operations of all ranks on each element.
pub struct Log {
    pub now: u64,
    pub elements: Vec<Vec<Access>>,
    pub moves: u64,
    pub failed: u64,
    /// Whether no rank has died or was given up.
    pub is_whole: bool,
}

/// A rank.
pub struct Desk {
    pub layout: PageLayout,
    rank: Rank,
    pub log: Rc<RefCell<Log>>,
    pub ults: Vec<Ult>,
    queue: VecDeque<Op>,
    pub lost: Vec<Rank>,
    /// The messages, if the directory is the paper's.
    pub mail: Option<Post>,
}

impl Log {
    pub fn new(elements: u64) -> Self {
        let elements = (0..elements).map(|_| Vec::new()).collect();
        Self { now: 0, elements, moves: 0, failed: 0, is_whole: true }
    }

    pub fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }
}

impl Desk {
    /// A rank in its first state.
    pub fn new(net: &Net, rank: Rank, layout: PageLayout, log: &Rc<RefCell<Log>>) -> Self {
        let node = net.node(rank);
        let region = node.allocate(layout.shape().bytes(), Rights::ReadWrite).unwrap();
        assert_eq!(region.key, PAGES);
        let scratch = node.allocate(ULTS_MAX * SCRATCH, Rights::ReadWrite).unwrap();
        assert_eq!(scratch.key, OWN);
        if let Some(directory) = layout.directory() {
            let bytes = layout.shape().directory_bytes();
            let region = node.allocate(bytes, Rights::ReadWrite).unwrap();
            assert_eq!((region.key, directory), (DIRECTORY, DIRECTORY));
        }
        let log = Rc::clone(log);
        let (queue, lost, mail) = (VecDeque::new(), vec![], None);
        Self { layout, rank, log, ults: vec![], queue, lost, mail }
    }

    /// Puts every page to its first place.
    pub fn deal(net: &Net, layout: &PageLayout, dealt: Distribution) {
        let homes = layout.shape().homes;
        for rank in (0..homes.ranks()).map(Rank) {
            for (frame, page) in homes.first_of(rank, dealt).enumerate() {
                let entry = DirectoryEntry { owner: rank, frame: frame as u32, epoch: 0 };
                let store = |at: RemoteAddr, value| {
                    net.node(at.rank).store(at.key, at.offset, value).unwrap();
                };
                store(layout.entry(page), entry.to_bits());
                store(layout.header(rank, entry.frame), entry.header(page));
                let (bits, bit) = layout.bit(rank, entry.frame);
                let taken = net.node(rank).load(bits.key, bits.offset).unwrap();
                store(bits, taken | bit);
                for element in 1..ELEMENTS {
                    store(layout.bytes(entry).add(element * 8), first(page, element));
                }
            }
        }
    }

    /// Gives the rank a ULT that does `steps` operations.
    pub fn spawn(&mut self, seed: u64, steps: u32, plan: Plan) {
        let scratch = self.ults.len() as u64 * SCRATCH;
        assert!(scratch < ULTS_MAX * SCRATCH, "too many ULTs");
        self.ults.push(Ult::new(seed, steps, plan, scratch));
    }

    /// Records that the rank has died: operations under way may have taken effect, or may yet.
    pub fn note_death(&self) {
        let mut log = self.log.borrow_mut();
        log.is_whole = false;
        for ult in &self.ults {
            if ult.does.writes() && ult.parts.iter().any(|(_, part)| *part == Part::Access) {
                let lost = AddrError::PeerLost { rank: self.rank };
                ult.log_writes(&mut log, Err(lost));
            }
        }
    }

    /// Lets ULTs that were spawned since begin.
    pub fn go_on(&mut self, node: &SimNode<'_>) {
        self.drive(node);
    }

    pub fn is_done(&self) -> bool {
        self.ults.iter().all(|ult| ult.left == 0 && matches!(ult.task, Task::None))
    }

    fn drive(&mut self, node: &SimNode<'_>) {
        for number in 0..self.ults.len() {
            self.run(node, number);
        }
        while let Some(op) = self.queue.front()
            && node.try_post(op)
        {
            self.queue.pop_front();
        }
    }

    /// Runs a ULT until it waits.
    fn run(&mut self, node: &SimNode<'_>, number: usize) {
        loop {
            let rank = node.rank();
            let ult = &mut self.ults[number];
            if !ult.parts.is_empty() || ult.paused {
                return;
            }
            let act = match &ult.task {
                Task::None if ult.left == 0 && ult.to_own.is_empty() => return,
                Task::None => {
                    ult.begin(self.layout, rank, self.mail.is_some(), &mut self.log.borrow_mut());
                    continue;
                }
                Task::Read(task) => next(task, Asks::Read),
                Task::Pin(task) => next(task, Asks::Pinned),
                Task::Own(task) => next(task, Asks::Copy),
                Task::Grace(task, _) => next(task, |never| match never {}),
                Task::Free => PageAction::Over(()),
                Task::Asked(asked) => {
                    let asked = *asked;
                    if self.ask(node, number, asked) {
                        continue;
                    }
                    return;
                }
            };
            match act {
                PageAction::Do(op) => self.post(number, Part::Word, op),
                PageAction::Pause(by) => self.pause(node, number, by),
                PageAction::Access(Asks::Read(entry)) => {
                    let Does::Get { first, count, .. } = ult.does else { unreachable!() };
                    let local = LocalAddr { key: OWN, offset: ult.scratch + first * 8 };
                    let bytes = self.layout.bytes(entry).add(first * 8);
                    let header =
                        Op::get_word(self.layout.header(entry.owner, entry.frame), Width::W8);
                    let bytes = Op::get(bytes, local, count * 8);
                    self.post(number, Part::Header, header);
                    self.post(number, Part::Bytes, bytes);
                }
                PageAction::Access(Asks::Copy(PageCopy { from, to })) => {
                    let (is_own, offset) = (to.rank == rank, ult.scratch);
                    let local = match is_own {
                        true => LocalAddr { key: to.key, offset: to.offset },
                        false => LocalAddr { key: OWN, offset },
                    };
                    let op = Op::get(from, local, self.layout.shape().page_bytes);
                    self.post(number, if is_own { Part::Bytes } else { Part::Fetched }, op);
                }
                PageAction::Access(Asks::Pinned(entry)) => self.access(node, number, entry),
                PageAction::Failed(error) => self.end(node, number, Some(error)),
                PageAction::Over(()) => self.end(node, number, None),
            }
        }
    }

    pub fn pause(&mut self, node: &SimNode<'_>, number: usize, by: Option<Rank>) {
        let ult = &mut self.ults[number];
        ult.pauses_for = by;
        ult.paused = true;
        let later = node.now().as_ns() + 500 + ult.draw.below(5_000);
        node.wake_at(Instant::from_ns(later), number as u64);
    }

    /// Uses a page that stays where it is.
    pub fn access(&mut self, node: &SimNode<'_>, number: usize, entry: DirectoryEntry) {
        let ult = &self.ults[number];
        let bytes = self.layout.bytes(entry);
        let op = match ult.does {
            Does::Add { .. } => Op::atomic(Kind::FetchAdd, bytes, 1u64),
            Does::Put { first, count, .. } => {
                for element in first..first + count {
                    let value = unique(ult.start, element);
                    node.store(OWN, ult.scratch + element * 8, value).unwrap();
                }
                let local = LocalAddr { key: OWN, offset: ult.scratch + first * 8 };
                Op::put(local, bytes.add(first * 8), count * 8)
            }
            Does::Get { first, count, .. } => {
                let local = LocalAddr { key: OWN, offset: ult.scratch + first * 8 };
                Op::get(bytes.add(first * 8), local, count * 8)
            }
            Does::Own(_) => unreachable!("an own is not an access"),
        };
        self.post(number, Part::Access, op);
    }

    pub fn post(&mut self, number: usize, part: Part, op: Op) {
        // The atomics that every device has.
        let is_any_devices = matches!(op.kind, Kind::FetchAdd | Kind::CompareSwap);
        let is_devices = self.layout.directory() == Some(op.remote.key);
        assert!(is_any_devices || !is_devices, "{op:?} of a word that is a device's");
        let ult = &mut self.ults[number];
        ult.sequence += 1;
        ult.parts.push((ult.sequence, part));
        self.queue.push_back(op.tagged(Tag::from_bits(ult.sequence << 8 | number as u64)));
    }

    fn completed(&mut self, node: &SimNode<'_>, done: Completion) {
        let (number, sequence) = (done.tag.to_bits() & 0xff, done.tag.to_bits() >> 8);
        let is_given_up = self.is_given_up(node);
        let ult = &mut self.ults[number as usize];
        let Some(index) = ult.parts.iter().position(|(of, _)| *of == sequence) else { return };
        let (_, part) = ult.parts.swap_remove(index);
        match (done.result, part) {
            (Ok(value), Part::Header) => ult.header = value,
            (Ok(value), Part::Word | Part::Access) => ult.value = value,
            (Ok(_), Part::Bytes) => {}
            (Ok(_), Part::Fetched) => {
                let Task::Own(own) = &ult.task else { unreachable!("only an own fetches") };
                let PageAction::Access(PageCopy { to, .. }) = own.act() else {
                    unreachable!("the own copies")
                };
                let local = LocalAddr { key: OWN, offset: ult.scratch };
                let put = Op::put(local, to, self.layout.shape().page_bytes);
                return self.post(number as usize, Part::Bytes, put);
            }
            (Err(error), _) => ult.error = Some(error),
        }
        if !ult.parts.is_empty() {
            return;
        }
        let result = ult.error.take().map_or(Ok(()), Err);
        let logged = match is_given_up {
            true => Err(AddrError::PeerLost { rank: self.rank }),
            false => result.map(|()| ult.value),
        };
        match (&mut ult.task, part) {
            (Task::Pin(task), Part::Access) => {
                task.answer(Ok(0));
                ult.log_writes(&mut self.log.borrow_mut(), logged);
            }
            (Task::Read(task), Part::Header | Part::Bytes) => {
                task.answer(result.map(|()| ult.header));
            }
            (Task::Read(task), _) => task.answer(result.map(|()| ult.value)),
            (Task::Pin(task), _) => task.answer(result.map(|()| ult.value)),
            (Task::Own(task), _) => task.answer(result.map(|()| ult.value)),
            (Task::Grace(task, _), _) => task.answer(result.map(|()| ult.value)),
            (Task::Free, _) => ult.task = Task::None,
            (Task::Asked(asked), _) => {
                let asked = *asked;
                if ult.does.writes() {
                    ult.log_writes(&mut self.log.borrow_mut(), logged);
                }
                self.used(node, number as usize, asked, result.is_ok());
                self.end(node, number as usize, result.err());
            }
            (Task::None, _) => unreachable!("no message was expected"),
        }
    }

    /// Whether another rank has given this one up. From then on its reads may be old and its writes
    /// lost, until it learns so.
    fn is_given_up(&self, node: &SimNode<'_>) -> bool {
        let mut others = (0..self.layout.shape().homes.ranks()).map(Rank);
        others.any(|by| node.net().is_lost(by, self.rank))
    }

    /// Ends a task.
    pub fn end(&mut self, node: &SimNode<'_>, number: usize, error: Option<AddrError>) {
        let is_given_up = self.is_given_up(node);
        let ult = &mut self.ults[number];
        let mut log = self.log.borrow_mut();
        if let Some(error) = error {
            let is_grace = matches!(ult.task, Task::Grace(..));
            assert!(!is_grace, "a grace period fails by {error}: a dead rank reads nothing");
            let AddrError::PeerLost { rank } = error else { panic!("{error}") };
            let is_lost = node.net().is_lost(node.rank(), rank);
            assert!(is_lost || is_given_up, "{} regards the living {rank} as dead", node.rank());
            log.failed += 1;
        }
        ult.task = match &ult.task {
            Task::Own(own) => {
                log.moves += u64::from(own.retired().is_some());
                match own.retired() {
                    Some(retired) => Task::Grace(GracePeriod::new(self.layout), retired),
                    None => Task::None,
                }
            }
            Task::Grace(_, retired) => {
                let (at, bit) = self.layout.bit(retired.owner, retired.frame);
                drop(log);
                self.post(number, Part::Word, Op::atomic(Kind::FetchAnd, at, !bit));
                self.ults[number].task = Task::Free;
                return;
            }
            Task::Read(_) | Task::Asked(Asked::Using(_))
                if error.is_none()
                    && !is_given_up
                    && let Does::Get { page, first, count } = ult.does =>
            {
                let end = log.tick();
                for element in first..first + count {
                    let value = node.load(OWN, ult.scratch + element * 8).unwrap();
                    let read = Access { start: ult.start, end, what: What::Read(value) };
                    log.elements[(page.0 * ELEMENTS + element) as usize].push(read);
                }
                Task::None
            }
            _ => Task::None,
        };
    }
}

impl Actor for Desk {
    fn on_event(&mut self, node: &SimNode<'_>, event: SimEvent) {
        match event {
            SimEvent::Completed(done) => self.completed(node, done),
            SimEvent::Timer(number) if number > LETTERS => self.receive(node, number),
            SimEvent::Timer(number) => {
                let ult = &mut self.ults[number as usize];
                ult.paused = false;
                let result = match ult.pauses_for.take() {
                    Some(rank) if self.lost.contains(&rank) => Err(AddrError::PeerLost { rank }),
                    _ => Ok(0),
                };
                match &mut ult.task {
                    Task::Read(task) => task.answer(result),
                    Task::Pin(task) => task.answer(result),
                    Task::Own(task) => task.answer(result),
                    Task::Grace(task, _) => task.answer(result),
                    Task::Asked(_) => {}
                    Task::None | Task::Free => unreachable!("the task does not pause"),
                }
            }
            SimEvent::PeerLost(rank) => {
                self.lost.push(rank);
                if self.mail.is_some() {
                    self.mourn(node, rank);
                }
            }
            _ => {}
        }
        self.drive(node);
    }
}

pub const PAGES: RegionKey = RegionKey::new(0, 1);
const OWN: RegionKey = RegionKey::new(1, 1);
/// The key of the directory's region, if it lies apart.
pub const DIRECTORY: RegionKey = RegionKey::new(2, 1);
const SCRATCH: u64 = 8 * ELEMENTS;
const ULTS_MAX: u64 = 8;
