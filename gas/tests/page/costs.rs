//! The cost of owning a page that other ranks have read or written: operations by atomics,
//! messages by the paper's directory.

use std::collections::{BTreeSet, HashMap, VecDeque};
use tsumugi_core::mem::{Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind, Op};
use tsumugi_gas::page::message_directory::{DirectoryMessage, Enter, Home, PageAccess, Requester};
use tsumugi_gas::page::{
    DirectoryEntry, Distribution, GracePeriod, Homes, OptimisticRead, PageAction, PageId,
    PageLayout, PagePin, PageProtocol, PageShape, Relocation,
};

/// The words of all ranks, and the operations on those of ranks other than `by`.
struct Memory {
    words: HashMap<RemoteAddr, u64>,
    by: Rank,
    /// The operations on words of other ranks, and all operations.
    remote: u64,
    all: u64,
}

impl Memory {
    fn carry(&mut self, op: &Op) -> u64 {
        self.remote += u64::from(op.remote.rank != self.by);
        self.all += 1;
        let word = self.words.entry(op.remote).or_default();
        let old = *word;
        *word = match op.kind {
            Kind::GetWord => old,
            Kind::PutWord | Kind::Swap => op.operand(),
            Kind::FetchAdd => old.wrapping_add(op.operand()),
            Kind::FetchOr => old | op.operand(),
            Kind::FetchAnd => old & op.operand(),
            Kind::CompareSwap if old == op.compare() => op.operand(),
            Kind::CompareSwap => old,
            kind => unreachable!("{kind:?}"),
        };
        old
    }

    /// Moves a page to a rank that does not have it.
    fn own(&mut self, layout: PageLayout, rank: Rank, page: PageId) {
        let mut own = Relocation::new(layout, rank, page);
        loop {
            match own.act() {
                PageAction::Do(op) => own.answer(Ok(self.carry(&op))),
                PageAction::Access(_) => {
                    self.remote += 1;
                    own.answer(Ok(0));
                }
                PageAction::Over(_) => break,
                act => unreachable!("{act:?}"),
            }
        }
        assert!(own.retired().is_some());
    }
}

/// Requester, home and owner are three ranks; the readers and writers come after them.
const B: Rank = Rank(0);
const HOME: Rank = Rank(1);
const A: Rank = Rank(2);
const RANKS: u32 = 3 + 32;
const PAGE: PageId = PageId(1);

/// The operations on other ranks that a move takes, and those of its grace period, which
/// all pages that moved before it share.
fn by_atomics(is_apart: bool, readers: u32, writers: u32) -> (u64, u64) {
    let homes = Homes::new(RANKS, u64::from(RANKS), Distribution::Block);
    let shape = PageShape { homes, page_bytes: 8, slots: 1, frames: 2 };
    let (pages, directory) = (RegionKey::new(0, 1), RegionKey::new(1, 1));
    let layout = match is_apart {
        true => PageLayout::apart(shape, directory, pages).unwrap(),
        false => PageLayout::new(shape, pages, 0).unwrap(),
    };
    assert_eq!(layout.home(PAGE), HOME);
    let mut memory = Memory { words: HashMap::new(), by: B, remote: 0, all: 0 };
    let entry = DirectoryEntry { owner: A, frame: 0, epoch: 0 };
    memory.words.insert(layout.entry(PAGE), entry.to_bits());
    memory.words.insert(layout.header(A, 0), entry.header(PAGE));
    for reader in (3..3 + readers).map(Rank) {
        let mut read = OptimisticRead::new(layout, reader, PAGE);
        loop {
            match read.act() {
                PageAction::Do(op) => read.answer(Ok(memory.carry(&op))),
                PageAction::Access(entry) => read.answer(Ok(entry.header(PAGE))),
                PageAction::Over(_) => break,
                act => unreachable!("{act:?}"),
            }
        }
    }
    for writer in (3..3 + writers).map(Rank) {
        let mut pin = PagePin::new(layout, writer, PAGE);
        loop {
            match pin.act() {
                PageAction::Do(op) => pin.answer(Ok(memory.carry(&op))),
                PageAction::Access(_) => pin.answer(Ok(0)),
                PageAction::Over(_) => break,
                act => unreachable!("{act:?}"),
            }
        }
    }
    memory.remote = 0;
    memory.own(layout, B, PAGE);
    let owned = memory.remote;
    let mut grace = GracePeriod::new(layout);
    while let PageAction::Do(op) = grace.act() {
        grace.answer(Ok(memory.carry(&op)));
    }
    (owned, memory.remote - owned)
}

/// The messages between ranks, including the copy.
fn by_messages(listed: u32) -> u64 {
    let mut home = Home::new(DirectoryEntry { owner: A, frame: 0, epoch: 0 });
    let mut requesters: HashMap<Rank, Requester> = HashMap::new();
    let (mut letters, mut sent) = (VecDeque::new(), 0);
    let mut read = BTreeSet::new();
    for reader in (3..3 + listed).map(Rank) {
        let Enter::Ask(query) = requesters.entry(reader).or_default().enter(PageAccess::Read)
        else {
            unreachable!("the requester has no cached entry")
        };
        letters.push_back((reader, HOME, query));
    }
    let mut has_begun = false;
    loop {
        let Some((from, to, message)) = letters.pop_front() else {
            if has_begun {
                return sent;
            }
            (has_begun, sent) = (true, 1);
            letters.push_back((B, HOME, DirectoryMessage::Own));
            continue;
        };
        match message {
            DirectoryMessage::Permit(_) => {
                // The copy, and the message after it.
                sent += 2;
                requesters.entry(B).or_default().expect();
                letters.push_back((B, HOME, DirectoryMessage::Moved(0)));
            }
            DirectoryMessage::Told(_) | DirectoryMessage::Stop(_) => {
                let requester = requesters.entry(to).or_default();
                let note = requester.handle(message);
                if let DirectoryMessage::Told(entry) = message
                    && read.insert(to)
                {
                    assert_eq!(requester.enter(PageAccess::Read), Enter::Go(entry));
                    assert_eq!(requester.leave(PageAccess::Read, entry.epoch), None);
                }
                sent += note.iter().count() as u64;
                letters.extend(note.map(|note| (to, HOME, note)));
            }
            DirectoryMessage::Free(_) | DirectoryMessage::Yours => {}
            _ => {
                home.handle(from, message);
                while let Some((to, message)) = home.poll() {
                    sent += 1;
                    letters.push_back((HOME, to, message));
                }
            }
        }
    }
}

#[test]
fn by_atomics_readers_cost_nothing() {
    println!("listed  atomics, by readers  by writers  a sweep  messages");
    let alone = by_atomics(false, 0, 0);
    assert_eq!(by_atomics(true, 0, 0), alone, "a device takes as many operations");
    for listed in [0, 1, 8, 32] {
        let (readers, writers) = (by_atomics(false, listed, 0), by_atomics(false, 0, listed));
        let messages = by_messages(listed);
        println!("{listed:6}  {:19}  {:10}  {:7}  {messages:8}", readers.0, writers.0, readers.1);
        assert_eq!(readers, alone, "readers cost no operation");
        assert_eq!(
            writers.0,
            alone.0 + u64::from(listed),
            "each writer is stopped by one operation"
        );
        // By a device, which has no swap, the list is read first.
        let by_device = [by_atomics(true, listed, 0), by_atomics(true, 0, listed)].map(|own| own.0);
        assert_eq!(by_device, [readers.0, writers.0 + u64::from(listed > 0)]);
        // Own, permit, copy, moved, told, free; plus stop and stopped of each listed rank.
        assert_eq!(messages, 6 + 2 * u64::from(listed));
    }
}

/// However many pages a rank has, a page that arrives finds a free frame at once.
#[test]
fn an_arriving_page_finds_a_free_frame_at_once() {
    for dealt in [Distribution::Block, Distribution::Cyclic] {
        let homes = Homes::new(3, 10_000, dealt);
        let shape = PageShape { homes, page_bytes: 8, slots: 1, frames: 10_064 };
        let layout = PageLayout::new(shape, RegionKey::new(0, 1), 0).unwrap();
        let mut memory = Memory { words: HashMap::new(), by: HOME, remote: 0, all: 0 };
        for rank in (0..3).map(Rank) {
            for (frame, page) in homes.first_of(rank, dealt).enumerate() {
                let entry = DirectoryEntry { owner: rank, frame: frame as u32, epoch: 0 };
                let (bits, bit) = layout.bit(rank, entry.frame);
                memory.words.insert(layout.entry(page), entry.to_bits());
                *memory.words.entry(bits).or_default() |= bit;
            }
        }
        for page in (0..homes.pages()).map(PageId).filter(|page| layout.home(*page) != HOME) {
            let before = memory.all;
            memory.own(layout, HOME, page);
            assert_eq!(memory.all - before, 8, "{page:?}, {dealt:?}");
        }
    }
}
