//! The random operations of a rank, and the values that it expects.

use super::{Board, CHUNKS, Known, LINE, LINE_BYTES, PLACES, POISON, content, words};
use crate::rank::{Party, peek, poke};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use tsumugi_conformance::Seeded;
use tsumugi_core::backend::Domain;
use tsumugi_core::mem::{Access, AddrError, Region};
use tsumugi_core::op::Kind;
use tsumugi_core::sim::{Actor, SimEvent as Told, SimNode};
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::machine::MachineOutput;
use tsumugi_gas::order::{After, Handle};
use tsumugi_gas::request::{Copy, GlobalRequest, WordRequest};
use tsumugi_gas::table::Agent;

/// The effect of an operation when it ends.
#[derive(Clone, Copy, Debug)]
pub enum What {
    Serial,
    Add(u64),
    Xor(u64),
    Count(u64),
    /// A put from this place of the scratch memory.
    Put(u64, Line),
    /// A get into this place.
    Get(u64),
    Fetch(Kind, usize, u64),
    Swap(usize, u64, u64),
    /// A copy from the line of another region.
    Copy(usize),
}

pub struct Live {
    pub handle: Handle,
    pub region: usize,
    pub what: What,
}

#[derive(Clone, Copy)]
pub enum Chunk {
    Idle(Region),
    Open(Region, usize),
    Closing(Region, usize),
}

pub struct Program<'n, 'w> {
    pub party: Party<'n>,
    pub board: &'w RefCell<Board>,
    pub draw: Seeded,
    pub ranks: u32,
    pub left: u64,
    pub chunks: [Chunk; CHUNKS],
    pub scratch: (Region, GlobalAddr),
    pub places: [bool; PLACES as usize],
    /// This rank's lines, by region; `None`: the value is unknown.
    pub lines: HashMap<usize, Option<Line>>,
    /// The regions whose lines stay unknown.
    pub spoilt: HashSet<usize>,
    pub live: Vec<Live>,
    pub may_lose: bool,
}

pub type Line = [u64; LINE];

impl Program<'_, '_> {
    pub fn own(&self) -> u64 {
        u64::from(self.party.node.rank().0)
    }

    pub fn act(&mut self) {
        while self.left > 0 && self.live.len() < 8 {
            self.left -= 1;
            if self.draw.below(8) == 0 {
                self.turn_over()
            } else {
                self.operate()
            }
            self.party.pump();
            self.take_outs();
        }
    }

    /// Opens a region or closes it.
    fn turn_over(&mut self) {
        let at = self.draw.below(CHUNKS as u64) as usize;
        let mut board = self.board.borrow_mut();
        self.chunks[at] = match self.chunks[at] {
            Chunk::Idle(region) => {
                let number = board.regions.len();
                (0..words(self.ranks)).for_each(|word| poke(region, word, 0));
                poke(region, 0, number as u64);
                let (node, bytes) = (self.party.node, 8 * words(self.ranks));
                // SAFETY: the network's memory.
                let region =
                    unsafe { node.register(region.base, bytes, Access::ReadWrite) }.unwrap();
                let addr = self.party.machine.register(0, &region, Agent::Cpu).unwrap();
                board.regions.push(Known { addr, is_open: true, ..Known::default() });
                Chunk::Open(region, number)
            }
            Chunk::Open(region, number) => {
                let known = &mut board.regions[number];
                self.party.machine.unregister(known.addr).unwrap();
                known.is_open = false;
                Chunk::Closing(region, number)
            }
            closing => closing,
        };
    }

    fn operate(&mut self) {
        let board = self.board;
        let count = board.borrow().regions.len() as u64;
        if count == 0 {
            return;
        }
        // Mostly one of the newest regions: older ones are gone.
        let span = if self.draw.below(6) == 0 { count } else { count.min(8) };
        let mut pick = || (count - 1 - self.draw.below(span)) as usize;
        let (region, other) = (pick(), pick());
        let line = 4 + LINE as u64 * self.own();
        let at = |region: usize, word: u64| {
            GlobalAddr::from_bits(board.borrow().regions[region].addr.to_bits() + 8 * word)
        };
        let value = self.draw.next();
        let word = value as usize % LINE;
        let on_word =
            |kind, value: u64| WordRequest::atomic(kind, at(region, line + word as u64), value);
        let (request, what): (GlobalRequest, What) = match self.draw.below(12) {
            0 => (WordRequest::atomic(Kind::GetWord, at(region, 0), 0u64).into(), What::Serial),
            1 => (
                WordRequest::atomic(Kind::FetchAdd, at(region, 1), value % 9).into(),
                What::Add(value % 9),
            ),
            2 => {
                (WordRequest::atomic(Kind::FetchXor, at(region, 2), value).into(), What::Xor(value))
            }
            3 => {
                let guess = board.borrow().regions[region].shared.count;
                (
                    WordRequest::compare_swap(at(region, 3), guess, guess + 1).into(),
                    What::Count(guess),
                )
            }
            4 | 5 => {
                let Some(place) = self.take_place() else { return };
                let new: Line = std::array::from_fn(|at| value.rotate_left(at as u32 * 7));
                for (word, value) in (0..).zip(new) {
                    poke(self.scratch.0, place * LINE as u64 + word, value);
                }
                let copy = Copy::new(at(region, line), self.scratch_at(place), LINE_BYTES);
                (copy.into(), What::Put(place, new))
            }
            6 | 7 => {
                let Some(place) = self.take_place() else { return };
                let copy = Copy::new(self.scratch_at(place), at(region, line), LINE_BYTES);
                (copy.into(), What::Get(place))
            }
            8 => (on_word(Kind::Swap, value).into(), What::Fetch(Kind::Swap, word, value)),
            9 => {
                let kind = [Kind::FetchOr, Kind::FetchAnd, Kind::FetchXor, Kind::FetchAdd]
                    [value as usize / 64 % 4];
                (on_word(kind, value).into(), What::Fetch(kind, word, value))
            }
            10 => {
                let held = self.lines.get(&region).copied().flatten().unwrap_or_default()[word];
                let to = at(region, line + word as u64);
                (WordRequest::compare_swap(to, held, value).into(), What::Swap(word, held, value))
            }
            _ if region == other => return,
            _ => {
                (Copy::new(at(region, line), at(other, line), LINE_BYTES).into(), What::Copy(other))
            }
        };
        let touches = |what: &What, of: usize| match what {
            What::Serial | What::Add(_) | What::Xor(_) | What::Count(_) => Vec::new(),
            What::Copy(other) => vec![of, *other],
            _ => vec![of],
        };
        let own = touches(&what, region);
        let before: Vec<Handle> = self
            .live
            .iter()
            .filter(|live| touches(&live.what, live.region).iter().any(|line| own.contains(line)))
            .map(|live| live.handle)
            .collect();
        let after = match (before.len(), self.draw.below(3)) {
            (0, _) => After::Nothing,
            (1, 0) => After::One(before[0]),
            (_, 1) => After::UpTo(*before.iter().max().unwrap()),
            _ => After::Each(&before),
        };
        match self.party.machine.try_issue(request, after) {
            Ok(handle) => self.live.push(Live { handle, region, what }),
            Err(_) => self.give_place(what),
        }
    }

    pub fn take_outs(&mut self) {
        while let Some(out) = self.party.outs.pop_front() {
            match out {
                MachineOutput::Ended { handle, result } => {
                    let is_it = |live: &Live| live.handle == handle;
                    let at = self.live.iter().position(is_it).expect("once");
                    let live = self.live.remove(at);
                    self.ended(&live, result);
                    self.give_place(live.what);
                }
                MachineOutput::Retired(retired) => {
                    let mut board = self.board.borrow_mut();
                    let is_it = |chunk: &Chunk| matches!(chunk, Chunk::Closing(_, number) if board.regions[*number].addr == retired.addr);
                    let at = self.chunks.iter().position(is_it).expect("the region was closing");
                    let Chunk::Closing(region, number) = self.chunks[at] else { unreachable!() };
                    board.held.insert(number, content(region, self.ranks));
                    (0..words(self.ranks)).for_each(|word| poke(region, word, POISON));
                    self.chunks[at] = Chunk::Idle(region);
                }
                MachineOutput::Table { .. } => {}
            }
        }
    }

    fn ended(&mut self, live: &Live, result: Result<u64, AddrError<GlobalAddr>>) {
        let Live { region, what, .. } = *live;
        let mut board = self.board.borrow_mut();
        let known = &mut board.regions[region];
        let line = self.lines.entry(region).or_insert(Some([0; LINE]));
        let value = match result {
            Ok(value) => value,
            Err(AddrError::StaleKey { addr }) => {
                let other = if let What::Copy(other) = what { other } else { region };
                let is_gone = !known.is_open || !board.regions[other].is_open;
                assert!(is_gone, "{addr} is registered");
                board.stale += 1;
                if matches!(what, What::Put(..) | What::Copy(_)) {
                    // A part of the operation may have arrived in time.
                    *line = None;
                }
                return;
            }
            Err(AddrError::PeerLost { .. }) if self.may_lose => {
                known.unsure += 1;
                if matches!(what, What::Copy(_)) {
                    // The operations of the dead rank may land at any time.
                    self.spoilt.insert(region);
                }
                if !matches!(what, What::Get(_) | What::Serial) {
                    *line = None;
                }
                return;
            }
            Err(error) => panic!("{}: {what:?}: {error}", self.party.node.rank()),
        };
        match what {
            What::Serial => assert_eq!(value, region as u64, "another region was found"),
            What::Add(add) => known.shared.sum += add,
            What::Xor(bits) => known.shared.parity ^= bits,
            What::Count(guess) => known.shared.count += u64::from(value == guess),
            What::Put(_, new) => *line = Some(new).filter(|_| !self.spoilt.contains(&region)),
            What::Get(place) => {
                let found: Line = std::array::from_fn(|word| {
                    peek(self.scratch.0, place * LINE as u64 + word as u64)
                });
                assert!(line.is_none_or(|line| line == found), "{line:?}, and {found:?} was read");
            }
            What::Fetch(kind, word, operand) => {
                let Some(line) = line else { return };
                assert_eq!(value, line[word], "{kind:?}");
                line[word] = match kind {
                    Kind::FetchOr => value | operand,
                    Kind::FetchAnd => value & operand,
                    Kind::FetchXor => value ^ operand,
                    Kind::FetchAdd => value.wrapping_add(operand),
                    _ => operand,
                };
            }
            What::Swap(word, expected, new) => {
                let Some(line) = line else { return };
                assert_eq!(value, line[word], "compare and swap");
                if value == expected {
                    line[word] = new;
                }
            }
            What::Copy(other) => {
                let copied = self.lines.get(&other).copied().unwrap_or(Some([0; LINE]));
                let copied = copied.filter(|_| !self.spoilt.contains(&region));
                self.lines.insert(region, copied);
            }
        }
    }

    fn scratch_at(&self, place: u64) -> GlobalAddr {
        GlobalAddr::from_bits(self.scratch.1.to_bits() + place * LINE_BYTES)
    }

    fn take_place(&mut self) -> Option<u64> {
        let at = self.places.iter().position(|is_free| *is_free)?;
        self.places[at] = false;
        Some(at as u64)
    }

    fn give_place(&mut self, what: What) {
        if let What::Put(place, _) | What::Get(place) = what {
            self.places[place as usize] = true;
        }
    }
}

impl Actor for Program<'_, '_> {
    fn on_event(&mut self, _: &SimNode<'_>, event: Told) {
        self.party.on_event(event);
        self.take_outs();
        self.act();
    }
}
